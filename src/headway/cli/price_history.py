"""`headway price --history anthropic`: dated price sheets, their multiples and what changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headway import output, units
from headway.cli import subjects
from headway.columns import Column
from headway.errors import UnknownName
from headway.listing import Listing, computed

EVERY = "all"


def add_flags(parser: Any) -> None:
    """Whose history."""
    whose = "dated sheets of a provider, a family or a model: anthropic, gpt, my_prices.toml, genai-prices:openai, all"
    parser.add_argument("--history", default="", metavar="WHOSE", help=whose)


def run(args: Any) -> output.Answer:
    """One row for each sheet, by date."""
    from headway.formula import record
    from headway.price_history import history

    sheets = _sheets(args.history, subjects.catalog(args))

    def tree(row: Any, key: str) -> Any:
        with record():
            found = next(
                one for one in history(sheets) if all(str(getattr(one, name)) == row[name] for name in ("provider", "model", "as_of"))
            )
        return computed(getattr(found, key), key)

    rows = output.clean(list(history(sheets)))
    title = f"Price sheets by date: {args.history}"
    own = {"source": Column("", "where the prices are from")}
    return output.Answer(Listing(rows, tree=tree), describe=_words, figure=lambda kept: _figure(kept, title), most=200, columns=own)


def _sheets(whose: str, catalog: Any) -> tuple[Any, ...]:
    """The sheets of a provider, of a family or of a model, wherever they are read from."""
    from pathlib import Path

    from headway.catalog import fold
    from headway.sheets import catalogue
    from headway.sheets.files import SUFFIXES, read_sheets

    before, _, name = whose.strip().rpartition(":")
    if Path(whose).suffix.lower() in SUFFIXES:
        return read_sheets(whose).sheets
    among = (
        catalogue.genai().sheets if fold(before) == catalogue.GENAI else read_sheets(before).sheets if before else catalogue.sheets(catalog)
    )
    wanted = fold(name)
    if wanted == EVERY:
        return tuple(among)
    models = [one for one in among if fold(one.model) == wanted or fold(one.model).startswith(wanted + "-")]
    found = tuple([one for one in among if fold(one.provider) == wanted] or models)
    if not found:
        providers = sorted({fold(one.provider) for one in among})
        raise UnknownName(
            "provider or model with price sheets", name, [*providers, *catalogue.names(among)], f"providers are {', '.join(providers[:24])}"
        )
    return found


def _words(rows: Any) -> output.Words:
    """How many sheets from when to when, and the largest moves."""
    every = list(rows)
    if not every:
        return output.Words("No row is left.")
    every.sort(key=lambda row: row["as_of"].replace("undated", ""))
    dates = [row["as_of"] for row in every if row["as_of"] != "undated"]
    span = f"{dates[0]} to {dates[-1]}" if len(set(dates)) > 1 else (dates or ["undated"])[0]
    people = [_short(row) for row in rows]
    if len({row["provider"] for row in every}) == 1:
        for row in people:
            del row["provider"]
    legend = "step: above so many prompt tokens the whole request costs so many times as much, input and output; USD per million tokens"
    return output.Words(f"{_count(every)}, {span}{_ranges(every)}.", tuple(people[0]), [legend], Listing(people))


def _short(row: Mapping[str, Any]) -> dict[str, Any]:
    """A sheet as a line that fits a terminal."""
    step = f"{units.show(row['step_above'], 'token')}: {_x(row['step_input_multiple'])}, {_x(row['step_output_multiple'])}"
    writes = ", ".join(_x(row[key]) for key in ("write_multiple", "write_long_multiple") if row[key])
    fast = _x(row["fast_multiple"]) + (f" for {_x(row['fast_speed_multiple'])} speed" if row["fast_speed_multiple"] else "")
    return {
        "date": row["as_of"], "provider": row["provider"], "model": row["model"], "in": units.show(row["input_usd_per_mtok"], "USD"),
        "out": units.show(row["output_usd_per_mtok"], "USD"), "out/in": _x(row["output_multiple"]), "cached/in": _x(row["cached_multiple"]),
        "write/in": writes, "step": step if row["step_above"] else "",
        "fast": fast, "slow": _x(row["slow_multiple"]), "hours": _x(row["hours_multiple"]), "changed": row["changed"],
    }  # fmt: skip


def _x(multiple: float | None) -> str:
    return "" if multiple is None else f"{multiple:.3g}x"


def _count(rows: list[Any]) -> str:
    models = len({(row["provider"], row["model"]) for row in rows})
    return f"{len(rows)} price sheet{'s' * (len(rows) > 1)} of {models} model{'s' * (models > 1)}"


def _ranges(rows: list[Any]) -> str:
    """What the multiples span."""
    told = []
    for key, name in (("output_multiple", "output"), ("cached_multiple", "a cached token")):
        values = [row[key] for row in rows if row[key] is not None]
        if values:
            told.append(f"{name} {_span(values)} of input")
    fast = [row["fast_multiple"] for row in rows if row["fast_multiple"] is not None]
    if fast:
        told.append(f"fast modes {_span(fast)} of standard, the newest {units.show(fast[-1], '')}x")
    return "".join(f"; {one}" for one in told)


def _span(values: list[float]) -> str:
    low, high = (f"{value:.3g}x" for value in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def _figure(rows: Any, title: str) -> dict[str, Any]:
    from headway.price_figures import history

    return history(list(rows), title)

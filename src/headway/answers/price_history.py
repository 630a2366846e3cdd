"""`headway price --history anthropic`: dated price sheets, their price multiples and changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headway.answers import arguments
from headway.core import units
from headway.core.catalog import fold
from headway.core.columns import Column
from headway.core.errors import UnknownName
from headway.core.listing import Listing, clean, computed
from headway.core.trace import record
from headway.economics.sheets import catalogue
from headway.economics.sheets.catalogue import SUFFIXES, read_sheets
from headway.economics.sheets.history import history
from headway.report import output, price
from headway.report.words import sentence

ALL_SHEETS = "all"


def run(args: Any) -> output.Answer:
    """Answer with a row per sheet, by date."""
    sheets = _sheets(args.history, arguments.catalog(args))

    def tree(row: Any, key: str) -> Any:
        with record():
            history_row = next(
                entry for entry in history(sheets) if all(str(getattr(entry, name)) == row[name] for name in ("provider", "model", "as_of"))
            )
        return computed(getattr(history_row, key), key)

    rows = clean(list(history(sheets)))
    title = f"Price sheets by date: {args.history}"
    columns = {"source": Column("", "where the prices are from")}
    pictures = {"history": lambda table, view: price.history(list(table), title, view)}
    return output.Answer(Listing(rows, tree=tree), describe=_words, pictures=pictures, most=200, columns=columns)


def _sheets(whose: str, catalog: Any) -> tuple[Any, ...]:
    """Price sheets of a provider, a family or a model, from every source."""
    from pathlib import Path

    before, _, name = whose.strip().rpartition(":")
    if Path(whose).suffix.lower() in SUFFIXES:
        return read_sheets(whose).sheets
    among = (
        catalogue.genai().sheets if fold(before) == catalogue.GENAI else read_sheets(before).sheets if before else catalogue.sheets(catalog)
    )
    query = fold(name)
    if query == ALL_SHEETS:
        return tuple(among)
    models = [sheet for sheet in among if fold(sheet.model) == query or fold(sheet.model).startswith(query + "-")]
    sheets = tuple([sheet for sheet in among if fold(sheet.provider) == query] or models)
    if not sheets:
        providers = sorted({fold(sheet.provider) for sheet in among})
        raise UnknownName(
            "provider or model with price sheets", name, [*providers, *catalogue.names(among)], f"providers are {', '.join(providers[:24])}"
        )
    return sheets


def _words(rows: Any) -> output.Summary:
    """Summary: number and dates of the sheets, and the largest price changes."""
    row_list = list(rows)
    row_list.sort(key=lambda row: row["as_of"].replace("undated", ""))
    dates = [row["as_of"] for row in row_list if row["as_of"] != "undated"]
    span = f"{dates[0]} to {dates[-1]}" if len(set(dates)) > 1 else (dates or ["undated"])[0]
    people = [_short(row) for row in rows]
    if len({row["provider"] for row in row_list}) == 1:
        for row in people:
            del row["provider"]
    legend = "step: above so many prompt tokens the whole request costs so many times as much, input and output; USD per million tokens"
    headline = sentence(f"{_count(row_list)}, {span}", *_ranges(row_list))
    return output.Summary(headline, tuple(people[0]), people=Listing(people), remarks=[legend])


def _short(row: Mapping[str, Any]) -> dict[str, Any]:
    """Row of a sheet in columns that fit a terminal."""
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


def _ranges(rows: list[Any]) -> list[str]:
    """Clauses on the range of each price multiple."""
    parts = []
    for key, name in (("output_multiple", "output"), ("cached_multiple", "a cached token")):
        values = [row[key] for row in rows if row[key] is not None]
        if values:
            parts.append(f"{name} {_span(values)} of input")
    fast = [row["fast_multiple"] for row in rows if row["fast_multiple"] is not None]
    if fast:
        parts.append(f"fast modes {_span(fast)} of standard")
    return [f"; {part}" for part in parts]


def _span(values: list[float]) -> str:
    low, high = (f"{value:.3g}x" for value in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"

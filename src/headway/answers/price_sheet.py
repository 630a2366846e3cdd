"""`headway price --sheet NAME`: a sheet inverted; `--history WHOSE`: dated sheets; `--score PRICES.csv`: sizes told from prices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headway.answers import arguments
from headway.core import units
from headway.core.catalog import fold
from headway.core.columns import Column
from headway.core.errors import BadValue, UnknownName
from headway.core.listing import Listing, clean, format_value, heading, remade
from headway.core.notes import note
from headway.core.schema import fields
from headway.core.trace import record
from headway.economics.inversion.answer import invert
from headway.economics.inversion.answer import tree as answer_tree
from headway.economics.inversion.calibration import OURS, fitted_lines, fitted_priors, left_out, read_examples, scores
from headway.economics.inversion.ladders import fitted_ladders, ladder_score, ladders
from headway.economics.inversion.list_prices import BOTH, fitted_lists, list_score, lists_left_out
from headway.economics.inversion.priors import LEVEL, Priors, assumed_intervals, machines, priors, read_assumed
from headway.economics.questions import Price
from headway.economics.sheets import catalogue
from headway.economics.sheets.catalogue import SUFFIXES, read_sheets
from headway.economics.sheets.history import history
from headway.economics.sheets.tables import table_notes
from headway.evidence.pages import write_prices as write
from headway.models.config import catalogue_index
from headway.report import output, price
from headway.report.pictures import dots
from headway.report.pictures.frame import compose
from headway.report.words import number_of, sentence

if TYPE_CHECKING:
    from headway.core.catalog import Catalog
    from headway.core.listing import Rows
    from headway.economics.sheets.sheet import PriceSheet
    from headway.report.pictures.frame import Picture, View

SHEET_COLUMNS = {
    "provider": Column("", "who sells"),
    "model": Column("", "what is sold"),
    "as_of": Column("", "date of the sheet"),
    "kind": Column("", "quantity; upper bound, lower bound or equality of a closed form; regression; contradiction"),
    "quantity": Column("", "what is asked of the sheet"),
    "unit": Column("", "unit of value, lo, hi, prior_lo and prior_hi"),
    "value": Column("", "middle of the weighted draws; of a closed form its value"),
    "lo": Column("", "lower end of the interval of `level`; of a closed form, at the other end of what it is taken at"),
    "hi": Column("", "upper end of it"),
    "level": Column("", "share of the weighted draws within the interval"),
    "prior_lo": Column("", "lower end of the interval before the sheet is seen"),
    "prior_hi": Column("", "upper end of it"),
    "driven_by": Column("", "the feature whose loss widens the interval most"),
    "widens": Column("", "times that the interval is wider without it"),
    "verdict": Column("", "identified (2.5 times narrower than before the sheet), bounded (2), not identified, or assumed"),
    "why": Column("", "what would identify it; how a closed form is meant; what contradicts"),
}
SHEET_VIEW = ("quantity", "value", "lo", "hi", "driven_by", "verdict")
MOST = 50
PANEL_TITLES = {"active": "active parameters", "total": "parameters in all", "kv": "KV bytes read per token of context"}
SIZE_WORDS = {"active": "active", "total": "in all"}
MEDIAN = "markups are those of medians over hosts; for one host's prices of a model that many host, --assume hosts=1 widens the intervals"


@dataclass(frozen=True, slots=True)
class _SheetRows(Listing):
    """Rows of the answer; --explain also accepts the name of a quantity."""

    def explain(self, key: str, row: int = 0) -> Any:
        row_numbers = [number for number, line in enumerate(self.plain) if line["quantity"] == key]
        if not row_numbers and key not in self.keys():
            raise UnknownName("column", key, [*self.keys(), *(line["quantity"] for line in self.plain if line["quantity"])])
        return Listing.explain(self, "value", row_numbers[0]) if row_numbers else Listing.explain(self, key, row)


def of_sheet(args: Price) -> output.Answer:
    """Answer with a row per quantity, closed form and contradiction of each sheet."""
    assumptions = read_assumed(args.assume)
    source = catalogue.read(args.sheet, arguments.catalog(args))
    if not source.sheets:
        raise BadValue("--sheet", args.sheet, "a file with at least one sheet")
    answers = invert(source.sheets, assumptions, catalog=arguments.catalog(args))

    def tree(row: Mapping[str, Any], key: str) -> Any:
        if key != "value" or not row["quantity"]:
            raise BadValue("--explain", key, "a quantity, such as active, total, kv or kv_slope, or value")
        answer = next(item for item in answers if all(getattr(item.sheet, name) == row[name] for name in ("provider", "model", "as_of")))
        with record():
            return answer_tree(answer, priors(), row["quantity"])

    rows = _SheetRows([line for answer in answers for line in _lines(answer)], tree=tree)
    flags = (flag for answer in answers[:MOST] for flag in answer.sheet.flags)
    notes = [*source.notes, *table_notes(source.sheets), *flags, *_notes(assumptions)]
    return output.Answer(
        rows,
        describe=lambda table: _describe_sheet(list(table), _answered(args.sheet, source.sheets)),
        notes=notes,
        columns=SHEET_COLUMNS,
        most=400,
        pictures={"quantities": _drawing},
    )


def _answered(name: str, sheets: Sequence[PriceSheet]) -> list[str]:
    """Which model is answered for, where the name of a family was typed."""
    model = fold(name.rpartition(":")[2].partition("@")[0].rpartition("/")[2])
    if len(sheets) != 1 or name.lower().endswith(SUFFIXES) or model == fold(sheets[0].model.rpartition("/")[2]):
        return []
    return [f"{model} is no model of its own: this is {sheets[0].model}, the newest of that name"]


def _lines(answer: Any) -> Any:
    for result in answer.rows:
        row: dict[str, Any] = {"provider": answer.sheet.provider, "model": answer.sheet.model, "as_of": answer.sheet.as_of}
        row |= {name: getattr(result, name) for name in ("kind", "quantity", "unit", "value", "lo", "hi")}
        row["level"] = LEVEL if result.kind == "quantity" and result.lo is not None else None
        yield row | {name: getattr(result, name) for name in ("prior_lo", "prior_hi", "driven_by", "widens", "verdict", "why")}


# -- words ----------------------------------------------------------------------------------------------------------------------


def _describe_sheet(rows: Sequence[Mapping[str, Any]], answered: Sequence[str]) -> output.Summary:
    """Summary: a sentence per sheet, the table, contradictions, and data that would narrow the intervals."""
    names = list(dict.fromkeys((row["provider"], row["model"], row["as_of"]) for row in rows))
    if len(names) > 1:
        people = Listing([_brief(rows, name) for name in names[:MOST]])
        return output.Summary(f"{number_of(len(names), 'price sheet')} read backwards.", people=people)
    quantities = [row for row in rows if row["kind"] == "quantity"]
    people = Listing([{name: _sheet_cell(row, name) for name in SHEET_VIEW} for row in quantities or rows if row["quantity"]])
    remarks = [*answered, *_published(rows, names[0]), *_beside(rows), *_remarks(rows)]
    return output.Summary(
        _sentence(rows, names[0]), SHEET_VIEW, people=people, remarks=remarks, first=("quantity", "value", "lo", "hi", "verdict")
    )


def _sentence(rows: Sequence[Mapping[str, Any]], name: tuple[str, str, str]) -> str:
    """Sentence on the implied quantities of a sheet, and on those that it leaves open."""
    ranges = {row["quantity"]: row for row in rows if row["kind"] == "quantity"}
    parts = [f"{_interval(ranges[key]).replace('..', ' to ')} {word}" for key, word in SIZE_WORDS.items() if key in ranges]
    unknown = [heading(key) for key, row in ranges.items() if row["verdict"] == "not identified"]
    about = f"{name[1]} ({name[0]}, {name[2]})"
    if not parts:
        return sentence(f"{about}: {number_of(len(rows), 'row')} of the sheet read backwards")
    return sentence(f"{about} fits {' and '.join(parts)}", f"; not identified: {', '.join(unknown)}" if unknown else "")


def _published(rows: Sequence[Mapping[str, Any]], name: tuple[str, str, str]) -> list[str]:
    """The sizes that the catalogue has for the sheet's model, and where they lie beside the intervals; none of a closed model."""
    entry = next((entry for entry in catalogue_index() if entry["name"] == name[1].lower()), None)
    ranges = {row["quantity"]: row for row in rows if row["kind"] == "quantity" and row["lo"] is not None}
    if entry is None:
        return []
    sizes = {key: float(entry[f"{key}_params"]) for key in SIZE_WORDS if f"{key}_params" in entry}
    places = {key: "above it" if size > ranges[key]["hi"] else "below it" if size < ranges[key]["lo"] else "inside"
              for key, size in sizes.items() if key in ranges}  # fmt: skip
    parts = [f"{units.show(sizes[key], '')} {SIZE_WORDS[key]}, {where}" for key, where in places.items()]
    return [f"published: {'; '.join(parts)}"] if parts else []


def _beside(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Both sizes by a plain regression, and which of the two is the better point."""
    lines = [row for row in rows if row["kind"] == "regression"]
    parts = [f"{_value_text(row, 'value')} {word} ({_interval(row)})" for row, word in zip(lines, SIZE_WORDS.values(), strict=False)]
    better = "left out in turn, open models' active parameters are nearer to it, all parameters nearer to the table's"
    return [f"a straight line on both prices alone says {', '.join(parts)}: {better}"] if parts else []


def _brief(rows: Sequence[Mapping[str, Any]], name: tuple[str, str, str]) -> dict[str, str]:
    ranges = {row["quantity"]: row for row in rows if (row["provider"], row["model"], row["as_of"]) == name and row["kind"] == "quantity"}
    cells = {"provider": name[0], "model": name[1], "as_of": name[2]}
    for key in ("active", "total", "kv"):
        row = ranges.get(key)
        cells[key] = "-" if row is None else row["verdict"] if row["verdict"] == "not identified" else _interval(row)
    return cells


def _interval(row: Mapping[str, Any]) -> str:
    return (
        "-"
        if row["lo"] is None
        else f"{_value_text(row, 'lo')}..{_value_text(row, 'hi')}"
        if row["lo"] != row["hi"]
        else _value_text(row, "value")
    )


def _sheet_cell(row: Mapping[str, Any], name: str) -> str:
    if name == "driven_by" and row["widens"]:
        return f"{row['driven_by']} (x{row['widens']:.3g} without)"
    return _value_text(row, name) if name in ("value", "lo", "hi") else row[name]


def _value_text(row: Mapping[str, Any], name: str) -> str:
    value = row[name]
    return "-" if value is None else units.show(value, row["unit"])


def _ends(row: Mapping[str, Any]) -> str:
    return _value_text(row, "value") if row["lo"] == row["hi"] else f"{_value_text(row, 'value')}, {_interval(row)}"


def _remarks(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Notes on the interval's level, contradictions, data that would narrow the intervals, and closed forms."""
    notes = [f"intervals hold {LEVEL:.0%}"]
    notes += [f"contradiction: {row['why']}" for row in rows if row["kind"] == "contradiction"]
    open_ones = [row for row in rows if row["kind"] == "quantity" and row["why"]]
    notes += [f"{row['quantity']} is {row['verdict']}; what would narrow it: {row['why']}" for row in open_ones]
    forms = [row for row in rows if row["kind"].endswith(("bound", "equality"))]
    return notes + [f"{row['quantity']} ({row['kind']}): {_ends(row)}: {row['why']}" for row in forms]


def _notes(assumptions: Any) -> list[str]:
    """Notes on the assumptions, with sources and dates."""
    basis, user_values = priors(), assumed_intervals(assumptions)
    chips = machines(assumptions)
    notes = (
        [f"assumed by you: {', '.join([*user_values, *(['chip'] if assumptions.chip else [])])}"] if user_values or assumptions.chip else []
    )
    prices = ", ".join(
        f"{machine.chip.name} {units.show(float(machine.price.low), 'USD/s')} to {units.show(float(machine.price.high), 'USD/s')}"
        for machine in chips
    )
    notes.append(f"chips: {prices}, each equally likely")
    by: dict[tuple[str, str], list[str]] = {}
    for name, (q, _) in fields(Priors).items():
        value = getattr(basis, name)
        by.setdefault((value.source, value.date), []).append(f"{name} {units.show(float(value), q.unit)}")
    return [*notes, MEDIAN, *(f"{', '.join(values)}: {source}, {date}" for (source, date), values in by.items())]


def _drawing(rows: Rows, view: View) -> Picture:
    """Picture of the intervals of identified quantities: a panel per quantity, a line per sheet."""
    quantity_rows = [row for row in rows if row["kind"] == "quantity" and row["quantity"] in PANEL_TITLES and row["lo"] is not None]
    points = [
        {**row, "value_lo": row["lo"], "value_hi": row["hi"], "sheet": f"{row['model']} ({row['provider']}, {row['as_of']})"}
        for row in quantity_rows if row["verdict"] != "not identified"
    ]  # fmt: skip
    if not points:
        raise BadValue("--plot", "these rows", "rows with active or total parameters, or KV that a ladder shows")
    is_one = len({row["sheet"] for row in points}) == 1
    by_unit: dict[str, list[Mapping[str, Any]]] = {}
    for name in PANEL_TITLES:
        for row in points:
            if row["quantity"] == name:
                by_unit.setdefault(row["unit"], []).append(row)
    panels = []
    for number, (unit, mine) in enumerate(by_unit.items()):
        labels = [PANEL_TITLES[row["quantity"]] if is_one else f"{row['sheet']}, {SIZE_WORDS.get(row['quantity'], 'KV')}" for row in mine]
        texts = [f"{_span(row)}, middle {format_value(row['value'], unit)}" for row in mine]
        panels.append([dots.Dots(name=f"quantity{number}", rows=mine, key="value", labels=labels, texts=texts, unit=unit,
                                 tones=["weights" if row["quantity"] == "total" else "compute" for row in mine])])  # fmt: skip
    first = [row for row in points if row["sheet"] == points[0]["sheet"]]
    fitted = " and ".join(f"{_span(row)} {PANEL_TITLES[row['quantity']]}" for row in first)
    drivers = list(dict.fromkeys(row["driven_by"] for row in first if row["driven_by"]))
    caption = f"The line holds {LEVEL:.0%} of what the prices allow, the shade {LEVEL:.0%} of what was likely before them; most comes " \
              f"from the {' and the '.join(drivers)}."  # fmt: skip
    title = f"{first[0]['model']}'s list prices fit {fitted}" + ("" if is_one else f"; {len({row['sheet'] for row in points})} sheets")
    subtitle = f"parameters that explain the list prices of {first[0]['sheet'] if is_one else 'each sheet'} (log)"
    return compose(view, panels, title=title, subtitle=subtitle, caption=caption)


def _span(row: Mapping[str, Any]) -> str:
    return " to ".join(format_value(row[end], row["unit"]) for end in ("lo", "hi"))


ALL_SHEETS = "all"
MOST_SILENT = 4  # most sheets without a rate that a note names


def of_history(args: Price) -> output.Answer:
    """Answer with a row per sheet, by date."""
    sheets = _sheets_of(args.history, arguments.catalog(args))
    note(*table_notes(sheets))
    rows = remade(clean(list(history(sheets))), lambda place: list(history(sheets))[place])
    columns = {"source": Column("", "where the prices are from")}
    whose = "every provider" if args.history == ALL_SHEETS else args.history
    pictures = {"history": lambda table, view: price.history(list(table), view, whose)}
    return output.Answer(rows, describe=_words, pictures=pictures, most=200, columns=columns)


def _sheets_of(whose: str, catalog: Catalog) -> tuple[Any, ...]:
    """Price sheets of a provider, a family, a model or PROVIDER/MODEL, from every source."""
    from pathlib import Path

    before, _, name = whose.strip().rpartition(":")
    if Path(whose).suffix.lower() in SUFFIXES:
        return read_sheets(whose).sheets
    if fold(before) == catalogue.GENAI:
        among = catalogue.genai.read_genai().sheets
    else:
        among = read_sheets(before).sheets if before else catalogue.sheets(catalog)
    query = fold(name)
    if query == ALL_SHEETS:
        return tuple(among)
    sheets = catalogue.whose(query, among)
    if not sheets:
        providers = sorted({fold(sheet.provider) for sheet in among})
        raise UnknownName(
            "provider or model with price sheets", name, [*providers, *catalogue.names(among)], f"providers are {', '.join(providers[:24])}"
        )
    return sheets


def _words(rows: Rows) -> output.Summary:
    """Summary: number and dates of the sheets, and the largest price changes."""
    row_list = list(rows)
    row_list.sort(key=lambda row: row["as_of"].replace("undated", ""))
    dates = [row["as_of"] for row in row_list if row["as_of"] != "undated"]
    span = f"{dates[0]} to {dates[-1]}" if len(set(dates)) > 1 else (dates or ["undated"])[0]
    people = [_short(row) for row in rows]
    if len({row["provider"] for row in row_list}) == 1:
        for row in people:
            del row["provider"]
    models = len({(row["provider"], row["model"]) for row in row_list})
    count = f"{len(row_list)} price sheet{'s' * (len(row_list) > 1)} of {models} model{'s' * (models > 1)}"
    legend = "step: above so many prompt tokens the whole request costs so many times as much, input and output; USD per million tokens"
    headline = sentence(f"{count}, {span}", *_ranges(row_list))
    silent = dict.fromkeys(f"{row['provider']}/{row['model']}" for row in row_list if row["cached_usd_per_mtok"] is None)
    more = f" and {len(silent) - MOST_SILENT} more" if len(silent) > MOST_SILENT else ""
    remarks = [f"no rate for cached tokens is stated by {', '.join(list(silent)[:MOST_SILENT])}{more}"] * bool(silent)
    return output.Summary(headline, tuple(people[0]), people=Listing(people), remarks=[*remarks, legend])


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


def _ranges(rows: list[Any]) -> list[str]:
    """Clauses on the range of each price multiple."""
    parts = []
    for key, name in (("output_multiple", "output"), ("cached_multiple", "a cached token")):
        values = [row[key] for row in rows if row[key] is not None]
        if values:
            coverage = "" if len(values) == len(rows) else f", stated by {len(values)} of {len(rows)}"
            parts.append(f"{name} {_multiples(values)} of input{coverage}")
    fast = [row["fast_multiple"] for row in rows if row["fast_multiple"] is not None]
    if fast:
        parts.append(f"fast modes {_multiples(fast)} of standard")
    return [f"; {part}" for part in parts]


def _multiples(values: list[float]) -> str:
    low, high = (f"{value:.3g}x" for value in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


SCORE_COLUMNS = {
    "kind": Column("", "method: errors over all models; model: what the cost laws say of one; ladder: KV of a model sold by context tiers"),
    "method": Column(
        "", "cost laws: this project's; markup as stated: without any learned from prices; constant; regression on both prices"
    ),
    "quantity": Column("", "active or total parameters, kv in bytes per token, or both list prices from sizes"),
    "model": Column("", "the model"),
    "family": Column("", "the family that was left out"),
    "models": Column("", "models scored"),
    "rms_ln_error": Column("", "root mean square of ln(value / truth)"),
    "over_constant": Column("", "that over the constant point's"),
    "width": Column("", "median of the intervals' upper over lower end"),
    "coverage": Column("", "share of the intervals that hold the truth"),
    "truth": Column("", "as published; of kv, with one byte per element"),
    "value": Column("", "middle of the interval"),
    "lo": Column("", "lower end of the interval"),
    "hi": Column("", "upper end of the interval"),
    "holds": Column("bool", "whether the interval holds the truth"),
}
SCORE_VIEW = ("method", "quantity", "models", "rms_ln_error", "over_constant", "width", "coverage")
SIZE_NAMES = {"active": "active parameters", "total": "all parameters", "kv": "KV of ladders", BOTH: "list prices from sizes"}


def of_score(args: Price) -> output.Answer:
    """Answer with rows of methods, of models and of context tiers."""
    if not args.truth:
        raise BadValue("--score", "no --truth", "a CSV of sizes: --truth ARCH.csv")
    bad_notes: list[str] = []
    examples = read_examples(args.score, args.truth, bad_notes)
    estimates, kv, lists = left_out(examples), ladders(), lists_left_out(examples)
    scored = [*scores(estimates), ladder_score(kv), list_score(lists)]
    if args.report:
        write(args.report, estimates, scored, kv, lists)
    rows = [*map(_method, scored), *(_model(estimate) for estimate in estimates if estimate.method == OURS), *map(_ladder, kv)]
    learned = fitted_priors(examples) | fitted_lines(examples) | fitted_ladders() | fitted_lists(examples)
    numbers = ", ".join(f"{name} {value:.4g}" for name, value in learned.items())
    families = len({example.family for example in examples})
    notes = [
        f"{len(examples)} models of {families} families, medians over hosts; each told from other families alone; intervals of {LEVEL:.0%}",
        f"learned from all of them: {numbers}",
        *bad_notes,
    ]
    return output.Answer(
        Listing(rows), describe=lambda table: _describe_score(list(table)), describes_none=True, columns=SCORE_COLUMNS, notes=notes,
        most=200,
    )  # fmt: skip


def _method(score: Any) -> dict[str, Any]:
    return {"kind": "method", "method": score.method, "quantity": score.size, "models": score.models, "rms_ln_error": score.rms,
            "over_constant": score.over_constant, "width": score.width, "coverage": score.coverage}  # fmt: skip


def _model(row: Any) -> dict[str, Any]:
    return {"kind": "model", "method": row.method, "quantity": row.size, "model": row.example.model, "family": row.example.family,
            "truth": row.truth, "value": row.value, "lo": row.lo, "hi": row.hi, "holds": row.holds}  # fmt: skip


def _ladder(row: Any) -> dict[str, Any]:
    ladder = row.ladder
    return {"kind": "ladder", "method": OURS, "quantity": "kv", "model": f"{ladder.sold_as} ({ladder.model})", "family": ladder.family,
            "truth": ladder.kv, "value": row.value, "lo": row.lo, "hi": row.hi, "holds": row.holds}  # fmt: skip


# -- words ----------------------------------------------------------------------------------------------------------------------


def _describe_score(rows: Sequence[Mapping[str, Any]]) -> output.Summary:
    """Summary: the score in one sentence, the methods compared, then all models."""
    methods = [row for row in rows if row["kind"] == "method"]
    ours = [row for row in methods if row["method"] == "cost laws"]
    parts = [f"{SIZE_NAMES[row['quantity']]} within a factor of {row['width']:.2g} ({row['coverage']:.0%} held)" for row in ours]
    headline = "No method is left."
    if ours:
        headline = sentence(f"{ours[0]['models']} models by their prices alone: {parts[0]}", *(f", {part}" for part in parts[1:]))
    remarks = [f"{SIZE_NAMES[row['quantity']]}: error {row['over_constant']:.2f} of that of a constant" for row in ours]
    remarks.append("families are left out in turn; the factor is the median of high over low end; -o csv has each model")
    people = [{name: _score_cell(row, name) for name in SCORE_VIEW} for row in methods]
    return output.Summary(headline, SCORE_VIEW, people=Listing(people) if people else None, remarks=remarks)


def _score_cell(row: Mapping[str, Any], name: str) -> Any:
    value = row[name]
    return f"{value:.0%}" if name == "coverage" else f"{value:.2f}" if isinstance(value, float) else value

"""`headway price --sheet NAME`: a price sheet inverted into what it implies about model and machine, and what stays unknown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headway.answers import arguments
from headway.core import units
from headway.core.columns import Column
from headway.core.errors import BadValue, UnknownName
from headway.core.listing import Listing, format_value
from headway.core.schema import fields
from headway.core.trace import record
from headway.economics.inversion.answer import invert
from headway.economics.inversion.answer import tree as answer_tree
from headway.economics.inversion.priors import LEVEL, Priors, assumed_intervals, machines, priors, read_assumed
from headway.economics.sheets import catalogue
from headway.models.config import catalogue_index
from headway.report import output
from headway.report.pictures import dots
from headway.report.pictures.frame import compose
from headway.report.words import number_of, sentence

COLUMNS = {
    "provider": Column("", "who sells"),
    "model": Column("", "what is sold"),
    "as_of": Column("", "date of the sheet"),
    "kind": Column("", "quantity; upper bound, lower bound or equality of a closed form; contradiction"),
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
VIEW = ("quantity", "value", "lo", "hi", "driven_by", "verdict")
MOST = 50
PANEL_TITLES = {"active": "active parameters", "total": "all parameters", "kv": "KV bytes read per token of context"}
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


def run(args: Any) -> output.Answer:
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
    notes = [*source.notes, *(flag for answer in answers[:MOST] for flag in answer.sheet.flags), *_notes(assumptions)]
    return output.Answer(
        rows,
        describe=lambda table: _describe(list(table), answers),
        notes=notes,
        columns=COLUMNS,
        most=400,
        pictures={"quantities": _drawing},
    )


def _lines(answer: Any) -> Any:
    for result in answer.rows:
        row: dict[str, Any] = {"provider": answer.sheet.provider, "model": answer.sheet.model, "as_of": answer.sheet.as_of}
        row |= {name: getattr(result, name) for name in ("kind", "quantity", "unit", "value", "lo", "hi")}
        row["level"] = LEVEL if result.kind == "quantity" and result.lo is not None else None
        yield row | {name: getattr(result, name) for name in ("prior_lo", "prior_hi", "driven_by", "widens", "verdict", "why")}


# -- words ----------------------------------------------------------------------------------------------------------------------


def _describe(rows: Sequence[Mapping[str, Any]], answers: Sequence[Any]) -> output.Summary:
    """Summary: a sentence per sheet, the table, contradictions, and data that would narrow the intervals."""
    names = list(dict.fromkeys((row["provider"], row["model"], row["as_of"]) for row in rows))
    if len(names) > 1:
        people = Listing([_brief(rows, name) for name in names[:MOST]])
        return output.Summary(f"{number_of(len(names), 'price sheet')} read backwards.", people=people)
    quantities = [row for row in rows if row["kind"] == "quantity"]
    people = Listing([{name: _cell(row, name) for name in VIEW} for row in quantities or rows if row["quantity"]])
    remarks = [*_published(rows, names[0]), *_remarks(rows)]
    return output.Summary(
        _sentence(rows, names[0]), VIEW, people=people, remarks=remarks, first=("quantity", "value", "lo", "hi", "verdict")
    )


def _sentence(rows: Sequence[Mapping[str, Any]], name: tuple[str, str, str]) -> str:
    """Sentence on the implied quantities of a sheet, and on those that it leaves open."""
    ranges = {row["quantity"]: row for row in rows if row["kind"] == "quantity"}
    parts = [f"{_span(ranges[key])} {word}" for key, word in SIZE_WORDS.items() if key in ranges]
    unknown = [key.replace("_", " ") for key, row in ranges.items() if row["verdict"] == "not identified"]
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


def _brief(rows: Sequence[Mapping[str, Any]], name: tuple[str, str, str]) -> dict[str, str]:
    ranges = {row["quantity"]: row for row in rows if (row["provider"], row["model"], row["as_of"]) == name and row["kind"] == "quantity"}
    cells = {"provider": name[0], "model": name[1], "as_of": name[2]}
    for key in ("active", "total", "kv"):
        row = ranges.get(key)
        cells[key] = "-" if row is None else row["verdict"] if row["verdict"] == "not identified" else _span(row)
    return cells


def _span(row: Mapping[str, Any]) -> str:
    return (
        "-"
        if row["lo"] is None
        else f"{_value_text(row, 'lo')}..{_value_text(row, 'hi')}"
        if row["lo"] != row["hi"]
        else _value_text(row, "value")
    )


def _cell(row: Mapping[str, Any], name: str) -> str:
    if name == "driven_by" and row["widens"]:
        return f"{row['driven_by']} (x{row['widens']:.3g} without)"
    return _value_text(row, name) if name in ("value", "lo", "hi") else row[name]


def _value_text(row: Mapping[str, Any], name: str) -> str:
    value = row[name]
    return "-" if value is None else units.show(value, row["unit"])


def _ends(row: Mapping[str, Any]) -> str:
    return _value_text(row, "value") if row["lo"] == row["hi"] else f"{_value_text(row, 'value')}, {_span(row)}"


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


def _drawing(rows: Any, view: Any) -> Any:
    """Picture of the intervals of identified quantities: a panel per quantity, a line per sheet."""
    quantity_rows = [row for row in rows if row["kind"] == "quantity" and row["quantity"] in PANEL_TITLES and row["lo"] is not None]
    points = [
        {**row, "value_lo": row["lo"], "value_hi": row["hi"], "sheet": f"{row['model']} ({row['provider']}, {row['as_of']})"}
        for row in quantity_rows if row["verdict"] != "not identified"
    ]  # fmt: skip
    if not points:
        raise BadValue("--plot", "these rows", "rows with active or total parameters, or KV that a ladder shows")
    panels = []
    for number, (name, about) in enumerate(PANEL_TITLES.items()):
        own_rows = [row for row in points if row["quantity"] == name]
        if own_rows:
            labels, texts = [row["sheet"] for row in own_rows], [format_value(row["value"], row["unit"]) for row in own_rows]
            panels.append([dots.panel(view, f"quantity{number}", own_rows, "value", labels, texts, unit=own_rows[0]["unit"], title="",
                                      heading=about[:1].upper() + about[1:])])  # fmt: skip
    caption = "Each rule is the interval that holds with 80 %: where it is long, the price sheet hardly says."
    return compose(
        view, panels, title="What price sheets imply", subtitle="middle and 80 % interval of what is identified", caption=caption
    )

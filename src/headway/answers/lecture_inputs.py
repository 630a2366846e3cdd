"""`headway lecture RB-10 --with total=1T active=32B`: figures of a claim with other inputs, a row for each figure and combination."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headway.core.columns import Column
from headway.core.errors import BadValue, UnknownName
from headway.core.listing import Listing, computed, format_value, place_of
from headway.evidence.claims.claim import Claim, claims
from headway.evidence.lecture.chapters import statement
from headway.evidence.lecture.inputs import InputCase, cases, figures, idle_inputs, lecture_figures
from headway.report import output
from headway.report.pictures.claim_curve import claim_curve

if TYPE_CHECKING:
    from headway.report.pictures.frame import Picture, View

COLUMNS = {
    "figure": Column("", "figure of the claim"),
    "value": Column("", "the figure with the user's inputs, in the row's unit"),
    "lecture_inputs": Column("", "the same figure with the claim's own inputs"),
    "over_lecture": Column("", "value over the figure with the claim's own inputs"),
}


def run(text: str, changes: Sequence[str]) -> output.Answer:
    """Answer with the claim's figures for every combination of changed inputs."""
    claim = claims().get(text.upper())
    if claim is None:
        raise UnknownName("claim", text, {key.lower(): key for key in claims()}, "--with changes the inputs of one claim, such as RB-10")
    combinations = cases(claim, changes)
    idle = idle_inputs(claim, combinations)
    before = lecture_figures(claim)
    rows, values = [], []
    for case in combinations:
        for name, value in figures(claim, case).items():
            rows.append(_row(claim, case, name, value, before[name]))
            values.append(value)

    def tree(row: Any, key: str) -> Any:
        if key != "value":
            raise BadValue("--explain", key, "the column value")
        return computed(values[place_of(row, rows)], key)

    axes = list(dict.fromkeys(name for case in combinations for name in case.labels))
    view = (*axes, "figure", "with_yours", "with_the_lecture's", "over_lecture")
    changed = {row["figure"] for row in rows if row["value"] != row["lecture_inputs"]}
    visible_rows = [row for row in rows if row["figure"] in changed] or rows
    people = [_cells(claim, row, axes) for row in visible_rows]
    notes = ["names of figures are those of the lecture's inputs"] if changed else []
    notes += [f"no effect: {name}={combinations[0].labels[name]} leaves every figure as it is" for name in idle]
    columns = COLUMNS | {name: Column(claim.inputs[name].unit if name in claim.inputs else "", "input that the user gave") for name in axes}
    summary = output.Summary(_headline(claim, visible_rows[0]), view, _after(claim), Listing(people))
    pictures = {"inputs": lambda table, view: _picture(claim, table, view)}
    return output.Answer(Listing(rows, tree=tree), summary, notes=notes, columns=columns, most=200, pictures=pictures)


def _picture(claim: Claim, rows: Any, view: View) -> Picture:
    return claim_curve(claim, list(rows), view)


def _row(claim: Claim, case: InputCase, name: str, value: Any, before: float) -> dict[str, Any]:
    ratio = float(value) / before if before else None
    unit = claim.units.get(name, claim.unit)
    return {
        **case.labels,
        "id": claim.id,
        "figure": name,
        "value": float(value),
        "lecture_inputs": before,
        "over_lecture": ratio,
        "unit": unit,
    }


def _cells(claim: Claim, row: dict[str, Any], axes: Sequence[str]) -> dict[str, Any]:
    labels = {name: format_value(row[name], claim.inputs[name].unit if name in claim.inputs else "") for name in axes}
    value, before = (format_value(row[key], row["unit"]) for key in ("value", "lecture_inputs"))
    return {**labels, "figure": row["figure"], "with_yours": value, "with_the_lecture's": before, "over_lecture": row["over_lecture"]}


def _headline(claim: Claim, row: dict[str, Any]) -> str:
    value, before = (format_value(row[key], row["unit"]) for key in ("value", "lecture_inputs"))
    return f"{claim.id}, {statement(claim.id)}: {row['figure']} is {value} with your inputs, {before} with the lecture's."


def _after(claim: Claim) -> list[str]:
    inputs = ", ".join(f"{name}={format_value(value, value.unit)}" for name, value in claim.inputs.items())
    return [f"inputs of the claim: {inputs}", f"Next: headway lecture {claim.id} (where each input is from)"]

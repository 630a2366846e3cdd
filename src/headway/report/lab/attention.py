"""Words of `lab attention`: what sparse patterns save, and what they forget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headway.core.listing import format_value
from headway.report.pictures import plot, scale
from headway.report.pictures.palette import MEANINGS
from headway.report.words import Row

if TYPE_CHECKING:
    from headway.reality.lab.experiment import LabRun


def headline(run: LabRun, rows: Sequence[Row]) -> str:
    """What each pattern recalls at the longest context."""
    recalled = [(row["quantity"].partition(", ")[2], row["measured"]) for row in _longest(rows) if row["quantity"].startswith("recall")]
    shares = ", ".join(f"{text} {share:.0%}" for text, share in recalled)
    return f"Of facts planted in {max(row['at'] for row in rows):,.0f} tokens attention recalls: {shares}"


def below(run: LabRun, rows: Sequence[Row]) -> list[str]:
    """Each sparse pattern at the longest context: bytes read, time saved, facts forgotten."""
    figures = {tuple(row["quantity"].split(", ")): row["measured"] for row in _longest(rows)}
    lines = []
    for text in dict.fromkeys(text for _, text in figures if text != "dense"):
        step, size, share = (figures.get((kind, text)) for kind in ("step", "bytes read", "recall"))
        if step and size and share is not None:
            saved = f", {dense / step:.2g} times faster than dense" if (dense := figures.get(("step", "dense"))) else ""
            lines.append(f"{text} reads {format_value(size, 'byte')} in {format_value(step, 's')}{saved}, and forgets {1 - share:.0%}.")
    return [*lines, "A guess is right once in 128; facts are unrelated, which is the worst case for an index and for the mean of a block."]


def _longest(rows: Sequence[Row]) -> list[Row]:
    most = max(row["at"] for row in rows)
    return [row for row in rows if row["at"] == most]


def panels(run: LabRun, rows: Sequence[Row]) -> list[list[plot.Plot]]:
    """Recall and time by context, a line for each pattern."""
    return [[_panel(rows, "recall", "recall: share of facts answered")], [_panel(rows, "step", "step: time of its attention")]]


def _panel(rows: Sequence[Row], kind: str, heading: str) -> plot.Plot:
    keys = {"x": "at", "predicted": "predicted", "low": "predicted_lo", "high": "predicted_hi", "measured": "measured"}
    curves: dict[str, list[Row]] = {}
    for row in rows:
        quantity, _, text = row["quantity"].partition(", ")
        if quantity == kind:
            curves.setdefault(text, []).append({name: row[key] for name, key in keys.items()})
    points = [point for curve in curves.values() for point in curve]
    parts = []
    for place, (text, curve) in enumerate(curves.items()):
        meaning, dots = MEANINGS[place % len(MEANINGS)], [point for point in curve if point["measured"] is not None]
        parts.append(plot.Series(rows=curve, y="predicted", meaning=meaning, text=text, band=("low", "high")))
        parts.append(plot.Series(rows=dots, y="measured", meaning=meaning, width=0, dots=60))
    x = scale.AxisScale("tokens of context", [point["x"] for point in points], "token", room=0.05, log=True)
    values = [point[name] for point in points for name in ("low", "high", "measured")]
    y = scale.AxisScale("", values, "s", log=True) if kind == "step" else scale.AxisScale("", values, ends=(0, 1), log=False)
    return plot.Plot(name=kind, heading=heading, x=x, y=y, parts=parts)

"""A panel of a quantity of several variants: a line for each over the interval that was predicted, dots where it was measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headway.report.pictures import plot, scale
from headway.report.pictures.palette import MEANINGS
from headway.report.words import Row

KEYS = {"x": "at", "predicted": "predicted", "low": "predicted_lo", "high": "predicted_hi", "measured": "measured"}


def lines(rows: Sequence[Row], kind: str, heading: str, x: scale.AxisScale, **of_y: Any) -> plot.Plot:
    """Rows whose quantity is "kind, variant"; `of_y` says how the upright axis goes."""
    curves: dict[str, list[Row]] = {}
    for row in rows:
        quantity, _, text = row["quantity"].partition(", ")
        if quantity == kind:
            curves.setdefault(text, []).append({name: row[key] for name, key in KEYS.items()})
    parts = []
    for place, (text, curve) in enumerate(curves.items()):
        meaning, dots = MEANINGS[place % len(MEANINGS)], [point for point in curve if point["measured"] is not None]
        parts.append(plot.Series(rows=curve, y="predicted", meaning=meaning, text=text, band=("low", "high")))
        parts.append(plot.Series(rows=dots, y="measured", meaning=meaning, width=0, dots=60))
    values = [point[name] for curve in curves.values() for point in curve for name in ("low", "high", "measured")]
    unit = next((row["unit"] for row in rows if row["quantity"].startswith(kind)), "")
    return plot.Plot(name=kind.replace(" ", ""), heading=heading, x=x, y=scale.AxisScale("", values, unit, **of_y), parts=parts)

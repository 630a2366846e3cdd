"""Predicted against measured values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from headway.core.errors import BadValue
from headway.report.pictures.frame import Picture, View, compose
from headway.report.pictures.palette import MEANINGS
from headway.report.pictures.plot import Plot
from headway.report.pictures.scale import axis

SHAPES = ("circle", "square", "diamond", "triangle-up", "cross")
MOST_POINTS = 3000


def picture(residuals: Sequence[Any], measure: str, view: View, by: str = "source") -> Picture:
    """Picture of one measure: logarithmic axes, lines at equality and at a factor of 2, a shape for each of the largest groups."""
    matches = [row for row in residuals if row.measure == measure] or list(residuals)
    matches = [row for row in matches if row.measured and row.predicted and min(row.measured, row.predicted) > 0]
    if not matches:
        raise BadValue("--plot", "these rows", "at least one measurement with a prediction")
    rows = [row for row in matches if row.measure == matches[0].measure][:MOST_POINTS]
    unit = "s" if rows[0].is_time else "token/s"
    values = [value for row in rows for value in (row.measured, row.predicted)]
    ends = (min(values) / 1.25, max(values) * 1.25)
    x = axis(f"Measured {rows[0].measure} (log)", values, unit, log=True, ends=ends, most=6, fixed_ends=view.ends("x"))
    y = axis("", values, unit, log=True, ends=ends, most=6, fixed_ends=view.ends("y"))
    plot = Plot(view, "parity", x, y, height=380)
    _diagonals(plot, ends)
    groups = _clouds(plot, rows, by)
    plot.keys = _keys(groups, by)
    errors = sorted(abs(row.predicted / row.measured - 1) for row in rows)
    within = sum(0.5 <= row.predicted / row.measured <= 2 for row in rows) / len(rows)
    title = f"Predictions of {rows[0].measure} are off by {errors[len(errors) // 2]:.0%} in the median, {within:.0%} within a factor of 2"
    subtitle = f"{len(rows):,} measurement{'s' * (len(rows) != 1)}, {'a shape' if len(groups) > 1 else 'one'} for each {by}"
    caption = "A point on the solid line is predicted exactly; above it the prediction is too high, below too low."
    panel = plot.panel(f"Predicted {rows[0].measure} (log)")
    return compose(view, [[panel]], title=title, subtitle=subtitle, caption=caption)


def _diagonals(plot: Plot, ends: tuple[float, float]) -> None:
    """Lines at equality, twice and half, with their words."""
    for place, (factor, words) in enumerate(((1.0, "equal"), (2.0, "twice"), (0.5, "half"))):
        line = plot.rows(f"factor{place}", [{"x": end, "y": end * factor} for end in ends])
        plot.curve(line, "x", "y", "muted", width=1, dash=() if factor == 1 else (4, 3))
        at = ends[1] / (2.6 if factor <= 1 else 2.8)
        plot.note(words, "muted", around=plot.place(at, at * factor), most=30.0)


def _clouds(plot: Plot, rows: Sequence[Any], by: str) -> list[str]:
    """Points of each group, the largest first, in a colour and a shape of its own while there are any; the groups' names."""
    groups = [group for group, _ in Counter(getattr(row, by) for row in rows).most_common()]
    for place, group in enumerate(groups):
        mine = [{"x": row.measured, "y": row.predicted} for row in rows if getattr(row, by) == group]
        meaning, shape = (MEANINGS[place], SHAPES[place]) if place < len(SHAPES) - (len(groups) > len(SHAPES)) else ("whole", "circle")
        plot.cloud(plot.rows(f"group{place}", mine), "x", "y", meaning, size=22, opacity=0.6, shape=shape)
    return groups


def _keys(groups: Sequence[str], by: str) -> list[tuple[str, str]]:
    """Names of the groups that have a colour of their own."""
    if len(groups) < 2:
        return []
    signs = ("●", "■", "●", "●", "+")  # characters that every font has
    count = len(signs) - (len(groups) > len(signs))
    keys = [(f"{signs[place]} {group}", MEANINGS[place]) for place, group in enumerate(groups[:count])]
    return keys + ([(f"● {len(groups) - count} more", "whole")] if len(groups) > count else [])

"""What grew from year to year: chips or models as points with their names, a panel for each quantity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headway.core.errors import BadValue
from headway.report.pictures.frame import Picture, View, compose
from headway.report.pictures.plot import Note, Plot, Series
from headway.report.pictures.scale import AxisScale

Rows = Sequence[Mapping[str, Any]]
Quantity = tuple[str, str, str]  # column, words, unit
NEAR = 24.0  # px within which a name stands; others are left out
CHIPS: tuple[Quantity, ...] = (
    ("hardware_ratio_bf16", "Multiply-adds per byte read, 16 bits (log)", "count"),
    ("drain_s", "Time to read all HBM once (log)", "s"),
    ("latency_floor_s", "Least decode step of DeepSeek-V3 (log)", "s"),
    ("scale_up_domain", "Chips in a scale-up domain (log)", "count"),
)
MODELS: tuple[Quantity, ...] = (
    ("total_params", "Parameters (log)", "count"),
    ("max_context", "Longest context in tokens (log)", "token"),
    ("kv_bytes_per_token", "KV cache per token (log)", "byte"),
    ("sparsity", "Total over active parameters (log)", "count"),
)


def picture(rows: Rows, quantities: Sequence[Quantity], name: str, view: View, *, title: str, subtitle: str, caption: str) -> Picture:
    """Picture with a panel for each quantity; `name` is the column with the points' names."""
    dated = [dict(row) | {"at": year(row)} for row in rows if row.get("year") is not None]
    drawable = [quantity for quantity in quantities if any(row.get(quantity[0]) for row in dated)]
    if not drawable:
        raise BadValue("--plot", "these rows", "rows with a year")
    plots = [_plot(dated, quantity, name, number, min(len(drawable), 2)) for number, quantity in enumerate(drawable)]
    panels = [plots[place : place + 2] for place in range(0, len(plots), 2)]
    return compose(view, panels, title=title, subtitle=subtitle, caption=caption)


def year(row: Mapping[str, Any]) -> float:
    """Year of a row, with its month where that is known."""
    released = str(row.get("released") or "")
    return float(row["year"]) + ((int(released[5:7]) - 1) / 12 if len(released) >= 7 else 0.0)


def _plot(rows: Rows, quantity: Quantity, name: str, number: int, columns: int) -> Plot:
    key, words, unit = quantity
    points = [row for row in rows if row.get(key)]
    dots = Series(rows=[{"x": row["at"], "y": row[key]} for row in points], meaning="compute", width=0, dots=26, opacity=0.75)
    extremes = sorted(points, key=lambda row: (row[key], row["at"]))
    newest = sorted(points, key=lambda row: -row["at"])
    first: dict[str, Mapping[str, Any]] = {}  # of each name, in the order in which names are placed
    for row in (*extremes[-3:], *extremes[:2], *newest[:6], *points):
        first.setdefault(row[name], row)
    notes = [Note(x=row["at"], y=row[key], text=str(label), most=NEAR) for label, row in first.items()]
    return Plot(
        name=f"years{number}", parts=[dots, *notes], heading=words, columns=columns, height=260,
        x=AxisScale("", [row["at"] for row in rows], "year", log=False, most=5, room=0.06),
        y=AxisScale("", [row[key] for row in points], unit, log=True, room=0.08),
    )  # fmt: skip

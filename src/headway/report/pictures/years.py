"""What grew from year to year: chips or models as points with their names, a panel for each quantity."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headway.core.errors import BadValue
from headway.report.pictures.frame import Picture, View, compose
from headway.report.pictures.plot import Note, Part, Plot, Series
from headway.report.pictures.scale import AxisScale, tick_text

Rows = Sequence[Mapping[str, Any]]
Quantity = tuple[str, str, str]  # column, words, unit
LIT = "compute"  # the colour of what a picture is about
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


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """What a picture is about, beside the rest of the rows: the column with their names, which are lit, and words for both."""

    name: str
    is_lit: Callable[[Mapping[str, Any]], bool]
    lit: str
    rest: str


def picture(rows: Rows, quantities: Sequence[Quantity], sides: Sides, middles: Mapping[str, Rows], view: View, *, title: str,
            subtitle: str, caption: str) -> Picture:  # fmt: skip
    """Picture with a panel for each quantity: all rows as points, those that it is about lit, and the line of their `middles` by year."""
    dated = [dict(row) | {"at": year(row)} for row in rows if row.get("year") is not None]
    drawable = [quantity for quantity in quantities if any(row.get(quantity[0]) for row in dated)]
    if not drawable:
        raise BadValue("--plot", "these rows", "rows with a year")
    plots = [_plot(dated, quantity, sides, middles.get(quantity[0], ()), number, min(len(drawable), 2))
             for number, quantity in enumerate(drawable)]  # fmt: skip
    panels = [plots[place : place + 2] for place in range(0, len(plots), 2)]
    return compose(view, panels, title=title, subtitle=subtitle, caption=caption)


def year(row: Mapping[str, Any]) -> float:
    """Year of a row, with its month where that is known."""
    released = str(row.get("released") or "")
    return float(row["year"]) + ((int(released[5:7]) - 1) / 12 if len(released) >= 7 else 0.0)


def _plot(rows: Rows, quantity: Quantity, sides: Sides, middles: Rows, number: int, columns: int) -> Plot:
    key, words, unit = quantity
    points = [
        {"x": row["at"], "y": row[key], "name": row[sides.name].replace("_", "-"), "lit": sides.is_lit(row)} for row in rows if row.get(key)
    ]
    points = [{**row, "tip": f"{row['name']}, {tick_text(row['x'], 'year')}: {tick_text(row['y'], unit)}"} for row in points]
    parts: list[Part] = []
    for is_lit, meaning in ((False, "rest"), (True, LIT)):
        side = [row for row in points if row["lit"] is is_lit]
        parts.append(Series(rows=side, meaning=meaning, width=0, dots=26, opacity=0.8))
    parts.append(Series(rows=middles, meaning="ink", text="median" if middles else "", width=2.5))
    ends = sorted(points, key=lambda row: (row["y"], -row["x"]))
    lit = sorted((row for row in ends if row["lit"]), key=lambda row: row["x"])
    first: dict[str, Mapping[str, Any]] = {}  # of each name, in the order in which names are placed
    for row in (*ends[-1:], *ends[:1], *lit[-2:], *lit[:1]):
        first.setdefault(row["name"], row)
    parts += [Note(x=row["x"], y=row["y"], text=name, most=NEAR, meaning=LIT if row["lit"] else "muted") for name, row in first.items()]
    return Plot(
        name=f"years{number}", parts=parts, heading=words, columns=columns, height=260,
        keys=[(f"● {sides.lit}", LIT), (f"● {sides.rest}", "rest")] if number == 0 else [],
        x=AxisScale("", [row["at"] for row in rows], "year", log=False, most=5, room=0.06),
        y=AxisScale("", [row["y"] for row in points], unit, log=True, room=0.08),
    )  # fmt: skip

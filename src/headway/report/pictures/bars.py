"""Horizontal bars made of parts, each with its words: over the bar, under it, or in a list of names where it is too narrow."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from headway.report.pictures import marks
from headway.report.pictures.frame import Panel, View, inner
from headway.report.pictures.lettering import LEADING, SIZE, shorten, text_width
from headway.report.pictures.marks import Row
from headway.report.pictures.scale import PictureAxis

THICK = 26  # px of a bar
PITCH = 40  # px from bar to bar


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class BarPart:
    """One part of a bar: what it is, how long, its colour."""

    name: str
    value: float
    meaning: str
    text: str = ""  # what stands in or at the part


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One bar; `limit` is a mark across it, `note` stands after its end."""

    name: str
    parts: Sequence[BarPart]
    limit: float | None = None
    note: str = ""
    low: float | None = None  # ends of an interval around the whole
    high: float | None = None


def name_width(view: View, bars: Sequence[Bar]) -> float:
    """Px for the names beside the bars; none in a narrow view, where they stand over them."""
    return 0.0 if view.is_narrow else min(max(text_width(bar.name) for bar in bars) + 10, view.width * 0.34)


def bar_width(view: View, bars: Sequence[Bar], columns: int = 1) -> float:
    """Px of the plot of bars."""
    return inner(view, name_width(view, bars), 14, columns)


def panel(view: View, name: str, bars: Sequence[Bar], x: PictureAxis, *, heading: str = "", columns: int = 1,
          legend: bool = True) -> Panel:  # fmt: skip
    """Bars below each other along one axis; words of a part stand in it if it is broad enough."""
    theme, margin = view.colours, name_width(view, bars)
    width = bar_width(view, bars, columns)
    pitch = PITCH + (SIZE * LEADING if view.is_narrow else 0)
    boxes: list[Row] = []
    words: list[Row] = []
    names: list[Row] = []
    limits: list[Row] = []
    for place, bar in enumerate(bars):
        top = place * pitch + (pitch - THICK) / 2 + (SIZE * LEADING / 2 if view.is_narrow else 0)
        start = 0.0
        for part in bar.parts:
            x0, x1 = x.across(max(start, x.low), width), x.across(max(start + part.value, x.low), width)
            start += part.value
            boxes.append({"x": x0, "x2": max(x1, x0), "y": top, "y2": top + THICK, "color": theme.line(part.meaning)})
        words += _end_words(view, bar, x, width, top, start)
        limits += _marks(view, bar, x, width, top)
        text = shorten(bar.name, margin - 8 if margin else view.width - 40)
        spot = (-8 - text_width(text), top + THICK / 2) if margin else (0.0, top - SIZE * LEADING / 2 - 1)
        names.append({"x": spot[0], "y": spot[1], "text": text, "color": theme.ink})
    data = {f"{name}_parts": boxes, f"{name}_words": words, f"{name}_names": names, f"{name}_limits": limits}
    layers = [marks.pixel_boxes(f"{name}_parts", stroke=theme.paper), marks.pixel_rules(f"{name}_limits", width=2),
              marks.labels(f"{name}_words"), marks.labels(f"{name}_names")]  # fmt: skip
    keys = list(dict.fromkeys((f"■ {part.name}", part.meaning) for bar in bars for part in bar.parts if part.name)) if legend else []
    return Panel(width=width, height=len(bars) * pitch, layers=layers, data=data, x=x, left_margin=margin, right_margin=14,
                 heading=heading, keys=keys)  # fmt: skip


def _end_words(view: View, bar: Bar, x: PictureAxis, width: float, top: float, end: float) -> list[Row]:
    """What stands after the bar, or before its end where there is no room after it."""
    if not bar.note:
        return []
    extent = max(end, bar.high or 0.0, bar.limit or 0.0)
    after = x.across(min(extent, x.high), width) + 6
    if after + text_width(bar.note) > width + 12:
        return [
            {"x": max(width - text_width(bar.note), 0), "y": top - SIZE * LEADING / 2 + 1, "text": bar.note, "color": view.colours.muted}
        ]
    return [{"x": after, "y": top + THICK / 2, "text": bar.note, "color": view.colours.muted}]


def _marks(view: View, bar: Bar, x: PictureAxis, width: float, top: float) -> list[Row]:
    rows: list[Row] = []
    if bar.limit is not None and x.holds(bar.limit):
        at = x.across(bar.limit, width)
        rows.append({"x": at, "x2": at, "y": top - (0 if view.is_narrow else 5), "y2": top + THICK + 5, "color": view.colours.ink})
    if bar.low is not None and bar.high is not None:
        ends = [x.across(min(max(end, x.low), x.high), width) for end in (bar.low, bar.high)]
        middle = top + THICK / 2
        rows.append({"x": ends[0], "x2": ends[1], "y": middle, "y2": middle, "color": view.colours.ink})
        rows += [{"x": end, "x2": end, "y": middle - 5, "y2": middle + 5, "color": view.colours.ink} for end in ends]
    return rows

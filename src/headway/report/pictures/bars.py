"""Horizontal bars made of parts, a bar a row, along one axis: each with its name, its marks and what stands after it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from headway.report.pictures import marks
from headway.report.pictures.frame import Panel, View, inner
from headway.report.pictures.lettering import LEADING, SIZE, shorten, text_width
from headway.report.pictures.marks import Row
from headway.report.pictures.scale import AxisScale, tick_text

BarPart = tuple[str, float, str]  # what it is, how long, its colour


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One bar, whose parts follow each other from 0, to the left where they are negative."""

    name: str
    parts: Sequence[BarPart]
    limit: float | None = None  # where a mark stands across it
    note: str = ""  # what stands after its end
    low: float | None = None  # ends of an interval around the whole
    high: float | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """A panel of bars below each other; `name` is the prefix of its data sets."""

    name: str
    bars: Sequence[Bar]
    x: AxisScale
    heading: str = ""
    has_key: bool = True  # whether the parts are named over the panel
    thick: float = 26  # px of a bar
    pitch: float = 40  # px from bar to bar
    zero: bool = False  # whether a rule stands at 0
    columns: int = 1  # panels beside each other

    def panel(self, view: View, suffix: str) -> Panel:
        """The bars, their names beside them, over them in a narrow view."""
        theme, x, raised = view.colours, self.x.axis(view.ends(f"x{suffix}")), SIZE * LEADING * view.is_narrow
        most = view.width * 0.38 / self.columns
        margin = 0.0 if view.is_narrow else min(max(text_width(bar.name) for bar in self.bars) + 10, most)
        width, pitch = inner(view, margin, 14, self.columns), self.pitch + raised
        boxes, words, limits, names, tips = [], [], [], [], []
        for place, bar in enumerate(self.bars):
            top = place * pitch + (pitch - self.thick) / 2 + raised / 2
            start = 0.0
            for name, value, meaning in bar.parts:
                ends = sorted(x.across(max(end, x.low), width) for end in (start, start + value))
                start += value
                boxes.append({"x": ends[0], "x2": ends[1], "y": top, "y2": top + self.thick, "color": theme.line(meaning)})
                tips.append(self._tip(bar, name, value, sum(ends) / 2, top + self.thick / 2))
            words += self._note(view, bar, x.across(min(max(start, 0.0, bar.high or 0.0, bar.limit or 0.0), x.high), width) + 6, width, top)
            if bar.limit is not None and x.holds(bar.limit):
                at = x.across(bar.limit, width)
                limits.append({"x": at, "x2": at, "y": top - (0 if view.is_narrow else 5), "y2": top + self.thick + 5, "color": theme.ink})
            if bar.low is not None and bar.high is not None:
                ends = [x.across(min(max(end, x.low), x.high), width) for end in (bar.low, bar.high)]
                middle = top + self.thick / 2
                interval = {"x": ends[0], "x2": ends[1], "y": middle, "y2": middle, "color": theme.ink}
                limits += [interval, *(interval | {"x": end, "x2": end, "y": middle - 5, "y2": middle + 5} for end in ends)]
            text = shorten(bar.name, margin - 8 if margin else view.width - 40)
            spot = (-8.0, top + self.thick / 2) if margin else (0.0, top - SIZE * LEADING / 2 - 1)
            names.append({"x": spot[0], "y": spot[1], "text": text, "color": theme.ink})
        data = {f"{self.name}_parts": boxes, f"{self.name}_words": words, f"{self.name}_names": names, f"{self.name}_limits": limits}
        layers = [marks.pixel_boxes(f"{self.name}_parts", stroke=theme.paper), marks.pixel_rules(f"{self.name}_limits", width=2),
                  marks.labels(f"{self.name}_words"), marks.labels(f"{self.name}_names", align="right" if margin else "left")]  # fmt: skip
        if view.is_page:
            data[f"{self.name}_tips"] = [] if view.axes else tips  # none while a slider moves
            layers.append(marks.tips(f"{self.name}_tips"))
        if self.zero:
            at = x.across(0.0, width)
            line = {"x": at, "x2": at, "y": 0, "y2": len(self.bars) * pitch, "color": theme.muted}
            data[f"{self.name}_zero"] = [] if view.is_narrow else [line]
            layers = [marks.pixel_rules(f"{self.name}_zero"), *layers]
        keys = [(f"■ {name}", meaning) for bar in self.bars for name, _, meaning in bar.parts if name and self.has_key]
        return Panel(width=width, height=len(self.bars) * pitch, layers=layers, data=data, x=x, left_margin=margin, right_margin=14,
                     heading=self.heading, keys=list(dict.fromkeys(keys)))  # fmt: skip

    def _tip(self, bar: Bar, part: str, value: float, across: float, down: float) -> Row:
        """What a page says of a part of a bar, or of a bar of one part."""
        text = tick_text(value, self.x.unit)
        text = f"{part} {text}" if len(bar.parts) > 1 else bar.note or text
        name = ", ".join(filter(None, (bar.name, self.heading)))
        return {"x": round(across, 1), "y": round(down, 1), "downs": [round(down, 1)], "tip": f"{name}: {text}"}

    def _note(self, view: View, bar: Bar, after: float, width: float, top: float) -> list[Row]:
        """What stands after the bar, or over its end where there is no room after it."""
        if not bar.note:
            return []
        x, y = after, top + self.thick / 2
        if after + text_width(bar.note) > width + 12:
            x, y = max(width - text_width(bar.note), 0), top - SIZE * LEADING / 2 + 1
        return [{"x": x, "y": y, "text": bar.note, "color": view.colours.muted}]

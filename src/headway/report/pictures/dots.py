"""Rows below each other with a point for a number and a rule for its interval: laws, machines, models beside each other."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from headway.core.errors import BadValue
from headway.report.pictures import marks
from headway.report.pictures.frame import EDGE, Panel, View, inner
from headway.report.pictures.lettering import LEADING, SIZE, shorten, text_width
from headway.report.pictures.scale import AxisScale

PITCH = 30
MOST_ROWS = 24


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Dots:
    """A panel of one number of each row that has it, between a label and a text; its interval where `KEY_lo` and `KEY_hi` are known."""

    name: str
    rows: Sequence[Mapping[str, Any]]
    key: str
    labels: Sequence[str]
    texts: Sequence[str]
    unit: str
    title: str = ""  # of the axis
    heading: str = ""
    meaning: str = "compute"
    columns: int = 1  # panels beside each other
    references: Sequence[tuple[float, str]] = ()  # values at which a line stands, with their words
    texts_beside: Sequence[str] = ()  # those of the picture's other panels, so that all have the same margins
    labels_beside: Sequence[str] = ()

    def panel(self, view: View, suffix: str) -> Panel:
        """The rows; in a narrow view each label stands over its row."""
        entries = list(zip(self.rows, self.labels, self.texts, strict=True))
        entries = [entry for entry in entries if entry[0].get(self.key) is not None][:MOST_ROWS]
        if not entries:
            raise BadValue("--plot", f"no {self.key}", "rows with numbers to draw")
        theme, raised, columns = view.colours, SIZE * LEADING * view.is_narrow, 1 if view.is_narrow else self.columns
        widest = max(text_width(label) for label in (*self.labels_beside, *(label for _, label, _ in entries))) + 10
        margin = 0.0 if view.is_narrow else min(widest, view.width * 0.3 / columns)
        reserve = max(text_width(text) for text in (*self.texts_beside, *(text for _, _, text in entries))) + 16
        width = inner(view, margin, reserve, columns)
        ends = [[row[end] for end in (f"{self.key}_lo", f"{self.key}_hi") if row.get(end) is not None] for row, _, _ in entries]
        values = [*(row[self.key] for row, _, _ in entries), *(end for pair in ends for end in pair), *(at for at, _ in self.references)]
        x = AxisScale(self.title, values, self.unit, most=5).fitting(width, view.ends(f"x{suffix}"))
        x = dataclasses.replace(  # without ticks whose texts would leave the frame
            x, ticks=tuple((at, text) for at, text in x.ticks if x.across(at, width) - text_width(text) / 2 > -margin - EDGE)
        )
        pitch = PITCH + raised
        marked, points, rules, words = [x.across(at, width) for at, _ in self.references], [], [], []
        for place, ((row, label, text), interval) in enumerate(zip(entries, ends, strict=True)):
            middle, tone = place * pitch + (pitch + raised) / 2, theme.line(self.meaning)
            spans = [x.across(value, width) for value in (row[self.key], *interval)]
            points.append({"x": spans[0], "y": middle, "color": tone})
            if len(interval) == 2:
                rules.append({"x": spans[1], "x2": spans[2], "y": middle, "y2": middle, "color": tone})
            after, wide = max(spans) + 9, text_width(text)
            is_struck = any(after - 4 < rule < after + wide + 4 for rule in marked)  # by a line through what stands after the interval
            words.append({"x": min(spans) - 9 - wide if is_struck else after, "y": middle, "text": text, "color": theme.ink})
            name_text = shorten(label, margin - 8 if margin else width + reserve)
            spot = (-8 - text_width(name_text), middle) if margin else (0.0, middle - SIZE * LEADING)
            words.append({"x": spot[0], "y": spot[1], "text": name_text, "color": theme.ink})
        height = len(entries) * pitch
        lines = [] if view.is_narrow else [{"x": at, "x2": at, "y": 2.0, "y2": height, "color": theme.muted} for at in marked]
        words += [{"x": line["x"] - text_width(text) / 2, "y": -6.0, "text": text, "color": theme.muted}
                  for line, (_, text) in zip(lines, self.references, strict=False)]  # fmt: skip
        names = [f"{self.name}_{part}" for part in ("points", "rules", "words", "reference")]
        layers = [marks.pixel_rules(names[3], dash=(2, 3)), marks.pixel_rules(names[1], width=2), marks.pixel_points(names[0], size=70),
                  marks.labels(names[2])]  # fmt: skip
        return Panel(width=width, height=height, layers=layers, data=dict(zip(names, (points, rules, words, lines), strict=True)), x=x,
                     left_margin=margin, right_margin=reserve, heading=self.heading)  # fmt: skip

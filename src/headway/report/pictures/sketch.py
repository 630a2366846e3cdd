"""A drawing in px, x and y from its upper left corner: boxes with words, lines, dots; for pictures of things rather than of numbers."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from headway.report.pictures import marks
from headway.report.pictures.frame import Panel, View

Box = tuple[float, float, float, float, str, str]  # x, y, width, height, the word in its middle, meaning
Line = tuple[float, float, float, float, str]  # x, y, x2, y2, meaning


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Sketch:
    """A panel of boxes over lines from point to point; `name` is the prefix of its data sets."""

    name: str
    width: float
    height: float
    boxes: Sequence[Box] = ()
    lines: Sequence[Line] = ()
    dots: Sequence[tuple[float, float]] = ()
    heading: str = ""
    right_margin: float = 0.0

    def panel(self, view: View, suffix: str) -> Panel:
        """The drawing."""
        theme = view.colours
        lines = [{"x": x, "y": y, "x2": x2, "y2": y2, "color": theme.line(meaning)} for x, y, x2, y2, meaning in self.lines]
        boxes = [{"x": x, "x2": x + wide, "y": y, "y2": y + high, "color": theme.line(meaning)}
                 for x, y, wide, high, _, meaning in self.boxes]  # fmt: skip
        words = [{"x": x + wide / 2, "y": y + high / 2, "text": text, "color": theme.ink} for x, y, wide, high, text, _ in self.boxes]
        dots = [{"x": x, "y": y, "color": theme.line("compute")} for x, y in self.dots]
        names = [f"{self.name}_{part}" for part in ("lines", "boxes", "dots", "words")]
        layers = [marks.pixel_rules(names[0], width=1.2), marks.pixel_boxes(names[1], opacity=0.45, radius=4),
                  marks.pixel_points(names[2], size=70), marks.labels(names[3], align="center")]  # fmt: skip
        return Panel(width=self.width, height=self.height, layers=layers, data=dict(zip(names, (lines, boxes, dots, words), strict=True)),
                     heading=self.heading, below=8, right_margin=self.right_margin)  # fmt: skip

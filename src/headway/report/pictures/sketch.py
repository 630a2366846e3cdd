"""A drawing in px: boxes with words, lines, dots; for pictures of things rather than of numbers."""

from __future__ import annotations

from typing import Any

from headway.report.pictures import marks
from headway.report.pictures.frame import EDGE, Panel, View
from headway.report.pictures.marks import Row


class Sketch:
    """A panel of boxes, lines, dots and words; x and y from its upper left corner."""

    def __init__(self, view: View, name: str, height: float, width: float | None = None) -> None:
        self.view, self.name, self.height = view, name, height
        self.width = width or view.width - 2 * EDGE
        self.parts: dict[str, list[Row]] = {"lines": [], "boxes": [], "dots": [], "words": []}

    def box(self, x: float, y: float, wide: float, high: float, text: str = "", meaning: str = "grid") -> None:
        """A rounded box with a word in its middle."""
        self.parts["boxes"].append({"x": x, "x2": x + wide, "y": y, "y2": y + high, "color": self.view.colours.line(meaning)})
        if text:
            self.word(x + wide / 2, y + high / 2, text)

    def line(self, x: float, y: float, x2: float, y2: float, meaning: str = "ink") -> None:
        """A straight line."""
        self.parts["lines"].append({"x": x, "y": y, "x2": x2, "y2": y2, "color": self.view.colours.line(meaning)})

    def dot(self, x: float, y: float, meaning: str = "compute") -> None:
        """A dot."""
        self.parts["dots"].append({"x": x, "y": y, "color": self.view.colours.line(meaning)})

    def word(self, x: float, y: float, text: str, meaning: str = "ink") -> None:
        """A word around its middle."""
        self.parts["words"].append({"x": x, "y": y, "text": text, "color": self.view.colours.label(meaning)})

    def panel(self, heading: str = "", **rest: Any) -> Panel:
        """The drawing as a panel."""
        data = {f"{self.name}_{part}": rows for part, rows in self.parts.items()}
        lines, boxes, dots, words = data
        layers = [marks.pixel_rules(lines, width=1.2), marks.pixel_boxes(boxes, opacity=0.45, radius=4), marks.pixel_points(dots, size=70),
                  marks.labels(words, align="center")]  # fmt: skip
        return Panel(width=self.width, height=self.height, layers=layers, data=data, heading=heading, below=8, **rest)

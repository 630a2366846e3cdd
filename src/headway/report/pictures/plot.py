"""One plot of curves and points with its words: names at the ends of lines, notes at limits and points, placed where they are free."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from headway.report.pictures import marks
from headway.report.pictures.frame import Panel, View, inner, margins
from headway.report.pictures.lettering import LEADING, SIZE, text_width, wrap
from headway.report.pictures.marks import Layer, Row
from headway.report.pictures.placing import Canvas, spread
from headway.report.pictures.scale import PictureAxis

FAR = 20  # px from which a label has a line to its point
BROAD = 170  # px at which the words of a note break


class Plot:
    """A panel in the making; `name` is the prefix of its data sets. Notes are placed in the order of their importance: first come."""

    def __init__(self, view: View, name: str, x: PictureAxis, y: PictureAxis, *, height: float = 280, columns: int = 1,
                 ends: Sequence[str] = ()) -> None:  # fmt: skip
        self.view, self.name, self.x, self.y = view, name, x, y
        self.left_margin, self.right_margin = margins(view, y, ends)
        self.width = inner(view, self.left_margin, self.right_margin, columns)
        self.height = height if not view.is_narrow else min(height, 250)
        self.canvas = Canvas(width=self.width, height=self.height)
        self.layers: list[Layer] = []
        self.data: dict[str, list[Row]] = {}
        self.end_names: list[tuple[str, str, float]] = []
        self.keys: list[tuple[str, str]] = []
        self.notes: list[tuple[list[str], str, Any]] = []
        self.label_boxes: list[tuple[float, float, float, float]] = []

    # -- what is drawn ----------------------------------------------------------------------------------------------------------

    def rows(self, suffix: str, rows: Sequence[Mapping[str, Any]]) -> str:
        """A named data set."""
        name = f"{self.name}_{suffix}"
        self.data[name] = [dict(row) for row in rows]
        return name

    def add(self, layer: Layer) -> None:
        """A layer of one's own."""
        self.layers.append(layer)

    def curve(self, data: str, across: str, up: str, meaning: str, *, text: str = "", width: float = 2, dash: Sequence[int] = (),
              steps: str = "") -> None:  # fmt: skip
        """A line through a data set, named at its end in a wide view and over the panel in a narrow one."""
        self.add(marks.line(data, self.x, across, self.y, up, self.view.colours.line(meaning), width=width, dash=dash, steps=steps))
        rows = [row for row in self.data[data] if row.get(across) is not None and row.get(up) is not None]
        if self.y.log:
            rows = [row for row in rows if row[up] > 0]
        if not rows:
            return
        self._keep_off(rows, across, up, steps)
        if text and (self.view.is_narrow or self.right_margin <= 10):
            self.keys.append((text, meaning))
        elif text:
            visible = [row for row in rows if self.x.holds(row[across])] or rows
            inside = [row for row in visible if self.y.holds(row[up])]
            last = visible[-1][up]
            end = min(max(last, self.y.low), self.y.high) if inside else last
            self.end_names.append((text, meaning, min(max(self.y.down(end, self.height), 0), self.height)))

    def _keep_off(self, rows: Sequence[Row], across: str, up: str, steps: str) -> None:
        places = [self.place(row[across], row[up]) for row in rows]
        if steps == "step-before":
            places = [spot for before, after in itertools.pairwise(places) for spot in (before, (before[0], after[1]), after)]
        elif steps == "step-after":
            places = [spot for before, after in itertools.pairwise(places) for spot in (before, (after[0], before[1]), after)]
        self.canvas.add_curve([spot[0] for spot in places], [spot[1] for spot in places])

    def place(self, across: float, up: float) -> tuple[float, float]:
        """Px of a point."""
        return self.x.across(across, self.width), self.y.down(up, self.height)

    def band(self, data: str, across: str, low: str, high: str, meaning: str) -> None:
        """The area between two columns."""
        self.add(marks.band(data, self.x, across, self.y, low, high, self.view.colours.line(meaning)))

    def cloud(self, data: str, across: str, up: str, meaning: str = "", **style: Any) -> None:
        """Points without words, which words keep away from."""
        self.add(marks.points(data, self.x, across, self.y, up, self.view.colours.line(meaning) if meaning else "", **style))
        for row in self.data[data]:
            if row.get(up) is not None:
                self.canvas.add_point(*self.place(row[across], row[up]), size=math.sqrt(style.get("size", 70)) / 2)

    def point(self, suffix: str, across: float, up: float, text: str, meaning: str = "ink", **style: Any) -> None:
        """One point with its words."""
        data = self.rows(suffix, [{"x": across, "y": up}])
        self.add(marks.points(data, self.x, "x", self.y, "y", self.view.colours.line(meaning), **style))
        spot = self.place(across, up)
        self.canvas.add_point(*spot, size=math.sqrt(style.get("size", 70)) / 2 + 1)
        if text:
            self.note(text, meaning, around=spot)

    def region(self, suffix: str, start: float, end: float, text: str) -> None:
        """A shaded span of the x axis with its words."""
        start, end = max(start, self.x.low), min(end, self.x.high)
        span = [{"from": start, "to": end}] if start < end else []
        self.add(marks.region(self.rows(suffix, span), self.x, self.view.colours.grid))
        if span:
            edges = sorted((self.x.across(start, self.width), self.x.across(end, self.width)))
            self.note(text, "muted", inside=edges)

    def upright(self, suffix: str, at: float | None, text: str, meaning: str = "muted") -> None:
        """A vertical rule with its words."""
        visible = self.x.holds(at)
        self.add(marks.uprights(self.rows(suffix, [{"at": at}] if visible else []), self.x, self.view.colours.line(meaning)))
        if visible and at is not None:
            across = self.x.across(at, self.width)
            self.canvas.add_curve([across, across], [0, self.height])
            self.note(text, meaning, beside=across)

    def level(self, suffix: str, at: float | None, text: str, meaning: str = "muted") -> None:
        """A horizontal rule with its words."""
        visible = self.y.holds(at)
        self.add(marks.levels(self.rows(suffix, [{"at": at}] if visible else []), self.y, self.view.colours.line(meaning)))
        if visible and at is not None:
            down = self.y.down(at, self.height)
            self.canvas.add_curve([0, self.width], [down, down])
            self.note(text, meaning, along=down)

    def note(self, text: str, meaning: str, **where: Any) -> None:
        """Words to be placed `around` a point, `beside` a vertical rule, `along` a level or `inside` a span."""
        self.notes.append((wrap(text, min(BROAD, self.width * 0.6)), meaning, where))

    # -- the panel --------------------------------------------------------------------------------------------------------------

    def panel(self, heading: str = "", below: float | None = None) -> Panel:
        """The plot with its words placed."""
        theme = self.view.colours
        label_rows: list[Row] = []
        leaders: list[Row] = []
        if self.end_names:
            centres = spread([down for _, _, down in self.end_names], SIZE * 1.2, 2, self.height - 2)
            for (text, meaning, _), centre in zip(self.end_names, centres, strict=True):
                label_rows += marks.label_rows(theme, meaning, [text], self.width + 8, centre)
        for lines, meaning, where in self.notes:
            spot = self._spot(lines, where)
            if spot:
                label_rows += marks.label_rows(theme, meaning, lines, *spot)
                leaders += self._leader(lines, spot, where.get("around"))
                wide = max(text_width(line) for line in lines)
                self.label_boxes.append((spot[0], spot[1] - SIZE * 0.7, spot[0] + wide, spot[1] + SIZE * (LEADING * len(lines) - 0.6)))
        leader_data, label_data = self.rows("leaders", leaders), self.rows("labels", label_rows)
        layers = [*self.layers, marks.pixel_rules(leader_data), marks.labels(label_data)]
        return Panel(width=self.width, height=self.height, layers=layers, data=self.data, x=self.x, y=self.y, heading=heading,
                     left_margin=self.left_margin, right_margin=self.right_margin, keys=self.keys, below=below)  # fmt: skip

    def _spot(self, lines: Sequence[str], where: Mapping[str, Any]) -> tuple[float, float] | None:
        """The first free place for a note."""
        if "around" in where:
            return self.canvas.place(lines, *where["around"], most=where.get("most", 130.0))
        wide = max(text_width(line) for line in lines)
        downs = [place * self.height for place in (0.03, 0.12, 0.22, 0.34, 0.48, 0.62, 0.76, 0.9)]
        if "inside_box" in where:
            x, y = where["inside_box"]
            offsets = [(across, down) for down in (0, -12, 12, -24, 24, -40, 40) for across in (0, -20, 20, -45, 45, -70, 70)]
            return self.canvas.first(lines, [(x - wide / 2 + across, y - SIZE / 2 + down) for across, down in offsets])
        if "beside" in where:
            candidates = [(x, down) for down in downs for x in (where["beside"] + 5, where["beside"] - 5 - wide)]
        elif "inside" in where:
            start, end = where["inside"]
            xs = (
                ((start + end - wide) / 2, end - wide - 5, start + 5)
                if end - start > wide + 8
                else (start + 3, end - wide - 3, start - wide - 5)
            )
            candidates = [(x, down) for down in downs for x in xs]
        else:
            high = len(lines) * SIZE * LEADING
            xs = [share * max(self.width - wide - 6, 0) + 3 for share in (1, 0, 0.5, 0.75, 0.25)]
            candidates = [(x, y) for gap in (3, 8) for y in (where["along"] - high - gap, where["along"] + gap) for x in xs]
        return self.canvas.first(lines, candidates)

    def _leader(self, lines: Sequence[str], spot: tuple[float, float], point: Any) -> list[Row]:
        """A thin line from a point to words that stand far from it."""
        if point is None:
            return []
        wide, high = max(text_width(line) for line in lines), len(lines) * SIZE * LEADING
        x = min(max(point[0], spot[0] - 3), spot[0] + wide + 3)
        y = min(max(point[1], spot[1] - SIZE * 0.6 - 2), spot[1] - SIZE * 0.6 + high + 2)
        away = math.hypot(x - point[0], y - point[1])
        if away < FAR:
            return []
        crossed = [(point[0] + (x - point[0]) * part / 40, point[1] + (y - point[1]) * part / 40) for part in range(41)]
        if any(box[0] <= across <= box[2] and box[1] <= down <= box[3] for across, down in crossed for box in self.label_boxes):
            return []  # a line through another label says less than none
        self.canvas.add_curve([point[0], x], [point[1], y])
        start = 6 / away
        return [{"x": point[0] + (x - point[0]) * start, "y": point[1] + (y - point[1]) * start, "x2": x, "y2": y,
                 "color": self.view.colours.muted}]  # fmt: skip

"""Curves, points, spans and boxes over two axes, with their words: names at the ends of lines, notes placed where they are free."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from headway.report.pictures import marks
from headway.report.pictures.frame import Panel, View, inner, margins
from headway.report.pictures.lettering import LEADING, SIZE, text_width, wrap
from headway.report.pictures.marks import Layer, Row
from headway.report.pictures.scale import AxisScale
from headway.report.pictures.tips import Tips

FAR = 20  # px from which a label has a line to its point
BROAD = 170  # px at which the words of a note break
CELL = 2  # px of a cell of the raster
MARGIN = 2.0  # px that stay free around a label
DOTTED = (2, 3)
DASHES = ((), (6, 3), DOTTED, (8, 3, 2, 3), (12, 4))  # of lines beside each other, as the colours of palette.MEANINGS


class Part(Protocol):
    """What a plot is made of."""

    def draw(self, sheet: Sheet) -> None:
        """Put it on the sheet."""
        ...


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """A panel; `name` is the prefix of its data sets. Notes are placed in the order of the parts: first come."""

    name: str
    x: AxisScale
    y: AxisScale
    parts: Sequence[Part]
    heading: str = ""
    height: float = 280
    columns: int = 1  # panels beside each other
    keys: Sequence[tuple[str, str]] = ()  # (name, meaning) of what is named over the panel
    is_fitting: bool = False  # whether the x axis has as many ticks as its width holds
    flag: str = ""  # whose values stand along x: a page asks again with that of a point that is picked

    def panel(self, view: View, suffix: str) -> Panel:
        """The plot with its words placed; `suffix` is that of its axes among those of the picture."""
        sheet = Sheet(self, view, suffix)
        for part in self.parts:
            part.draw(sheet)
        label_rows, leaders = sheet.words()
        layers = [*sheet.layers, marks.pixel_rules(sheet.rows(leaders, "leaders")), marks.labels(sheet.rows(label_rows, "labels"))]
        layers += [marks.tips(sheet.rows(sheet.tips.rows(sheet.place), "tips"))] * view.is_page
        return Panel(width=sheet.width, height=sheet.height, layers=layers, data=sheet.data, x=sheet.x, y=sheet.y, heading=self.heading,
                     left_margin=sheet.left_margin, right_margin=sheet.right_margin, keys=[*self.keys, *sheet.keys])  # fmt: skip


# -- parts --------------------------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Rows as a line of so many px, as dots of so many, with the area between the fields of `band`; 0 leaves them out.

    A line is named at its end in a wide view and over the panel in a narrow one; a null breaks it. `data` names the set of its rows, which
    series of the same rows share. A row may have a `tip`, what a page says of its point in place of the two values, the number of
    the `row` of the answer that it stands for, and a `name`: a page lights all that has the name of the point that it reads.
    """

    rows: Sequence[Mapping[str, Any]]
    meaning: str
    x: str = "x"
    y: str = "y"
    text: str = ""
    width: float = 2
    dash: Sequence[int] = ()
    steps: str = ""
    band: tuple[str, str] = ("", "")
    dots: float = 0
    shape: str = "circle"
    opacity: float = 1.0
    data: str = ""

    def draw(self, sheet: Sheet) -> None:
        """Its layers; words keep away from line and dots."""
        sheet.tips.add(self.text, ((row.get(self.x), row.get(self.y), row) for row in self.rows), is_line=bool(self.width))
        data, tone = sheet.rows(self.rows, self.data), sheet.view.colours.line(self.meaning)
        low, high = self.band
        if low:
            sheet.add(data, {"type": "area", "clip": True, "color": tone, "opacity": 0.16, "line": False}, x=self.x, y=low, y2=high)
        if self.width:
            mark: Layer = {"type": "line", "clip": True, "color": tone, "strokeWidth": self.width, "strokeJoin": "round"}
            mark |= {"strokeDash": list(self.dash)} if self.dash else {}
            mark |= {"interpolate": self.steps} if self.steps else {}
            sheet.add(data, mark, x=self.x, y=self.y)
            self._highlight(sheet, strokeWidth=self.width + 1.5)
            self._line(sheet)
        if self.dots:
            sheet.add(data, _dots(tone, self.dots, self.shape, self.opacity), x=self.x, y=self.y)
            self._highlight(sheet, size=self.dots * 3)
            for row in self.rows:
                if row.get(self.y) is not None:
                    sheet.canvas.add_point(*sheet.place(row[self.x], row[self.y]), size=math.sqrt(self.dots) / 2)

    def _highlight(self, sheet: Sheet, **more: float) -> None:
        if sheet.view.is_page and any(row.get("name") for row in self.rows):
            marks.highlight(sheet.layers[-1], sheet.view.colours.ink, **more)

    def _line(self, sheet: Sheet) -> None:
        """What keeps words off the line, and its name."""
        points = [(row[self.x], row[self.y]) for row in self.rows if row.get(self.x) is not None and row.get(self.y) is not None]
        points = [(x, y) for x, y in points if y > 0 or not sheet.y.log]
        if not points:
            return
        line = points
        if self.steps:
            is_early = self.steps == "step-before"
            corners = [(before[0], after[1]) if is_early else (after[0], before[1]) for before, after in itertools.pairwise(points)]
            line = [spot for corner, ends in zip(corners, itertools.pairwise(points), strict=True) for spot in (ends[0], corner, ends[1])]
        sheet.canvas.add_curve(*sheet.places(line))
        if self.text and (sheet.view.is_narrow or sheet.right_margin <= 10):
            sheet.keys.append((self.text, self.meaning))
        elif self.text:
            visible = [point for point in points if sheet.x.holds(point[0])] or points
            last = visible[-1][1]
            is_inside = any(sheet.y.holds(point[1]) for point in visible)
            end = min(max(last, sheet.y.low), sheet.y.high) if is_inside else last
            sheet.ends.append((self.text, self.meaning, min(max(sheet.y.down(end, sheet.height), 0), sheet.height)))


def _dots(tone: str, size: float, shape: str, opacity: float) -> Layer:
    mark = {"type": "point", "filled": True, "size": size, "shape": shape, "opacity": opacity, "clip": True}
    return mark | {"strokeWidth": 1.8, "color": tone}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One point with its words; `is_free` leaves it out beyond the axes."""

    x: float
    y: float
    text: str
    meaning: str = "ink"
    size: float = 70
    shape: str = "circle"
    data: str = ""
    is_free: bool = False
    tip: str = ""  # what a page says of it; "": its words
    row: int | None = None  # of the answer

    def draw(self, sheet: Sheet) -> None:
        """The point and its note."""
        if self.is_free and not (sheet.x.holds(self.x) and sheet.y.holds(self.y)):
            return
        sheet.tips.add("", [(self.x, self.y, {"tip": self.tip or self.text, "row": self.row})], is_line=False)
        data = sheet.rows([{"x": self.x, "y": self.y}], self.data)
        sheet.add(data, _dots(sheet.view.colours.line(self.meaning), self.size, self.shape, 1.0), x="x", y="y")
        sheet.canvas.add_point(*sheet.place(self.x, self.y), size=math.sqrt(self.size) / 2 + 1)
        Note(x=self.x, y=self.y, text=self.text, meaning=self.meaning).draw(sheet)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Words in the free place nearest to a point, at most `most` px from it; `is_inside` centres them on it."""

    x: float
    y: float
    text: str
    meaning: str = "muted"
    most: float = 130.0
    is_inside: bool = False

    def draw(self, sheet: Sheet) -> None:
        """The words, to be placed."""
        spot = sheet.place(self.x, self.y)
        sheet.note(self.text, self.meaning, **({"inside_box": spot} if self.is_inside else {"around": spot, "most": self.most}))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A shaded span of the x axis with its words."""

    start: float
    end: float
    text: str

    def draw(self, sheet: Sheet) -> None:
        """As much of the span as the axis holds, as high as the panel."""
        start, end = max(self.start, sheet.x.low), min(self.end, sheet.x.high)
        span = [{"from": start, "to": end}] if start < end else []
        sheet.add(sheet.rows(span), {"type": "rect", "color": sheet.view.colours.grid, "opacity": 0.45, "clip": True}, x="from", x2="to")
        if span:
            sheet.note(self.text, "muted", inside=sorted((sheet.x.across(start, sheet.width), sheet.x.across(end, sheet.width))))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RuleLines:
    """Dotted rules across the panel at values of x, or at values of y; words stand beside the first."""

    x: Sequence[float | None] = ()
    y: Sequence[float | None] = ()
    text: str = ""
    meaning: str = "muted"
    data: str = ""

    def draw(self, sheet: Sheet) -> None:
        """The rules that the axis holds."""
        axis, values, way = (sheet.x, self.x, "x") if self.x else (sheet.y, self.y, "y")
        visible = [at for at in values if at is not None and axis.holds(at)]
        mark = {"type": "rule", "color": sheet.view.colours.line(self.meaning), "strokeDash": list(DOTTED), "clip": True}
        sheet.add(sheet.rows([{"at": at} for at in visible], self.data), mark, **{way: "at"})
        for at in visible:
            if way == "x":
                sheet.canvas.add_curve([sheet.x.across(at, sheet.width)] * 2, [0, sheet.height])
            else:
                sheet.canvas.add_curve([0, sheet.width], [sheet.y.down(at, sheet.height)] * 2)
        if visible and self.text:
            first = visible[0]
            where = {"beside": sheet.x.across(first, sheet.width)} if way == "x" else {"along": sheet.y.down(first, sheet.height)}
            sheet.note(self.text, self.meaning, **where)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Boxes:
    """Rectangles from `x`, `y` to `x2`, `y2` of the axes, in the colour of each row's `meaning`; those without height are lines.

    `is_whole` rounds them to px, so that neighbours meet without a seam.
    """

    rows: Sequence[Mapping[str, Any]]
    opacity: float = 1.0
    is_whole: bool = False
    line: float = 0  # px of lines in place of rectangles

    def draw(self, sheet: Sheet) -> None:
        """The rectangles, as far as they are inside the panel."""
        boxes: list[Row] = []
        for row in self.rows:
            ends = {"x": sheet.x.across(row["x"], sheet.width), "x2": sheet.x.across(row["x2"], sheet.width),
                    "y": sheet.y.down(row["y2"], sheet.height), "y2": sheet.y.down(row["y"], sheet.height)}  # fmt: skip
            most = {"x": sheet.width, "y": sheet.height}
            ends = {key: min(max(end, 0.0), most[key[0]]) for key, end in ends.items()}
            ends = {key: round(end) for key, end in ends.items()} if self.is_whole else ends
            boxes.append({**ends, "color": sheet.view.colours.line(row["meaning"])})
        data = sheet.rows(boxes)
        sheet.layers.append(marks.pixel_rules(data, width=self.line) if self.line else marks.pixel_boxes(data, opacity=self.opacity))


# -- the drawing --------------------------------------------------------------------------------------------------------------------


class Sheet:
    """A plot in the making: its axes and size in px, layers and data so far, and what words keep away from."""

    def __init__(self, plot: Plot, view: View, suffix: str) -> None:
        self.view, self.name = view, plot.name
        self.y = plot.y.axis(view.ends(f"y{suffix}"))
        names = [part.text for part in plot.parts if isinstance(part, Series) and part.text]
        self.left_margin, self.right_margin = margins(view, self.y, names)
        self.width = inner(view, self.left_margin, self.right_margin, plot.columns)
        ends = view.ends(f"x{suffix}")
        self.x = plot.x.fitting(self.width, ends) if plot.is_fitting or view.is_narrow else plot.x.axis(ends)
        self.height = min(plot.height, 250) if view.is_narrow else plot.height
        self.tips = Tips(about=plot.heading, x=self.x, y=self.y, units=(plot.x.unit, plot.y.unit), flag=plot.flag,
                         is_asked=view.is_page and not view.axes)  # fmt: skip
        self.canvas = Canvas(width=self.width, height=self.height)
        self.layers: list[Layer] = []
        self.data: dict[str, list[Row]] = {}
        self.keys: list[tuple[str, str]] = []
        self.ends: list[tuple[str, str, float]] = []  # names at the ends of lines, with px from the upper end
        self.notes: list[tuple[list[str], str, dict[str, Any]]] = []
        self.label_boxes: list[tuple[float, float, float, float]] = []
        self.sets: list[tuple[Sequence[Mapping[str, Any]], str]] = []  # rows drawn so far, and the names of their data sets

    def rows(self, rows: Sequence[Mapping[str, Any]], data: str = "") -> str:
        """Name of the data set of these rows, a new one unless they are drawn already."""
        name = next((name for known, name in self.sets if known is rows), "")
        if not name:
            name = f"{self.name}_{data or f'rows{len(self.sets)}'}"
            self.sets.append((rows, name))
            self.data[name] = [dict(row) for row in rows]
        return name

    def add(self, data: str, mark: Layer, **fields: str) -> None:
        """A layer whose fields stand along the axes."""
        axes = {"x": (self.x, False), "y": (self.y, True)}
        encoding = {way: marks.channel(axes[way][0], key, axes[way][1]) if way in axes else {"field": key} for way, key in fields.items()}
        self.layers.append({"data": {"name": data}, "mark": mark, "encoding": encoding})

    def place(self, across: Any, up: Any) -> tuple[Any, Any]:
        """Px of a point."""
        return self.x.across(across, self.width), self.y.down(up, self.height)

    def places(self, points: Sequence[tuple[float, float]]) -> tuple[Any, Any]:
        """Px of many points, across and down; of plain axes all at once."""
        if self.x.log or self.y.log:
            spots = [self.place(*point) for point in points]
            return [spot[0] for spot in spots], [spot[1] for spot in spots]
        across, up = np.asarray(points, dtype=float).reshape(-1, 2).T
        return self.place(across, up)

    def note(self, text: str, meaning: str, **where: Any) -> None:
        """Words to be placed `around` a point, `beside` a vertical rule, `along` a level or `inside` a span."""
        if text:
            self.notes.append((wrap(text, min(BROAD, self.width * 0.6)), meaning, where))

    def words(self) -> tuple[list[Row], list[Row]]:
        """Rows of all labels, placed, and of the lines from points to labels that stand far from them."""
        label_rows: list[Row] = []
        leaders: list[Row] = []
        centres = spread([down for _, _, down in self.ends], SIZE * 1.2, 2, self.height - 2)
        for (text, meaning, _), centre in zip(self.ends, centres, strict=True):
            label_rows += marks.label_rows(self.view.colours, meaning, [text], self.width + 8, centre)
        for lines, meaning, where in self.notes:
            spot = self._spot(lines, where)
            if spot:
                label_rows += marks.label_rows(self.view.colours, meaning, lines, *spot)
                leaders += self._leader(lines, spot, where.get("around"))
                wide = max(text_width(line) for line in lines)
                self.label_boxes.append((spot[0], spot[1] - SIZE * 0.7, spot[0] + wide, spot[1] + SIZE * (LEADING * len(lines) - 0.6)))
        return label_rows, leaders

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


# -- free places ---------------------------------------------------------------------------------------------------------------------


def spread(targets: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Centres at least `gap` apart within low..high, moved as little as possible (pool adjacent violators)."""
    order = sorted(range(len(targets)), key=targets.__getitem__)
    pools: list[list[float]] = []
    for place, index in enumerate(order):
        pools.append([targets[index] - place * gap, 1])
        while len(pools) > 1 and pools[-2][0] / pools[-2][1] > pools[-1][0] / pools[-1][1]:
            total, count = pools.pop()
            pools[-1][0] += total
            pools[-1][1] += count
    top, centres, place = high - (len(targets) - 1) * gap, [0.0] * len(targets), 0
    for total, count in pools:
        for _ in range(int(count)):
            centres[order[place]] = max(min(total / count, top), low) + place * gap
            place += 1
    return centres


class Canvas:
    """The area of a plot in px from its upper corner, as a raster of what labels keep away from: curves, points, other labels."""

    def __init__(self, width: float, height: float) -> None:
        self.width, self.height = width, height
        self.cells = np.zeros((int(height // CELL) + 1, int(width // CELL) + 1), dtype=bool)

    def add_curve(self, across: Sequence[float], down: Sequence[float]) -> None:
        """Keep labels away from a line through points."""
        points = np.column_stack([np.asarray(across, dtype=float), np.asarray(down, dtype=float)])
        points = points[np.isfinite(points).all(axis=1)]
        if len(points) < 2:
            self._mark(points)
            return
        steps = np.diff(points, axis=0)
        counts = np.clip(np.abs(steps).max(axis=1) / CELL, 1, 4 * sum(self.cells.shape)).astype(int) + 1
        segment = np.repeat(np.arange(len(steps)), counts)
        share = (np.arange(len(segment)) - np.repeat(np.cumsum(counts) - counts, counts)) / (counts[segment] - 1)
        self._mark(points[segment] + steps[segment] * share[:, None])

    def _mark(self, points: Any) -> None:
        columns, rows = (points[:, 0] // CELL).astype(int), (points[:, 1] // CELL).astype(int)
        inside = (columns >= 0) & (rows >= 0) & (columns < self.cells.shape[1]) & (rows < self.cells.shape[0])
        self.cells[rows[inside], columns[inside]] = True

    def add_point(self, across: float, down: float, size: float = 4.0) -> None:
        """Keep labels away from a point that reaches `size` px from its centre."""
        self.add_box(across - size, down - size, across + size, down + size)

    def add_box(self, x: float, y: float, x2: float, y2: float) -> None:
        """Keep labels away from a rectangle."""
        low_row, low_column = max(int(y // CELL), 0), max(int(x // CELL), 0)
        self.cells[low_row : max(int(y2 // CELL) + 1, 0), low_column : max(int(x2 // CELL) + 1, 0)] = True

    def _sums(self) -> Any:
        """Marked cells above and left of each corner: four of them count the marks in a rectangle."""
        sums = np.zeros((self.cells.shape[0] + 1, self.cells.shape[1] + 1), dtype=int)
        sums[1:, 1:] = self.cells.cumsum(axis=0).cumsum(axis=1)
        return sums

    def place(self, text: Sequence[str], across: float, down: float, size: float = SIZE, most: float = 130.0) -> Any:
        """Left end and middle of a label's first line, in the free place nearest to a point, right of it rather than left; or None."""
        wide, high = max(text_width(line, size) for line in text) + 2 * MARGIN, size * LEADING * len(text) + 2
        wide_cells, high_cells = int(wide // CELL) + 2, int(high // CELL) + 2
        rows, columns = self.cells.shape[0] - high_cells, self.cells.shape[1] - wide_cells
        if rows < 0 or columns < 0:
            return None
        sums = self._sums()
        marks = sums[high_cells:, wide_cells:] - sums[:-high_cells, wide_cells:]
        marks = marks - sums[high_cells:, :-wide_cells] + sums[:-high_cells, :-wide_cells]
        x, y = np.arange(marks.shape[1]) * CELL, np.arange(marks.shape[0])[:, None] * CELL
        sideways = np.maximum(np.maximum(x - across, across - x - wide), 0)
        upwards = np.maximum(np.maximum(y - down, down - y - high), 0)
        off_centre = np.abs(x + wide / 2 - across) / wide + np.abs(y + high / 2 - down) / high
        away = np.hypot(sideways, upwards)
        cost = np.where((marks == 0) & (away <= most) & (away >= 5), away + 1.5 * off_centre + 4.0 * (x + wide / 2 < across), np.inf)
        best = np.unravel_index(np.argmin(cost), cost.shape)
        if not np.isfinite(cost[best]):
            return None
        corner_x, corner_y = float(best[1] * CELL), float(best[0] * CELL)
        self.add_box(corner_x, corner_y, corner_x + wide, corner_y + high)
        return corner_x + MARGIN, corner_y + 1 + size * LEADING / 2

    def first(self, text: Sequence[str], candidates: Sequence[tuple[float, float]], size: float = SIZE) -> Any:
        """The first free of the places (left end, upper end) for a label, as left end and middle of its first line; None if none is."""
        wide, high = max(text_width(line, size) for line in text), size * LEADING * len(text)
        for x, y in candidates:
            x2, y2 = x + wide + MARGIN, y + high
            if x < 0 or y < 0 or x2 > self.width or y2 > self.height:
                continue
            if not self.cells[int(y // CELL) : int(y2 // CELL) + 1, int((x - MARGIN) // CELL) : int(x2 // CELL) + 1].any():
                self.add_box(x - MARGIN, y, x2, y2)
                return x, y + size * LEADING / 2
        return None

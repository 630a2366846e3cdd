"""What a picture is, for whom it is drawn, and how panels, title and caption become one specification."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from headway.core.errors import BadValue
from headway.report.pictures import file, lettering, palette
from headway.report.pictures.lettering import LEADING, SIZE, TITLE_SIZE, text_width, wrap
from headway.report.pictures.marks import Layer, Row, channel, labels
from headway.report.pictures.scale import PictureAxis, widest

SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
DEFAULT_WIDTH = 760
WIDTHS = (320, 1200)
NARROW = 520  # px; below, panels stand one over the other and names of lines over the panel
EDGE = 12  # px that stay free at every side
TICKS = 22  # px below a panel for the text of its ticks
LINE = SIZE * LEADING
LEAST_LEFT = 64.0  # px left of a panel, so that panels below each other are aligned
MOST_MOVING = 70  # rows of one set while a slider moves
BETWEEN = 14  # px between a row of panels and the next, beside their own margins


def thinned(rows: Sequence[Any]) -> Sequence[Any]:
    """Every second or third row of a long curve, and its last: enough while a slider moves."""
    stride = -(-len(rows) // MOST_MOVING)
    return rows if stride < 2 else [*rows[:-1:stride], rows[-1]]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """Whom a picture is drawn for: its width in px, its theme, whether title and caption are in it, and axes that stay as they are."""

    width: int = DEFAULT_WIDTH
    theme: str = "light"
    words: bool = True
    axes: Mapping[str, Sequence[float]] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        if not WIDTHS[0] <= self.width <= WIDTHS[1]:
            raise BadValue("width", self.width, f"{WIDTHS[0]} to {WIDTHS[1]} px")
        palette.theme(self.theme)

    @property
    def is_narrow(self) -> bool:
        """Whether it is drawn for a telephone."""
        return self.width < NARROW

    @property
    def is_page(self) -> bool:
        """Whether a page shows it, where a pointer or a key goes from point to point."""
        return self.theme == palette.PAGE

    @property
    def colours(self) -> palette.Theme:
        """Colours of the theme."""
        return palette.theme(self.theme)

    def ends(self, name: str) -> Sequence[float] | None:
        """Ends of an axis that stay as they are."""
        return self.axes.get(name)

    def thinned(self, rows: Sequence[Any]) -> Sequence[Any]:
        """Fewer rows of a long curve while a slider moves; all at rest."""
        return thinned(rows) if self.axes else rows


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A drawing: Vega-Lite specification, title and subtitle, the sentence that says what to see, and a text in place of it."""

    spec: Mapping[str, Any]
    title: str
    subtitle: str
    caption: str
    alt: str
    axes: Mapping[str, tuple[float, float]]  # ends by axis, which a View can keep

    @property
    def data(self) -> Mapping[str, list[Row]]:
        """Named data sets of the specification: a page swaps them without drawing anew."""
        return self.spec["datasets"]

    @property
    def shape(self) -> str:
        """Hash of the specification without its data: equal shapes differ in data alone."""
        bare = {key: value for key, value in self.spec.items() if key not in ("datasets", "description")}
        return hashlib.sha256(json.dumps(bare, sort_keys=True).encode()).hexdigest()[:16]

    def save(self, path: Any) -> None:
        """Write it to a file that ends in .png, .svg or .html."""
        file.check_path(str(path))
        file.save(self.spec, str(path))

    def __repr__(self) -> str:
        return f"<headway picture: {self.title}; save('picture.svg') writes it>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """The picture for a notebook: the specification, and where the extra `plot` is installed an SVG."""
        bundle: dict[str, Any] = {"application/vnd.vegalite.v5+json": self.spec, "text/plain": repr(self)}
        image = file.svg(self.spec)
        return bundle | ({"image/svg+xml": image} if image else {})


@dataclasses.dataclass(slots=True, kw_only=True)
class Panel:
    """One plot: inner size in px, axes, layers with their data, what stands over it (`heading`) and the names of lines, if not beside."""

    width: float
    height: float
    layers: Sequence[Layer]
    data: Mapping[str, list[Row]]
    x: PictureAxis | None = None
    y: PictureAxis | None = None
    left_margin: float = 0.0
    right_margin: float = 0.0
    heading: str = ""
    keys: Sequence[tuple[str, str]] = ()  # (name, meaning) of lines that are named over the panel
    below: float | None = None  # px under the panel; None: room for ticks and the axis title

    @property
    def bottom(self) -> float:
        """Px under the panel."""
        if self.below is not None:
            return self.below
        titles = wrap(self.x.title, self.outer) if self.x else []
        return (TICKS if self.x and self.x.ticks else 6) + (LINE * len(titles) + 4 if titles else 0)

    @property
    def outer(self) -> float:
        """Width with both margins."""
        return self.left_margin + self.width + self.right_margin

    def head(self) -> tuple[list[str], list[list[tuple[str, str]]]]:
        """Lines of the heading, and of the names over the panel."""
        return wrap(self.heading, self.outer) if self.heading else [], key_lines(self.keys, self.outer)

    @property
    def top(self) -> float:
        """Px over the panel."""
        heading, names = self.head()
        return (len(heading) + len(names)) * LINE + (10 if heading or names else 4)


def key_lines(keys: Sequence[tuple[str, str]], width: float) -> list[list[tuple[str, str]]]:
    """Names of lines, in as many rows as the width asks for."""
    rows: list[list[tuple[str, str]]] = []
    x = width + 1.0
    for name, meaning in keys:
        wide = text_width(name) + 14
        if x + wide > width:
            rows.append([])
            x = 0.0
        rows[-1].append((name, meaning))
        x += wide
    return rows


def margins(view: View, y: PictureAxis | None, names: Sequence[str] = ()) -> tuple[float, float]:
    """Px left of a panel for the ticks of y, and right of it for names at the ends of lines."""
    left_margin = max(widest(y) + 10, LEAST_LEFT) if y else 0.0
    right_margin = 10.0 if view.is_narrow or not names else max(text_width(name) for name in names) + 14
    return left_margin, right_margin


def inner(view: View, left_margin: float, right_margin: float, columns: int = 1) -> float:
    """Width of one of `columns` panels beside each other, with these margins."""
    columns = 1 if view.is_narrow else columns
    return (view.width - 2 * EDGE) / columns - left_margin - right_margin


# -- composition --------------------------------------------------------------------------------------------------------------------


class Drawing(Protocol):
    """The declaration of a panel, of any kind: curves, bars, dots, blocks, a sketch."""

    def panel(self, view: View, suffix: str) -> Panel:
        """The panel for a reader; `suffix` follows the names of its axes."""
        ...


def compose(view: View, drawings: Sequence[Sequence[Drawing]], *, title: str, subtitle: str, caption: str) -> Picture:
    """Panels in rows, with title, subtitle and caption, as one specification; in a narrow view every panel has a row of its own."""
    drawings = [[drawing] for row in drawings for drawing in row] if view.is_narrow else drawings
    suffixes = iter(["", *(str(number) for number in range(2, sum(map(len, drawings)) + 1))])  # x and y of the first, x2 of the second
    axes: dict[str, tuple[float, float]] = {}
    rows: list[list[Panel]] = []
    for row in drawings:
        rows.append([])
        for drawing in row:
            suffix = next(suffixes)
            panel = drawing.panel(view, suffix)
            axes |= {f"{way}{suffix}": (axis.low, axis.high) for way, axis in (("x", panel.x), ("y", panel.y)) if axis}
            rows[-1].append(panel)
    head, foot = _page_lines(view, title, subtitle, caption)
    head_height, foot_height = (sum(size * LEADING for _, size, _, _ in lines) for lines in (head, foot))
    head_height, foot_height = head_height + 10 * view.words, foot_height + 12 * bool(foot)
    tops = [max(panel.top for panel in row) for row in rows]
    bottoms = [max(panel.bottom for panel in row) for row in rows]
    between = [BETWEEN + bottom + top for bottom, top in zip(bottoms[:-1], tops[1:], strict=True)]
    gap = max(between, default=BETWEEN)
    total = sum(max(panel.height for panel in row) for row in rows) + tops[0] + bottoms[-1] + gap * (len(rows) - 1)
    datasets: dict[str, list[Row]] = {}
    panels_drawn = []
    for place, row in enumerate(rows):
        for number, panel in enumerate(row):
            datasets |= dict(panel.data)
            name = f"panel{place}{number}"
            datasets[name] = _panel_words(view, panel)
            extra = [labels(name)]
            if place == number == 0:
                start = -tops[0] - head_height
                extra = [_paper(panel.left_margin + EDGE, start - EDGE, view.width, head_height + total + foot_height + 2 * EDGE), *extra]
                places = {key: [] for key in sorted({(size, bold) for _, size, _, bold in (*head, *foot)})}
                for lines, y in ((head, start), (foot, start + head_height + total + 12)):
                    for text, size, tone, bold in lines:
                        middle = round(y + size * LEADING / 2, 1)
                        places[size, bold].append({"x": -panel.left_margin, "y": middle, "text": text, "color": tone})
                        y += size * LEADING
                for of, ((size, bold), words) in enumerate(places.items()):
                    datasets[f"words{of}"] = words
                    extra.append(labels(f"words{of}", size=size, bold=bold))
            panels_drawn.append(_panel_spec(panel, extra))
    spec: dict[str, Any] = {"$schema": SCHEMA, "background": view.colours.paper, "padding": 0, "config": _config(view)}
    spec |= {"description": f"{title}. {caption}", "datasets": datasets}
    spec |= {"params": [{"name": "lit", "value": ""}]} if view.is_page else {}  # what a page reads, by its name
    if len(panels_drawn) == 1:
        spec |= panels_drawn[0]
    else:  # what stands around a panel has a place of its own, so that the panels alone are aligned
        across = [before.right_margin + after.left_margin for row in rows for before, after in itertools.pairwise(row)]
        spacing = {"column": round(max(across, default=0), 1), "row": round(max(between, default=0), 1)}
        spec |= {"concat": panels_drawn, "columns": max(map(len, rows)), "spacing": spacing, "bounds": "flush", "align": "each"}
    return Picture(spec=spec, title=title, subtitle=subtitle, caption=caption, alt=f"{title}. {caption}", axes=axes)


PageLine = tuple[str, float, str, bool]  # text, size, colour, bold


def _page_lines(view: View, title: str, subtitle: str, caption: str) -> tuple[list[PageLine], list[PageLine]]:
    """Lines over the panels and below them."""
    if not view.words:
        return [], []
    wide, size = view.width - 2 * EDGE, TITLE_SIZE - 1 if view.is_narrow else TITLE_SIZE
    head: list[PageLine] = [(text, size, view.colours.ink, True) for text in wrap(title, wide, size, True)]
    head += [(text, SIZE, view.colours.muted, False) for text in wrap(subtitle, wide)]
    return head, [(text, SIZE, view.colours.ink, False) for text in wrap(caption, wide)]


def _panel_words(view: View, panel: Panel) -> list[Row]:
    """Heading, names of lines and the title of the x axis."""
    theme, start = view.colours, -panel.left_margin
    heading, names = panel.head()
    y = -((len(heading) + len(names)) * LINE + 10) + LINE / 2
    rows: list[Row] = [{"x": start, "y": y + place * LINE, "text": text, "color": theme.muted} for place, text in enumerate(heading)]
    for place, line_of_names in enumerate(names, len(heading)):
        x = start
        for text, meaning in line_of_names:
            rows.append({"x": x, "y": y + place * LINE, "text": text, "color": theme.label(meaning)})
            x += text_width(text) + 14
    if panel.x and panel.x.title:
        below = panel.height + (TICKS if panel.x.ticks else 6) + LINE / 2
        for place, text in enumerate(wrap(panel.x.title, panel.outer)):
            across = max(start, min((panel.width - text_width(text)) / 2, panel.width + panel.right_margin - text_width(text)))
            rows.append({"x": across, "y": below + place * LINE, "text": text, "color": theme.muted})
    return rows


def _paper(left_margin: float, top: float, width: float, height: float) -> Layer:
    """An invisible sheet that gives the drawing its size."""
    corners = {"x": -left_margin, "x2": width - left_margin - 1, "y": top, "y2": top + height}
    encoding = {name: {"value": place} for name, place in corners.items()}
    return {"data": {"values": [{}]}, "mark": {"type": "rect", "color": "transparent"}, "encoding": encoding}


def _panel_spec(panel: Panel, extra: Sequence[Layer]) -> dict[str, Any]:
    layers = list(panel.layers)
    axes = {way: axis for way, axis in (("x", panel.x), ("y", panel.y)) if axis}
    anchor = {way: channel(axis, way, way == "y") for way, axis in axes.items() if axis.ticks}
    if anchor:  # axes are drawn although a data set is empty
        corner = {"x": 0, "y": 0} | {way: axis.low for way, axis in axes.items()}
        layers = [{"data": {"values": [corner]}, "mark": {"type": "point", "opacity": 0, "size": 0}, "encoding": anchor}, *layers]
    return {"width": round(panel.width, 1), "height": round(panel.height, 1), "layer": [*layers, *extra], "view": {"stroke": None}}


def _config(view: View) -> dict[str, Any]:
    theme = view.colours
    letters = {"labelFont": lettering.FONT, "labelFontSize": SIZE, "labelColor": theme.muted, "labelPadding": 6}
    axis = letters | {"gridColor": theme.grid, "gridOpacity": 0.7, "domain": False, "ticks": False}
    below = {"ticks": True, "tickColor": theme.grid, "tickSize": 4, "domain": True, "domainColor": theme.grid, "labelPadding": 3}
    text = {"font": lettering.FONT, "fontSize": SIZE}
    page = {"aria": False} if view.is_page else {}  # it has words of its own for a drawing: to make some for each point takes half the time
    return page | {"font": lettering.FONT, "axis": axis, "axisX": below, "view": {"stroke": None}, "text": text}

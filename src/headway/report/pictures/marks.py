"""Layers of a picture in Vega-Lite's words: lines, bands, points, bars, regions, rules and labels, each over a named data set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headway.report.pictures.lettering import SIZE
from headway.report.pictures.palette import Theme
from headway.report.pictures.scale import PictureAxis

Layer = dict[str, Any]
Row = dict[str, Any]


def channel(scale_axis: PictureAxis, field: str, grid: bool = False) -> dict[str, Any]:
    """Encoding of a field along an axis; every layer of a panel names the same axis."""
    places, texts = [place for place, _ in scale_axis.ticks], [text for _, text in scale_axis.ticks]
    guide: dict[str, Any] = {"title": None, "grid": grid, "values": places, "labelOverlap": False, "labelBound": False, "labelFlush": False}
    guide["labelExpr"] = f"{_literal(texts)}[indexof({_literal(places)}, datum.value)]"
    return {"field": field, "type": "quantitative", "scale": scale_axis.scale, "axis": guide if places else None}


def _literal(values: Sequence[Any]) -> str:
    import json

    return json.dumps(list(values), ensure_ascii=False)


def pixel(field: str) -> dict[str, Any]:
    """Encoding of a field that holds px."""
    return {"field": field, "type": "quantitative", "scale": None}


def colour(field: str = "color") -> dict[str, Any]:
    """Encoding of a field that holds a colour."""
    return {"field": field, "type": "nominal", "scale": None, "legend": None}


def line(data: str, x: PictureAxis, across: str, y: PictureAxis, up: str, stroke: str, *, width: float = 2, dash: Sequence[int] = (),
         steps: str = "") -> Layer:  # fmt: skip
    """A curve through the rows of a data set; a null breaks it."""
    mark: Layer = {"type": "line", "clip": True, "color": stroke, "strokeWidth": width, "strokeJoin": "round"}
    mark |= {"strokeDash": list(dash)} if dash else {}
    mark |= {"interpolate": steps} if steps else {}
    return {"data": {"name": data}, "mark": mark, "encoding": {"x": channel(x, across), "y": channel(y, up, True)}}


def band(data: str, x: PictureAxis, across: str, y: PictureAxis, low: str, high: str, fill: str, opacity: float = 0.16) -> Layer:
    """The area between two fields."""
    mark = {"type": "area", "clip": True, "color": fill, "opacity": opacity, "line": False}
    encoding = {"x": channel(x, across), "y": channel(y, low, True), "y2": {"field": high}}
    return {"data": {"name": data}, "mark": mark, "encoding": encoding}


def points(data: str, x: PictureAxis, across: str, y: PictureAxis, up: str, fill: str = "", *, size: float = 70, shape: str = "circle",
           opacity: float = 1.0, hollow: bool = False) -> Layer:  # fmt: skip
    """A point per row; without a colour the rows' own `color`."""
    mark: Layer = {
        "type": "point",
        "filled": not hollow,
        "size": size,
        "shape": shape,
        "opacity": opacity,
        "clip": True,
        "strokeWidth": 1.8,
    }
    mark |= {"color": fill} if fill else {}
    tone = {} if fill else {"color": colour()}
    return {"data": {"name": data}, "mark": mark, "encoding": {"x": channel(x, across), "y": channel(y, up, True), **tone}}


def region(data: str, x: PictureAxis, fill: str, opacity: float = 0.45) -> Layer:
    """Shaded spans of the x axis, `from` .. `to`, as high as the panel."""
    mark = {"type": "rect", "color": fill, "opacity": opacity, "clip": True}
    return {"data": {"name": data}, "mark": mark, "encoding": {"x": channel(x, "from"), "x2": {"field": "to"}}}


def uprights(data: str, x: PictureAxis, stroke: str, dash: Sequence[int] = (2, 3)) -> Layer:
    """Vertical rules at `at`."""
    mark = {"type": "rule", "color": stroke, "strokeDash": list(dash), "clip": True}
    return {"data": {"name": data}, "mark": mark, "encoding": {"x": channel(x, "at")}}


def levels(data: str, y: PictureAxis, stroke: str, dash: Sequence[int] = (2, 3)) -> Layer:
    """Horizontal rules at `at`."""
    mark = {"type": "rule", "color": stroke, "strokeDash": list(dash), "clip": True}
    return {"data": {"name": data}, "mark": mark, "encoding": {"y": channel(y, "at", True)}}


def pixel_rules(data: str, width: float = 1.0, dash: Sequence[int] = ()) -> Layer:
    """Straight lines in px, `x`, `y` to `x2`, `y2`, in the rows' own colour."""
    mark: Layer = {"type": "rule", "strokeWidth": width} | ({"strokeDash": list(dash)} if dash else {})
    encoding = {"x": pixel("x"), "y": pixel("y"), "x2": {"field": "x2"}, "y2": {"field": "y2"}, "color": colour()}
    return {"data": {"name": data}, "mark": mark, "encoding": encoding}


def pixel_boxes(data: str, opacity: float = 1.0, radius: float = 0, stroke: str | None = None) -> Layer:
    """Filled rectangles in px, `x`, `y` to `x2`, `y2`, in the rows' own colour."""
    mark: Layer = {"type": "rect", "opacity": opacity, "cornerRadius": radius} | ({"stroke": stroke, "strokeWidth": 1} if stroke else {})
    encoding = {"x": pixel("x"), "y": pixel("y"), "x2": {"field": "x2"}, "y2": {"field": "y2"}, "color": colour()}
    return {"data": {"name": data}, "mark": mark, "encoding": encoding}


def pixel_points(data: str, size: float = 60, shape: str = "circle", hollow: bool = False) -> Layer:
    """Points in px, `x`, `y`, in the rows' own colour."""
    mark = {"type": "point", "filled": not hollow, "size": size, "shape": shape, "opacity": 1, "strokeWidth": 1.8}
    return {"data": {"name": data}, "mark": mark, "encoding": {"x": pixel("x"), "y": pixel("y"), "color": colour()}}


def labels(data: str, *, size: float = SIZE, align: str = "left", bold: bool = False) -> Layer:
    """Text at px `x`, `y` (its middle) in the rows' own colour."""
    mark: Layer = {"type": "text", "align": align, "baseline": "middle", "fontSize": size} | ({"fontWeight": "bold"} if bold else {})
    encoding = {"x": pixel("x"), "y": pixel("y"), "text": {"field": "text", "type": "nominal"}, "color": colour()}
    return {"data": {"name": data}, "mark": mark, "encoding": encoding}


def label_rows(theme: Theme, meaning: str, lines_of_text: Sequence[str], x: float, y: float, size: float = SIZE) -> list[Row]:
    """Rows of a label, one for each of its lines, from the middle of the first."""
    tone = theme.label(meaning)
    return [
        {"x": round(x, 1), "y": round(y + place * size * 1.25, 1), "text": text, "color": tone} for place, text in enumerate(lines_of_text)
    ]


def values(rows: Sequence[Mapping[str, Any]], key: str) -> list[float]:
    """The numbers of a column."""
    return [row[key] for row in rows if row.get(key) is not None]

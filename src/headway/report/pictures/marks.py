"""Layers of a picture in Vega-Lite's words, each over a named data set: what stands in px, and the channels of what stands along axes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from headway.report.pictures.lettering import SIZE
from headway.report.pictures.palette import Theme
from headway.report.pictures.scale import PictureAxis

Layer = dict[str, Any]
Row = dict[str, Any]


def channel(scale_axis: PictureAxis, field: str, grid: bool = False) -> dict[str, Any]:
    """Encoding of a field along an axis; every layer of a panel names the same axis."""
    places, texts = ([tick[part] for tick in scale_axis.ticks] for part in (0, 1))
    guide: dict[str, Any] = {"title": None, "grid": grid, "values": places, "labelOverlap": False, "labelBound": False, "labelFlush": False}
    guide["labelExpr"] = f"{json.dumps(texts, ensure_ascii=False)}[indexof({json.dumps(places)}, datum.value)]"
    return {"field": field, "type": "quantitative", "scale": scale_axis.scale, "axis": guide if places else None}


def _pixels(data: str, mark: Layer, **fields: str) -> Layer:
    """A layer at px `x`, `y`, in the rows' own colour."""
    encoding: Layer = {way: {"field": way, "type": "quantitative", "scale": None} for way in ("x", "y")}
    encoding |= {"color": {"field": "color", "type": "nominal", "scale": None, "legend": None}}
    return {"data": {"name": data}, "mark": mark, "encoding": encoding | {way: {"field": field} for way, field in fields.items()}}


def pixel_rules(data: str, width: float = 1.0, dash: Sequence[int] = ()) -> Layer:
    """Straight lines from `x`, `y` to `x2`, `y2`."""
    return _pixels(data, {"type": "rule", "strokeWidth": width} | ({"strokeDash": list(dash)} if dash else {}), x2="x2", y2="y2")


def pixel_boxes(data: str, opacity: float = 1.0, radius: float = 0, stroke: str | None = None) -> Layer:
    """Filled rectangles from `x`, `y` to `x2`, `y2`."""
    mark: Layer = {"type": "rect", "opacity": opacity, "cornerRadius": radius} | ({"stroke": stroke, "strokeWidth": 1} if stroke else {})
    return _pixels(data, mark, x2="x2", y2="y2")


def pixel_points(data: str, size: float) -> Layer:
    """Dots at `x`, `y`."""
    return _pixels(data, {"type": "point", "filled": True, "size": size, "shape": "circle", "opacity": 1, "strokeWidth": 1.8})


def tips(data: str) -> Layer:
    """Places at px `x`, `y` that show nothing: what a page says of the nearest of them stands in their rows."""
    mark: Layer = {"type": "point", "size": 1, "opacity": 0, "aria": False}
    encoding = {way: {"field": way, "type": "quantitative", "scale": None} for way in ("x", "y")}
    return {"name": data, "data": {"name": data}, "mark": mark, "encoding": encoding}


def highlight(layer: Layer, tone: str, **more: float) -> Layer:
    """A layer whose rows take this colour, and more, while a page reads the point of their `name`: the parameter `lit` holds it."""
    mark, encoding = layer["mark"], layer["encoding"]
    usual = {"color": encoding.get("color") or {"value": mark.get("color")}} | {way: {"value": mark.get(way)} for way in more}
    for way, value in {"color": tone, **more}.items():
        encoding[way] = {"condition": {"test": "lit === datum.name", "value": value}, **usual[way]}
    return layer


def labels(data: str, *, size: float = SIZE, align: str = "left", bold: bool = False) -> Layer:
    """Text around the height `y`, from `x` on."""
    mark: Layer = {"type": "text", "align": align, "baseline": "middle", "fontSize": size} | ({"fontWeight": "bold"} if bold else {})
    layer = _pixels(data, mark)
    layer["encoding"]["text"] = {"field": "text", "type": "nominal"}
    return layer


def label_rows(theme: Theme, meaning: str, lines_of_text: Sequence[str], x: float, y: float) -> list[Row]:
    """Rows of a label, one for each of its lines, from the middle of the first."""
    tone = theme.label(meaning)
    return [
        {"x": round(x, 1), "y": round(y + place * SIZE * 1.25, 1), "text": text, "color": tone} for place, text in enumerate(lines_of_text)
    ]

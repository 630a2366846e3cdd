"""Figures as Vega-Lite specifications (plain dicts), and as PNG, SVG or HTML files; other modules compute the data."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from headway.core import columns
from headway.core.errors import BadFile, BadValue, MissingExtra

SUFFIXES = (".png", ".svg", ".html")
SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
COLOURS = {"compute": "#d1495b", "weights": "#2e86ab", "KV cache": "#3c9d5d", "network": "#8d6cab", "the largest": "#222222",
           "expected": "#888888"}  # fmt: skip
AXIS_UNITS = {
    "s": ("ms", 1e3),
    "token/s": ("tokens/s", 1.0),
    "USD/Mtok": ("USD per Mtok", 1.0),
    "token": ("tokens", 1.0),
}  # units of axes
MOST_POINTS = 5000
MOST_SERIES = 12
SINGLE_DATUM = {"values": [{}]}  # data of a single mark
CONFIG = {
    "background": "white",
    "font": "Helvetica, Arial, sans-serif",
    "axis": {"labelFontSize": 12, "titleFontSize": 13, "gridColor": "#e8e8e8", "titleFontWeight": "normal"},
    "legend": {"labelFontSize": 12, "titleFontSize": 12, "symbolStrokeWidth": 3, "symbolOpacity": 1},
    "title": {"fontSize": 15, "subtitleFontSize": 12, "anchor": "start", "subtitleColor": "#555555"},
    "view": {"stroke": None},
}


def check_path(path: str) -> None:
    """Raise an error if no figure can be written to `path`, before any work is done."""
    if Path(path).suffix.lower() not in SUFFIXES:
        raise BadValue("--plot", path, "a file that ends in .png, .svg or .html")
    if not Path(path).absolute().parent.is_dir():
        raise BadFile(path, "its folder does not exist")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A figure as a Vega-Lite specification, which notebooks draw."""

    spec: Mapping[str, Any]

    def save(self, path: Any) -> None:
        """Write the figure to a file that ends in .png, .svg or .html."""
        check_path(str(path))
        save(self.spec, str(path))

    def __repr__(self) -> str:
        return f"<headway figure: {_title(self.spec)}; save('figure.svg') writes it>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """The figure for a notebook: the specification, and where the extra `plot` is installed an SVG."""
        bundle: dict[str, Any] = {"application/vnd.vegalite.v5+json": self.spec, "text/plain": repr(self)}
        with contextlib.suppress(ImportError):
            import vl_convert

            bundle["image/svg+xml"] = vl_convert.vegalite_to_svg(json.dumps(self.spec, allow_nan=False))
        return bundle


def _title(spec: Mapping[str, Any]) -> str:
    title = spec.get("title", "")
    return str(title.get("text", "") if isinstance(title, Mapping) else title)


def save(spec: Mapping[str, Any], path: str) -> None:
    """Write a specification to `path`; the ending selects the format."""
    try:
        import vl_convert
    except ImportError:
        raise MissingExtra("--plot", "plot") from None
    text, target = json.dumps(spec, allow_nan=False), Path(path)
    try:
        if target.suffix.lower() == ".png":
            target.write_bytes(vl_convert.vegalite_to_png(text, scale=2))
        elif target.suffix.lower() == ".svg":
            target.write_text(vl_convert.vegalite_to_svg(text), encoding="utf-8")
        else:
            target.write_text(vl_convert.vegalite_to_html(text, bundle=True), encoding="utf-8")
    except OSError as error:
        raise BadFile(path, f"cannot be written ({error.strerror or error})") from None


# -- the lecture's two curves -----------------------------------------------------------------------------------------------------


def lecture(curves: Any, title: str, subtitle: str) -> dict[str, Any]:
    """Figure of latency against batch and, if a price is known, of cost against batch."""
    panels = [_panel(curves, curves.times, "s", "time of one decode step", curves.latency_floor, "latency floor", None)]
    if curves.costs:
        top = 6 * curves.cost_floor
        panels.append(_panel(curves, curves.costs, "USD/Mtok", "cost of a million output tokens", curves.cost_floor, "cost floor", top))
    note = "bold: the largest of compute, weights + KV cache, and network, at peak rates (the floor); dashed: expected"
    return {"$schema": SCHEMA, "config": CONFIG, "title": {"text": title, "subtitle": [subtitle, note]}, "hconcat": panels}


def _panel(curves: Any, lines: Mapping[str, Any], unit: str, name: str, floor: float, floor_name: str, top: float | None) -> dict[str, Any]:
    axis_unit, factor = AXIS_UNITS[unit]
    values_by_line = {"the largest" if key == "floor" else key: values for key, values in lines.items()}
    points = [
        {"batch": float(batch), "line": key, "value": float(value) * factor}
        for key, values in values_by_line.items()
        for batch, value in zip(curves.batch, values, strict=True)
    ]
    domain = {"domain": [0, float(curves.batch[-1])], "nice": False}
    scale: dict[str, Any] = {"zero": True, "nice": top is None} | ({"domain": [0, top * factor], "clamp": False} if top else {})
    x = {"field": "batch", "type": "quantitative", "title": "batch (sequences decoded together)", "scale": domain}
    y = {"field": "value", "type": "quantitative", "title": f"{name} ({axis_unit})", "scale": scale}
    layers = [_lines(points, x, y), *_marks(curves, floor * factor, f"{floor_name} {floor * factor:.3g} {axis_unit.partition(' ')[0]}", y)]
    return {"width": 440, "height": 330, "layer": layers}


def _lines(points: list[dict[str, Any]], x: dict[str, Any], y: dict[str, Any]) -> dict[str, Any]:
    names = list(COLOURS)
    colour = {"field": "line", "type": "nominal", "title": None, "sort": names, "scale": {"domain": names, "range": list(COLOURS.values())}}
    bold = {"condition": {"test": "datum.line === 'the largest'", "value": 4.5}, "value": 1.8}
    dashed = {"condition": {"test": "datum.line === 'expected'", "value": [5, 4]}, "value": [1, 0]}
    encoding = {"x": x, "y": y, "color": colour, "strokeWidth": bold, "strokeDash": dashed}
    bottom = "datum.line === 'the largest'"  # keeps the covered line visible
    mark = {"mark": {"type": "line", "clip": True}, "encoding": encoding}
    layers = [mark | {"transform": [{"filter": test}]} for test in (bottom, f"!({bottom})")]
    return {"data": {"values": points}, "layer": layers}


def _marks(curves: Any, floor: float, floor_text: str, y: dict[str, Any]) -> list[dict[str, Any]]:
    """Labelled marks: the floor as a horizontal line, knee and capacity as vertical lines."""
    level: dict[str, Any] = {"y": {"datum": floor}}
    below = 12 if floor_text.startswith("cost") else -8  # on the free side of the curves
    words = {"type": "text", "text": floor_text, "align": "right", "dx": -4, "dy": below, "fontSize": 12}
    layers = [
        {"data": SINGLE_DATUM, "mark": {"type": "rule", "strokeDash": [2, 3], "color": "#222222"}, "encoding": level},
        {"data": SINGLE_DATUM, "mark": words, "encoding": level | {"x": {"value": 440}}},
    ]
    last = float(curves.batch[-1])
    if curves.knee is not None and 1 < curves.knee <= last:
        layers += _upright(curves.knee, [f"knee: batch {curves.knee:,.0f}"])
    elif curves.turn and 1 < curves.turn[0] <= last:
        later = f"only beyond {last:,.0f}" if curves.knee else "never"
        layers += _upright(curves.turn[0], [f"{curves.turn[1]} = weights: batch {curves.turn[0]:,.0f}", f"compute takes over {later}"])
    if curves.capacity is not None:
        layers += _upright(curves.capacity, [f"HBM is full: batch {curves.capacity:,.0f}"], 46)
    return layers


def _upright(batch: float, lines: list[str], y: int = 14) -> list[dict[str, Any]]:
    x: dict[str, Any] = {"x": {"datum": batch}}
    words = {"type": "text", "text": lines, "align": "left", "dx": 5, "fontSize": 12}
    return [
        {"data": SINGLE_DATUM, "mark": {"type": "rule", "strokeDash": [2, 3], "color": "#222222"}, "encoding": x},
        {"data": SINGLE_DATUM, "mark": words, "encoding": x | {"y": {"value": y}}},
    ]


# -- any table --------------------------------------------------------------------------------------------------------------------


Points = Sequence[Mapping[str, Any]]


def table(rows: Points, x: str, ys: Sequence[str], series: Sequence[str], title: str, subtitle: str = "") -> dict[str, Any]:
    """Figure with a panel per column of `ys` against `x`, a line per combination of `series`; interval shaded, floor dashed."""
    rows_with_x = [row for row in rows if row.get(x) is not None]
    fitting = [row for row in rows_with_x if row.get("fits", True)]
    if fitting and len(fitting) < len(rows_with_x):
        subtitle = _join_notes(subtitle, f"points that do not fit, left out: {len(rows_with_x) - len(fitting)}")
    plotted_rows = (fitting or rows_with_x)[:MOST_POINTS]
    points = [{**{_field(key): row.get(key) for key in _needed(x, ys)}, "line": _series(row, series)} for row in plotted_rows]
    line_names = list(dict.fromkeys(point["line"] for point in points))
    names = line_names[:MOST_SERIES]
    if len(line_names) > len(names):
        subtitle = _join_notes(subtitle, f"the first {len(names)} of {len(line_names)} lines")
    points = [point for point in points if point["line"] in names]
    if not points:
        raise BadValue("--plot", x, "rows with numbers to draw")
    panels = [_chart(points, x, key, len(names) > 1) for key in ys if any(point[key] is not None for point in points)]
    return {"$schema": SCHEMA, "config": CONFIG, "title": {"text": title, "subtitle": subtitle}, "hconcat": panels}


def _join_notes(*parts: str) -> str:
    return "; ".join(part for part in parts if part)


def _series(row: Mapping[str, Any], series: Sequence[str]) -> str:
    from headway.core.listing import cell

    return ", ".join(f"{key} {cell(key, row)}" if key not in ("model", "system", "line") else str(row[key]) for key in series)


def _field(key: str) -> str:
    """Key in Vega-Lite's notation, where an unescaped dot means a nested field."""
    return key.replace(".", "_")


def _ends(key: str) -> tuple[str, str, str]:
    """Keys of a column's floor, low end and high end, which need not exist."""
    stem, tail = (key[:-2], "_s") if key.endswith("_s") and columns.unit(key) == "s" else (key, "")
    return f"{stem}_floor{tail}", f"{stem}_lo{tail}", f"{stem}_hi{tail}"


def _needed(x: str, ys: Sequence[str]) -> list[str]:
    ends = [end for key in ys for end in _ends(key) if end in columns.declared()]
    return list(dict.fromkeys([x, *ys, *ends]))


def _axis(key: str, values: Sequence[float]) -> dict[str, Any]:
    """Encoding of a column: name, readable unit, and a logarithmic scale if the values span decades."""
    unit = columns.unit(key)
    low, high = min(values, default=0), max(values, default=0)
    axis: dict[str, Any] = {"format": ".3~s" if high >= 1e4 else ".3~r"}
    if unit == "s" and high < 10:
        axis, unit = {"labelExpr": "format(datum.value * 1000, '.3~r')"}, "ms"
    scale = {"type": "log", "nice": False} if low > 0 and high / low > 20 else {"type": "linear"}
    return {"field": _field(key), "type": "quantitative", "title": f"{key} ({unit})" if unit else key, "axis": axis, "scale": scale}


def _chart(points: list[dict[str, Any]], x: str, y: str, coloured: bool) -> dict[str, Any]:
    valued_points = [point for point in points if point[y] is not None]
    across, up = _axis(x, [point[_field(x)] for point in valued_points]), _axis(y, [point[y] for point in valued_points])
    across["scale"] |= {"zero": False} if across["scale"]["type"] == "linear" else {}
    is_busy = len({point["line"] for point in points}) > 10  # more lines than the palette has colours
    label = {"field": "line", "type": "nominal", "title": None, "sort": None, "scale": {"scheme": "tableau20" if is_busy else "tableau10"}}
    colour = {"color": label if coloured else {"value": "#2e86ab"}}
    floor, low, high = _ends(y)
    layers: list[dict[str, Any]] = []
    if low in columns.declared():
        band = {"x": across, "y": up | {"field": low}, "y2": {"field": high}, **colour}
        layers.append({"mark": {"type": "area", "opacity": 0.12, "line": False}, "encoding": band})
    layers.append({"mark": {"type": "line", "point": len(points) <= 300, "strokeWidth": 2}, "encoding": {"x": across, "y": up, **colour}})
    if floor in columns.declared():
        layers.append({"mark": {"type": "line", "strokeDash": [4, 3]}, "encoding": {"x": across, "y": up | {"field": floor}, **colour}})
    return {"width": 400, "height": 320, "data": {"values": valued_points}, "layer": layers}


def listing(rows: Any, keys: Sequence[str] = (), title: str = "") -> dict[str, Any]:
    """Figure of plain rows against their year; raises an error for rows without a year."""
    plain = list(rows)
    numbers = [key for key in keys or rows.keys() if any(_is_number(row.get(key)) for row in plain) and key != "year"]
    if not numbers or "year" not in plain[0]:
        raise BadValue("--plot", "these rows", "an answer with a picture: of serve, plan, solve, sim, price, cache, bill or trend")
    label_key = next((key for key in ("chip", "name") if key in plain[0]), "year")
    panels = [_by_year([row for row in plain if _is_number(row[key])], key, label_key) for key in numbers[:6]]
    return {"$schema": SCHEMA, "config": CONFIG, "title": title, "concat": panels, "columns": 3}


def _by_year(rows: Points, key: str, label_key: str) -> dict[str, Any]:
    points = [{"year": row["year"], "value": row[key], "name": row[label_key], "vendor": row.get("vendor")} for row in rows]
    years = sorted({point["year"] for point in points})
    y = _axis(key, [point["value"] for point in points]) | {"field": "value"}
    scale = {"zero": False, "domain": [years[0] - 1, years[-1] + 1]}
    axis = {"format": "d", "values": years[:: len(years) // 8 + 1]}
    x = {"field": "year", "type": "quantitative", "title": "year", "axis": axis, "scale": scale}
    colour = {"field": "vendor", "type": "nominal", "title": None, "scale": {"scheme": "tableau20"}}
    encoding = {"x": x, "y": y, "color": colour, "tooltip": [{"field": "name"}, {"field": "value"}]}
    mark = {"type": "point", "filled": True, "size": 60, "opacity": 0.8}
    return {"width": 330, "height": 240, "data": {"values": points}, "mark": mark, "encoding": encoding}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


# -- measured against predicted ---------------------------------------------------------------------------------------------------


def parity(residuals: Sequence[Any], measure: str, by: str = "source") -> dict[str, Any]:
    """Figure of predicted against measured values on logarithmic axes, a colour per group; lines at equality and at a factor of 2."""
    matches = [row for row in residuals if row.measure == measure] or list(residuals)
    if not matches:
        raise BadValue("--plot", "these rows", "at least one measurement with a prediction")
    scale, unit = (1e3, "ms") if matches[0].is_time else (1.0, "tokens/s")
    name = matches[0].measure
    rows = [row for row in matches if row.measure == name]
    points = [{"measured": row.measured * scale, "predicted": row.predicted * scale, by: getattr(row, by), "id": row.id} for row in rows]
    ends = [min(min(p["measured"], p["predicted"]) for p in points) / 1.2, max(max(p["measured"], p["predicted"]) for p in points) * 1.2]
    axes = {
        way: {"field": field, "type": "quantitative", "title": f"{name}, {field} ({unit})", "axis": {"format": "~s"},
              "scale": {"type": "log", "domain": ends, "nice": False}}
        for way, field in (("x", "measured"), ("y", "predicted"))
    }  # fmt: skip
    colour = {"field": by, "type": "nominal", "title": None, "scale": {"scheme": "tableau10"}}
    cloud = {"data": {"values": points}, "mark": {"type": "point", "filled": True, "size": 22, "opacity": 0.55, "clip": True},
             "encoding": axes | {"color": colour, "tooltip": [{"field": "id"}]}}  # fmt: skip
    lines = [_diagonal(ends, factor, axes) for factor in (1.0, 2.0, 0.5)]
    subtitle = f"{len(points):,} measurements; solid: equal; dashed: twice and half"
    title = {"text": f"{name}: predicted against measured", "subtitle": [subtitle]}
    return {"$schema": SCHEMA, "config": CONFIG, "title": title, "width": 460, "height": 460, "layer": [*lines, cloud]}


def _diagonal(ends: Sequence[float], factor: float, axes: Mapping[str, Any]) -> dict[str, Any]:
    points = [{"measured": end, "predicted": end * factor} for end in ends]
    mark = {"type": "line", "color": "#222222", "strokeWidth": 1, "clip": True} | ({} if factor == 1 else {"strokeDash": [3, 3]})
    return {"data": {"values": points}, "mark": mark, "encoding": dict(axes)}

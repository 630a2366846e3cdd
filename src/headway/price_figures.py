"""Figures of prices as Vega-Lite specifications: sheets over time, and bills by their parts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from headway.errors import BadValue
from headway.figures import CONFIG, SCHEMA

Rows = Sequence[Mapping[str, Any]]
MOST_BARS = 24
MOST_LINES = 12
PARTS = {"usd_input": "input", "usd_written": "written to the cache", "usd_cached": "read from the cache", "usd_storage": "kept",
         "usd_output": "output"}  # fmt: skip
COLOURS = ["#2e86ab", "#d1495b", "#3c9d5d", "#8d6cab", "#b0b0b0"]
PANELS = (
    ("rates, USD per Mtok", {"input_usd_per_mtok": "input", "output_usd_per_mtok": "output"}, "log"),
    ("output rate over input rate", {"output_multiple": "output / input"}, "linear"),
    (
        "cache rates over the input rate",
        {"cached_multiple": "read", "write_multiple": "write", "write_long_multiple": "longest write"},
        "log",
    ),
    ("above the context step, over below", {"step_input_multiple": "input", "step_output_multiple": "output"}, "linear"),
    ("fastest mode over standard", {"fast_multiple": "price", "fast_speed_multiple": "speed, as advertised"}, "linear"),
    ("cheapest mode, and other hours, over standard", {"slow_multiple": "cheapest mode", "hours_multiple": "other hours"}, "linear"),
)


def history(rows: Rows, title: str) -> dict[str, Any]:
    """A panel for each kind of price, against the date; a colour for each line of models."""
    dated = [row for row in rows if row["as_of"] != "undated"]
    lines = [name for name, _ in Counter(_line(row) for row in dated).most_common(MOST_LINES)]
    days = sorted(_day(row) for row in dated)
    panels = [panel for about in PANELS if (panel := _panel(dated, lines, days, *about))]
    if not panels:
        raise BadValue("--plot", "these rows", "sheets with a date")
    panels[0]["layer"].append(_names([row for row in dated if _line(row) in lines]))
    hidden_lines = len({_line(row) for row in dated}) - len(lines)
    apart = {"strokeDash": "independent", "shape": "independent"}
    caption = "each point is a dated sheet; a line joins one provider's line of models"
    subtitle = caption + (f"; {hidden_lines} lines more are not drawn" if hidden_lines > 0 else "")
    return {
        "$schema": SCHEMA, "config": CONFIG, "title": {"text": title, "subtitle": subtitle, "offset": 14}, "concat": panels, "columns": 2,
        "resolve": {"legend": apart, "scale": apart},
    }  # fmt: skip


def _line(row: Mapping[str, Any]) -> str:
    return f"{row['provider']} {row['line']}"


def _day(row: Mapping[str, Any]) -> str:
    return (row["as_of"] + "-01-01")[:10]


def _panel(rows: Rows, lines: Sequence[str], days: Sequence[str], title: str, keys: Mapping[str, str], scale: str) -> dict[str, Any] | None:
    """One panel, None where no row has anything for it."""
    stepped = {_line(row) for row in rows if row["step_above"]}
    points = []
    for row in rows:
        for key, what in keys.items():
            none = 1.0 if key.startswith("step_") and _line(row) in stepped else None  # no step: the rate above is the rate below
            value = none if row[key] is None else row[key]
            if value and _line(row) in lines:
                points.append({"date": _day(row), "value": value, "line": _line(row), "model": row["model"], "what": what})
    if not points:
        return None
    x = {"field": "date", "type": "temporal", "title": None, "scale": {"domain": [days[0], days[-1]], "nice": "month"},
         "axis": {"format": "%b %y", "labelAngle": 0, "tickCount": {"interval": "month", "step": 2}, "labelOverlap": True}}  # fmt: skip
    spread = {"type": "log", "nice": True, "padding": 6} if scale == "log" else {"type": "linear", "zero": True, "nice": True}
    y = {"field": "value", "type": "quantitative", "title": None, "axis": {"format": "~g", "tickCount": 5}, "scale": spread}
    colours = {"domain": list(lines), "scheme": "tableau20" if len(lines) > 10 else "tableau10"}
    colour = {"field": "line", "type": "nominal", "title": None, "scale": colours}
    series = [what for what in keys.values() if any(point["what"] == what for point in points)]
    legend = {"orient": "bottom", "symbolFillColor": "#555555", "symbolStrokeWidth": 0} if len(keys) > 1 else None
    about: dict[str, Any] = {"field": "what", "type": "nominal", "title": None, "legend": legend}
    dash = about | {"scale": {"domain": series, "range": [[1, 0], [5, 4], [2, 2]][: len(series)]}}
    shape = about | {"scale": {"domain": series, "range": ["circle", "diamond", "square"][: len(series)]}}
    same = {"x": x, "y": y, "color": colour}
    tooltip = [{"field": "model"}, {"field": "value"}, {"field": "date"}]
    layers = [
        {"mark": {"type": "line", "interpolate": "step-after", "strokeWidth": 2}, "encoding": same | {"strokeDash": dash}},
        {"mark": {"type": "point", "filled": True, "size": 50, "opacity": 1}, "encoding": same | {"shape": shape, "tooltip": tooltip}},
    ]
    heading = {"text": title, "fontSize": 13, "fontWeight": "normal"}
    return {"width": 470, "height": 230, "title": heading, "data": {"values": points}, "layer": layers}


def _names(rows: Rows) -> dict[str, Any]:
    """The version of each sheet's model over its output rate."""
    points = [{"date": _day(row), "value": row["output_usd_per_mtok"], "name": _version(row)} for row in rows if row["output_usd_per_mtok"]]
    mark = {"type": "text", "align": "left", "angle": -40, "dx": 5, "dy": -5, "fontSize": 10, "color": "#555555"}
    axes = {"x": {"field": "date", "type": "temporal"}, "y": {"field": "value", "type": "quantitative"}}
    return {"data": {"values": points}, "mark": mark, "encoding": axes | {"text": {"field": "name"}}}


def _version(row: Mapping[str, Any]) -> str:
    """What a model's name has beyond its line's."""
    words = row["line"].split("-")
    return "-".join(part for part in row["model"].split("-") if part not in words)


def bills(rows: Rows, title: str) -> dict[str, Any]:
    """Each way to buy as a bar of its parts, the cheapest on top."""
    bars = [row for row in rows if row["usd"] is not None][:MOST_BARS]
    if not bars:
        raise BadValue("--plot", "these rows", "at least one bill")
    names = [_way(row) for row in bars]
    points = [
        {"way": name, "part": what, "usd": row[key], "order": place}
        for name, row in zip(names, bars, strict=True) for place, (key, what) in enumerate(PARTS.items()) if row.get(key)
    ]  # fmt: skip
    hidden_bars = len(rows) - len(bars)
    y = {"field": "way", "type": "nominal", "sort": names, "title": None, "axis": {"labelLimit": 420}}
    x = {"field": "usd", "type": "quantitative", "title": "USD", "stack": True}
    cost_parts = [what for what in PARTS.values() if any(point["part"] == what for point in points)]
    shades = [shade for what, shade in zip(PARTS.values(), COLOURS, strict=True) if what in cost_parts]
    colour = {"field": "part", "type": "nominal", "title": None, "sort": cost_parts, "scale": {"domain": cost_parts, "range": shades}}
    caption = {"text": title, "subtitle": f"{hidden_bars} dearer ways are not drawn" if hidden_bars > 0 else ""}
    mark = {"type": "bar", "tooltip": True}
    return {"$schema": SCHEMA, "config": CONFIG, "title": caption, "width": 520, "data": {"values": points}, "mark": mark,
            "encoding": {"y": y, "x": x, "color": colour, "order": {"field": "order", "type": "quantitative"}}}  # fmt: skip


def _way(row: Mapping[str, Any]) -> str:
    layout = f", {row['prompt_layout']}" if row["prompt_layout"] not in ("any", "as recorded") else ""
    return f"{row['provider']}/{row['model']}, {row['mode']}, {'no cache' if row['cache'] == 'none' else row['cache']}{layout}"

"""The figure of `scale`: what was asked against what varies, a line for each law; the laws side by side where nothing does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headway import columns, figures, output
from headway.errors import BadValue

PANEL_KEYS = {
    "split": ("active", "tokens"),
    "given": ("loss", "served_exact"),
    "life": ("over_training", "rule_regret"),
    "quality": ("active", "tokens"),
    "experts": ("effective_over_active",),
}
TITLES = {
    "split": "Compute split best, by law",
    "given": "What a model's training is right for, by law",
    "life": "How far to over-train, and what training = serving costs beyond the cheapest, by law",
    "quality": "The cheapest model of a quality, by law",
    "experts": "What experts are worth, by law",
}
NAMES = {
    "active": "active parameters",
    "over_training": "tokens over Chinchilla's",
    "rule_regret": "cost of training = serving beyond the cheapest",
    "served_exact": "tokens served that it is right for",
    "effective_over_active": "equal dense over active parameters",
}
LINEAR = ("loss", "rule_regret")
MOST_PANELS = 12


def figure(request: Any, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One panel for each number drawn, one for each value of further lists."""
    keys = [key for key in PANEL_KEYS[request.mode] if any(row.get(key) is not None for row in rows)]
    if not keys:
        raise BadValue("--plot", "these rows", "rows with " + " or ".join(PANEL_KEYS[request.mode]))
    along = request.varied[0] if request.varied else None
    panels = [_lines(rows, along, key, request.varied[1:]) if along else _beside(rows, key) for key in keys]
    bars = "" if along else "; bars: 90 % interval from the errors of the coefficients"
    title = {"text": TITLES[request.mode], "subtitle": "hollow: outside the fitted range" + bars}
    return {"$schema": figures.SCHEMA, "config": figures.CONFIG, "title": title, "hconcat": panels}


def _axis(key: str) -> dict[str, Any]:
    scale = {"zero": False} if key in LINEAR else {"type": "log", "nice": False}
    label_expr = "format(datum.value, '.0e')" if key == "flop" else "replace(format(datum.value, '~s'), 'G', 'B')"
    text = {"format": "~%"} if key.endswith("regret") else {"labelExpr": label_expr, "tickCount": 6}
    return {"field": key, "type": "quantitative", "title": NAMES.get(key, key.replace("_", " ")), "scale": scale, "axis": text}


def _points(rows: Sequence[Mapping[str, Any]], key: str, along: Sequence[str]) -> list[dict[str, Any]]:
    """What is drawn of each row that has it."""
    points = []
    for row in rows:
        if row.get(key) is not None and (key in LINEAR or row[key] > 0):
            ends = {f"{key}{end}": row[f"{key}{end}"] for end in ("_lo", "_hi") if row.get(f"{key}{end}")}
            place = {name: row[name] for name in along}
            value_text = f"{row[key]:.1%}" if key.endswith("regret") else output.format_value(row[key], columns.unit(key))
            points.append({"law": row["law"], "said": value_text, key: row[key], "fitted": bool(row.get("in_range"))} | ends | place)
    return points


def _lines(rows: Sequence[Mapping[str, Any]], along: str, key: str, rest: Sequence[str]) -> dict[str, Any]:
    """The number against what varies, a line for each law."""
    points = _points(rows, key, (along, *rest))
    for point in points:
        point["at"] = ", ".join(f"{name} {output.format_value(point[name], columns.unit(name))}" for name in rest)
    series = {which: list(dict.fromkeys(point[which] for point in points)) for which in ("law", "at")}
    if len(series["at"]) > MOST_PANELS:
        raise BadValue("--plot", f"{len(series['at'])} values of {' and '.join(rest)}", f"at most {MOST_PANELS}")
    colour = {"field": "law", "type": "nominal", "title": None, "sort": series["law"], "scale": {"scheme": "tableau10"},
              "legend": {"symbolFillColor": "transparent"}}  # fmt: skip
    encoding = {"x": _axis(along) | {"scale": {"type": "log", "nice": False}}, "y": _axis(key), "color": colour}
    hollow = {"fillOpacity": _filled(), "fill": colour | {"legend": None}}
    marks = [{"mark": {"type": "line", "strokeWidth": 2}}, {"mark": {"type": "point", "size": 30}, "encoding": hollow}]
    if not rest:
        return {"width": 420, "height": 340, "data": {"values": points}, "encoding": encoding, "layer": marks}
    spec = {"width": 250, "height": 210, "encoding": encoding, "layer": marks}
    facet = {"field": "at", "type": "nominal", "title": None, "sort": series["at"]}
    return {"data": {"values": points}, "facet": facet, "columns": 3, "spec": spec}


def _beside(rows: Sequence[Mapping[str, Any]], key: str) -> dict[str, Any]:
    """The laws one below the other, with the interval where there is one."""
    points = _points(rows, key, ())
    names = list(dict.fromkeys(point["law"] for point in points))
    y = {"field": "law", "type": "nominal", "title": None, "sort": names, "axis": {"labelLimit": 200}}
    x = _axis(key)
    bars = {"transform": [{"filter": f"isValid(datum.{key}_lo)"}], "mark": {"type": "rule", "strokeWidth": 2, "color": "#2e86ab"},
            "encoding": {"x": x | {"field": f"{key}_lo", "title": x["title"]}, "x2": {"field": f"{key}_hi"}}}  # fmt: skip
    dots = {"mark": {"type": "point", "size": 90, "color": "#d1495b", "fill": "#d1495b"}, "encoding": {"x": x, "fillOpacity": _filled()}}
    numbers = {"mark": {"type": "text", "dy": -11, "fontSize": 11}, "encoding": {"x": x, "text": {"field": "said"}}}
    return {"width": 380, "height": {"step": 34}, "data": {"values": points}, "encoding": {"y": y}, "layer": [bars, dots, numbers]}


def _filled() -> dict[str, Any]:
    return {"condition": {"test": "datum.fitted", "value": 1}, "value": 0}

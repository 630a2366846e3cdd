"""Figure of training layouts: parts of the step time with its interval, and parts of the memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headway.core.errors import BadValue
from headway.core.listing import cell
from headway.report.figures import CONFIG, SCHEMA
from headway.training.columns import PARTS, TIMES

GB = 1e9
MOST_BARS = 30
DEGREES = ("tp", "cp", "pp", "vpp", "ep", "dp")
APART = ("model", "system", "seq", "global_batch", "dtype", "optimizer", "schedule", "recompute", "micro_batch", "zero")
COLOURS = {"scheme": "tableau20"}


def layouts(table: Any) -> dict[str, Any]:
    """Figure with a bar per layout in two panels: step time with its interval, memory with the chip's HBM as a line."""
    rows = list(table)
    if not rows:
        raise BadValue("--plot", "no rows", "rows to draw")
    rows = rows[:MOST_BARS]
    names = [f"{place}. {name}" for place, name in enumerate(labels(rows), 1)]
    ends = [{"row": name, "low": row["step_lo_s"], "high": row["step_hi_s"]} for name, row in zip(names, rows, strict=True)]
    interval = {"data": {"values": ends}, "mark": {"type": "rule", "strokeWidth": 2, "color": "#222222"},
                "encoding": {"y": _across(), "x": {"field": "low", "type": "quantitative"}, "x2": {"field": "high"}}}  # fmt: skip
    capacities = [{"row": name, "hbm": row["hbm_bytes_chip"] / GB} for name, row in zip(names, rows, strict=True)]
    limit = {"data": {"values": capacities}, "mark": {"type": "tick", "thickness": 3, "color": "#d1495b"},
             "encoding": {"y": _across(), "x": {"field": "hbm", "type": "quantitative"}}}  # fmt: skip
    panels = [
        _panel([_bars(names, rows, TIMES, "{}_s", 1.0, "time of a step (s), 90 % interval"), interval]),
        _panel([_bars(names, rows, PARTS, "{}_bytes_chip", GB, "fullest chip (GB); red: what it has"), limit]),
    ]
    about = {f"{row['model']} on {row['system']}" for row in rows}
    title = {"text": f"Training {about.pop()}" if len(about) == 1 else "Training"}
    return {"$schema": SCHEMA, "config": CONFIG, "title": title, "hconcat": panels, "resolve": {"scale": {"color": "independent"}}}


def labels(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Label per row: its degrees of parallelism, and settings that differ between rows."""
    apart = [key for key in APART if len({row[key] for row in rows}) > 1]
    layout_texts = [" ".join(f"{key}{row[key]}" for key in DEGREES if row[key] != 1) or "one chip a copy" for row in rows]
    return [", ".join([way, *(_field_text(key, row) for key in apart)]) for way, row in zip(layout_texts, rows, strict=True)]


def _field_text(key: str, row: Mapping[str, Any]) -> str:
    return str(row[key]) if isinstance(row[key], str) else f"{key} {cell(key, row)}"


def _panel(layers: list[dict[str, Any]]) -> dict[str, Any]:
    return {"width": 420, "height": {"step": 26}, "layer": layers}


def _across() -> dict[str, Any]:
    return {"field": "row", "type": "nominal", "title": None, "sort": None, "axis": {"labelLimit": 320}}


def _bars(
    names: Sequence[str], rows: Sequence[Mapping[str, Any]], parts: Mapping[str, str], key: str, unit: float, title: str
) -> dict[str, Any]:
    points = [
        {"row": name, "part": part, "order": order, "value": row[key.format(part)] / unit}
        for name, row in zip(names, rows, strict=True) for order, part in enumerate(parts)
        if row[key.format(part)] > 0
    ]  # fmt: skip
    visible_parts = [part for part in parts if any(point["part"] == part for point in points)]
    colour = {"field": "part", "type": "nominal", "title": None, "sort": visible_parts, "scale": COLOURS | {"domain": visible_parts}}
    encoding = {"y": _across(), "x": {"field": "value", "type": "quantitative", "title": title, "stack": "zero"}, "color": colour,
                "order": {"field": "order"}}  # fmt: skip
    return {"data": {"values": points}, "mark": {"type": "bar"}, "encoding": encoding}

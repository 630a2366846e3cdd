"""What a change of each input does to the objective: bars to both sides of no change, the longest first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headway.core.errors import BadValue
from headway.report.pictures import marks
from headway.report.pictures.frame import Panel, Picture, View, compose, inner
from headway.report.pictures.lettering import LEADING, SIZE, shorten, text_width
from headway.report.pictures.scale import PictureAxis, axis

Rows = Sequence[Mapping[str, Any]]
THICK, PITCH = 20, 32
LEAST = 0.005  # per cent per 1 %, from which an input is drawn
MEANINGS = {"chip.peak": "compute", "chip.hbm_bw": "weights", "chip.hbm": "kv", "system.scale_up_bw": "network",
            "system.scale_out_bw": "network", "alpha": "network"}  # fmt: skip


def picture(rows: Rows, names: Mapping[str, str], objective: str, view: View) -> Picture:
    """Picture of the elasticity rows of a plan."""
    strong = [row for row in rows if row["kind"] == "elasticity" and abs(row["elasticity"]) >= LEAST]
    lines = sorted(strong, key=lambda row: -abs(row["elasticity"]))
    if not lines:
        raise BadValue("--plot", "no elasticities", "a plan of one load that is met")
    first = next(row for row in rows if row["kind"] == "best")
    panel = _panel(lines, names, view)
    top = lines[0]
    title = f"{names.get(top['input'], top['input'])} counts most: 1 % of it changes the {objective} by {abs(top['elasticity']):.2g} %"
    caption = "To the right, more of the input helps; to the left, it harms. Each bar is the plan searched again with 1 % more."
    return compose(view, [[panel]], title=title[:1].upper() + title[1:], subtitle=f"{first['model']} on {first['system']}", caption=caption)


def _panel(lines: Rows, names: Mapping[str, str], view: View) -> Panel:
    theme = view.colours
    texts = [names.get(row["input"], row["input"]) for row in lines]
    margin = 0.0 if view.is_narrow else max(map(text_width, texts)) + 10
    width = inner(view, margin, 14)
    extent = max(0.1, *(abs(row["elasticity"]) for row in lines)) * 1.25
    low = min(0.0, *(row["elasticity"] for row in lines)) * 1.25 - extent / 8
    x = axis(
        "Improvement per 1 % more of the input (%)", [low, extent], "", ends=(low, extent), log=False, most=6, fixed_ends=view.ends("x")
    )
    pitch = PITCH + (SIZE * LEADING if view.is_narrow else 0)
    boxes, words = [], []
    for place, (row, text) in enumerate(zip(lines, texts, strict=True)):
        middle = (place + 0.5) * pitch + (SIZE * LEADING / 2 if view.is_narrow else 0)
        boxes.append(_box(x, row, width, middle, theme.line(MEANINGS.get(row["input"], "whole"))))
        value = f"{row['elasticity']:+.2f} %"
        after = max(boxes[-1]["x"], boxes[-1]["x2"]) + 6
        words.append({"x": after, "y": middle, "text": value, "color": theme.ink})
        name = shorten(text, margin or width)
        spot = (-8 - text_width(name), middle) if margin else (0.0, middle - THICK / 2 - SIZE * LEADING / 2)
        words.append({"x": spot[0], "y": spot[1], "text": name, "color": theme.ink})
    zero = x.across(0.0, width)
    rule = [{"x": zero, "x2": zero, "y": 0, "y2": len(lines) * pitch, "color": theme.muted}] if not view.is_narrow else []
    data = {"tornado_boxes": boxes, "tornado_words": words, "tornado_zero": rule}
    layers = [marks.pixel_rules("tornado_zero"), marks.pixel_boxes("tornado_boxes"), marks.labels("tornado_words")]
    return Panel(width=width, height=len(lines) * pitch, layers=layers, data=data, x=x, left_margin=margin, right_margin=14)


def _box(x: PictureAxis, row: Mapping[str, Any], width: float, middle: float, tone: str) -> marks.Row:
    ends = sorted((x.across(0.0, width), x.across(row["elasticity"], width)))
    return {"x": ends[0], "x2": max(ends[1], ends[0] + 1), "y": middle - THICK / 2, "y2": middle + THICK / 2, "color": tone}

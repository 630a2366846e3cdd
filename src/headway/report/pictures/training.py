"""Step time and memory of training layouts, by part, a bar for each layout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headway.core.errors import BadValue
from headway.core.listing import format_value
from headway.report.pictures import bars
from headway.report.pictures.frame import Picture, View, compose
from headway.report.pictures.scale import axis

Rows = Sequence[Mapping[str, Any]]
MOST_BARS = 8
STEP = (
    ("matmuls", "compute", ("compute_s",)),
    ("attention and head", "weights", ("attention_s", "head_s", "traffic_s", "launch_s")),
    ("network", "network", ("tp_s", "cp_s", "ep_s", "parameters_s")),
    ("bubble and update", "whole", ("bubble_s", "update_s")),
)
MEMORY = (
    ("weights", "weights", ("weights_bytes_chip", "gathered_bytes_chip")),
    ("gradients and optimizer", "network", ("gradients_bytes_chip", "optimizer_bytes_chip")),
    ("activations", "kv", ("activations_bytes_chip", "head_bytes_chip")),
    ("allowance", "whole", ("allowance_bytes_chip",)),
)


def picture(rows: Rows, names: Sequence[str], view: View) -> Picture:
    """Picture of the rows of `train`."""
    pairs = [(row, name) for row, name in zip(rows, names, strict=True) if row.get("step_s") is not None][:MOST_BARS]
    if not pairs:
        raise BadValue("--plot", "no rows", "rows to draw")
    steps = [_bar(row, name, STEP, format_value(row["step_s"], "s"), low=row["step_lo_s"], high=row["step_hi_s"]) for row, name in pairs]
    sizes = [_bar(row, name, MEMORY, format_value(row["memory_bytes_chip"], "byte"), limit=row["hbm_bytes_chip"]) for row, name in pairs]
    limit = max(row["hbm_bytes_chip"] for row, _ in pairs)
    x = axis(
        "Time of one optimizer step; the rule is the 90 % interval",
        [0.0, *(row["step_hi_s"] for row, _ in pairs)],
        "s",
        zero=True,
        log=False,
        most=5,
        room=0.22,
    )
    most = max(limit, *(row["memory_bytes_chip"] for row, _ in pairs))
    y = axis("Memory of the fullest chip; the mark is its HBM", [0.0, most], "byte", zero=True, log=False, most=5, room=0.22)
    first = bars.panel(view, "step", steps, x)
    second = bars.panel(view, "memory", sizes, y)
    best = pairs[0][0]
    title = f"A step takes {format_value(best['step_s'], 's')} at MFU {best['mfu']:.0%}, the largest part {_largest(best)}"
    subtitle = f"{best['model']} on {best['system']}; expected values"
    subtitle += f"; the first {len(pairs)} of {len(rows)} layouts" if len(rows) > len(pairs) else ""
    caption = "Above, where a step's time goes: what is not matmuls is what a better layout can save; below, what the fullest chip holds."
    return compose(view, [[first], [second]], title=title, subtitle=subtitle, caption=caption)


def _bar(row: Mapping[str, Any], name: str, parts: Any, note: str, **rest: Any) -> bars.Bar:
    """A bar with the row's columns as its parts."""
    pieces = [bars.BarPart(name=words, value=sum(row.get(key) or 0.0 for key in keys), meaning=meaning) for words, meaning, keys in parts]
    return bars.Bar(name=name, parts=pieces, note=note, **rest)


def _largest(row: Mapping[str, Any]) -> str:
    return max(STEP, key=lambda part: sum(row.get(key) or 0.0 for key in part[2]))[0]

"""FLOP/s against FLOP per byte: the roof of a chip, and operators under it as points with their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headway.core.errors import BadValue
from headway.core.listing import format_value
from headway.report.pictures.frame import Picture, View, compose
from headway.report.pictures.plot import Plot
from headway.report.pictures.scale import axis

MEANINGS = {"dense matmuls": "weights", "routed experts": "compute", "attention over the KV cache": "kv"}


def picture(operators: Sequence[Mapping[str, Any]], peaks: Mapping[str, float], bandwidth: float, view: View, *, subtitle: str) -> Picture:
    """Picture of operators with `name`, `intensity` (flop/byte), `flops` (flop/s); `peaks` by number format."""
    if not operators:
        raise BadValue("--plot", "no operator", "a model with matmuls")
    top = max(peaks.values())
    ridge = top / bandwidth
    intensities = [operator["intensity"] for operator in operators]
    x = axis("FLOP per byte of memory traffic (log)", [*intensities, ridge / 300, ridge * 8], "count", log=True, most=7, room=0.03,
             fixed_ends=view.ends("x"))  # fmt: skip
    y = axis("", [*(operator["flops"] for operator in operators), top * 1.2, bandwidth * x.low], "flop/s", log=True, most=7,
             fixed_ends=view.ends("y"))  # fmt: skip
    plot = Plot(view, "roofline", x, y, height=340)
    for place, (name, peak) in enumerate(peaks.items()):
        corner = peak / bandwidth
        roof = plot.rows(f"roof{place}", [{"x": at, "y": min(peak, bandwidth * at)} for at in (x.low, corner, x.high)])
        plot.curve(roof, "x", "y", "ink" if place == 0 else "muted", width=2.5 if place == 0 else 1.5, dash=() if place == 0 else (5, 4))
        plot.note(f"{format_value(peak, 'flop/s')} {name}", "ink", around=plot.place(x.high / 2.2, peak))
    plot.note(f"{format_value(bandwidth, 'byte/s')} of memory", "ink", around=plot.place(x.low * 4, bandwidth * x.low * 4))
    plot.upright("ridge", top / bandwidth, f"{top / bandwidth:,.0f} FLOP per byte", "muted")
    for place, operator in enumerate(operators):
        meaning = MEANINGS.get(operator["name"], "network")
        words = f"{operator['name']}: {operator['intensity']:,.3g} FLOP/byte"
        plot.point(f"operator{place}", operator["intensity"], operator["flops"], words, meaning, size=120)
    under = [operator["name"] for operator in operators if operator["intensity"] < ridge]
    title = "Every operator is limited by memory" if len(under) == len(operators) else f"Memory limits {', '.join(under) or 'nothing'} here"
    caption = (
        "Left of the corner an operator waits for memory, right of it for arithmetic; a larger batch moves matmuls right, not attention."
    )
    panel = plot.panel("Attainable FLOP/s of one chip (log)")
    return compose(view, [[panel]], title=title[:1].upper() + title[1:], subtitle=subtitle, caption=caption)

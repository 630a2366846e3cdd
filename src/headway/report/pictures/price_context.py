"""Cost of a token against context: flat until the KV cache takes as long as compute, then rising, and the price step that covers it."""

from __future__ import annotations

from headway.core.listing import format_value
from headway.laws.roofline.batch_step import context_multiple, covered_context
from headway.report.pictures.frame import Picture, View, compose
from headway.report.pictures.plot import Plot
from headway.report.pictures.scale import axis

DENSE, ROOT = 1.0, 0.5
POINTS = 120
FARTHEST = 5.0  # last context drawn, over the knee


def picture(knee: float, step: float, threshold: float, view: View, *, about: str) -> Picture:
    """Picture of the lecture's price curve: `knee` in tokens, the price `step` above `threshold` tokens, as a multiple."""
    contexts = [knee * FARTHEST * place / (POINTS - 1) for place in range(POINTS)]
    rows = []
    for at in contexts:
        dense, root = (float(context_multiple(max(at, 1.0), knee, power)) for power in (DENSE, ROOT))
        rows.append({"context": at, "dense": dense, "root": root, "price": 1.0 if at <= threshold else step})
    x = axis("Context (tokens)", contexts, "token", ends=(0.0, contexts[-1]), log=False, most=6, fixed_ends=view.ends("x"))
    y = axis("", [0.0, FARTHEST], "x", ends=(0.0, FARTHEST), log=False, most=6, fixed_ends=view.ends("y"))
    names = ("dense attention", "square root", "price")
    plot = Plot(view, "context", x, y, height=300, ends=names)
    data = plot.rows("rows", rows)
    plot.curve(data, "context", "dense", "kv", text=names[0], width=3)
    plot.curve(data, "context", "root", "network", text=names[1], dash=(6, 3))
    plot.curve(data, "context", "price", "ink", text=names[2], steps="step-after", dash=(2, 3))
    plot.point("knee", knee, 1.0, f"knee: {format_value(knee, 'token')} tokens", "compute", shape="diamond")
    covered = float(covered_context(step, knee, DENSE))
    plot.point("covered", covered, step, f"{step:g} times the price covers {format_value(covered, 'token')}", "kv")
    title = (
        f"Beyond {format_value(knee, 'token')} tokens a token costs more; {step:g} times the price covers {format_value(covered, 'token')}"
    )
    caption = "Left of the knee compute sets the cost; right of it the KV cache, in proportion to the context unless attention is sparse."
    return compose(view, [[plot.panel("Cost of a token over that of a short context")]], title=title, subtitle=about, caption=caption)

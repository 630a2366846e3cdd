"""Speed of one user against throughput per chip and against cost: the frontier, the plan, the limit, the user's own layout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headway.core.errors import BadValue
from headway.core.listing import format_value
from headway.report.pictures.frame import Picture, View, compose
from headway.report.pictures.plot import Plot
from headway.report.pictures.scale import axis

Rows = Sequence[Mapping[str, Any]]
SPEED = "Speed that one user sees (output tokens per second)"
QUANTITIES = (("tok_per_s_chip", "Throughput (output tokens per second and chip)", "token/s"),
              ("usd_per_1k_requests", "Cost of a thousand requests", "USD"))  # fmt: skip
MARKS = {"best": ("the plan", "compute", "circle"), "current": ("your layout", "network", "square")}


def picture(rows: Rows, tpot: float | None, view: View) -> Picture:
    """Picture of a plan's rows; `tpot` is the limit on the time per token, if there is one."""
    points = [row for row in rows if row["kind"] in ("best", "frontier", "current") and row.get("tok_per_s_user")]
    if not points:
        raise BadValue("--plot", "no layout that fits", "a plan with a layout")
    panels = [quantity for quantity in QUANTITIES if any(row.get(quantity[0]) is not None for row in points)]
    plots = [_plot(points, *quantity, tpot, view, number, len(panels)) for number, quantity in enumerate(panels)]
    best = next((row for row in rows if row["kind"] == "best"), points[0])
    title = f"Every token of speed is paid in throughput: {format_value(best['tok_per_s_user'], 'token/s')} a user at " \
            f"{format_value(best['tok_per_s_chip'], 'token/s')} a chip"  # fmt: skip
    load = f", prompt {format_value(best['prompt'], 'token')}, output {format_value(best['output'], 'token')}"
    caption = "Each step of the line is the best layout for users who need at least that speed" \
              + (", and left of the limit no layout is fast enough for the load." if tpot else ".")  # fmt: skip
    headings = [heading for _, heading, _ in panels]
    subtitle = f"{best['model']} on {best['system']}{load}; expected values at the load"
    both = [plot.panel(heading) for plot, heading in zip(plots, headings, strict=True)]
    return compose(view, [both], title=title, subtitle=subtitle, caption=caption)


def _plot(rows: Rows, key: str, heading: str, unit: str, tpot: float | None, view: View, number: int, panels: int) -> Plot:
    rows = [row for row in rows if row.get(key) is not None]
    speeds = [row["tok_per_s_user"] for row in rows]
    suffix = "" if not number else str(number + 1)
    limit = None if tpot is None else 1 / tpot
    x = axis(SPEED if panels == 1 else "Speed that one user sees (tokens/s)", [*speeds, limit], "", zero=True, log=False, most=6,
             fixed_ends=view.ends(f"x{suffix}"), room=0.06)  # fmt: skip
    values = [row[key] for row in rows]
    is_log = key != "tok_per_s_chip" and max(values) / min(values) > 12
    y = axis("", values, unit, zero=not is_log, log=is_log, fixed_ends=view.ends(f"y{suffix}"), room=0.08)
    plot = Plot(view, f"frontier{number}", x, y, columns=panels, height=300)
    plot.region("slow", 0, limit or 0.0, "slower than the limit")
    front = _undominated(sorted(rows, key=lambda row: row["tok_per_s_user"]), key)  # a layout of the user's may lie between those searched
    data = plot.rows("front", [{"x": row["tok_per_s_user"], "y": row[key]} for row in front])
    plot.curve(data, "x", "y", "whole", width=2, steps="step-before")
    plot.cloud(data, "x", "y", "whole", size=28)
    for kind, (name, meaning, shape) in MARKS.items():
        for row in [row for row in rows if row["kind"] == kind][:1]:
            text = f"{name}: batch {row['batch']:,.0f}, {format_value(row[key], unit)}"
            plot.point(kind, row["tok_per_s_user"], row[key], text, meaning, shape=shape, size=120)
    for row in (front[0], front[-1]):
        if row["kind"] == "frontier" and len(front) > 2:
            plot.note(f"batch {row['batch']:,.0f}", "muted", around=plot.place(row["tok_per_s_user"], row[key]))
    return plot


def _undominated(rows: Rows, key: str) -> list[Mapping[str, Any]]:
    """Rows, slowest first, that no faster row beats: more throughput or less cost."""
    better = (lambda new, old: new > old) if key == "tok_per_s_chip" else (lambda new, old: new < old)
    front: list[Mapping[str, Any]] = []
    for row in reversed(rows):
        if not front or better(row[key], front[-1][key]):
            front.append(row)
    return front[::-1]

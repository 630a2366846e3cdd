"""The picture of `headway plan` over several rates: what a month costs on whole machines, beside what it would if they could be divided."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headway.core.errors import BadValue
from headway.core.listing import format_value
from headway.report.pictures import frame, grid, palette, plot, scale
from headway.report.words import Row

if TYPE_CHECKING:
    from headway.report.pictures.frame import Picture, View

MOST_NAMES = 9  # points that have a name


def by_rate(rows: Sequence[Row], series: Sequence[str], view: View) -> Picture:
    """Cost of a month by rate in steps of whole machines, a staircase for each value of what else varies."""
    points = sorted(
        (row for row in rows if row["kind"] == "best" and row.get("usd_per_month") and row["rate"]), key=lambda row: row["rate"]
    )
    stairs: dict[str, list[Row]] = {}
    for row in points:
        stairs.setdefault(grid.curve_name(row, series), []).append(row)
    names = list(stairs)[: grid.MOST_CURVES]
    if not names or len(stairs[names[0]]) < 2:
        raise BadValue("--plot", "these rows", "two rates or more that machines with a price carry, such as --rate 2..64*2")
    parts: list[plot.Part] = []
    for place, name in enumerate(names):
        meaning, text = (palette.MEANINGS[place], name) if len(names) > 1 else ("compute", name or "whole machines")
        steps = [{"x": row["rate"], "y": row["usd_per_month"], "tip": _tip(row, name)} for row in stairs[name]]
        parts.append(plot.Series(rows=steps, meaning=meaning, text=text, steps="step-before", dots=40,
                                 data=f"stairs{place}"))  # fmt: skip
    first, divided = stairs[names[0]], list[Row]()
    if len(names) == 1:
        least = min(row["usd_per_month"] / row["rate"] for row in first)
        divided += [{"x": row["rate"], "y": least * row["rate"]} for row in first]
        parts.append(plot.Series(rows=divided, meaning="muted", width=1.2, dash=(4, 3), text="fractions of machines", data="divided"))
        parts += [plot.Note(x=row["rate"], y=row["usd_per_month"], text=str(row["system"]), meaning="compute", most=40.0)
                  for row in first if len(first) <= MOST_NAMES]  # fmt: skip
    rates = [row["rate"] for row in points]
    is_log = max(rates) >= 8 * min(rates)
    costs = [*(row["usd_per_month"] for row in points), *(row["y"] for row in divided), *([] if is_log else [0.0])]
    log = " (log)" * is_log
    drawing = plot.Plot(
        name="rates", parts=parts, height=320, heading=f"Cost of a month{log}", is_fitting=True,
        x=scale.AxisScale(f"Requests per second{log}", rates, "count", log=is_log, base=2 if is_log else 10, room=0.06),
        y=scale.AxisScale("", costs, "USD", log=is_log),
    )  # fmt: skip
    less = f"; the first {len(names)} of {len(stairs)}" if len(stairs) > len(names) else ""
    caption = "A machine is paid for whole: each point is the cheapest plan for its rate, and what it carries up to there costs the same."
    return frame.compose(view, [[drawing]], title=_finding(first), subtitle=_about(first, names[0]) + less, caption=caption)


def _finding(line: Sequence[Row]) -> str:
    """Title: how much dearer the greatest rate is than the least."""
    low, high = line[0], line[-1]
    more, dearer = high["rate"] / low["rate"], high["usd_per_month"] / low["usd_per_month"]
    ends = (f"${row['usd_per_month']:,.0f} a month at {row['rate']:.3g}/s" for row in (low, high))
    if low["usd_per_month"] == high["usd_per_month"]:
        return f"{more:.3g} times the rate costs no more: the machine is paid for whole, {next(ends)}"
    return f"{more:.3g} times the rate costs {dearer:.3g} times as much: {', '.join(ends)}"


def _about(line: Sequence[Row], name: str) -> str:
    """Subtitle: model and load."""
    row = line[0]
    about = f"{row['model']}, prompt {format_value(row['prompt'], 'token')}, output {format_value(row['output'], 'token')}"
    return f"{about}; {name}" if name else about


def _tip(row: Row, name: str) -> str:
    """What a page says of a point."""
    use = f", used to {row['utilisation']:.0%}" if row.get("utilisation") is not None else ""
    return f"{name + ': ' if name else ''}{row['rate']:.3g} requests/s: {row['system']}, ${row['usd_per_month']:,.0f} a month{use}"

"""Where a measured run stands: its time beside the floor and the prediction, and the parts of its time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headway.core.errors import BadValue
from headway.core.listing import format_value
from headway.report.causes import percent, times
from headway.report.pictures import bars
from headway.report.pictures.frame import Panel, Picture, View, compose
from headway.report.pictures.scale import axis

MEANINGS = {"weights": "weights", "KV cache": "kv", "compute": "compute", "network": "network", "prefill of the request": "compute"}
MILLI = 1e3
MOST_RUNS = 3


def picture(rows: Sequence[Mapping[str, Any]], view: View) -> Picture:
    """Picture of the rows of measured runs that have parts, a panel for each time."""
    runs = [row for row in rows if row.get("parts") and row.get("unit") == "ms" and row.get("measured")][:MOST_RUNS]
    if not runs:
        raise BadValue("--plot", "no run with a time", "a run whose TPOT or TTFT is measured and predicted")
    first = runs[0]
    over = first["measured"] / first["floor"]
    largest = max(first["parts"], key=first["parts"].get)
    share = first["parts"][largest] / first["measured"]
    title = f"The run takes {times(over)} times its floor; the largest part is {largest}, {percent(share)}"
    subtitle = f"{first['model']} on {first['chip']} by {first['engine']}"
    caption = "The floor is the least that the datasheet allows; the rule is the 90 % interval; the bars below are the measured time."
    return compose(view, [[_panel(row, number, view)] for number, row in enumerate(runs)], title=title, subtitle=subtitle, caption=caption)


def _panel(row: Mapping[str, Any], number: int, view: View) -> Panel:
    def bar(name: str, value: float, meaning: str, note: str = "", **rest: Any) -> bars.Bar:
        seconds = value / MILLI
        piece = bars.BarPart(name=name, value=max(seconds, 0.0), meaning=meaning)
        return bars.Bar(name=name, parts=[piece], note=note or format_value(seconds, "s"), **rest)

    interval = {"low": row["lo"] / MILLI, "high": row["hi"] / MILLI}
    lines = [
        bar("measured", row["measured"], "ink"),
        bar("predicted", row["expected"], "whole", **interval),
        bar("floor", row["floor"], "whole"),
    ]
    for name, value in row["parts"].items():
        note = f"{format_value(value / MILLI, 's')}, {percent(value / row['measured'])}"
        lines.append(bar(name, value, MEANINGS.get(name, "network"), note))
    most = max(row["measured"], row["hi"]) / MILLI
    x = axis("Time", [0.0, most], "s", zero=True, log=False, most=5, room=0.2)
    return bars.panel(view, f"run{number}", lines, x, heading=f"{row['id']}: {row['measure']}", legend=False)

"""A simulated run over time, and latency percentiles against the offered load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headway.core.errors import BadValue
from headway.core.listing import format_value
from headway.report.pictures import marks
from headway.report.pictures.frame import Picture, View, compose
from headway.report.pictures.plot import Plot
from headway.report.pictures.scale import PictureAxis, axis

Rows = Sequence[Mapping[str, Any]]
MOST_BINS = 200
MOST_REQUESTS = 400
SERIES = (("waiting", "Requests waiting, all replicas", "whole"), ("running", "Requests in service (the batch), all replicas", "compute"),
          ("kv_blocks", "KV cache that requests hold (share of the whole)", "kv"))  # fmt: skip


def over_time(run: Any, row: Mapping[str, Any], limits: Mapping[str, float], view: View) -> Picture:
    """Queue, batch, KV cache and TTFT over the time of one run; `limits` by column, such as p99_ttft_s."""
    points = _bins(run)
    end = points[-1]["end"] or 1.0

    def plot(number: int, y: PictureAxis) -> Plot:
        x = axis("Time since the first request" if number > 1 else "", [0.0, end], "s", ends=(0.0, end), log=False, most=5)
        return Plot(view, f"time{number}", x, y, columns=2, height=170)

    plots, headings = [], []
    for number, (key, heading, meaning) in enumerate(SERIES):
        unit = "share" if key == "kv_blocks" else ""
        y = axis("", [point[key] for point in points], unit, zero=True, log=False, most=5, room=0.15)
        plots.append(plot(number, y))
        data = plots[-1].rows("rows", points)
        plots[-1].curve(data, "t", key, meaning, steps="step-after")
        headings.append(heading)
    plots.append(_first_tokens(run, limits, end, plot))
    headings.append("Time to first token of a request, by its arrival")
    panels = [drawing.panel(words) for drawing, words in zip(plots, headings, strict=True)]
    load = f"{format_value(row['rate'], '1/s')} offered" if row.get("rate") else f"{row.get('users')} users"
    title = _title(row)
    subtitle = f"{row['model']} on {row['system']}, {load}, {row['completed']:,} requests completed"
    caption = (
        "A queue that returns to nothing again and again is stable; where the KV cache is full, requests wait however idle the chips are."
    )
    return compose(view, [panels[:2], panels[2:]], title=title, subtitle=subtitle, caption=caption)


def _bins(run: Any) -> list[dict[str, float]]:
    """Means over all replicas in at most MOST_BINS spans of time."""
    import numpy as np

    from headway.simulation.results import curves

    replicas = [curves(state) for state in run.states]
    times = max((curve["time_s"] for curve in replicas), key=len)
    sums = {key: np.zeros(len(times)) for key, _, _ in SERIES}
    for curve in replicas:
        for key, total in sums.items():
            total[: len(curve[key])] += curve[key]
    sums["kv_blocks"] /= run.rules.capacity * len(replicas)
    stride, end = -(-len(times) // MOST_BINS), float(times[-1])
    starts = range(0, len(times), stride)
    return [
        {"t": float(times[at]), "end": end, **{key: float(total[at : at + stride].mean()) for key, total in sums.items()}} for at in starts
    ]


def _title(row: Mapping[str, Any]) -> str:
    if not row.get("stable", True):
        return "The queue grows without end: more arrives than the replicas finish"
    waiting, share = row["waiting_mean"], row["kv_used_peak"]
    return f"{waiting:.2g} requests wait on average, and the KV cache is at most {share:.0%} full"


def _first_tokens(run: Any, limits: Mapping[str, float], end: float, plot: Any) -> Plot:
    """TTFT of requests by arrival, with the limit on it."""
    import numpy as np

    at = np.flatnonzero(run.completed)
    at = at[:: -(-len(at) // MOST_REQUESTS) or 1]
    points = [{"t": float(run.arrival[place]), "ttft": float(run.first[place] - run.arrival[place])} for place in at]
    limit = next((value for key, value in limits.items() if "ttft" in key), None)
    y = axis("", [*(point["ttft"] for point in points), limit], "s", zero=True, log=False, most=5, room=0.12)
    drawing = plot(3, y)
    data = drawing.rows("requests", points)
    drawing.add(marks.points(data, drawing.x, "t", y, "ttft", drawing.view.colours.line("compute"), size=10, opacity=0.5))
    if limit is not None:
        drawing.level("limit", limit, f"limit {format_value(limit, 's')}", "ink")
    return drawing


# -- against the load ---------------------------------------------------------------------------------------------------------------

PERCENTILES = (("p50", "compute", ()), ("p95", "weights", (6, 3)), ("p99", "kv", (2, 3)))


def latencies(rows: Rows, load: str, limits: Mapping[str, float], view: View) -> Picture:
    """Percentiles of TTFT and TPOT against the rate or the users, with saturation."""
    rows = sorted((row for row in rows if row["kind"] == "point" and row.get(load) is not None), key=lambda row: row[load])
    known = [row for row in rows if row.get("p99_ttft_s") is not None]
    if not known:
        raise BadValue("--plot", "no rate that is stable", "rates below capacity")
    able = next((row["capacity_req_per_s"] for row in rows if row.get("capacity_req_per_s")), None) if load == "rate" else None
    plots = [_percentiles(known, rows, load, key, able, limits, view, number) for number, key in enumerate(("ttft", "tpot"))]
    headings = ("Time to first token (TTFT)", "Time per output token (TPOT)")
    panels = [plot.panel(words) for plot, words in zip(plots, headings, strict=True)]
    first, last = known[0], known[-1]
    title = f"p99 TTFT goes from {format_value(first['p99_ttft_s'], 's')} to {format_value(last['p99_ttft_s'], 's')} as the load grows"
    title += f"; the replicas saturate at {format_value(able, '1/s')}" if able else ""
    subtitle = f"{first['model']} on {first['system']}, simulated; percentiles over requests"
    caption = (
        "Half of the requests are faster than p50, one in a hundred is slower than p99; beyond saturation the queue grows without end."
    )
    return compose(view, [panels], title=title, subtitle=subtitle, caption=caption)


def _percentiles(known: Rows, rows: Rows, load: str, key: str, able: float | None, limits: Any, view: View, number: int) -> Plot:
    suffix = str(number + 1) if number else ""
    values = [row[f"{name}_{key}_s"] for row in known for name, _, _ in PERCENTILES]
    limit = next(((column, value) for column, value in limits.items() if key in column), None)
    across = [row[load] for row in rows]
    x = axis("Requests per second offered" if load == "rate" else "Users who wait for an answer and ask again", [*across, able], "",
             log=max(across) / max(min(across), 1e-9) > 30, zero=load == "rate", fixed_ends=view.ends(f"x{suffix}"))  # fmt: skip
    y = axis("", [*values, limit[1] if limit else None], "s", fixed_ends=view.ends(f"y{suffix}"), zero=max(values) / min(values) < 15)
    plot = Plot(view, f"latency{number}", x, y, columns=2, ends=[name for name, _, _ in PERCENTILES], height=260)
    data = plot.rows("rows", [{"x": row[load], **{name: row[f"{name}_{key}_s"] for name, _, _ in PERCENTILES}} for row in known])
    if able is not None:
        plot.region("saturated", able, x.high, "saturated")
    for name, meaning, dash in PERCENTILES:
        plot.curve(data, "x", name, meaning, text=name, dash=dash)
        plot.cloud(data, "x", name, meaning, size=22)
    if limit:
        plot.level("limit", limit[1], f"limit on {limit[0].split('_')[0]}: {format_value(limit[1], 's')}", "ink")
    return plot

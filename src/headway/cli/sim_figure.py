"""Figures of simulations: latency against load for several; for one run its percentiles, and what went on over time."""

from __future__ import annotations

from typing import Any

from headway.errors import BadValue

CURVE = ("mean_ttft_s", "p99_ttft_s", "p99_tpot_s", "output_tok_per_s")
PANELS = {"running": "requests in service", "waiting": "requests waiting", "kv_blocks": "KV blocks held"}
SHARES = 100


def figure(rows: Any, run: Any) -> dict[str, Any]:
    """The figure that fits the rows."""
    from headway import figures

    points = [row for row in rows if row["kind"] == "point"]
    if not points:
        raise BadValue("--plot", "no rows", "rows to draw")
    if run is None:
        raise BadValue("--plot", "no layout that runs", "something to draw")
    title = f"{points[0]['model']} on {points[0]['system']}"
    for load in ("rate", "users"):
        if len({row.get(load) for row in points}) > 1:
            series = [key for key in ("tp", "ep", "dp", "pp", "replicas") if len({row[key] for row in points}) > 1]
            return figures.table(points, load, CURVE, series, title, "where the queue grows without end there is no latency")
    heading = {"text": title, "subtitle": "the last run: latencies by share of requests, and what went on"}
    return {
        "$schema": figures.SCHEMA, "config": figures.CONFIG, "title": heading,
        "vconcat": [{"hconcat": [_shares(run, key) for key in ("ttft_s", "tpot_s", "e2e_s")]}, {"hconcat": _over_time(run)}],
    }  # fmt: skip


def _shares(run: Any, key: str) -> dict[str, Any]:
    import numpy as np

    from headway.sim.report import measured

    values = measured(run, 0.0).values(key, known=True)
    at = np.linspace(0, 100, SHARES + 1)
    points = [{"x": float(x), "y": float(y)} for x, y in zip(np.percentile(values, at), at, strict=True)] if len(values) else []
    return _line(points, f"{key.removesuffix('_s').upper()} (s)", "% of requests", "log")


def _over_time(run: Any) -> list[dict[str, Any]]:
    import numpy as np

    from headway.sim.timeline import curves

    replica_curves = [curves(state) for state in run.states]
    panels = []
    for key, words in PANELS.items():
        points = [
            {"x": float(time), "y": float(value), "line": f"replica {number}"}
            for number, curve in enumerate(replica_curves[:8])
            for time, value in zip(curve["time_s"], np.asarray(curve[key]), strict=True)
        ]
        panels.append(_line(points, "time (s)", words, "linear"))
    return panels


def _line(points: list[dict[str, Any]], x: str, y: str, scale: str) -> dict[str, Any]:
    several = len({point.get("line") for point in points}) > 1
    colour = {"color": {"field": "line", "type": "nominal", "title": None}} if several else {"color": {"value": "#2e86ab"}}
    across = {"field": "x", "type": "quantitative", "title": x, "scale": {"type": scale, "zero": False}}
    return {
        "width": 260, "height": 200, "data": {"values": points}, "mark": {"type": "line", "interpolate": "monotone"},
        "encoding": {"x": across, "y": {"field": "y", "type": "quantitative", "title": y}, **colour},
    }  # fmt: skip

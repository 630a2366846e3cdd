"""A run as trace events (JSON), which Perfetto opens: each request's queue, prompt and answer, and what was going on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from headway.errors import BadFile
from headway.sim import state as of
from headway.sim.simulate import SimulatedRun

MOST_REQUESTS = 5_000
MICRO = 1e6
COUNTERS = ("running", "waiting", "kv_blocks")


def save(run: SimulatedRun, path: str) -> int:
    """Write the first MOST_REQUESTS requests and every replica's curves; how many requests were written."""
    requests = np.flatnonzero(run.completed)[:MOST_REQUESTS]
    events = [*_curves(run), *_requests(run, requests)]
    try:
        Path(path).write_text(json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}), encoding="utf-8")
    except OSError as error:
        raise BadFile(path, f"cannot be written ({error.strerror or error})") from None
    return len(requests)


def curves(state: of.State) -> dict[str, Any]:
    """Mean over each bin of time: its start, and requests running and waiting, blocks held, share of the bin that is busy."""
    width = float(state.at[of.BIN_S])
    bins = min(of.BINS, int(state.at[of.NOW] / width) + 1)
    sums = np.asarray(state.log[of.GAPS :], float).reshape(of.BINS, of.SERIES)[:bins] / width
    series = dict(zip((*COUNTERS, "busy"), sums.T, strict=True))
    return {"time_s": np.arange(bins) * width} | series


def _curves(run: SimulatedRun) -> list[dict[str, Any]]:
    events = []
    for number, state in enumerate(run.states):
        events.append({"ph": "M", "pid": number, "name": "process_name", "args": {"name": f"replica {number}"}})
        series = curves(state)
        for at, time in enumerate(series["time_s"]):
            events += [
                {"ph": "C", "pid": number, "name": name, "ts": time * MICRO, "args": {name: round(float(series[name][at]), 3)}}
                for name in COUNTERS
            ]
    return events


def _requests(run: SimulatedRun, requests: Any) -> list[dict[str, Any]]:
    """A request is drawn on the first row of its replica that is free when it comes."""
    free: dict[int, list[float]] = {}
    events = []
    for request in requests:
        rows = free.setdefault(int(run.replica[request]), [])
        row = next((at for at, until in enumerate(rows) if until <= run.arrival[request]), len(rows))
        rows[row : row + 1] = [float(run.finish[request])]
        marks = (run.arrival[request], run.scheduled[request], run.first[request], run.finish[request])
        parts = zip(("queue", "prompt", "answer"), marks, marks[1:], strict=False)
        details = {"request": int(request), "prompt": int(run.traffic.prompt[request]), "output": int(run.traffic.output[request])}
        place = {"ph": "X", "pid": int(run.replica[request]), "tid": row + 1, "args": details}
        events += [
            place | {"name": name, "ts": float(start) * MICRO, "dur": float(end - start) * MICRO}
            for name, start, end in parts
            if end > start
        ]
    return events

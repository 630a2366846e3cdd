"""A run as trace events (JSON), which Perfetto opens: each request's queue, prompt and answer, and what was going on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from headway.errors import BadFile
from headway.sim import state as of
from headway.sim.simulate import Run

MOST_REQUESTS = 5_000
MICRO = 1e6
COUNTERS = ("running", "waiting", "kv_blocks")


def save(run: Run, path: str) -> int:
    """Write the first MOST_REQUESTS requests and every replica's curves; how many requests were written."""
    shown = np.flatnonzero(run.completed)[:MOST_REQUESTS]
    events = [*_curves(run), *_requests(run, shown)]
    try:
        Path(path).write_text(json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}), encoding="utf-8")
    except OSError as error:
        raise BadFile(path, f"cannot be written ({error.strerror or error})") from None
    return len(shown)


def curves(state: of.State) -> dict[str, Any]:
    """Mean over each bin of time: its start, and requests running and waiting, blocks held, share of the bin that is busy."""
    width = float(state.at[of.BIN_S])
    used = min(of.BINS, int(state.at[of.NOW] / width) + 1)
    sums = np.asarray(state.log[of.GAPS :], float).reshape(of.BINS, of.SERIES)[:used] / width
    named = dict(zip((*COUNTERS, "busy"), sums.T, strict=True))
    return {"time_s": np.arange(used) * width} | named


def _curves(run: Run) -> list[dict[str, Any]]:
    found = []
    for number, state in enumerate(run.states):
        found.append({"ph": "M", "pid": number, "name": "process_name", "args": {"name": f"replica {number}"}})
        series = curves(state)
        for at, time in enumerate(series["time_s"]):
            found += [
                {"ph": "C", "pid": number, "name": name, "ts": time * MICRO, "args": {name: round(float(series[name][at]), 3)}}
                for name in COUNTERS
            ]
    return found


def _requests(run: Run, shown: Any) -> list[dict[str, Any]]:
    """A request is drawn on the first row of its replica that is free when it comes."""
    free: dict[int, list[float]] = {}
    found = []
    for i in shown:
        rows = free.setdefault(int(run.replica[i]), [])
        row = next((at for at, until in enumerate(rows) if until <= run.arrival[i]), len(rows))
        rows[row : row + 1] = [float(run.finish[i])]
        marks = (run.arrival[i], run.scheduled[i], run.first[i], run.finish[i])
        parts = zip(("queue", "prompt", "answer"), marks, marks[1:], strict=False)
        told = {"request": int(i), "prompt": int(run.traffic.prompt[i]), "output": int(run.traffic.output[i])}
        place = {"ph": "X", "pid": int(run.replica[i]), "tid": row + 1, "args": told}
        found += [
            place | {"name": name, "ts": float(start) * MICRO, "dur": float(end - start) * MICRO}
            for name, start, end in parts
            if end > start
        ]
    return found

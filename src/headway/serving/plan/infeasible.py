"""Why no candidate meets every limit: the nearest miss, the limits it misses, and by how much."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from headway.core import units
from headway.laws.serving.request import e2e_s
from headway.performance.estimate import estimate
from headway.serving.plan.candidates import Candidates, fits
from headway.serving.plan.choice import Choice, pick
from headway.serving.plan.problem import NAMES, Goal, limits
from headway.serving.plan.search import exact
from headway.serving.plan.sizing import sized
from headway.serving.serve_request import case_of


def nearest(candidates: Sequence[Candidates], goal: Goal) -> tuple[Choice, str, tuple[int, float]]:
    """The nearest miss, its reason (memory before times), and by how much it misses: of memory if the first number is above 0."""
    rows = [(w, *_row(w, goal)) for w in candidates]
    w, row, batch, miss = min(rows, key=lambda entry: entry[3])
    size = sized(w, np.ones((w.count, 1)), replace(goal, rate=None))
    return pick(w, row, batch, replace(goal, rate=None), size), _reason(w, row, batch, goal), miss


def beyond(most: Choice, goal: Goal) -> str:
    """Why a load is not carried, in words, with the machine's largest."""
    estimates = estimate(case_of(most.query, most.layout, most.load))
    words = f"{most.layout}, {int(most.layout.replicas)} replicas"
    if goal.rate is None:
        users, most_users = int(goal.users or 0), int(estimates["concurrency"])
        return f"the load is {users} users, {most.query.system.name} serves {most_users} within the limits at most ({words})"
    rate, most_rate = (units.show(float(value), "") for value in (goal.rate, estimates["capacity_req_per_s"]))
    return f"rate is {rate} req/s, {most.query.system.name} carries {most_rate} req/s within the limits at most ({words})"


def _times(w: Candidates, batch: Any, goal: Goal) -> dict[str, Any]:
    """The mean time behind each limit, in seconds, of so many users."""
    point = exact(w, np.asarray(batch, dtype=float), replace(goal, rate=None))
    e2e = e2e_s(point.ttft, point.tpot, w.query.load.output)
    return {"ttft": point.ttft, "tpot": point.tpot, "e2e": e2e, "tpot_decode": point.decode}


def _row(w: Candidates, goal: Goal) -> tuple[int, int, tuple[int, float]]:
    """The layout that misses by least: (row, batch, (stage: 0 times, 1 KV cache, 2 weights; ratio of the miss))."""
    batch = np.full((w.count, 1), min(goal.batches)) if goal.batches else np.ones((w.count, 1), dtype=np.int64)
    room = _full(fits(w, batch), w)
    if room.any():
        miss_ratio = np.zeros(w.count)
        latencies = _times(w, batch, goal)
        for name, limit in limits(goal.slo).items():
            miss_ratio = np.maximum(miss_ratio, _full(latencies[name], w) / limit)
        miss_ratio = np.where(room, miss_ratio, np.inf)
        stage = 0
    else:
        weights = _full(w.compiled.weights_bytes, w)
        usable = _full(w.usable, w)
        inside = weights <= usable
        miss_ratio = np.where(inside, 1 / np.maximum(_full(w.limit, w), 1e-9), np.inf) if inside.any() else weights / usable
        stage = 1 if inside.any() else 2
    row = int(np.argmin(miss_ratio))
    return row, int(batch[row, 0]), (stage, float(miss_ratio[row]))


def _full(value: Any, w: Candidates) -> Any:
    return np.broadcast_to(value, (w.count, 1))[:, 0]


def _reason(w: Candidates, row: int, batch: int, goal: Goal) -> str:
    point = w.rows(np.array([row]))
    weights, usable, limit = (float(_full(value, point)[0]) for value in (point.compiled.weights_bytes, point.usable, point.limit))
    where = " ".join(f"{name}={int(_full(getattr(point.layout, name), point)[0])}" for name in ("tp", "ep", "dp", "pp"))
    if weights > usable:
        return f"weights need {_gb(weights)} per chip at {where}, {_gb(usable)} are usable"
    if not _full(fits(point, batch), point)[0]:
        room = f"{_gb(usable)} usable per chip at {where} hold {_gb(weights)} of weights"
        return f"{room} and the KV cache of {limit:.3g} sequences per rank, fewer than batch {batch} needs"
    misses, latencies = [], _times(point, batch, goal)
    for name, most in limits(goal.slo).items():
        value = float(_full(latencies[name], point)[0])
        if value > most:
            at = f" at batch {batch}" if name != "ttft" else ""
            misses.append(f"{NAMES[name]}{at} is {units.show(value, 's')}, limit {units.show(most, 's')}")
    return "; ".join(misses) + f" (nearest miss: {where})"


def _gb(value: float) -> str:
    return units.show(value, "byte")

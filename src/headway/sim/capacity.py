"""Capacity of replicas, stability of their queue at a load, and the highest load that meets limits.

Capacity is simulated, not derived: all requests wait from the start, and the completion rate is measured once the batch has settled and
while requests still wait.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.sim.simulate import SimulatedRun, simulate
from headway.sim.state import Rules
from headway.sim.step_time import StepPace
from headway.sim.traffic.requests import Traffic

CLOSE = 0.005  # relative gap between a rate that meets the limits and a rate that does not
MOST_HALVINGS = 30
DOUBLINGS = 5
START = 1 / 64  # first rate tried, as a share of the capacity


def meets_limits(row: Mapping[str, Any], limits: Mapping[str, float]) -> bool:
    """Whether a row is stable and meets every limit; a missing figure fails its limit."""
    return bool(row["stable"]) and all(row.get(key) is not None and row[key] <= most for key, most in limits.items())


def between(rows: Sequence[Mapping[str, Any]], limits: Mapping[str, float]) -> tuple[Any, Any]:
    """The tried rows at the highest rate that meets the limits and at the lowest that does not, None if there is none."""
    good = [row for row in rows if meets_limits(row, limits)]
    bad = [row for row in rows if not meets_limits(row, limits)]
    return max(good, key=lambda row: row["rate"], default=None), min(bad, key=lambda row: row["rate"], default=None)


def highest(at: Callable[[float], Mapping[str, Any]], capacity: float, limits: Mapping[str, float]) -> tuple[Any, Any]:
    """The row at the highest rate that meets the limits and the row at the lowest rate tried that does not, None if there is none."""
    low, high = capacity * START, capacity * 1.2
    good = at(low)
    if not meets_limits(good, limits):
        return None, good
    bad = at(high)
    for _ in range(DOUBLINGS):  # with prefix hits or abandonment replicas may carry more than the capacity
        if not meets_limits(bad, limits):
            break
        good, low, high = bad, high, 2.0 * high
        bad = at(high)
    if meets_limits(bad, limits):
        return bad, None
    for _ in range(MOST_HALVINGS):
        if high - low <= CLOSE * high:
            break
        rate = (low + high) / 2
        row = at(rate)
        if meets_limits(row, limits):
            low, good = rate, row
        else:
            high, bad = rate, row
    return good, bad


ROUNDS, FEWEST_ROUNDS = 20, 6  # requests per batch slot; fewer for very large batches
SETTLED = 0.4  # share of completions under a queue that pass before counting begins
LEAST, MOST = 400, 20_000
SURE = 3.0  # standard deviations of the arrival count beyond which queue growth is not chance
NEAR, CLEAR = 0.9, 1.05  # utilisation below which every queue is stable, and from which none is


@dataclass(frozen=True, slots=True, kw_only=True)
class Saturation:
    """Utilisation and stability of a run against the capacity of its replicas."""

    capacity: float | None  # requests per second, all replicas
    utilisation: float | None
    growth: float  # queue growth in requests per second over the second half of the arrivals
    stable: bool


def capacity(traffic: Traffic, pace: StepPace, rules: Rules, replicas: int, how: str = "auto") -> float | None:
    """Requests per second that replicas complete under a full queue; None if no request can be served."""
    fits = (traffic.prompt + traffic.output + rules.block - 1) // rules.block <= rules.capacity
    if not fits.any():
        return None
    prompt, output = traffic.prompt[fits], traffic.output[fits]
    request_blocks = float((prompt + output).mean()) / rules.block
    places = min(rules.seats, max(1, int(rules.capacity / request_blocks)))
    count = int(np.clip(ROUNDS * places, LEAST, max(MOST, FEWEST_ROUNDS * places)))
    rows = np.arange(count) % len(prompt)
    full = Traffic.of(np.zeros(count), prompt[rows], output[rows])
    run = simulate(full, pace, rules._replace(closed=0), how=how)
    if run.interrupted:
        raise KeyboardInterrupt
    return rate_while_full(run, places) * replicas


def rate_while_full(run: SimulatedRun, places: int) -> float:
    """Completed requests per second between the settling of the batch and the end of the queue.

    Requests of similar length that are admitted together end together. A mean over spans that begin at each of `places` completions
    makes the rate independent of where in such a wave the count begins.
    """
    ends = np.sort(run.finish[run.completed])
    full = int((ends <= float(np.nanmax(run.scheduled))).sum())
    first = int(SETTLED * full)
    span = full - first - places
    if span < places:  # the queue ends before the batch settles, so all completions count
        return len(ends) / float(ends[-1])
    begins = ends[first : first + places]
    return span / float((ends[first + span : full] - begins).mean())


def stand(run: SimulatedRun, able: float | None, only: Any = True) -> Saturation:
    """Stability of the queue (of the `only` requests) and utilisation of the replicas; with abandonment every queue is stable."""
    is_offered = run.is_sent & ~run.refused & only
    count, (first, last) = int(is_offered.sum()), run.sent_between(is_offered)
    if count < 2 or last <= first or run.rules.closed == 1:
        return Saturation(capacity=able, utilisation=None, growth=0.0, stable=True)
    span = last - first
    rate = (count - 1) / span
    growth = (queued_at(run, is_offered, last) - queued_at(run, is_offered, first + span / 2)) / (span / 2)
    chance = SURE * np.sqrt(2.0 * rate * span / 2) / (span / 2)
    utilisation = rate / able if able else None
    if run.rules.leaving:
        return Saturation(capacity=able, utilisation=utilisation, growth=0.0, stable=True)
    grows = growth > chance and (utilisation is None or utilisation > NEAR)
    over = (
        utilisation is not None and utilisation >= CLEAR and not run.rules.caching
    )  # with prefix hits replicas carry more than this capacity
    return Saturation(capacity=able, utilisation=utilisation, growth=growth, stable=not (grows or over))


def queued_at(run: SimulatedRun, is_offered: Any, time: float) -> int:
    """Requests sent by `time` that wait for their first admission."""
    return int((is_offered & (run.arrival <= time) & ~(run.scheduled <= time)).sum())

"""Pareto frontier of speed and cost over all layouts and a geometric range of batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headway.laws.serving.request import user_tok_per_s
from headway.performance.workload import SLO
from headway.serving.plan.problem import Goal
from headway.serving.plan.search import BestLoads, batch_of, curve, exact, least_sequences, most_within
from headway.serving.plan.sizing import ReplicaCounts, objective_value, sized

FINEST, COARSEST = 150, 20  # batches tried per layout
CELLS = 100_000  # target for all candidates, so that a large space stays fast
DEFAULT_POINTS, FEW_POINTS = 12, 6  # without a rate, and where each point is a load of its own
BINS = 1024  # bins of speed, to drop most candidates before sorting


@dataclass(frozen=True, slots=True, kw_only=True)
class Points:
    """Candidates as arrays: index of the search, row of its layout, load, speed (token/s per user) and cost."""

    search: Any
    row: Any
    batch: Any  # users per replica
    rate: Any  # requests per second of a replica
    speed: Any
    cost: Any

    def take(self, keep: Any) -> Points:
        """The candidates at the indices `keep`."""
        return Points(**{key: getattr(self, key)[keep] for key in self.__slots__})


def candidates(searches: Sequence[BestLoads], goals: Sequence[Goal]) -> Points:
    """Every layout within memory and the TTFT limit, at a geometric range of batches (or the pinned batches) and at its best batch."""
    rows = sum(best.fitting.count for best in searches)
    size = int(np.clip(CELLS // max(rows, 1), COARSEST, FINEST))
    parts = []
    for index, (best, goal) in enumerate(zip(searches, goals, strict=True)):
        if best.fitting.count:
            parts.append(_grid(index, best, size, goal))
        if best.candidates.count:
            cost = objective_value(goal, best.candidates.query, best.size, best.point.tpot, 1 / best.point.rate)
            cost, speed = np.broadcast_to(cost, best.batch.shape), user_tok_per_s(best.point.tpot)
            parts.append(_points(index, best.fitting_rows, best.batch, best.point.rate, speed, cost))
    if not parts:
        nothing = np.empty(0)
        return Points(**dict.fromkeys(Points.__slots__, nothing))
    return Points(**{key: np.concatenate([getattr(part, key) for part in parts]) for key in Points.__slots__})


def _grid(index: int, best: BestLoads, size: int, goal: Goal) -> Points:
    w = best.fitting
    if goal.batches:
        users = np.broadcast_to(np.array([goal.batches], dtype=float), (w.count, len(goal.batches)))
        point, new = exact(w, users, replace(goal, rate=None)), best.room
    else:
        most = most_within(w, best.most, replace(goal, slo=SLO()))  # the last point fills the memory
        ranks = np.floor(most ** (np.arange(size) / (size - 1)) + 1e-9).astype(np.int64)
        new = np.ones(ranks.shape, dtype=bool)
        new[:, 1:] = ranks[:, 1:] > ranks[:, :-1]
        new &= ranks >= least_sequences(w)
        point = curve(w, batch_of(w, ranks).astype(float), goal)
        users = np.maximum(np.floor(point.served), 1)
        new = new & (users <= batch_of(w, best.most))
    counts = sized(w, 1 / point.rate, goal)
    new = new & _carried(counts, point.rate, goal)
    if goal.slo.ttft is not None:
        new = new & (point.ttft <= goal.slo.ttft)
    cost = objective_value(goal, w.query, counts, point.tpot, 1 / point.rate)
    row = np.broadcast_to(np.arange(w.count).reshape(-1, 1), users.shape)
    values = (np.broadcast_to(value, users.shape)[new] for value in (point.rate, user_tok_per_s(point.tpot), cost))
    return _points(index, row[new], users[new].astype(np.int64), *values)


def _carried(size: ReplicaCounts, rate: Any, goal: Goal) -> Any:
    """Whether the replicas carry the rate of the goal."""
    return True if goal.rate is None or goal.sizing else size.replicas * rate >= goal.rate


def _points(index: int, row: Any, batch: Any, rate: Any, speed: Any, cost: Any) -> Points:
    values = (np.full(row.size, index), row, batch, rate, speed, cost)
    return Points(**{key: np.ravel(value) for key, value in zip(Points.__slots__, values, strict=True)})


def frontier(points: Points, most: int = DEFAULT_POINTS) -> Points:
    """The Pareto frontier, fastest first; at most `most` points, evenly spread in log speed and with both ends."""
    points = points.take(_in_reach(points))
    order = np.lexsort((points.cost, -points.speed))
    cost = points.cost[order]
    new = np.ones(len(order), dtype=bool)
    new[1:] = cost[1:] < np.minimum.accumulate(cost)[:-1] * (1 - 1e-9)
    front = points.take(order[new])
    if len(front.speed) <= most:
        return front
    log = np.log(front.speed)
    targets = np.linspace(log[0], log[-1], most)
    return front.take(np.unique(np.abs(log[:, None] - targets[None, :]).argmin(axis=0)))


def _in_reach(points: Points) -> Any:
    """Indices of candidates cheaper than all clearly faster candidates, a small superset of the frontier."""
    log = np.log(points.speed)
    span = max(float(log.max() - log.min()), 1e-12)
    place = ((log - log.min()) / span * BINS).astype(np.int64)
    least = np.full(BINS + 2, np.inf)
    np.minimum.at(least, place, points.cost)
    faster = np.minimum.accumulate(least[::-1])[::-1]
    return np.flatnonzero(points.cost < faster[place + 1])

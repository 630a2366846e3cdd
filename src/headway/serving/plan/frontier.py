"""Pareto frontier of speed and cost over all layouts and a geometric range of batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.laws.serving.request import user_tok_per_s
from headway.serving.plan.problem import Goal
from headway.serving.plan.search import BestBatches, batch_of, carried, least_sequences, objective_value, request, sized, tpot

FINEST, COARSEST = 150, 24  # batches tried per layout
CELLS = 200_000  # target for all candidates, so that a large space stays fast
DEFAULT_POINTS = 12
BINS = 1024  # bins of speed, to drop most candidates before sorting


@dataclass(frozen=True, slots=True, kw_only=True)
class Points:
    """Candidates as arrays: index of the search, row of its layout, batch, speed (token/s per user) and cost."""

    search: Any
    row: Any
    batch: Any
    speed: Any
    cost: Any

    def take(self, keep: Any) -> Points:
        """The candidates at the indices `keep`."""
        return Points(search=self.search[keep], row=self.row[keep], batch=self.batch[keep], speed=self.speed[keep], cost=self.cost[keep])


def candidates(searches: Sequence[BestBatches], goals: Sequence[Goal]) -> Points:
    """Every layout within memory and the TTFT limit, at a geometric range of batches (or the pinned batches) and at its best batch."""
    rows = sum(best.fitting.count for best in searches)
    size = int(np.clip(CELLS // max(rows, 1), COARSEST, FINEST))
    parts = []
    for index, (best, goal) in enumerate(zip(searches, goals, strict=True)):
        if best.fitting.count:
            parts.append(_grid(index, best, size, goal))
        if best.candidates.count:
            cost = objective_value(goal, best.candidates.query, sized(best.candidates, best.request, goal), best.tpot, best.request)
            cost = np.broadcast_to(cost, best.batch.shape)
            parts.append(_points(index, best.fitting_rows, best.batch, best.tpot, cost))
    if not parts:
        nothing = np.empty(0)
        return Points(search=nothing, row=nothing, batch=nothing, speed=nothing, cost=nothing)
    return Points(**{key: np.concatenate([getattr(part, key) for part in parts]) for key in Points.__dataclass_fields__})


def _grid(index: int, best: BestBatches, size: int, goal: Goal) -> Points:
    w = best.fitting
    if goal.batches:
        batch, new = np.broadcast_to(np.array([goal.batches]), (w.count, len(goal.batches))), best.room
    else:
        ranks = np.floor(best.most ** (np.arange(size) / (size - 1)) + 1e-9).astype(np.int64)
        new = np.ones(ranks.shape, dtype=bool)
        new[:, 1:] = ranks[:, 1:] > ranks[:, :-1]
        new &= ranks >= least_sequences(w)
        batch = batch_of(w, ranks)
    times = tpot(w, batch)
    requests = request(w, batch, times)
    new = new & carried(w, requests, goal)
    cost = objective_value(goal, w.query, sized(w, requests, goal), times, requests)
    row = np.broadcast_to(np.arange(w.count).reshape(-1, 1), batch.shape)
    times, cost = (np.broadcast_to(value, batch.shape)[new] for value in (times, cost))
    return _points(index, row[new], batch[new], times, cost)


def _points(index: int, row: Any, batch: Any, times: Any, cost: Any) -> Points:
    speed = user_tok_per_s(times)
    return Points(search=np.full(row.size, index), row=row.ravel(), batch=batch.ravel(), speed=speed.ravel(), cost=cost.ravel())


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

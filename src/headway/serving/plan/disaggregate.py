"""The best prefill pool and decode pool of a model on a machine: which layouts, and how many replicas of each.

The machine's domains are filled with prefill replicas, one domain after the other, and decode replicas take what is left. Of layouts with
equally many chips only those are paired that no other beats in rate, time and link time; sizes are where the pools' rates meet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headway.core.catalog import fold
from headway.core.quantity import known
from headway.laws.serving import replicas as pools
from headway.laws.serving.replicas import chips_needed, replicas_held, replicas_needed
from headway.laws.serving.request import e2e_s, prefill_lanes, request_s
from headway.laws.step.memory import kv_bytes_chip, sequence_bytes
from headway.performance.layout import Layout
from headway.performance.request import ONE_RANK
from headway.performance.workload import SLO
from headway.serving.plan.choice import Choice, pick
from headway.serving.plan.problem import Goal
from headway.serving.plan.search import (
    ONE_REPLICA,
    Candidates,
    ReplicaCounts,
    batch_of,
    fits,
    most_fitting,
    most_within,
    objective_value,
    tpot,
)
from headway.serving.plan.space import domain_of
from headway.serving.pools import NO_PREFILL, hand_over_link

LEVELS = 8  # limits on TPOT that the frontier, a limit on E2E and a rate at low latency are searched at
FEW = 2000  # pairs sized to begin with
TIE = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Replicas that one pool may be made of, one number each."""

    candidates: Candidates
    row: Any
    batch: Any
    chips: Any
    request: Any  # replica time per request
    time: Any  # TTFT without the hand-over, or TPOT
    link: Any  # link time of one prompt's KV

    def take(self, keep: Any) -> Pool:
        """Some of them."""
        names = ("row", "batch", "chips", "request", "time", "link")
        return replace(self, **{name: getattr(self, name)[keep] for name in names})


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolPair:
    """Two replicas and how many there are of each."""

    prefill: Pool
    decode: Pool
    index: tuple[int, int]
    replicas: tuple[int, int]
    chips: int
    key: tuple[float, ...]  # least is best
    value: float


def pairs(candidates: Sequence[Candidates], goal: Goal) -> tuple[list[PoolPair], int]:
    """The best pair of pools under each of several limits on TPOT, and how many pairs of replicas were sized."""
    best_pairs, count = [], 0
    for w in candidates:
        first = _prefill_side(w, goal)
        most = most_fitting(w)
        keep = np.flatnonzero(most)
        w, most = w.rows(keep), most[keep]
        for limit in _levels(w, most, goal):
            second = _decode_side(w, most, limit, goal)
            if len(first.row) and len(second.row):
                count += len(first.row) * len(second.row)
                best = _best(first, second, goal)
                best_pairs += [best] if best else []
    return best_pairs, count


def _levels(w: Candidates, most: Any, goal: Goal) -> list[float]:
    """The limits on TPOT that are asked for, and lower ones."""
    tpot_limits = [limit for limit in (goal.slo.tpot, goal.slo.tpot_interleaved) if limit is not None]
    if not w.count:
        return []
    low, high = float(tpot(w, batch_of(w, np.ones_like(most))).min()), float(tpot(w, batch_of(w, most)).max())
    high = min([high, *tpot_limits])
    return [] if high < low else [high, *np.geomspace(low, high, LEVELS)[:-1]]


def _link_s(w: Candidates, goal: Goal) -> Any:
    query, layout = w.query, w.layout
    prompt_bytes = sequence_bytes(w.compiled.stores, w.compiled.state_bytes, query.load.prompt)
    prompt_bytes = kv_bytes_chip(ONE_RANK, prompt_bytes, w.compiled.stage, layout.cp)
    return pools.link_s(prompt_bytes, hand_over_link(query.system, goal.free), query.assumptions.eff_network)


def _prefill_side(w: Candidates, goal: Goal) -> Pool:
    """Replicas that hold a prompt on each rank and stage and hand its cache over in time."""
    batch, link, layout = batch_of(w, np.ones((w.count, 1), dtype=np.int64)), _link_s(w, goal), w.layout
    work = pools.prompt_s(w.prefill, prefill_lanes(layout.dp, layout.pp))
    good = fits(w, batch)
    if goal.slo.ttft is not None:
        good = good & (pools.handed_over_s(w.ttft, link) <= goal.slo.ttft)
    side = _side(w, batch, pools.pool_request_s(work, link, layout.dp), w.ttft, link)
    timed = goal.slo.ttft is not None or goal.slo.e2e is not None
    return _undominated(side.take(np.flatnonzero(np.broadcast_to(good, (w.count, 1)))), timed)


def _decode_side(w: Candidates, most: Any, limit: float, goal: Goal) -> Pool:
    """Replicas at the largest batch that memory and the limit on TPOT allow."""
    if goal.batches:
        ranks = np.full_like(most, 1)
        batch = np.full_like(most, max(goal.batches))
        good = fits(w, batch) & (tpot(w, batch) <= limit)
    else:
        ranks = most_within(w, most, Goal(slo=SLO(tpot=limit)))
        batch, good = batch_of(w, np.maximum(ranks, 1)), ranks > 0
    times, link, layout = tpot(w, batch), _link_s(w, goal), w.layout
    work = request_s(batch, w.query.load.output, times, NO_PREFILL, prefill_lanes(layout.dp, layout.pp))
    side = _side(w, batch, pools.pool_request_s(work, link, layout.dp), times, link)
    timed = goal.objective == "latency" or goal.slo.e2e is not None
    return _undominated(side.take(np.flatnonzero(np.broadcast_to(good, (w.count, 1)))), timed)


def _side(w: Candidates, batch: Any, request: Any, time: Any, link: Any) -> Pool:
    values = (batch, w.compiled.chips, request, time, link)
    flat = (np.broadcast_to(value, (w.count, 1))[:, 0] for value in values)
    names = ("batch", "chips", "request", "time", "link")
    return Pool(candidates=w, row=np.arange(w.count), **dict(zip(names, flat, strict=True)))


def _undominated(side: Pool, timed: bool) -> Pool:
    """Those that no other of as many chips beats in rate, link time and, if asked, in time."""
    if not timed:
        order = np.lexsort((side.link, side.request, side.chips))
        chips, link = side.chips[order], side.link[order]
        front = [part[_falling(link[start : start + len(part)])] for start, part in _runs(chips, order)]
        return side.take(np.concatenate(front) if front else order)
    keys, front = np.stack([side.request, side.link, side.time], axis=1), []
    order = np.lexsort((side.time, side.link, side.request, side.chips))
    for _, at in _runs(side.chips[order], order):
        run_keys = keys[at]
        below = (run_keys[:, None, :] <= run_keys[None, :, :]).all(axis=2)  # i no worse than j
        beaten = (below & (np.arange(len(at))[:, None] < np.arange(len(at))[None, :])).any(axis=0)
        front.append(at[~beaten])
    return side.take(np.concatenate(front) if front else order)


def _runs(values: Any, order: Any) -> list[tuple[int, Any]]:
    """The parts of an order with equal values, and where each starts."""
    starts = np.flatnonzero(np.diff(values, prepend=np.nan) != 0)
    return [(int(start), part) for start, part in zip(starts, np.split(order, starts[1:]), strict=True)] if len(order) else []


def _falling(values: Any) -> Any:
    """Where a value is below all before it."""
    least = np.minimum.accumulate(values)
    return np.concatenate([[True], values[1:] < least[:-1]])


def _best(first: Pool, second: Pool, goal: Goal) -> PoolPair | None:
    """The best pair and its sizes."""
    a, b = np.meshgrid(np.arange(len(first.row)), np.arange(len(second.row)), indexing="ij")
    a, b = a.ravel(), b.ravel()
    query = first.candidates.query
    ttft = pools.handed_over_s(first.time[a], pools.transfer_s(first.link[a], second.link[b]))
    good = np.full(len(a), True)
    if goal.slo.ttft is not None:
        good &= ttft <= goal.slo.ttft
    if goal.slo.e2e is not None:
        good &= e2e_s(ttft, second.time[b], query.load.output) <= goal.slo.e2e
    a, b, ttft = a[good], b[good], ttft[good]
    if not len(a):
        return None
    if goal.objective in ("cost", "throughput") and not goal.sizing:
        keep = _promising(first.take(a), second.take(b), goal)
        a, b, ttft = a[keep], b[keep], ttft[keep]
    p, q, size, capacity = _sized(first.take(a), second.take(b), goal)
    feasible = (p >= 1) & (q >= 1)
    capacity = np.where(feasible, capacity, 1.0)
    value = np.broadcast_to(objective_value(goal, query, size, second.time[b], pools.between_s(capacity)), p.shape)
    able = feasible & (True if goal.rate is None else capacity >= goal.rate * (1 - TIE))
    if not able.any():
        return None
    ranked = np.where(able, -value if goal.more else value, np.inf)
    equal = np.flatnonzero(ranked <= ranked.min() + TIE * abs(ranked.min()))
    chips_used = np.broadcast_to(size.chips_used, p.shape)
    at = int(equal[np.lexsort((equal, ttft[equal], chips_used[equal]))[0]])
    key = (float(ranked[at]), float(chips_used[at]), float(ttft[at]))
    chips = int(np.broadcast_to(size.chips, p.shape)[at])
    index, replicas = (int(a[at]), int(b[at])), (int(p[at]), int(q[at]))
    return PoolPair(prefill=first, decode=second, index=index, replicas=replicas, chips=chips, key=key, value=float(value[at]))


def _promising(first: Pool, second: Pool, goal: Goal) -> Any:
    """The pairs whose rate without whole numbers is not below what the best of the first few reaches with them."""
    chips = first.candidates.query.system.chips
    bound = pools.fluid_capacity(chips, first.chips, first.request, second.chips, second.request)
    few = np.argsort(-bound, kind="stable")[:FEW]
    *_, capacity = _sized(first.take(few), second.take(few), goal)
    return np.flatnonzero(bound >= capacity.max() * (1 - TIE))


def _sized(first: Pool, second: Pool, goal: Goal) -> tuple[Any, Any, ReplicaCounts, Any]:
    """Replicas of both pools, the chips, and what they carry: as many as the load needs, or the most that the machine holds."""
    system = first.candidates.query.system
    chips = system.chips
    domain = min(domain_of(system), int(chips))
    if goal.sizing:
        p, q = (np.ones(len(side.row)) if goal.rate is None else replicas_needed(goal.rate, side.request) for side in (first, second))
        if goal.free:
            chips = chips_needed(p, domain, first.chips) + chips_needed(q, domain, second.chips)
        else:
            q = np.where(decode_held(p, system, domain, first, second) >= q, q, 0)
    else:
        p, q = _balanced(first, second, system, domain)
    chips_used = pools.pools_used(pools.pool_chips(p, first.chips), pools.pool_chips(q, second.chips))
    return (
        p,
        q,
        ReplicaCounts(replicas=ONE_REPLICA, chips_used=chips_used, chips=chips),
        pools.pools_capacity(p, first.request, q, second.request),
    )


def decode_held(p: Any, system: Any, domain: int, first: Pool, second: Pool) -> Any:
    """Decode replicas beside so many prefill replicas; none where those do not fit themselves."""
    most = replicas_held(int(system.chips) // domain * domain, domain, first.chips)
    replicas = pools.decode_replicas_held(np.minimum(p, most), int(system.chips), domain, first.chips, second.chips)
    return np.where(p <= most, replicas, 0)


def _balanced(first: Pool, second: Pool, system: Any, domain: int) -> tuple[Any, Any]:
    """The number of prefill replicas at which the slower pool is fastest: where both rates cross, or one more."""
    low = np.ones(len(first.row))
    high = replicas_held(int(system.chips) // domain * domain, domain, first.chips) + 1.0
    while (high - low > 1).any():
        middle = np.maximum(np.floor((low + high) / 2), 1)
        short = middle / first.request <= decode_held(middle, system, domain, first, second) / second.request
        converged = high - low <= 1
        low, high = np.where(short & ~converged, middle, low), np.where(short | converged, high, middle)
    rates = [pools.pools_capacity(p, first.request, decode_held(p, system, domain, first, second), second.request) for p in (low, low + 1)]
    p = np.where(rates[1] > rates[0], low + 1, low)
    return p, decode_held(p, system, domain, first, second)


def picked(pair: PoolPair, goal: Goal) -> Choice:
    """A pair as what a row is about: the decode replica, and the prefill pool beside it."""
    (a, b), (p, q) = pair.index, pair.replicas
    plain = replace(goal, free=False, objective="cost")
    first, second = pair.prefill, pair.decode
    prompts = pick(first.candidates, int(first.row[a]), int(first.batch[a]), plain)
    answers = pick(second.candidates, int(second.row[b]), int(second.batch[b]), plain, pair.value)
    query = answers.query
    if goal.free:
        name = f"{pair.chips}x{fold(query.system.chip.name)}"
        chips = known(pair.chips, f"{name}.chips", "", "derived", "as many as carry the load", "now")
        query = replace(query, system=replace(query.system, name=name, chips=chips))
    return replace(answers, query=query, layout=_with_replicas(answers.layout, q), prefill=_with_replicas(prompts.layout, p))


def _with_replicas(layout: Layout, replicas: int) -> Layout:
    return replace(layout, replicas=known(replicas, "replicas", "", "derived", "chosen by the search of plan", "now"))

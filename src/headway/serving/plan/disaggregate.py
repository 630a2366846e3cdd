"""The best prefill pool and decode pool of a model on a machine: their layouts and numbers of replicas.

Prefill replicas fill the machine's domains one after the other, and decode replicas take the remaining chips. Among layouts with equally
many chips, only the Pareto-optimal layouts in rate, time and link time are paired; pool sizes are where the pools' rates meet.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from headway.core.quantity import known
from headway.core.units import ONE_TOKEN, Number, PerSecond, Second
from headway.hardware.system import System
from headway.laws.queueing.closed_loop import loop_rate
from headway.laws.serving import replicas as laws
from headway.laws.serving.replicas import nodes_needed, replicas_held
from headway.laws.serving.request import e2e_s, request_s
from headway.performance import request as request_laws
from headway.performance.compile import halves
from headway.performance.estimate import Deployment
from headway.performance.layout import Layout
from headway.performance.workload import Load
from headway.serving.plan.candidates import ONE_REPLICA, Candidates, ReplicaCounts, fits, objective_value, rented_together
from headway.serving.plan.choice import Choice, pick, with_chips
from headway.serving.plan.pools_at_load import Demand, rate_in_time, replicas_at
from headway.serving.plan.problem import LIMITS, Goal, limits, rounded
from headway.serving.plan.search import RISE, batch_of, bisect_ranks, decode_tpot, least_sequences, most_fitting, step_law
from headway.serving.plan.space import domain_of
from headway.serving.pools import NO_PREFILL, estimate_pools, hand_over_link, handed_bytes

LEVELS = 8  # TPOT limits tried for the frontier, for an E2E limit and for a rate at low latency
FEW = 400  # pairs sized at once
TIE = 1e-12
NO_SIZE = ReplicaCounts(replicas=1, chips_used=1, chips=1)  # the pair sizes itself


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Candidate replicas of one pool, one array element each."""

    candidates: Candidates
    row: Any
    batch: Any
    chips: Any
    request: Any  # replica time per request
    time: Any  # TTFT without KV transfer, or TPOT
    room: Any  # prompts at once of a replica, or the most answers at once
    link: Any  # link time of one prompt's KV cache
    beginning: Any  # share of a user's requests whose prompts begin with those of all others; own runs may tell it apart by layout

    def take(self, keep: np.ndarray) -> Pool:
        """The candidates at the indices `keep`, in every column."""
        return replace(self, **{item.name: getattr(self, item.name)[keep] for item in fields(self) if item.name != "candidates"})


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolPair:
    """A prefill replica and a decode replica, with the number of each."""

    prefill: Pool
    decode: Pool
    index: tuple[int, int]
    replicas: tuple[int, int]
    chips: int
    key: tuple[float, ...]  # sort key, smaller is better
    value: float
    rate: float  # requests per second that it carries in time, or its capacity where a load is stated

    @property
    def tpot(self) -> float:
        """Time between tokens of an answer in the decode pool, in seconds."""
        return float(self.decode.time[self.index[1]])

    @property
    def first(self) -> float:
        """Time to the first token of a request that does not wait, in seconds."""
        a, b = self.index
        return float(self.prefill.time[a] + laws.transfer_s(self.prefill.link[a], self.decode.link[b]))


def pairs(candidates: Sequence[Candidates], goal: Goal, tpot: Second | None = None) -> tuple[list[PoolPair], int]:
    """The best pair of pools under each of several TPOT limits, or under `tpot` alone, and the number of replica pairs sized."""
    best_pairs, count = [], 0
    for first, second in sides(candidates, goal, tpot):
        count += len(first.row) * len(second.row)
        best = best_pair(first, second, goal)
        best_pairs += [best] if best else []
    return best_pairs, count


def sides(candidates: Sequence[Candidates], goal: Goal, tpot: Second | None = None) -> Iterator[tuple[Pool, Pool]]:
    """Prefill and decode replicas to pair, under each of several TPOT limits or `tpot` alone: whatever the rate, they are the same."""
    for w in candidates:
        first = _prefill_side(w, goal)
        most = most_fitting(w)
        if not len(first.row):
            continue
        room = goal.free or w.compiled.chips + first.chips.min() <= w.case.system.chips  # beside a prefill replica
        keep = np.flatnonzero((most > 0) & room)
        w, most = w.rows(keep), most[keep]
        for second in _decode_sides(w, most, _levels(w, most, goal) if tpot is None else [tpot], goal):
            if len(second.row):
                yield first, second


def _levels(w: Candidates, most: Number, goal: Goal) -> list[float]:
    """TPOT limits to try in seconds: the requested limit, then lower limits."""
    tpot_limits = [limit for limit in (goal.slo.tpot, goal.slo.tpot_decode) if limit is not None]
    if not w.count:
        return []
    low, high = (
        float(least(decode_tpot(w, batch_of(w, ranks), step_law(goal)))) for ranks, least in ((np.ones_like(most), np.min), (most, np.max))
    )
    high = min([high, *tpot_limits])
    return [] if high < low else [high, *np.geomspace(low, high, LEVELS)[:-1]]


def _link_s(w: Candidates, goal: Goal) -> Any:
    """Link time of one prompt's KV cache on a chip of a pool."""
    case = w.case
    return handed_bytes(w.compiled, case.load.prompt, w.layout.cp) / (hand_over_link(case.system, goal.free) * case.assumptions.eff_network)


def _prefill_side(w: Candidates, goal: Goal) -> Pool:
    """Prefill replicas whose ranks and stages each hold a prompt and transfer its KV cache within the TTFT limit."""
    batch, link, layout = batch_of(w, np.ones((w.count, 1), dtype=np.int64)), _link_s(w, goal), w.layout
    lanes, law = layout.dp * layout.pp, step_law(goal)
    work, time = goal.step_factor * w.prefill / lanes, w.ttft
    if goal.step_factor != 1:
        time = request_laws.unloaded_ttft_s(w.server, w.case.requests(), law)
    good = fits(w, batch)
    if goal.slo.ttft is not None:
        good = good & (time + link <= goal.slo.ttft)
    side = _side(w, batch, laws.pool_request_s(work, link, layout.dp), time, lanes, link, w.server.scheduling.first_round_share)
    return _undominated(side.take(np.flatnonzero(np.broadcast_to(good, (w.count, 1)))))


def _decode_sides(w: Candidates, most: Number, tpot_limits: Sequence[Second], goal: Goal) -> Iterator[Pool]:
    """Decode replicas at the largest batch that memory and each TPOT limit allow, the limits searched together."""
    law, limit, shape = step_law(goal), np.array(tpot_limits), (w.count, len(tpot_limits))
    if not w.count or not tpot_limits:
        return
    if goal.batches:
        batch = np.full(shape, max(goal.batches))
        good = fits(w, batch) & (decode_tpot(w, batch, law) <= limit) & (least_sequences(w) == 1 or halves(w.layout, batch))
    else:
        ranks = bisect_ranks(lambda ranks: decode_tpot(w, batch_of(w, ranks), law) <= limit, np.broadcast_to(most + 1, shape))
        batch, good = batch_of(w, np.maximum(ranks, 1)), ranks >= least_sequences(w)
    times, link, layout = decode_tpot(w, batch, law), _link_s(w, goal), w.layout
    request = laws.pool_request_s(request_s(batch, w.case.load.output, times, NO_PREFILL, layout.dp * layout.pp), link, layout.dp)
    for at in range(len(tpot_limits)):
        column = slice(at, at + 1)
        side = _side(w, batch[:, column], request[:, column], times[:, column], batch_of(w, most), link)
        yield _undominated(side.take(np.flatnonzero(good[:, at])))


def _side(w: Candidates, batch: Number, request: Second, time: Second, room: Number, link: Second, beginning: Number = 0) -> Pool:
    columns = dict(batch=batch, chips=w.compiled.chips, request=request, time=time, room=room, link=link, beginning=beginning)
    flat = {name: np.broadcast_to(value, (w.count, 1))[:, 0] for name, value in columns.items()}
    return Pool(candidates=w, row=np.arange(w.count), **flat)


def _undominated(side: Pool) -> Pool:
    """The candidates of a pool that are Pareto-optimal among equal chips in rate, link time, time, places to work in, and beginnings."""
    keys, front = np.stack([side.request, side.link, side.time, -side.room, side.beginning], axis=1), []
    order = np.lexsort((*keys.T[::-1], side.chips))
    for _, at in _runs(side.chips[order], order):
        run_keys = keys[at]
        below = (run_keys[:, None, :] <= run_keys[None, :, :]).all(axis=2)  # i no worse than j
        beaten = (below & (np.arange(len(at))[:, None] < np.arange(len(at))[None, :])).any(axis=0)
        front.append(at[~beaten])
    return side.take(np.concatenate(front) if front else order)


def _runs(values: np.ndarray, order: np.ndarray) -> list[tuple[int, Any]]:
    """The runs of equal values in an order, each with its start."""
    starts = np.flatnonzero(np.diff(values, prepend=np.nan) != 0)
    return [(int(start), part) for start, part in zip(starts, np.split(order, starts[1:]), strict=True)] if len(order) else []


def best_pair(first: Pool, second: Pool, goal: Goal) -> PoolPair | None:
    """The best pair of pools with its replica counts, or None if no pair meets the limits."""
    a, b = np.meshgrid(np.arange(len(first.row)), np.arange(len(second.row)), indexing="ij")
    a, b = a.ravel(), b.ravel()
    case = first.candidates.case
    ttft = first.time[a] + laws.transfer_s(first.link[a], second.link[b])
    good = np.full(len(a), True)
    if goal.slo.ttft is not None:
        good &= ttft <= goal.slo.ttft
    if goal.slo.e2e is not None:
        good &= e2e_s(ttft, second.time[b], case.load.output) <= goal.slo.e2e
    a, b, ttft = a[good], b[good], ttft[good]
    if not len(a):
        return None
    rate = goal.rate
    if goal.is_loaded:
        p, q, size, capacity, rate = _carrying(first.take(a), second.take(b), goal)
    else:
        places, p, q, size, capacity = _most_answered(first.take(a), second.take(b), goal)
        a, b, ttft = a[places], b[places], ttft[places]
    able = (p >= 1) & (q >= 1)
    if not able.any():
        return None
    tpot, times = second.time[b], 1 / np.where(able, capacity, 1.0)
    # The users are as many on any machine: what is paid is compared, by them.
    per = goal.users if goal.users is not None and goal.objective == "cost" else rate
    value = np.broadcast_to(objective_value(replace(goal, rate=per), case, size, tpot, times), p.shape)
    ranked = np.where(able, -value if goal.more else value, np.inf)
    equal = np.flatnonzero(ranked <= ranked.min() + TIE * abs(ranked.min()))
    chips_used = np.broadcast_to(size.chips_used, p.shape)
    at = int(equal[np.lexsort((equal, ttft[equal], chips_used[equal], tpot[equal]))[0]])
    return PoolPair(
        prefill=first, decode=second, index=(int(a[at]), int(b[at])), replicas=(int(p[at]), int(q[at])),
        chips=int(np.broadcast_to(size.chips, p.shape)[at]),
        key=(rounded(ranked[at]), float(tpot[at]), float(chips_used[at]), float(ttft[at])), value=float(value[at]),
        rate=float(np.broadcast_to(capacity, p.shape)[at]),
    )  # fmt: skip


def _demand(first: Pool, second: Pool, goal: Goal) -> Demand:
    """What a request asks of each pair, and the limit on its first token, by E2E too."""
    answer = (first.candidates.case.load.output / ONE_TOKEN - 1) * second.time
    in_time = np.inf if goal.slo.ttft is None else goal.slo.ttft
    ended = np.inf if goal.slo.e2e is None else goal.slo.e2e - answer
    return Demand(
        prefill=first.request, lanes=first.room, decode=second.request, batch=second.batch, seats=second.room,
        first=first.time + laws.transfer_s(first.link, second.link), most=np.minimum(in_time, ended) + 0 * answer, answer=answer,
        beginning=first.beginning, users=(goal.users or 0) * first.beginning,
    )  # fmt: skip


def _carrying(first: Pool, second: Pool, goal: Goal) -> tuple[Any, Any, ReplicaCounts, Any, Any]:
    """Replicas of both pools that carry the load with the first token in time (0 where none do), chips, capacity, and the rate.

    A machine of a fixed size is used whole: its pools are as large as balances them, and at least as large as the load needs.
    """
    case = first.candidates.case
    system, output = case.system, case.load.output
    domain = min(domain_of(system), int(system.chips))
    demand = _demand(first, second, goal)
    rate = goal.rate if goal.users is None else loop_rate(goal.users, demand.first, second.time, output)
    p, q, on_time = replicas_at(rate, demand)
    if goal.free:
        chips = rented_chips(system, p, first.chips, q, second.chips)
    else:
        chips = system.chips
        if not goal.sizing:
            p = np.maximum(p, _balanced(first, second, system, domain)[0])
        decoders = decode_held(p, system, domain, first, second)
        on_time, q = on_time & (decoders >= q), np.where(goal.sizing, q, decoders)
    p, q = (np.where(on_time, count, 0) for count in (p, q))
    size = ReplicaCounts(replicas=ONE_REPLICA, chips_used=p * first.chips + q * second.chips, chips=chips)
    return p, q, size, laws.pools_capacity(np.maximum(p, 1), first.request, np.maximum(q, 1), second.request), rate


def _most_answered(first: Pool, second: Pool, goal: Goal) -> tuple[Any, Any, Any, ReplicaCounts, Any]:
    """Indices of the pairs that may answer most, and what `_sized` says of them.

    No pair answers more than with fractional replicas whose prompts wait at the start alone: sized in the order of that, until it is
    less than the best found.
    """
    count = len(first.row)
    if goal.objective not in ("cost", "throughput") or goal.sizing:
        return np.arange(count), *_sized(first, second, goal)
    starting = _demand(first, second, goal).starting
    bound = laws.fluid_capacity(first.candidates.case.system.chips, first.chips, starting, second.chips, second.request)
    few = np.argpartition(-bound, FEW)[:FEW] if count > FEW else np.arange(count)
    looks = [(few, *_sized(first.take(few), second.take(few), goal))]
    best = float(np.max(looks[0][-1]))
    rest = np.setdiff1d(np.flatnonzero(bound >= best * (1 - TIE)), few, assume_unique=True)
    rest = rest[np.argsort(-bound[rest], kind="stable")]
    for start in range(0, len(rest), FEW):
        at = rest[start : start + FEW]
        if bound[at[0]] < best * (1 - TIE):
            break
        looks.append((at, *_sized(first.take(at), second.take(at), goal)))
        best = max(best, float(np.max(looks[-1][-1])))
    places, prefill, decode, sizes, rates = zip(*looks, strict=True)
    at, p, q, rate = map(np.concatenate, (places, prefill, decode, rates))
    chips_used = p * first.chips[at] + q * second.chips[at]
    return at, p, q, ReplicaCounts(replicas=ONE_REPLICA, chips_used=chips_used, chips=sizes[0].chips), rate


def _sized(first: Pool, second: Pool, goal: Goal) -> tuple[Any, Any, ReplicaCounts, Any]:
    """Replicas of both pools, chips, and the rate (request/s) of users who wait: one of each where chips are counted, else the most."""
    system = first.candidates.case.system
    chips = system.chips
    domain = min(domain_of(system), int(chips))
    demand = _demand(first, second, goal)
    if goal.sizing:
        p, q = (np.ones(len(side.row)) for side in (first, second))
        if goal.free:
            chips = rented_chips(system, p, first.chips, q, second.chips)
        else:
            q = np.where(decode_held(p, system, domain, first, second) >= q, q, 0)
        rate = _in_time(demand, p, q)
    else:
        p, q, rate = _balanced(first, second, system, domain, demand)
    p, q = (np.where(rate > 0, count, 0) for count in (p, q))
    return p, q, ReplicaCounts(replicas=ONE_REPLICA, chips_used=p * first.chips + q * second.chips, chips=chips), rate


def _in_time(demand: Demand, p: Number, q: Number) -> Any:
    """The most that so many replicas carry with the first token in time; 0 where a pool has none."""
    replicas = np.maximum(q, 1)
    able = laws.pools_capacity(p, demand.prefill, replicas, demand.decode)
    return np.where(q >= 1, rate_in_time(demand, p, replicas, able), 0.0)


def rented_chips(system: System, p: Number, prefill_chips: Number, q: Number, decode_chips: Number) -> Any:
    """Chips that are paid for: those of each pool's own machines, or of one machine where clouds rent parts of a domain that hold both."""
    apart = sum(
        nodes_needed(count, rented_together(system, chips), chips) * rented_together(system, chips)
        for count, chips in ((p, prefill_chips), (q, decode_chips))
    )
    both = p * prefill_chips + q * decode_chips
    return np.where(both <= system.scale_up_domain, rented_together(system, both), apart) if system.rented else apart


def near_layouts(pair: PoolPair, within: float) -> Layout:
    """Layouts of both sides whose pairs might carry nearly as much as this one, by share: a small change leaves the best among them."""
    first, second, (a, b) = pair.prefill, pair.decode, pair.index
    costs = (first.chips * first.request)[:, None] + (second.chips * second.request)[None, :]  # what bounds the rate: laws.fluid_capacity
    near = costs <= costs[a, b] * (1 + within)
    sides = [(first, np.flatnonzero(near.any(axis=1))), (second, np.flatnonzero(near.any(axis=0)))]
    layouts = [side.candidates.rows(side.row[rows]).layout for side, rows in sides]
    return Layout(**{name: np.concatenate([getattr(layout, name) for layout in layouts]) for name in Layout.__dataclass_fields__})


def decode_held(p: Number, system: System, domain: int, first: Pool, second: Pool) -> Any:
    """Decode replicas that fit next to `p` prefill replicas; 0 if the prefill replicas alone do not fit."""
    most = replicas_held(int(system.chips) // domain * domain, domain, first.chips)
    replicas = laws.decode_replicas_held(np.minimum(p, most), int(system.chips), domain, first.chips, second.chips)
    return np.where(p <= most, replicas, 0)


def _balanced(first: Pool, second: Pool, system: System, domain: int, demand: Demand | None = None) -> tuple[Any, Any, Any]:
    """Prefill and decode replicas of the largest rate, and it: where the pools' rates cross, or with one prefill replica more.

    Without a `demand` the rate is the capacity; with one the first token is in time, for which prefill replicas may idle a little.
    """
    prompt = first.request if demand is None else demand.starting
    low = np.ones(len(first.row))
    high = replicas_held(int(system.chips) // domain * domain, domain, first.chips) + 1.0
    while (high - low > 1).any():
        middle = np.maximum(np.floor((low + high) / 2), 1)
        short = middle / prompt <= decode_held(middle, system, domain, first, second) / second.request
        converged = high - low <= 1
        low, high = np.where(short & ~converged, middle, low), np.where(short | converged, high, middle)
    tried = (low, low + 1)
    decoders = [decode_held(p, system, domain, first, second) for p in tried]
    rates = [
        laws.pools_capacity(p, first.request, q, second.request) if demand is None else _in_time(demand, p, q)
        for p, q in zip(tried, decoders, strict=True)
    ]
    best = rates[1] > rates[0]
    p, q, rate = (np.where(best, more, fewer) for fewer, more in (tried, decoders, rates))
    return p, q, rate


def best_of(candidate_pairs: Sequence[PoolPair], goal: Goal) -> Choice | None:
    """The choice of the best of some pairs: without a load of the few that a search finds best, by their rows, whose users are whole."""
    ranked = sorted(candidate_pairs, key=lambda pair: pair.key)[: 1 if goal.is_loaded else FINALISTS]
    choices = [picked(pair, goal) for pair in ranked]
    return min(choices, key=lambda choice: (-choice.value if goal.more else choice.value, choice.order), default=None)


def picked(pair: PoolPair, goal: Goal, whole_users: bool = True) -> Choice:
    """A pair as the choice of a row: the decode pool, with the prefill pool in `prefill`; `whole_users` of a decode replica, or a share."""
    (a, b), (p, q) = pair.index, pair.replicas
    plain = replace(goal, free=False, objective="cost", rate=None, users=None)
    first, second = pair.prefill, pair.decode
    prompts = pick(first.candidates, int(first.row[a]), int(first.batch[a]), plain, NO_SIZE)
    answers = pick(second.candidates, int(second.row[b]), int(second.batch[b]), plain, NO_SIZE, pair.value)
    choice = replace(answers, order=pair.key[1:3], prefill=prompts.case.layout)
    choice = resized(choice, answers.case.system, (p, q), pair.chips, goal)
    if goal.is_loaded:
        return choice
    if goal.batches:
        batch: Any = answers.case.load.batch
    else:
        case, prefill = choice.case, choice.prefill or Layout()
        users = _most_users(case, prefill, goal, pair) if whole_users else _users_at(case, prefill, pair.rate)
        batch = known(users, "batch", "", "derived", "chosen by the search of plan", "now")
    choice = replace(choice, case=replace(choice.case, load=replace(choice.case.load, batch=batch)))
    case, row = choice.case, estimate_pools(choice.case, choice.prefill or Layout(), hand_over_link(choice.case.system))
    size = ReplicaCounts(replicas=ONE_REPLICA, chips_used=row["chips_used"], chips=case.system.chips)
    value = float(objective_value(goal, case, size, row["tpot_s"], row["request_s"]))
    return replace(choice, value=value, order=(float(row["tpot_s"]), pair.key[2]))


def resized(choice: Choice, system: System, replicas: tuple[int, int], chips: int, goal: Goal) -> Choice:
    """A choice of two pools with so many prefill and decode replicas, on so many chips where these are free; `system` is one node."""
    prefill, decode = (_with_replicas(layout, count) for layout, count in zip((choice.prefill, choice.case.layout), replicas, strict=True))
    case, load = choice.case, Load(prompt=choice.case.load.prompt, output=choice.case.load.output)
    if goal.rate is not None:
        load = replace(load, rate=goal.rate)
    elif goal.users is not None:
        load = replace(load, batch=known(float(goal.users) / replicas[1], "batch", "", "derived", "users of a decode replica", "now"))
    system = with_chips(system, chips, 0) if goal.free else case.system
    return replace(choice, case=replace(case, layout=decode, system=system, load=load), prefill=prefill)


NEAR = (0.3, 4.0)  # users looked at, of those whom the rate of a search keeps busy
TRIED = 400  # numbers of users looked at, less than a hundredth apart
FINALISTS = 4  # pairs whose rows are compared


def _busy(rate: PerSecond, first: Second, tpot: Second, case: Deployment) -> float:
    """Users of a decode replica whom a rate keeps in service if none waits, at least one."""
    users = rate * (first + (float(case.load.output) / ONE_TOKEN - 1) * tpot)
    return max(users / int(case.layout.replicas), 1.0)


def _users_at(case: Deployment, prefill: Layout, rate: PerSecond) -> float:
    """Users of a decode replica whom a rate keeps in service, a share of one too, so that a small change of an input is seen."""
    at_rate = case.at(case.layout, replace(case.load, rate=rate))
    row = estimate_pools(at_rate, prefill, hand_over_link(case.system))
    return _busy(rate, float(row["ttft_unloaded_s"]), float(row["tpot_s"]), case)


def _most_users(case: Deployment, prefill: Layout, goal: Goal, pair: PoolPair) -> int:
    """Users of a decode replica, near those whom a pair's rate keeps in service, at which most is answered with every limit held."""
    middle = _busy(pair.rate, pair.first, pair.tpot, case)
    users = np.unique(np.round(np.geomspace(max(NEAR[0] * middle, 1), max(NEAR[1] * middle, 2), TRIED)))
    row = estimate_pools(case.at(case.layout, replace(case.load, batch=users)), prefill, hand_over_link(case.system))
    good = np.broadcast_to(row["fits"], users.shape) & (row["tpot_s"] <= pair.tpot * (1 + TIE))  # which the search limits
    for name, most in limits(goal.slo).items():
        good = good & (row[LIMITS[name]] <= most)
    better = -row["tpot_s"] if goal.objective == "latency" else row["tok_per_s"]
    value = np.where(good, better, -np.inf)
    return int(users[np.argmax(value >= value.max() - RISE * abs(value.max())) if good.any() else 0])


def _with_replicas(layout: Layout | None, replicas: int) -> Layout:
    return replace(layout or Layout(), replicas=known(replicas, "replicas", "", "derived", "chosen by the search of plan", "now"))

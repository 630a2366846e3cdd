"""The best load of every layout at once: screened on a curve over decoding sequences as arrays over layouts, then computed exactly.

Rate, TPOT and TTFT of a replica rise with its decoding sequences. Bisection over all layouts together finds the most that keep the
limits, from one evaluation of performance/request.py's law per point; the best layouts are then computed by its fixed points.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np

from headway.core.progress import tick
from headway.core.quantity import known
from headway.laws.economics.cost import chip_seconds_per_request, usd_per_request
from headway.laws.queueing import closed_loop as loops
from headway.laws.queueing.closed_loop import Loop, decoded_per_s, loop_rate
from headway.laws.queueing.replica_loop import step_times, token_times
from headway.laws.queueing.users import prompt_chunks
from headway.laws.serving.replicas import (
    chip_seconds_per_request_at,
    full_batch,
    nodes_needed,
    offered_tok_per_s,
    replicas_in_nodes,
    replicas_needed,
    usd_per_request_at,
)
from headway.laws.serving.request import e2e_s, final_context, lane_tokens, per_chip, sustained_tok_per_s, user_tok_per_s
from headway.laws.step.layer_terms import used_chips
from headway.laws.step.memory import fits_chips, fits_hbm, kv_bytes_chip, rank_sequence_limit, sequence_bytes, sequences_held, usable_hbm
from headway.laws.step.parts import rank_sequences
from headway.laws.step.step import step_s
from headway.performance import request as request_laws
from headway.performance.compile import StepModel, compile_layout
from headway.performance.estimate import requests_of, server_of
from headway.performance.formats import Formats
from headway.performance.layout import Layout, halves
from headway.performance.request import NO_WORK, SINGLE, Requests, prefilled
from headway.performance.server import Server
from headway.serving.plan.problem import Goal, limits
from headway.serving.serve import ServeRequest, case_of

MOST_SEQUENCES = 1 << 20  # on one rank: more than any memory holds
ONE_REPLICA = known(1, "one replica", "", "constant", "the fewest there can be")


FINALISTS = 24  # layouts of a search that are computed exactly
HALVINGS = 20  # of the decoding sequences that carry a rate
EXACTLY = 60  # halvings where 1 % of an input is compared
LEAST_ANSWER = 1e-3  # tokens after the first, so that an answer of one token has a load


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """Compiled layouts of one model on one machine in one set of formats: all that does not depend on the load."""

    query: ServeRequest
    layout: Layout  # arrays (n, 1)
    count: int
    compiled: StepModel
    server: Server
    requests: Requests
    loop: Loop
    ttft: Any  # of a request alone
    prefill: Any  # of a step in which every rank prefills a prompt
    sequence: Any  # bytes of one sequence on the fullest chip
    usable: Any
    limit: Any  # most sequences of one rank, all pipeline stages together

    def rows(self, keep: Any) -> Candidates:
        """The candidates at the indices `keep`."""
        keys = ("layout", "compiled", "server", "loop", "ttft", "prefill", "sequence", "limit")
        return replace(self, **{key: _rows(getattr(self, key), keep, self.count) for key in keys}, count=len(keep))


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadPoint:
    """A replica at a load, as arrays: requests in service, times of a request, and requests per second."""

    served: Any
    ttft: Any
    tpot: Any
    decode: Any  # TPOT of decode steps alone
    rate: Any


def _rows(value: Any, keep: Any, count: int) -> Any:
    if isinstance(value, np.ndarray):
        return value[keep] if value.ndim == 2 and value.shape[0] == count else value
    if is_dataclass(value) and not isinstance(value, type | Formats):
        return replace(value, **{field.name: _rows(getattr(value, field.name), keep, count) for field in fields(value)})
    return tuple(_rows(item, keep, count) for item in value) if isinstance(value, tuple) else value


def compile_candidates(query: ServeRequest, layout: Layout, count: int) -> Candidates:
    """The compiled candidates of `count` layouts."""
    tick(count)
    compiled = compile_layout(query.work, query.system, layout, query.assumptions, query.formats)
    case = case_of(query, layout, query.load)
    server, requests = server_of(case, compiled), requests_of(case)
    tokens, pairs = prefilled(query.load.prompt, query.assumptions.hit_rate)
    busy = step_s(compiled.step, NO_WORK, NO_WORK, lane_tokens(tokens, layout.dp), lane_tokens(pairs, layout.dp))
    sequence_size = sequence_bytes(compiled.stores, compiled.state_bytes, final_context(query.load.prompt, query.load.output))
    usable = usable_hbm(query.system.chip.need("hbm"), query.assumptions.hbm_utilization)
    return Candidates(
        query=query,
        layout=layout,
        count=count,
        compiled=compiled,
        server=server,
        requests=requests,
        loop=request_laws.loop_of(server, requests, SINGLE),
        ttft=request_laws.unloaded_ttft_s(server, requests, step_s),
        prefill=busy,
        sequence=sequence_size,
        usable=usable,
        limit=rank_sequence_limit(usable, compiled.weights_bytes, sequence_size, compiled.stage, layout.cp),
    )


def fits(w: Candidates, batch: Any) -> Any:
    """Whether weights and the KV cache of `batch` sequences fit in HBM, and the machine has the chips."""
    layout = w.layout
    sequences = sequences_held(rank_sequences(batch, layout.dp, layout.pp), layout.pp)
    kv = kv_bytes_chip(sequences, w.sequence, w.compiled.stage, layout.cp)
    chips = fits_chips(used_chips(w.compiled.chips, layout.replicas), w.query.system.chips)
    return fits_hbm(w.compiled.weights_bytes, kv, w.usable) & chips


def decode_tpot(w: Candidates, batch: Any) -> Any:
    """Expected TPOT in seconds of a replica that only decodes."""
    return request_laws.decode_s(w.server, w.requests, batch, step_s)


def _times(w: Candidates, goal: Goal) -> tuple[Any, Any]:
    """Step and token times of the candidates, every step `goal.step_factor` times as long as expected."""
    step = step_times(w.server.step, step_s)
    token = token_times(w.server.step, step_s, w.server.accept_length, w.server.draft_cost)
    if goal.step_factor == 1:
        return step, token
    return (lambda *load: goal.step_factor * step(*load)), token


def curve(w: Candidates, decoding: Any, goal: Goal) -> LoadPoint:
    """Replicas in which so many sequences decode on average; near the fixed points of `exact`, from one evaluation."""
    step, token = _times(w, goal)
    loop = w.loop if goal.rate is None else loops.random_arrivals(w.loop)
    answer = w.query.load.output - 1
    if answer < 1:  # nothing decodes: `decoding` counts the requests in service
        ttft, time, decode, _ = loops.request_times(step, loop, decoding, 0.0 * decoding, token)
        return LoadPoint(served=decoding, ttft=ttft, tpot=time, decode=decode, rate=decoding / ttft)
    chunks = prompt_chunks(loop.prefill, loop.step_budget_tokens / loop.lanes)
    served = decoding * (1 + loop.accept_length * chunks / answer) + 1
    ttft, time, decode, _ = loops.request_times(step, loop, served, decoding, token)
    rate = decoded_per_s(decoding, w.query.load.output, time)
    return LoadPoint(served=decoding + rate * ttft, ttft=ttft, tpot=time, decode=decode, rate=rate)


def exact(w: Candidates, users: Any, goal: Goal) -> LoadPoint:
    """Replicas under a closed loop of `users`, or under arrivals at `users` requests per second if the goal has a rate."""
    step, token = _times(w, goal)
    if goal.rate is None:
        times = loops.closed_loop(step, replace(w.loop, users=users), token)
    else:
        times = loops.open_loop(step, w.loop, users, token)
    return LoadPoint(served=times.in_service, ttft=times.ttft, tpot=times.tpot, decode=times.decode, rate=times.rate)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaCounts:
    """Replicas of each layout, chips that they use, and chips that are paid for."""

    replicas: Any
    chips_used: Any
    chips: Any


def sized(w: Candidates, request: Any, goal: Goal) -> ReplicaCounts:
    """The replicas that the machine holds, or that the load needs: in whole nodes where their number is free."""
    replicas, chips = w.layout.replicas, w.query.system.chips
    if goal.sizing:
        replicas = ONE_REPLICA if goal.rate is None else replicas_needed(goal.rate, request)
        if goal.free:
            return _in_nodes(w, replicas)
    return ReplicaCounts(replicas=replicas, chips_used=used_chips(w.compiled.chips, replicas), chips=chips)


def _in_nodes(w: Candidates, replicas: Any) -> ReplicaCounts:
    """Whole nodes that hold the replicas, with as many replicas as fit in them."""
    node = w.query.system.scale_up_domain
    nodes = nodes_needed(replicas, node, w.compiled.chips)
    held = replicas_in_nodes(nodes, node, w.compiled.chips)
    return ReplicaCounts(replicas=held, chips_used=used_chips(w.compiled.chips, held), chips=nodes * node)


def objective_value(goal: Goal, query: ServeRequest, size: ReplicaCounts, tpot: Any, request: Any) -> Any:
    """The objective: USD per request (chip time without a price), tokens/s per chip, tokens/s of a user, or chips.

    If the number of chips follows from a rate, the requests of that rate share their cost; else the requests of full capacity do.
    """
    at_rate = goal.free and goal.rate is not None
    if goal.objective == "latency":
        return user_tok_per_s(tpot)
    if goal.objective == "chips":
        return size.chips if goal.free else size.chips_used
    if goal.objective == "throughput":
        load = query.load
        rate = offered_tok_per_s(goal.rate, load.output) if at_rate else sustained_tok_per_s(load.output, request, size.replicas)
        return per_chip(rate, size.chips)
    if query.price is None:
        if at_rate:
            return chip_seconds_per_request_at(size.chips, goal.rate)
        return chip_seconds_per_request(size.chips, request, size.replicas)
    if at_rate:
        return usd_per_request_at(query.price.value, size.chips, goal.rate)
    return usd_per_request(query.price.value, size.chips, request, size.replicas)


def most_fitting(w: Candidates) -> Any:
    """Most sequences per rank that fit in memory and that the engine admits, (n, 1); 0 if the weights alone do not fit."""
    stages = np.minimum(np.asarray(w.limit, dtype=float) / w.layout.pp, MOST_SEQUENCES)
    high = np.broadcast_to(stages.astype(np.int64) + 2, (w.count, 1))
    admitted = np.maximum(np.floor(np.asarray(w.server.scheduling.max_sequences, dtype=float) / w.layout.pp), 1)
    return np.minimum(bisect_ranks(lambda ranks: fits(w, batch_of(w, ranks)), high), admitted.astype(np.int64))


def within(w: Candidates, point: LoadPoint, goal: Goal) -> Any:
    """Whether a load keeps the limits on mean times."""
    times = {"ttft": point.ttft, "tpot": point.tpot, "tpot_decode": point.decode}
    times["e2e"] = e2e_s(point.ttft, point.tpot, w.query.load.output)
    good = np.full(np.broadcast_shapes(np.shape(point.tpot), np.shape(point.ttft)), True)
    for name, limit in limits(goal.slo).items():
        good = good & (times[name] <= limit)
    return good


def least_sequences(w: Candidates) -> int:
    """Fewest sequences of a rank: two where each batch is computed in halves."""
    return 2 if w.query.assumptions.communication == "two-batch" else 1


def batch_of(w: Candidates, ranks: Any) -> Any:
    """Batch of a replica with `ranks` sequences on every rank and stage."""
    return full_batch(ranks, w.layout.dp, w.layout.pp)


def bisect_ranks(holds: Any, high: Any) -> Any:
    """The largest whole number below `high` at which `holds` is true, else 0; `holds` must be monotonic."""
    low = np.zeros_like(high)
    while (high - low > 1).any():
        middle = np.maximum((low + high) // 2, 1)
        good = holds(middle)
        converged = high - low <= 1
        low, high = np.where(good & ~converged, middle, low), np.where(good | converged, high, middle)
    return low


@dataclass(frozen=True, slots=True, kw_only=True)
class BestLoads:
    """The best load of the best layouts that keep every limit, as arrays over these layouts."""

    candidates: Candidates
    batch: Any  # users per replica; at a rate, requests in service
    point: LoadPoint
    size: ReplicaCounts
    value: Any
    fitting: Candidates  # layouts that fit in memory, limits ignored
    most: Any  # sequences per rank that fit in memory, for `fitting`
    fitting_rows: Any  # row in `fitting` of each of `candidates`
    room: Any  # whether each pinned batch fits in memory; None without pinned batches
    in_memory: int  # number of layouts that fit in memory, limits ignored
    in_time: int  # number of layouts that keep every latency limit
    met: int  # number of layouts that keep every limit and carry the rate


def best_loads(w: Candidates, goal: Goal) -> BestLoads:
    """The layouts with the best objective, each at its best load, or at the best pinned batch."""
    if goal.batches:
        return _pinned(w, goal, np.array([goal.batches], dtype=np.int64))
    most = most_fitting(w)
    keep = np.flatnonzero(most[:, 0] >= least_sequences(w))
    fitting, most = w.rows(keep), most[keep]
    decoding = _most_decoding(fitting, most, goal)
    timely = np.flatnonzero(decoding[:, 0] > 0)
    met, decoding = fitting.rows(timely), decoding[timely]
    counts = {"in_memory": len(keep), "in_time": len(timely)}
    rest = {"fitting": fitting, "most": most, "room": None}
    if goal.rate is not None:
        return _at_rate(met, decoding, timely, goal, counts | rest)
    screened = fewest_users(met, goal) if goal.objective == "latency" else curve(met, decoding, goal)
    best = _finalists(met, screened, sized(met, 1 / screened.rate, goal), goal)
    users = np.maximum(np.floor(np.broadcast_to(screened.served, (met.count, 1))[best]), 1)
    finalists = met.rows(best)
    users, point = _kept(finalists, users, batch_of(finalists, most[timely][best]), goal)
    if goal.users is not None:
        return _with_users(finalists, users, timely[best], goal, counts | rest, len(timely))
    good = np.flatnonzero(users[:, 0] >= 1)
    return _best(finalists.rows(good), users[good], _point_rows(point, good), timely[best][good], goal, counts | rest, len(timely))


def on_curve(w: Candidates, goal: Goal) -> tuple[Any, Any, Any]:
    """Layouts that keep every limit on the curve: their rows, users (not rounded) or rate, and objective."""
    most = most_fitting(w)
    keep = np.flatnonzero(most[:, 0] >= least_sequences(w))
    w, most = w.rows(keep), most[keep]
    room = batch_of(w, most).astype(float)

    def kept(decoding: Any) -> Any:
        point = curve(w, decoding, goal)
        return within(w, point, goal) & (point.served <= room)

    low, high = np.zeros_like(room), room
    for _ in range(EXACTLY):
        middle = (low + high) / 2
        good = kept(middle)
        low, high = np.where(good, middle, low), np.where(good, high, middle)
    point = curve(w, np.maximum(low, 1e-9), goal)
    if goal.rate is not None:
        size = sized(w, 1 / point.rate, goal)
        share = goal.rate / np.broadcast_to(size.replicas, low.shape)
        low = np.where(share <= point.rate, _decoding_at(w, share, low, goal, EXACTLY), 0.0)
        point = curve(w, np.maximum(low, 1e-9), goal)
    rows = np.flatnonzero(low[:, 0] > 0)
    value = objective_value(goal, w.query, sized(w, 1 / point.rate, goal), point.tpot, 1 / point.rate)
    value = np.broadcast_to(np.asarray(value, dtype=float), (w.count, 1))
    return keep[rows], np.broadcast_to(point.served, (w.count, 1))[rows, 0], value[rows, 0]


def fewest_users(w: Candidates, goal: Goal) -> LoadPoint:
    """Replicas with the fewest users: one alone, or where batches are halved two on each rank."""
    alone = np.ones((w.count, 1))
    if least_sequences(w) > 1:
        return exact(w, batch_of(w, 2 * alone), replace(goal, rate=None))
    if goal.step_factor != 1:
        return exact(w, alone, replace(goal, rate=None))
    tpot = decode_tpot(w, alone)  # nobody else's prompt, nobody to wait for: the fixed point in one evaluation
    rate = loop_rate(alone, w.ttft, tpot, w.query.load.output)
    return LoadPoint(served=alone, ttft=w.ttft, tpot=tpot, decode=tpot, rate=rate)


def _most_decoding(w: Candidates, most: Any, goal: Goal) -> Any:
    """Most decoding sequences on the curve that keep the limits; those of the fewest users where only these keep them; 0 if none do."""
    ranks = _most_within(w, most, goal)
    ranks = np.where(ranks >= least_sequences(w), ranks, 0)
    few = fewest_users(w, goal)
    time = few.rate * np.maximum(w.query.load.output - 1, LEAST_ANSWER) * few.tpot
    return np.where(ranks > 0, batch_of(w, ranks), np.where(within(w, few, goal), time, 0.0)).astype(float)


def _most_within(w: Candidates, most: Any, goal: Goal) -> Any:
    """Most sequences per rank, up to `most`, that keep the limits with all requests in memory; 0 if none."""
    room = batch_of(w, most)

    def holds(ranks: Any) -> Any:
        point = curve(w, batch_of(w, ranks).astype(float), goal)
        return within(w, point, goal) & ((point.served <= room) | (ranks <= 1))

    return bisect_ranks(holds, most + 1)


def _finalists(w: Candidates, point: LoadPoint, size: ReplicaCounts, goal: Goal) -> Any:
    """Indices of the layouts that may be best: the best on the curve, and of those nearly as good the plainest."""
    value = objective_value(goal, w.query, size, point.tpot, 1 / point.rate)
    value = np.broadcast_to(np.asarray(-value if goal.more else value, dtype=float), (w.count, 1))[:, 0]
    order = np.argsort(value, kind="stable")
    if len(order) <= FINALISTS:
        return np.sort(order)
    near = order[value[order] <= value[order[0]] + 2 * PLAIN_WITHIN * abs(value[order[0]])]
    plain = near[np.argsort(oddness(w)[near, 0], kind="stable")][: FINALISTS // 2]
    return np.unique(np.concatenate((order[: FINALISTS // 2], plain)))


TRIED = np.array([[1.04, 1.01, 0.98, 0.95, 0.9, 0.8, 0.6, 0.3, 0.0]])  # shares of the users found on the curve
RISE = 1e-3  # of the rate, for which fewer users than the most are taken
NARROWED = 10  # loads tried between the last that keeps the limits and the first that does not


def _kept(w: Candidates, users: Any, room: Any, goal: Goal) -> tuple[Any, LoadPoint]:
    """The most users near `users` that keep every limit by the fixed point, and their times; 0 users where none do.

    Without users to place, those of them at which a replica finishes most: beyond some load decodes take room from prompts.
    """
    if goal.objective == "latency" or not w.count:
        point = exact(w, users, goal)
        return np.where(within(w, point, goal), users, 0), point
    low = high = best = most = np.zeros((w.count, 1))
    tried = np.minimum(np.maximum(np.floor(users * TRIED), 1), room)
    for _ in range(2):
        point = exact(w, tried, goal)
        good = within(w, point, goal)
        rate = np.where(good, point.rate, 0.0)
        at = np.argmax(rate, axis=1)[:, None]
        fastest = np.take_along_axis(rate, at, axis=1)
        best = np.where(fastest > most, np.take_along_axis(tried, at, axis=1), best)
        most = np.maximum(fastest, most)
        low = np.maximum(low, np.max(np.where(good, tried, 0), axis=1, keepdims=True))
        high = np.min(np.where(~good & (tried > low), tried, room + 1), axis=1, keepdims=True)
        tried = np.floor(low + (high - low) * np.linspace(0, 1, NARROWED)[None, 1:-1])
        tried = np.maximum(tried, 1)
    point = exact(w, np.maximum(low, 1), goal)
    if goal.users is None:
        low = np.where(most > point.rate * (1 + RISE), best, low)
        point = exact(w, np.maximum(low, 1), goal)
    return low, point


def _at_rate(w: Candidates, decoding: Any, rows: Any, goal: Goal, known_parts: dict[str, Any]) -> BestLoads:
    """Layouts at the goal's rate: sized by the most that each replica carries within the limits, at the load that this leaves it."""
    most = curve(w, decoding, goal)
    size = sized(w, 1 / most.rate, goal)
    share = goal.rate / np.broadcast_to(size.replicas, (w.count, 1))
    carried = np.flatnonzero((share <= most.rate)[:, 0])
    w, share, rows = w.rows(carried), share[carried], rows[carried]
    size = ReplicaCounts(**{name: np.broadcast_to(getattr(size, name), (len(decoding), 1))[carried] for name in size.__slots__})
    point = curve(w, _decoding_at(w, share, decoding[carried], goal), goal)
    best = _finalists(w, point, size, goal)
    finalists, share = w.rows(best), share[best]
    point = exact(finalists, share, goal)
    good = np.flatnonzero((within(finalists, point, goal) & np.isfinite(point.tpot))[:, 0])
    size = ReplicaCounts(**{name: getattr(size, name)[best][good] for name in size.__slots__})
    return _best(
        finalists.rows(good), point.served[good], _point_rows(point, good), rows[best][good], goal, known_parts, len(carried), size
    )


def _with_users(w: Candidates, most: Any, rows: Any, goal: Goal, known_parts: dict[str, Any], met: int) -> BestLoads:
    """Layouts with the goal's users spread over as many replicas as they need, or as the machine holds."""
    need = replicas_needed(goal.users, 1 / np.maximum(most, 1))
    size = ReplicaCounts(replicas=w.layout.replicas, chips_used=used_chips(w.compiled.chips, w.layout.replicas), chips=w.query.system.chips)
    if goal.sizing:
        size = _in_nodes(w, need) if goal.free else replace(size, replicas=need, chips_used=used_chips(w.compiled.chips, need))
    size = ReplicaCounts(**{name: np.broadcast_to(getattr(size, name), (w.count, 1)) for name in size.__slots__})
    good = np.flatnonzero(((most >= 1) & (need <= size.replicas))[:, 0])
    w, size = w.rows(good), ReplicaCounts(**{name: getattr(size, name)[good] for name in size.__slots__})
    users = np.maximum(goal.users / size.replicas, 1.0)
    return _best(w, users, exact(w, users, goal), rows[good], goal, known_parts, met, size)


def _decoding_at(w: Candidates, rate: Any, most: Any, goal: Goal, halvings: int = HALVINGS) -> Any:
    """Decoding sequences at which a replica carries `rate`, at most `most`."""
    low, high = 0 * most, most
    for _ in range(halvings):
        middle = (low + high) / 2
        short = curve(w, middle, goal).rate < rate
        low, high = np.where(short, middle, low), np.where(short, high, middle)
    return high


def _pinned(w: Candidates, goal: Goal, batches: Any) -> BestLoads:
    """Layouts at the best of the pinned numbers of users."""
    room = np.broadcast_to(fits(w, batches), (w.count, batches.shape[1]))
    if least_sequences(w) > 1:
        room = room & halves(w.layout, batches)
    keep = np.flatnonzero(room.any(axis=1))
    fitting = w.rows(keep)
    closed = replace(goal, rate=None)
    point = exact(fitting, np.broadcast_to(batches.astype(float), (fitting.count, batches.shape[1])), closed)
    timely = room[keep] & within(fitting, point, closed)
    size = sized(fitting, 1 / point.rate, goal)
    good = timely & (True if goal.rate is None or goal.sizing else size.replicas * point.rate >= goal.rate)
    values = objective_value(goal, w.query, size, point.tpot, 1 / point.rate)
    ranked = np.where(good, -values if goal.more else values, np.inf)
    met = np.flatnonzero(good.any(axis=1))
    column = np.argmin(ranked, axis=1)[met].reshape(-1, 1) if len(keep) else np.empty((0, 1), dtype=np.int64)
    batch = batches[0][column]
    counts = {"in_memory": len(keep), "in_time": int(timely.any(axis=1).sum()), "fitting": fitting, "most": None, "room": room[keep]}
    finalists = fitting.rows(met)
    return _best(finalists, batch, exact(finalists, batch.astype(float), closed), met, goal, counts, len(met))


def _point_rows(point: LoadPoint, keep: Any) -> LoadPoint:
    return LoadPoint(**{field.name: getattr(point, field.name)[keep] for field in fields(point)})


def _best(
    w: Candidates, batch: Any, point: LoadPoint, rows: Any, goal: Goal, known_parts: dict[str, Any], met: int, size: Any = None
) -> BestLoads:
    counts = sized(w, 1 / point.rate, goal) if size is None else size
    value = np.broadcast_to(objective_value(goal, w.query, counts, point.tpot, 1 / point.rate), (w.count, 1))
    return BestLoads(candidates=w, batch=batch, point=point, size=counts, value=value, fitting_rows=rows, met=met, **known_parts)


PLAIN_WITHIN = 0.03  # of the best objective: layouts so near to it are compared by how plain they are


def oddness(w: Candidates) -> Any:
    """How many rules of plain layouts each layout breaks, (n, 1).

    The rules: no idle chips; a replica divides its node; degrees are powers of two or the whole node; no pipeline; experts divide by ep.
    """
    layout, domain = w.layout, int(w.query.system.scale_up_domain)
    degrees = [np.asarray(getattr(layout, name), dtype=np.int64) for name in ("tp", "ep", "dp", "pp", "cp")]
    count = np.zeros((w.count, 1), dtype=np.int64)
    for degree in degrees:
        count = count + (((degree & (degree - 1)) != 0) & (degree != domain))
    chips = np.asarray(w.compiled.chips, dtype=np.int64)
    count = count + (np.maximum(domain, chips) % np.minimum(domain, chips) != 0) + (degrees[3] > 1)
    for block in w.query.work.blocks:
        if block.experts:
            return count + (int(block.experts) % degrees[1] != 0)
    return count

"""The best load of every layout at once: screened on a curve over decoding sequences as arrays over layouts, then computed exactly.

Rate, TPOT and TTFT of a replica rise with its decoding sequences. Bisection over all layouts together finds the most that keep the
limits, from one evaluation of performance/request.py's law per point; the best layouts are then computed by its fixed points.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from headway.core.units import Number, PerSecond
from headway.laws.queueing import closed_loop as loops
from headway.laws.queueing.closed_loop import (
    Law,
    LoopTimes,
    decoded_per_s,
    loop_rate,
    random_arrivals,
    request_times,
    step_times,
    token_times,
)
from headway.laws.queueing.root import increasing_root, screened_root
from headway.laws.queueing.users import prompt_chunks
from headway.laws.serving.replicas import fitting_batch, replicas_needed
from headway.laws.serving.request import e2e_s
from headway.laws.step.step import step_s
from headway.performance import request as request_laws
from headway.performance.compile import halves
from headway.serving.plan.candidates import (
    PLAIN_WITHIN,
    Candidates,
    ReplicaCounts,
    fits,
    in_nodes,
    objective_value,
    oddness,
    sized,
    take,
)
from headway.serving.plan.problem import Goal, limits

MOST_SEQUENCES = 1 << 20  # on one rank: more than any memory holds
MORE_NODES = (0.96, 0.9, 0.8, 0.65)  # of the rate that a replica carries on the curve, where more nodes are tried
FINALISTS = 24  # layouts of a search that are computed exactly
AT_RATE = 10  # and where a rate is to be carried
SCREENED = 1e-4  # width of a load on the curve, as a share of all that memory holds
EXACTLY = 1e-12  # where 1 % of an input is compared
LEAST_ANSWER = 1e-3  # tokens after the first, so that an answer of one token has a load


def decode_tpot(w: Candidates, batch: Number, law: Law = step_s) -> Any:
    """TPOT in seconds of a replica that only decodes."""
    return request_laws.decode_s(w.server, w.case.requests(), batch, law)


def step_law(goal: Goal) -> Law:
    """The step law with every step `goal.step_factor` times as long as expected."""
    return step_s if goal.step_factor == 1 else lambda *load: goal.step_factor * step_s(*load)


def _times(w: Candidates, goal: Goal) -> tuple[Any, Any]:
    """Step and token times of the candidates."""
    law = step_law(goal)
    return step_times(w.server.step, law), token_times(w.server.accept_length)


def curve(w: Candidates, decoding: Number, goal: Goal) -> LoopTimes:
    """Replicas in which so many sequences decode on average; near the fixed points of `exact`, from one evaluation."""
    step, token = _times(w, goal)
    loop = w.loop if goal.rate is None else random_arrivals(w.loop)
    answer, rest = w.case.load.output - 1, {"decoding": decoding, "seat_wait": 0, "prompt": 0}  # which no limit is on
    if answer < 1:  # nothing decodes: `decoding` counts the requests in service
        ttft, time, decode, _ = request_times(step, loop, decoding, 0.0 * decoding, token)
        times = LoopTimes(ttft=ttft, tpot=time, decode=decode, rate=decoding / ttft, in_service=decoding, **rest)
        return request_laws.first_tokens(w.server, times)
    chunks = prompt_chunks(loop.prefill, loop.step_budget_tokens / loop.lanes)
    served = decoding * (1 + loop.accept_length * chunks / answer) + 1
    ttft, time, decode, _ = request_times(step, loop, served, decoding, token)
    rate = decoded_per_s(decoding, w.case.load.output, time)
    times = LoopTimes(ttft=ttft, tpot=time, decode=decode, rate=rate, in_service=decoding + rate * ttft, **rest)
    return request_laws.first_tokens(w.server, times)


def exact(w: Candidates, users: Number, goal: Goal) -> LoopTimes:
    """Replicas under a closed loop of `users`, or under arrivals at `users` requests per second if the goal has a rate."""
    step, token = _times(w, goal)
    if goal.rate is None:
        return request_laws.first_tokens(w.server, loops.closed_loop(step, replace(w.loop, users=users), token))
    return request_laws.first_tokens(w.server, loops.open_loop(step, replace(w.loop, in_turn=goal.rate / users), users, token))


def most_fitting(w: Candidates) -> Any:
    """Most sequences per rank that fit in memory and that the engine admits, (n, 1); 0 if the weights alone do not fit."""
    stages = np.minimum(np.asarray(w.limit, dtype=float) / w.layout.pp, MOST_SEQUENCES)
    high = np.broadcast_to(stages.astype(np.int64) + 2, (w.count, 1))
    admitted = np.maximum(np.floor(np.asarray(w.server.scheduling.max_sequences, dtype=float) / w.layout.pp), 1)
    return np.minimum(bisect_ranks(lambda ranks: fits(w, batch_of(w, ranks)), high), admitted.astype(np.int64))


def within(w: Candidates, point: LoopTimes, goal: Goal) -> Any:
    """Whether a load keeps the limits on mean times."""
    return strain(w, point, goal) <= 1


def strain(w: Candidates, point: LoopTimes, goal: Goal) -> Any:
    """The largest of a load's mean times, each as a share of its limit; 0 without limits."""
    times = {"ttft": point.ttft, "tpot": point.tpot, "tpot_decode": point.decode}
    times["e2e"] = e2e_s(point.ttft, point.tpot, w.case.load.output)
    most = np.zeros(np.broadcast_shapes(np.shape(point.tpot), np.shape(point.ttft)))
    for name, limit in limits(goal.slo).items():
        most = np.maximum(most, times[name] / limit)
    return most


def least_sequences(w: Candidates) -> int:
    """Fewest sequences of a rank: two where each batch is computed in halves."""
    return 2 if w.case.assumptions.communication == "two-batch" else 1


def batch_of(w: Candidates, ranks: Number) -> Any:
    """Batch of a replica with `ranks` sequences on every rank and stage, as far as the caches of so many fit."""
    return fitting_batch(ranks, w.layout.dp, w.layout.pp, w.limit)


def bisect_ranks(holds: Callable[[Any], Any], high: np.ndarray) -> Any:
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

    source: Candidates  # all layouts of the search
    tried: Candidates  # those computed exactly: the best on the curve, and of those nearly as good the plainest
    candidates: Candidates
    batch: Any  # users per replica; at a rate, requests in service
    point: LoopTimes
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
    rest = {"source": w, "fitting": fitting, "most": most, "room": None}
    if goal.rate is not None:
        return _at_rate(met, decoding, timely, goal, counts | rest)
    screened = fewest_users(met, goal) if goal.objective == "latency" else curve(met, decoding, goal)
    best = _finalists(met, screened, sized(met, 1 / screened.rate, goal), goal)
    users = np.maximum(np.floor(np.broadcast_to(screened.in_service, (met.count, 1))[best]), 1)
    finalists = met.rows(best)
    rest |= {"tried": finalists}
    users, point = _most_users(finalists, users, batch_of(finalists, most[timely][best]), goal)
    if goal.users is not None:
        return _with_users(finalists, users, timely[best], goal, counts | rest, len(timely))
    good = np.flatnonzero(users[:, 0] >= 1)
    point = take(point, good, finalists.count)
    return _best(finalists.rows(good), users[good], point, timely[best][good], goal, counts | rest, len(timely))


def most_carried(w: Candidates, goal: Goal) -> tuple[Candidates, Any]:
    """Layouts that keep every limit at some load, and the most requests per second that a replica of each carries within them."""
    most = most_fitting(w)
    keep = np.flatnonzero(most[:, 0] >= least_sequences(w))
    fitting, most = w.rows(keep), most[keep]
    decoding = _most_decoding(fitting, most, goal)
    timely = np.flatnonzero(decoding[:, 0] > 0)
    met, decoding = fitting.rows(timely), decoding[timely]
    return met, np.broadcast_to(curve(met, decoding, goal).rate, (met.count, 1))


def on_curve(w: Candidates, goal: Goal) -> tuple[Any, Any, Any]:
    """Layouts that keep every limit on the curve: their rows, users (not rounded) or rate, and objective."""
    most = most_fitting(w)
    keep = np.flatnonzero(most[:, 0] >= least_sequences(w))
    w, most = w.rows(keep), most[keep]
    room = batch_of(w, most).astype(float)

    low = _highest_decoding(w, room, goal, EXACTLY)
    point = curve(w, np.maximum(low, 1e-9), goal)
    if goal.rate is not None:
        size = sized(w, 1 / point.rate, goal)
        share = goal.rate / np.broadcast_to(size.replicas, low.shape)
        low = np.where(share <= point.rate, _decoding_at(w, share, low, goal, EXACTLY), 0.0)
        point = curve(w, np.maximum(low, 1e-9), goal)
    rows = np.flatnonzero(low[:, 0] > 0)
    value = objective_value(goal, w.case, sized(w, 1 / point.rate, goal), point.tpot, 1 / point.rate)
    value = np.broadcast_to(np.asarray(value, dtype=float), (w.count, 1))
    return keep[rows], np.broadcast_to(point.in_service, (w.count, 1))[rows, 0], value[rows, 0]


def _highest_decoding(w: Candidates, room: Number, goal: Goal, close: float) -> Any:
    """Most decoding sequences, not rounded, that keep the limits on the curve with all requests in memory; 0 if none."""

    def excess(decoding: Number) -> Any:
        point = curve(w, decoding, goal)
        return np.maximum(strain(w, point, goal), point.in_service / room) - 1

    most = (screened_root if close == SCREENED else increasing_root)(excess, 0.0 * room, room, -1.0, close)
    return np.where(most > 2 * close * room, most, 0.0)


def fewest_users(w: Candidates, goal: Goal) -> LoopTimes:
    """Replicas with the fewest users: one alone, or where batches are halved two on each rank."""
    alone = np.ones((w.count, 1))
    if least_sequences(w) > 1:
        return exact(w, batch_of(w, 2 * alone), replace(goal, rate=None))
    law = step_law(goal)
    tpot = decode_tpot(w, alone, law)  # nobody else's prompt, nobody to wait for: the fixed point in one evaluation
    ttft = w.ttft if goal.step_factor == 1 else request_laws.unloaded_ttft_s(w.server, w.case.requests(), law)
    rate = loop_rate(alone, ttft / w.server.first_token_factor, tpot, w.case.load.output)
    return LoopTimes(ttft=ttft, tpot=tpot, decode=tpot, rate=rate, decoding=alone, in_service=alone, seat_wait=0, prompt=0)


def _most_decoding(w: Candidates, most: Number, goal: Goal) -> Any:
    """Most decoding sequences on the curve that keep the limits; those of the fewest users where only these keep them; 0 if none do."""
    least = 0.0 if least_sequences(w) == 1 else batch_of(w, 2 * np.ones((w.count, 1)))
    decoding = _highest_decoding(w, batch_of(w, most).astype(float), goal, SCREENED)
    few = fewest_users(w, goal)
    time = few.rate * np.maximum(w.case.load.output - 1, LEAST_ANSWER) * few.tpot
    return np.where((decoding > time) & (decoding >= least), decoding, np.where(within(w, few, goal), time, 0.0)).astype(float)


def most_within(w: Candidates, most: Number, goal: Goal) -> Any:
    """Most sequences per rank, up to `most`, that keep the limits with all requests in memory; 0 if none."""
    room = batch_of(w, most)

    def holds(ranks: Number) -> Any:
        point = curve(w, batch_of(w, ranks).astype(float), goal)
        return within(w, point, goal) & ((point.in_service <= room) | (ranks <= 1))

    return bisect_ranks(holds, most + 1)


def _finalists(w: Candidates, point: LoopTimes, size: ReplicaCounts, goal: Goal, most: int = FINALISTS) -> Any:
    """Indices of the layouts that may be best: the best on the curve, and of those nearly as good the plainest."""
    value = objective_value(goal, w.case, size, point.tpot, 1 / point.rate)
    value = np.broadcast_to(np.asarray(-value if goal.more else value, dtype=float), (w.count, 1))[:, 0]
    order = np.argsort(value, kind="stable")
    if len(order) <= most:
        return np.sort(order)
    near = order[value[order] <= value[order[0]] + 2 * PLAIN_WITHIN * abs(value[order[0]])]
    plain = near[np.argsort(oddness(w)[near, 0], kind="stable")][: most // 2]
    return np.unique(np.concatenate((order[: most // 2], plain)))


TRIED = np.array([[1.04, 1.01, 0.98, 0.95, 0.9, 0.8, 0.6, 0.3, 0.0]])  # shares of the users found on the curve
RISE = 1e-3  # of the rate, for which fewer users than the most are taken
NARROWED = 10  # loads tried between the last that keeps the limits and the first that does not


def _most_users(w: Candidates, users: Number, room: Number, goal: Goal) -> tuple[Any, LoopTimes]:
    """The most users near `users` that keep every limit by the fixed point, and their times; 0 users where none do.

    Without users to place, those of them at which a replica finishes most: beyond some load decodes take room from prompts.
    """
    if goal.objective == "latency" or not w.count:
        point = exact(w, users, goal)
        return np.where(within(w, point, goal), users, 0), point
    low = high = best = most = np.zeros((w.count, 1))
    tried = np.minimum(np.maximum(np.floor(users * TRIED), 1), room)
    at_end = False
    for _ in range(3):
        point = exact(w, tried, goal)
        good = within(w, point, goal)
        rate = np.where(good, point.rate, 0.0)
        at = np.argmax(rate, axis=1)[:, None]
        fastest = np.take_along_axis(rate, at, axis=1)
        best = np.where(fastest > most, np.take_along_axis(tried, at, axis=1), best)
        most = np.maximum(fastest, most)
        low = np.maximum(low, np.max(np.where(good, tried, 0), axis=1, keepdims=True))
        high = np.min(np.where(~good & (tried > low), tried, room + 1), axis=1, keepdims=True)
        between = np.floor(low + (high - low) * np.linspace(0, 1, NARROWED)[None, 1:-1])
        beyond = low + np.arange(1, NARROWED - 1)  # a rank that fills may keep a limit that fewer users break
        tried = np.minimum(np.maximum(beyond if at_end else between, 1), room)
        at_end = True
    point = exact(w, np.maximum(low, 1), goal)
    if goal.users is None:
        low = np.where(most > point.rate * (1 + RISE), best, low)
        point = exact(w, np.maximum(low, 1), goal)
    return low, point


def _at_rate(w: Candidates, decoding: Number, rows: np.ndarray, goal: Goal, known_parts: dict[str, Any]) -> BestLoads:
    """Layouts at the goal's rate: sized by the most that each replica carries within the limits, at the load that this leaves it."""
    most = curve(w, decoding, goal)
    size = sized(w, 1 / most.rate, goal)
    share = goal.rate / np.broadcast_to(size.replicas, (w.count, 1))
    carried = np.flatnonzero((share <= most.rate)[:, 0])
    w, share, rows = w.rows(carried), share[carried], rows[carried]
    size = take(size.spread(len(decoding)), carried, len(decoding))
    point = curve(w, _decoding_at(w, share, decoding[carried], goal), goal)
    best = _finalists(w, point, size, goal, AT_RATE)
    finalists, most_rate = w.rows(best), np.broadcast_to(most.rate, (len(decoding), 1))[carried][best]
    point, size = _resized(finalists, most_rate, take(size, best, w.count), goal)
    good = np.flatnonzero(within(finalists, point, goal)[:, 0])
    met, known_parts = finalists.rows(good), known_parts | {"tried": finalists}
    return _best(
        met, point.in_service[good], take(point, good, finalists.count), rows[best][good], goal, known_parts, len(carried),
        take(size, good, finalists.count),
    )


def _resized(w: Candidates, most: Number, size: ReplicaCounts, goal: Goal) -> tuple[LoopTimes, ReplicaCounts]:
    """Times of layouts at their share of the rate; more nodes for those that break a limit, where nodes are free.

    The curve, by which they were sized, is near the fixed point and not at it.
    """
    point = exact(w, goal.rate / size.replicas, goal)
    for factor in MORE_NODES if goal.free else ():
        bad = np.flatnonzero(~within(w, point, goal)[:, 0])
        if not bad.size:
            break
        larger = sized(w.rows(bad), 1 / (factor * most[bad]), goal).spread(len(bad))
        relieved = exact(w.rows(bad), goal.rate / larger.replicas, goal)
        size, point = _replaced(size, bad, larger), _replaced(point, bad, relieved)
    return point, size


def _replaced(record: Any, rows: Any, by: Any) -> Any:
    """A record of columns with other values in some rows."""
    columns = {field.name: np.array(getattr(record, field.name), dtype=float) for field in fields(record)}
    for name, column in columns.items():
        column[rows] = getattr(by, name)
    return type(record)(**columns)


def _with_users(w: Candidates, most: Number, rows: np.ndarray, goal: Goal, known_parts: dict[str, Any], met: int) -> BestLoads:
    """Layouts with the goal's users spread over as many replicas as they need, or as the machine holds."""
    need = replicas_needed(goal.users, 1 / np.maximum(most, 1))
    size = ReplicaCounts(replicas=w.layout.replicas, chips_used=w.compiled.chips * w.layout.replicas, chips=w.case.system.chips)
    if goal.sizing:
        size = in_nodes(w, need, goal.spare) if goal.free else replace(size, replicas=need, chips_used=w.compiled.chips * need)
    size = size.spread(w.count)
    good = np.flatnonzero(((most >= 1) & (need <= size.replicas))[:, 0])
    w, size = w.rows(good), take(size, good, w.count)
    users = np.maximum(goal.users / size.replicas, 1.0)
    best = _best(w, users, exact(w, users, goal), rows[good], goal, known_parts, met, size)
    if not goal.free or goal.objective != "cost":
        return best
    price = 1.0 if w.case.price is None else w.case.price.value  # the users are as many on any machine: what is paid is compared
    return replace(best, value=np.broadcast_to(np.asarray(price * size.chips / goal.users, dtype=float), best.value.shape))


def _decoding_at(w: Candidates, rate: PerSecond, most: Number, goal: Goal, close: float = SCREENED) -> Any:
    """Decoding sequences at which a replica carries `rate`, at most `most`."""
    root = screened_root if close == SCREENED else increasing_root
    return root(lambda decoding: curve(w, decoding, goal).rate - rate, 0.0 * most, most, -rate, close)


def _pinned(w: Candidates, goal: Goal, batches: np.ndarray) -> BestLoads:
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
    values = objective_value(goal, w.case, size, point.tpot, 1 / point.rate)
    ranked = np.where(good, -values if goal.more else values, np.inf)
    met = np.flatnonzero(good.any(axis=1))
    column = np.argmin(ranked, axis=1)[met].reshape(-1, 1) if len(keep) else np.empty((0, 1), dtype=np.int64)
    batch = batches[0][column]
    counts = {"in_memory": len(keep), "in_time": int(timely.any(axis=1).sum())}
    finalists = fitting.rows(met)
    counts |= {"source": w, "tried": finalists, "fitting": fitting, "most": None, "room": room[keep]}
    return _best(finalists, batch, exact(finalists, batch.astype(float), closed), met, goal, counts, len(met))


def _best(
    w: Candidates, batch: Number, point: LoopTimes, rows: np.ndarray, goal: Goal, known_parts: dict[str, Any], met: int,
    size: ReplicaCounts | None = None,
) -> BestLoads:  # fmt: skip
    counts = sized(w, 1 / point.rate, goal) if size is None else size
    value = np.broadcast_to(objective_value(goal, w.case, counts, point.tpot, 1 / point.rate), (w.count, 1))
    return BestLoads(candidates=w, batch=batch, point=point, size=counts, value=value, fitting_rows=rows, met=met, **known_parts)

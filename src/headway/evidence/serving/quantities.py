"""Times and rates of each kind of task, expected or at the floor, for all rows of a kind at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from headway.evidence.serving.machines import rows
from headway.laws.queueing.closed_loop import NO_WORK, SINGLE, HandedLoop, Law, LoopTimes, best_split, handed_loop, step_times
from headway.laws.queueing.users import kept_in_step
from headway.laws.serving.request import decode_tok_per_s, run_s
from headway.laws.step.step import step_floor_s, step_s
from headway.performance import request
from headway.performance.request import Requests, Server

LOOPS = ("serving", "disagg", "offline")  # kinds that are closed loops
ONLINE = ("serving", "serving_unloaded", "disagg")  # kinds whose answers are streamed


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredLoad:
    """Load of the rows of one kind, as arrays over rows; NaN for a field that the kind does not have."""

    prompt: Any
    output: Any
    context: Any
    batch: Any
    users: Any  # concurrent users over all replicas
    spread: Any  # standard deviation over mean of the output lengths
    prefill_workers: Any = np.nan  # of a disaggregated row; NaN where they are not stated
    decode_workers: Any = np.nan
    rate: Any = np.nan  # requests that arrive per second, over all replicas; NaN in a closed loop


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantities:
    """Predicted quantities, as arrays over rows; NaN for a quantity that the kind does not have."""

    ttft: Any
    tpot: Any
    rate: Any  # tokens/s over all chips: output tokens; input tokens for prefill
    per_chip: Any


def with_room(m: Server, load: MeasuredLoad) -> Server:
    """The servers, with memory for an engine's most users where by the count not one request fits, though the run took place."""
    room, rules, cache = m.room, m.scheduling, m.cache_bytes(load.prompt + load.output)
    short = room.weights + cache > room.hbm * rules.usable_hbm_factor
    needed = (room.weights + cache * rules.max_sequences) / rules.usable_hbm_factor
    return replace(m, room=replace(room, hbm=np.where(short, needed, room.hbm)))


def quantities(kind: str, m: Server, load: MeasuredLoad, floor: bool, pool: Server | None = None) -> Quantities:
    """Quantities of the rows of one kind, at expected efficiencies or at the floor; `pool`: prefill workers of disaggregated rows."""
    m = with_room(m, load)
    if kind == "disagg":
        return _split(m, pool or m, load, floor)
    if not floor:
        return KINDS[kind](m.online() if kind in ONLINE else m, load, step_s)
    engine_floor, ideal = (KINDS[kind](machine, load, step_floor_s) for machine in (m, m.ideal()))
    if kind not in LOOPS:
        return ideal
    # In a closed loop no first token is faster than that of a single user.
    ttft = request.unloaded_ttft_s(m.ideal(), _requests(load), step_floor_s) if kind in ONLINE else ideal.ttft
    tpot = np.minimum(engine_floor.tpot, ideal.tpot)
    rate, chip_rate = np.maximum(engine_floor.rate, ideal.rate), np.maximum(engine_floor.per_chip, ideal.per_chip)
    return Quantities(ttft=ttft, tpot=tpot, rate=rate, per_chip=chip_rate)


def _missing(load: MeasuredLoad) -> Any:
    return np.full(np.shape(load.prompt), np.nan)


def _requests(load: MeasuredLoad) -> Requests:
    return Requests(prompt=load.prompt, output=load.output, spread=load.spread)


def _decode(m: Server, load: MeasuredLoad, law: Law) -> Quantities:
    """Quantities of a decode step at the stated context and batch."""
    tpot = step_times(m.step, law)(load.batch, load.batch * load.context, NO_WORK, NO_WORK, SINGLE)
    rate = decode_tok_per_s(load.batch, tpot, np.minimum(m.replicas, load.users))
    return Quantities(ttft=_missing(load), tpot=tpot, rate=rate, per_chip=rate / m.chips)


def _static_batch(m: Server, load: MeasuredLoad, law: Law) -> Quantities:
    """Quantities of a fixed batch from prefill to last token; the rate includes the prefill time."""
    requests = _requests(load)
    ttft, tpot = request.prompt_s(m, requests, load.batch, law), request.decode_s(m, requests, load.batch, law)
    busy = np.minimum(m.replicas, load.users)
    rate = load.output / run_s(ttft, tpot, load.output, load.batch) * busy
    return Quantities(ttft=ttft, tpot=tpot, rate=rate, per_chip=rate / m.chips)


def _prefill(m: Server, load: MeasuredLoad, law: Law) -> Quantities:
    requests, ranks = _requests(load), m.step.dp * m.step.pp
    ttft, filled = request.prompt_s(m, requests, load.batch, law), load.batch * request.saturated_prompt_s(m, requests, law)
    fills = load.batch * load.prompt >= ranks * m.scheduling.step_budget_tokens  # as runs of the highest rate are made
    ttft = np.where((m.step.dp > 1) & fills, np.minimum(ttft, filled), ttft)
    rate = load.prompt / (ttft / load.batch) * np.minimum(m.replicas, load.users)
    return Quantities(ttft=ttft, tpot=_missing(load), rate=rate, per_chip=rate / m.chips)


def _unloaded(m: Server, load: MeasuredLoad, law: Law) -> Quantities:
    requests = _requests(load)
    tpot = request.decode_s(m, requests, SINGLE, law)
    return Quantities(ttft=request.unloaded_ttft_s(m, requests, law), tpot=tpot, rate=_missing(load), per_chip=_missing(load))


def _served(m: Server, load: MeasuredLoad, users: Any, law: Law) -> LoopTimes:
    return request.closed_loop(m, _requests(load), users, law)


def served_times(m: Server, load: MeasuredLoad, law: Law = step_s) -> LoopTimes:
    """Times of arrivals at a rate that the server carries, else of a closed loop of the users."""
    users = np.where(np.isnan(load.users), m.seats(load.prompt, load.output) * m.replicas, load.users)  # a rate beyond the capacity
    closed = _served(m, load, np.maximum(users / m.replicas, 1), law)
    at = np.flatnonzero(~np.isnan(load.rate))  # of these rows alone: the capacity is a root inside a root
    if not len(at):
        return closed
    opened, carried = _arrivals(rows(m, at), rows(load, at), law)
    shape = np.shape(load.prompt)
    times = {field.name: np.array(np.broadcast_to(getattr(closed, field.name), shape), float) for field in fields(LoopTimes)}
    for name, values in times.items():
        values[at] = np.where(carried, getattr(opened, name), values[at])
    return LoopTimes(**times)


def _arrivals(m: Server, load: MeasuredLoad, law: Law) -> tuple[LoopTimes, Any]:
    """Times of arrivals at a rate, and whether the server carries it; where not, the times mean nothing."""
    requests, rate = _requests(load), load.rate / m.replicas
    capacity = request.capacity(m, requests, law)
    carried = rate < capacity
    return request.open_loop(m, requests, np.where(carried, rate, capacity / 2), law), carried


def _serving(m: Server, load: MeasuredLoad, law: Law) -> Quantities:
    """Quantities of a closed loop of users, or of arrivals at a rate."""
    loop_times = served_times(m, load, law)
    users = np.where(np.isnan(load.users), m.replicas, load.users)
    rate = (loop_times.rate * load.output) * np.minimum(m.replicas, users)
    return Quantities(ttft=loop_times.ttft, tpot=loop_times.tpot, rate=rate, per_chip=rate / m.chips)


def _offline(m: Server, load: MeasuredLoad, law: Law) -> Quantities:
    """Quantities of offline throughput: all slots (or the stated concurrency) in service all the time."""
    seats = m.seats(load.prompt, load.output)
    users = np.where(np.isnan(load.users), seats * m.replicas, load.users)
    loop_times = _served(m, load, np.clip(users / m.replicas, 1, seats), law)
    rate = (loop_times.rate * load.output) * np.minimum(m.replicas, users)
    return Quantities(ttft=_missing(load), tpot=loop_times.tpot, rate=rate, per_chip=rate / m.chips)


def _split(m: Server, pool: Server, load: MeasuredLoad, floor: bool) -> Quantities:
    """Quantities of a closed loop over prefill and decode workers."""
    if not floor:
        return _disagg(m.online(), pool, load, step_s)
    engine_floor, ideal = _disagg(m, pool, load, step_floor_s), _disagg(m.ideal(), pool.ideal(), load, step_floor_s)
    return Quantities(
        ttft=request.unloaded_ttft_s(pool.ideal(), _requests(load), step_floor_s), tpot=np.minimum(engine_floor.tpot, ideal.tpot),
        rate=np.maximum(engine_floor.rate, ideal.rate), per_chip=np.maximum(engine_floor.per_chip, ideal.per_chip),
    )  # fmt: skip


def _disagg(m: Server, pool: Server, load: MeasuredLoad, law: Law) -> Quantities:
    """Quantities of split pools: of the workers stated, else of the split of the chips that gives the highest request rate."""
    is_stated, requests = np.isfinite(load.prefill_workers), _requests(load)
    alone = request.prompt_s(pool, requests, SINGLE, law)
    packed = np.minimum(alone, request.saturated_prompt_s(pool, requests, law))
    prefill, decode = (np.where(is_stated, workers, 1.0) for workers in (load.prefill_workers, load.decode_workers))
    loop = _handed(m, load, m.seats(load.prompt, load.output) * decode, alone, packed)
    times = handed_loop(step_times(m.step, law), replace(loop, prefill_workers=prefill, decode_workers=decode))
    chips = prefill * pool.chips + decode * m.chips
    rate = times.rate * load.output
    known = Quantities(ttft=times.ttft, tpot=times.tpot, rate=rate, per_chip=rate / chips)
    if np.all(is_stated):
        return known
    guessed = _guessed_split(m, load, law)
    return Quantities(
        **{field.name: np.where(is_stated, getattr(known, field.name), getattr(guessed, field.name)) for field in fields(Quantities)}
    )


def _handed(m: Server, load: MeasuredLoad, seats: Any, alone: Any, packed: Any) -> HandedLoop:
    """The loop over two pools; a prompt takes `alone` on an idle prefill worker and `packed` on a busy one."""
    s = m.scheduling
    return HandedLoop(
        users=load.users, seats=seats, prompt=load.prompt, output=load.output, spread=load.spread, prefill_workers=SINGLE,
        decode_workers=SINGLE, prompt_alone=np.maximum(alone, packed), prompt_packed=packed,
        transfer=m.cache_bytes(load.prompt) / m.link, synchronised_share=s.start_share,
        concurrent_prompts=kept_in_step(s.concurrent_prompts, load.spread, load.output), request_overhead_s=s.request_overhead_s,
    )  # fmt: skip


def _guessed_split(m: Server, load: MeasuredLoad, law: Law) -> Quantities:
    """Quantities of a closed loop over prefill and decode workers, with the chip split that gives the highest request rate.

    Prefill workers have the smallest size that leaves no chip idle: it divides the decode worker and the machine. Their rate per
    chip is taken as the decode worker's, a good approximation because prefill is compute-bound.
    """
    s, step, dp, requests = m.scheduling, step_times(m.step, law), m.step.dp, _requests(load)
    size = np.gcd(m.chips.astype(np.int64), m.instance.astype(np.int64)).astype(float)
    size = np.where(m.room.weights * m.instance <= size * (m.room.hbm * s.usable_hbm_factor), size, m.instance)
    fewer = m.instance / size
    alone = request.prompt_s(m, requests, SINGLE, law)
    packed = np.minimum(alone, request.saturated_prompt_s(m, requests, law)) * fewer
    worker_slots = m.seats(load.prompt, load.output)
    loop = _handed(m, load, worker_slots, np.where(dp > 1, alone, alone * fewer), packed)
    split = best_split(step, loop, m.chips, size, m.instance, beyond=lambda workers: worker_slots * workers)
    loop_times = handed_loop(step, split)
    rate = loop_times.rate * load.output
    return Quantities(ttft=loop_times.ttft, tpot=loop_times.tpot, rate=rate, per_chip=rate / m.chips)


KINDS: dict[str, Callable[..., Quantities]] = {
    "decode": _decode, "decode_e2e": _static_batch, "prefill": _prefill, "serving": _serving, "serving_unloaded": _unloaded,
    "offline": _offline, "static": _static_batch,
}  # fmt: skip

"""Servers of many measured rows as one record of arrays, and the times and rates of each kind of task, expected or at the floor.

Layouts differ in their number of expert layers, spans and collectives; shorter lists are padded with terms of zero work.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np

from headway.core.schema import defaults
from headway.core.units import Number
from headway.evidence.rows.tasks import LOOPS, Setup
from headway.laws.queueing.closed_loop import (
    NO_WORK,
    SINGLE,
    HandedLoop,
    Law,
    LoopTimes,
    StepTime,
    best_split,
    handed_loop,
    step_times,
    token_times,
)
from headway.laws.queueing.users import first_round, kept_in_step
from headway.laws.serving.request import decode_tok_per_s, run_s
from headway.laws.step.coefficients import (
    CollectiveLine,
    CollectiveTerm,
    EngineCost,
    ExpertTerm,
    IndexTerm,
    ScanTerm,
    SpanTerm,
    StepCoefficients,
)
from headway.laws.step.step import step_floor_s, step_s
from headway.performance import request
from headway.performance.achieved import EAGER, Efficiencies, dense_part, efficiencies, engine_cost, form_of, with_engine
from headway.performance.assumptions import UTILIZATION, Assumptions
from headway.performance.compile import StepModel, compile_drafts, compile_layout
from headway.performance.nearest import ENGINES
from headway.performance.request import MemoryRoom, Requests, Scheduling, Server, scheduling, transfer_link
from headway.performance.room import Room, room_on_chip

NO_EXPERTS = ExpertTerm(compute=0.0, weights=0.0, activations=0.0, experts=1, active=0)
NO_SPAN = SpanTerm(cap=math.inf, root=math.inf, read=0.0, decode_compute=0.0, prefill_compute=0.0)
NO_SCAN = ScanTerm(layers=0, heads=0)
NO_INDEX = IndexTerm(compute=0.0, read=0.0, choice=0.0)
NO_COLLECTIVE = CollectiveTerm(count=0, lines=(CollectiveLine(alpha=0.0, slope=0.0),), floor=0.0)
SHARED_FIELDS = ("overlap", "communication", "queries", "least_queries")  # one value for all setups: those that draft stand alone


def stack(compiled: Sequence[StepCoefficients]) -> StepCoefficients:
    """Step coefficients of many layouts, each number an array over layouts."""
    kinds = ("experts", "spans", "indexes", "scans", "collectives")
    experts, spans, indexes, scans, collectives = (max(len(getattr(step, name)) for step in compiled) for name in kinds)
    lines = max((len(term.lines) for c in compiled for term in c.collectives), default=1)
    filled = [
        replace(
            c,
            experts=fill(c.experts, NO_EXPERTS, experts),
            spans=fill(c.spans, NO_SPAN, spans),
            indexes=fill(c.indexes, NO_INDEX, indexes),
            scans=fill(c.scans, NO_SCAN, scans),
            collectives=tuple(
                replace(term, lines=fill(term.lines, term.lines[-1], lines)) for term in fill(c.collectives, NO_COLLECTIVE, collectives)
            ),
        )
        for c in compiled
    ]
    return columns(filled)


def fill(items: tuple[Any, ...], nothing: Any, length: int) -> tuple[Any, ...]:
    """Items padded to `length` with the neutral item `nothing`."""
    return items + (nothing,) * (length - len(items))


def columns(records: Sequence[Any]) -> Any:
    """Records of equal structure as one record of arrays."""
    first = records[0]
    if is_dataclass(first):
        values = {field.name: [getattr(record, field.name) for record in records] for field in fields(first)}
        return type(first)(**{name: parts[0] if name in SHARED_FIELDS else columns(parts) for name, parts in values.items()})  # type: ignore[misc]
    if isinstance(first, tuple):
        return tuple(columns([record[index] for record in records]) for index in range(len(first)))
    return np.array([float(record) for record in records])


def scalar(value: Any) -> float:
    """The number of a record of one row, or the first."""
    return float(np.ravel(value)[0])


def rows(record: Any, index: np.ndarray | slice | list[int]) -> Any:
    """Record of arrays restricted to the rows `index`."""
    if is_dataclass(record):
        values = {field.name: getattr(record, field.name) for field in fields(record)}
        return type(record)(**{name: value if name in SHARED_FIELDS else rows(value, index) for name, value in values.items()})  # type: ignore[misc]
    if isinstance(record, tuple):
        return tuple(rows(item, index) for item in record)
    return record[index] if isinstance(record, np.ndarray) and record.ndim else record


NO_STORE = (0.0, np.inf)
NO_PAGE = (0.0, 1.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Engines:
    """Engine numbers, per setup."""

    cost: EngineCost
    scheduling: Scheduling


def under(server: Server, engines: Engines) -> Server:
    """The server with the costs and scheduling of engines applied; `server` has kernels alone."""
    c = server.step
    step = replace(c, achieved=with_engine(c.achieved, engines.cost, c.layers, server.tp, c.pp))
    return replace(server, step=step, scheduling=engines.scheduling)


def machines(setups: Sequence[Setup], table: Efficiencies | None = None) -> Server:
    """Servers of the setups, compiled with `table` (default: the shipped efficiencies)."""
    efficiency_table = table or efficiencies()
    return under(bare_machines(setups, efficiency_table), engines_of(setups, efficiency_table))


def engines_of(setups: Sequence[Setup], table: Efficiencies) -> Engines:
    """Engine numbers of each setup."""
    names = [(ENGINES[setup.engine], setup.system.chip) for setup in setups]
    schedulers = [scheduling(name, chip, table) for name, chip in names]
    cost = [
        engine_cost(name, chip, table, dense_form(setup), setup.older, setup.years, setup.formats.labels[0])
        for (name, chip), setup in zip(names, setups, strict=True)
    ]
    return Engines(cost=columns(cost), scheduling=columns(schedulers))


def dense_form(setup: Setup) -> str:
    """Number format of most dense weights."""
    return form_of(setup.formats, dense_part(setup.formats, setup.work.blocks)[0])


def bare_machines(setups: Sequence[Setup], table: Efficiencies) -> Server:
    """Servers of the setups with kernels alone, without an engine."""
    compiled = [compiled_setup(setup, table) for setup in setups]
    stores = max(len(layout.stores) for layout in compiled)
    places = [setup_room(setup, layout, table) for setup, layout in zip(setups, compiled, strict=True)]
    most = max(len(place.pages) for place in places)
    room = [
        MemoryRoom(
            weights=layout.weights_bytes,
            usable=place.usable,
            card=place.reported,
            stores=fill(layout.stores, NO_STORE, stores),
            state=layout.state_bytes,
            pages=fill(place.pages, NO_PAGE, most),
            stage=layout.stage,
        )
        for layout, place in zip(compiled, places, strict=True)
    ]
    return Server(
        step=stack([layout.step for layout in compiled]),
        room=columns(room),
        scheduling=engines_of(setups, table).scheduling,
        replicas=np.array([float(setup.replicas) for setup in setups]),
        chips=np.array([float(setup.system.chips) for setup in setups]),
        instance=np.array([float(layout.chips) for layout in compiled]),
        tp=np.array([float(setup.layout.tp) for setup in setups]),
        link=np.array([transfer_link(setup.system) for setup in setups]),
        accept_length=np.array([float(setup.drafts.length()) if setup.drafts else 1.0 for setup in setups]),
    )


def setup_room(setup: Setup, compiled: StepModel, table: Efficiencies, share: Number = UTILIZATION) -> Room:
    """The room of a setup under its engine at a share of the card."""
    eager = EAGER in setup.older
    return room_on_chip(setup.work, setup.system.chip, setup.layout, compiled, ENGINES[setup.engine], share, table, eager=eager)


def compiled_setup(setup: Setup, table: Efficiencies) -> StepModel:
    """Step model of a setup with kernels alone."""
    if table is efficiencies():
        return setup.compiled
    bare = defaults(Assumptions, {"engine": "none"})
    compiled = compile_layout(setup.work, setup.system, setup.layout, bare, setup.formats, table, ENGINES[setup.engine])
    return compile_drafts(compiled, setup.system, setup.layout, setup.drafting, setup.drafts)


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
    requests: Any = np.nan  # of the run
    max_num_seqs: Any = np.nan  # most sequences of a data-parallel rank, as the engine was started


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
    short, needed = room.weights + cache > room.usable, room.weights + cache * rules.max_sequences
    return replace(m, room=replace(room, **{name: np.where(short, needed, getattr(room, name)) for name in ("usable", "card")}))


def run_servers(m: Server, load: MeasuredLoad) -> Server:
    """The servers as the runs had them: memory for what took place, the batch limit that a row states, the first round of its requests.

    Users who begin together are the first round of a run: so many of its requests.
    """
    m = with_room(m, load)
    limit = np.where(np.isnan(load.max_num_seqs), m.scheduling.max_sequences, load.max_num_seqs)
    m = replace(m, scheduling=replace(m.scheduling, max_sequences=limit))
    if np.all(np.isnan(load.requests)):
        return m
    users = np.where(np.isnan(load.users), m.seats(load.prompt, load.output) * m.replicas, load.users)
    first = first_round(users, load.requests)
    shares = {name: np.where(np.isnan(first), getattr(m.scheduling, name), first) for name in ("first_round_share", "start_share")}
    return replace(m, scheduling=replace(m.scheduling, **shares))


def quantities(kind: str, m: Server, load: MeasuredLoad, floor: bool, pool: Server | None = None) -> Quantities:
    """Quantities of the rows of one kind, at expected efficiencies or at the floor; `pool`: prefill workers of disaggregated rows."""
    m = run_servers(m, load)
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


def _token_times(m: Server, law: Law) -> StepTime:
    """Time per token of a decode step, which yields several with speculation."""
    step, token = step_times(m.step, law), token_times(m.accept_length)
    return lambda batch, kv_tokens, *prompts: token(batch, kv_tokens, step(batch, kv_tokens, *prompts))


def _decode(m: Server, load: MeasuredLoad, law: Law) -> Quantities:
    """Quantities of a decode step at the stated context and batch."""
    tpot = _token_times(m, law)(load.batch, load.batch * load.context, NO_WORK, NO_WORK, SINGLE)
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


def _served(m: Server, load: MeasuredLoad, users: np.ndarray, law: Law) -> LoopTimes:
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
    users = np.where(np.isnan(load.users), np.fmin(seats * m.replicas, load.requests), load.users)
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
    times = handed_loop(_token_times(m, law), replace(loop, prefill_workers=prefill, decode_workers=decode))
    chips = prefill * pool.chips + decode * m.chips
    rate = times.rate * load.output
    known = Quantities(ttft=request.first_token_s(m, times.ttft, law), tpot=times.tpot, rate=rate, per_chip=rate / chips)
    if np.all(is_stated):
        return known
    guessed = _guessed_split(m, load, law)
    return Quantities(
        **{field.name: np.where(is_stated, getattr(known, field.name), getattr(guessed, field.name)) for field in fields(Quantities)}
    )


def _handed(m: Server, load: MeasuredLoad, seats: np.ndarray, alone: np.ndarray, packed: np.ndarray) -> HandedLoop:
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
    step, dp, requests = _token_times(m, law), m.step.dp, _requests(load)
    size = np.gcd(m.chips.astype(np.int64), m.instance.astype(np.int64)).astype(float)
    size = np.where(m.room.weights * m.instance <= size * m.room.usable, size, m.instance)
    fewer = m.instance / size
    alone = request.prompt_s(m, requests, SINGLE, law)
    packed = np.minimum(alone, request.saturated_prompt_s(m, requests, law)) * fewer
    worker_slots = m.seats(load.prompt, load.output)
    loop = _handed(m, load, worker_slots, np.where(dp > 1, alone, alone * fewer), packed)
    split = best_split(step, loop, m.chips, size, m.instance, beyond=lambda workers: worker_slots * workers)
    loop_times = handed_loop(step, split)
    rate = loop_times.rate * load.output
    return Quantities(ttft=request.first_token_s(m, loop_times.ttft, law), tpot=loop_times.tpot, rate=rate, per_chip=rate / m.chips)


KINDS: dict[str, Callable[..., Quantities]] = {
    "decode": _decode, "decode_e2e": _static_batch, "prefill": _prefill, "serving": _serving, "serving_unloaded": _unloaded,
    "offline": _offline, "static": _static_batch,
}  # fmt: skip

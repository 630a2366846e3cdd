"""Times and rates of each kind of task, expected or at the floor, for all rows of a kind at once."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headway.evidence.serving.machines import Machines
from headway.laws.queueing.closed_loop import HandedLoop, Loop, LoopTimes, StepTime, best_split, closed_loop, handed_loop
from headway.laws.queueing.users import prompt_chunks
from headway.laws.serving.replicas import offered_tok_per_s
from headway.laws.serving.request import (
    busy_replicas,
    causal_pairs,
    decode_tok_per_s,
    final_context,
    held_kv_tokens,
    middle_context,
    per_chip,
    per_prompt_s,
    pipelined_s,
    prompt_ranks,
    run_s,
    sustained_tok_per_s,
    tpot_s,
)
from headway.laws.step.memory import usable_hbm
from headway.laws.step.step import step_floor_s, step_s

Law = Callable[..., Any]  # step_s or step_floor_s
NOTHING, SINGLE = 0.0, 1.0
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantities:
    """Predicted quantities, as arrays over rows; NaN for a quantity that the kind does not have."""

    ttft: Any
    tpot: Any
    rate: Any  # tokens/s over all chips: output tokens; input tokens for prefill
    per_chip: Any


def quantities(kind: str, m: Machines, load: MeasuredLoad, floor: bool) -> Quantities:
    """Quantities of the rows of one kind, at expected efficiencies or at the floor."""
    if not floor:
        return KINDS[kind](m.online() if kind in ONLINE else m, load, step_s)
    engine_floor, ideal = (KINDS[kind](machine, load, step_floor_s) for machine in (m, m.ideal()))
    if kind not in LOOPS:
        return ideal
    alone = _unloaded(m.ideal(), load, step_floor_s)  # in a closed loop no request is faster than that of a single user
    rate, chip_rate = np.maximum(engine_floor.rate, ideal.rate), np.maximum(engine_floor.per_chip, ideal.per_chip)
    return Quantities(ttft=alone.ttft if kind in ONLINE else ideal.ttft, tpot=alone.tpot, rate=rate, per_chip=chip_rate)


def _missing(load: MeasuredLoad) -> Any:
    return np.full(np.shape(load.prompt), np.nan)


def _step(m: Machines, law: Law, prompts: Any = SINGLE) -> StepTime:
    """Step law of the machines, for steps with `prompts` prompts, each on one data-parallel rank."""
    return functools.partial(law, replace(m.step, prefill_ranks=prompt_ranks(prompts, m.step.dp)))


def _decode(m: Machines, load: MeasuredLoad, law: Law) -> Quantities:
    """Quantities of a decode step at the stated context and batch."""
    tpot = _step(m, law)(load.batch, held_kv_tokens(load.batch, load.context), NOTHING, NOTHING)
    rate = decode_tok_per_s(load.batch, tpot, busy_replicas(m.replicas, load.users))
    return Quantities(ttft=_missing(load), tpot=tpot, rate=rate, per_chip=per_chip(rate, m.chips))


def _mean_tpot(m: Machines, load: MeasuredLoad, batch: Any, law: Law) -> Any:
    """Mean TPOT of a batch that starts together, over its growing context."""
    step = _step(m, law)
    contexts = (load.prompt, middle_context(load.prompt, load.output), final_context(load.prompt, load.output))
    return tpot_s(*(step(batch, held_kv_tokens(batch, context), NOTHING, NOTHING) for context in contexts))


def _prompt_s(m: Machines, load: MeasuredLoad, prompts: Any, law: Law) -> Any:
    """Prefill time of prompts without decodes: one chunk per step, chunks overlapped across pipeline stages."""
    tokens, pairs = prompts * load.prompt, prompts * causal_pairs(load.prompt)
    chunks = prompt_chunks(tokens, m.scheduling.step_budget_tokens * m.step.dp)
    chunk = _step(m, law, prompts)(NOTHING, NOTHING, tokens / chunks, pairs / chunks)
    return pipelined_s(chunk, chunks, m.step.pp, m.scheduling.pipeline_overlap_share)


def _static_batch(m: Machines, load: MeasuredLoad, law: Law) -> Quantities:
    """Quantities of a fixed batch from prefill to last token; the rate includes the prefill time."""
    ttft, tpot = _prompt_s(m, load, load.batch, law), _mean_tpot(m, load, load.batch, law)
    busy = busy_replicas(m.replicas, load.users)
    rate = sustained_tok_per_s(load.output, run_s(ttft, tpot, load.output, load.batch), busy)
    return Quantities(ttft=ttft, tpot=tpot, rate=rate, per_chip=per_chip(rate, m.chips))


def _prefill(m: Machines, load: MeasuredLoad, law: Law) -> Quantities:
    ttft = _prompt_s(m, load, load.batch, law)
    rate = sustained_tok_per_s(load.prompt, per_prompt_s(ttft, load.batch), busy_replicas(m.replicas, load.users))
    return Quantities(ttft=ttft, tpot=_missing(load), rate=rate, per_chip=per_chip(rate, m.chips))


def _unloaded(m: Machines, load: MeasuredLoad, law: Law) -> Quantities:
    ttft = _prompt_s(m, load, SINGLE, law) + m.scheduling.request_overhead_s
    return Quantities(ttft=ttft, tpot=_mean_tpot(m, load, SINGLE, law), rate=_missing(load), per_chip=_missing(load))


def _loop(m: Machines, load: MeasuredLoad, users: Any) -> Loop:
    """Closed loop of `users` users on one replica."""
    s = m.scheduling
    return Loop(
        users=users, seats=m.seats(load.prompt, load.output), prompt=load.prompt, output=load.output, spread=load.spread,
        step_budget_tokens=s.step_budget_tokens * m.step.dp, chunked_prefill=s.chunked_prefill, synchronised_share=s.synchronised_share,
        concurrent_prompts=s.concurrent_prompts, request_overhead_s=s.request_overhead_s,
    )  # fmt: skip


def _served(m: Machines, load: MeasuredLoad, users: Any, law: Law) -> LoopTimes:
    return closed_loop(_step(m, law, users / load.output), _loop(m, load, users))


def _serving(m: Machines, load: MeasuredLoad, law: Law) -> Quantities:
    """Quantities of a closed loop of users."""
    loop_times = _served(m, load, np.maximum(load.users / m.replicas, 1), law)
    rate = offered_tok_per_s(loop_times.rate, load.output) * busy_replicas(m.replicas, load.users)
    return Quantities(ttft=loop_times.ttft, tpot=loop_times.tpot, rate=rate, per_chip=per_chip(rate, m.chips))


def _offline(m: Machines, load: MeasuredLoad, law: Law) -> Quantities:
    """Quantities of offline throughput: all slots (or the stated concurrency) in service all the time."""
    seats = m.seats(load.prompt, load.output)
    users = np.where(np.isnan(load.users), seats * m.replicas, load.users)
    loop_times = _served(m, load, np.clip(users / m.replicas, 1, seats), law)
    rate = offered_tok_per_s(loop_times.rate, load.output) * busy_replicas(m.replicas, users)
    return Quantities(ttft=_missing(load), tpot=loop_times.tpot, rate=rate, per_chip=per_chip(rate, m.chips))


def _disagg(m: Machines, load: MeasuredLoad, law: Law) -> Quantities:
    """Quantities of a closed loop over prefill and decode workers, with the chip split that gives the highest request rate.

    Prefill workers have the smallest size that leaves no chip idle: it divides the decode worker and the machine. Their rate per
    chip is taken as the decode worker's, a good approximation because prefill is compute-bound.
    """
    s, step, dp = m.scheduling, _step(m, law), m.step.dp
    size = np.gcd(m.chips.astype(np.int64), m.instance.astype(np.int64)).astype(float)
    size = np.where(m.room.weights * m.instance <= size * usable_hbm(m.room.hbm, s.usable_hbm_factor), size, m.instance)
    fewer = m.instance / size
    alone = _prompt_s(m, load, SINGLE, law)
    packed = np.minimum(alone, _prompt_s(m, load, dp, law) / dp) * fewer
    worker_slots = m.seats(load.prompt, load.output)
    loop = HandedLoop(
        users=load.users, seats=worker_slots, prompt=load.prompt, output=load.output, spread=load.spread, prefill_workers=SINGLE,
        decode_workers=SINGLE, prompt_alone=np.maximum(np.where(dp > 1, alone, alone * fewer), packed), prompt_packed=packed,
        transfer=m.cache_bytes(load.prompt) / m.link, synchronised_share=s.synchronised_share,
        concurrent_prompts=s.concurrent_prompts, request_overhead_s=s.request_overhead_s,
    )  # fmt: skip
    split = best_split(step, loop, m.chips, size, m.instance, beyond=lambda workers: worker_slots * workers)
    loop_times = handed_loop(step, split)
    rate = offered_tok_per_s(loop_times.rate, load.output)
    return Quantities(ttft=loop_times.ttft, tpot=loop_times.tpot, rate=rate, per_chip=per_chip(rate, m.chips))


KINDS: dict[str, Callable[..., Quantities]] = {
    "decode": _decode, "decode_e2e": _static_batch, "prefill": _prefill, "serving": _serving, "serving_unloaded": _unloaded,
    "offline": _offline, "static": _static_batch, "disagg": _disagg,
}  # fmt: skip

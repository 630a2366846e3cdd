"""Requests on one replica at a load: a closed loop of N users, or Poisson arrivals (an open loop), as a fixed point.

A saturated batch is a loop with one user per slot. The last part has separate pools for prefill and decode.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headway.core.formula import formula
from headway.core.quantity import known
from headway.core.trace import unrecorded
from headway.core.units import ONE_TOKEN, Number, PerSecond, Second, Token
from headway.laws.queueing.root import increasing_root
from headway.laws.queueing.users import (
    beside_added_s,
    busy_share,
    chunk_budget,
    cycle_steps,
    decoding_at_once,
    decoding_beside,
    looped_tpot_s,
    looped_ttft_s,
    open_between_s,
    others_in_service,
    packed_tokens,
    prefill_share,
    prompt_added_s,
    prompt_chunks,
    prompt_load,
    prompts_at_once,
    prompts_beside,
    prompts_in_progress,
    prompts_met,
    prompts_per_step,
    queued_before,
    random_wait_s,
    rank_budget,
    regularity,
    residual_s,
    shared_load,
    sharing_budget,
    steady_between_s,
    steady_s,
    step_room,
    synchronised_with_others,
    together_between_s,
    together_s,
    users_not_queued,
)
from headway.laws.serving.request import e2e_s, lane_prompts, middle_context, pipelined_s, prompt_lanes, speculative_s, tpot_s
from headway.laws.step.coefficients import StepCoefficients
from headway.laws.step.step import step_floor_s, step_s

StepTime = Callable[[Any, Any, Any, Any, Any], Any]  # decoding sequences, their KV tokens, prompt tokens, prompt pairs, prompts -> s
TokenTime = Callable[[Any, Any, Any], Any]  # decoding sequences, their KV tokens, time of the step -> seconds per token
CLOSED = known(1.0, "closed loop", "", "constant", "users wait for their answers")
OPEN = known(0.0, "open loop", "", "constant", "requests arrive whatever the backlog")
IRREGULAR = known(1e6, "spread of Poisson arrivals", "", "constant", "they keep no order, as users in a loop do")
NO_WORK = known(0.0, "no prompt", "token", "constant", "a decode step prefills nothing")
SINGLE = known(1.0, "one prompt", "", "constant", "a prompt by itself")
HALF = known(2.0, "half", "", "constant", "of those who come together, on average half decode while prompts are prefilled")
NO_TIME = known(0.0, "no step", "s", "constant", "the wait has the step in progress")
NO_RATE = known(0.0, "no arrivals", "1/s", "constant", "a closed loop has users instead")
EVEN = known(0.0, "none together", "", "constant", "Poisson arrivals come one by one")


def step_yields_token(decoding: Number, kv_tokens: Token, step: Second) -> Any:
    """Time per token without speculation: that of the step."""
    return step


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """Load of one replica and its engine's scheduling; every field a scalar or an array."""

    users: Number
    seats: Number
    prompt: Token  # context at the first token
    prefill: Token  # prompt tokens to compute: those that no prefix cache holds
    pairs: Token  # their (query, key) pairs
    output: Token
    spread: Number  # of the output length: standard deviation over mean
    step_budget_tokens: Token  # most prompt tokens per step of the replica
    chunked_prefill: Number  # 1: prompt chunks share steps with decodes; 0: prompts run first, in steps without decodes
    synchronised_share: Number  # share of requests whose prompts arrive all at once
    concurrent_prompts: Number  # other prompts that arrive with a prompt even when arrivals are spread
    request_overhead_s: Second  # per request: before its prompt enters a step and after its first token leaves it
    lanes: Number = 1  # data-parallel ranks x pipeline stages: each computes chunks of prompts of its own
    pp: Number = 1
    pipeline_overlap_share: Number = 0  # share of a prompt's chunks that overlap in pipeline stages
    accept_length: Number = 1  # tokens per step
    closed: Number = CLOSED  # 1: users who wait for their answers; 0: Poisson arrivals
    rate: PerSecond = NO_RATE  # of Poisson arrivals
    in_turn: Number = SINGLE  # replicas to which Poisson arrivals are dealt in turn


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopTimes:
    """Times of a request at a load, and the replica's rate."""

    ttft: Second
    tpot: Second
    decode: Second  # TPOT of decode steps alone
    rate: PerSecond
    decoding: Number
    in_service: Number  # requests that are prefilled or decode
    seat_wait: Second  # part of the TTFT
    prompt: Second  # time of the replica that one prompt takes from decoding


def poisson(loop: Loop, rate: PerSecond) -> Loop:
    """The load with requests that arrive at random, whatever the backlog."""
    return replace(loop, closed=OPEN, rate=rate, spread=IRREGULAR, synchronised_share=EVEN, concurrent_prompts=EVEN)


def random_arrivals(loop: Loop) -> Loop:
    """The loop with users who come one by one in no order: near the load of Poisson arrivals, without their rate."""
    return replace(loop, spread=IRREGULAR, synchronised_share=EVEN, concurrent_prompts=EVEN)


def request_times(
    step: StepTime, loop: Loop, served: Number, decoding: Number, token: TokenTime = step_yields_token, *, whole_answer: bool = False
) -> tuple[Any, Any, Any, Any]:
    """TTFT in service, TPOT, TPOT of decode steps alone, and a prompt's time, while `decoding` of `served` requests decode.

    `whole_answer`: decode steps are averaged over the growing context of an answer, else taken at its middle.
    """
    other_users = others_in_service(served, loop.closed)
    together = synchronised_with_others(loop.synchronised_share, other_users)
    batch, busy = decoding_at_once(decoding, served, together), busy_share(served, loop.closed)
    prompts = _prompts(loop, served, other_users, sharing_budget(batch, other_users))
    decode_batch = decoding_at_once(decoding_beside(decoding, served, loop.closed), served, together)
    contexts = (middle_context(loop.prompt, loop.output),)
    if whole_answer:
        contexts = (loop.prompt, *contexts, loop.prompt + loop.output)
    decodes = [(decode_batch, decode_batch * context, NO_WORK, NO_WORK, SINGLE) for context in contexts]
    beside = batch * (loop.chunked_prefill * busy)
    steps, alone, full, *further = _steps(step, served + decoding, decodes, *_prompt_steps(loop, prompts, beside))
    decode = tpot_s(*steps) if whole_answer else steps[0]
    per_token = token(decode_batch, decodes[len(decodes) // 2][1], decode)
    if loop.closed:
        steady, added = _in_turn(loop, prompts, alone, full, further, decode, busy)
    else:
        steady, added = _at_random(step, loop, prompts, alone, full, beside, decode, busy)
    packed, at_once = full * loop.prefill / prompts.packed, prompts_at_once(prompts.packed, loop.prefill, served, loop.lanes / loop.pp)
    ttft = looped_ttft_s(loop.request_overhead_s, together, together_s(served, packed, at_once), steady[0])
    between = together_between_s(served, packed, at_once)
    return ttft, looped_tpot_s(per_token, together, between, steady[1], loop.output), per_token, added


# -- a request in service: its prompt in chunks beside decodes, and the prompts of others between its own tokens ----------------


StepLoad = tuple[Any, Any, Any, Any, Any]  # the arguments of a StepTime


def _steps(step: StepTime, like: Number, decodes: list[StepLoad], *prompts: StepLoad) -> tuple[Any, ...]:
    """Times of decode steps, as a list, and of each step with prompts: of many replicas in one evaluation, of one step by step.

    `like` has the shape of the replicas.
    """
    loads = [*decodes, *prompts]
    shape = np.broadcast_shapes(np.shape(like), *(np.shape(value) for load in loads for value in load))
    if not shape:
        seconds = [step(*load) for load in loads]
    else:
        columns = np.empty((5, len(loads), *shape))
        for row, load in enumerate(loads):
            for column, value in enumerate(load):
                columns[column, row] = value
        seconds = list(step(*columns))
    return (seconds[: len(decodes)], *seconds[len(decodes) :])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Prompts:
    """Prompts of a replica as its steps meet them."""

    chunks: Any  # steps of one prompt
    tokens: Any  # of one prompt in one step
    pairs: Any
    largest: Any  # tokens of its largest chunk
    steps: Any  # of the whole replica per prompt while prompts queue
    queued: Any  # steps that a prompt waits for prompts before it
    beside: Any  # other prompts prefilled with a prompt
    arriving: Any  # prompts of others that begin per step
    most: Any  # prompts for which a step has room
    packed: Any  # prompt tokens of a step while prompts queue
    other_users: Any
    not_queued: Any  # other users whose prompts are not among those queued before


def _prompts(loop: Loop, served: Number, other_users: Number, beside: Number) -> _Prompts:
    chunk = chunk_budget(loop.step_budget_tokens, beside, loop.chunked_prefill)
    lane = chunk / loop.lanes
    chunks = prompt_chunks(loop.prefill, lane)
    tokens, steps = loop.prefill / chunks, loop.prefill / chunk
    cycle = cycle_steps(loop.output, chunks, loop.accept_length)
    queued = queued_before(other_users, steps, cycle, chunks, loop.spread) * loop.chunked_prefill
    arriving, room = prompts_per_step(other_users, cycle, queued), step_room(chunk, loop.prefill, chunks)
    not_queued = users_not_queued(other_users, queued, steps)
    return _Prompts(
        chunks=chunks, tokens=tokens, pairs=loop.pairs / chunks, largest=packed_tokens(loop.prefill, lane, SINGLE),
        steps=steps, queued=queued, other_users=other_users, not_queued=not_queued,
        beside=prompts_beside(loop.chunked_prefill, arriving, room, chunks, loop.concurrent_prompts, not_queued),
        arriving=arriving, most=chunk / tokens,
        packed=packed_tokens(loop.prefill, rank_budget(chunk, served, loop.lanes / loop.pp), served),
    )  # fmt: skip


def _prompt_steps(loop: Loop, p: _Prompts, beside: Number) -> list[StepLoad]:
    """Steps with one chunk of one prompt, with queued prompts, and in a closed loop with all prompts that share one; then the longest."""
    kv_tokens = beside * middle_context(loop.prompt, loop.output)
    of_prompt = p.packed / loop.prefill
    # While synchronised prompts are prefilled, on average half of the sequences decode.
    packed = (p.packed, loop.pairs * of_prompt, p.packed / p.tokens)
    alone = (beside, kv_tokens, p.tokens, p.pairs, SINGLE)
    if not loop.closed:
        return [alone, (beside, kv_tokens, *packed)]
    full = (beside / HALF, kv_tokens / HALF, *packed)
    return [alone, full, _shared(p, beside, kv_tokens, _sharing(loop, p, p.arriving * p.chunks)), *_longest(loop, p, alone)]


def _sharing(loop: Loop, p: _Prompts, load: Any) -> Any:
    """Prompts that share a step while one is prefilled, itself included."""
    return prompts_in_progress(load, np.minimum(loop.concurrent_prompts, p.not_queued), p.most)


def _shared(p: _Prompts, beside: Number, kv_tokens: Token, prompts: Number) -> StepLoad:
    return beside, kv_tokens, p.tokens * prompts, p.pairs * prompts, prompts


def _longest(loop: Loop, p: _Prompts, chunk: StepLoad) -> list[StepLoad]:
    """The step with the largest chunk of the prompts of a step, where pipeline stages wait for it."""
    if not np.any(loop.pp > 1):
        return []
    beside, kv_tokens, _, _, prompts = chunk
    pairs = loop.pairs * (p.largest / loop.prefill)
    return [(beside, kv_tokens, p.largest * prompts, pairs * prompts, prompts)]


def _in_turn(
    loop: Loop, p: _Prompts, alone: Second, full: Second, further: list[Any], decode: Second, busy: Number
) -> tuple[tuple[Any, Any], Any]:
    """Users in a loop, one by one: TTFT, the time that others' prompts add to an answer, and what one prompt adds."""
    shared, longest = further[0], further[-1] if len(further) > 1 else alone
    prompts = _sharing(loop, p, p.arriving * p.chunks)
    added = prompt_added_s(shared, decode, loop.chunked_prefill, p.chunks, prompts)
    prefill = pipelined_s(alone, p.chunks, longest, loop.pp, loop.pipeline_overlap_share)
    met = beside_added_s(added, shared, alone, p.chunks, prompts, loop.lanes / loop.pp)
    ttft = steady_s(prefill, p.beside, met, full * p.queued, decode, busy)
    return (ttft, steady_between_s(p.other_users, p.beside, p.queued, p.steps, added)), added


def _at_random(
    step: StepTime, loop: Loop, p: _Prompts, alone: Second, full: Second, beside: Number, decode: Second, busy: Number
) -> tuple[tuple[Any, Any], Any]:
    """Poisson arrivals: TTFT, the time that others' prompts add to an answer, and what one prompt adds."""
    kv_tokens = beside * middle_context(loop.prompt, loop.output)
    apart = decode * (busy * (1 - loop.chunked_prefill))  # between two steps with prompts
    load, service = prompt_load(loop.rate, p.chunks, alone), full * p.steps
    regular = regularity(loop.rate * service, loop.in_turn)
    prompts = _sharing(loop, p, shared_load(loop.rate, p.chunks, alone + apart, full + apart, p.most))
    met = _shared(p, beside, kv_tokens, SINGLE + prompts_met(load, p.chunks, p.most, regular))
    _, shared, met_step, *longest = _steps(step, alone, [], _shared(p, beside, kv_tokens, prompts), met, *_longest(loop, p, met))
    added = prompt_added_s(shared, decode, loop.chunked_prefill, p.chunks, prompts)
    share = prefill_share(loop.rate, p.chunks, shared, prompts)
    wait = random_wait_s(residual_s(share, shared, service, decode, busy, regular), loop.rate, service)
    prefill = pipelined_s(met_step, p.chunks, (longest or [met_step])[0], loop.pp, loop.pipeline_overlap_share)
    ttft = steady_s(prefill, EVEN, NO_TIME, wait, NO_TIME, busy)
    return (ttft, open_between_s(p.other_users, loop.output, loop.accept_length, p.chunks, prompts, loop.chunked_prefill, added)), added


# -- the fixed point ------------------------------------------------------------------------------------------------------------


NOTHING: Number = 1e-12  # makes 0 / 0 a zero
FULLEST: Number = 1 - 1e-9
SETTLED = 3
CAPACITY_CLOSE = 1e-8  # of a capacity: far below its error
LEAST_SERVED = 1e-9  # requests in service of a load of almost nothing


@formula(source="definition; an engine admits sequences as far as the KV that they will hold on average fits")
def replica_seats(rank_sequences: Number, limit: Number, dp: Number) -> Number:
    """Seats: sequences in service at once in a replica of `dp` ranks, at least one; `limit` is the engine's, per rank (max_num_seqs).

    >>> float(replica_seats(250.5, 256, 1)), float(replica_seats(5000.0, 256, 8)), float(replica_seats(0.3, 256, 1))
    (250.5, 2048.0, 1.0)
    """
    return np.maximum(np.minimum(rank_sequences, limit) * dp, 1)


@formula(source="Little's law on the decoding sequences")
def decoded_per_s(decoding: Number, output: Token, tpot: Second) -> PerSecond:
    """Requests per second that `decoding` sequences complete.

    >>> float(decoded_per_s(100, 1001, 0.020))
    5.0
    """
    return decoding / (np.maximum(output / ONE_TOKEN - 1, NOTHING) * tpot)


@formula(source="Little's law on the requests in service")
def loop_rate(sequences: Number, ttft: Second, tpot: Second, output: Token) -> PerSecond:
    """Requests per second of a closed loop.

    >>> loop_rate(128, 2.0, 0.010, 1001)
    10.666666666666666
    """
    return sequences / (ttft + (output / ONE_TOKEN - 1) * tpot)


@formula(source="Little's law on the requests that wait for a seat")
def seat_wait_s(users: Number, seats: Number, rate: PerSecond) -> Second:
    """Wait for KV room or a slot in the batch.

    >>> float(seat_wait_s(256, 128, 10.0)), float(seat_wait_s(64, 128, 10.0))
    (12.8, 0.0)
    """
    return np.maximum(users - seats, 0) / rate


@formula(source="Sakasegawa 1977, Ann. Inst. Stat. Math. 29(1), equation 3: mean wait of M/D/c, half of M/M/c's")
def open_seat_wait_s(served: Number, seats: Number, rate: PerSecond, in_turn: Number) -> Second:
    """Wait for a seat of Poisson arrivals, dealt in turn to `in_turn` replicas: nearly none until almost all seats are taken.

    >>> float(open_seat_wait_s(64.0, 128, 10.0, 1)) < 1e-5, round(float(open_seat_wait_s(126.0, 128, 10.0, 1)), 2)
    (True, 2.48)
    """
    load = np.minimum(served / seats, FULLEST)
    return load ** np.sqrt(2 * (seats + 1)) / (1 - load) / 2 / rate / in_turn


def closed_loop(step: StepTime, loop: Loop, token: TokenTime = step_yields_token) -> LoopTimes:
    """Times of a closed loop on one replica."""
    served = np.minimum(loop.users, loop.seats) + 0.0 * loop.prompt + 0.0 * loop.output
    return loop_times(step, loop, served, decoding_of(step, loop, served, token), token)


def decoding_of(step: StepTime, loop: Loop, served: Number, token: TokenTime = step_yields_token) -> Any:
    """Decoding sequences of a closed loop: with them, decoding and prefilling fill the service."""

    def excess(decoding: Number) -> Any:
        ttft, tpot, *_ = request_times(step, loop, served, decoding, token)
        return decoding + decoded_per_s(decoding, loop.output, tpot) * ttft - served

    return increasing_root(excess, 0 * served, served, -served)


def loop_times(step: StepTime, loop: Loop, served: Number, decoding: Number, token: TokenTime = step_yields_token) -> LoopTimes:
    """Times of a closed loop with `served` requests in service, of which `decoding` decode."""
    ttft, tpot, decode, prompt = request_times(step, loop, served, decoding, token, whole_answer=True)
    rate = loop_rate(served, ttft, tpot, loop.output)
    wait = seat_wait_s(loop.users, loop.seats, rate)
    waited = ttft + wait
    return LoopTimes(ttft=waited, tpot=tpot, decode=decode, rate=rate, decoding=decoding, in_service=served, seat_wait=wait, prompt=prompt)


def open_decoding(step: StepTime, loop: Loop, rate: PerSecond, token: TokenTime = step_yields_token) -> Any:
    """Sequences that decode at once when Poisson arrivals come at `rate`; all seats decode from saturation on."""
    full = loop.seats + 0.0 * loop.prompt + 0.0 * loop.output + 0.0 * rate

    def excess(decoding: Number) -> Any:
        return decoded_per_s(decoding, loop.output, _served_at(step, loop, rate, decoding, token)[1]) - rate

    return increasing_root(excess, 0 * full, full, -rate + 0 * full)


def open_served(step: StepTime, loop: Loop, rate: PerSecond, decoding: Number, token: TokenTime = step_yields_token) -> Any:
    """Requests in service when Poisson arrivals come at `rate` and `decoding` sequences decode."""
    return np.minimum(_served_at(step, loop, rate, decoding, token)[0], loop.seats)


def _served_at(step: StepTime, loop: Loop, rate: PerSecond, decoding: Number, token: TokenTime) -> tuple[Any, Any]:
    """Requests in service beside `decoding` sequences, seats ignored, and their TPOT."""
    random, served, tpot = poisson(loop, rate), decoding + LEAST_SERVED, None
    for _ in range(SETTLED):  # TTFT hardly depends on the requests in service
        ttft, tpot, *_ = request_times(step, random, served, decoding, token)
        served = np.maximum(decoding + rate * ttft, LEAST_SERVED)
    return served, tpot


def open_loop(step: StepTime, loop: Loop, rate: PerSecond, token: TokenTime = step_yields_token) -> LoopTimes:
    """Times of Poisson arrivals at `rate` on one replica; `loop.users` is not used, and times beyond the capacity mean nothing."""
    decoding = open_decoding(step, loop, rate, token)
    served = open_served(step, loop, rate, decoding, token)
    return open_times(step, poisson(loop, rate), rate, served, decoding, token)


def open_times(
    step: StepTime, loop: Loop, rate: PerSecond, served: Number, decoding: Number, token: TokenTime = step_yields_token
) -> LoopTimes:
    """Times of Poisson arrivals at `rate` with `served` requests in service, of which `decoding` decode."""
    ttft, tpot, decode, prompt = request_times(step, loop, served, decoding, token, whole_answer=True)
    wait = open_seat_wait_s(served, loop.seats, rate, loop.in_turn)
    waited = ttft + wait
    return LoopTimes(ttft=waited, tpot=tpot, decode=decode, rate=rate, decoding=decoding, in_service=served, seat_wait=wait, prompt=prompt)


def capacity(step: StepTime, loop: Loop, token: TokenTime = step_yields_token) -> Any:
    """Requests per second of one replica with every seat taken: the highest rate at which `open_loop` is steady."""
    spread = closed_loop(step, replace(random_arrivals(loop), users=loop.seats), token).rate

    def excess(rate: PerSecond) -> Any:
        return rate - closed_loop(step, replace(poisson(loop, rate), users=loop.seats + 0.0 * rate), token).rate

    return increasing_root(excess, 0 * spread, 2 * spread, -spread, CAPACITY_CLOSE)


# -- loops on a replica given by its step coefficients: step and token times as functions of the load, and the fixed points as numbers 


Law = Callable[..., Any]  # step_s or step_floor_s

# 64 users, or arrivals, of prompts of 2,048 and answers of 512 tokens: the load of the doctests below, on Llama-3.1-70B on 8 H100 SXM.
PROMPTS_2K = Loop(
    users=64.0, seats=256.0, prompt=2048.0, prefill=2048.0, pairs=2048.0 * 2048.0 / 2, output=512.0, spread=0.0, step_budget_tokens=8192.0,
    chunked_prefill=1.0, synchronised_share=0.0, concurrent_prompts=0.0, request_overhead_s=0.0,
)  # fmt: skip


def step_times(step: StepCoefficients, law: Law) -> StepTime:
    """The step law of a server, for steps in which `prompts` prompts share its ranks and pipeline stages."""

    def at(batch: Number, kv_tokens: Token, tokens: Token, pairs: Number, prompts: Number) -> Any:
        return law(with_prompts(step, prompts, batch), batch, kv_tokens, tokens, pairs)

    return at


def with_prompts(step: StepCoefficients, prompts: Number, decoding: Number) -> StepCoefficients:
    """The step of a server while so many prompts share its ranks and pipeline stages, beside sequences that decode."""
    lanes = prompt_lanes(prompts, step.dp, step.pp, prompts + decoding)
    shares = {"prefill_ranks": lanes, "rank_prompts": lane_prompts(prompts, lanes)}
    if step.drafts:
        drafts = tuple(replace(term, first=replace(term.first, **shares)) for term in step.drafts)
        return replace(step, **shares, drafts=drafts)
    return replace(step, **shares)


def token_times(accept_length: Number) -> TokenTime:
    """Time per token of a decode step; less than the step where it yields several (speculative decoding)."""
    if np.all(accept_length == 1):
        return step_yields_token

    def at(batch: Number, kv_tokens: Token, time: Second) -> Any:
        return speculative_s(time, accept_length)

    return at


def _laws(step: StepCoefficients, loop: Loop, floor: Number) -> tuple[StepTime, TokenTime]:
    """Step and token times of a replica, expected or at the floor."""
    return step_times(step, step_floor_s if floor else step_s), token_times(loop.accept_length)


@formula(source="fixed point of the closed loop: docs/serve.md", empirical="an iteration; its residual is tested instead")
def decoding_in_loop(step: StepCoefficients, loop: Loop, floor: Number) -> Number:
    """Sequences that decode at once in a closed loop of `loop.users` users, all of them in service.

    >>> from headway.laws.step.coefficients import LLAMA_70B_TP8
    >>> round(float(decoding_in_loop(LLAMA_70B_TP8, PROMPTS_2K, 0)), 2)
    63.31
    """
    with unrecorded():
        step_time, token_time = _laws(step, loop, floor)
        return decoding_of(step_time, loop, loop.users + 0.0 * loop.prompt + 0.0 * loop.output, token_time)


@formula(source="fixed point of the open loop: docs/serve.md", empirical="an iteration; its residual is tested instead")
def open_loop_decoding(step: StepCoefficients, loop: Loop, rate: PerSecond, floor: Number) -> Number:
    """Sequences that decode at once in one replica when Poisson arrivals come at `rate`.

    >>> from headway.laws.step.coefficients import LLAMA_70B_TP8
    >>> round(float(open_loop_decoding(LLAMA_70B_TP8, PROMPTS_2K, 2.0, 0)), 2)
    13.41
    """
    with unrecorded():
        step_time, token_time = _laws(step, loop, floor)
        return open_decoding(step_time, loop, rate, token_time)


@formula(source="Little's law on requests before their first token", empirical="an iteration; its residual is tested instead")
def open_loop_in_service(step: StepCoefficients, loop: Loop, rate: PerSecond, decoding: Number, floor: Number) -> Number:
    """Requests in service of one replica when Poisson arrivals come at `rate` and `decoding` sequences decode.

    >>> from headway.laws.step.coefficients import LLAMA_70B_TP8
    >>> round(float(open_loop_in_service(LLAMA_70B_TP8, PROMPTS_2K, 2.0, 13.25, 0)), 2)
    13.52
    """
    with unrecorded():
        step_time, token_time = _laws(step, loop, floor)
        return open_served(step_time, loop, rate, decoding, token_time)


@formula(source="fixed point of the open loop: docs/serve.md", empirical="an iteration; its residual is tested instead")
def open_loop_capacity(step: StepCoefficients, loop: Loop, floor: Number) -> PerSecond:
    """Requests per second of one replica with every seat taken by Poisson arrivals.

    >>> from headway.laws.step.coefficients import LLAMA_70B_TP8
    >>> round(float(open_loop_capacity(LLAMA_70B_TP8, PROMPTS_2K, 0)), 2)
    6.66
    """
    with unrecorded():
        step_time, token_time = _laws(step, loop, floor)
        return capacity(step_time, loop, token_time)


# -- closed loop of N users on separate pools for prefill and decode, as a fixed point, and the best split of chips between the pools 


NONE = 0.0
WHOLE_PROMPT = np.inf  # number of chunks, when a whole prompt rather than a step is in progress


@dataclass(frozen=True, slots=True, kw_only=True)
class HandedLoop:
    """Load of a closed loop on a prefill and a decode pool; every field a scalar or an array."""

    users: Number
    seats: Number  # slots of all decode workers
    prompt: Token
    output: Token
    spread: Number  # of the output length: standard deviation over mean
    prefill_workers: Number
    decode_workers: Number
    prompt_alone: Second  # prefill of one prompt on an idle prefill worker
    prompt_packed: Second  # prefill time per prompt on a busy worker: less where it prefills several at once
    transfer: Second  # of a prompt's KV cache
    synchronised_share: Number
    concurrent_prompts: Number
    request_overhead_s: Second


def handed_loop(step: StepTime, loop: HandedLoop) -> LoopTimes:
    """Times of a closed loop with disaggregated prefill and decode; `step` is one decode worker's."""
    served = np.minimum(loop.users, loop.seats) + 0.0 * loop.prompt * loop.decode_workers

    def excess(decoding: Number) -> Any:
        ttft, tpot = _handed_times(step, loop, served, decoding)
        return decoding + decoded_per_s(decoding, loop.output, tpot) * ttft - served

    decoding = increasing_root(excess, 0 * served, served, -served)
    ttft, tpot = _handed_times(step, loop, served, decoding)
    rate = loop_rate(served, ttft, tpot, loop.output)
    wait = seat_wait_s(loop.users, loop.seats, rate)
    return LoopTimes(ttft=ttft + wait, tpot=tpot, decode=tpot, rate=rate, decoding=decoding, in_service=served, seat_wait=wait, prompt=NONE)


def _handed_times(step: StepTime, loop: HandedLoop, served: Number, decoding: Number) -> tuple[Any, Any]:
    worker_batch = np.maximum(decoding_beside(decoding, served, CLOSED) / loop.decode_workers, 1)
    queuing = np.maximum(served / loop.prefill_workers, 1)
    kv_tokens = worker_batch * middle_context(loop.prompt, loop.output)
    tpot = step(worker_batch, kv_tokens, NO_WORK, NO_WORK, SINGLE)
    beside = np.minimum(loop.concurrent_prompts, others_in_service(queuing, CLOSED))
    cycle = e2e_s(loop.prompt_alone + loop.transfer, tpot, loop.output)
    queued = queued_before(others_in_service(served, CLOSED), loop.prompt_packed / loop.prefill_workers, cycle, WHOLE_PROMPT, loop.spread)
    steady = steady_s(loop.prompt_alone, beside, loop.prompt_packed, queued, 0 * tpot, NONE)
    lanes = loop.prompt_alone / loop.prompt_packed
    burst = together_s(queuing, loop.prompt_packed, np.minimum(lanes, queuing))
    ttft = looped_ttft_s(loop.request_overhead_s, loop.synchronised_share, np.maximum(burst, loop.prompt_alone), steady)
    return ttft + loop.transfer, tpot


def best_split(
    step: StepTime, loop: HandedLoop, chips: Number, prefill_chips: Number, decode_chips: Number, beyond: Callable[[Any], Any] | None = None
) -> HandedLoop:
    """Times of the split of chips between the pools that completes most requests, no chip idle where possible.

    `beyond` gives the slots of a number of decode workers.
    """
    most = int(np.max(np.floor((chips - decode_chips) / prefill_chips)))
    workers = np.arange(1, max(most, 1) + 1).reshape((-1,) + (1,) * np.ndim(chips + loop.users))
    decode = np.floor((chips - workers * prefill_chips) / decode_chips)
    idle = chips - workers * prefill_chips - decode * decode_chips
    seats = loop.seats if beyond is None else beyond(np.maximum(decode, 1))
    tried = replace(loop, prefill_workers=workers, decode_workers=np.maximum(decode, 1), seats=seats)
    fewest = np.min(np.where(decode >= 1, idle, np.inf), axis=0)
    rate = np.where((decode >= 1) & (idle <= fewest), handed_loop(step, tried).rate, -1.0)
    best = np.argmax(rate, axis=0)
    best_decode = np.take_along_axis(decode + 0 * workers, best[None, ...], axis=0)[0]
    best_seats = loop.seats if beyond is None else beyond(np.maximum(best_decode, 1))
    return replace(loop, prefill_workers=best + 1.0, decode_workers=np.maximum(best_decode, 1), seats=best_seats)

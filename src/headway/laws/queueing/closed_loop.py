"""Requests on one replica at a load: a closed loop of N users, or Poisson arrivals (an open loop), as a fixed point.

A saturated batch is a loop with one user per slot. laws/queueing/handed_loop.py has separate pools for prefill and decode.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headway.core.formula import formula
from headway.core.quantity import known
from headway.core.units import Number, PerSecond, Second, Token
from headway.laws.arithmetic import divided, relative, times, total
from headway.laws.queueing.root import increasing_root
from headway.laws.queueing.users import (
    busy_share,
    chunk_budget,
    cycle_steps,
    decoding_at_once,
    decoding_beside,
    looped_tpot_s,
    looped_ttft_s,
    open_between_s,
    others_in_service,
    packed_prompt_s,
    packed_tokens,
    prefill_share,
    prompt_added_s,
    prompt_chunks,
    prompt_load,
    prompts_beside,
    prompts_in_progress,
    prompts_met,
    prompts_per_step,
    queued_before,
    random_wait_s,
    residual_s,
    steady_between_s,
    steady_s,
    step_room,
    synchronised_with_others,
    together_between_s,
    together_s,
)
from headway.laws.serving.request import final_context, held_kv_tokens, middle_context, pipelined_s, tpot_s

NEW_TOKEN: Token = 1.0
NOTHING: Number = 1e-12  # makes 0 / 0 a zero
FULLEST: Number = 1 - 1e-9
SETTLED = 3
CAPACITY_CLOSE = 1e-8  # of a capacity: far below its error
LEAST_SERVED = 1e-9  # requests in service of a load of almost nothing


@formula(source="definition; an engine admits a sequence when its prompt and this share of its answer fit")
def reserved_context(prompt: Token, output: Token, reserve: Number) -> Token:
    """Tokens of KV cache set aside for a request; `reserve` 1: its whole answer, 1/2: the mean while it grows.

    >>> float(reserved_context(1000, 1000, 0.5))
    1500.0
    """
    return prompt + reserve * output


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
    return decoding / (np.maximum(output / NEW_TOKEN - 1, NOTHING) * tpot)


@formula(source="Little's law on the requests in service")
def loop_rate(sequences: Number, ttft: Second, tpot: Second, output: Token) -> PerSecond:
    """Requests per second of a closed loop.

    >>> loop_rate(128, 2.0, 0.010, 1001)
    10.666666666666666
    """
    return sequences / (ttft + (output / NEW_TOKEN - 1) * tpot)


@formula(source="Little's law on the requests that wait for a seat")
def seat_wait_s(users: Number, seats: Number, rate: PerSecond) -> Second:
    """Wait for KV room or a slot in the batch.

    >>> float(seat_wait_s(256, 128, 10.0)), float(seat_wait_s(64, 128, 10.0))
    (12.8, 0.0)
    """
    return np.maximum(users - seats, 0) / rate


@formula(source="definition")
def queued_ttft_s(ttft: Second, wait: Second) -> Second:
    """TTFT of a request that waits for a seat before it is served.

    >>> queued_ttft_s(0.3, 12.8)
    13.100000000000001
    """
    return ttft + wait


@formula(source="Sakasegawa 1977, Ann. Inst. Stat. Math. 29(1), equation 3: mean wait of M/D/c, half of M/M/c's")
def open_seat_wait_s(served: Number, seats: Number, rate: PerSecond) -> Second:
    """Wait for a seat of Poisson arrivals: nearly none until almost all seats are taken.

    >>> float(open_seat_wait_s(64.0, 128, 10.0)) < 1e-5, round(float(open_seat_wait_s(126.0, 128, 10.0)), 2)
    (True, 2.48)
    """
    load = np.minimum(served / seats, FULLEST)
    return load ** np.sqrt(2 * (seats + 1)) / (1 - load) / 2 / rate


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


def step_yields_token(decoding: Any, kv_tokens: Any, step: Any) -> Any:
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


def poisson(loop: Loop, rate: Any) -> Loop:
    """The load with requests that arrive at random, whatever the backlog."""
    return replace(loop, closed=OPEN, rate=rate, spread=IRREGULAR, synchronised_share=EVEN, concurrent_prompts=EVEN)


def random_arrivals(loop: Loop) -> Loop:
    """The loop with users who come one by one in no order: near the load of Poisson arrivals, without their rate."""
    return replace(loop, spread=IRREGULAR, synchronised_share=EVEN, concurrent_prompts=EVEN)


@formula(source="definition")
def in_service(users: Number, seats: Number) -> Number:
    """Requests in service of a closed loop: all users, or as many as have a seat.

    >>> float(in_service(256, 128))
    128.0
    """
    return np.minimum(users, seats)


def closed_loop(step: StepTime, loop: Loop, token: TokenTime = step_yields_token) -> LoopTimes:
    """Times of a closed loop on one replica."""
    served = in_service(loop.users, loop.seats) + 0.0 * loop.prompt + 0.0 * loop.output
    return loop_times(step, loop, served, decoding_of(step, loop, served, token), token)


def decoding_of(step: StepTime, loop: Loop, served: Any, token: TokenTime = step_yields_token) -> Any:
    """Decoding sequences of a closed loop: with them, decoding and prefilling fill the service."""

    def excess(decoding: Any) -> Any:
        ttft, tpot, *_ = request_times(step, loop, served, decoding, token)
        return decoding + decoded_per_s(decoding, loop.output, tpot) * ttft - served

    return increasing_root(excess, 0 * served, served, -served)


def loop_times(step: StepTime, loop: Loop, served: Any, decoding: Any, token: TokenTime = step_yields_token) -> LoopTimes:
    """Times of a closed loop with `served` requests in service, of which `decoding` decode."""
    ttft, tpot, decode, prompt = request_times(step, loop, served, decoding, token, whole_answer=True)
    rate = loop_rate(served, ttft, tpot, loop.output)
    wait = seat_wait_s(loop.users, loop.seats, rate)
    waited = queued_ttft_s(ttft, wait)
    return LoopTimes(ttft=waited, tpot=tpot, decode=decode, rate=rate, decoding=decoding, in_service=served, seat_wait=wait, prompt=prompt)


def open_state(step: StepTime, loop: Loop, rate: Any, token: TokenTime = step_yields_token) -> tuple[Any, Any]:
    """Requests in service, and of them those that decode, when Poisson arrivals come at `rate`; all seats decode from saturation on."""
    random, full = poisson(loop, rate), loop.seats + 0.0 * loop.prompt + 0.0 * loop.output + 0.0 * rate

    def state(decoding: Any) -> tuple[Any, Any]:
        served, tpot = decoding + LEAST_SERVED, None
        for _ in range(SETTLED):  # TTFT hardly depends on the requests in service
            ttft, tpot, *_ = request_times(step, random, served, decoding, token)
            served = np.maximum(decoding + rate * ttft, LEAST_SERVED)
        return served, tpot

    decoding = increasing_root(lambda at: decoded_per_s(at, loop.output, state(at)[1]) - rate, 0 * full, full, -rate + 0 * full)
    return np.minimum(state(decoding)[0], loop.seats), decoding


def open_loop(step: StepTime, loop: Loop, rate: Any, token: TokenTime = step_yields_token) -> LoopTimes:
    """Times of Poisson arrivals at `rate` on one replica; `loop.users` is not used, and times beyond the capacity mean nothing."""
    served, decoding = open_state(step, loop, rate, token)
    return open_times(step, poisson(loop, rate), rate, served, decoding, token)


def open_times(step: StepTime, loop: Loop, rate: Any, served: Any, decoding: Any, token: TokenTime = step_yields_token) -> LoopTimes:
    """Times of Poisson arrivals at `rate` with `served` requests in service, of which `decoding` decode."""
    ttft, tpot, decode, prompt = request_times(step, loop, served, decoding, token, whole_answer=True)
    wait = open_seat_wait_s(served, loop.seats, rate)
    waited = queued_ttft_s(ttft, wait)
    return LoopTimes(ttft=waited, tpot=tpot, decode=decode, rate=rate, decoding=decoding, in_service=served, seat_wait=wait, prompt=prompt)


def capacity(step: StepTime, loop: Loop, token: TokenTime = step_yields_token) -> Any:
    """Requests per second of one replica with every seat taken: the highest rate at which `open_loop` is steady."""
    spread = closed_loop(step, replace(random_arrivals(loop), users=loop.seats), token).rate

    def excess(rate: Any) -> Any:
        return rate - closed_loop(step, replace(poisson(loop, rate), users=loop.seats), token).rate

    return increasing_root(excess, 0 * spread, 2 * spread, -spread, CAPACITY_CLOSE)


def request_times(
    step: StepTime, loop: Loop, served: Any, decoding: Any, token: TokenTime = step_yields_token, *, whole_answer: bool = False
) -> tuple[Any, Any, Any, Any]:
    """TTFT in service, TPOT, TPOT of decode steps alone, and a prompt's time, while `decoding` of `served` requests decode.

    `whole_answer`: decode steps are averaged over the growing context of an answer, else taken at its middle.
    """
    other_users = others_in_service(served, loop.closed)
    together = synchronised_with_others(loop.synchronised_share, other_users)
    batch, busy = decoding_at_once(decoding, served, together), busy_share(served, loop.closed)
    prompts = _prompts(loop, served, other_users, batch)
    decode_batch = decoding_at_once(decoding_beside(decoding, served, loop.closed), served, together)
    contexts = (middle_context(loop.prompt, loop.output),)
    if whole_answer:
        contexts = (loop.prompt, *contexts, final_context(loop.prompt, loop.output))
    steps = [step(decode_batch, held_kv_tokens(decode_batch, context), NO_WORK, NO_WORK, SINGLE) for context in contexts]
    decode = tpot_s(*steps) if whole_answer else steps[0]
    per_token = token(decode_batch, held_kv_tokens(decode_batch, contexts[len(contexts) // 2]), decode)
    burst, steady, added = _prefilled(step, loop, prompts, served, decoding, times(batch, times(loop.chunked_prefill, busy)), decode, busy)
    ttft = looped_ttft_s(loop.request_overhead_s, together, burst[0], steady[0])
    return ttft, looped_tpot_s(per_token, together, burst[1], steady[1], loop.output), per_token, added


@dataclass(frozen=True, slots=True, kw_only=True)
class _Prompts:
    """Prompts of a replica as its steps meet them."""

    chunks: Any  # steps of one prompt
    tokens: Any  # of one prompt in one step
    pairs: Any
    steps: Any  # of the whole replica per prompt while prompts queue
    queued: Any  # steps that a prompt waits for prompts before it
    beside: Any  # other prompts prefilled with a prompt
    arriving: Any  # prompts of others that begin per step
    most: Any  # prompts for which a step has room
    packed: Any  # prompt tokens of a step while prompts queue
    other_users: Any


def _prompts(loop: Loop, served: Any, other_users: Any, batch: Any) -> _Prompts:
    chunk = chunk_budget(loop.step_budget_tokens, batch, loop.chunked_prefill)
    chunks = prompt_chunks(loop.prefill, divided(chunk, loop.lanes))
    tokens, steps = divided(loop.prefill, chunks), relative(loop.prefill, chunk)
    cycle = cycle_steps(loop.output, chunks, loop.accept_length)
    queued = times(queued_before(other_users, steps, cycle, chunks, loop.spread), loop.chunked_prefill)
    arriving, room = prompts_per_step(other_users, cycle, queued), step_room(chunk, loop.prefill, chunks)
    return _Prompts(
        chunks=chunks, tokens=tokens, pairs=divided(loop.pairs, chunks), steps=steps, queued=queued, other_users=other_users,
        beside=prompts_beside(loop.chunked_prefill, arriving, room, chunks, loop.concurrent_prompts, other_users),
        arriving=arriving, most=relative(chunk, tokens), packed=packed_tokens(loop.prefill, chunk, served),
    )  # fmt: skip


def _prefilled(
    step: StepTime, loop: Loop, p: _Prompts, served: Any, decoding: Any, beside: Any, decode: Any, busy: Any
) -> tuple[tuple[Any, Any], tuple[Any, Any], Any]:
    """TTFT and the time that other prompts add to an output, of prompts that come together and of those that come one by one; and what one
    prompt adds.
    """
    kv_tokens = held_kv_tokens(beside, middle_context(loop.prompt, loop.output))
    alone = step(beside, kv_tokens, p.tokens, p.pairs, SINGLE)
    is_open = loop.closed is OPEN
    load = prompt_load(loop.rate, p.chunks, alone) if is_open else times(p.arriving, p.chunks)
    prompts = prompts_in_progress(load, synchronised_with_others(loop.concurrent_prompts, p.other_users), p.most)
    shared = step(beside, kv_tokens, times(p.tokens, prompts), times(p.pairs, prompts), prompts)
    # While synchronised prompts are prefilled, on average half of the sequences decode.
    of_prompt = relative(p.packed, loop.prefill)
    full = step(divided(beside, HALF), divided(kv_tokens, HALF), p.packed, times(loop.pairs, of_prompt), relative(p.packed, p.tokens))
    packed = packed_prompt_s(full, loop.prefill, p.packed)
    burst = (
        together_s(served, packed, loop.prefill, p.packed),
        together_between_s(served, packed, loop.prefill, p.packed),
    )
    added = prompt_added_s(shared, decode, loop.chunked_prefill, p.chunks, prompts)
    prompt_alone = pipelined_s(alone, p.chunks, loop.pp, loop.pipeline_overlap_share)
    if is_open:
        service, share = times(full, p.steps), prefill_share(loop.rate, p.chunks, shared, prompts)
        wait = random_wait_s(residual_s(share, shared, service, decode, busy), loop.rate, service)
        met = prompts_met(load, p.most)
        beside_others = total((SINGLE, met))
        met_step = step(beside, kv_tokens, times(p.tokens, beside_others), times(p.pairs, beside_others), beside_others)
        ttft = steady_s(pipelined_s(met_step, p.chunks, loop.pp, loop.pipeline_overlap_share), EVEN, NO_TIME, wait, NO_TIME, busy)
        between = open_between_s(p.other_users, loop.output, loop.accept_length, p.chunks, prompts, loop.chunked_prefill, added)
        return burst, (ttft, between), added
    ttft = steady_s(prompt_alone, p.beside, added, times(full, p.queued), decode, busy)
    return burst, (ttft, steady_between_s(p.other_users, p.beside, p.queued, p.steps, added)), added

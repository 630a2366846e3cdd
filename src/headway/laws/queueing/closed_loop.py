"""Closed loop of N users as a fixed point: one pool, or a prefill and a decode pool.

A saturated batch is a loop with one user per slot.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headway.core.formula import formula
from headway.core.units import Number, PerSecond, Second, Token
from headway.laws.queueing.users import (
    busy_share,
    chunk_budget,
    cycle_steps,
    decoding_at_once,
    decoding_beside,
    looped_tpot_s,
    looped_ttft_s,
    others_in_loop,
    packed_prompt_s,
    packed_tokens,
    prompt_chunks,
    prompts_beside,
    prompts_per_step,
    queued_before,
    steady_between_s,
    steady_s,
    step_room,
    together_between_s,
    together_s,
)
from headway.laws.serving.replicas import handed_over_s
from headway.laws.serving.request import causal_pairs, e2e_s, held_kv_tokens, middle_context

NEW_TOKEN: Token = 1.0
NOTHING: Number = 1e-12  # makes 0 / 0 a zero


@formula(source="definition; an engine admits sequences as far as the KV that they will hold on average fits")
def seats_held(kv_room: Token, prompt: Token, output: Token, reserve: Number, limit: Number) -> Number:
    """Slots: sequences in service at once; `reserve` is the share of an output that counts (1: all, 1/2: the mean while it grows).

    >>> float(seats_held(500_000, 1000, 1000, 1.0, 256)), float(seats_held(5_000_000, 1000, 1000, 1.0, 256))
    (250.0, 256.0)
    """
    return np.maximum(np.minimum(kv_room / (prompt + reserve * output), limit), 1)


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


HALVINGS = 26  # of the interval of decoding sequences: one part in 7e7
StepTime = Callable[[Any, Any, Any, Any], Any]  # decoding sequences, their KV tokens, prompt tokens, prompt pairs -> seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """Load of a closed loop on one replica, and its engine's scheduling; every field a scalar or an array."""

    users: Number
    seats: Number
    prompt: Token
    output: Token
    spread: Number  # of the output length: standard deviation over mean
    step_budget_tokens: Token  # most prompt tokens per step
    chunked_prefill: Number  # 1: prompt chunks share steps with decodes; 0: prompts run first, in steps without decodes
    synchronised_share: Number  # share of requests whose prompts arrive all at once
    concurrent_prompts: Number  # other prompts that arrive with a prompt even when arrivals are spread
    request_overhead_s: Second  # per request: before its prompt enters a step and after its first token leaves it


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopTimes:
    """Times of a user in a closed loop, and the replica's rate."""

    ttft: Second
    tpot: Second
    rate: PerSecond
    decoding: Number
    seat_wait: Second  # part of the TTFT


def closed_loop(step: StepTime, loop: Loop) -> LoopTimes:
    """Times of a closed loop on one replica: bisection until decoding and prefilling sequences fill the service."""
    served = np.minimum(loop.users, loop.seats) + 0.0 * loop.prompt
    low, high = 0 * served, served
    for _ in range(HALVINGS):
        decoding = (low + high) / 2
        ttft, tpot = _ttft_and_tpot(step, loop, served, decoding)
        rate = decoded_per_s(decoding, loop.output, tpot)
        over = decoding + rate * ttft > served
        low, high = np.where(over, low, decoding), np.where(over, decoding, high)
    ttft, tpot = _ttft_and_tpot(step, loop, served, low)
    rate = loop_rate(served, ttft, tpot, loop.output)
    wait = seat_wait_s(loop.users, loop.seats, rate)
    return LoopTimes(ttft=ttft + wait, tpot=tpot, rate=rate, decoding=low, seat_wait=wait)


def _ttft_and_tpot(step: StepTime, loop: Loop, served: Any, decoding: Any) -> tuple[Any, Any]:
    """TTFT and TPOT of a request in service while `decoding` sequences decode."""
    pairs, batch = causal_pairs(loop.prompt), decoding_at_once(decoding, served, loop.synchronised_share)
    kv_tokens = held_kv_tokens(batch, middle_context(loop.prompt, loop.output))
    beside, beside_held = (loop.chunked_prefill * busy_share(served) * of_all for of_all in (batch, kv_tokens))
    chunk = chunk_budget(loop.step_budget_tokens, batch, loop.chunked_prefill)
    chunks, tokens = prompt_chunks(loop.prompt, chunk), packed_tokens(loop.prompt, chunk, served)
    decode_batch = decoding_at_once(decoding_beside(decoding, served), served, loop.synchronised_share)
    decode = step(decode_batch, held_kv_tokens(decode_batch, middle_context(loop.prompt, loop.output)), 0 * loop.prompt, 0 * pairs)
    prompt_s = chunks * step(beside, beside_held, loop.prompt / chunks, pairs / chunks)
    # While synchronised prompts are prefilled, on average half of the sequences decode.
    full = step(beside / 2, beside_held / 2, tokens, pairs * tokens / loop.prompt)
    packed = packed_prompt_s(full, loop.prompt, tokens)
    burst = together_s(served, packed, loop.prompt, tokens), together_between_s(served, packed, loop.prompt, tokens)
    steady = _one_by_one(loop, served, chunk, chunks, decode, prompt_s, full)
    ttft = looped_ttft_s(loop.request_overhead_s, loop.synchronised_share, burst[0], steady[0])
    return ttft, looped_tpot_s(decode, loop.synchronised_share, burst[1], steady[1], loop.output)


def _one_by_one(loop: Loop, served: Any, chunk: Any, chunks: Any, decode: Any, prompt_s: Any, full: Any) -> tuple[Any, Any]:
    """TTFT when prompts arrive spread over the loop, and the time that other prompts' prefill adds to an output."""
    other_users, cycle, prompt_steps = others_in_loop(served), cycle_steps(loop.output, chunks), loop.prompt / chunk
    added = prompt_s - chunks * decode * loop.chunked_prefill
    queued = loop.chunked_prefill * queued_before(other_users, prompt_steps, cycle, chunks, loop.spread)
    arriving, room = prompts_per_step(other_users, cycle, queued), step_room(chunk, loop.prompt, chunks)
    beside = prompts_beside(loop.chunked_prefill, arriving, room, chunks, loop.concurrent_prompts, other_users)
    ttft = steady_s(prompt_s, beside, added, queued * full, decode, busy_share(served))
    return ttft, steady_between_s(other_users, beside, queued, prompt_steps, added)


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
    low, high = 0 * served, served
    for _ in range(HALVINGS):
        decoding = (low + high) / 2
        ttft, tpot = _handed_times(step, loop, served, decoding)
        over = decoding + decoded_per_s(decoding, loop.output, tpot) * ttft > served
        low, high = np.where(over, low, decoding), np.where(over, decoding, high)
    ttft, tpot = _handed_times(step, loop, served, low)
    rate = loop_rate(served, ttft, tpot, loop.output)
    wait = seat_wait_s(loop.users, loop.seats, rate)
    return LoopTimes(ttft=ttft + wait, tpot=tpot, rate=rate, decoding=low, seat_wait=wait)


def _handed_times(step: StepTime, loop: HandedLoop, served: Any, decoding: Any) -> tuple[Any, Any]:
    worker_batch = np.maximum(decoding_beside(decoding, served) / loop.decode_workers, 1)
    queuing = np.maximum(served / loop.prefill_workers, 1)
    kv_tokens = held_kv_tokens(worker_batch, middle_context(loop.prompt, loop.output))
    tpot = step(worker_batch, kv_tokens, 0 * loop.prompt, 0 * loop.prompt)
    beside = np.minimum(loop.concurrent_prompts, others_in_loop(queuing))
    cycle = e2e_s(handed_over_s(loop.prompt_alone, loop.transfer), tpot, loop.output)
    queued = queued_before(others_in_loop(served), loop.prompt_packed / loop.prefill_workers, cycle, WHOLE_PROMPT, loop.spread)
    steady = steady_s(loop.prompt_alone, beside, loop.prompt_packed, queued, 0 * tpot, NONE)
    lanes = loop.prompt_alone / loop.prompt_packed
    burst = together_s(queuing, loop.prompt_packed, loop.prompt, loop.prompt * np.minimum(lanes, queuing))
    ttft = looped_ttft_s(loop.request_overhead_s, loop.synchronised_share, np.maximum(burst, loop.prompt_alone), steady)
    return handed_over_s(ttft, loop.transfer), tpot


def best_split(
    step: StepTime, loop: HandedLoop, chips: Any, prefill_chips: Any, decode_chips: Any, beyond: Callable[[Any], Any] | None = None
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

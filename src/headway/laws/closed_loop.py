"""The fixed point of a closed loop: how many sequences decode when N users keep a replica busy, and what each of them sees.

A saturated batch is the same loop with as many users as seats.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.laws.queue import (
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
from headway.laws.seats import decoded_per_s, loop_rate, seat_wait_s
from headway.laws.serving import causal_pairs, held_kv_tokens, middle_context
from headway.units import Number, PerSecond, Second, Token

HALVINGS = 26  # of the interval that holds the batch: one part in 7e7
StepTime = Callable[[Any, Any, Any, Any], Any]  # decoding sequences, their KV tokens, prompt tokens, prompt pairs -> seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """What a closed loop asks of one replica, and how its engine schedules; every field a scalar or an array."""

    users: Number
    seats: Number
    prompt: Token
    output: Token
    spread: Number  # of the length of an answer: standard deviation over mean
    budget: Token  # prompt tokens that one step takes at most
    mixed: Number  # 1: prompt chunks ride along with decodes; 0: prompts go first, in steps of their own
    together: Number  # share of requests whose prompts come all at once
    concurrent_prompts: Number  # other prompts that come with one even so
    overhead: Second  # of a request before its prompt is in a step and after its first token is out of it


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopTimes:
    """What a user of a closed loop sees, and what the replica does."""

    ttft: Second
    tpot: Second
    rate: PerSecond
    decoding: Number
    seat_wait: Second  # part of the TTFT


def closed_loop(step: StepTime, loop: Loop) -> LoopTimes:
    """Halve the interval of decoding sequences until those that decode and those that wait for a first token are all users in service."""
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
    """TTFT and TPOT of a request in service while so many sequences decode."""
    pairs, batch = causal_pairs(loop.prompt), decoding_at_once(decoding, served, loop.together)
    kv_tokens = held_kv_tokens(batch, middle_context(loop.prompt, loop.output))
    beside, beside_held = (loop.mixed * busy_share(served) * of_all for of_all in (batch, kv_tokens))
    chunk = chunk_budget(loop.budget, batch, loop.mixed)
    chunks, tokens = prompt_chunks(loop.prompt, chunk), packed_tokens(loop.prompt, chunk, served)
    decode_batch = decoding_at_once(decoding_beside(decoding, served), served, loop.together)
    decode = step(decode_batch, held_kv_tokens(decode_batch, middle_context(loop.prompt, loop.output)), 0 * loop.prompt, 0 * pairs)
    prompt_s = chunks * step(beside, beside_held, loop.prompt / chunks, pairs / chunks)
    # While prompts come together the decodes beside them are on average half of what they will be.
    full = step(beside / 2, beside_held / 2, tokens, pairs * tokens / loop.prompt)
    packed = packed_prompt_s(full, loop.prompt, tokens)
    burst = together_s(served, packed, loop.prompt, tokens), together_between_s(served, packed, loop.prompt, tokens)
    steady = _one_by_one(loop, served, chunk, chunks, decode, prompt_s, full)
    ttft = looped_ttft_s(loop.overhead, loop.together, burst[0], steady[0])
    return ttft, looped_tpot_s(decode, loop.together, burst[1], steady[1], loop.output)


def _one_by_one(loop: Loop, served: Any, chunk: Any, chunks: Any, decode: Any, prompt_s: Any, full: Any) -> tuple[Any, Any]:
    """TTFT of prompts that come one by one, and what they add to an answer."""
    other_users, cycle, prompt_steps = others_in_loop(served), cycle_steps(loop.output, chunks), loop.prompt / chunk
    added = prompt_s - chunks * decode * loop.mixed
    queued = loop.mixed * queued_before(other_users, prompt_steps, cycle, chunks, loop.spread)
    arriving, room = prompts_per_step(other_users, cycle, queued), step_room(chunk, loop.prompt, chunks)
    beside = prompts_beside(loop.mixed, arriving, room, chunks, loop.concurrent_prompts, other_users)
    ttft = steady_s(prompt_s, beside, added, queued * full, decode, busy_share(served))
    return ttft, steady_between_s(other_users, beside, queued, prompt_steps, added)

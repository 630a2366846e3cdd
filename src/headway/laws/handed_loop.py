"""A closed loop over two pools: prompts queue for prefill workers, answers are decoded elsewhere and undisturbed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headway.laws.closed_loop import HALVINGS, LoopTimes, StepTime
from headway.laws.pools import handed_over_s
from headway.laws.queue import (
    decoding_beside,
    looped_ttft_s,
    others_in_loop,
    queued_before,
    steady_s,
    together_s,
)
from headway.laws.seats import decoded_per_s, loop_rate, seat_wait_s
from headway.laws.serving import e2e_s, held_kv_tokens, middle_context
from headway.units import Number, Second, Token

NONE = 0.0
WHOLE_PROMPT = np.inf  # chunks: what is in progress is a prompt, not a step of one


@dataclass(frozen=True, slots=True, kw_only=True)
class HandedLoop:
    """What a closed loop asks of a prefill and a decode pool; every field a scalar or an array."""

    users: Number
    seats: Number  # of all decode workers
    prompt: Token
    output: Token
    spread: Number  # of the length of an answer: standard deviation over mean
    prefill_workers: Number
    decode_workers: Number
    prompt_alone: Second  # one prompt on an idle prefill worker
    prompt_packed: Second  # its share of a busy one: less where a worker prefills several at once
    transfer: Second  # of a prompt's KV cache
    together: Number
    concurrent_prompts: Number
    overhead: Second


def handed_loop(step: StepTime, loop: HandedLoop) -> LoopTimes:
    """The fixed point of `closed_loop` with prefill and decode apart; `step` is one decode worker's."""
    served = np.minimum(loop.users, loop.seats) + 0.0 * loop.prompt * loop.decode_workers
    low, high = 0 * served, served
    for _ in range(HALVINGS):
        decoding = (low + high) / 2
        ttft, tpot = _ttft_and_tpot(step, loop, served, decoding)
        over = decoding + decoded_per_s(decoding, loop.output, tpot) * ttft > served
        low, high = np.where(over, low, decoding), np.where(over, decoding, high)
    ttft, tpot = _ttft_and_tpot(step, loop, served, low)
    rate = loop_rate(served, ttft, tpot, loop.output)
    wait = seat_wait_s(loop.users, loop.seats, rate)
    return LoopTimes(ttft=ttft + wait, tpot=tpot, rate=rate, decoding=low, seat_wait=wait)


def _ttft_and_tpot(step: StepTime, loop: HandedLoop, served: Any, decoding: Any) -> tuple[Any, Any]:
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
    ttft = looped_ttft_s(loop.overhead, loop.together, np.maximum(burst, loop.prompt_alone), steady)
    return handed_over_s(ttft, loop.transfer), tpot


def best_split(
    step: StepTime, loop: HandedLoop, chips: Any, prefill_chips: Any, decode_chips: Any, beyond: Callable[[Any], Any] | None = None
) -> HandedLoop:
    """The loop with its chips shared out between the pools such that most requests finish, no chip idle where that can be.

    `beyond` gives the seats of so many decode workers.
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

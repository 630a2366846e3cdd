"""Closed loop of N users on separate pools for prefill and decode, as a fixed point, and the best split of chips between the pools."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headway.core.units import Number, Second, Token
from headway.laws.queueing.closed_loop import decoded_per_s, loop_rate, seat_wait_s
from headway.laws.queueing.loop import CLOSED, NO_WORK, SINGLE, LoopTimes, StepTime
from headway.laws.queueing.root import increasing_root
from headway.laws.queueing.users import (
    decoding_beside,
    looped_ttft_s,
    others_in_service,
    queued_before,
    steady_s,
    together_s,
)
from headway.laws.serving.request import e2e_s, middle_context

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

    def excess(decoding: Any) -> Any:
        ttft, tpot = _handed_times(step, loop, served, decoding)
        return decoding + decoded_per_s(decoding, loop.output, tpot) * ttft - served

    decoding = increasing_root(excess, 0 * served, served, -served)
    ttft, tpot = _handed_times(step, loop, served, decoding)
    rate = loop_rate(served, ttft, tpot, loop.output)
    wait = seat_wait_s(loop.users, loop.seats, rate)
    return LoopTimes(ttft=ttft + wait, tpot=tpot, decode=tpot, rate=rate, decoding=decoding, in_service=served, seat_wait=wait, prompt=NONE)


def _handed_times(step: StepTime, loop: HandedLoop, served: Any, decoding: Any) -> tuple[Any, Any]:
    worker_batch = np.maximum(decoding_beside(decoding, served, CLOSED) / loop.decode_workers, 1)
    queuing = np.maximum(served / loop.prefill_workers, 1)
    kv_tokens = worker_batch * middle_context(loop.prompt, loop.output)
    tpot = step(worker_batch, kv_tokens, NO_WORK, NO_WORK, SINGLE)
    beside = np.minimum(loop.concurrent_prompts, others_in_service(queuing, CLOSED))
    cycle = e2e_s(loop.prompt_alone + loop.transfer, tpot, loop.output)
    queued = queued_before(others_in_service(served, CLOSED), loop.prompt_packed / loop.prefill_workers, cycle, WHOLE_PROMPT, loop.spread)
    steady = steady_s(loop.prompt_alone, beside, loop.prompt_packed, queued, 0 * tpot, NONE)
    lanes = loop.prompt_alone / loop.prompt_packed
    burst = together_s(queuing, loop.prompt_packed, loop.prompt, loop.prompt * np.minimum(lanes, queuing))
    ttft = looped_ttft_s(loop.request_overhead_s, loop.synchronised_share, np.maximum(burst, loop.prompt_alone), steady)
    return ttft + loop.transfer, tpot


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

"""Load of one replica, and the times of a request at it: the records of a closed loop of N users and of Poisson arrivals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from headway.core.quantity import known
from headway.core.units import Number, PerSecond, Second, Token

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


def poisson(loop: Loop, rate: Any) -> Loop:
    """The load with requests that arrive at random, whatever the backlog."""
    return replace(loop, closed=OPEN, rate=rate, spread=IRREGULAR, synchronised_share=EVEN, concurrent_prompts=EVEN)


def random_arrivals(loop: Loop) -> Loop:
    """The loop with users who come one by one in no order: near the load of Poisson arrivals, without their rate."""
    return replace(loop, spread=IRREGULAR, synchronised_share=EVEN, concurrent_prompts=EVEN)

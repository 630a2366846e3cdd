"""Loops on a replica given by its step coefficients: step and token times as functions of the load, and the fixed points as numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from headway.core.formula import formula
from headway.core.trace import unrecorded
from headway.core.units import Number, PerSecond
from headway.laws.queueing.closed_loop import capacity, decoding_of, open_decoding, open_served
from headway.laws.queueing.loop import Loop, StepTime, TokenTime, step_yields_token
from headway.laws.serving.request import lane_prompts, prompt_lanes, speculative_s
from headway.laws.step.coefficients import StepCoefficients
from headway.laws.step.step import compute_floor_s, compute_s, step_floor_s, step_s

Law = Callable[..., Any]  # step_s or step_floor_s

# 64 users, or arrivals, of prompts of 2,048 and answers of 512 tokens: the load of the doctests below, on Llama-3.1-70B on 8 H100 SXM.
PROMPTS_2K = Loop(
    users=64.0, seats=256.0, prompt=2048.0, prefill=2048.0, pairs=2048.0 * 2048.0 / 2, output=512.0, spread=0.0, step_budget_tokens=8192.0,
    chunked_prefill=1.0, synchronised_share=0.0, concurrent_prompts=0.0, request_overhead_s=0.0,
)  # fmt: skip


def step_times(step: StepCoefficients, law: Law) -> StepTime:
    """The step law of a server, for steps in which `prompts` prompts share its ranks and pipeline stages."""

    def at(batch: Any, kv_tokens: Any, tokens: Any, pairs: Any, prompts: Any) -> Any:
        return law(with_prompts(step, prompts), batch, kv_tokens, tokens, pairs)

    return at


def with_prompts(step: StepCoefficients, prompts: Any) -> StepCoefficients:
    """The step of a server while so many prompts share its ranks and pipeline stages."""
    lanes = prompt_lanes(prompts, step.dp, step.pp)
    return replace(step, prefill_ranks=lanes, rank_prompts=lane_prompts(prompts, lanes))


def token_times(step: StepCoefficients, law: Law, accept_length: Any, draft_cost: Any) -> TokenTime:
    """Time per token of a decode step; less than the step where it yields several (speculative decoding)."""
    if np.all(accept_length == 1) and not np.any(draft_cost):
        return step_yields_token
    arithmetic = compute_floor_s if law is step_floor_s else compute_s

    def at(batch: Any, kv_tokens: Any, time: Any) -> Any:
        return speculative_s(time, arithmetic(step, batch, kv_tokens), accept_length, draft_cost)

    return at


def _laws(step: StepCoefficients, loop: Loop, draft_cost: Any, floor: Any) -> tuple[StepTime, TokenTime]:
    """Step and token times of a replica, expected or at the floor."""
    law = step_floor_s if floor else step_s
    return step_times(step, law), token_times(step, law, loop.accept_length, draft_cost)


@formula(source="fixed point of the closed loop: docs/serve.md", empirical="an iteration; its residual is tested instead")
def decoding_in_loop(step: StepCoefficients, loop: Loop, draft_cost: Number, floor: Number) -> Number:
    """Sequences that decode at once in a closed loop of `loop.users` users, all of them in service.

    >>> from headway.laws.step.coefficients import LLAMA_70B_TP8
    >>> round(float(decoding_in_loop(LLAMA_70B_TP8, PROMPTS_2K, 0, 0)), 2)
    63.31
    """
    with unrecorded():
        step_time, token_time = _laws(step, loop, draft_cost, floor)
        return decoding_of(step_time, loop, loop.users + 0.0 * loop.prompt + 0.0 * loop.output, token_time)


@formula(source="fixed point of the open loop: docs/serve.md", empirical="an iteration; its residual is tested instead")
def open_loop_decoding(step: StepCoefficients, loop: Loop, rate: PerSecond, draft_cost: Number, floor: Number) -> Number:
    """Sequences that decode at once in one replica when Poisson arrivals come at `rate`.

    >>> from headway.laws.step.coefficients import LLAMA_70B_TP8
    >>> round(float(open_loop_decoding(LLAMA_70B_TP8, PROMPTS_2K, 2.0, 0, 0)), 2)
    13.42
    """
    with unrecorded():
        step_time, token_time = _laws(step, loop, draft_cost, floor)
        return open_decoding(step_time, loop, rate, token_time)


@formula(source="Little's law on requests before their first token", empirical="an iteration; its residual is tested instead")
def open_loop_in_service(
    step: StepCoefficients, loop: Loop, rate: PerSecond, decoding: Number, draft_cost: Number, floor: Number
) -> Number:
    """Requests in service of one replica when Poisson arrivals come at `rate` and `decoding` sequences decode.

    >>> from headway.laws.step.coefficients import LLAMA_70B_TP8
    >>> round(float(open_loop_in_service(LLAMA_70B_TP8, PROMPTS_2K, 2.0, 13.25, 0, 0)), 2)
    13.51
    """
    with unrecorded():
        step_time, token_time = _laws(step, loop, draft_cost, floor)
        return open_served(step_time, loop, rate, decoding, token_time)


@formula(source="fixed point of the open loop: docs/serve.md", empirical="an iteration; its residual is tested instead")
def open_loop_capacity(step: StepCoefficients, loop: Loop, draft_cost: Number, floor: Number) -> PerSecond:
    """Requests per second of one replica with every seat taken by Poisson arrivals.

    >>> from headway.laws.step.coefficients import LLAMA_70B_TP8
    >>> round(float(open_loop_capacity(LLAMA_70B_TP8, PROMPTS_2K, 0, 0)), 2)
    6.62
    """
    with unrecorded():
        step_time, token_time = _laws(step, loop, draft_cost, floor)
        return capacity(step_time, loop, token_time)

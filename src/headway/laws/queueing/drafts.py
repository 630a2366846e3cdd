"""Closed loops with drafts beside those without: their times per token, and the load from which drafts stop paying."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from headway.core.formula import formula
from headway.core.trace import unrecorded
from headway.core.units import Number
from headway.laws.queueing.closed_loop import Loop, decoding_of, loop_times, step_times, token_times
from headway.laws.step.coefficients import StepCoefficients
from headway.laws.step.step import step_s

GRID, ROUNDS = 33, 3  # loads of each round of a search, and rounds


@formula(source="definition: TPOT of a closed loop with drafts and without", empirical="a search; TPOT on both sides is tested instead")
def paying_users(drafting: StepCoefficients, plain: StepCoefficients, loop: Loop) -> Number:
    """Users of a replica from which on drafts save no time, of those that have seats; infinite where they save time of all.

    >>> from headway.laws.queueing.closed_loop import PROMPTS_2K
    >>> from headway.laws.step.coefficients import LLAMA_70B_TP8
    >>> verifying = replace(LLAMA_70B_TP8, queries=6, sampled=6)  # by looking up earlier text, which drafts for nothing
    >>> float(paying_users(verifying, LLAMA_70B_TP8, replace(PROMPTS_2K, accept_length=1.5)))
    38.0
    """
    with unrecorded():
        return _paying_users(drafting, plain, loop)


def _paying_users(drafting: StepCoefficients, plain: StepCoefficients, loop: Loop) -> Any:
    """The search: rounds over loads in equal ratios, each between the two loads where the one before found the end."""
    seats = np.maximum(np.floor(loop.seats + 0.0 * loop.prompt + 0.0 * loop.output), 1.0)
    shares, low, high = np.linspace(0, 1, GRID).reshape(-1, *(1,) * np.ndim(seats)), 1.0 + 0.0 * seats, seats
    always = loop_tpot(drafting, loop, seats) < loop_tpot(plain, replace(loop, accept_length=1), seats)
    for _ in range(0 if always.all() else ROUNDS):
        users = low * (high / low) ** shares
        saves = loop_tpot(drafting, loop, users) < loop_tpot(plain, replace(loop, accept_length=1), users)
        last = GRID - 1 - np.argmax(saves[::-1], axis=0)  # place of the most users whose time is saved
        low, high = (np.take_along_axis(users, np.minimum(last + more, GRID - 1)[np.newaxis], axis=0)[0] for more in (0, 1))
        low, high = np.where(saves.any(axis=0), low, 1.0), np.where(saves.any(axis=0), high, 1.0)
    return np.where(always, np.inf, np.ceil(high))


def loop_tpot(step: StepCoefficients, loop: Loop, users: Number) -> Any:
    """Time per output token of so many users, all of them in service."""
    step_time, token_time, at = step_times(step, step_s), token_times(loop.accept_length), replace(loop, users=users)
    served = users + 0.0 * loop.prompt + 0.0 * loop.output
    return loop_times(step_time, at, served, decoding_of(step_time, at, served, token_time), token_time).tpot

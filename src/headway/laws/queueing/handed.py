"""Prefill and decode replicas of their own, under arrivals that do not wait for answers or users who do: waits, and what decodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.core.formula import formula
from headway.core.quantity import known
from headway.core.trace import unrecorded
from headway.core.units import ONE_TOKEN, Number, PerSecond, Second, Token
from headway.laws.queueing.closed_loop import (
    NO_TIME,
    NO_WORK,
    SINGLE,
    decoded_per_s,
    open_seat_wait_s,
    step_times,
    token_times,
)
from headway.laws.queueing.root import increasing_root
from headway.laws.queueing.users import looped_ttft_s, others_in_service, together_s
from headway.laws.serving.request import middle_context
from headway.laws.step.coefficients import StepCoefficients
from headway.laws.step.step import step_s


@formula(source="Little's law on the answers in progress, each a token per step", empirical="an iteration; its residual is tested instead")
def handed_decoding(step: StepCoefficients, prompt: Token, output: Token, accept_length: Number, rate: PerSecond, seats: Number) -> Number:
    """Sequences that decode at once where prefilled requests come at `rate`; all seats where these do not keep up.

    >>> from headway.laws.step.coefficients import LLAMA_70B_TP8
    >>> round(float(handed_decoding(LLAMA_70B_TP8, 2000, 200, 1, 5.0, 256)), 2)
    10.22
    """
    with unrecorded():
        time, token = step_times(step, step_s), token_times(accept_length)

        def excess(decoding: Number) -> Any:
            kv_tokens = decoding * middle_context(prompt, output)
            step_time = time(decoding, kv_tokens, NO_WORK, NO_WORK, SINGLE)
            return decoding - rate * (output / ONE_TOKEN - 1) * token(decoding, kv_tokens, step_time)

        return increasing_root(excess, 0.0 * (rate + seats), 0.0 * rate + seats, -1.0)


@formula(source="PASTA: half a step is left on average; Sakasegawa 1977 for the chance that all replicas are at work")
def prompt_wait_s(rate: PerSecond, request: Second, lanes: Number, replicas: Number) -> Second:
    """Wait of a prompt for a prefill replica, whose `lanes` ranks and stages step together; `request`: replica time of a prompt.

    A lane that is free waits for the step of the others, so that many lanes do not serve as so many workers would.

    >>> round(float(prompt_wait_s(5.0, 0.1, 1, 1)), 3), round(float(prompt_wait_s(5.0, 0.1, 4, 1)), 3)
    (0.05, 0.2)
    """
    step = request * lanes
    queued = open_seat_wait_s(rate * step, replicas * lanes, rate, SINGLE)
    gated = np.minimum(rate * step / replicas, 1) ** np.sqrt(2 * (replicas + 1)) * step / 2
    return np.where(lanes > 1, np.maximum(gated, queued), queued)


@dataclass(frozen=True, slots=True, kw_only=True)
class PooledUsers:
    """A prefill pool and a decode pool, and the users who wait for their answers; every field a scalar or an array."""

    users: Number  # over both pools; none where requests come at a rate
    replicas: Number  # that decode
    seats: Number  # of one of them
    workers: Number  # prefill replicas
    lanes: Number  # prompts at once in one of them
    prompt: Second  # replica time of a prompt, s
    alone: Second  # time to the first token without others, without the transfer of the KV cache, s
    transfer: Second  # s
    beginning: Number  # share of a user's requests that come with those of all others, at a run's start


CLOSED = known(1.0, "users who wait", "", "constant", "a user meets the others, not itself")
NO_RATE = known(1e-30, "no rate", "1/s", "constant", "a user alone waits for nobody")
BEYOND = 1e9  # users that stand for more than a pool can carry


def arrival_ttft_s(loop: PooledUsers, rate: PerSecond, decoding: Number, met: PerSecond) -> Second:
    """TTFT of requests at a rate without the transfer: the waits for a prefill worker and for a seat to decode.

    `decoding`: sequences that decode in a replica; `met`: the rate of others that a prompt meets.
    """
    prompts = prompt_wait_s(met, loop.prompt, loop.lanes, loop.workers)
    return loop.alone + prompts + open_seat_wait_s(decoding * loop.replicas, loop.seats * loop.replicas, rate, SINGLE)


def pooled_ttft_s(loop: PooledUsers, rate: PerSecond, decoding: Number) -> Second:
    """TTFT of users who wait for their answers, without the transfer: a user meets the others, and all of them begin at once."""
    met = np.maximum(rate * others_in_service(loop.users, CLOSED) / loop.users, NO_RATE)
    burst = np.maximum(together_s(loop.users / loop.workers, loop.prompt, loop.lanes), loop.alone)
    return looped_ttft_s(NO_TIME, loop.beginning, burst, arrival_ttft_s(loop, rate, decoding, met))


@formula(source="Little's law on users who wait for their answers", empirical="an iteration; its residual is tested instead")
def pooled_decoding(step: StepCoefficients, prompt: Token, output: Token, accept_length: Number, loop: PooledUsers) -> Number:
    """Sequences that decode at once in a replica while the users wait for their answers; fewer where prompts do not keep up.

    >>> from headway.laws.step.coefficients import LLAMA_70B_TP8
    >>> pools = dict(users=32, replicas=1, seats=256, workers=1, prompt=0.1, alone=0.1, transfer=0.01, beginning=0.1)
    >>> [round(float(pooled_decoding(LLAMA_70B_TP8, 2000, 200, 1, PooledUsers(lanes=lanes, **pools))), 2) for lanes in (1, 4)]
    [21.24, 21.28]
    """
    with unrecorded():
        time, token = step_times(step, step_s), token_times(accept_length)

        def excess(decoding: Number) -> Any:
            working = np.maximum(decoding, 1)  # a user's own answer is always among those of its step
            kv_tokens = working * middle_context(prompt, output)
            tpot = token(working, kv_tokens, time(working, kv_tokens, NO_WORK, NO_WORK, SINGLE))
            rate = decoded_per_s(decoding, output, tpot) * loop.replicas
            cycle = pooled_ttft_s(loop, rate, decoding) + loop.transfer + (output / ONE_TOKEN - 1) * tpot
            return np.where(rate * loop.prompt < loop.workers, rate * cycle, BEYOND) - loop.users

        most = np.minimum(loop.seats, loop.users / loop.replicas) + 0.0 * prompt * output * loop.prompt
        return increasing_root(excess, 0.0 * most, most, 0.0 * most - loop.users)


@formula(source="Little's law: users who are not decoding wait for a first token or have just asked")
def ttft_of_waiting_s(users: Number, rate: PerSecond, tpot: Second, output: Token) -> Second:
    """Mean TTFT of users who wait for their answers, from the rate of these; where a pool is full the wait for it is all of the rest.

    >>> ttft_of_waiting_s(100, 10.0, 0.01, 501)
    5.0
    """
    return users / rate - (output / ONE_TOKEN - 1) * tpot

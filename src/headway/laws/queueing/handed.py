"""Prefill and decode replicas under arrivals that do not wait for answers: waits of prompts, and the sequences that decode."""

from __future__ import annotations

from typing import Any

import numpy as np

from headway.core.formula import formula
from headway.core.trace import unrecorded
from headway.core.units import ONE_TOKEN, Number, PerSecond, Second, Token
from headway.laws.queueing.closed_loop import NO_WORK, SINGLE, open_seat_wait_s, step_times, token_times
from headway.laws.queueing.root import increasing_root
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

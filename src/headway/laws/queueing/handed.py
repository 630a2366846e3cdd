"""A replica that only decodes: prompts reach it from a pool of their own, at a rate that does not wait for its answers."""

from __future__ import annotations

from typing import Any

from headway.core.formula import formula
from headway.core.trace import unrecorded
from headway.core.units import ONE_TOKEN, Number, PerSecond, Token
from headway.laws.queueing.closed_loop import NO_WORK, SINGLE, step_times, token_times
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

"""What a token costs in machine time and in dollars, by batch."""

from __future__ import annotations

import numpy as np

from headway.formula import formula
from headway.units import Number, Second, SecondPerToken, Token


@formula(source="step time over tokens: t / B")
def machine_s_per_token(step_s: Second, tokens: Token) -> SecondPerToken:
    """A token's share of the step: compute and KV stay, weights fall as 1/B.

    >>> machine_s_per_token(20e-3, 2000)
    1e-05
    """
    return step_s / tokens


@formula(source="limit of t / B as B grows: max(c, k)")
def machine_s_per_token_floor(compute_s_per_token: SecondPerToken, kv_s_per_token: SecondPerToken) -> SecondPerToken:
    """Compute and KV reads never amortise, so that no batch makes a token cheaper than the larger.

    >>> float(machine_s_per_token_floor(2.28e-7, 5.0e-7))  # DeepSeek-V3 at 8k
    5e-07
    """
    return np.maximum(compute_s_per_token, kv_s_per_token)


@formula(source="Pope 2026 lecture, claim FM-05: compute and KV never amortise, so that nothing is saved below them")
def slow_tier_saving(machine_s_per_token: SecondPerToken, floor_s_per_token: SecondPerToken) -> Number:
    """The most that a slower tier saves of a token's machine time, however large its batch (DeepSeek-V3 at half its balanced batch).

    >>> float(slow_tier_saving(4.568e-7, 2.284e-7))
    0.5
    """
    return np.maximum(1 - floor_s_per_token / machine_s_per_token, 0)

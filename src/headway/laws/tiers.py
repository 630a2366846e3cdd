"""Fast, standard and slow tiers of one model on one machine: what a price multiple and a speed multiple say about the batches behind them.

A token's price follows its machine time, step over batch; a tier is a batch. Speed is steps per second for one user.
"""

from __future__ import annotations

import numpy as np

from headway.formula import formula
from headway.units import Number, SecondPerToken, Token

CLAIMS = "Pope 2026 lecture, claims "


@formula(source=CLAIMS + "FM-02: price is as t / B, speed as 1 / t, so that t cancels, whatever t(B) is")
def tier_batch_ratio(price_ratio: Number, speed_ratio: Number) -> Number:
    """Batch of the slower tier over that of the faster (6 times the price for 2.5 times the speed).

    >>> tier_batch_ratio(6, 2.5)
    15.0
    """
    return price_ratio * speed_ratio


@formula(source=CLAIMS + "FM-03: the fast tier is on the latency floor, the standard one bound by compute, KV left out")
def standard_tier_batch(balanced_tokens: Token, speed_ratio: Number) -> Token:
    """Batch of the standard tier: its step is the floor's times the speed ratio, and a compute-bound step grows with the batch.

    >>> standard_tier_batch(5441, 2.5)  # DeepSeek-V3, ratio 300
    13602.5
    """
    return balanced_tokens * speed_ratio


@formula(source=CLAIMS + "FM-03: the fast tier is on the latency floor, the standard one bound by compute, KV left out")
def fast_tier_batch(balanced_tokens: Token, price_ratio: Number) -> Token:
    """Batch of the fast tier: on the floor a token costs 1 / B, and the standard tier pays what the balanced batch pays.

    >>> round(fast_tier_batch(5441, 6))  # DeepSeek-V3, ratio 300
    907
    """
    return balanced_tokens / price_ratio


@formula(source=CLAIMS + "FM-05: compute and KV never amortise, so that nothing is saved below them")
def slow_tier_saving(machine_s_per_token: SecondPerToken, floor_s_per_token: SecondPerToken) -> Number:
    """The most that a slower tier saves of a token's machine time, however large its batch (DeepSeek-V3 at half its balanced batch).

    >>> float(slow_tier_saving(4.568e-7, 2.284e-7))
    0.5
    """
    return np.maximum(1 - floor_s_per_token / machine_s_per_token, 0)

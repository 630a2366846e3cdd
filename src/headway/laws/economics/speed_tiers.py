"""Fast and slow tiers: cost of speed on one kind of machine, where the number of sequences that share it sets both.

Multiples are over a standard tier: speed is a user's tokens per second, price the cost of equal work.
"""

from __future__ import annotations

import numpy as np

from headway.core.formula import formula
from headway.core.units import Number

CLAIM = "Pope 2026 lecture, claim "


@formula(source=CLAIM + "FM-02: with price in proportion to t / B, B_slow / B_fast = price ratio x speed ratio, for any t(B)")
def batch_ratio_identity(price: Number, speed: Number) -> Number:
    """Ratio of batches that a price multiple and a speed multiple imply together.

    >>> batch_ratio_identity(6.0, 2.5)  # Claude Opus 4.6 fast
    15.0
    """
    return price * speed


@formula(source="straight line between two rungs in the logarithms of both multiples")
def between_rungs(at: Number, slower_x: Number, faster_x: Number, slower_y: Number, faster_y: Number) -> Number:
    """Multiple between two tiers by a power law; batches and layouts are discrete, but near tiers are close to powers.

    >>> round(float(between_rungs(2.5, 1.91, 2.57, 1.25, 2.38)), 2)
    2.24
    """
    return slower_y * np.exp(np.log(faster_y / slower_y) * np.log(at / slower_x) / np.log(faster_x / slower_x))


@formula(source="elasticity between two rungs: d ln(speed) / d ln(price)")
def speed_bought(slower_speed: Number, speed: Number, slower_price: Number, price: Number) -> Number:
    """Per cent of speed per per cent of price from the next slower tier: near 0 on the latency floor.

    >>> round(float(speed_bought(1.0, 2.5, 1.0, 6.0)), 2)
    0.51
    """
    return np.log(speed / slower_speed) / np.log(price / slower_price)

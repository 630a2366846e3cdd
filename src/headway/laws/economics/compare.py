"""Two machines side by side: ratios of facts as they are, per dollar and per watt, and chips at equal cost or power."""

from __future__ import annotations

from headway.core.formula import formula
from headway.core.units import Number, Same, UsdPerSecond, Watt


@formula(source="definition")
def ratio_per_usd(value: Same, reference: Same, price: UsdPerSecond, reference_price: UsdPerSecond) -> Number:
    """Ratio of a fact to a reference at equal cost: above 1, a dollar buys more of it (memory bandwidth, B200 at $3 to H100 at $2).

    >>> round(ratio_per_usd(8e12, 3.35e12, 3 / 3600, 2 / 3600), 3)
    1.592
    """
    return (value / reference) / (price / reference_price)


@formula(source="definition")
def ratio_per_watt(value: Same, reference: Same, power: Watt, reference_power: Watt) -> Number:
    """Ratio of a fact to a reference at equal power (dense bf16 peak, B200 of 1000 W to H100 of 700 W).

    >>> round(ratio_per_watt(2250e12, 989.4e12, 1000, 700), 3)
    1.592
    """
    return (value / reference) / (power / reference_power)


@formula(source="definition: parts of a chip are not sold, yet a ratio at equal cost needs them")
def chips_at_cost(budget: UsdPerSecond, price: UsdPerSecond) -> Number:
    """Chips that a budget per hour rents ($100 an hour at $2.5 a chip).

    >>> round(chips_at_cost(100 / 3600, 2.5 / 3600), 6)
    40.0
    """
    return budget / price


@formula(source="definition")
def chips_at_power(budget: Watt, power: Watt) -> Number:
    """Chips that a power budget feeds (a rack of 120 kW, H100 of 700 W, chips alone).

    >>> round(chips_at_power(120e3, 700), 1)
    171.4
    """
    return budget / power

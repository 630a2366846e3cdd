"""Two machines side by side: ratios of facts as they are, per dollar and per watt, and chips at equal cost or power."""

from __future__ import annotations

from headway.core.formula import formula
from headway.core.units import Number, UsdPerSecond, Watt


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

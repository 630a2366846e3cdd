"""A number beside another: how many times as much, and scaled."""

from __future__ import annotations

from headway.formula import formula
from headway.units import Number


@formula(source="quotient", empirical="any unit over the same unit: a pure number")
def relative(value: Number, reference: Number) -> Number:
    """How many times `reference` a value is.

    >>> relative(12686, 5345)  # DeepSeek's batch over its balanced batch
    2.3734331150608043
    """
    return value / reference


@formula(source="product", empirical="keeps the unit of what it scales")
def scaled(value: Number, factor: Number) -> Number:
    """A value made larger or smaller, to see what follows.

    >>> scaled(2400, 2)
    4800
    """
    return value * factor

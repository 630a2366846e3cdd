"""A number beside another: how many times as much, and scaled."""

from __future__ import annotations

from headway.formula import formula
from headway.units import Number, Same


@formula(source="quotient")
def relative(value: Same, reference: Same) -> Number:
    """How many times `reference` a value is.

    >>> relative(12686, 5345)  # DeepSeek's batch over its balanced batch
    2.3734331150608043
    """
    return value / reference


@formula(source="product")
def scaled(value: Same, factor: Number) -> Same:
    """A value made larger or smaller, to see what follows.

    >>> scaled(2400, 2)
    4800
    """
    return value * factor

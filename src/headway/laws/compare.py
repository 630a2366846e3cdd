"""A number beside another of its kind."""

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

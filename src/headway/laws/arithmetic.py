"""Sums over layers and parts, and a number beside another of its kind: adding up and comparing as laws, so that both can be explained."""

from __future__ import annotations

from headway.core.formula import formula
from headway.core.units import Number, Same


@formula(source="definition")
def sum_over_blocks(counts: tuple[Number, ...], values: tuple[Same, ...]) -> Same:
    """A quantity per layer, summed over all layers (equal ones grouped).

    >>> sum_over_blocks((3, 58), (583483392, 11507286528))  # parameters of DeepSeek-V3: 3 dense and 58 MoE layers
    669173068800
    """
    return sum((count * value for count, value in zip(counts[1:], values[1:], strict=True)), start=counts[0] * values[0])


@formula(source="definition")
def total(values: tuple[Same, ...]) -> Same:
    """A whole made of several parts: attention and its indexer, a recurrence and its convolution, caches of one layer.

    >>> total((187105280, 13959168))  # parameters of DeepSeek-V3.2's attention and its indexer, one layer
    201064448
    """
    return sum(values[1:], start=values[0])


@formula(source="definition")
def times(value: Same, factor: Number) -> Same:
    """A count of equal things.

    >>> times(2.0, 61)
    122.0
    """
    return value * factor


@formula(source="definition: an even split")
def divided(value: Same, parts: Number) -> Same:
    """One share of a quantity that so many chips, layers or ranks have alike.

    >>> divided(926679040, 8)  # DeepSeek-V3's embedding over 8 chips
    115834880.0
    """
    return value / parts


@formula(source="quotient")
def relative(value: Same, reference: Same) -> Number:
    """How many times `reference` a value is.

    >>> relative(12686, 5345)  # DeepSeek's batch over its balanced batch
    2.3734331150608043
    """
    return value / reference

"""Sums over layers and parts, and ratios of a value to a reference: adding and comparing as laws, so that both can be explained."""

from __future__ import annotations

from headway.core.formula import formula
from headway.core.units import Number, Same


@formula(source="definition")
def sum_over_blocks(counts: tuple[Number, ...], values: tuple[Same, ...]) -> Same:
    """Sum of a per-layer quantity over all layers, equal layers grouped.

    >>> sum_over_blocks((3, 58), (583483392, 11507286528))  # parameters of DeepSeek-V3: 3 dense and 58 MoE layers
    669173068800
    """
    return sum((count * value for count, value in zip(counts[1:], values[1:], strict=True)), start=counts[0] * values[0])


@formula(source="definition")
def total(values: tuple[Same, ...]) -> Same:
    """Sum of parts: attention and its indexer, a recurrence and its convolution, caches of one layer.

    >>> total((187105280, 13959168))  # parameters of DeepSeek-V3.2's attention and its indexer, one layer
    201064448
    """
    return sum(values[1:], start=values[0])


@formula(source="definition")
def times(value: Same, factor: Number) -> Same:
    """Product of a value and a count of equal things.

    >>> times(2.0, 61)
    122.0
    """
    return value * factor


@formula(source="definition: an even split")
def divided(value: Same, parts: Number) -> Same:
    """Share of a quantity per chip, layer or rank, split evenly.

    >>> divided(926679040, 8)  # DeepSeek-V3's embedding over 8 chips
    115834880.0
    """
    return value / parts


@formula(source="quotient")
def relative(value: Same, reference: Same) -> Number:
    """Ratio of a value to a reference.

    >>> relative(12686, 5345)  # DeepSeek's batch over its balanced batch
    2.3734331150608043
    """
    return value / reference

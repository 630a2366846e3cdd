"""Plain arithmetic as laws: a sum over layers, and the product and quotient that `headway law` offers for back-of-envelope questions."""

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
def times(value: Same, factor: Number) -> Same:
    """Product of a fact and a count of equal things: the peak of a pod, the memory of a slice.

    >>> times(459e12, 8960) / 1e18  # bf16 peak of a TPU v5p pod, EFLOP/s
    4.11264
    """
    return value * factor


@formula(source="definition: an even split")
def divided(value: Same, parts: Number) -> Same:
    """Share of a quantity per chip, layer or rank, split evenly.

    >>> divided(926679040, 8)  # DeepSeek-V3's embedding over 8 chips
    115834880.0
    """
    return value / parts

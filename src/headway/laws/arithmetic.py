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

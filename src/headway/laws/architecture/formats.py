"""Bytes of number formats: by block, by group of weights that share a scale, and as a mean over the tensors of a file."""

from __future__ import annotations

from headway.core.formula import formula
from headway.core.units import Byte, Number

BIT: Byte = 0.125


@formula(source="definition: a block of weights is stored together")
def block_bytes(block: Byte, weights: Number) -> Byte:
    """Bytes per weight of a block format, scales included.

    >>> block_bytes(144.0, 256)  # llama.cpp's q4_K
    0.5625
    """
    return block / weights


@formula(source="definition: weights of `bits`, and a scale and a zero point for each group of them")
def grouped_bytes(bits: Number, scale_bits: Number, zero_bits: Number, group: Number) -> Byte:
    """Bytes per weight of a format whose groups share a scale and, where it has one, a zero point.

    >>> grouped_bytes(4, 16, 4, 128), grouped_bytes(4, 8, 0, 32)  # AWQ; MXFP4
    (0.51953125, 0.53125)
    """
    return BIT * (bits + (scale_bits + zero_bits) / group)


@formula(source="definition")
def mean_bytes(sizes: tuple[Number, ...], widths: tuple[Byte, ...]) -> Byte:
    """Mean bytes per weight of tensors of `sizes` weights, each of its own width.

    >>> mean_bytes((2e6, 1e6), (0.5625, 0.8203125))
    0.6484375
    """
    return sum(size * width for size, width in zip(sizes, widths, strict=True)) / sum(sizes)

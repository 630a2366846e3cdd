"""One matrix product on the roofline: FLOP, bytes, intensity, time, and the rows at which compute and memory take equal time."""

from __future__ import annotations

import functools
import math

import numpy as np

from headway.core.formula import formula
from headway.core.units import Byte, BytePerSecond, Flop, FlopPerSecond, Number, Second

TWO_FLOP: Flop = 2.0  # one multiply and one add
BOOK = "Austin et al. 2025, How to Scale Your Model, chapter 1"


@formula(source=BOOK + ": 2 B D F, split over the chips that share the work")
def matmul_flop(sizes: tuple[Number, ...], shards: Number) -> Flop:
    """FLOP of a matrix product per chip: a multiply and an add for each point of its free and contracted dimensions.

    >>> matmul_flop((128, 8192, 28672), 1)  # Llama-3.1-70B, one matrix of the feed-forward layer, 128 tokens
    60129542144.0
    """
    return TWO_FLOP * math.prod(sizes) / shards


@formula(source="definition")
def array_bytes(sizes: tuple[Number, ...], shards: Number, element: Byte) -> Byte:
    """Bytes of an array on each chip when it is split evenly over some of them.

    >>> array_bytes((8192, 28672), 8, 2)  # Llama-3.1-70B, one matrix of the feed-forward layer over 8 chips
    58720256.0
    """
    return math.prod(sizes) * element / shards


@formula(source=BOOK)
def flop_s(flop: Flop, peak: FlopPerSecond) -> Second:
    """Compute time of a number of FLOP at the peak (H100, bf16).

    >>> round(flop_s(1e12, 989.4e12) * 1e3, 3)
    1.011
    """
    return flop / peak


@formula(source=BOOK + ": lower bound, everything overlaps")
def slowest_s(times: tuple[Second, ...]) -> Second:
    """Longest of the times of compute, memory and network.

    >>> float(slowest_s((1.2e-3, 3.1e-3, 0.4e-3)))
    0.0031
    """
    return functools.reduce(np.maximum, times)


@formula(source=BOOK + ": compute time = memory time with every byte counted: B = w / (f BW / C - r)")
def balanced_rows(fixed: Byte, row_flop: Flop, row_bytes: Byte, peak: FlopPerSecond, bandwidth: BytePerSecond) -> Number:
    """Rows at which compute and memory take equal time, activations counted; infinite where memory is always slower.

    TPU v5e in bf16 with matrices of 4096 and of 1024; the first over a network of 3 GB/s.

    >>> [round(balanced_rows(2.0 * d * d, 2.0 * d * d, 4.0 * d, 197e12, 810e9), 1) for d in (4096, 1024)]
    [276.0, 463.3]
    >>> balanced_rows(2.0 * 4096**2, 2.0 * 4096**2, 4.0 * 4096, 197e12, 3e9)
    inf
    """
    slack = row_flop * (bandwidth / peak) - row_bytes
    return fixed / slack if slack > 0 * row_bytes else math.inf

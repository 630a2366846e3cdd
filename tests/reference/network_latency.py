"""A second published model of decoding, to agree with: network latency against weights read (Erdil 2025, section 2.2).

Its chips are one tensor-parallel group whose all-reduces cost latency alone; a step is latency plus the larger of weights and compute.
"""

from __future__ import annotations

import numpy as np

from headway.core.formula import formula
from headway.core.units import Byte, BytePerSecond, FlopPerSecond, FlopPerToken, Number, Second, Token

ERDIL = "Erdil 2025, Inference economics of language models (arXiv:2506.04645), section 2.2"
MULTIPLY_ADD: FlopPerToken = 2.0  # one multiply and one add, per parameter and token
NEXT_TO: Second = 6e-6  # an all-reduce on one chip's neighbours
ACROSS: Second = 2e-6  # more, for each side of a square of chips


@formula(source=ERDIL)
def square_all_reduce_s(chips: Number) -> Second:
    """Latency of one all-reduce: grows as the side of a square of chips.

    >>> round(float(square_all_reduce_s(16)) * 1e6, 3)
    12.0
    """
    return NEXT_TO + ACROSS * (np.sqrt(chips) - 1)


@formula(source=ERDIL)
def reductions_s(layers: Number, per_layer: Number, chips: Number) -> Second:
    """All of a token's all-reduces, four a layer (Llama 3 70B on 16 chips).

    >>> round(float(reductions_s(80, 4, 16)) * 1e3, 3)
    3.84
    """
    return layers * per_layer * square_all_reduce_s(chips)


@formula(source=ERDIL)
def drain_or_compute_s(weights: Byte, params: Number, batch: Token, chips: Number, mem_bw: BytePerSecond, peak: FlopPerSecond) -> Second:
    """Weights read once, or the batch multiplied, whichever takes longer, shared by all chips.

    >>> round(float(drain_or_compute_s(141.1e9, 70.55e9, 64, 16, 3.3e12, 1e15)) * 1e3, 3)  # Llama 3 70B, bf16, 16 H100
    2.672
    """
    return np.maximum(weights / (chips * mem_bw), MULTIPLY_ADD * params * batch / (chips * peak))


@formula(source=ERDIL)
def latency_bound_token_s(reductions: Second, drain_or_compute: Second) -> Second:
    """Time per token of one request: latency and work, one after the other.

    >>> round(latency_bound_token_s(3.84e-3, 2.672e-3) * 1e3, 3)
    6.512
    """
    return reductions + drain_or_compute


@formula(source=ERDIL + "; the least of A sqrt(N) + W/(N BW) is at N = (2 W / (A BW))^(2/3)")
def fastest_chips(weights: Byte, layers: Number, per_layer: Number, mem_bw: BytePerSecond) -> Number:
    """Chips beyond which more latency is added than draining saved (Llama 3 70B in bf16 on H100).

    >>> round(fastest_chips(141.1e9, 80, 4, 3.3e12), 1)
    26.1
    """
    return (2 * weights / (layers * per_layer * ACROSS * mem_bw)) ** (2 / 3)

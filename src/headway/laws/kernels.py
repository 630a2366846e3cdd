"""Time of one kernel, or of many alike: work at the datasheet peak over the share of peak reached, and how two limits meet.

Inputs called compute, weights, activations and kv are seconds at peak (FLOP over the dense peak, bytes over the HBM bandwidth), so
that the same law serves a kernel and the sum over a step's layers. The fixed cost of launching a kernel is added outside.
"""

from __future__ import annotations

import numpy as np

from headway.formula import formula
from headway.units import Byte, BytePerSecond, Number, Second

NO_TIME: Second = 1e-300  # keeps 0/0 away where there is no work at all
MEETS = "p-norm of the two limits, as kernels without perfect overlap follow; the hard roofline (Williams 2009) at norm = inf"


@formula(source=MEETS)
def smooth_max_s(first: Second, second: Second, norm: Number) -> Second:
    """Two limits that overlap, but not perfectly near the ridge: (first^norm + second^norm)^(1/norm).

    >>> round(float(smooth_max_s(3.0, 4.0, 2)), 6), float(smooth_max_s(3.0, 4.0, np.inf)), float(smooth_max_s(0.0, 0.0, 3))
    (5.0, 4.0, 0.0)
    """
    most = np.maximum(first, second)
    return most * (1 + (np.minimum(first, second) / np.maximum(most, NO_TIME)) ** norm) ** (1 / norm)


@formula(source=MEETS + "; activations (read, written and, below 16 bits, quantised) are handled before and after the tiles")
def matmul_s(
    compute: Second, weights: Second, activations: Second, eff_compute: Number, eff_memory: Number, eff_activation: Number, norm: Number
) -> Second:
    """A dense or grouped matrix multiplication: FLOP against streamed weights, and its activations on top.

    >>> peak, bandwidth, m, n, k = 989.4e12, 3.35e12, 1024, 8192, 8192  # one projection of Llama-3.1-70B on an H100
    >>> compute, weights, activations = 2 * m * n * k / peak, 2 * n * k / bandwidth, 2 * (m * k + m * n) / bandwidth
    >>> round(float(matmul_s(compute, weights, activations, 0.8, 0.85, 1.0, 3.0)) * 1e6, 1)
    184.8
    """
    return smooth_max_s(compute / eff_compute, weights / eff_memory, norm) + activations / eff_activation


@formula(source="FlashDecoding, XQA: one thread block per sequence and KV head at least, however short the context")
def decode_attention_s(compute: Second, kv: Second, blocks: Number, eff_compute: Number, eff_memory: Number, block: Second) -> Second:
    """Attention of one new token per sequence: the KV cache streamed, and a cost for each pair of sequence and KV head.

    >>> kv = 256 * 1024 * 2 * 128 * 2 / 3.35e12  # Llama-3.1-70B, one KV head of one layer, 256 sequences of 1024 tokens, an H100
    >>> round(float(decode_attention_s(0.0, kv, 256, 0.6, 0.9, 2.5e-8)) * 1e6, 1)
    50.9
    """
    return np.maximum(compute / eff_compute, kv / eff_memory) + blocks * block


@formula(source="definition: what a block costs, as bytes that the HBM would move meanwhile, which carries from chip to chip")
def block_s(block: Byte, bandwidth: BytePerSecond) -> Second:
    """Time per pair of sequence and KV head on a chip of that bandwidth.

    >>> round(block_s(80e3, 3.35e12) * 1e9, 1)
    23.9
    """
    return block / bandwidth


@formula(source="FlashAttention: a query tile pays for its first and its masked tiles in full, as if each prompt token saw `pad` more")
def prefill_attention_s(pair_compute: Second, pad_compute: Second, eff_compute: Number) -> Second:
    """Attention of prompts: the causal pairs, and a pad per token that makes short prompts slow.

    >>> flop, peak = 4 * 128 * 8, 989.4e12  # Llama-3.1-70B, one layer, 8 of its 64 heads, an H100
    >>> round(prefill_attention_s(flop * 8192 * 8193 / 2 / peak, flop * 8192 * 400 / peak, 0.67) * 1e6, 1)
    227.6
    """
    return (pair_compute + pad_compute) / eff_compute

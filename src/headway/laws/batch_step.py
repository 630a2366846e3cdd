"""One decode step of a whole model on a whole scale-up domain: the four lines of the latency plot (physical convention)."""

from __future__ import annotations

import numpy as np

from headway.formula import formula
from headway.laws.balance import compute_s_per_token
from headway.units import Byte, BytePerSecond, BytePerToken, FlopPerSecond, Number, Second, Token


@formula(source="2 B N_a / F")
def batch_compute_s(tokens: Token, active_params: Number, peak_flops: FlopPerSecond) -> Second:
    """Matrix products grow with the batch from nothing.

    >>> round(batch_compute_s(2400, 37e9, 324e15) * 1e3, 3)  # DeepSeek-V3, fp8, on 72 B200
    0.548
    """
    return tokens * compute_s_per_token(active_params, peak_flops)


@formula(source="w N_t / BW")
def latency_floor_s(total_params: Number, weight_byte: Byte, mem_bw: BytePerSecond) -> Second:
    """No decode step is shorter than reading the weights once, whatever the batch (once it touches every expert).

    >>> round(latency_floor_s(671e9, 1.0, 576e12) * 1e3, 2)  # DeepSeek-V3, fp8, on GB200 NVL72
    1.16
    """
    return total_params * weight_byte / mem_bw


@formula(source="B L kappa / BW")
def batch_kv_s(batch: Number, context: Token, kv_bytes_per_token: BytePerToken, mem_bw: BytePerSecond) -> Second:
    """Each sequence reads its own cache, so that KV grows with the batch from nothing.

    >>> round(batch_kv_s(2400, 8192, 35136.0, 576e12) * 1e3, 2)  # DeepSeek-V3, fp8 cache
    1.2
    """
    return batch * context * kv_bytes_per_token / mem_bw


@formula(source="t_w + t_kv: one memory, one stream")
def memory_s(weights_s: Second, kv_s: Second) -> Second:
    """Weights and KV share the bandwidth, so that their times add.

    >>> round(memory_s(1.16e-3, 1.2e-3) * 1e3, 3)  # DeepSeek-V3
    2.36
    """
    return weights_s + kv_s


@formula(source="Williams et al. 2009, roofline: max(t_c, t_m)")
def roofline_s(compute_s: Second, memory_s: Second) -> Second:
    """Whichever of compute and memory is slower sets the time when they overlap.

    >>> float(roofline_s(0.548e-3, 1.16e-3))  # DeepSeek-V3 without KV
    0.00116
    """
    return np.maximum(compute_s, memory_s)


@formula(source="Reiner Pope, blackboard lecture, 2026-04-29: max(t_c, t_w + t_kv)")
def overlapped_step_s(compute_s: Second, weights_s: Second, kv_s: Second) -> Second:
    """Nothing real is faster: all compute overlaps all memory traffic.

    >>> round(float(overlapped_step_s(0.548e-3, 1.16e-3, 1.2e-3)) * 1e3, 3)  # DeepSeek-V3
    2.36
    """
    return np.maximum(compute_s, weights_s + kv_s)


@formula(source="sum of the terms")
def serial_step_s(compute_s: Second, weights_s: Second, kv_s: Second) -> Second:
    """The upper end: nothing overlaps, at most twice the floor.

    >>> round(serial_step_s(0.548e-3, 1.16e-3, 1.2e-3) * 1e3, 3)  # DeepSeek-V3
    2.908
    """
    return compute_s + weights_s + kv_s


@formula(source="Scaling Book, Inference: attention, then the matrix products")
def kv_apart_step_s(compute_s: Second, weights_s: Second, kv_s: Second) -> Second:
    """Attention is not overlapped with the matrix products: KV time adds to the longer of compute and weights.

    >>> round(float(kv_apart_step_s(0.548e-3, 1.16e-3, 1.2e-3)) * 1e3, 3)  # DeepSeek-V3
    2.36
    """
    return kv_s + np.maximum(compute_s, weights_s)

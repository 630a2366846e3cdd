"""Memory capacity: what fits once the weights are loaded, and drain time, the time to read a memory once."""

from __future__ import annotations

import numpy as np

from headway.core.formula import formula
from headway.core.units import Byte, BytePerSecond, BytePerToken, Number, Second, Token


@formula(source="capacity over bandwidth")
def drain_s(capacity: Byte, mem_bw: BytePerSecond) -> Second:
    """Drain time of a memory such as HBM: to read the whole memory once, a lower bound of any step that reads all of it.

    >>> round(drain_s(80e9, 3.35e12), 4)  # H100
    0.0239
    """
    return capacity / mem_bw


@formula(source="bandwidth times time")
def bytes_read(step_s: Second, mem_bw: BytePerSecond) -> Byte:
    """Most bytes that a step of this length can read: bounds the weights of a model with a published step time.

    >>> round(bytes_read(15.625e-3, 576e12) / 1e12, 6)  # 64 steps a second on GB200 NVL72
    9.0
    """
    return step_s * mem_bw


@formula(source="Reiner Pope, blackboard lecture, 2026-04-29, claim FS-04: w N_t / (G BW)")
def domain_read_s(weight_bytes: Byte, chips: Number, chip_bw: BytePerSecond) -> Second:
    """Time to read the weights once with a whole scale-up domain: its size and bandwidth set the latency floor.

    >>> round(domain_read_s(671e9, 72, 8e12) * 1e3, 3)  # DeepSeek-V3, fp8, on GB200 NVL72
    1.165
    """
    return weight_bytes / (chips * chip_bw)


@formula(source="memory minus weights")
def bytes_beside_weights(capacity: Byte, weight_bytes: Byte) -> Byte:
    """Memory left for the KV cache after the weights; 0 when they do not fit.

    >>> float(bytes_beside_weights(640e9, 671e9))  # DeepSeek-V3 on HGX H100
    0.0
    """
    return np.maximum(capacity - weight_bytes, 0 * capacity)


@formula(source="memory left over KV per sequence")
def capacity_batch(capacity: Byte, weight_bytes: Byte, context: Token, kv_bytes_per_token: BytePerToken) -> Number:
    """Sequences of this context whose KV cache fits after the weights.

    >>> round(float(capacity_batch(13.824e12, 671e9, 8192, 35136.0)))  # DeepSeek-V3 fp8 on GB200 NVL72
    45696
    """
    return np.maximum(capacity - weight_bytes, 0 * capacity) / (context * kv_bytes_per_token)


@formula(source="memory left over batch times KV per token: (C - w N_t) / (B kappa)")
def capacity_context(capacity: Byte, weight_bytes: Byte, batch: Number, kv_bytes_per_token: BytePerToken) -> Token:
    """Longest context at which `batch` sequences fit after the weights.

    >>> round(float(capacity_context(13.824e12, 671e9, 2400, 35136.0)))  # DeepSeek-V3 fp8 on GB200 NVL72
    155977
    """
    return np.maximum(capacity - weight_bytes, 0 * capacity) / (batch * kv_bytes_per_token)


@formula(source="memory left beside KV over bytes per parameter")
def capacity_params(capacity: Byte, kv_bytes: Byte, weight_byte: Byte) -> Number:
    """Most parameters that fit with `kv_bytes` of KV cache: sparsity is paid for in capacity.

    >>> float(capacity_params(13.824e12, 3.824e12, 1.0))  # GB200 NVL72, fp8
    10000000000000.0
    """
    return np.maximum(capacity - kv_bytes, 0 * capacity) / weight_byte

"""Memory capacity: what fits once the weights are loaded, and drain time, the time to read a memory once."""

from __future__ import annotations

import numpy as np

from headway.core.formula import formula
from headway.core.units import Byte, BytePerFlopRate, BytePerSecond, BytePerToken, FlopPerByte, FlopPerSecond, Number, Second, Token


@formula(source="capacity over bandwidth")
def drain_s(capacity: Byte, mem_bw: BytePerSecond) -> Second:
    """Drain time of a memory such as HBM: to read the whole memory once, a lower bound of any step that reads all of it.

    >>> round(drain_s(80e9, 3.35e12), 4)  # H100
    0.0239
    """
    return capacity / mem_bw


@formula(source="step time over drain time")
def memory_reads(step_s: Second, memory_drain_s: Second) -> Number:
    """Full memory reads that fit in a step time: above 1, the step must read some bytes again.

    >>> round(memory_reads(30e-3, 14.4e-3), 2)  # Rubin
    2.08
    """
    return step_s / memory_drain_s


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


@formula(source="peak over bandwidth")
def flop_per_byte(peak_flops: FlopPerSecond, mem_bw: BytePerSecond) -> FlopPerByte:
    """FLOP that a chip can do while it reads a byte.

    >>> round(flop_per_byte(989.4e12, 3.35e12))  # H100, bf16
    295
    """
    return peak_flops / mem_bw


@formula(source="capacity over peak")
def byte_per_flop_rate(capacity: Byte, peak_flops: FlopPerSecond) -> BytePerFlopRate:
    """Memory capacity per FLOP/s of a chip.

    >>> f"{byte_per_flop_rate(80e9, 989.4e12):.3g}"  # H100, bf16
    '8.09e-05'
    """
    return capacity / peak_flops


@formula(source="chips times memory per chip")
def domain_bytes(chips: Number, hbm_bytes: Byte) -> Byte:
    """Memory capacity of a scale-up domain.

    >>> domain_bytes(8, 80e9)  # HGX H100
    640000000000.0
    """
    return chips * hbm_bytes


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


@formula(source="weights over memory: compute time over drain time at the balanced batch")
def balanced_mfu_full_memory(weight_bytes: Byte, capacity: Byte) -> Number:
    """MFU at the weight-only balanced batch when each step reads a full memory.

    >>> round(balanced_mfu_full_memory(671e9, 13.824e12), 4)  # DeepSeek-V3 fp8 on GB200 NVL72
    0.0485
    """
    return weight_bytes / capacity


@formula(source="compute time = drain time, solved for the batch: B* C / W")
def balanced_batch_full_memory(balanced_tokens: Token, capacity: Byte, weight_bytes: Byte) -> Token:
    """Tokens per step that balance compute when each step reads a full memory, weights and KV cache.

    >>> round(balanced_batch_full_memory(5101.0, 13.824e12, 671e9))  # DeepSeek-V3 fp8 on GB200 NVL72
    105091
    """
    return balanced_tokens * capacity / weight_bytes


@formula(source="weights over bytes per parameter and sparsity")
def active_params_within(weight_bytes: Byte, weight_byte: Byte, total_over_active: Number) -> Number:
    """Active parameters of a model whose weights take `weight_bytes`, at a sparsity of `total_over_active`.

    >>> active_params_within(9e12, 1.0, 8.0)
    1125000000000.0
    """
    return weight_bytes / weight_byte / total_over_active

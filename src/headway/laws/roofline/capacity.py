"""What fits in memory beside the weights, and drain time: how long a memory takes to be read once."""

from __future__ import annotations

import numpy as np

from headway.core.formula import formula
from headway.core.units import Byte, BytePerFlopRate, BytePerSecond, BytePerToken, FlopPerByte, FlopPerSecond, Number, Second, Token


@formula(source="capacity over bandwidth")
def drain_s(capacity: Byte, mem_bw: BytePerSecond) -> Second:
    """The time to read all of a memory once: no step that uses all of it is shorter.

    >>> round(drain_s(80e9, 3.35e12), 4)  # H100
    0.0239
    """
    return capacity / mem_bw


@formula(source="step time over drain time")
def memory_reads(step_s: Second, memory_drain_s: Second) -> Number:
    """How often a step of this length could read the whole memory: more than once means reading the same bytes again.

    >>> round(memory_reads(30e-3, 14.4e-3), 2)  # Rubin
    2.08
    """
    return step_s / memory_drain_s


@formula(source="bandwidth times time")
def bytes_read(step_s: Second, mem_bw: BytePerSecond) -> Byte:
    """What a step of this length can read at most: the weights behind a stated step time.

    >>> round(bytes_read(15.625e-3, 576e12) / 1e12, 6)  # 64 steps a second on GB200 NVL72
    9.0
    """
    return step_s * mem_bw


@formula(source="Reiner Pope, blackboard lecture, 2026-04-29, claim FS-04: w N_t / (G BW)")
def domain_read_s(weight_bytes: Byte, chips: Number, chip_bw: BytePerSecond) -> Second:
    """The time to read the weights once with a whole scale-up domain: its size and bandwidth set the latency floor.

    >>> round(domain_read_s(671e9, 72, 8e12) * 1e3, 3)  # DeepSeek-V3, fp8, on GB200 NVL72
    1.165
    """
    return weight_bytes / (chips * chip_bw)


@formula(source="peak over bandwidth")
def flop_per_byte(peak_flops: FlopPerSecond, mem_bw: BytePerSecond) -> FlopPerByte:
    """Arithmetic that a chip can do while it reads a byte.

    >>> round(flop_per_byte(989.4e12, 3.35e12))  # H100, bf16
    295
    """
    return peak_flops / mem_bw


@formula(source="capacity over peak")
def byte_per_flop_rate(capacity: Byte, peak_flops: FlopPerSecond) -> BytePerFlopRate:
    """Memory that comes with each FLOP/s: what a generation gives to weights and context beside speed.

    >>> f"{byte_per_flop_rate(80e9, 989.4e12):.3g}"  # H100, bf16
    '8.09e-05'
    """
    return capacity / peak_flops


@formula(source="chips times memory per chip")
def domain_bytes(chips: Number, hbm_bytes: Byte) -> Byte:
    """The memory of a scale-up domain.

    >>> domain_bytes(8, 80e9)  # HGX H100
    640000000000.0
    """
    return chips * hbm_bytes


@formula(source="memory minus weights")
def bytes_beside_weights(capacity: Byte, weight_bytes: Byte) -> Byte:
    """What is left for KV once the weights are in; nothing when they do not fit.

    >>> float(bytes_beside_weights(640e9, 671e9))  # DeepSeek-V3 on HGX H100
    0.0
    """
    return np.maximum(capacity - weight_bytes, 0 * capacity)


@formula(source="memory left over KV per sequence")
def capacity_batch(capacity: Byte, weight_bytes: Byte, context: Token, kv_bytes_per_token: BytePerToken) -> Number:
    """Sequences of this context that fit beside the weights.

    >>> round(float(capacity_batch(13.824e12, 671e9, 8192, 35136.0)))  # DeepSeek-V3 fp8 on GB200 NVL72
    45696
    """
    return np.maximum(capacity - weight_bytes, 0 * capacity) / (context * kv_bytes_per_token)


@formula(source="memory left over batch times KV per token: (C - w N_t) / (B kappa)")
def capacity_context(capacity: Byte, weight_bytes: Byte, batch: Number, kv_bytes_per_token: BytePerToken) -> Token:
    """The longest context at which this many sequences fit beside the weights.

    >>> round(float(capacity_context(13.824e12, 671e9, 2400, 35136.0)))  # DeepSeek-V3 fp8 on GB200 NVL72
    155977
    """
    return np.maximum(capacity - weight_bytes, 0 * capacity) / (batch * kv_bytes_per_token)


@formula(source="memory left beside KV over bytes per parameter")
def capacity_params(capacity: Byte, kv_bytes: Byte, weight_byte: Byte) -> Number:
    """The most parameters that fit beside this much KV: sparsity is paid in capacity.

    >>> float(capacity_params(13.824e12, 3.824e12, 1.0))  # GB200 NVL72, fp8
    10000000000000.0
    """
    return np.maximum(capacity - kv_bytes, 0 * capacity) / weight_byte


@formula(source="weights over memory: compute time over drain time at the balanced batch")
def balanced_mfu_full_memory(weight_bytes: Byte, capacity: Byte) -> Number:
    """The use of compute at the weight-only balanced batch when each step reads a full memory.

    >>> round(balanced_mfu_full_memory(671e9, 13.824e12), 4)  # DeepSeek-V3 fp8 on GB200 NVL72
    0.0485
    """
    return weight_bytes / capacity


@formula(source="compute time = drain time, solved for the batch: B* C / W")
def balanced_batch_full_memory(balanced_tokens: Token, capacity: Byte, weight_bytes: Byte) -> Token:
    """Tokens per step that balance compute when each step reads a full memory, weights and KV.

    >>> round(balanced_batch_full_memory(5101.0, 13.824e12, 671e9))  # DeepSeek-V3 fp8 on GB200 NVL72
    105091
    """
    return balanced_tokens * capacity / weight_bytes


@formula(source="weights over bytes per parameter and sparsity")
def active_params_within(weight_bytes: Byte, weight_byte: Byte, total_over_active: Number) -> Number:
    """Active parameters of the model whose weights take this much memory.

    >>> active_params_within(9e12, 1.0, 8.0)
    1125000000000.0
    """
    return weight_bytes / weight_byte / total_over_active

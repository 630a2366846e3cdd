"""What fits: memory left beside the weights, as sequences, as context, as parameters."""

from __future__ import annotations

import numpy as np

from headway.formula import formula
from headway.units import Byte, BytePerToken, Number, Token


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

"""A decode step of a whole model by batch and context: its time, the cost of a token, and both in the convention of the lecture's board.

The board leaves out a factor 2 and bytes per parameter, which cancel, so its hardware ratio is right; never mix the two conventions.
"""

from __future__ import annotations

import numpy as np

from headway.core.formula import formula
from headway.core.units import (
    ONE_TOKEN,
    Byte,
    BytePerSecond,
    BytePerToken,
    FlopPerSecond,
    FlopPerToken,
    Number,
    Second,
    SecondPerToken,
    Token,
)
from headway.laws.roofline.balance import compute_s_per_token


@formula(source="one token of each sequence: Scaling Book, Inference", gives="tokens")
def decode_tokens(batch: Number) -> Token:
    """Tokens that a decode step computes: one of each sequence of the batch.

    >>> decode_tokens(2400)  # DeepSeek-V3 on 72 B200
    2400.0
    """
    return batch * ONE_TOKEN


@formula(source="2 B N_a / F", gives="compute_s")
def batch_compute_s(tokens: Token, active_params: Number, peak_flops: FlopPerSecond) -> Second:
    """Compute time of a decode step's matmuls: proportional to the batch.

    >>> round(batch_compute_s(2400, 37e9, 324e15) * 1e3, 3)  # DeepSeek-V3, fp8, on 72 B200
    0.548
    """
    return tokens * compute_s_per_token(active_params, peak_flops)


@formula(source="w N_t / BW", gives="weights_s")
def latency_floor_s(total_params: Number, weight_byte: Byte, mem_bw: BytePerSecond) -> Second:
    """Lower bound of a decode step: time to read all weights once, whatever the batch (once it uses every expert).

    >>> round(latency_floor_s(671e9, 1.0, 576e12) * 1e3, 2)  # DeepSeek-V3, fp8, on GB200 NVL72
    1.16
    """
    return total_params * weight_byte / mem_bw


@formula(source="B L kappa / BW", gives="kv_s")
def batch_kv_s(batch: Number, context: Token, kv_bytes_per_token: BytePerToken, mem_bw: BytePerSecond) -> Second:
    """KV read time of a decode step: proportional to the batch, since each sequence reads its own cache.

    >>> round(batch_kv_s(2400, 8192, 35136.0, 576e12) * 1e3, 2)  # DeepSeek-V3, fp8 cache
    1.2
    """
    return batch * context * kv_bytes_per_token / mem_bw


@formula(source="t_w + t_kv: one memory, one stream")
def memory_s(weights_s: Second, kv_s: Second) -> Second:
    """Memory time of a step: weights and KV cache share the bandwidth, so their times add.

    >>> round(memory_s(1.16e-3, 1.2e-3) * 1e3, 3)  # DeepSeek-V3
    2.36
    """
    return weights_s + kv_s


@formula(source="Williams et al. 2009, roofline: max(t_c, t_m)")
def roofline_s(compute_s: Second, memory_s: Second) -> Second:
    """Step time when compute and memory overlap fully: the slower limit.

    >>> float(roofline_s(0.548e-3, 1.16e-3))  # DeepSeek-V3 without KV
    0.00116
    """
    return np.maximum(compute_s, memory_s)


@formula(source="Reiner Pope, blackboard lecture, 2026-04-29: max(t_c, t_w + t_kv)", gives="step_s")
def overlapped_step_s(compute_s: Second, weights_s: Second, kv_s: Second) -> Second:
    """Lower bound of a step: all compute overlaps all memory traffic.

    >>> round(float(overlapped_step_s(0.548e-3, 1.16e-3, 1.2e-3)) * 1e3, 3)  # DeepSeek-V3
    2.36
    """
    return np.maximum(compute_s, weights_s + kv_s)


@formula(source="sum of the terms", gives="step_s")
def serial_step_s(compute_s: Second, weights_s: Second, kv_s: Second) -> Second:
    """Upper bound of a step: nothing overlaps; at most twice the floor.

    >>> round(serial_step_s(0.548e-3, 1.16e-3, 1.2e-3) * 1e3, 3)  # DeepSeek-V3
    2.908
    """
    return compute_s + weights_s + kv_s


@formula(source="Scaling Book, Inference: attention, then the matrix products", gives="step_s")
def kv_apart_step_s(compute_s: Second, weights_s: Second, kv_s: Second) -> Second:
    """Step time when attention does not overlap with matmuls: KV time plus the longer of compute and weights.

    >>> round(float(kv_apart_step_s(0.548e-3, 1.16e-3, 1.2e-3)) * 1e3, 3)  # DeepSeek-V3
    2.36
    """
    return kv_s + np.maximum(compute_s, weights_s)


@formula(source="step time over tokens: t / B")
def machine_s_per_token(step_s: Second, tokens: Token) -> SecondPerToken:
    """Machine time per token: a step over its tokens; compute and KV stay, weights fall as 1/batch.

    >>> machine_s_per_token(20e-3, 2000)
    1e-05
    """
    return step_s / tokens


@formula(source="limit of t / B as B grows: max(c, k)")
def machine_s_per_token_floor(compute_s_per_token: SecondPerToken, kv_s_per_token: SecondPerToken) -> SecondPerToken:
    """Lower bound of machine time per token: the longer of compute and KV reads, which no batch amortises.

    >>> float(machine_s_per_token_floor(2.28e-7, 5.0e-7))  # DeepSeek-V3 at 8k
    5e-07
    """
    return np.maximum(compute_s_per_token, kv_s_per_token)


@formula(source="Pope 2026 lecture, claim FM-05: compute and KV never amortise, so that nothing is saved below them")
def slow_tier_saving(machine_s_per_token: SecondPerToken, floor_s_per_token: SecondPerToken) -> Number:
    """Largest share of a token's machine time that a slower tier saves at any batch (DeepSeek-V3 at half its balanced batch).

    >>> float(slow_tier_saving(4.568e-7, 2.284e-7))
    0.5
    """
    return np.maximum(1 - floor_s_per_token / machine_s_per_token, 0)


CLAIMS = "Pope 2026 lecture, claims "


@formula(source=CLAIMS + "AP-02, AP-14, CW-05: compute below the crossing, KV reads that grow as L^power beyond it")
def context_multiple(context: Token, crossing: Token, power: Number) -> Number:
    """Cost of a token at a context over its cost at short contexts, weight reads excluded.

    >>> float(context_multiple(1e6, 200e3, 1.0)), round(float(context_multiple(1e6, 200e3, 0.5)), 2)  # dense, square root
    (5.0, 2.24)
    """
    return np.maximum((context / crossing) ** power, 1)


@formula(source=CLAIMS + "AP-14: the same solved for the context")
def covered_context(multiple: Number, crossing: Token, power: Number) -> Token:
    """Longest context whose cost a price `multiple` times higher covers.

    >>> round(float(covered_context(1.5, 200e3, 1.0))), round(float(covered_context(1.5, 200e3, 0.5)))  # dense, square root
    (300000, 450000)
    """
    return crossing * multiple ** (1 / power)


@formula(source=CLAIMS + "KT-12: with KV bytes per token from the crossing, recompute cost over holding cost is crossing x drain time")
def crossing_hold_s(crossing: Token, drain: Second) -> Second:
    """Hold time up to which keeping a token's KV in HBM costs less than recomputing it, whatever the chip's price.

    >>> crossing_hold_s(200e3, 0.020)  # the lecture's crossing and drain time
    4000.0
    """
    return crossing / ONE_TOKEN * drain


@formula(source=CLAIMS + "AP-04, AP-05: compute time = KV time, by the hardware ratio: w N_a / (R L)")
def kv_of_crossing(active_params: Number, weight_byte: Byte, ratio: Token, crossing: Token) -> BytePerToken:
    """KV bytes per token of a model whose KV reads take as long as its arithmetic at a context, both at peak rates.

    >>> round(kv_of_crossing(100e9, 1.0, 300.0, 200e3))  # the lecture's model: 100 B active, one byte per weight
    1667
    """
    return weight_byte * active_params / (ratio * crossing) * ONE_TOKEN


@formula(source=CLAIMS + "AP-03: AP-04 solved for the context")
def crossing_of_kv(active_params: Number, weight_byte: Byte, ratio: Token, kv_bytes: BytePerToken) -> Token:
    """Context at which a model's KV reads take as long as its arithmetic, both at peak rates.

    >>> round(crossing_of_kv(100e9, 1.0, 300.0, 1666.67))  # the lecture's model, whose price steps at 200 K
    200000
    """
    return weight_byte * active_params / (ratio * kv_bytes) * ONE_TOKEN


ONE_FLOP: FlopPerToken = 1.0  # the board counts a multiply and its add as one FLOP
ONE_BYTE: Byte = 1.0  # the board adds parameters to bytes
BOARD_RATIO: Token = 300.0  # the board's FLOPs over bandwidth


@formula(source="Reiner Pope, blackboard lecture, 2026-04-29: B N_a / FLOPs")
def board_compute_s(tokens: Token, active_params: Number, multiplies_per_s: FlopPerSecond) -> Second:
    """Compute time on the lecture's board, right when FLOPs means multiplies per second.

    >>> round(board_compute_s(2400, 37e9, 162e15) * 1e3, 3)  # DeepSeek-V3, fp8, on 72 B200
    0.548
    """
    return ONE_FLOP * tokens * active_params / multiplies_per_s


@formula(source="Reiner Pope, blackboard lecture, 2026-04-29: (N_t + B L kappa) / BW")
def board_memory_s(total_params: Number, batch: Number, context: Token, kv_bytes_per_token: BytePerToken, mem_bw: BytePerSecond) -> Second:
    """Memory time on the lecture's board, right when a weight is one byte.

    >>> round(board_memory_s(671e9, 2400, 8192, 35136.0, 576e12) * 1e3, 2)  # DeepSeek-V3
    2.36
    """
    return (ONE_BYTE * total_params + batch * context * kv_bytes_per_token) / mem_bw


@formula(source="Reiner Pope, blackboard lecture, 2026-04-29: FLOPs over bandwidth, made dimensionless")
def board_ratio(multiplies_per_s: FlopPerSecond, mem_bw: BytePerSecond) -> Token:
    """Hardware ratio on the lecture's board, for weights of one byte.

    >>> round(board_ratio(1978.9e12 / 2, 3.35e12))  # H100, fp8
    295
    """
    return ONE_BYTE * multiplies_per_s / (ONE_FLOP * mem_bw)


@formula(source="Reiner Pope, blackboard lecture, 2026-04-29: 300 times sparsity")
def board_balanced_batch(total_params: Number, active_params: Number) -> Token:
    """Balanced batch on the lecture's board, with its hardware ratio of 300.

    >>> board_balanced_batch(256, 32)  # the board's DeepSeek-V3, whose sparsity is in truth 32
    2400.0
    """
    return BOARD_RATIO * total_params / active_params

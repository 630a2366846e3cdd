"""Where two limits meet: compute and memory by batch, attention and matmuls by context, a link and the chips that share it.

One parameter costs a multiply and an add per token and `weight_byte` bytes per step, so their times are equal at a number of tokens
that depends on the chip alone: the hardware ratio. All batches are in tokens per step; decode has one token per sequence.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from headway.core.formula import formula
from headway.core.units import (
    ONE_TOKEN,
    Byte,
    BytePerSecond,
    BytePerToken,
    Flop,
    FlopPerByte,
    FlopPerSecond,
    FlopPerToken,
    Number,
    Second,
    SecondPerToken,
    Token,
)

MULTIPLY_ADD: FlopPerToken = 2.0  # one multiply and one add per parameter and token


@formula(source="Scaling Book, Roofline: critical batch", gives="ratio")
def hardware_ratio(weight_byte: Byte, peak_flops: FlopPerSecond, mem_bw: BytePerSecond) -> Token:
    """Tokens per weight read at which compute time equals read time: a property of the chip, equal for every model.

    >>> round(hardware_ratio(2.0, 989.4e12, 3.35e12))  # H100, bf16
    295
    """
    return weight_byte * peak_flops / (MULTIPLY_ADD * mem_bw)


@formula(source="compute time = weight time, solved for the batch")
def balanced_batch(ratio: Token, total_params: Number, active_params: Number) -> Token:
    """Tokens per step at which compute time of a whole model equals its weight-read time, KV cache excluded.

    >>> round(balanced_batch(300.0, 671e9, 37e9))  # DeepSeek-V3
    5441
    """
    return ratio * total_params / active_params


@formula(source="each expert's matrix product sees ratio tokens, uniform routing")
def balanced_batch_per_expert(ratio: Token, experts: Number, experts_per_token: Number) -> Token:
    """Tokens per step that give each routed expert the hardware ratio of tokens: experts balance later than the whole model.

    >>> balanced_batch_per_expert(300.0, 256, 8)  # DeepSeek-V3
    9600.0
    """
    return ratio * experts / experts_per_token


@formula(source="compute time = weight time + KV time, solved for the batch: t_w / (c - k)")
def balanced_batch_with_kv(weights_s: Second, compute_s_per_token: SecondPerToken, kv_s_per_token: SecondPerToken) -> Token:
    """Tokens per step that balance compute with weights and KV reads; infinite when KV alone takes as long as compute.

    >>> float(balanced_batch_with_kv(1.0e-3, 4.0e-7, 2.0e-7)), float(balanced_batch_with_kv(1.0e-3, 2.0e-7, 2.0e-7))
    (5000.0, inf)
    """
    slack = compute_s_per_token - kv_s_per_token
    return weights_s / np.where(slack > 0, slack, compute_s_per_token) * np.where(slack > 0, 1.0, np.inf)


@formula(source="two floating-point operations per active parameter over the peak")
def compute_s_per_token(active_params: Number, peak_flops: FlopPerSecond) -> SecondPerToken:
    """Compute time per token, which no batch amortises.

    >>> f"{compute_s_per_token(37e9, 324e15):.3g}"  # DeepSeek-V3, fp8, on 72 B200
    '2.28e-07'
    """
    return MULTIPLY_ADD * active_params / peak_flops


@formula(source="context times KV bytes per token over the bandwidth")
def kv_s_per_token(context: Token, kv_bytes_per_token: BytePerToken, mem_bw: BytePerSecond) -> SecondPerToken:
    """KV read time per generated token, which no batch amortises.

    >>> f"{kv_s_per_token(8192, 35136.0, 576e12):.3g}"  # DeepSeek-V3, fp8 cache
    '5e-07'
    """
    return context * kv_bytes_per_token / mem_bw / ONE_TOKEN


@formula(source="share of the peak that a memory-bound step uses")
def mfu_below_balance(tokens: Token, balanced_tokens: Token) -> Number:
    """MFU at a batch: proportional to the batch below the balanced batch, where memory is the limit, 1 above it.

    >>> round(float(mfu_below_balance(2400.0, 5441.0)), 3), float(mfu_below_balance(9600.0, 5441.0))
    (0.441, 1.0)
    """
    return np.minimum(tokens / balanced_tokens, 1.0)


@formula(source="definition: model FLOP utilisation")
def mfu(compute_s: Second, step_s: Second) -> Number:
    """Share of a step in which the compute units work.

    >>> mfu(5e-3, 20e-3)
    0.25
    """
    return compute_s / step_s


@formula(source="KV time = compute time, solved for the context: c BW / kappa")
def kv_balanced_context(compute_s_per_token: SecondPerToken, kv_bytes_per_token: BytePerToken, mem_bw: BytePerSecond) -> Token:
    """Context at which reading a sequence's KV cache takes as long as computing its token; beyond it no batch balances.

    >>> round(kv_balanced_context(2.284e-7, 35136.0, 576e12))  # DeepSeek-V3, fp8 cache, on GB200 NVL72
    3744
    """
    return compute_s_per_token * mem_bw / kv_bytes_per_token * ONE_TOKEN


@formula(source="2 N_a = 2 layers heads (qk + v) L, solved for L")
def attention_crossover_context(active_params: Number, layers: Number, heads: Number, qk_width: Number, v_width: Number) -> Token:
    """Context at which attention FLOP equal the FLOP of all weight matmuls: shorter for many wide heads.

    >>> round(attention_crossover_context(70.6e9, 80, 64, 128, 128))  # Llama-3.1-70B
    53864
    """
    return MULTIPLY_ADD * active_params / (MULTIPLY_ADD / ONE_TOKEN * layers * heads * (qk_width + v_width))


@formula(source="multiply-adds per cached token over its bytes")
def attention_flop_per_cached_byte(
    query_heads: Number, qk_width: Number, v_width: Number, cached_width: Number, kv_byte: Byte
) -> FlopPerByte:
    """FLOP per byte of KV cache that decode reads: query heads that share a cache share the read.

    >>> round(attention_flop_per_cached_byte(128, 576, 512, 576, 1.0))  # DeepSeek-V3, absorbed MLA, fp8
    484
    """
    return MULTIPLY_ADD * query_heads * (qk_width + v_width) / (cached_width * kv_byte / ONE_TOKEN)


@formula(source="one token written for each L read")
def kv_write_share(context: Token) -> Number:
    """KV bytes written over KV bytes read in a decode step: memory traffic is almost all reads.

    >>> kv_write_share(1000)
    0.001
    """
    return ONE_TOKEN / context


@formula(source="Pope et al. 2022 (arXiv:2211.05102): heads are split over chips, and the fullest chip holds whole heads")
def multihead_width_per_chip(heads: Number, head_width: Number, chips: Number) -> Number:
    """Cache width per token on the fullest chip when each head has its own keys and values.

    >>> float(multihead_width_per_chip(48, 128, 64))  # PaLM-540B made multihead, on 64 TPU v4
    128.0
    """
    return np.ceil(heads / chips) * head_width


@formula(source="bytes over bandwidth, without latency: a floor")
def sent_s(message: Byte, bandwidth: BytePerSecond) -> Second:
    """Time of a message on one chip's links (lecture MOE-11: 6.45 MB over NVLink 5).

    >>> round(sent_s(6451200.0, 900e9) * 1e6, 3)
    7.168
    """
    return message / bandwidth


@formula(source="Scaling Book, Training: Y < F / alpha, compute 4 B D F / Y / C against gather and scatter, 2 w B D / W")
def tensor_ways_paid(width: Number, link_bw: BytePerSecond, peak_flops: FlopPerSecond, element: BytePerToken) -> Number:
    """Tensor-parallel degree of a feed-forward layer at which sending activations takes as long as multiplying them.

    Below 1 no split pays. In bf16 on H100: Llama-3.1-70B, one expert of DeepSeek-V3.

    >>> [round(tensor_ways_paid(width, 450e9, 989.4e12, 2.0), 2) for width in (28672, 2048)]
    [13.04, 0.93]
    """
    return MULTIPLY_ADD * width * link_bw / (element * peak_flops)


@formula(source="compute time = KV time, attention's own arithmetic counted: c / (k - a)")
def crossing_with_attention(compute_s: Second, kv_s_per_context: SecondPerToken, attention_s_per_context: SecondPerToken) -> Token:
    """Context at which KV reads take as long as all arithmetic; infinite where attention's arithmetic grows as fast as its reads.

    >>> round(float(crossing_with_attention(2.0e-7, 6.0e-11, 1.0e-11)), 6), float(crossing_with_attention(2.0e-7, 6.0e-11, 6.0e-11))
    (4000.0, inf)
    """
    slack = kv_s_per_context - attention_s_per_context
    return compute_s / np.where(slack > 0, slack, kv_s_per_context) * np.where(slack > 0, 1.0, np.inf)


# -- memory capacity: what fits once the weights are loaded, and drain time, the time to read a memory once ---------------------


@formula(source="capacity over bandwidth", gives="drain")
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


# -- one matrix product on the roofline: FLOP, bytes, intensity, time, and the rows at which compute and memory take equal time -


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

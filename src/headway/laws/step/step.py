"""The time of one step: its kernels, the binding limit, overlap, and the floor below it.

Inputs called compute, weights, activations and kv are seconds at peak (FLOP over the dense peak, bytes over the HBM bandwidth), so
that a law serves both one kernel and the sum over a step's layers. `fixed_s` adds the launch time of kernels.

The planner broadcasts `step_s`, `explain` replays it, a simulator may compile it; nothing else computes a step.
"""

from __future__ import annotations

import numpy as np

from headway.core.formula import formula
from headway.core.units import Byte, BytePerSecond, Number, Second, Token
from headway.laws.collectives.cost import collectives_floor_s, collectives_s, two_batch_step_s
from headway.laws.step.coefficients import (
    EXPOSED,
    FITTED,
    FULL,
    OPERATORS,
    TWO_BATCH,
    Achieved,
    CollectiveLine,
    CollectiveTerm,
    RankWork,
    SpanTerm,
    StepCoefficients,
)
from headway.laws.step.parts import (
    NEW_TOKEN,
    NONE,
    attention_compute_s,
    decode_score_s,
    dense_compute_s,
    expert_activations_s,
    expert_compute_s,
    expert_weights_s,
    kv_traffic_s,
    place,
    prefill_pad_s,
    prefill_score_s,
)

NO_TIME: Second = 1e-300  # avoids 0 / 0 where a step has no work
MEETS = "p-norm of the two limits, as kernels without perfect overlap follow; the hard roofline (Williams 2009) at norm = inf"


@formula(source=MEETS)
def smooth_max_s(first: Second, second: Second, norm: Number) -> Second:
    """Time under two limits that overlap, imperfectly near the ridge: (first^norm + second^norm)^(1/norm).

    >>> round(float(smooth_max_s(3.0, 4.0, 2)), 6), float(smooth_max_s(3.0, 4.0, np.inf)), float(smooth_max_s(0.0, 0.0, 3))
    (5.0, 4.0, 0.0)
    """
    most = np.maximum(first, second)
    return most * (1 + (np.minimum(first, second) / np.maximum(most, NO_TIME)) ** norm) ** (1 / norm)


@formula(source=MEETS + "; activations (read, written and, below 16 bits, quantised) are handled before and after the tiles")
def matmul_s(
    compute: Second, weights: Second, activations: Second, eff_compute: Number, eff_memory: Number, eff_activation: Number, norm: Number
) -> Second:
    """Time of a dense or grouped matmul: compute against streamed weights, plus its activations.

    >>> peak, bandwidth, m, n, k = 989.4e12, 3.35e12, 1024, 8192, 8192  # one projection of Llama-3.1-70B on an H100
    >>> compute, weights, activations = 2 * m * n * k / peak, 2 * n * k / bandwidth, 2 * (m * k + m * n) / bandwidth
    >>> round(float(matmul_s(compute, weights, activations, 0.8, 0.85, 1.0, 3.0)) * 1e6, 1)
    184.8
    """
    return smooth_max_s(compute / eff_compute, weights / eff_memory, norm) + activations / eff_activation


@formula(source="FlashDecoding, XQA: one thread block per sequence and KV head at least, however short the context")
def decode_attention_s(compute: Second, kv: Second, blocks: Number, eff_compute: Number, eff_memory: Number, block: Second) -> Second:
    """Time of decode attention: the streamed KV cache, and a fixed time per pair of sequence and KV head.

    >>> kv = 256 * 1024 * 2 * 128 * 2 / 3.35e12  # Llama-3.1-70B, one KV head of one layer, 256 sequences of 1024 tokens, an H100
    >>> round(float(decode_attention_s(0.0, kv, 256, 0.6, 0.9, 2.5e-8)) * 1e6, 1)
    50.9
    """
    return np.maximum(compute / eff_compute, kv / eff_memory) + blocks * block


@formula(source="definition: what a block costs, as bytes that the HBM would move meanwhile, which carries from chip to chip")
def block_s(block: Byte, bandwidth: BytePerSecond) -> Second:
    """Fixed time of decode attention per pair of sequence and KV head, on a chip of this bandwidth.

    >>> round(block_s(80e3, 3.35e12) * 1e9, 1)
    23.9
    """
    return block / bandwidth


@formula(source="FlashAttention: a query tile pays for its first and its masked tiles in full, as if each prompt token saw `pad` more")
def prefill_attention_s(pair_compute: Second, pad_compute: Second, eff_compute: Number) -> Second:
    """Time of prefill attention: causal pairs, and a pad per token that slows short prompts.

    >>> flop, peak = 4 * 128 * 8, 989.4e12  # Llama-3.1-70B, one layer, 8 of its 64 heads, an H100
    >>> round(prefill_attention_s(flop * 8192 * 8193 / 2 / peak, flop * 8192 * 400 / peak, 0.67) * 1e6, 1)
    227.6
    """
    return (pair_compute + pad_compute) / eff_compute


LECTURE = "Pope 2026 lecture, claims "

# Llama-3.1-70B in bf16 on 8 H100 SXM, tensor parallel, rounded: the record of the doctests below.
LLAMA_70B_TP8 = StepCoefficients(
    dense_compute=1.73e-5, head_compute=5e-7, dense_weights=5.2e-3, experts=(), state=0.0, kv_write=1.2e-8,
    activations=3.3e-6, elementwise=3.1e-6, blocks=80,
    collectives=(CollectiveTerm(count=160, lines=(CollectiveLine(alpha=6e-6, slope=8e-8),), floor=6.4e-8),),
    spans=(SpanTerm(cap=np.inf, root=np.inf, read=1.2e-8, decode_compute=3.3e-10, prefill_compute=3.3e-10),),
    dp=1, pp=1, cp=1, layers=80, attention_gain=1, imbalance=1, prefill_ranks=1, overlap=FITTED, communication=EXPOSED,
    achieved=Achieved(
        compute=0.8, memory=0.82, activation=0.5, norm=3, expert_compute=0.5, expert_memory=0.82, expert_activation=0.3, expert_norm=3,
        decode_compute=0.6, decode_memory=0.9, block=2e-8, prefill_compute=0.65, prefill_pad=300.0, elementwise=0.6,
        fixed=2.4e-3, expert_fixed=0.0, sequence=2e-6, prompted=1e-3,
    ),
)  # fmt: skip


@formula(source=LECTURE + "RB-01, RB-27; 'full' is the roofline, 'serial' the sum, 'operators' each operator's own roofline, summed")
def overlapped_s(
    overlap: Number,
    dense: Second,
    dense_weights: Second,
    expert: Second,
    expert_weights: Second,
    attention: Second,
    kv: Second,
) -> Second:
    """Time of arithmetic and HBM traffic together under an overlap mode.

    >>> [float(overlapped_s(mode, 1.0, 4.0, 0.0, 0.0, 2.0, 1.0)) for mode in (0, 1, 2)]
    [5.0, 6.0, 8.0]
    """
    if overlap == FULL:
        return np.maximum(dense + expert + attention, dense_weights + expert_weights + kv)
    if overlap == OPERATORS:
        return np.maximum(attention, kv) + (np.maximum(dense, dense_weights) + np.maximum(expert, expert_weights))
    return attention + kv + (dense + dense_weights + expert + expert_weights)


@formula(source="one law per class of kernel (laws/step/step.py), classes one after the other")
def kernels_s(coefficients: StepCoefficients, rank_work: RankWork, zero: Second) -> Second:
    """Time of a step's arithmetic and HBM traffic, with kernel overlap as measured.

    >>> rank_work = place(LLAMA_70B_TP8, 64, 64 * 1000.0, 0.0, 0.0)
    >>> round(float(kernels_s(LLAMA_70B_TP8, rank_work, 0.0)), 6)
    0.008075
    """
    achieved = coefficients.achieved
    dense_compute = dense_compute_s(coefficients.dense_compute, rank_work.tokens, coefficients.head_compute, rank_work.sampled)
    dense_activations = coefficients.activations * rank_work.tokens
    dense_achieved = achieved.compute, achieved.memory, achieved.activation, achieved.norm
    dense = matmul_s(dense_compute, coefficients.dense_weights, dense_activations, *dense_achieved)
    if coefficients.experts:
        dense = dense + matmul_s(
            expert_compute_s(coefficients.experts, rank_work.group_tokens, zero) * coefficients.imbalance,
            expert_weights_s(coefficients.experts, rank_work.group_tokens, zero),
            expert_activations_s(coefficients.experts, rank_work.group_tokens, zero) * coefficients.imbalance,
            achieved.expert_compute,
            achieved.expert_memory,
            achieved.expert_activation,
            achieved.expert_norm,
        )
    decode = decode_attention_s(
        decode_score_s(coefficients.spans, rank_work, zero),
        kv_traffic_s(coefficients.spans, coefficients.state, coefficients.kv_write, rank_work),
        coefficients.blocks * rank_work.sequences,
        achieved.decode_compute,
        achieved.decode_memory,
        achieved.block,
    )
    prefill = prefill_attention_s(
        prefill_score_s(coefficients.spans, rank_work, zero),
        prefill_pad_s(coefficients.spans, rank_work, achieved.prefill_pad, zero),
        achieved.prefill_compute,
    )
    return decode + prefill + (dense + coefficients.elementwise * rank_work.tokens / achieved.elementwise)


@formula(source=LECTURE + "RB-02, RB-03, with experts touched and attention")
def work_s(
    coefficients: StepCoefficients, decode_sequences: Number, kv_tokens: Token, prefill_tokens: Token, prefill_pairs: Token
) -> Second:
    """Time of a step's arithmetic and HBM traffic at expected efficiency, without fixed costs and collectives.

    >>> round(float(work_s(LLAMA_70B_TP8, 64, 64 * 1000.0, 0.0, 0.0)), 6)
    0.008075
    """
    rank_work, zero, achieved = (
        place(coefficients, decode_sequences, kv_tokens, prefill_tokens, prefill_pairs),
        0 * coefficients.dense_weights,
        coefficients.achieved,
    )
    if coefficients.overlap == FITTED:
        return kernels_s(coefficients, rank_work, zero)
    return overlapped_s(
        coefficients.overlap,
        dense_compute_s(coefficients.dense_compute, rank_work.tokens, coefficients.head_compute, rank_work.sampled) / achieved.compute,
        coefficients.dense_weights / achieved.memory,
        expert_compute_s(coefficients.experts, rank_work.group_tokens, zero) * coefficients.imbalance / achieved.expert_compute,
        expert_weights_s(coefficients.experts, rank_work.group_tokens, zero) / achieved.expert_memory,
        attention_compute_s(coefficients.spans, rank_work, zero) / achieved.decode_compute,
        kv_traffic_s(coefficients.spans, coefficients.state, coefficients.kv_write, rank_work) / achieved.decode_memory,
    )


@formula(source=LECTURE + "RB-01 to RB-07, with collectives (alpha + bytes/bandwidth), t0 per kernel and the engine's own work")
def step_s(
    coefficients: StepCoefficients, decode_sequences: Number, kv_tokens: Token, prefill_tokens: Token, prefill_pairs: Token
) -> Second:
    """Expected time of one step in which a replica decodes `decode_sequences` and prefills `prefill_tokens`.

    >>> round(float(step_s(LLAMA_70B_TP8, 64, 64 * 1000.0, 0.0, 0.0)), 5)
    0.01238
    """
    zero = 0 * coefficients.dense_weights
    if coefficients.communication == TWO_BATCH:
        half = (decode_sequences / 2, kv_tokens / 2, prefill_tokens / 2, prefill_pairs / 2)
        rank_work = place(coefficients, *half)
        return two_batch_step_s(
            fixed_s(coefficients, rank_work) + work_s(coefficients, *half),
            collectives_s(coefficients.collectives, rank_work.tokens, zero),
            coefficients.layers,
        )
    rank_work = place(coefficients, decode_sequences, kv_tokens, prefill_tokens, prefill_pairs)
    work = work_s(coefficients, decode_sequences, kv_tokens, prefill_tokens, prefill_pairs)
    network = collectives_s(coefficients.collectives, rank_work.tokens, zero)
    return fixed_s(coefficients, rank_work) + (np.maximum(work, network) if coefficients.overlap == FULL else work + network)


@formula(source="definition")
def fixed_s(coefficients: StepCoefficients, rank_work: RankWork) -> Second:
    """Fixed cost of a step: launch time of all kernels (prefill attention's only when it runs), and engine overhead.

    >>> round(float(fixed_s(LLAMA_70B_TP8, place(LLAMA_70B_TP8, 100, 0.0, 0.0, 0.0))), 6)
    0.0026
    """
    return (
        coefficients.achieved.fixed
        + coefficients.achieved.expert_fixed
        + coefficients.achieved.sequence * rank_work.sequences
        + coefficients.achieved.prompted * np.minimum(rank_work.prompt_tokens / NEW_TOKEN, 1)
    )


@formula(source=LECTURE + "RB-01, RB-05: perfect overlap at peak rates; nothing real is faster")
def step_floor_s(
    coefficients: StepCoefficients, decode_sequences: Number, kv_tokens: Token, prefill_tokens: Token, prefill_pairs: Token
) -> Second:
    """Floor of a step: the longest of all compute, all HBM traffic and all link traffic at peak rates.

    >>> round(float(step_floor_s(LLAMA_70B_TP8, 64, 64 * 1000.0, 0.0, 0.0)), 6)
    0.005969
    """
    rank_work, zero = place(coefficients, decode_sequences, kv_tokens, prefill_tokens, prefill_pairs), 0 * coefficients.dense_weights
    work = overlapped_s(
        FULL,
        dense_compute_s(coefficients.dense_compute, rank_work.tokens, coefficients.head_compute, rank_work.sampled),
        coefficients.dense_weights,
        expert_compute_s(coefficients.experts, rank_work.group_tokens, zero),
        expert_weights_s(coefficients.experts, rank_work.group_tokens, zero),
        attention_compute_s(coefficients.spans, rank_work, zero) / coefficients.attention_gain,
        kv_traffic_s(coefficients.spans, coefficients.state, coefficients.kv_write, rank_work),
    )
    return np.maximum(work, collectives_floor_s(coefficients.collectives, rank_work.tokens, zero))


@formula(source=LECTURE + "RB-02")
def compute_s(coefficients: StepCoefficients, decode_sequences: Number, kv_tokens: Token) -> Second:
    """Arithmetic time of a decode step at expected efficiency: projections, experts, attention, and their activations.

    >>> round(float(compute_s(LLAMA_70B_TP8, 64, 64 * 1000.0)), 6)
    0.002212
    """
    rank_work, zero, achieved = (
        place(coefficients, decode_sequences, kv_tokens, NONE, NONE),
        0 * coefficients.dense_weights,
        coefficients.achieved,
    )
    dense = dense_compute_s(coefficients.dense_compute, rank_work.tokens, coefficients.head_compute, rank_work.sampled) / achieved.compute
    experts = expert_compute_s(coefficients.experts, rank_work.group_tokens, zero) * coefficients.imbalance / achieved.expert_compute
    return (
        attention_compute_s(coefficients.spans, rank_work, zero) / achieved.decode_compute
        + (dense + experts)
        + activations_s(coefficients, rank_work, zero)
    )


@formula(source="definition; the step models that are not fitted leave it out")
def activations_s(coefficients: StepCoefficients, rank_work: RankWork, zero: Second) -> Second:
    """HBM time of the inputs and outputs of matmuls, norms and residuals, at expected efficiency.

    >>> round(float(activations_s(LLAMA_70B_TP8, place(LLAMA_70B_TP8, 64, 0.0, 0.0, 0.0), 0.0)), 6)
    0.000753
    """
    if coefficients.overlap != FITTED:
        return zero
    achieved = coefficients.achieved
    routed = expert_activations_s(coefficients.experts, rank_work.group_tokens, zero) * coefficients.imbalance / achieved.expert_activation
    return (
        coefficients.activations * rank_work.tokens / achieved.activation
        + coefficients.elementwise * rank_work.tokens / achieved.elementwise
        + routed
    )


@formula(source=LECTURE + "RB-02; at peak, routed work balanced")
def compute_floor_s(coefficients: StepCoefficients, decode_sequences: Number, kv_tokens: Token) -> Second:
    """Arithmetic time of a decode step at peak FLOP/s.

    >>> round(float(compute_floor_s(LLAMA_70B_TP8, 64, 64 * 1000.0)), 6)
    0.00116
    """
    rank_work, zero = place(coefficients, decode_sequences, kv_tokens, NONE, NONE), 0 * coefficients.dense_weights
    dense = dense_compute_s(coefficients.dense_compute, rank_work.tokens, coefficients.head_compute, rank_work.sampled)
    return attention_compute_s(coefficients.spans, rank_work, zero) / coefficients.attention_gain + (
        dense + expert_compute_s(coefficients.experts, rank_work.group_tokens, zero)
    )


@formula(source=LECTURE + "RB-03, RB-05, RB-23")
def weights_s(coefficients: StepCoefficients, decode_sequences: Number) -> Second:
    """Weight-read time of a decode step at expected efficiency: dense weights, and the routed experts that tokens use.

    >>> round(weights_s(LLAMA_70B_TP8, 64), 6)
    0.006341
    """
    tokens = place(coefficients, decode_sequences, NONE, NONE, NONE).group_tokens
    routed = expert_weights_s(coefficients.experts, tokens, 0 * coefficients.dense_weights)
    return coefficients.dense_weights / coefficients.achieved.memory + routed / coefficients.achieved.expert_memory


@formula(source=LECTURE + "RB-03")
def kv_s(coefficients: StepCoefficients, decode_sequences: Number, kv_tokens: Token) -> Second:
    """Time of KV and state traffic of a decode step at expected efficiency, and the fixed time of each attention block.

    >>> round(float(kv_s(LLAMA_70B_TP8, 64, 64 * 1000.0)), 6)
    0.000957
    """
    rank_work = place(coefficients, decode_sequences, kv_tokens, NONE, NONE)
    return (
        kv_traffic_s(coefficients.spans, coefficients.state, coefficients.kv_write, rank_work) / coefficients.achieved.decode_memory
        + coefficients.blocks * rank_work.sequences * coefficients.achieved.block
    )


@formula(source="alpha-beta model: Hockney 1994, Parallel Computing 20(3)")
def network_s(coefficients: StepCoefficients, decode_sequences: Number) -> Second:
    """Time of a decode step's collectives, each by its fastest algorithm at this size.

    >>> round(float(network_s(LLAMA_70B_TP8, 64)), 6)
    0.001779
    """
    return collectives_s(
        coefficients.collectives, place(coefficients, decode_sequences, NONE, NONE, NONE).tokens, 0 * coefficients.dense_weights
    )


@formula(source="definition")
def overhead_s(coefficients: StepCoefficients, decode_sequences: Number) -> Second:
    """Fixed cost of a decode step: kernel launches and engine overhead.

    >>> round(float(overhead_s(LLAMA_70B_TP8, 100)), 6)
    0.0026
    """
    return fixed_s(coefficients, place(coefficients, decode_sequences, NONE, NONE, NONE))

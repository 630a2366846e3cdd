"""The kernels of a step by class: dense and expert matmuls, decode and prefill attention, elementwise kernels; and their sum.

Inputs called compute, weights, activations and kv are seconds at peak (FLOP over the dense peak, bytes over the HBM bandwidth), so
that a law serves both one kernel and the sum over a step's layers.
"""

from __future__ import annotations

import numpy as np

from headway.core.formula import formula
from headway.core.units import Number, Second, Token
from headway.laws.step.coefficients import LLAMA_70B_TP8, RankWork, StepCoefficients  # noqa: F401 (the doctests' example)
from headway.laws.step.images import images_s
from headway.laws.step.parts import (
    decode_score_s,
    dense_compute_s,
    expert_activations_s,
    expert_compute_s,
    expert_weights_s,
    kv_traffic_s,
    latent_expansion_s,
    place,  # noqa: F401 (of the doctests)
    prefill_pad_s,
    prefill_score_s,
)

LECTURE = "Pope 2026 lecture, claims "
NO_SCAN: Second = 0.0
NO_TIME: Second = 1e-300  # avoids 0 / 0 where a step has no work
SCAN_CHUNK: Token = 64  # tokens of a chunk in flash-linear-attention and FlashInfer
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


@formula(source="FlashAttention: a query tile pays for its first and its masked tiles in full, as if each prompt token saw `pad` more")
def prefill_attention_s(pair_compute: Second, pad_compute: Second, eff_compute: Number) -> Second:
    """Time of prefill attention: causal pairs, and a pad per token that slows short prompts.

    >>> flop, peak = 4 * 128 * 8, 989.4e12  # Llama-3.1-70B, one layer, 8 of its 64 heads, an H100
    >>> round(prefill_attention_s(flop * 8192 * 8193 / 2 / peak, flop * 8192 * 400 / peak, 0.67) * 1e6, 1)
    227.6
    """
    return (pair_compute + pad_compute) / eff_compute


@formula(source="gated delta rule in chunks: Yang et al. 2024 (arXiv:2412.06464) section 3.3; one thread block per sequence and head")
def scan_s(longest: Token, tokens: Token, heads: Number, chunk: Second, heads_at_once: Number) -> Second:
    """Time of the scan of a step's prompts in one layer: a chunk waits for the one before, and heads that find no place wait their turn.

    So tensor parallelism, which takes heads away, does not make the scan of a single prompt faster.

    >>> scans = [scan_s(8192.0, 8192.0, heads, 2.8e-6, 102.0) for heads in (8, 64, 128)]  # Qwen3.5-397B on 8, 1 and half an H100
    >>> [round(seconds * 1e6) for seconds in scans]
    [358, 358, 450]
    """
    return chunk / SCAN_CHUNK * np.maximum(longest, tokens * (heads / heads_at_once))


@formula(source=LECTURE + "RB-02, RB-03: projections, dense and shared FFN, output head")
def dense_matmuls_s(coefficients: StepCoefficients, rank_work: RankWork) -> Second:
    """Time of the matmuls that every token passes through.

    >>> round(float(dense_matmuls_s(LLAMA_70B_TP8, place(LLAMA_70B_TP8, 64, 64 * 1000.0, 0.0, 0.0))), 6)
    0.006788
    """
    achieved = coefficients.achieved
    return matmul_s(
        compute=dense_compute_s(coefficients.dense_compute, rank_work.tokens, coefficients.head_compute, rank_work.sampled),
        weights=coefficients.dense_weights,
        activations=coefficients.activations * rank_work.tokens,
        eff_compute=achieved.compute,
        eff_memory=achieved.memory,
        eff_activation=achieved.activation,
        norm=achieved.norm,
    )


@formula(source=LECTURE + "RB-23, RB-24, MOE-02: of the fullest chip, whose routed work is `imbalance` times the mean")
def expert_matmuls_s(coefficients: StepCoefficients, rank_work: RankWork) -> Second:
    """Time of the grouped matmuls of routed experts.

    >>> float(expert_matmuls_s(LLAMA_70B_TP8, place(LLAMA_70B_TP8, 64, 64 * 1000.0, 0.0, 0.0)))
    0.0
    """
    achieved, experts, tokens = coefficients.achieved, coefficients.experts, rank_work.group_tokens
    return matmul_s(
        compute=expert_compute_s(experts, tokens) * coefficients.imbalance,
        weights=expert_weights_s(experts, tokens),
        activations=expert_activations_s(experts, tokens) * coefficients.imbalance,
        eff_compute=achieved.expert_compute,
        eff_memory=achieved.expert_memory,
        eff_activation=achieved.expert_activation,
        norm=achieved.expert_norm,
    )


@formula(source=LECTURE + "RB-03, CW-02, with a fixed time per pair of sequence and KV head")
def decode_kernels_s(coefficients: StepCoefficients, rank_work: RankWork) -> Second:
    """Time of attention of the decoding sequences, each to its own cache.

    >>> round(float(decode_kernels_s(LLAMA_70B_TP8, place(LLAMA_70B_TP8, 64, 64 * 1000.0, 0.0, 0.0))), 6)
    0.000957
    """
    achieved = coefficients.achieved
    return decode_attention_s(
        compute=decode_score_s(coefficients.spans, rank_work),
        kv=kv_traffic_s(coefficients.spans, coefficients.state, coefficients.kv_write, rank_work),
        blocks=coefficients.blocks * rank_work.sequences,
        eff_compute=achieved.decode_compute,
        eff_memory=achieved.decode_memory,
        block=achieved.block,
    )


@formula(source=LECTURE + "CW-02; causal mask, with the masked part of each tile")
def prefill_kernels_s(coefficients: StepCoefficients, rank_work: RankWork) -> Second:
    """Time of attention of a step's prompt tokens.

    >>> round(float(prefill_kernels_s(LLAMA_70B_TP8, place(LLAMA_70B_TP8, 0, 0.0, 2048.0, 2048.0**2 / 2))), 6)
    0.001377
    """
    achieved = coefficients.achieved
    return prefill_attention_s(
        pair_compute=prefill_score_s(coefficients.spans, rank_work) + latent_expansion_s(coefficients.spans, rank_work),
        pad_compute=prefill_pad_s(coefficients.spans, rank_work, achieved.prefill_pad),
        eff_compute=achieved.prefill_compute,
    )


@formula(source="gated delta rule in chunks: Yang et al. 2024 (arXiv:2412.06464) section 3.3")
def scan_kernels_s(coefficients: StepCoefficients, rank_work: RankWork) -> Second:
    """Time of the scans of a step's prompts in all layers; the longest is what the mean number of tokens attended to tells.

    >>> float(scan_kernels_s(LLAMA_70B_TP8, place(LLAMA_70B_TP8, 0, 0.0, 2048.0, 2048.0**2 / 2)))  # no layer scans
    0.0
    """
    achieved, longest = coefficients.achieved, rank_work.end - rank_work.start
    return sum(
        (
            term.layers * scan_s(longest, rank_work.prompt_tokens, term.heads, achieved.scan_chunk, achieved.scan_heads)
            for term in coefficients.scans
        ),
        start=NO_SCAN,
    )


@formula(source="bytes over the HBM bandwidth that such kernels reach")
def elementwise_kernels_s(coefficients: StepCoefficients, rank_work: RankWork) -> Second:
    """Time of norms, residuals and other elementwise kernels.

    >>> round(float(elementwise_kernels_s(LLAMA_70B_TP8, place(LLAMA_70B_TP8, 64, 64 * 1000.0, 0.0, 0.0))), 6)
    0.000331
    """
    return coefficients.elementwise * rank_work.tokens / coefficients.achieved.elementwise


@formula(source="one law per class of kernel (laws/step/step.py), classes one after the other")
def kernels_s(coefficients: StepCoefficients, rank_work: RankWork) -> Second:
    """Time of a step's arithmetic and HBM traffic, with kernel overlap as measured.

    >>> rank_work = place(LLAMA_70B_TP8, 64, 64 * 1000.0, 0.0, 0.0)
    >>> round(float(kernels_s(LLAMA_70B_TP8, rank_work)), 6)
    0.008075
    """
    matmuls = dense_matmuls_s(coefficients, rank_work)
    if coefficients.experts:
        matmuls = matmuls + expert_matmuls_s(coefficients, rank_work)
    attention = decode_kernels_s(coefficients, rank_work) + prefill_kernels_s(coefficients, rank_work)
    if coefficients.scans:
        attention = attention + scan_kernels_s(coefficients, rank_work)
    if coefficients.images:
        matmuls = matmuls + images_s(coefficients.images, rank_work.prompt_tokens) / coefficients.achieved.compute
    return attention + (matmuls + elementwise_kernels_s(coefficients, rank_work))

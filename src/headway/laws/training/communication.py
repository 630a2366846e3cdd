"""Collectives of training: number per step, bytes, and batch sizes at which matmuls hide them.

Symbols of How to Scale Your Model, chapter Training: B tokens of a step, F width of the FFN, FSDP over X chips on M_X axes of a torus,
tensor parallelism over Y chips on M_Y axes. A switch is one axis. Largest Y that pays: `tensor_ways_paid`.
"""

from __future__ import annotations

import numpy as np

from headway.core.formula import formula
from headway.core.units import ONE_TOKEN, Byte, BytePerSecond, BytePerToken, FlopPerSecond, FlopPerToken, Number, Second, Token

KORTHIKANTI = "Korthikanti et al. 2022 (arXiv:2205.05198) section 4.2.2"
ZERO = "Rajbhandari et al. 2019, ZeRO (arXiv:1910.02054), section 7"


@formula(source=KORTHIKANTI + ": an all-gather and a reduce-scatter forward, and the same backward, of each block of matmuls")
def tp_exchanges(sublayers: Number, recomputed: Number) -> Number:
    """Gathers and scatters of a layer's activations per micro-batch under tensor parallelism.

    >>> tp_exchanges(2, 0), tp_exchanges(2, 1)  # a GPT layer, without and with full recomputation
    (8, 12)
    """
    return sublayers * (4 + 2 * recomputed)


@formula(source="Llama 3 (arXiv:2407.21783) section 3.3.2: keys and values are gathered forward and backward, their gradients scattered")
def cp_exchanges(recomputed: Number) -> Number:
    """Gathers and scatters of a layer's keys and values per micro-batch under context parallelism.

    >>> cp_exchanges(0)
    3
    """
    return 3 + recomputed


@formula(source="Llama 3 (arXiv:2407.21783) section 3.3.2: what attention of other ranks reads; latents are sent before they are expanded")
def cache_bytes(elements: tuple[Number, ...], element: Byte) -> BytePerToken:
    """Bytes of a token's keys and values in a layer: a latent and a rotary key (DeepSeek-V3).

    >>> cache_bytes((576,), 2)
    1152.0
    """
    return sum(elements) * element / ONE_TOKEN


@formula(source="DeepSeek-V3 (arXiv:2412.19437) section 3.2.1: dispatch and combine forward, and backward")
def expert_exchanges(recomputed: Number) -> Number:
    """Pairs of dispatch and combine of an MoE layer per micro-batch.

    >>> expert_exchanges(0)
    2
    """
    return 2 + recomputed


@formula(source="Megatron-LM, moe/token_dispatcher.py: all-to-all of tokens permuted by expert, on the way there and back")
def copied_message(active: Number, dispatched: BytePerToken, combined: BytePerToken, ranks: Number, ep: Number) -> BytePerToken:
    """Bytes of a token that a rank hands to an all-to-all: a copy for every expert, there and back (Qwen3-30B-A3B in bf16, 8 ranks).

    >>> copied_message(8, 4096, 4096, 8, 8)
    65536.0
    """
    return active * (dispatched + combined) * (ranks / ep)


@formula(source="FSDP and ZeRO-2 in a pipeline keep what they gathered, and whole gradients, until a step's last micro-batch")
def exchanging_stage(stage: Number, pp: Number) -> Number:
    """ZeRO stage that sets the collectives of a step: in a pipeline stage 1 instead of stages 2 and 3.

    >>> float(exchanging_stage(3, 16)), float(exchanging_stage(2, 8)), float(exchanging_stage(3, 1))  # Llama-3.1-405B over 16 stages
    (1.0, 1.0, 3.0)
    """
    return np.where((stage >= 2) & (pp > 1), 1, stage)


@formula(source=ZERO + ": stage 3 gathers weights forward and backward of every micro-batch, stages 1 and 2 once, stage 0 its gradients")
def gathers_per_step(stage: Number, count: Number) -> Number:
    """All-gathers of a chip's parameters per step of `count` micro-batches.

    >>> float(gathers_per_step(3, 4)), float(gathers_per_step(1, 4))
    (8.0, 1.0)
    """
    return np.where(stage >= 3, 2 * count, 1)


@formula(source=ZERO + ": stage 3 keeps shards of frozen weights too; below it only what was updated is gathered")
def gathered_share(stage: Number, trained: Number) -> Number:
    """Share of a chip's parameters that is gathered (LoRA of 1 %, sharded weights and whole ones).

    >>> float(gathered_share(3, 0.01)), float(gathered_share(1, 0.01))
    (1.0, 0.01)
    """
    return np.where(stage >= 3, 1, trained)


@formula(source=ZERO + ": from stage 2 on gradients are reduced after every micro-batch, else once")
def reductions_per_step(stage: Number, count: Number) -> Number:
    """Reduce-scatters of a chip's gradients per step.

    >>> float(reductions_per_step(3, 4)), float(reductions_per_step(0, 4))
    (4.0, 1.0)
    """
    return np.where(stage >= 2, count, 1)


@formula(source=ZERO + ": without sharding the reduced gradients are what is gathered")
def gathered_element(stage: Number, parameter: Byte, gradient: Byte) -> Byte:
    """Bytes per gathered parameter (or gradient, at ZeRO stage 0).

    >>> float(gathered_element(1, 2, 4)), float(gathered_element(0, 2, 4))
    (2.0, 4.0)
    """
    return np.where(stage >= 1, parameter, gradient)


@formula(source="ZeRO-3 gathers behind every micro-batch; the others reduce behind the last one's backward pass alone")
def reduction_cover_s(stage: Number, count: Number, micro_batch: Second) -> Second:
    """Compute time that can hide the collectives over parameters.

    >>> float(reduction_cover_s(3, 4, 2.0)), float(reduction_cover_s(1, 4, 2.0))
    (8.0, 2.0)
    """
    return np.where(stage >= 2, count * micro_batch, micro_batch)


BOOK = "How to Scale Your Model, chapter Training"
EXPERT_FLOP: FlopPerToken = 6.0  # three matrices of a gated expert, a multiply and an add each
TWO_MATRICES: Number = 2.0  # matrices of a plain FFN


@formula(source=BOOK + ": B / X > C / W for FSDP; B / X > C / W for data parallelism; the same for pods with the links between them")
def tokens_to_hide(message_bytes: Byte, flop: FlopPerToken, peak: FlopPerSecond, bandwidth: BytePerSecond) -> Token:
    """Tokens per weight copy whose matmuls hide sending its parameters, from bytes and FLOP per parameter.

    FSDP over one axis of TPU v5p; data parallelism of H100 over NVLink, and over InfiniBand.

    >>> tokens_to_hide(2, 2.0, 459e12, 180e9), [round(tokens_to_hide(4, 4.0, 989e12, link)) for link in (450e9, 50e9)]
    (2550.0, [2198, 19780])
    """
    return message_bytes / flop * (peak / bandwidth)


@formula(source=BOOK + ": fully-sharded weights are gathered twice and their gradients scattered once; others gather and scatter once")
def parameter_bytes_sent(weight: Byte, gradient: Byte, stage: Number) -> Byte:
    """Bytes sent per parameter in a forward and backward pass (ZeRO-3), or in a backward pass (ZeRO-1).

    >>> float(parameter_bytes_sent(2, 2, 3)), float(parameter_bytes_sent(2, 4, 1))
    (6.0, 6.0)
    """
    return np.where(stage >= 3, 2 * weight + gradient, weight + gradient)


@formula(source="Kaplan et al. 2020 (arXiv:2001.08361): 2 forward, 4 backward; ZeRO-3 sends behind both, others behind the latter")
def flop_to_hide_behind(forward: FlopPerToken, stage: Number) -> FlopPerToken:
    """FLOP per parameter and token that overlap with the exchange of parameters.

    >>> float(flop_to_hide_behind(2.0, 3)), float(flop_to_hide_behind(2.0, 1))
    (6.0, 4.0)
    """
    return forward * np.where(stage >= 3, 3.0, 2.0)


@formula(source=BOOK + ": 4 D F / (Y W M_X) + 4 B D / (X W M_Y) in 16 bits; the two do not overlap each other")
def mixed_exchange_s(
    tokens: Token, hidden: Number, width: Number, fsdp: Number, tp: Number, fsdp_bw: BytePerSecond, tp_bw: BytePerSecond, element: Byte
) -> Second:
    """Forward communication time of one FFN under FSDP and tensor parallelism (4096 tokens a chip of v5p, 16 x 4 chips).

    >>> round(mixed_exchange_s(4096 * 64, 8192, 32768, 16, 4, 360e9, 180e9, 2) * 1e3, 2)
    3.73
    """
    weights = TWO_MATRICES * hidden * width / tp / fsdp_bw
    activations = TWO_MATRICES * hidden * (tokens / ONE_TOKEN) / fsdp / tp_bw
    return element * (weights + activations)


@formula(source=BOOK + ": X_opt = sqrt(B / F * M_X / M_Y * N)")
def best_fsdp_ways(tokens: Token, width: Number, fsdp_axes: Number, tp_axes: Number, chips: Number) -> Number:
    """FSDP degree with the least communication next to tensor parallelism (2 M tokens, F = 32,768, 4x4x4 v5p, two axes for FSDP).

    >>> round(float(best_fsdp_ways(2_097_152, 32_768, 2, 1, 64)), 1)
    90.5
    """
    return np.sqrt(tokens / ONE_TOKEN / width * (fsdp_axes / tp_axes) * chips)


@formula(source=BOOK + ": B / N > 4 alpha^2 / (M_X M_Y F), alpha = C / W in 16 bits")
def mixed_tokens_to_hide(alone: Token, fsdp_axes: Number, tp_axes: Number, width: Number) -> Token:
    """Tokens per chip that hide FSDP and tensor parallelism at their best split; `alone`: FSDP only, one axis (v5p, F = 30,000).

    >>> round(mixed_tokens_to_hide(2550.0, 2, 1, 30_000))
    434
    """
    return 4 * alone * (alone / ONE_TOKEN) / (fsdp_axes * tp_axes * width)


@formula(source="dispatch and combine, k h (q_d + q_c) / W, against a gated expert's matmuls, 6 k h f_e / C")
def expert_width_to_hide(dispatched: BytePerToken, combined: BytePerToken, peak: FlopPerSecond, bandwidth: BytePerSecond) -> Number:
    """Least expert width whose matmuls hide dispatch and combine (H100 over InfiniBand, dispatch in fp8; DeepSeek-V3 has 2,048).

    >>> round(expert_width_to_hide(1.0, 2.0, 989e12, 50e9))
    9890
    """
    return (dispatched + combined) / EXPERT_FLOP * (peak / bandwidth)


@formula(source="ring attention: keys and values of a hop, against the scores of a chip's own tokens with them")
def context_tokens_to_hide(kv_share: Number, element: Byte, flop: FlopPerToken, peak: FlopPerSecond, bandwidth: BytePerSecond) -> Token:
    """Tokens per chip of a sequence that hide a hop of context parallelism (Llama-3.1-405B: 8 of 128 heads, InfiniBand).

    >>> round(context_tokens_to_hide(8 / 128, 2, 2.0, 989e12, 50e9))
    1236
    """
    return kv_share * element / flop * (peak / bandwidth)


@formula(source="definition: a plain FFN has 2 D F parameters")
def sublayer_width(params: Number, sublayers: Number, hidden: Number) -> Number:
    """Width of a plain FFN with the mean parameters between two exchanges of a model (Llama-3.1-70B, one layer).

    >>> sublayer_width(855_638_016, 2, 8192)
    26112.0
    """
    return params / sublayers / (TWO_MATRICES * hidden)

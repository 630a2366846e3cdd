"""When communication hides behind matmuls: tokens per chip, ways of tensor parallelism, widths of experts. Conditions at every peak.

Symbols of How to Scale Your Model, chapter Training: B tokens of a step, F width of the FFN, X ways of FSDP on M_X axes of a torus, Y of
tensor parallelism on M_Y axes. A switch is one axis. Most tensor ways that pay are in link_balance.py.
"""

from __future__ import annotations

import numpy as np

from headway.formula import formula
from headway.units import Byte, BytePerSecond, BytePerToken, FlopPerSecond, FlopPerToken, Number, Second, Token

BOOK = "How to Scale Your Model, chapter Training"
EXPERT_FLOP: FlopPerToken = 6.0  # three matrices of a gated expert, a multiply and an add each
TWO_MATRICES: Number = 2.0  # of a plain FFN
ONE_TOKEN: Token = 1.0


@formula(source=BOOK + ": B / X > C / W for FSDP; B / X > C / W for data parallelism; the same for pods with the links between them")
def tokens_to_hide(message_bytes: Byte, flop: FlopPerToken, peak: FlopPerSecond, bandwidth: BytePerSecond) -> Token:
    """Tokens that chips sharing one copy of the weights multiply while its parameters are sent: so many bytes, so many FLOPs, of each.

    FSDP over one axis of TPU v5p; data parallelism of H100 over NVLink, and over InfiniBand.

    >>> tokens_to_hide(2, 2.0, 459e12, 180e9), [round(tokens_to_hide(4, 4.0, 989e12, link)) for link in (450e9, 50e9)]
    (2550.0, [2198, 19780])
    """
    return message_bytes / flop * (peak / bandwidth)


@formula(source=BOOK + ": fully-sharded weights are gathered twice and their gradients scattered once; others gather and scatter once")
def parameter_bytes_sent(weight: Byte, gradient: Byte, stage: Number) -> Byte:
    """Bytes sent for each parameter and pass over it, forward and backward (ZeRO-3; ZeRO-1, behind the backward pass alone).

    >>> float(parameter_bytes_sent(2, 2, 3)), float(parameter_bytes_sent(2, 4, 1))
    (6.0, 6.0)
    """
    return np.where(stage >= 3, 2 * weight + gradient, weight + gradient)


@formula(source="Kaplan et al. 2020 (arXiv:2001.08361): 2 forward, 4 backward; ZeRO-3 sends behind both, others behind the latter")
def flop_to_hide_behind(forward: FlopPerToken, stage: Number) -> FlopPerToken:
    """FLOPs of each parameter and token that its exchange can run beside.

    >>> float(flop_to_hide_behind(2.0, 3)), float(flop_to_hide_behind(2.0, 1))
    (6.0, 4.0)
    """
    return forward * np.where(stage >= 3, 3.0, 2.0)


@formula(source=BOOK + ": 4 D F / (Y W M_X) + 4 B D / (X W M_Y) in 16 bits; the two do not overlap each other")
def mixed_exchange_s(
    tokens: Token, hidden: Number, width: Number, fsdp: Number, tp: Number, fsdp_bw: BytePerSecond, tp_bw: BytePerSecond, element: Byte
) -> Second:
    """Forward communication of one FFN under FSDP and tensor parallelism together (4096 tokens a chip of v5p, 16 x 4 chips).

    >>> round(mixed_exchange_s(4096 * 64, 8192, 32768, 16, 4, 360e9, 180e9, 2) * 1e3, 2)
    3.73
    """
    weights = TWO_MATRICES * hidden * width / tp / fsdp_bw
    activations = TWO_MATRICES * hidden * (tokens / ONE_TOKEN) / fsdp / tp_bw
    return element * (weights + activations)


@formula(source=BOOK + ": X_opt = sqrt(B / F * M_X / M_Y * N)")
def best_fsdp_ways(tokens: Token, width: Number, fsdp_axes: Number, tp_axes: Number, chips: Number) -> Number:
    """FSDP ways that send least beside tensor parallelism (2 M tokens, F = 32,768, 4x4x4 chips of v5p, two axes for FSDP).

    >>> round(float(best_fsdp_ways(2_097_152, 32_768, 2, 1, 64)), 1)
    90.5
    """
    return np.sqrt(tokens / ONE_TOKEN / width * (fsdp_axes / tp_axes) * chips)


@formula(source=BOOK + ": B / N > 4 alpha^2 / (M_X M_Y F), alpha = C / W in 16 bits")
def mixed_tokens_to_hide(alone: Token, fsdp_axes: Number, tp_axes: Number, width: Number) -> Token:
    """Tokens per chip that hide FSDP and tensor parallelism at their best; `alone` is what FSDP needs on one axis (v5p, F = 30,000).

    >>> round(mixed_tokens_to_hide(2550.0, 2, 1, 30_000))
    434
    """
    return 4 * alone * (alone / ONE_TOKEN) / (fsdp_axes * tp_axes * width)


@formula(source="dispatch and combine, k h (q_d + q_c) / W, against a gated expert's matmuls, 6 k h f_e / C")
def expert_width_to_hide(dispatched: BytePerToken, combined: BytePerToken, peak: FlopPerSecond, bandwidth: BytePerSecond) -> Number:
    """Width of an expert from which its matmuls hide its own exchange (H100 over InfiniBand, dispatch in fp8; DeepSeek-V3 has 2,048).

    >>> round(expert_width_to_hide(1.0, 2.0, 989e12, 50e9))
    9890
    """
    return (dispatched + combined) / EXPERT_FLOP * (peak / bandwidth)


@formula(source="ring attention: keys and values of a hop, against the scores of a chip's own tokens with them")
def context_tokens_to_hide(kv_share: Number, element: Byte, flop: FlopPerToken, peak: FlopPerSecond, bandwidth: BytePerSecond) -> Token:
    """Tokens of a sequence per chip that hide a hop of context parallelism (Llama-3.1-405B: 8 of 128 heads, InfiniBand).

    >>> round(context_tokens_to_hide(8 / 128, 2, 2.0, 989e12, 50e9))
    1236
    """
    return kv_share * element / flop * (peak / bandwidth)


@formula(source="definition: a plain FFN has 2 D F parameters")
def sublayer_width(params: Number, sublayers: Number, hidden: Number) -> Number:
    """Width of a plain FFN of as many parameters as the mean part of a model between two exchanges (Llama-3.1-70B, one layer).

    >>> sublayer_width(855_638_016, 2, 8192)
    26112.0
    """
    return params / sublayers / (TWO_MATRICES * hidden)

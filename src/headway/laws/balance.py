"""The balanced batch: where the time to compute equals the time to read memory (physical convention).

One parameter costs each token a multiply and an add, and costs the step `weight_byte` bytes once, so the two are equal at a number of
tokens that depends on the chip alone: the hardware ratio. Everything here is in tokens per step; decode gives each sequence one.
"""

from __future__ import annotations

import numpy as np

from headway.formula import formula
from headway.units import Byte, BytePerSecond, BytePerToken, FlopPerSecond, FlopPerToken, Number, Second, SecondPerToken, Token

MULTIPLY_ADD: FlopPerToken = 2.0  # one multiply and one add per parameter and token
ONE_TOKEN: Token = 1.0  # what a decode step gives each sequence


@formula(source="Scaling Book, Roofline: critical batch")
def hardware_ratio(weight_byte: Byte, peak_flops: FlopPerSecond, mem_bw: BytePerSecond) -> Token:
    """Tokens per weight read at which a chip computes as long as it reads: the same for every model.

    >>> round(hardware_ratio(2.0, 989.4e12, 3.35e12))  # H100, bf16
    295
    """
    return weight_byte * peak_flops / (MULTIPLY_ADD * mem_bw)


@formula(source="compute time = weight time, solved for the batch")
def balanced_batch(ratio: Token, total_params: Number, active_params: Number) -> Token:
    """Tokens per step that use the compute and the bandwidth of the whole model equally, KV apart.

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
    """Tokens per step that balance once each brings its KV to read; infinite when KV alone takes as long as compute.

    >>> float(balanced_batch_with_kv(1.0e-3, 4.0e-7, 2.0e-7)), float(balanced_batch_with_kv(1.0e-3, 2.0e-7, 2.0e-7))
    (5000.0, inf)
    """
    slack = compute_s_per_token - kv_s_per_token
    return weights_s / np.where(slack > 0, slack, compute_s_per_token) * np.where(slack > 0, 1.0, np.inf)


@formula(source="two floating-point operations per active parameter over the peak")
def compute_s_per_token(active_params: Number, peak_flops: FlopPerSecond) -> SecondPerToken:
    """The compute that no batch amortises, per token.

    >>> f"{compute_s_per_token(37e9, 324e15):.3g}"  # DeepSeek-V3, fp8, on 72 B200
    '2.28e-07'
    """
    return MULTIPLY_ADD * active_params / peak_flops


@formula(source="context times KV bytes per token over the bandwidth")
def kv_s_per_token(context: Token, kv_bytes_per_token: BytePerToken, mem_bw: BytePerSecond) -> SecondPerToken:
    """The KV read that no batch amortises, per token generated.

    >>> f"{kv_s_per_token(8192, 35136.0, 576e12):.3g}"  # DeepSeek-V3, fp8 cache
    '5e-07'
    """
    return context * kv_bytes_per_token / mem_bw / ONE_TOKEN


@formula(source="share of the peak that a memory-bound step uses")
def mfu_below_balance(tokens: Token, balanced_tokens: Token) -> Number:
    """Below the balanced batch the chip waits for memory, so its use of compute falls in proportion.

    >>> round(float(mfu_below_balance(2400.0, 5441.0)), 3), float(mfu_below_balance(9600.0, 5441.0))
    (0.441, 1.0)
    """
    return np.minimum(tokens / balanced_tokens, 1.0)


@formula(source="definition: model FLOP utilisation")
def mfu(compute_s: Second, step_s: Second) -> Number:
    """The share of a step in which the compute units had work.

    >>> mfu(5e-3, 20e-3)
    0.25
    """
    return compute_s / step_s


@formula(source="KV time = compute time, solved for the context: c BW / kappa")
def kv_balanced_context(compute_s_per_token: SecondPerToken, kv_bytes_per_token: BytePerToken, mem_bw: BytePerSecond) -> Token:
    """The context at which reading a sequence's KV takes as long as computing its token: no batch balances beyond it.

    >>> round(kv_balanced_context(2.284e-7, 35136.0, 576e12))  # DeepSeek-V3, fp8 cache, on GB200 NVL72
    3744
    """
    return compute_s_per_token * mem_bw / kv_bytes_per_token * ONE_TOKEN

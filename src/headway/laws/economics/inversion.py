"""A price read backwards: parameters, KV bytes and chip time that a price sheet implies, by inverting the laws of cost.

Forwards: price = chip time of a token x chip price x markup. Prefill is compute; a decode step reads weights once for its batch and
each sequence's KV, computes, and has a fixed cost. Backwards: each rate gives one equation, and priors supply the other unknowns.
"""

from __future__ import annotations

import numpy as np

from headway.core.formula import formula
from headway.core.units import (
    ONE_TOKEN,
    Byte,
    BytePerSecond,
    BytePerToken,
    Number,
    Second,
    SecondPerToken,
    Token,
    UsdPerSecond,
    UsdPerToken,
    UsdPerTokenSquared,
)

ONE_DOLLAR: UsdPerToken = 1e-6  # one dollar a million tokens
NONE: Number = 1.0  # the share of a whole that every price holds at least
LECTURE = "Pope 2026 lecture, claims "


# -- forwards -------------------------------------------------------------------------------------------------------------------


@formula(source="prefill of DeepSeek-V3 at 15 % of peak beside half of it for a dense model, both published; the fitted step model agrees")
def sparse_mfu(dense_mfu: Number, sparsity: Number, exponent: Number) -> Number:
    """MFU of a sparse model's prefill, below a dense model's because experts are small matrices that need exchanges.

    >>> round(float(sparse_mfu(0.5, 671 / 37, 0.42)), 2)  # DeepSeek-V3
    0.15
    """
    return dense_mfu * sparsity**-exponent


@formula(source="weights that must fit: the rest of the memory holds KV")
def chips_for(weights: Byte, capacity: Byte, share: Number) -> Number:
    """Chips of one replica that hold the weights within a share of their memory.

    >>> round(float(chips_for(671e9, 80e9, 0.5)), 1)  # DeepSeek-V3 in fp8 on H100
    16.8
    """
    return np.maximum(weights / (share * capacity), NONE)


@formula(source="a step's fixed cost and its weights are shared by the batch; KV and compute are each sequence's own")
def decode_chip_s(
    compute: SecondPerToken, fixed: Second, chips: Number, weights: Byte, kv: Byte, batch: Number, mem_bw: BytePerSecond,
    eff_compute: Number, eff_memory: Number,
) -> SecondPerToken:  # fmt: skip
    """Chip time per output token.

    >>> one = decode_chip_s(3.74e-5, 1.5e-3, 16.8, 671e9, 4989 * 35136.0, 704, 3.35e12, 0.35, 0.67)  # DeepSeek-V3
    >>> f"{one:.3g}"
    '0.000645'
    """
    read = (weights / batch + kv) / (mem_bw * eff_memory)
    return compute / eff_compute + (fixed * chips / batch + read) / ONE_TOKEN


@formula(source="context times what each token of it keeps")
def context_kv(context: Token, kv: BytePerToken) -> Byte:
    """KV bytes that one decoded token reads.

    >>> context_kv(4989, 35136.0)  # DeepSeek-V3, fp8, mean context of its published day
    175293504.0
    """
    return context * kv


@formula(source="fitted to open models' list prices: they rise less than the cost, and older models keep the prices of their day")
def list_rate(scale: UsdPerToken, cost: UsdPerToken, power: Number, growth: Number, years: Number) -> UsdPerToken:
    """What hosts ask for a token, from its cost on busy reference chips and the years beyond the usual age of a model on sale.

    >>> round(float(list_rate(1.2e-6, 0.25e-6, 0.75, 1.5, 0.0)) * 1e6, 3)  # USD/Mtok
    0.424
    """
    return scale * (cost / ONE_DOLLAR) ** power * growth**years


# -- backwards ------------------------------------------------------------------------------------------------------------------


@formula(source="a straight line of the logarithm of size on those of both prices, fitted to open models")
def size_line(scale: Number, rate_in: UsdPerToken, rate_out: UsdPerToken, power_in: Number, power_out: Number) -> Number:
    """Parameters of a model by a plain regression on its list prices, which knows no cost.

    >>> round(float(size_line(50e9, 2e-6, 4e-6, 0.5, 0.25)) / 1e9)  # in billions
    100
    """
    return scale * (rate_in / ONE_DOLLAR) ** power_in * (rate_out / ONE_DOLLAR) ** power_out


@formula(source="prefill_chip_s and two operations per parameter, solved for the parameters")
def active_from_prefill(chip_s: SecondPerToken, mfu: Number, compute_of_one: SecondPerToken) -> Number:
    """Active parameters of a model from the chip time of a prompt token; `compute_of_one` is the time of one parameter.

    >>> round(active_from_prefill(2.49e-4, 0.15, 2 / 1978.9e12) / 1e9, 1)  # DeepSeek-V3, in billions
    37.0
    """
    return chip_s * mfu / compute_of_one


@formula(source="definition: a secant of rate against context")
def rate_slope(shorter_rate: UsdPerToken, longer_rate: UsdPerToken, shorter: Token, longer: Token) -> UsdPerTokenSquared:
    """Increase of the output rate per further token of context.

    >>> round(rate_slope(5e-6, 9e-6, 16e3, 80e3) * 1e12, 1)  # Qwen3-Coder-480B's first two tiers, USD/Mtok per M tokens
    62.5
    """
    return (longer_rate - shorter_rate) / (longer - shorter)


@formula(source="definition")
def within_tier(above: Token, to: Token, share: Number) -> Token:
    """Context at a share of a price sheet's context tier.

    >>> within_tier(32e3, 128e3, 0.5)  # Qwen3-Coder-480B's second tier
    80000.0
    """
    return above + (to - above) * share


@formula(source="reading KV at full bandwidth, sold at cost")
def kv_slope_bound(slope: UsdPerTokenSquared, mem_bw: BytePerSecond, chip: UsdPerSecond) -> BytePerToken:
    """KV bytes per token that the price slope over context tiers pays for at cost.

    >>> round(kv_slope_bound(62.5e-12, 3.35e12, 2 / 3600) / 1e3)  # Qwen3-Coder-480B on H800, kB; 127 in fp8
    377
    """
    return slope / chip * mem_bw * ONE_TOKEN


@formula(source=LECTURE + "AP-04, AP-05: compute time = KV time at the context where the price steps")
def kv_at_knee(compute: SecondPerToken, mem_bw: BytePerSecond, knee: Token) -> BytePerToken:
    """KV bytes per token if a price step is the context at which KV reads take as long as compute, both at peak.

    >>> round(kv_at_knee(2 * 100e9 / 2000e12, 3.3333e12, 200e3))  # the lecture's 100B model, chip of 300 FLOP per byte pair
    1667
    """
    return compute * mem_bw / knee * ONE_TOKEN


@formula(source=LECTURE + "AP-13: a step of so much at a context, from a decode that is memory-bound by the output/input ratio")
def kv_joint(knee: BytePerToken, step: Number, ratio: Number) -> BytePerToken:
    """KV bytes per token that satisfy price step and output/input ratio together; `knee` is kv_at_knee at the same context.

    >>> round(kv_joint(1667.0, 1.5, 5.0)), round(kv_joint(1667.0 * 200 / 500, 1.5, 5.0))  # at 200k, at 500k
    (4168, 1667)
    """
    return knee * (step - 1) * ratio


@formula(
    source=LECTURE + "AP-12: at one margin prices are chip time, and a token costs the same FLOP in both",
    needs="prefill_mfu <= 1, price_ratio >= prefill_mfu",
)
def decode_mfu_of_prices(price_ratio: Number, prefill_mfu: Number) -> Number:
    """FLOP utilisation of decode that the price ratio of output to input implies, at one margin: memory binds where it is low.

    >>> decode_mfu_of_prices(5.0, 0.6)  # Claude's ratio of list prices, prefill at 60 %
    0.12
    """
    return prefill_mfu / price_ratio

"""A cached prefix: load it or compute it again, store it or not, by time and by cost."""

from __future__ import annotations

from headway.core.formula import formula
from headway.core.units import (
    Byte,
    BytePerSecond,
    BytePerToken,
    FlopPerSecond,
    FlopPerToken,
    Number,
    Second,
    SecondPerToken,
    Token,
    TokenPerSecond,
    UsdPerByteSecond,
    UsdPerMtok,
    UsdPerSecond,
    UsdPerToken,
)
from headway.laws.economics.cost import MILLION

FIVE_MINUTES = "Gray and Putzolu 1987, the five-minute rule, with a token's KV for the page"


FORWARD: FlopPerToken = 2.0  # a multiply and an add for each parameter


@formula(source="2 N: a multiply and an add for each active parameter; attention left out")
def forward_flop(active: Number) -> FlopPerToken:
    """FLOP per token of a forward pass, attention scores excluded.

    >>> forward_flop(70.55e9) / 1e9  # Llama 3.3 70B, GFLOP
    141.1
    """
    return active * FORWARD


@formula(source="arithmetic over what the chip reaches")
def recompute_s_per_token(flop: FlopPerToken, peak: FlopPerSecond, mfu: Number) -> SecondPerToken:
    """Chip time per token to recompute its KV.

    >>> round(recompute_s_per_token(2 * 70.55e9, 989.4e12, 0.5) * 1e6)  # Llama 3.3 70B on an H100 at half its peak
    285
    """
    return flop / (peak * mfu)


@formula(source="what was measured, per chip")
def measured_s_per_token(fresh: TokenPerSecond) -> SecondPerToken:
    """Chip time per uncached prompt token, from a chip's measured prefill rate.

    >>> round(measured_s_per_token(4030) * 1e6)  # DeepSeek-V3 on an H800, its own day
    248
    """
    return 1 / fresh


@formula(source="cost over price")
def chip_s_of_cost(cost: UsdPerMtok, price: UsdPerSecond) -> SecondPerToken:
    """Chip time per prompt token, from the cost of a million prompt tokens.

    >>> round(chip_s_of_cost(0.138, 2 / 3600) * 1e6)  # DeepSeek-V3
    248
    """
    return cost / price / MILLION


@formula(source="latency, then bytes over bandwidth")
def fetch_s(prefix_bytes: Byte, bandwidth: BytePerSecond, latency: Second) -> Second:
    """Time to load a cached prefix from a tier.

    >>> round(fetch_s(40e9, 190e9, 10e-6), 4)  # 128k tokens of a 70B from a remote pool over 8 x 400 Gb/s
    0.2105
    """
    return latency + prefix_bytes / bandwidth


@formula(source="computing again less loading")
def load_gain_s(prefix: Token, recompute: SecondPerToken, load: SecondPerToken, latency: Second) -> Second:
    """Time saved by loading a prefix instead of recomputing it; negative where loading is slower.

    >>> round(load_gain_s(8192, 1 / 4030, 35136 / 14e9, 80e-6), 3)  # DeepSeek-V3 from one TLC drive
    2.012
    """
    return prefix * (recompute - load) - latency


@formula(source=FIVE_MINUTES)
def storing_gain_usd(reuse: Number, recompute: UsdPerToken, load: UsdPerToken, write: UsdPerToken, holding: UsdPerToken) -> UsdPerToken:
    """Gain of storing a token's KV for one hold over recomputing it, when it is reused with probability `reuse`.

    >>> round(storing_gain_usd(0.8, 0.138e-6, 0.001e-6, 0.007e-6, 0.018e-6) * 1e6, 4)  # DeepSeek-V3, 1 h in DDR5, USD/Mtok
    0.0846
    """
    return reuse * (recompute - load) - write - holding


@formula(source=FIVE_MINUTES + ": W + H, and the chips that wait for a load")
def hold_and_wait_usd(hold: UsdPerToken, reuse: Number, load: UsdPerToken) -> UsdPerToken:
    """Cost of one hold of a token's KV, which is used with probability `reuse`: what storing_gain_usd takes from recomputing.

    >>> round(hold_and_wait_usd(0.034e-6, 0.5, 0.01e-6) * 1e6, 3)  # USD per million tokens
    0.039
    """
    return hold + reuse * load


@formula(source=FIVE_MINUTES + ": (p (R - L) - W) / (b h)")
def break_even_hold_s(
    reuse: Number, recompute: UsdPerToken, load: UsdPerToken, write: UsdPerToken, kv: BytePerToken, holding: UsdPerByteSecond
) -> Second:
    """Longest hold for which storing a token's KV pays.

    >>> round(break_even_hold_s(1, 0.138e-6, 0.0, 0.0, 35136, 0.025e-9 / 3600) / 60, 1)  # DeepSeek-V3 in HBM at $2/h, minutes
    9.4
    """
    return (reuse * (recompute - load) - write) / (kv * holding)


@formula(source="definition")
def per_mtok(cost: UsdPerToken) -> UsdPerMtok:
    """Cost per million tokens from a cost per token.

    >>> round(per_mtok(0.138e-6), 3)
    0.138
    """
    return cost * MILLION

"""Memory tiers for a KV cache: holding cost, capacity against bandwidth, number of devices, write endurance of flash."""

from __future__ import annotations

import numpy as np

from headway.core.formula import formula
from headway.core.units import (
    Byte,
    BytePerSecond,
    BytePerToken,
    FlopPerSecond,
    FlopPerToken,
    Number,
    PerSecond,
    Second,
    SecondPerToken,
    Token,
    TokenPerSecond,
    UsdPerByte,
    UsdPerByteSecond,
    UsdPerMtok,
    UsdPerSecond,
    UsdPerToken,
)
from headway.laws.economics.cost import MILLION


@formula(source="definition: a full device is written anew once in each hold")
def rewrites(hold: Second) -> PerSecond:
    """Drive writes per second of data replaced after each hold, to compare with a drive's rating.

    >>> round(rewrites(300.0) * 86400), round(rewrites(3600.0) * 86400)  # a day, at 5 minutes and at 1 hour
    (288, 24)
    """
    return 1 / hold


@formula(source="rated drive writes over the rated life")
def endurance(capacity: Byte, drive_writes: PerSecond, rated_life: Second) -> Byte:
    """Bytes that can be written to a device over its rated life.

    >>> round(endurance(30.72e12, 1 / 86400, 5 * 365.25 * 86400) / 1e15, 1)  # TLC at 1 drive write a day for 5 years, PB
    56.1
    """
    return capacity * drive_writes * rated_life


@formula(source="endurance over the rate of writing")
def worn_out_s(endurance: Byte, write_rate: BytePerSecond) -> Second:
    """Life of a device at a write rate.

    >>> round(worn_out_s(56.1e15, 7.85e9) / 86400)  # a TLC drive's share of 353 GB/s over 45 drives, days
    83
    """
    return endurance / write_rate


@formula(source="holding, more devices where bandwidth wants them, and wear")
def hold_usd_per_byte(holding: UsdPerByteSecond, devices_per_full: Number, hold: Second, wear: UsdPerByte) -> UsdPerByte:
    """Cost of one hold of a byte, writing included.

    >>> ddr, tlc = hold_usd_per_byte(1.43e-16, 1.0, 300.0, 0.0), hold_usd_per_byte(3.39e-18, 7.31, 300.0, 1.95e-13)
    >>> f"{ddr * 1e9:.2g} {tlc * 1e9:.2g}"  # 5 minutes, USD/GB: wear keeps short holds out of flash
    '4.3e-05 0.0002'
    """
    return holding * devices_per_full * hold + wear


@formula(source="equal cost of a hold, both tiers bought by capacity")
def wear_earned_s(wear: UsdPerByte, holding_above: UsdPerByteSecond, holding_below: UsdPerByteSecond) -> Second:
    """Shortest hold at which cheaper holding has paid for the write endurance it uses.

    >>> round(wear_earned_s(1.95e-13, 1.426e-16, 3.39e-18) / 60, 1)  # DDR5 above TLC, minutes
    23.3
    """
    return wear / (holding_above - holding_below)


@formula(source="equal cost of a hold, the upper tier bought by capacity, the lower by bandwidth")
def wear_earned_busy_s(
    wear: UsdPerByte, holding_above: UsdPerByteSecond, holding_below: UsdPerByteSecond, balanced_hold_below: Second
) -> Second:
    """Shortest hold that pays for write endurance where the lower tier is bought for bandwidth rather than capacity.

    >>> round(wear_earned_busy_s(1.95e-13, 1.426e-16, 3.39e-18, 2194.3) / 60, 1)  # DDR5 above TLC, one use, minutes
    23.7
    """
    return (wear + holding_below * balanced_hold_below) / holding_above


@formula(source="definition")
def rewrites_over_rated(rewrites: PerSecond, rated: PerSecond) -> Number:
    """Drive writes over the drive's rating.

    >>> round(rewrites_over_rated(1 / 300, 1 / 86400))  # holds of 5 minutes on TLC rated for 1 drive write a day
    288
    """
    return rewrites / rated


LECTURE = "Reiner Pope, blackboard lecture, 2026-04-29"


@formula(source="middle of a range that spans a factor")
def middle_price(low: UsdPerByte, high: UsdPerByte) -> UsdPerByte:
    """Geometric mean of a price range, used where only a range is known.

    >>> round(float(middle_price(12e-9, 27e-9)) * 1e9, 6)  # DDR5, USD/GB
    18.0
    """
    return np.sqrt(low * high)


@formula(source="straight line over the device's life; power and host as a share of its price")
def holding_usd(price: UsdPerByte, overhead: Number, life: Second) -> UsdPerByteSecond:
    """Cost to hold a byte for a second in a purchased device.

    >>> f"{holding_usd(15e-9, 0.2, 4 * 365.25 * 86400) * 3600e9:.3g}"  # DDR5, USD per GB and hour
    '0.000513'
    """
    return price * (1 + overhead) / life


@formula(source=LECTURE + ": a tier is right when the share used to hold equals the share used to read")
def balanced_hold_s(capacity: Byte, bandwidth: BytePerSecond, uses: Number) -> Second:
    """Hold time at which a device is full and busy at once, at `uses` moves per hold: its drain time for one use.

    >>> round(balanced_hold_s(30.72e12, 14e9, 1) / 60, 1)  # a TLC drive of 30.72 TB, minutes
    36.6
    """
    return uses * capacity / bandwidth


@formula(source=LECTURE + ": the share used to hold over the share used to read, or its inverse")
def share_mismatch(hold: Second, balanced_hold: Second) -> Number:
    """Ratio of a hold to a device's balanced hold, or its inverse if larger: 1 where capacity and bandwidth are equally used.

    >>> round(float(share_mismatch(300.0, 2194.3)), 2), round(float(share_mismatch(3600.0, 2194.3)), 2)  # a TLC drive, 5 minutes and 1 hour
    (7.31, 1.64)
    """
    return np.maximum(hold / balanced_hold, balanced_hold / hold)


@formula(source="rated workload: what the maker allows on average, below what the device can stream")
def sustained_bandwidth(bandwidth: BytePerSecond, rated: BytePerSecond) -> BytePerSecond:
    """Bandwidth sustained for years, within a rating (a disk of 275 MB/s rated for 550 TB a year).

    >>> float(sustained_bandwidth(275e6, 17.43e6)) / 1e6
    17.43
    """
    return np.minimum(bandwidth, rated)


@formula(source="device price x max(1 / capacity, uses / (hold x bandwidth)), over price / capacity")
def devices_per_full(balanced_hold: Second, hold: Second) -> Number:
    """Devices needed over devices that the capacity alone requires: above 1 where bandwidth is the limit.

    >>> round(float(devices_per_full(2194.3, 300.0)), 2), float(devices_per_full(2194.3, 3600.0))  # a TLC drive, 5 minutes and 1 hour
    (7.31, 1.0)
    """
    return np.maximum(balanced_hold / hold, 1)


@formula(source="device price x max(1 / capacity, uses / (hold x bandwidth))")
def device_usd_per_byte(price: UsdPerByte, devices_per_full: Number) -> UsdPerByte:
    """Purchase price per byte held, devices bought for bandwidth included.

    >>> round(device_usd_per_byte(10950 / 30.72e12, 7.31) * 1e9, 2)  # TLC, 5 minutes, USD/GB
    2.61
    """
    return price * devices_per_full


@formula(source="reads and writes take turns, each at its own bandwidth")
def devices_by_turns(read: BytePerSecond, write_rate: BytePerSecond, read_bw: BytePerSecond, write_bw: BytePerSecond) -> Number:
    """Devices needed for bandwidth where writing is slower than reading.

    >>> round(devices_by_turns(278e9, 353e9, 14e9, 10e9), 1)  # DeepSeek's day, TLC drives
    55.2
    """
    return read / read_bw + write_rate / write_bw


# -- what a time to live finds --------------------------------------------------------------------------------------------------


@formula(source="distribution of an exponential pause: a use renews the time to live, so that a pause no longer than it is a hit")
def hit_share(ttl: Second, pause: Second) -> Number:
    """Share of returns that find their cache, where pauses are exponential about their mean.

    >>> round(float(hit_share(300.0, 300.0)), 3)  # a time to live as long as the mean pause
    0.632
    """
    return 1 - np.exp(-ttl / pause)


@formula(source="mean of the shorter of the pause and the time to live; times the rate of writes it is what is held (Little's law)")
def mean_hold_s(ttl: Second, pause: Second) -> Second:
    """How long a cache is kept until it is used or its time to live ends, where pauses are exponential about their mean.

    >>> round(float(mean_hold_s(300.0, 300.0)), 1)
    189.6
    """
    return pause * (1 - np.exp(-ttl / pause))


# -- A cached prefix: load it or compute it again, store it or not, by time and by cost -----------------------------------------


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

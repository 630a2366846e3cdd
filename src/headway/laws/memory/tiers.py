"""Which tier of memory a KV cache should live in: what holding costs, when bandwidth decides, how many devices, how fast flash wears."""

from __future__ import annotations

import numpy as np

from headway.core.formula import formula
from headway.core.units import (
    Byte,
    BytePerSecond,
    BytePerToken,
    Number,
    PerSecond,
    Second,
    Token,
    TokenPerSecond,
    Usd,
    UsdPerByte,
    UsdPerByteSecond,
    UsdPerSecond,
)


@formula(source="definition: a full device is written anew once in each hold")
def rewrites(hold: Second) -> PerSecond:
    """Drive writes that holding something else every so often takes, to be set beside what a drive is rated for.

    >>> round(rewrites(300.0) * 86400), round(rewrites(3600.0) * 86400)  # a day, at 5 minutes and at 1 hour
    (288, 24)
    """
    return 1 / hold


@formula(source="rated drive writes over the rated life")
def endurance(capacity: Byte, drive_writes: PerSecond, rated_life: Second) -> Byte:
    """What may be written to a device before it is worn out.

    >>> round(endurance(30.72e12, 1 / 86400, 5 * 365.25 * 86400) / 1e15, 1)  # TLC at 1 drive write a day for 5 years, PB
    56.1
    """
    return capacity * drive_writes * rated_life


@formula(source="price over endurance")
def wear_usd(price: UsdPerByte, drive_writes: PerSecond, rated_life: Second) -> UsdPerByte:
    """What a byte written takes off a device's life.

    >>> f"{wear_usd(10950 / 30.72e12, 1 / 86400, 5 * 365.25 * 86400) * 1e9:.3g}"  # TLC at 1 drive write a day for 5 years, USD/GB
    '0.000195'
    """
    return price / (drive_writes * rated_life)


@formula(source="endurance over the rate of writing")
def worn_out_s(endurance: Byte, write_rate: BytePerSecond) -> Second:
    """How long a device lasts while it is written to at this rate.

    >>> round(worn_out_s(56.1e15, 7.85e9) / 86400)  # a TLC drive's share of 353 GB/s over 45 drives, days
    83
    """
    return endurance / write_rate


@formula(source="holding, more devices where bandwidth wants them, and wear")
def hold_usd_per_byte(holding: UsdPerByteSecond, devices_per_full: Number, hold: Second, wear: UsdPerByte) -> UsdPerByte:
    """What one hold of a byte costs, its writing included.

    >>> ddr, tlc = hold_usd_per_byte(1.43e-16, 1.0, 300.0, 0.0), hold_usd_per_byte(3.39e-18, 7.31, 300.0, 1.95e-13)
    >>> f"{ddr * 1e9:.2g} {tlc * 1e9:.2g}"  # 5 minutes, USD/GB: wear keeps short holds out of flash
    '4.3e-05 0.0002'
    """
    return holding * devices_per_full * hold + wear


@formula(source="equal cost of a hold, both tiers bought by capacity")
def wear_earned_s(wear: UsdPerByte, holding_above: UsdPerByteSecond, holding_below: UsdPerByteSecond) -> Second:
    """The hold from which cheaper holding has paid for the wear of writing.

    >>> round(wear_earned_s(1.95e-13, 1.426e-16, 3.39e-18) / 60, 1)  # DDR5 above TLC, minutes
    23.3
    """
    return wear / (holding_above - holding_below)


@formula(source="equal cost of a hold, the upper tier bought by capacity, the lower by bandwidth")
def wear_earned_busy_s(
    wear: UsdPerByte, holding_above: UsdPerByteSecond, holding_below: UsdPerByteSecond, balanced_hold_below: Second
) -> Second:
    """The same where the hold is so short that the lower tier is bought for its bandwidth.

    >>> round(wear_earned_busy_s(1.95e-13, 1.426e-16, 3.39e-18, 2194.3) / 60, 1)  # DDR5 above TLC, one use, minutes
    23.7
    """
    return (wear + holding_below * balanced_hold_below) / holding_above


@formula(source="definition")
def rewrites_over_rated(rewrites: PerSecond, rated: PerSecond) -> Number:
    """How many times more is written than a drive is rated for.

    >>> round(rewrites_over_rated(1 / 300, 1 / 86400))  # holds of 5 minutes on TLC rated for 1 drive write a day
    288
    """
    return rewrites / rated


@formula(source="definition")
def wear_beyond(wear: UsdPerByte, wear_above: UsdPerByte) -> UsdPerByte:
    """What writing to the lower tier wears out beyond writing to the upper one.

    >>> wear_beyond(1.95e-13, 0.0)  # TLC under DDR5
    1.95e-13
    """
    return wear - wear_above


LECTURE = "Reiner Pope, blackboard lecture, 2026-04-29"


@formula(source="middle of a range that spans a factor")
def middle_price(low: UsdPerByte, high: UsdPerByte) -> UsdPerByte:
    """The price to reckon with where only a range is known.

    >>> round(float(middle_price(12e-9, 27e-9)) * 1e9, 6)  # DDR5, USD/GB
    18.0
    """
    return np.sqrt(low * high)


@formula(source="straight line over the device's life; power and host as a share of its price")
def holding_usd(price: UsdPerByte, overhead: Number, life: Second) -> UsdPerByteSecond:
    """What it costs to hold a byte for a second in a device that is bought.

    >>> f"{holding_usd(15e-9, 0.2, 4 * 365.25 * 86400) * 3600e9:.3g}"  # DDR5, USD per GB and hour
    '0.000513'
    """
    return price * (1 + overhead) / life


@formula(source="HBM is not sold without its chip")
def chip_byte_price(chip: Usd, capacity: Byte) -> UsdPerByte:
    """What a byte of HBM is bought for: its share of the whole chip.

    >>> round(chip_byte_price(32000, 141e9) * 1e9)  # H200, USD/GB
    227
    """
    return chip / capacity


@formula(source="opportunity: memory that holds a cache holds no running request, and the chip is paid for by its memory")
def chip_holding_usd(price: UsdPerSecond, capacity: Byte) -> UsdPerByteSecond:
    """What it costs to hold a byte in HBM, where it takes its share of the chip.

    >>> round(chip_holding_usd(2 / 3600, 80e9) * 3600e9, 6)  # H100 at $2/h, USD per GB and hour
    0.025
    """
    return price / capacity


@formula(source=LECTURE + ": a tier is right when the share used to hold equals the share used to read")
def balanced_hold_s(capacity: Byte, bandwidth: BytePerSecond, uses: Number) -> Second:
    """The time to hold data, used so often in that time, at which a device is full and busy at once: its drain time when used once.

    >>> round(balanced_hold_s(30.72e12, 14e9, 1) / 60, 1)  # a TLC drive of 30.72 TB, minutes
    36.6
    """
    return uses * capacity / bandwidth


@formula(source=LECTURE + ": the share used to hold over the share used to read, or its inverse")
def share_mismatch(hold: Second, balanced_hold: Second) -> Number:
    """How far a hold is from keeping a device as full as it is busy, either way: 1 where the two shares are equal.

    >>> round(float(share_mismatch(300.0, 2194.3)), 2), round(float(share_mismatch(3600.0, 2194.3)), 2)  # a TLC drive, 5 minutes and 1 hour
    (7.31, 1.64)
    """
    return np.maximum(hold / balanced_hold, balanced_hold / hold)


@formula(source="rated workload: what the maker allows on average, below what the device can stream")
def sustained_bandwidth(bandwidth: BytePerSecond, rated: BytePerSecond) -> BytePerSecond:
    """The bandwidth to reckon with for years (a disk of 275 MB/s rated for 550 TB a year).

    >>> float(sustained_bandwidth(275e6, 17.43e6)) / 1e6
    17.43
    """
    return np.minimum(bandwidth, rated)


@formula(source="device price x max(1 / capacity, uses / (hold x bandwidth)), over price / capacity")
def devices_per_full(balanced_hold: Second, hold: Second) -> Number:
    """How many times the capacity that the data fill has to be bought for the sake of bandwidth.

    >>> round(float(devices_per_full(2194.3, 300.0)), 2), float(devices_per_full(2194.3, 3600.0))  # a TLC drive, 5 minutes and 1 hour
    (7.31, 1.0)
    """
    return np.maximum(balanced_hold / hold, 1)


@formula(source="device price x max(1 / capacity, uses / (hold x bandwidth))")
def device_usd_per_byte(price: UsdPerByte, devices_per_full: Number) -> UsdPerByte:
    """Money in devices for a byte held, those bought for bandwidth included.

    >>> round(device_usd_per_byte(10950 / 30.72e12, 7.31) * 1e9, 2)  # TLC, 5 minutes, USD/GB
    2.61
    """
    return price * devices_per_full


@formula(source="equal money in devices: the upper tier bought by capacity, the lower by bandwidth")
def cheaper_below_from_s(price_above: UsdPerByte, price_below: UsdPerByte, balanced_hold_below: Second) -> Second:
    """The hold from which the slower tier needs less money in devices.

    >>> round(cheaper_below_from_s(15e-9, 10950 / 30.72e12, 2194.3), 1)  # DDR5 above TLC
    52.1
    """
    return price_below * balanced_hold_below / price_above


@formula(source="geometric mean")
def hold_between(shorter: Second, longer: Second) -> Second:
    """A hold between two, as far from one as from the other by ratio.

    >>> float(hold_between(300.0, 4800.0))
    1200.0
    """
    return np.sqrt(shorter * longer)


@formula(source="definition")
def cache_traffic(rate: TokenPerSecond, kv: BytePerToken) -> BytePerSecond:
    """Bytes a second that tokens found, or tokens made, move.

    >>> round(cache_traffic(342e9 / 86400, 70272) / 1e9)  # DeepSeek's day of 2025-02-27, hits, bf16, GB/s
    278
    """
    return rate * kv


@formula(source="Little's law: what is written stays for its time")
def cache_size(write_rate: BytePerSecond, ttl: Second) -> Byte:
    """Room for a cache that keeps everything so long.

    >>> round(cache_size(353e9, 3600.0) / 1e15, 2)  # DeepSeek's day, one hour, PB
    1.27
    """
    return write_rate * ttl


@formula(source="definition")
def devices_by_capacity(size: Byte, capacity: Byte) -> Number:
    """Devices that hold so much.

    >>> round(devices_by_capacity(1.27e15, 30.72e12))  # DeepSeek's day, one hour, TLC drives
    41
    """
    return size / capacity


@formula(source="definition; reads and writes at one bandwidth")
def devices_by_bandwidth(traffic: BytePerSecond, bandwidth: BytePerSecond) -> Number:
    """Devices that move so much.

    >>> round(devices_by_bandwidth(631e9, 14e9)), round(devices_by_bandwidth(631e9, 0.275e9))  # DeepSeek's day, TLC drives and disks
    (45, 2295)
    """
    return traffic / bandwidth


@formula(source="reads and writes take turns, each at its own bandwidth")
def devices_by_turns(read: BytePerSecond, write_rate: BytePerSecond, read_bw: BytePerSecond, write_bw: BytePerSecond) -> Number:
    """Devices that move so much where writing is slower than reading.

    >>> round(devices_by_turns(278e9, 353e9, 14e9, 10e9), 1)  # DeepSeek's day, TLC drives
    55.2
    """
    return read / read_bw + write_rate / write_bw


@formula(source="definition")
def uses_per_hold(traffic: BytePerSecond, write_rate: BytePerSecond) -> Number:
    """How often a byte is moved, its writing included, while it is held.

    >>> round(uses_per_hold(631e9, 353e9), 2)  # DeepSeek's day
    1.79
    """
    return traffic / write_rate


@formula(source="the larger of room and traffic")
def devices_for(size: Byte, traffic: BytePerSecond, capacity: Byte, bandwidth: BytePerSecond) -> Number:
    """Devices that hold so much and move so much.

    >>> round(float(devices_for(1.27e15, 631e9, 30.72e12, 14e9)), 1)  # DeepSeek's day on TLC drives: bandwidth, just
    45.1
    """
    return np.maximum(size / capacity, traffic / bandwidth)


@formula(source="definition")
def held_by(devices: Number, capacity: Byte) -> Byte:
    """What so many devices hold.

    >>> round(held_by(45.1, 30.72e12) / 1e15, 2)  # TLC drives, PB
    1.39
    """
    return devices * capacity


@formula(source="definition")
def devices_usd(devices: Number, capacity: Byte, price: UsdPerByte) -> Usd:
    """Money in so many devices.

    >>> round(devices_usd(45.1, 30.72e12, 10950 / 30.72e12) / 1e6, 2)  # TLC, million USD
    0.49
    """
    return devices * capacity * price


@formula(source="requests x the part of their prompts that is found")
def hit_token_rate(rate: PerSecond, hit: Token) -> TokenPerSecond:
    """Prompt tokens a second that a described service finds in its cache.

    >>> hit_token_rate(100.0, 4500.0)
    450000.0
    """
    return rate * hit


@formula(source="requests x what of them is new: prompt tokens that were missed, and the answer")
def new_token_rate(rate: PerSecond, new_prompt: Token, output: Token) -> TokenPerSecond:
    """Tokens a second whose KV a described service makes, and stores.

    >>> new_token_rate(100.0, 3500.0, 1000.0)
    450000.0
    """
    return rate * (new_prompt + output)

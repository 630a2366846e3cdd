"""What writing does to a device: flash is rated for so many writes, so that short holds wear it out."""

from __future__ import annotations

from headway.formula import formula
from headway.units import Byte, BytePerSecond, Number, PerSecond, Second, UsdPerByte, UsdPerByteSecond


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

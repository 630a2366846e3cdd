"""What a device costs: to buy, to hold a byte in, to write a byte to. Glue: the arithmetic is in laws/."""

from __future__ import annotations

from typing import Any

from headway.laws import tiers as laws
from headway.laws.wear import wear_usd
from headway.tier import MemoryTier


def price_of(device: MemoryTier) -> Any:
    """What a byte of a device costs: the stated price, or the middle of its range; None where it is rented or no price is known."""
    if device.price is not None or device.price_low is None or device.price_high is None:
        return device.price
    return laws.middle_price(device.price_low, device.price_high)


def holding_of(device: MemoryTier) -> Any:
    """What it costs to hold a byte for a second: a fee, or a price written off; None where neither is known."""
    price = price_of(device)
    if device.fee is not None or price is None:
        return device.fee
    return laws.holding_usd(price, device.need("overhead"), device.need("life"))


def wear_of(device: MemoryTier) -> Any:
    """What writing a byte takes off a device's life; 0 for a memory that does not wear, None for flash whose rating is not known."""
    price = price_of(device)
    if device.memory != "flash":
        return 0.0
    if device.drive_writes is None or device.rated_life is None or price is None:
        return None
    return wear_usd(price, device.drive_writes, device.rated_life)

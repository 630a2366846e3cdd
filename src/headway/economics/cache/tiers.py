"""Tiers for a KV cache: the chip's own memory or a catalogue device, with costs at both ends of its price range."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from headway.core import catalog as facts
from headway.core.catalog import Catalog
from headway.core.errors import BadValue, MissingFact, check_known
from headway.core.quantity import known
from headway.core.schema import scalar
from headway.core.units import Number
from headway.hardware.chip import Chip
from headway.hardware.chip_price import PriceQuote
from headway.hardware.memory_tier import MemoryTier, price_of
from headway.hardware.memory_tier import tier as device_of
from headway.laws import tiers as laws

CHIP_MEMORY = "hbm"  # memory of the serving chip
NO_WEAR = known(0.0, "no wear", "USD/byte", "constant", "this memory is not worn out by writing")
EDITED = "tier."


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberRange:
    """A number with the low and high end of its range; all None if unknown."""

    value: Any = None
    low: Any = None
    high: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheTier:
    """A memory tier for KV. A rented store has a holding cost, but no capacity, bandwidth or price."""

    name: str  # name as typed by the user
    device: str
    memory: str
    capacity: Any
    read_bw: Any
    write_bw: Any
    rated_bw: Any  # average bandwidth allowed by the maker, if lower
    price: NumberRange  # USD/byte
    dated: str  # date of the price
    holding: NumberRange  # USD/byte/s
    wear: NumberRange  # USD/byte written
    drive_writes: Any  # rated full writes per second
    rated_life: Any  # rated life in seconds

    @property
    def in_place(self) -> bool:
        """Whether KV in this tier is read in place, without loading."""
        return self.memory == "hbm"

    @property
    def sustained_bw(self) -> Any:
        """What reads may take on average: the bandwidth, or what the maker allows where that is less."""
        return self.read_bw if self.rated_bw is None else laws.sustained_bandwidth(self.read_bw, self.rated_bw)


def own_memory(chip: Chip, price: PriceQuote) -> CacheTier:
    """The chip's HBM as a tier: holding costs its share of the chip's price, and capacity is bought with whole chips."""
    capacity, bandwidth = chip.need("hbm"), chip.need("hbm_bw")
    bought = max((row for row in chip.costs if row.metric == "capex_per_chip"), key=lambda row: row.value.date, default=None)
    ends = NumberRange() if bought is None else NumberRange(value=bought.value, low=bought.low, high=bought.high)
    return CacheTier(
        name=CHIP_MEMORY,
        device=f"{chip.name}'s own",
        memory="hbm",
        capacity=capacity,
        read_bw=bandwidth,
        write_bw=bandwidth,
        rated_bw=None,
        price=_map_span(ends, lambda usd: usd / capacity),
        dated=bought.value.date if bought else "",
        holding=_map_span(_ends(price.value, price.low, price.high), lambda usd: usd / capacity),
        wear=NumberRange(value=NO_WEAR, low=NO_WEAR, high=NO_WEAR),
        drive_writes=None,
        rated_life=None,
    )


def place_of(device: MemoryTier, name: str = "") -> CacheTier:
    """A catalogue device as a tier; MissingFact if neither its price nor a fee is known."""
    price = _price(device)
    if price.value is None and device.fee is None:
        scope_note = " (of the whole chip: HBM is not sold alone)" if device.memory == "hbm" else ""
        how = f"give it with --set tier.{name or device.name}.price=$15/GB, or leave the tier out"
        raise MissingFact(device.name, f"price{scope_note}", how)
    if device.fee is not None:
        holding = NumberRange(value=device.fee, low=device.fee, high=device.fee)
    else:
        holding = _map_span(price, lambda usd: laws.holding_usd(usd, device.need("overhead"), device.need("life")))
    return CacheTier(
        name=name or device.name, device=device.device or device.name, memory=device.memory, capacity=device.capacity,
        read_bw=device.read_bw, write_bw=device.write_bw, rated_bw=device.rated_bw, price=price, dated=_dated(device),
        holding=holding, wear=_wear(device, price), drive_writes=device.drive_writes, rated_life=device.rated_life,
    )  # fmt: skip


def _price(device: MemoryTier) -> NumberRange:
    """The price of a byte; for HBM the price of the whole chip, since its stacks are not sold alone."""
    if device.memory == "hbm":
        return _ends(device.price, device.price, device.price)
    return _ends(price_of(device), device.price_low, device.price_high)


def _ends(value: Number, low: Number, high: Number) -> NumberRange:
    return NumberRange(value=value, low=value if low is None else low, high=value if high is None else high)


def _dated(device: MemoryTier) -> str:
    ranged = None if device.memory == "hbm" else device.price_low
    fact = next((candidate for candidate in (device.price, ranged, device.fee) if candidate is not None), None)
    return getattr(fact, "date", "")


def _wear(device: MemoryTier, price: NumberRange) -> NumberRange:
    """Wear in USD per byte written, from price and rated writes; unknown for flash without a rating."""
    if device.memory != "flash":
        return NumberRange(value=NO_WEAR, low=NO_WEAR, high=NO_WEAR)
    if device.drive_writes is None or device.rated_life is None or price.value is None:
        return NumberRange()
    most = device.drive_writes if device.drive_writes_high is None else device.drive_writes_high
    rated = {"value": device.drive_writes, "low": most, "high": device.drive_writes}
    return NumberRange(**{end: getattr(price, end) / (writes * device.rated_life) for end, writes in rated.items()})


def _map_span(span: NumberRange, law: Callable[[Any], Any]) -> NumberRange:
    return NumberRange() if span.value is None else NumberRange(value=law(span.value), low=law(span.low), high=law(span.high))


# -- names and edits --------------------------------------------------------------------------------------------------------------


def device_named(name: str, edits: dict[str, Any], catalog: Catalog | None = None) -> MemoryTier:
    """A catalogue device with the user's edits."""
    return replace(device_of(name, catalog), **edits)


def edit_of(text: str) -> tuple[str, dict[str, Any]]:
    """`tier.flash.price=$0.2/GB` as a tier's name and the facts that it replaces.

    >>> edit_of("tier.flash.price=$0.2/GB")[0], round(edit_of("tier.flash.price=$0.2/GB")[1]["price"] * 1e9, 3)
    ('flash', 0.2)
    """
    key, equals, value = text.partition("=")
    name, dot, fact = key.strip().removeprefix(EDITED).rpartition(".")
    fact = fact.strip().replace("-", "_")
    if not equals or not dot or not name.strip():
        raise BadValue("--set", text, "tier.NAME.FACT=VALUE, such as tier.flash.price=$0.2/GB")
    fields = facts.declared(MemoryTier)
    check_known("tier fact", fact, fields)
    number = scalar(value, fields[fact], f"--set {key.strip()}")
    ends = ("price", "price_low", "price_high") if fact == "price" else (fact,)
    return name.strip(), dict.fromkeys(ends, number)

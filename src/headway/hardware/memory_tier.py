"""A memory tier that can hold a KV cache: one device, its size, speed and write endurance, and its costs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from headway.core import catalog as facts
from headway.core.catalog import Catalog, default_catalog
from headway.core.errors import BadFile, MissingFact, UnknownName
from headway.core.schema import Field
from headway.core.spellings import EXAMPLE
from headway.hardware.chip import bandwidth, memory_size
from headway.laws import tiers as laws

MEMORIES = ("hbm", "ddr", "cxl", "remote", "flash", "disk", "store")  # fastest first
TEXTS = ("memory", "device", "notes")
ENTRIES = ("name", *TEXTS, "facts", "sources")


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryTier:
    """Facts of a device; each number is a Sourced in SI, or None where no public source was found."""

    name: str
    memory: str  # one of MEMORIES
    device: str = ""
    notes: str = ""
    year: Annotated[Any, Field(help="year of the device", integer=True, low=1990, high=2100)] = None
    capacity: Annotated[Any, memory_size("what the device holds")] = None
    read_bw: Annotated[Any, bandwidth("sequential reading")] = None
    write_bw: Annotated[Any, bandwidth("sequential writing")] = None
    rated_bw: Annotated[Any, bandwidth("what its maker allows on average over years, reads and writes together")] = None
    latency_low: Annotated[Any, Field("s", "time to the first byte, low end")] = None
    latency_high: Annotated[Any, Field("s", "time to the first byte, high end")] = None
    price: Annotated[Any, Field("USD/byte", "one stated price of what holds a byte")] = None
    price_low: Annotated[Any, Field("USD/byte", "price of a byte, low end")] = None
    price_high: Annotated[Any, Field("USD/byte", "price of a byte, high end")] = None
    price_earlier: Annotated[Any, Field("USD/byte", "the stated price a year before")] = None
    fee: Annotated[Any, Field("USD/byte/s", "list price of holding a byte, where it is rented")] = None
    life: Annotated[Any, Field("s", "time over which its price is written off")] = None
    overhead: Annotated[Any, Field(help="power and host as a share of its price", open_low=False)] = None
    drive_writes: Annotated[Any, Field("1/s", "rated writes of the whole device, low end")] = None
    drive_writes_high: Annotated[Any, Field("1/s", "rated writes of the whole device, high end")] = None
    rated_life: Annotated[Any, Field("s", "time for which it is rated to be written to so")] = None

    def need(self, key: str) -> Any:
        """The fact, or MissingFact with the flag that supplies it."""
        fields = facts.declared(MemoryTier)
        if key not in fields:
            raise UnknownName("tier fact", key, fields)
        value = getattr(self, key)
        if value is None:
            example = EXAMPLE[fields[key].unit].split(" or ")[0]
            raise MissingFact(self.name, key, f'give it in a catalogue folder: tiers/{self.name}.toml with {key} = "{example}"')
        return value


def tier(name: str, catalog: Catalog | None = None) -> MemoryTier:
    """A device of the catalogue; `ddr`, `flash`, `disk`, `remote` and `hbm` name a typical one.

    >>> tier("flash").name, tier("flash").read_bw, tier("disk").device
    ('tlc_31tb', 14000000000.0, '30TB HAMR CMR (275 MB/s)')
    """
    where = catalog or default_catalog()
    path = where.find("tiers", name)
    if path is None:
        raise UnknownName("tier", name, where.names("tiers"), "hbm, ddr, cxl, remote, flash, disk and store name a usual device of each")
    return read(path)


def tiers(catalog: Catalog | None = None) -> tuple[MemoryTier, ...]:
    """All devices, faster memories first, within one memory by year."""
    devices = (read(path) for path in (catalog or default_catalog()).files("tiers").values())
    return tuple(sorted(devices, key=lambda device: (MEMORIES.index(device.memory), device.year or 0, device.capacity or 0, device.name)))


def read(path: Path) -> MemoryTier:
    """A tier from its file."""
    document = facts.read(path)
    facts.only(document, ENTRIES, path)
    texts = {key: facts.text(document, key, path) for key in TEXTS}
    if texts["memory"] not in MEMORIES:
        raise BadFile(path, f"memory: got {texts['memory']!r}; wants one of {', '.join(MEMORIES)}")
    return MemoryTier(name=path.stem, **texts, **facts.numbers(document, MemoryTier, path.stem, path))


def own_price(device: MemoryTier) -> Any:
    """Price per byte of the memory alone: of HBM the stacks', where `price` is that of the chip that it is sold with."""
    ranged = device.price_low is not None and device.price_high is not None
    return laws.middle_price(device.price_low, device.price_high) if device.memory == "hbm" and ranged else price_of(device)


def price_of(device: MemoryTier) -> Any:
    """Price per byte of a device: as stated, or the middle of its range; None where it is rented or no price is known."""
    if device.price is not None or device.price_low is None or device.price_high is None:
        return device.price
    return laws.middle_price(device.price_low, device.price_high)


def holding_of(device: MemoryTier) -> Any:
    """Cost to hold a byte for a second: a fee, or a depreciated price; None where neither is known."""
    price = price_of(device)
    if device.fee is not None or price is None:
        return device.fee
    return laws.holding_usd(price, device.need("overhead"), device.need("life"))


def wear_of(device: MemoryTier) -> Any:
    """Cost of write endurance per byte written; 0 for a memory that does not wear, None for flash without a known rating."""
    price = price_of(device)
    if device.memory != "flash":
        return 0.0
    if device.drive_writes is None or device.rated_life is None or price is None:
        return None
    return price / (device.drive_writes * device.rated_life)

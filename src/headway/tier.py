"""A tier of memory that can hold a KV cache: one device, what it holds, how fast it is read and written, what it costs and how it wears."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from headway import facts
from headway.catalog import Catalog, default_catalog
from headway.errors import BadFile, MissingFact, UnknownName
from headway.schema import Q
from headway.units import EXAMPLE

MEMORIES = ("hbm", "ddr", "cxl", "remote", "flash", "disk", "store")  # the upper ones first
TEXTS = ("memory", "device", "notes")
ENTRIES = ("name", *TEXTS, "facts", "sources")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """What is known of a device; each number is a Known in SI, or None where no public source was found."""

    name: str
    memory: str  # one of MEMORIES
    device: str = ""
    notes: str = ""
    year: Annotated[Any, Q(help="year of the device", whole=True, low=1990, high=2100)] = None
    capacity: Annotated[Any, Q("byte", "what the device holds")] = None
    read_bw: Annotated[Any, Q("byte/s", "sequential reading")] = None
    write_bw: Annotated[Any, Q("byte/s", "sequential writing")] = None
    rated_bw: Annotated[Any, Q("byte/s", "what its maker allows on average over years, reads and writes together")] = None
    latency_low: Annotated[Any, Q("s", "time to the first byte, low end")] = None
    latency_high: Annotated[Any, Q("s", "time to the first byte, high end")] = None
    price: Annotated[Any, Q("USD/byte", "one stated price of what holds a byte")] = None
    price_low: Annotated[Any, Q("USD/byte", "price of a byte, low end")] = None
    price_high: Annotated[Any, Q("USD/byte", "price of a byte, high end")] = None
    price_earlier: Annotated[Any, Q("USD/byte", "the stated price a year before")] = None
    fee: Annotated[Any, Q("USD/byte/s", "list price of holding a byte, where it is rented")] = None
    life: Annotated[Any, Q("s", "time over which its price is written off")] = None
    overhead: Annotated[Any, Q(help="power and host as a share of its price", open_low=False)] = None
    drive_writes: Annotated[Any, Q("1/s", "rated writes of the whole device, low end")] = None
    drive_writes_high: Annotated[Any, Q("1/s", "rated writes of the whole device, high end")] = None
    rated_life: Annotated[Any, Q("s", "time for which it is rated to be written to so")] = None

    def need(self, key: str) -> Any:
        """The fact, or MissingFact saying how to supply it."""
        fields = facts.declared(Tier)
        if key not in fields:
            raise UnknownName("tier fact", key, fields)
        value = getattr(self, key)
        if value is None:
            example = EXAMPLE[fields[key].unit].split(" or ")[0]
            raise MissingFact(self.name, key, f'give it in a catalogue folder: tiers/{self.name}.toml with {key} = "{example}"')
        return value


def tier(name: str, catalog: Catalog | None = None) -> Tier:
    """A device of the catalogue; `ddr`, `flash`, `disk`, `remote` and `hbm` name a usual one.

    >>> tier("flash").name, tier("flash").read_bw, tier("disk").device
    ('tlc_31tb', 14000000000.0, '30TB HAMR CMR (275 MB/s)')
    """
    where = catalog or default_catalog()
    found = where.find("tiers", name)
    if found is None:
        raise UnknownName("tier", name, where.names("tiers"), "hbm, ddr, cxl, remote, flash, disk and store name a usual device of each")
    return read(found)


def tiers(catalog: Catalog | None = None) -> tuple[Tier, ...]:
    """Every device, the faster memories first, in one memory by year."""
    found = (read(path) for path in (catalog or default_catalog()).files("tiers").values())
    return tuple(sorted(found, key=lambda one: (MEMORIES.index(one.memory), one.year or 0, one.capacity or 0, one.name)))


def read(path: Path) -> Tier:
    """A tier from its file."""
    document = facts.read(path)
    facts.only(document, ENTRIES, path)
    texts = {key: facts.text(document, key, path) for key in TEXTS}
    if texts["memory"] not in MEMORIES:
        raise BadFile(path, f"memory: got {texts['memory']!r}; wants one of {', '.join(MEMORIES)}")
    return Tier(name=path.stem, **texts, **facts.numbers(document, Tier, path.stem, path))

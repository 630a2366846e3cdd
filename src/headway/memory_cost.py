"""The share of memory in what a chip and a machine cost: HBM, host memory and flash, each a dated range of prices by its size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headway import cost
from headway.catalog import Catalog
from headway.chip import Chip
from headway.chip_cost import CAPEX, fact
from headway.chip_memory import chip_memory
from headway.laws.owning import memory_share, memory_usd, with_cluster
from headway.laws.sums import times, total
from headway.system import System
from headway.tier import MemoryTier, tier


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPart:
    """One memory of a machine: its size, what it costs, and its share of the chips' price and of the machine's."""

    memory: str
    device: str
    size: Any = None
    usd_per_byte_lo: Any = None
    usd_per_byte_hi: Any = None
    usd_lo: Any = None
    usd_hi: Any = None
    share_of_chips_lo: Any = None
    share_of_chips_hi: Any = None
    share_of_machine_lo: Any = None
    share_of_machine_hi: Any = None
    date: str = ""
    source: str = ""


def hbm_share(chip: Chip, catalog: Catalog | None = None) -> tuple[Any, Any]:
    """The least and the most that HBM is of a chip's price; None where a price or the kind of HBM is not known."""
    capex, hbm_tier = fact(chip, CAPEX), chip_memory(chip.name).hbm
    if capex is None or not hbm_tier or chip.hbm is None:
        return None, None
    kind = tier(hbm_tier, catalog)
    low, high = (memory_share(memory_usd(chip.hbm, price), capex) for price in (kind.price_low, kind.price_high))
    return low, high


def parts(machine: System, dram: Any = None, flash: Any = None, catalog: Catalog | None = None) -> tuple[MemoryPart, ...]:
    """Each memory of a machine whose size is known, then all of them; `dram` and `flash` are bytes of the whole machine."""
    chip, known = machine.chip, chip_memory(machine.chip.name)
    capex, overhead = fact(chip, CAPEX), cost.assumptions(catalog)["tco_default_cluster_overhead"]
    chips = None if capex is None else times(capex, machine.chips)
    machine_usd = None if chips is None else with_cluster(chips, overhead)
    sizes = []
    if chip.hbm is not None and known.hbm:
        sizes.append(("HBM", tier(known.hbm, catalog), times(chip.hbm, machine.chips)))
    default_dram = None if known.dram is None else times(known.dram, machine.chips)
    if dram is not None or default_dram is not None:
        sizes.append(("DRAM", tier(known.dram_tier or "dram", catalog), default_dram if dram is None else dram))
    if flash is not None:
        sizes.append(("flash", tier("flash", catalog), flash))
    rows = [_part(name, kind, size, chips, machine_usd) for name, kind, size in sizes]
    return (*rows, *([_all(rows, machine_usd)] if len(rows) > 1 else []))


def _part(name: str, kind: MemoryTier, size: Any, chips: Any, machine_usd: Any) -> MemoryPart:
    low, high = (memory_usd(size, kind.need(key)) for key in ("price_low", "price_high"))
    on_chip = name == "HBM" and chips is not None
    return MemoryPart(
        memory=name, device=f"{kind.name} ({kind.device})", size=size, usd_per_byte_lo=kind.price_low, usd_per_byte_hi=kind.price_high,
        usd_lo=low, usd_hi=high,
        share_of_chips_lo=memory_share(low, chips) if on_chip else None, share_of_chips_hi=memory_share(high, chips) if on_chip else None,
        share_of_machine_lo=None if machine_usd is None else memory_share(low, machine_usd),
        share_of_machine_hi=None if machine_usd is None else memory_share(high, machine_usd),
        date=kind.price_high.date, source=kind.price_high.source,
    )  # fmt: skip


def _all(rows: list[MemoryPart], machine_usd: Any) -> MemoryPart:
    low, high = total(tuple(row.usd_lo for row in rows)), total(tuple(row.usd_hi for row in rows))
    return MemoryPart(
        memory="all", device="", size=total(tuple(row.size for row in rows)), usd_lo=low, usd_hi=high,
        share_of_machine_lo=None if machine_usd is None else memory_share(low, machine_usd),
        share_of_machine_hi=None if machine_usd is None else memory_share(high, machine_usd),
    )  # fmt: skip

"""Cost of a chip over time: over all price metrics, by one metric, or owned; and the memory's share of chip and machine prices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headway.core import catalog
from headway.core.catalog import PACKAGED, Catalog
from headway.core.errors import BadValue, MissingFact
from headway.core.interval import Interval, point
from headway.core.units import Byte, Usd, UsdPerSecond, show
from headway.hardware import chip_price
from headway.hardware.chip import Chip, price_quote
from headway.hardware.memory_tier import MemoryTier, tier
from headway.hardware.system import System
from headway.laws.economics.cost import HOUR

GIVE = "give one: --chip-price '$2/h' or --chip-price 2..4"
KWH = 3.6e6  # J
POWER, CAPEX = "power_all_in_utility", "capex_per_chip"


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnershipCost:
    """Cost of owning a chip per second, by part."""

    capital: Any  # USD/s
    upkeep: Any
    power: Any
    building: Any
    total: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ChipPrice:
    """An interval in USD per chip and second, with its origin."""

    interval: Interval
    note: str


def over_all(chip: Chip) -> ChipPrice:
    """The range over all price metrics of the catalogue, for owning and every kind of renting."""
    if chip.price is not None:
        return ChipPrice(interval=point(chip.price), note=f"chip price {_usd(chip.price)}, given by the user")
    quotes = [row for row in chip.costs if row.metric in chip_price.METRICS]
    if not quotes:
        raise MissingFact(chip.name, "price by the hour", GIVE)
    least, most = min(quotes, key=lambda row: row.low), max(quotes, key=lambda row: row.high)
    metrics = ", ".join(dict.fromkeys(row.metric for row in quotes))
    ends = f"{_usd(least.low)} ({least.metric}, {least.value.date}) to {_usd(most.high)} ({most.metric}, {most.value.date})"
    return ChipPrice(interval=Interval(low=least.low, high=most.high), note=f"chip price {ends}, over {metrics}; --chip-price narrows it")


def by_metric(chip: Chip, metric: str = chip_price.MARKET) -> ChipPrice:
    """The middle of one metric's quotes and their range: one basis, so that a sum never mixes owning with renting."""
    quote = price_quote(chip, metric) if metric == chip_price.MARKET else chip_price.price_by_metric(chip.costs, metric)
    if quote is None:
        has = ", ".join(sorted({row.metric for row in chip.costs if row.metric in chip_price.METRICS}))
        if not has:
            raise MissingFact(chip.name, "price by the hour", GIVE)
        raise BadValue("--price-metric", metric, f"a metric that {chip.name} has a price by ({has}), or --chip-price")
    span = Interval(low=quote.low, high=quote.high, middle=quote.value)
    return ChipPrice(interval=span, note=f"chip price {chip_price.price_origin(quote)}; --chip-price or --price-metric changes it")


def owned(chip: Chip, assumptions: dict[str, Any], capex: Any = None, power: Any = None) -> OwnershipCost:
    """Capital, upkeep, power and building cost of an owned chip; `assumptions` are the ownership assumptions by name.

    Total cost of owning: capital with host, network and storage over its life, upkeep, all-in power, the building over its own life.
    `capex` and `power` stand for the chip's own figures.
    """
    capex, power = fact(chip, CAPEX) if capex is None else capex, fact(chip, POWER) if power is None else power
    if capex is None or power is None:
        lacks = " and ".join(name for name, value in ((CAPEX, capex), (POWER, power)) if value is None)
        raise MissingFact(chip.name, lacks, "its cost file needs it for --own; --chip-price gives a price instead")
    tco_inputs = {key.removeprefix("tco_default_"): value for key, value in assumptions.items()}
    capital = capex * tco_inputs["cluster_overhead"] / tco_inputs["life"]
    upkeep = capex * tco_inputs["opex"]
    electricity = power * tco_inputs["electricity"]
    building = power * tco_inputs["datacentre_capex"] / tco_inputs["datacentre_life"]
    owned_total = capital + upkeep + electricity + building
    return OwnershipCost(capital=capital, upkeep=upkeep, power=electricity, building=building, total=owned_total)


def ownership_notes(cost: OwnershipCost, assumptions: dict[str, Any], capex: Any, power: Any) -> tuple[str, ...]:
    """What an owned chip costs an hour by part, and each figure behind it with its origin."""
    life, building_life = (assumptions[f"tco_default_{name}"] for name in ("life", "datacentre_life"))
    overhead, opex, electricity, building = (
        assumptions[f"tco_default_{name}"] for name in ("cluster_overhead", "opex", "electricity", "datacentre_capex")
    )
    hours = [f"${float(part) * HOUR:.5f}" for part in (cost.total, cost.capital, cost.upkeep, cost.power, cost.building)]
    return (
        f"a chip costs {hours[0]}/h to own: purchase {hours[1]}, upkeep {hours[2]}, electricity {hours[3]}, building {hours[4]}",
        f"purchase: ${float(capex):,.0f} a chip ({_origin(capex)}) x {float(overhead):g} for host, network and storage "
        f"({_origin(overhead)}), over {float(life) / chip_price.YEAR_S:g} years ({_origin(life)}), without interest and resale",
        f"upkeep: {100 * float(opex) * chip_price.YEAR_S:.3g}% a year ({_origin(opex)}) of the chip's price, host and network not counted",
        f"electricity: {float(power) / 1000:g} kW a chip, host, network and cooling included, so that no PUE comes on top "
        f"({_origin(power)}), at all hours; ${float(electricity) * KWH:.3g}/kWh ({_origin(electricity)})",
        f"building: ${float(building):g}/W of that power ({_origin(building)}), over {float(building_life) / chip_price.YEAR_S:g} years "
        f"({_origin(building_life)})",
    )  # fmt: skip


def _origin(value: Any) -> str:
    return value.source if value.kind == "input" or value.date in value.source else f"{value.source}, {value.date}"


def fact(chip: Chip, metric: str) -> Any | None:
    """The newest figure of one metric, or None."""
    figures = [row.value for row in chip.costs if row.metric == metric]
    return max(figures, key=lambda value: value.date) if figures else None


def _usd(price: UsdPerSecond) -> str:
    return show(float(price), "USD/s")


PATH = PACKAGED / "memory_of_chips.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChipMemory:
    """Memory tiers of a chip and of its host by name, "" if unknown."""

    hbm: str = ""
    dram_tier: str = ""


def chip_memory(name: str) -> ChipMemory:
    """The memory tiers of a chip.

    >>> chip_memory("gb200").hbm, chip_memory("gb200").dram_tier
    ('hbm3e_b200', 'lpddr5x_grace')
    """
    document = catalog.read(PATH)
    entry = catalog.table(catalog.table(document, "chips", PATH), name, PATH)
    return ChipMemory(hbm=catalog.text(entry, "hbm", PATH), dram_tier=catalog.text(entry, "dram_tier", PATH))


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPart:
    """One memory of a machine: size, cost, and share of the chips' price and of the machine's price."""

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
    """Low and high end of HBM's share of a chip's price; None if a price or the kind of HBM is unknown."""
    capex, hbm_tier = fact(chip, CAPEX), chip_memory(chip.name).hbm
    if capex is None or not hbm_tier or chip.hbm is None:
        return None, None
    kind = tier(hbm_tier, catalog)
    low, high = (chip.hbm * price / capex for price in (kind.price_low, kind.price_high))
    return low, high


def parts(machine: System, dram: Byte = None, flash: Byte = None, catalog: Catalog | None = None) -> tuple[MemoryPart, ...]:
    """Each memory of known size in a machine, then their total; `dram` and `flash` are bytes of the whole machine."""
    chip, known = machine.chip, chip_memory(machine.chip.name)
    capex, overhead = fact(chip, CAPEX), chip_price.assumptions(catalog)["tco_default_cluster_overhead"]
    chips = None if capex is None else capex * machine.chips
    machine_usd = None if chips is None else chips * overhead
    sizes = []
    if chip.hbm is not None and known.hbm:
        sizes.append(("HBM", tier(known.hbm, catalog), chip.hbm * machine.chips))
    default_dram = None if chip.host_dram is None else chip.host_dram * machine.chips
    if dram is not None or default_dram is not None:
        sizes.append(("DRAM", tier(known.dram_tier or "dram", catalog), default_dram if dram is None else dram))
    if flash is not None:
        sizes.append(("flash", tier("flash", catalog), flash))
    rows = [_part(name, kind, size, chips, machine_usd) for name, kind, size in sizes]
    return (*rows, *([_all(rows, machine_usd)] if len(rows) > 1 else []))


def _part(name: str, kind: MemoryTier, size: Byte, chips: Usd, machine_usd: Usd) -> MemoryPart:
    low, high = (size * kind.need(key) for key in ("price_low", "price_high"))
    on_chip = name == "HBM" and chips is not None
    return MemoryPart(
        memory=name, device=f"{kind.name} ({kind.device})", size=size, usd_per_byte_lo=kind.price_low, usd_per_byte_hi=kind.price_high,
        usd_lo=low, usd_hi=high,
        share_of_chips_lo=low / chips if on_chip else None, share_of_chips_hi=high / chips if on_chip else None,
        share_of_machine_lo=None if machine_usd is None else low / machine_usd,
        share_of_machine_hi=None if machine_usd is None else high / machine_usd,
        date=kind.price_high.date, source=kind.price_high.source,
    )  # fmt: skip


def _all(rows: list[MemoryPart], machine_usd: Usd) -> MemoryPart:
    low, high = sum(row.usd_lo for row in rows), sum(row.usd_hi for row in rows)
    return MemoryPart(
        memory="all", device="", size=sum(row.size for row in rows), usd_lo=low, usd_hi=high,
        share_of_machine_lo=None if machine_usd is None else low / machine_usd,
        share_of_machine_hi=None if machine_usd is None else high / machine_usd,
    )  # fmt: skip

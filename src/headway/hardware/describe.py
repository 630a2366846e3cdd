"""Catalogue contents as records to print: every fact of a chip or system with its origin, and lists of chips, systems and sources."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from headway.core import catalog as facts
from headway.core.catalog import Catalog, default_catalog, fold
from headway.core.quantity import Sourced, known
from headway.hardware.chip import Chip, price_quote, reported_memory
from headway.hardware.chip import read as read_chip
from headway.hardware.chip_price import Cost, costs
from headway.hardware.system import System, domain_bandwidth, wired
from headway.hardware.system import read as read_system


@dataclass(frozen=True, slots=True, kw_only=True)
class FactEntry:
    """One fact of a chip or a system; `value` is None where no public source was found."""

    key: str
    value: Any
    unit: str = ""
    doc: str = ""
    source: str = ""
    date: str = ""
    kind: str = ""


WORDS = {
    "name": "name in the catalogue",
    "vendor": "who makes it",
    "topology": "how the chips of one scale-up domain are joined",
    "memory": "kind of its memory",
    "scale_up_kind": "links of one scale-up domain",
    "notes": "what to know of the figures",
    "shape": "sides of the torus, if it is one",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceEntry:
    """One public source, and the number of facts from it."""

    source: str
    date: str
    facts: int


REPORTED_RULE = "rule, no figure of this card: the datasheet's GB read as GiB times the share that drivers report of "


def about_chip(chip: Chip) -> tuple[FactEntry, ...]:
    """All facts of a chip, under their --set names after `chip.`, then its costs by metric."""
    texts = _texts(chip, ("name", "vendor", "topology", "memory", "scale_up_kind", "notes"))
    if chip.hbm is not None:
        size = reported_memory(chip)
        by_rule = known(float(size), f"{chip.name}.hbm_reported", "byte", "derived", REPORTED_RULE + chip.memory)
        chip = replace(chip, hbm_reported=size if isinstance(size, Sourced) else by_rule)
    skip = ("price",) if chip.cores is not None else ("price", "cores")  # which other chips have none of
    return texts + _facts(chip, skip=skip) + _price(chip) + tuple(entry for row in chip.costs for entry in _cost(row))


def about_system(system: System) -> tuple[FactEntry, ...]:
    """All facts of a system, under their --set names after `system.`, then facts of its chip after `chip.`."""
    shape = "x".join(str(side) for side in system.shape) or None
    texts = (*_texts(system, ("name", "topology", "notes")), FactEntry(key="shape", value=shape, doc=WORDS["shape"]))
    system_facts = (*texts, *_facts(system), _entry("domains", system.domains, "scale-up domains"), *_part(system))
    return system_facts + tuple(replace(entry, key=f"chip.{entry.key}") for entry in about_chip(system.chip))


def _part(system: System) -> tuple[FactEntry, ...]:
    """Links of a chip that a part of a mesh uses; nothing where it uses all of them."""
    if (system.chip.scale_up_domain or 1) <= system.scale_up_domain or system.scale_up_bw is None:
        return ()
    bandwidth = float(domain_bandwidth(system))
    if bandwidth == system.scale_up_bw:
        return ()
    why = f"{int(system.scale_up_domain) - 1} of the {int(wired(system)) - 1} links of a chip, one to each chip of its box"
    value = known(bandwidth, f"{system.name}.domain_bw", "byte/s", "derived", why)
    return (_entry("domain_bw", value, "links of one chip to the other chips of its domain", "byte/s"),)


def _texts(record: Chip | System, keys: tuple[str, ...]) -> tuple[FactEntry, ...]:
    return tuple(FactEntry(key=key, value=getattr(record, key), doc=WORDS[key]) for key in keys)


def _facts(record: Chip | System, skip: tuple[str, ...] = ()) -> tuple[FactEntry, ...]:
    fields = facts.declared(type(record)).items()
    return tuple(_entry(key, getattr(record, key), q.help, q.unit) for key, q in fields if key not in skip)


def _entry(key: str, value: Any, doc: str, unit: str = "") -> FactEntry:
    if not isinstance(value, Sourced):
        return FactEntry(key=key, value=None, unit=unit, doc=doc)
    return FactEntry(key=key, value=value, unit=value.unit, doc=doc, source=value.source, date=value.date, kind=value.kind)


def _price(chip: Chip) -> tuple[FactEntry, ...]:
    """Price of one chip by the default metric, with its range."""
    price = price_quote(chip)
    if price is None:
        return (FactEntry(key="price", value=None, unit="USD/s", doc="no public price of one chip by time"),)
    doc = "; ".join(filter(None, (f"price of one chip by {price.metric}", price.note)))
    ends = (("price_low", price.low, "lowest figure"), ("price_high", price.high, "highest figure"))
    return (_entry("price", price.value, doc), *(_entry(key, end, words) for key, end, words in ends if end != price.value))


def _cost(row: Cost) -> tuple[FactEntry, ...]:
    ends = (("_low", row.low, "low end"), ("_high", row.high, "high end"))
    end_entries = (_entry(row.metric + tail, end, words) for tail, end, words in ends if end != row.value)
    return (_entry(row.metric, row.value, row.note or f"one public figure of {row.metric}"), *end_entries)


def list_chips(catalog: Catalog | None = None) -> tuple[Chip, ...]:
    """All chips, by vendor and year."""
    where = catalog or default_catalog()
    chips = (read_chip(path, where) for path in where.files("chips").values())
    return tuple(sorted(chips, key=lambda chip: (chip.vendor, chip.year or 0, chip.name)))


def list_systems(catalog: Catalog | None = None) -> tuple[System, ...]:
    """All systems of the catalogue, by name; N x chip, R x system and tori by shape exist as well."""
    where = catalog or default_catalog()
    return tuple(read_system(path, where) for _, path in sorted(where.files("systems").items()))


def list_sources(catalog: Catalog | None = None) -> tuple[SourceEntry, ...]:
    """All sources of chips, systems and costs, the most used first; a fact with several sources counts for each."""
    where = catalog or default_catalog()
    records = (*list_chips(where), *list_systems(where))
    values: list[Any] = [getattr(record, key) for record in records for key in facts.declared(type(record))]
    values += [row.value for name in where.files("costs") for row in costs(fold(name), where)]
    counts: dict[tuple[str, str], int] = {}
    for fact in {(fact.name, fact): fact for fact in values if isinstance(fact, Sourced)}.values():  # a system repeats its chip's
        for source in fact.source.split("; "):
            counts[source, fact.date] = counts.get((source, fact.date), 0) + 1
    rows = (SourceEntry(source=source, date=date, facts=count) for (source, date), count in counts.items())
    return tuple(sorted(rows, key=lambda row: (-row.facts, row.source, row.date)))

"""Transports of collectives: links of a domain, a host's PCIe with or without peer access, the network between domains.

Published facts of data/links.toml; the fitted costs of links inside a domain are in data/efficiency.toml. A latency that the user states
replaces what is published.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

from headway.core import catalog
from headway.core.quantity import known
from headway.core.units import Number, Second
from headway.hardware.system import System
from headway.laws.collectives.library import (
    chain_hop_s,
    domain_hop_s,
    fastest_share,
    library_start_s,
    links_measured,
    middle_s,
    part_factor,
    part_gain,
    slowest_share,
)
from headway.laws.step.layer_terms import replica_chips
from headway.performance.achieved import OTHER_FAMILY, WIDE, Efficiencies, efficiencies, family
from headway.performance.assumptions import Assumptions

WHOLE_DOMAIN = "an engine's own kernels serve a whole domain of fast links"
ALL = known(float("inf"), "chips that an engine's kernels reach", "", "constant", WHOLE_DOMAIN)
ALONE = known(1, "cards that an engine's kernels reach", "", "constant", "no card writes into another's memory")
TABLES = "kernel tables: A100, H100, H200 and B200 in a machine of 8 (docs/accuracy_serving.md)"
MEASURED = known(1, "links measured", "", "constant", TABLES)
UNKNOWN = known(0, "links not measured", "", "constant", TABLES)
SINGLE_RANK = known(1, "one", "", "constant", "a group of neither data-parallel ranks nor stages")
FOUR = known(4, "chips of the measured reduction", "", "constant", "alpha_host of data/efficiency.toml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """What runs a reduction where no kernel of the engine reaches: its start, its hop inside a domain, and how far kernels reach."""

    start: Any
    hop: Any
    kernel_chips: Any  # chips of the largest group that the engine's own kernels serve


@functools.cache
def link_facts() -> dict[str, dict[str, Any]]:
    """Facts of data/links.toml by section; of a measured all-reduce also its chips and domains, as `NAME.chips`."""
    document = catalog.read(catalog.PACKAGED / "links.toml")
    sources, facts = document.pop("sources"), dict[str, dict[str, Any]]()
    for section, rows in document.items():
        rows_of = facts.setdefault(section, {})
        for name, row in rows.items():
            place = f"{section}.{name}"
            rows_of[name] = known(row["value"], place, row["unit"], row["kind"], sources[row["source"]], row["date"])
            for part in ("chips", "domains"):
                if part in row:
                    rows_of[f"{name}.{part}"] = known(row[part], f"{place}.{part}", "", row["kind"], sources[row["source"]], row["date"])
    return facts


def staged(system: System) -> bool:
    """Whether the chips of a host pass messages through its memory: cards over PCIe whose driver gives no peer access."""
    return system.topology == "pcie" and system.chip.peer_bw is not None and system.chip.peer_bw < system.scale_up_bw


def domain_hops() -> tuple[Any, ...]:
    """Hop between domains of each machine of which a short all-reduce is published."""
    library, nodes = link_facts()["library"], link_facts()["nodes"]
    return tuple(
        domain_hop_s(nodes[name], library["start"], nodes[f"{name}.chips"], library["hop"], nodes[f"{name}.domains"])
        for name in nodes if "." not in name
    )  # fmt: skip


def hop_out(assumptions: Assumptions) -> Any:
    """Latency of a hop between domains: as stated, else the median of the published ones."""
    return middle_s(domain_hops()) if assumptions.alpha_out is None else assumptions.alpha_out


def library(system: System, assumptions: Assumptions, table: Efficiencies | None = None) -> Library | None:
    """What runs the reductions that the engine's own kernels do not; None where the user states the latency of a round.

    Over PCIe it starts as the measured reduction of four chips, launch included; over nodes as benchmarks of the library do.
    """
    facts, host = link_facts()["library"], link_facts()["host"]
    if system.topology != "pcie":
        return None if assumptions.alpha_out is not None else Library(start=facts["start"], hop=facts["hop"], kernel_chips=ALL)
    if assumptions.alpha_host is not None:
        return None
    reduction = (table or efficiencies(system.chip)).kernel("collective", family(system.chip), WIDE, "alpha_host")
    hop = chain_hop_s(host["all_reduce"], facts["start"], host["all_reduce.chips"])
    start = library_start_s(reduction, FOUR, hop)
    has_peers = system.chip.peer_bw is not None and not staged(system)
    return Library(start=start, hop=hop, kernel_chips=host["own_reach"] if has_peers else ALONE)


def measured(system: System, tp: Number, cp: Number) -> Any:
    """Whether the links of a layout's reductions are among those measured: of a measured family, inside one domain.

    Exchanges of experts were measured over nodes too.
    """
    known_links = family(system.chip) != OTHER_FAMILY and system.topology != "pcie"
    return links_measured(MEASURED if known_links else UNKNOWN, replica_chips(tp, cp, SINGLE_RANK, SINGLE_RANK), system.scale_up_domain)


def link_ends(network: Second, total: Second, certain: Any) -> tuple[Any, Any]:
    """How much an interval widens, towards faster and towards slower: the network's part may take as long as published ones do."""
    hops = domain_hops()
    middle = middle_s(hops)
    shares = fastest_share(hops, middle), slowest_share(hops, middle)
    return part_gain(network, total, shares[0], certain), part_factor(network, total, shares[1], certain)

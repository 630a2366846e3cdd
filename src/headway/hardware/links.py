"""Links and hosts of a part of a machine: in a mesh a chip has links to every chip of its box, and a part uses those to its own chips."""

from __future__ import annotations

import functools
from typing import Any

from headway.core import catalog
from headway.core.catalog import fold
from headway.core.quantity import known
from headway.core.units import Number
from headway.hardware.system import System
from headway.laws.collectives.topology import mesh_bandwidth

MESHES = ("mesh", "bridge", "hybrid")  # links from chip to chip, none of them through a switch or another chip
PAIR = known(2, "chips of a message", "", "constant", "one sends, one receives")


def wired(system: System) -> Any:
    """Chips that the links of a chip lead to, itself included: of the usual box, of which the system may be a part.

    >>> from headway.hardware.system import system
    >>> wired(system("2xmi300x")), wired(system("16xmi300x"))
    (8, 8)
    """
    chip, domain = system.chip, system.scale_up_domain
    if chip.scale_up_domain is None or system.topology != chip.topology or system.scale_up_bw != chip.scale_up_bw:
        return domain  # a machine with links of its own
    return max(domain, chip.scale_up_domain)


def domain_bandwidth(system: System) -> Any:
    """Bandwidth of a chip to the other chips of its scale-up domain together (byte/s), None where it is not known.

    >>> from headway.hardware.system import system
    >>> [float(domain_bandwidth(system(name))) / 1e9 for name in ("2xmi300x", "8xmi300x", "2xh100-sxm")]
    [64.0, 448.0, 450.0]
    """
    return group_bandwidth(system, system.scale_up_domain)


def pair_bandwidth(system: System) -> Any:
    """Bandwidth from one chip to another of its scale-up domain (byte/s): one link of a mesh, all links to a switch."""
    return group_bandwidth(system, PAIR)


def group_bandwidth(system: System, members: Number) -> Any:
    """Bandwidth of a chip within a group of its scale-up domain (byte/s), None where it is not known."""
    up = system.scale_up_bw if system.scale_up_bw is not None else system.chip.scale_up_bw
    if up is None or system.topology not in MESHES:
        return up
    return mesh_bandwidth(up, members, wired(system))


# -- chips of one host: the server or compute tray that one process of an engine can reach without the network ------------------


MOST = 8  # chips of a scale-up domain that is one server where no fact says otherwise


@functools.cache
def host_facts() -> dict[str, Any]:
    """Chips per host of each chip whose scale-up domain spans several hosts."""
    document = catalog.read(catalog.PACKAGED / "hosts.toml")
    sources = document["sources"]
    return {
        name: known(row["value"], f"{name}.chips_per_host", "", "datasheet", sources[row["source"]], row["date"])
        for name, row in document["chips"].items()
    }


def chips_per_host(system: System) -> Any:
    """Chips of one host of a system: a fact, else a scale-up domain of at most 8 chips, else None."""
    fact = host_facts().get(fold(system.chip.name).replace("-", "_"))
    domain = system.scale_up_domain
    if fact is not None:
        return fact
    return domain if domain is not None and domain <= MOST else None

"""Network of a system as the laws of collectives need it: a kind, links, a torus's sides, and latencies.

A kind without laws of its own uses those of the nearest kind: NEAREST names it and says why.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.core.quantity import known
from headway.hardware.links import wired
from headway.hardware.system import RANK, System
from headway.laws.collectives.topology import (
    bisection_bandwidth,
    even_sides,
    sides_within,
    torus_extent,
    torus_gap,
    torus_link_bandwidth,
    torus_wrap,
)
from headway.performance.achieved import with_links
from headway.performance.assumptions import Assumptions

NEAREST = {
    "switch": ("switch", ""),
    "mesh": ("mesh", ""),
    "torus2d": ("torus", ""),
    "torus3d": ("torus", ""),
    "ring": ("torus", ""),
    "bridge": ("mesh", ""),  # two chips, one link
    "hybrid": ("mesh", "a hybrid cube mesh is taken as a full mesh of the same links"),
    "dragonfly": ("switch", "a dragonfly is taken as a switch; an all-to-all is held to its bisection where that is known"),
    "direct": ("switch", "chip-to-chip links without a published wiring are taken as a switch; bisection where known"),
    "hierarchical": ("switch", "switches of switches are taken as one switch; an all-to-all is held to the bisection where that is known"),
    "pcie": ("switch", "chips on one host's PCIe are taken as joined by a switch"),
    "none": ("switch", ""),
}
SUMMING_SWITCHES = ("nvlink4", "nvlink5", "nvlink6", "nvlink7")  # NVLink SHARP, since the third-generation NVSwitch (2022)
FAR = known(float("inf"), "no scale-out", "byte/s", "constant", "the layout stays inside one scale-up domain")
WRAPPING = "TPU v5e and v6e wrap an axis of 16, v4 and v5p axes that are multiples of 4 (docs.cloud.google.com/tpu)"
NO_WRAP = known(0, "no wrap", "", "constant", WRAPPING)
WRAP = known(1, "wrap", "", "constant", WRAPPING)
BEFORE = "product of the sides of the axes before it"


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkCosts:
    """Latency of a round by network level, for reductions and for exchanges of experts, and achieved shares of link peaks."""

    up: Any
    out: Any
    exchange_up: Any
    exchange_out: Any
    efficiency: Any
    in_switch: Any  # achieved share of in-switch reductions
    exchange: Any  # achieved share of exchanges over scale-up
    beyond: Any  # achieved share of all traffic over scale-out


def link_costs(system: System, assumptions: Assumptions) -> LinkCosts:
    """Link costs of a system; on a torus a round is a hop, and PCIe traffic goes through the host."""
    a = with_links(assumptions, system.chip)
    torus, host = NEAREST[system.topology][0] == "torus", system.topology == "pcie"
    return LinkCosts(
        up=a.alpha_hop if torus else a.alpha_host if host else a.alpha,
        out=a.alpha_out,
        exchange_up=a.alpha_hop if torus else a.alpha_exchange,
        exchange_out=a.alpha_exchange_out,
        efficiency=a.eff_network,
        in_switch=a.eff_in_switch,
        exchange=a.eff_exchange,
        beyond=a.eff_out,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Fabric:
    """The two levels of a system's network, scale-up and scale-out."""

    kind: str  # switch, mesh or torus
    domain: Any
    wired: Any = None  # chips that a mesh's links lead to, where they are more than the domain
    up: Any  # per chip; per link on a torus
    exchange: Any  # per chip in an all-to-all
    out: Any
    out_is_missing: bool = False
    sides: tuple[Any, ...] = ()
    wraps: tuple[Any, ...] = ()
    in_switch: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FabricAxis:
    """Extent of a group along one axis of a torus."""

    extent: Any
    gap: Any
    wrap: Any


def fabric(system: System, replica: Any = None) -> Fabric:
    """Network of a system, or of the part that a replica of so many chips takes; MissingFact where a needed number is not known.

    A replica has the torus that as many chips alone would be, cut from the box, and the bisection binds the chips that exchange.
    """
    kind, note = NEAREST[system.topology]
    up = system.scale_up_bw if system.scale_up_bw is not None else system.chip.need("scale_up_bw")
    out = system.scale_out_bw if system.scale_out_bw is not None else system.chip.scale_out_bw
    common: dict[str, Any] = {
        "kind": kind, "domain": system.scale_up_domain, "wired": wired(system) if kind == "mesh" else None,
        "out": FAR if out is None else out, "out_is_missing": out is None, "note": note,
    }  # fmt: skip
    if kind == "torus":
        sides = torus_sides(system) if replica is None else _slices(system, replica)
        link = torus_link_bandwidth(up, known(len(sides), f"{system.name}.axes", "", "derived", "sides of its torus"))
        return Fabric(up=link, exchange=link, sides=sides, wraps=tuple(side_wraps(system, side) for side in sides), **common)
    chips = system.scale_up_domain if replica is None else np.minimum(replica, system.scale_up_domain)
    exchange = bisection_bandwidth(up, system.bisection, chips) if note and system.bisection is not None else up
    summing = system.topology == "switch" and system.chip.scale_up_kind.startswith(SUMMING_SWITCHES)
    return Fabric(up=up, exchange=exchange, in_switch=summing, **common)


def torus_sides(system: System) -> tuple[Any, ...]:
    """Sides of a system's torus: as published, or those of as many chips of the usual box."""
    return system.shape or _slice(system, int(system.scale_up_domain))


def _box(system: System) -> tuple[int, ...]:
    """Sides of the whole torus that a system is a part of: as published, or the most even factors of its number of chips."""
    rank = RANK.get(system.topology, 1)
    return tuple(map(int, system.shape)) or even_sides(int(wired(system)), rank)


def _slice(system: System, chips: int) -> tuple[Any, ...]:
    """Sides of a part of a torus, the most even that its box has room for."""
    box = _box(system)
    why = f"the most even torus of {chips} chips" + ("" if chips == math.prod(box) else f" within {'x'.join(map(str, box))}")
    return tuple(known(side, f"{system.name}.side", "", "derived", why) for side in sides_within(chips, box))


def _slices(system: System, replica: Any) -> tuple[Any, ...]:
    """Sides of the part of the torus that a replica takes, all of it where the replica is as large; arrays where its chips are one."""
    machine_sides = torus_sides(system)
    most = math.prod(map(int, machine_sides))

    def sides(chips: Any) -> tuple[Any, ...]:
        return machine_sides if chips >= most else _slice(system, int(chips))

    if not np.ndim(replica):
        return sides(replica)
    return tuple(np.moveaxis(np.array([sides(chips) for chips in replica.ravel()], float).reshape(*replica.shape, -1), -1, 0))


def side_wraps(system: System, side: Any) -> Any:
    """Whether a torus axis of this side closes to a ring: by the rule of TPU slices; else any side of the whole box beyond two chips."""
    if not system.chip.name.startswith("tpu"):
        box = _box(system)
        closes = np.logical_and(np.greater(side, 2), np.isin(side, (*box, math.prod(box))))
    else:
        closes = np.equal(np.mod(side, 16 if system.topology == "torus2d" else 4), 0)
    return closes.astype(float) if np.ndim(side) else WRAP if closes else NO_WRAP


def axes(joined: Fabric, members: Any, stride: Any) -> tuple[FabricAxis, ...]:
    """Extent of a group along each torus axis, chips being numbered along the first axis, then the second."""
    parts = []
    for index, side in enumerate(joined.sides):
        inner = math.prod(joined.sides[:index], start=np.int64(1))
        before = inner if np.ndim(inner) else known(int(inner), "chips before this axis", "", "derived", BEFORE)
        extent, gap = torus_extent(members, stride, before, side), torus_gap(stride, before, side)
        parts.append(FabricAxis(extent=extent, gap=gap, wrap=torus_wrap(extent, gap, side, joined.wraps[index])))
    return tuple(parts)

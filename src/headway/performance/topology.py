"""Network of a system as the laws of collectives need it: a kind, links, a torus's sides, and latencies.

A kind without laws of its own uses those of the nearest kind: NEAREST names it and says why.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from headway.core.quantity import known
from headway.hardware.system import System
from headway.laws.collectives.topology import bisection_bandwidth, even_sides, torus_extent, torus_gap, torus_link_bandwidth, torus_wrap
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
UNITY = known(1, "one", "", "constant", "definition")


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


def fabric(system: System) -> Fabric:
    """Network of a system; MissingFact where a needed number is not known."""
    kind, note = NEAREST[system.topology]
    up = system.scale_up_bw if system.scale_up_bw is not None else system.chip.need("scale_up_bw")
    out = system.scale_out_bw if system.scale_out_bw is not None else system.chip.scale_out_bw
    common: dict[str, Any] = {
        "kind": kind, "domain": system.scale_up_domain, "out": FAR if out is None else out, "out_is_missing": out is None, "note": note,
    }  # fmt: skip
    if kind == "torus":
        sides = _sides(system)
        link = torus_link_bandwidth(up, known(len(sides), f"{system.name}.axes", "", "derived", "sides of its torus"))
        return Fabric(up=link, exchange=link, sides=sides, wraps=tuple(side_wraps(system, side) for side in sides), **common)
    exchange = bisection_bandwidth(up, system.bisection, system.scale_up_domain) if note and system.bisection is not None else up
    summing = system.topology == "switch" and system.chip.scale_up_kind.startswith(SUMMING_SWITCHES)
    return Fabric(up=up, exchange=exchange, in_switch=summing, **common)


def _sides(system: System) -> tuple[Any, ...]:
    """Sides of a torus: as published, or the most even factors of the number of chips."""
    if system.shape:
        return system.shape
    rank = {"ring": 1, "torus2d": 2, "torus3d": 3}[system.topology]
    why = f"the most even torus of {system.scale_up_domain} chips"
    return tuple(known(side, f"{system.name}.side", "", "derived", why) for side in even_sides(int(system.scale_up_domain), rank))


def side_wraps(system: System, side: Any) -> Any:
    """Whether a torus axis of this side closes to a ring: by the rule of TPU slices; else any ring of more than two chips."""
    if not system.chip.name.startswith("tpu"):
        return WRAP if side > 2 else NO_WRAP
    return WRAP if side % (16 if system.topology == "torus2d" else 4) == 0 else NO_WRAP


def axes(joined: Fabric, members: Any, stride: Any) -> tuple[FabricAxis, ...]:
    """Extent of a group along each torus axis, chips being numbered along the first axis, then the second."""
    parts = []
    for index, side in enumerate(joined.sides):
        inner = math.prod(int(earlier_side) for earlier_side in joined.sides[:index])
        before = known(inner, "chips before this axis", "", "derived", "product of the sides of the axes before it")
        extent, gap = torus_extent(members, stride, before, side), torus_gap(stride, before, side)
        parts.append(FabricAxis(extent=extent, gap=gap, wrap=torus_wrap(extent, gap, side, joined.wraps[index])))
    return tuple(parts)

"""What joins the chips of a system, as the laws of collectives need it: a kind, links, a torus's sides, and what a message costs.

Kinds without laws of their own are taken as the nearest that has: NEAREST says which and why.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from headway.laws.topology import bisection_bandwidth, torus_extent, torus_gap, torus_link_bandwidth, torus_wrap
from headway.quantity import default, known
from headway.system import System

NEAREST = {
    "switch": ("switch", ""),
    "mesh": ("mesh", ""),
    "torus2d": ("torus", ""),
    "torus3d": ("torus", ""),
    "ring": ("torus", ""),
    "bridge": ("mesh", ""),  # of two chips: one link
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
ONE = known(1, "one", "", "constant", "definition")


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkCosts:
    """What a round costs before any byte, over each level, in reductions and in exchanges among many; and shares of peak reached."""

    up: Any
    out: Any
    exchange_up: Any
    exchange_out: Any
    efficiency: Any
    in_switch: Any  # efficiency of reductions in the switch


CUSTOM = "custom all-reduce under CUDA graphs, 2.6-4.3 us on 2-8 H100, 4.1-5.7 us on B200 (ai-dynamo/aiconfigurator 095f58a, 2026)"
RDMA = "one RDMA message between GPUs, 5-20 us"
LOW_LATENCY = "DeepEP low-latency kernels on 8 H100, 11-12 us (ai-dynamo/aiconfigurator 095f58a, 2026)"
LOW_LATENCY_OUT = "DeepEP low-latency kernels on 16-64 H100, 20-28 us (ai-dynamo/aiconfigurator 095f58a, 2026)"
HOP = "Austin et al. 2025, How to Scale Your Model: about 1 us a hop of a TPU's links"
IN_SWITCH = "best all-reduces of 8 H100 and 8 B200: 0.60 and 0.46 of the links' peak (ai-dynamo/aiconfigurator 095f58a, 2026)"
HOST = "NCCL over PCIe, 7-27 us measured over NVLink; unverified"


def _costs(up: tuple[float, str], exchange_up: tuple[float, str]) -> LinkCosts:
    return LinkCosts(
        up=default(up[0], "alpha_up", "s", up[1]),
        out=default(10e-6, "alpha_out", "s", RDMA),
        exchange_up=default(exchange_up[0], "alpha_exchange_up", "s", exchange_up[1]),
        exchange_out=default(24e-6, "alpha_exchange_out", "s", LOW_LATENCY_OUT),
        efficiency=default(0.8, "eff_network", "", "all-reduce of 64 MB over two-shot, 0.8 on 8 H100; unfitted elsewhere"),
        in_switch=default(0.5, "eff_in_switch", "", IN_SWITCH),
    )


COSTS = {
    "switch": _costs((3e-6, CUSTOM), (11e-6, LOW_LATENCY)),
    "mesh": _costs((3e-6, CUSTOM), (11e-6, LOW_LATENCY)),
    "torus": _costs((1e-6, HOP), (1e-6, HOP)),
    "pcie": _costs((15e-6, HOST), (15e-6, HOST)),
}


def link_costs(system: System, alpha: Any = None, efficiency: Any = None, in_switch: Any = None) -> LinkCosts:
    """The defaults of a system's topology; `alpha`, where given, is that of every round."""
    found = COSTS[system.topology if system.topology in COSTS else NEAREST[system.topology][0]]
    if alpha is not None:
        found = replace(found, up=alpha, out=alpha, exchange_up=alpha, exchange_out=alpha)
    if efficiency is not None:
        found = replace(found, efficiency=efficiency)
    return found if in_switch is None else replace(found, in_switch=in_switch)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fabric:
    """The two levels of a system's network."""

    kind: str  # switch, mesh or torus
    domain: Any
    up: Any  # of a chip; of one link on a torus
    exchange: Any  # of a chip in an all-to-all
    out: Any
    out_is_missing: bool = False
    sides: tuple[Any, ...] = ()
    wraps: tuple[Any, ...] = ()
    in_switch: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """A group's part of one axis of a torus."""

    extent: Any
    gap: Any
    wrap: Any


def fabric(system: System) -> Fabric:
    """What joins a system's chips; MissingFact where a number it needs is not known."""
    kind, note = NEAREST[system.topology]
    up = system.scale_up_bw if system.scale_up_bw is not None else system.chip.need("scale_up_bw")
    out = system.scale_out_bw if system.scale_out_bw is not None else system.chip.scale_out_bw
    common: dict[str, Any] = {
        "kind": kind, "domain": system.scale_up_domain, "out": FAR if out is None else out, "out_is_missing": out is None, "note": note,
    }  # fmt: skip
    if kind == "torus":
        sides = _sides(system)
        link = torus_link_bandwidth(up, known(len(sides), f"{system.name}.axes", "", "derived", "sides of its torus"))
        return Fabric(up=link, exchange=link, sides=sides, wraps=tuple(_wraps(system, side) for side in sides), **common)
    exchange = bisection_bandwidth(up, system.bisection, system.scale_up_domain) if note and system.bisection is not None else up
    summing = system.topology == "switch" and system.chip.scale_up_kind.startswith(SUMMING_SWITCHES)
    return Fabric(up=up, exchange=exchange, in_switch=summing, **common)


def _sides(system: System) -> tuple[Any, ...]:
    """A torus's sides: those it has, or the most even ones of that many chips."""
    if system.shape:
        return system.shape
    rank = {"ring": 1, "torus2d": 2, "torus3d": 3}[system.topology]
    why = f"the most even torus of {system.scale_up_domain} chips"
    return tuple(known(side, f"{system.name}.side", "", "derived", why) for side in even_sides(int(system.scale_up_domain), rank))


def even_sides(chips: int, rank: int) -> tuple[int, ...]:
    """The most even factors of a number of chips, smallest first.

    >>> even_sides(8, 3), even_sides(32, 2), even_sides(6, 1)
    ((2, 2, 2), (4, 8), (6,))
    """
    if rank == 1:
        return (chips,)
    side = max(n for n in range(1, round(chips ** (1 / rank)) + 1) if chips % n == 0)
    return (side, *even_sides(chips // side, rank - 1))


def _wraps(system: System, side: Any) -> Any:
    """Whether an axis of that side closes to a ring: a TPU slice's rule, and any ring of more than two chips elsewhere."""
    if not system.chip.name.startswith("tpu"):
        return WRAP if side > 2 else NO_WRAP
    return WRAP if side % (16 if system.topology == "torus2d" else 4) == 0 else NO_WRAP


def axes(joined: Fabric, members: Any, stride: Any) -> tuple[Axis, ...]:
    """A group's part of each axis, chips being numbered along the first axis, then the second."""
    found = []
    for index, side in enumerate(joined.sides):
        inner = math.prod(int(other) for other in joined.sides[:index])
        before = known(inner, "chips before this axis", "", "derived", "product of the sides of the axes before it")
        extent, gap = torus_extent(members, stride, before, side), torus_gap(stride, before, side)
        found.append(Axis(extent=extent, gap=gap, wrap=torus_wrap(extent, gap, side, joined.wraps[index])))
    return tuple(found)

"""Collectives of a step from a system and a layout: the network's kind, links and sides, groups of chips, and algorithms.

Only laws do arithmetic here; this file chooses the laws of a topology. A kind without laws of its own uses those of the nearest kind:
NEAREST names it and says why. A collective is a tuple of lines, one per algorithm.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headway.core.errors import MissingFact
from headway.core.quantity import known
from headway.core.units import Byte, BytePerSecond, Number, Second
from headway.hardware.system import RANK, System, wired
from headway.laws.collectives.cost import least, line_alpha, line_slope, line_slope_together
from headway.laws.collectives.expert_parallel import (
    domains_hit,
    exchange_out,
    exchange_up,
    forwarded_out,
    forwarded_up,
    mean_message,
    places_hit,
    torus_exchange_up,
)
from headway.laws.collectives.library import peer_share, reduction_latency_s, tree_latency_s
from headway.laws.collectives.topology import (
    axis_exchange_share,
    axis_hops,
    axis_links,
    bisection_bandwidth,
    chunked_rounds,
    direct_out,
    direct_round_up,
    direct_up,
    even_sides,
    group_domains,
    in_switch_up,
    levels_out,
    levels_up,
    longest,
    mesh_bandwidth,
    one_round,
    one_shot_out,
    one_shot_up,
    ring_out,
    ring_rounds_out,
    ring_rounds_up,
    ring_up,
    sides_within,
    torus_extent,
    torus_gap,
    torus_gather_share,
    torus_link_bandwidth,
    torus_one_shot_share,
    torus_wrap,
    tree_out,
    tree_rounds,
)
from headway.laws.serving.pipeline import hops_out, hops_up
from headway.laws.step.coefficients import CollectiveLine, CollectiveTerm
from headway.performance.achieved import Efficiencies, with_links
from headway.performance.assumptions import Assumptions
from headway.performance.layout import Layout
from headway.performance.transport import Library, hop_out, library, staged

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
ALONE = known(float("inf"), "no scale-up", "byte/s", "constant", "a domain of one chip has no links inside")
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
    library: Library | None = None  # what runs reductions beyond the engine's own kernels


def system_links(assumptions: Assumptions, system: System, table: Efficiencies | None = None) -> Assumptions:
    """Assumptions with what links reach where the user states nothing: fitted, or published of cards without peer access."""
    if staged(system):
        share = peer_share(system.chip.peer_bw, system.scale_up_bw)
        unset = [name for name in ("eff_network", "eff_exchange") if getattr(assumptions, name) is None]
        assumptions = replace(assumptions, **dict.fromkeys(unset, share))
    return with_links(assumptions, system.chip, table)


def link_costs(system: System, assumptions: Assumptions) -> LinkCosts:
    """Link costs of a system; on a torus a round is a hop, and messages over PCIe or between domains are a library's."""
    a = system_links(assumptions, system)
    torus, host = NEAREST[system.topology][0] == "torus", system.topology == "pcie" and a.alpha_host is not None
    return LinkCosts(
        up=a.alpha_hop if torus else a.alpha_host if host else a.alpha,
        out=hop_out(a),
        library=None if torus else library(system, a),
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


def fabric(system: System, replica: Number = None) -> Fabric:
    """Network of a system, or of the part that a replica of so many chips takes; MissingFact where a needed number is not known.

    A replica has the torus that as many chips alone would be, cut from the box, and the bisection binds the chips that exchange.
    """
    kind, note = NEAREST[system.topology]
    out = system.scale_out_bw if system.scale_out_bw is not None else system.chip.scale_out_bw
    up = system.chip.scale_up_bw if system.scale_up_bw is None else system.scale_up_bw
    if up is None:
        up = ALONE if system.scale_up_domain == 1 and out is not None else system.chip.need("scale_up_bw")
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


def _slices(system: System, replica: Number) -> tuple[Any, ...]:
    """Sides of the part of the torus that a replica takes, all of it where the replica is as large; arrays where its chips are one."""
    machine_sides = torus_sides(system)
    most = math.prod(map(int, machine_sides))

    def sides(chips: Number) -> tuple[Any, ...]:
        return machine_sides if chips >= most else _slice(system, int(chips))

    if not np.ndim(replica):
        return sides(replica)
    return tuple(np.moveaxis(np.array([sides(chips) for chips in replica.ravel()], float).reshape(*replica.shape, -1), -1, 0))


def side_wraps(system: System, side: Number) -> Any:
    """Whether a torus axis of this side closes to a ring: by the rule of TPU slices; else any side of the whole box beyond two chips."""
    if not system.chip.name.startswith("tpu"):
        box = _box(system)
        closes = np.logical_and(np.greater(side, 2), np.isin(side, (*box, math.prod(box))))
    else:
        closes = np.equal(np.mod(side, 16 if system.topology == "torus2d" else 4), 0)
    return closes.astype(float) if np.ndim(side) else WRAP if closes else NO_WRAP


def axes(joined: Fabric, members: Number, stride: Number) -> tuple[FabricAxis, ...]:
    """Extent of a group along each torus axis, chips being numbered along the first axis, then the second."""
    parts = []
    for index, side in enumerate(joined.sides):
        inner = math.prod(joined.sides[:index], start=np.int64(1))
        before = inner if np.ndim(inner) else known(int(inner), "chips before this axis", "", "derived", BEFORE)
        extent, gap = torus_extent(members, stride, before, side), torus_gap(stride, before, side)
        parts.append(FabricAxis(extent=extent, gap=gap, wrap=torus_wrap(extent, gap, side, joined.wraps[index])))
    return tuple(parts)


ONE_PHASE = known(1, "one phase", "", "constant", "an exchange in one direction")
TWO_PHASES = known(2, "two phases", "", "constant", "an all-reduce is a reduce-scatter and an all-gather")
NO_BYTES = known(0.0, "no bytes", "", "constant", "this level carries nothing")


Way = tuple[CollectiveLine, Any]  # an algorithm and its slope at peak


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutedLayer:
    """Expert layers of one kind: the numbers that their dispatch and combine need."""

    layers: Any
    experts: Any
    active: Any
    dispatch: Any  # bytes of a token on the way to its experts; the combine returns a full vector
    groups: Any = 1  # experts of a token lie in at most `groups_chosen` of these groups
    groups_chosen: Any = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageTraffic:
    """Messages of a model: number of layers that send, and bytes per token."""

    layers: Any
    sublayers: Any  # each ends in an all-reduce over tp
    routed: tuple[RoutedLayer, ...]
    depth: Any
    vector: Any  # activations of one token, in bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Algorithm:
    """One collective algorithm: rounds, and bytes sent over message bytes, per phase and network level."""

    phases: Any
    rounds_up: Any
    rounds_out: Any
    up: Any
    out: Any
    together: bool  # both levels at once, or one after the other
    in_switch: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ChipGroup:
    """A group of chips that communicate: n members, m in each of d scale-up domains, `stride` chips apart."""

    members: Any
    stride: Any
    inside: Any
    domains: Any


def group(fabric: Fabric, members: Number, stride: Number) -> ChipGroup:
    """Placement of a group of `members` chips, `stride` apart."""
    domains = group_domains(members, stride, fabric.domain)
    return ChipGroup(members=members, stride=stride, inside=members / domains, domains=domains)


def network_terms(traffic: MessageTraffic, fabric: Fabric, layout: Layout, costs: LinkCosts) -> tuple[CollectiveTerm, ...]:
    """Collectives of one step, all layers; groups of one chip send nothing and are left out."""
    terms = []
    if most(layout.tp) > 1:
        terms.append(all_reduce_term(fabric, group(fabric, layout.tp, 1), traffic.vector, costs, traffic.sublayers * traffic.depth))
    if most(layout.cp) > 1:
        message, count = traffic.vector / layout.tp, traffic.layers * traffic.depth
        terms.append(all_reduce_term(fabric, group(fabric, layout.cp, layout.tp), message, costs, count))
    if most(layout.dp * layout.cp) > 1:
        for routed in traffic.routed:
            message = mean_message(routed.dispatch, traffic.vector)
            terms.append(exchange_term(fabric, layout, routed, message, costs, routed.layers * traffic.depth))
    if most(layout.pp) > 1:
        terms.append(hop_term(fabric, layout, traffic.vector / layout.tp, costs))
    return tuple(terms)


def all_reduce_term(fabric: Fabric, peers: ChipGroup, message: Byte, costs: LinkCosts, count: Number = 1) -> CollectiveTerm:
    """All-reduce, as the lines of all algorithms that the fabric supports."""
    if fabric.kind == "torus":
        up = torus_one_shot_share(peers.inside, _feeding(fabric, peers))
        one_shot = _exchange(1, _hops(fabric, peers), one_round(peers.domains), up, one_shot_out(peers.members, peers.inside))
        algorithms = [one_shot, *_torus_gather(fabric, peers, 2)]
    else:
        algorithms = _switch_reduce(fabric, peers)
    bandwidth = _group_bandwidth(fabric, peers.inside)
    return _term(count, _algorithm_lines(algorithms, message, bandwidth, fabric.out, costs, reduced=peers))


def gather_term(fabric: Fabric, peers: ChipGroup, message: Byte, costs: LinkCosts, count: Number = 1) -> CollectiveTerm:
    """All-gather or reduce-scatter, as the lines of all algorithms; `message` is the whole gathered message."""
    algorithms = _torus_gather(fabric, peers, ONE_PHASE) if fabric.kind == "torus" else _switch_gather(peers, ONE_PHASE)
    bandwidth = _group_bandwidth(fabric, peers.inside)
    return _term(count, _algorithm_lines(algorithms, message, bandwidth, fabric.out, costs))


def all_to_all_term(fabric: Fabric, peers: ChipGroup, message: Byte, costs: LinkCosts, count: Number = 1) -> CollectiveTerm:
    """Uniform all-to-all of `message` bytes per chip, including the part that stays."""
    up = (
        torus_exchange_up(1, _exchange_share(fabric, peers), peers.domains)
        if fabric.kind == "torus"
        else direct_up(peers.members, peers.inside)
    )
    rounds = _hops(fabric, peers) if fabric.kind == "torus" else direct_round_up(peers.members, peers.domains)
    algorithms = [_exchange(ONE_PHASE, rounds, one_round(peers.domains), up, direct_out(peers.members, peers.inside))]
    bandwidth = _exchange_bandwidth(fabric, peers.inside)
    return _term(count, _algorithm_lines(algorithms, message, bandwidth, fabric.out, costs, exchange=True))


def hop_term(fabric: Fabric, layout: Layout, message: Byte, costs: LinkCosts) -> CollectiveTerm:
    """Hops between pipeline stages, inside a scale-up domain and between domains."""
    domains = group_domains(layout.pp, layout.tp * layout.cp * layout.dp, fabric.domain)
    inside, beyond = hops_up(layout.pp, domains), hops_out(layout.pp, domains)
    hops = Algorithm(phases=ONE_PHASE, rounds_up=inside, rounds_out=beyond, up=inside, out=beyond, together=False)
    pair = _group_bandwidth(fabric, 1)
    return _term(1, _algorithm_lines([hops], message, pair, fabric.out, costs))


def exchange_term(
    fabric: Fabric, layout: Layout, routed: RoutedLayer, message: Byte, costs: LinkCosts, count: Number = 1
) -> CollectiveTerm:
    """Dispatch and combine of an expert layer: a copy per expert, per chip, or per domain; or every token to every rank."""
    ranks, ep = layout.dp * layout.cp, layout.ep
    peers = group(fabric, ranks, layout.tp)  # a chip exchanges with its counterparts in the other ranks
    domains, inside, places = peers.domains, peers.inside, np.minimum(ep, peers.domains)
    hit = places_hit(ep, routed.experts, routed.active, routed.groups, routed.groups_chosen)
    entered = domains_hit(places, places_hit(places, routed.experts, routed.active, routed.groups, routed.groups_chosen), domains)
    torus = fabric.kind == "torus"
    share = _exchange_share(fabric, peers) if torus else None
    near, far = _hops(fabric, peers) if torus else direct_round_up(ranks, domains), one_round(domains)
    spread = _hops(fabric, peers) if torus else one_round(inside)

    def direct(copies: Number, rounds_up: Number, rounds_out: Number) -> Algorithm:
        up = torus_exchange_up(copies, share, domains) if torus else exchange_up(copies, ranks, inside)
        return _exchange(TWO_PHASES, rounds_up, rounds_out, up, exchange_out(copies, ranks, inside))

    copies = hit * ranks / ep
    passed_on = torus_exchange_up(copies, share, 1) if torus else forwarded_up(copies, inside)
    algorithms = [
        direct(routed.active * ranks / ep, near, far),
        direct(copies, chunked_rounds(near), chunked_rounds(far)),  # token counts go first, so that a chip knows what it will receive
        _exchange(TWO_PHASES, chunked_rounds(spread), far, passed_on, forwarded_out(entered, domains, layout.tp)),
    ]
    everything = [direct(ranks, near, far)]
    bandwidth = _exchange_bandwidth(fabric, peers.inside)
    lines = _algorithm_lines(algorithms, message, bandwidth, fabric.out, costs, exchange=True)
    return _term(count, lines + _algorithm_lines(everything, message, bandwidth, fabric.out, costs))


def _exchange(phases: Number, rounds_up: Number, rounds_out: Number, up: Number, out: Number) -> Algorithm:
    return Algorithm(phases=phases, rounds_up=rounds_up, rounds_out=rounds_out, up=up, out=out, together=True)


def _switch_reduce(fabric: Fabric, peers: ChipGroup) -> list[Algorithm]:
    n, m, d = peers.members, peers.inside, peers.domains
    one_shot = _exchange(ONE_PHASE, direct_round_up(n, d), one_round(d), one_shot_up(m), one_shot_out(n, m))
    rounds_up, rounds_out, up, out = tree_rounds(m), tree_rounds(d), one_round(m), tree_out(m, d)
    tree = Algorithm(phases=TWO_PHASES, rounds_up=rounds_up, rounds_out=rounds_out, up=up, out=out, together=True)
    in_switch = _levels(TWO_PHASES, one_round(m), d, in_switch_up(m), levels_out(n, d)) if fabric.in_switch else []
    return [one_shot, tree, *_switch_gather(peers, TWO_PHASES), *(replace(how, in_switch=True) for how in in_switch)]


def _switch_gather(peers: ChipGroup, phases: Number) -> list[Algorithm]:
    n, m, d = peers.members, peers.inside, peers.domains
    near, far, up, out = direct_round_up(n, d), one_round(d), direct_up(n, m), direct_out(n, m)
    direct = Algorithm(phases=phases, rounds_up=near, rounds_out=far, up=up, out=out, together=True)
    near, far, up, out = ring_rounds_up(n, d), ring_rounds_out(d), ring_up(n, m, d), ring_out(n, m, d)
    ring = Algorithm(phases=phases, rounds_up=near, rounds_out=far, up=up, out=out, together=True)
    return [direct, ring, *_levels(phases, one_round(m), d, levels_up(m), levels_out(n, d))]


def _levels(phases: Number, rounds: Number, domains: Number, up: Number, out: Number) -> list[Algorithm]:
    """Hierarchical algorithms: the levels in sequence, or overlapped on two chunks."""
    far = one_round(domains)
    return [
        Algorithm(phases=phases, rounds_up=rounds, rounds_out=far, up=up, out=out, together=False),
        Algorithm(phases=phases, rounds_up=chunked_rounds(rounds), rounds_out=chunked_rounds(far), up=up, out=out, together=True),
    ]


def _torus_gather(fabric: Fabric, peers: ChipGroup, phases: Number) -> list[Algorithm]:
    up = torus_gather_share(peers.inside, _feeding(fabric, peers))
    return _levels(phases, _hops(fabric, peers), peers.domains, up, levels_out(peers.members, peers.domains))


def _axes(fabric: Fabric, peers: ChipGroup) -> tuple[FabricAxis, ...]:
    return axes(fabric, peers.members, peers.stride)


def _feeding(fabric: Fabric, peers: ChipGroup) -> Any:
    return sum(axis_links(axis.extent, axis.gap, axis.wrap) for axis in _axes(fabric, peers))


def _hops(fabric: Fabric, peers: ChipGroup) -> Any:
    return sum(axis_hops(axis.extent, axis.gap, axis.wrap) for axis in _axes(fabric, peers))


def _exchange_share(fabric: Fabric, peers: ChipGroup) -> Any:
    return longest(tuple(axis_exchange_share(axis.extent, axis.gap, axis.wrap) for axis in _axes(fabric, peers)))


def _group_bandwidth(fabric: Fabric, inside: Number) -> Any:
    if fabric.kind != "mesh":
        return fabric.up
    return mesh_bandwidth(fabric.up, inside, fabric.domain if fabric.wired is None else fabric.wired)


def _exchange_bandwidth(fabric: Fabric, inside: Number) -> Any:
    return _group_bandwidth(fabric, inside) if fabric.kind == "mesh" else fabric.exchange


def _algorithm_lines(
    algorithms: list[Algorithm], message: Byte, up_bw: BytePerSecond, out_bw: BytePerSecond, costs: LinkCosts, exchange: bool = False,
    reduced: ChipGroup | None = None,
) -> list[Way]:  # fmt: skip
    """Line of each algorithm at achieved bandwidth, and its slope at the links' peak; `reduced` is the group of a reduction."""
    alphas = (costs.exchange_up, costs.exchange_out) if exchange else (costs.up, costs.out)
    beyond, lines = out_bw * costs.beyond, []
    for how in algorithms:
        slope = line_slope_together if how.together else line_slope
        share = costs.in_switch if how.in_switch else costs.exchange if exchange else costs.efficiency
        achieved_slope = slope(how.phases, how.up, how.out, message, up_bw * share, beyond)
        alpha = line_alpha(how.phases, how.rounds_up, how.rounds_out, *alphas)
        if reduced is not None:
            alpha = reduction_alpha(alpha, reduced.inside, reduced.domains, costs.library, costs.out)
        lines.append((CollectiveLine(alpha=alpha, slope=achieved_slope), slope(how.phases, how.up, how.out, message, up_bw, out_bw)))
    return lines


def reduction_alpha(kernels: Second, inside: Number, domains: Number, runs: Library | None, hop_beyond: Second) -> Any:
    """Latency of a reduction whose rounds would take `kernels` in the engine's kernels, where the library runs what they do not reach."""
    if runs is None:
        return kernels
    tree = tree_latency_s(runs.start, inside, runs.hop, domains, hop_beyond)
    return reduction_latency_s(kernels, tree, inside, domains, runs.kernel_chips)


def _term(count: Number, lines: list[Way]) -> CollectiveTerm:
    """Collective term without the lines that another line beats or equals at every size, for every layout."""
    best_lines: list[CollectiveLine] = []
    for line, _ in lines:
        if not any(_beats(rival, line) for rival in best_lines):
            best_lines = [rival for rival in best_lines if not _beats(line, rival)] + [line]
    return CollectiveTerm(count=count, lines=tuple(best_lines), floor=least(tuple(peak for _, peak in lines)))


def _beats(line: CollectiveLine, rival: CollectiveLine) -> bool:
    return bool(np.all(line.alpha <= rival.alpha)) and bool(np.all(line.slope <= rival.slope))


def most(number: Any) -> float:
    """Largest of a number or an array of numbers: structure, not arithmetic."""
    return float(number.max()) if hasattr(number, "max") else float(number)


def need_scale_out(fabric: Fabric, layout: Layout, name: str) -> None:
    """MissingFact when a layout needs scale-out links of unknown bandwidth."""
    if fabric.out_is_missing and most(layout.chips) > fabric.domain:
        raise MissingFact(name, "scale_out_bw", "give it with --set system.scale_out_bw=50GB/s")

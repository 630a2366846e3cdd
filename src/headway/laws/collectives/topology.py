"""Collectives by topology: where a group of chips sits, and the rounds and bytes of each algorithm through switches and on a torus.

Placement: tp innermost (stride 1), then cp, dp, and pp outermost; ep uses the chips of tp*cp*dp, the chips that share an expert innermost.

A group covers `extent` chips of an axis, `gap` links apart, closed to a ring (`wrap` 1) or not. Shares are per link and direction.

A group has n members, m in each of d scale-up domains. Every chip has its own scale-out link (rail-optimised). All-gather and
reduce-scatter mirror each other; an all-reduce is both in turn: two phases of equal shares. So the ring all-reduce is `ring_rounds_up`,
`ring_rounds_out`, `ring_up` and `ring_out`, twice; cost.py makes times of them.
"""

from __future__ import annotations

import functools

import numpy as np

from headway.core.formula import formula
from headway.core.units import Byte, BytePerSecond, Number, Second

PLACEMENT = "definition: tp innermost, then cp, dp, pp; groups spread evenly over the domains they need"


@formula(source=PLACEMENT)
def group_domains(members: Number, stride: Number, domain: Number) -> Number:
    """Scale-up domains that a group spans (DeepSeek-V3's EP144 over servers of 8: 18; over a rack of 72: 2).

    >>> [float(group_domains(144, 1, size)) for size in (8, 72)], float(group_domains(4, 8, 8))
    ([18.0, 2.0], 4.0)
    """
    return np.minimum(members, np.ceil(members * stride / domain))


@formula(source="a link to each peer: a group of n uses n-1 of a chip's D-1 links")
def mesh_bandwidth(scale_up_bw: BytePerSecond, members: Number, domain: Number) -> BytePerSecond:
    """Bandwidth of a full mesh per chip within its group (MI300X, 7 links of 64 GB/s: a group of two uses one link).

    >>> float(mesh_bandwidth(448e9, 2, 8)) / 1e9, float(mesh_bandwidth(448e9, 8, 8)) / 1e9
    (64.0, 448.0)
    """
    return scale_up_bw * np.maximum(np.minimum(members, domain) - 1, 1) / np.maximum(domain - 1, 1)


@formula(source="half the chips send half of what they hold across the cut")
def bisection_bandwidth(scale_up_bw: BytePerSecond, bisection: BytePerSecond, domain: Number) -> BytePerSecond:
    """All-to-all bandwidth per chip, at most what the domain's bisection carries (Trainium 3, 144 chips, 9,216 GB/s).

    >>> float(bisection_bandwidth(1280e9, 9216e9, 144)) / 1e9
    256.0
    """
    return np.minimum(scale_up_bw, 4 * bisection / domain)


@formula(source="definition: two links per axis of a torus, one per direction")
def torus_link_bandwidth(scale_up_bw: BytePerSecond, axes: Number) -> BytePerSecond:
    """Bandwidth of one torus link, one direction (TPU v5p: 600 GB/s over 6 links).

    >>> torus_link_bandwidth(600e9, 3) / 1e9
    100.0
    """
    return scale_up_bw / (2 * axes)


@formula(source="definition: chips are numbered along the first axis, then the second")
def torus_extent(members: Number, stride: Number, before: Number, side: Number) -> Number:
    """Members of a group along one torus axis; `before` is the product of the sides of the axes before it.

    A group that does not fill its axes evenly counts as the smallest block around it.

    >>> [float(torus_extent(8, 4, before, side)) for before, side in ((1, 4), (4, 4), (16, 8))]  # 8 chips, stride 4, of 4x4x8
    [1.0, 4.0, 2.0]
    """
    return np.ceil(np.clip(members * stride / before, 1, side) / np.clip(stride / before, 1, side))


@formula(source="definition: chips are numbered along the first axis, then the second")
def torus_gap(stride: Number, before: Number, side: Number) -> Number:
    """Links between neighbours of a group along one torus axis; that many groups share the axis.

    >>> [float(torus_gap(2, before, side)) for before, side in ((1, 4), (4, 4))]
    [2.0, 1.0]
    """
    return np.clip(stride / before, 1, side)


@formula(source="definition: a group that covers an axis has its wrap-around links")
def torus_wrap(extent: Number, gap: Number, side: Number, wraps: Number) -> Number:
    """1 where a group closes a ring along a torus axis, 0 where it is a line.

    >>> float(torus_wrap(4, 1, 4, 1)), float(torus_wrap(2, 1, 4, 1))
    (1.0, 0.0)
    """
    return np.where(extent * gap == side, wraps, 0)


@formula(source="hierarchical gathers (NCCL, two levels): a domain takes in each byte once, over the links of all its members")
def rail_bandwidth(scale_out_bw: BytePerSecond, inside: Number, scale_up_bw: BytePerSecond) -> BytePerSecond:
    """Gather bandwidth per chip over several domains, `inside` group members in each (8 in an H100 node).

    >>> float(rail_bandwidth(50e9, 8, 450e9)) / 1e9, float(rail_bandwidth(50e9, 1, 450e9)) / 1e9
    (400.0, 50.0)
    """
    return np.minimum(scale_out_bw * inside, scale_up_bw)


BOOK = "Austin et al. 2025, How to Scale Your Model, chapter 3"
RINGS = BOOK + " (bidirectional rings, one part of the message per axis)"


@formula(source=RINGS)
def axis_links(extent: Number, gap: Number, wrap: Number) -> Number:
    """Links that feed a chip along one torus axis: two on a ring, one at the end of a line, divided by the groups that share it.

    >>> float(axis_links(4, 1, 1)), float(axis_links(2, 1, 0)), float(axis_links(1, 1, 0))
    (2.0, 1.0, 0.0)
    """
    return np.where(extent > 1, (1 + wrap) / gap, 0.0)


@formula(source=RINGS)
def axis_hops(extent: Number, gap: Number, wrap: Number) -> Number:
    """Hops along one torus axis to the farthest chip of the group.

    >>> float(axis_hops(8, 1, 1)), float(axis_hops(8, 1, 0))
    (4.0, 7.0)
    """
    return gap * np.where(wrap > 0, np.floor(extent / 2), extent - 1)


@formula(source=RINGS)
def torus_gather_share(members: Number, links: Number) -> Number:
    """All-gather or reduce-scatter over all torus axes at once: share of the message per link that feeds a chip; 1 of a one-way ring.

    >>> round(float(torus_gather_share(128, 6)), 4)  # a whole TPU v5p 4x4x8
    0.1654
    >>> float(torus_gather_share(8, 1))  # a one-way ring of 8
    0.875
    """
    return (members - 1) / members / np.maximum(links, 1e-9)


@formula(source=RINGS)
def torus_one_shot_share(members: Number, links: Number) -> Number:
    """One-shot all-reduce of a short message on a torus: messages per link, since every chip receives and adds all others.

    >>> float(torus_one_shot_share(4, 2))
    1.5
    """
    return (members - 1) / np.maximum(links, 1e-9)


@formula(source="bisection: floor(n^2/4) pairs per direction cross the middle of a line of n, half as many each link of a ring")
def axis_exchange_share(extent: Number, gap: Number, wrap: Number) -> Number:
    """All-to-all along one torus axis: load of its busiest link over the bytes of a chip; a ring of side n: n/8.

    >>> float(axis_exchange_share(8, 1, 1)), float(axis_exchange_share(8, 1, 0))
    (1.0, 2.0)
    """
    return gap * np.floor(extent * extent / 4) / extent / (1 + wrap)


@formula(source="each part goes 1 .. n - 1 hops, n / 2 on average: Scaling Book, Sharded Matrices, all-to-all")
def one_way_exchange_share(members: Number) -> Number:
    """All-to-all on a one-way ring: load of each link over the bytes of a chip, the part that it keeps counted.

    A ring of both ways (axis_exchange_share) has less: a quarter where it is long, 1 of 3.5 at 8 chips.

    >>> one_way_exchange_share(8)  # TPU v5e, one side of a 8x8 in one direction
    3.5
    """
    return (members - 1) / 2


@formula(source="definition")
def longest(values: tuple[Number, ...]) -> Number:
    """Largest of the axes' loads: the busiest torus axis sets the time of an all-to-all.

    >>> float(longest((0.5, 0.5, 1.0)))  # TPU v5p 4x4x8
    1.0
    """
    return functools.reduce(np.maximum, values)


DIRECT = "every chip sends to every other; vLLM and TensorRT-LLM custom all-reduce"
RING = "Patarasuk, Yuan 2009, J. Parallel Distrib. Comput. 69(2); one ring per rail, as NCCL makes them"
TREE = "Sanders, Speck, Traeff 2009, Parallel Computing 35(12): two trees, full bandwidth; NCCL"
LEVELS = "Thakur, Rabenseifner, Gropp 2005, section 4, level by level: scatter inside, exchange along each rail, gather inside"


@formula(source="definition")
def one_round(members: Number) -> Number:
    """Rounds of a direct exchange: 1, or 0 in a group of one chip.

    >>> float(one_round(8)), float(one_round(1))
    (1.0, 0.0)
    """
    return np.where(members > 1, 1.0, 0.0)


@formula(source="definition: messages of both levels leave at once, and scale-out takes longer")
def direct_round_up(members: Number, domains: Number) -> Number:
    """Scale-up rounds of a direct exchange: 1 within a domain, 0 when scale-out sets the latency.

    >>> float(direct_round_up(8, 1)), float(direct_round_up(16, 2))
    (1.0, 0.0)
    """
    return np.where((members > 1) & (domains <= 1), 1.0, 0.0)


@formula(source=DIRECT)
def one_shot_up(inside: Number) -> Number:
    """Messages a chip sends over scale-up in a one-shot all-reduce: the whole message to each other chip of its domain.

    >>> one_shot_up(8)
    7
    """
    return inside - 1


@formula(source=DIRECT)
def one_shot_out(members: Number, inside: Number) -> Number:
    """Messages a chip sends over scale-out in a one-shot all-reduce: the whole message to each chip outside its domain.

    >>> one_shot_out(16, 8)
    8
    """
    return members - inside


@formula(source=DIRECT)
def direct_up(members: Number, inside: Number) -> Number:
    """Share of the message a chip sends over scale-up in a direct all-gather, reduce-scatter or all-to-all.

    >>> direct_up(8, 8)
    0.875
    """
    return (inside - 1) / members


@formula(source=DIRECT)
def direct_out(members: Number, inside: Number) -> Number:
    """Share of the message a chip sends over scale-out in a direct exchange (R domains: 1 - 1/R).

    >>> direct_out(16, 8)
    0.5
    """
    return (members - inside) / members


@formula(source=RING)
def ring_rounds_up(members: Number, domains: Number) -> Number:
    """Hops of a ring inside scale-up domains.

    >>> ring_rounds_up(16, 2), ring_rounds_up(8, 1)
    (14, 7)
    """
    return members - domains


@formula(source=RING)
def ring_rounds_out(domains: Number) -> Number:
    """Hops of a ring between scale-up domains.

    >>> ring_rounds_out(2)
    1
    """
    return domains - 1


@formula(source=RING)
def ring_up(members: Number, inside: Number, domains: Number) -> Number:
    """Share of the message a chip sends over scale-up with a ring per rail: it ends one ring and forwards the others.

    >>> float(ring_up(8, 8, 1)), round(float(ring_up(16, 8, 2)), 4)
    (0.875, 0.8203)
    """
    return (members - 1) / members * np.where(domains > 1, 1 - 1 / inside, 1.0)


@formula(source=RING)
def ring_out(members: Number, inside: Number, domains: Number) -> Number:
    """Share of the message a chip sends over scale-out with a ring per rail: it carries one of its domain's rings.

    >>> round(float(ring_out(16, 8, 2)), 4)
    0.1172
    """
    return (members - 1) / members * np.where(domains > 1, 1 / inside, 0.0)


@formula(source=TREE)
def tree_rounds(members: Number) -> Number:
    """Rounds of a binary tree: its depth.

    >>> float(tree_rounds(72)), float(tree_rounds(1))
    (7.0, 0.0)
    """
    return np.ceil(np.log2(members))


@formula(source=TREE)
def tree_out(inside: Number, domains: Number) -> Number:
    """Messages per chip over scale-out of a tree: one per phase and domain, spread over the domain's rails.

    >>> float(tree_out(8, 4))
    0.125
    """
    return np.where(domains > 1, 1 / inside, 0.0)


@formula(source=LEVELS)
def levels_up(inside: Number) -> Number:
    """Share of the message a chip sends over scale-up in a hierarchical collective: scatter or gather inside the domain.

    >>> levels_up(8)
    0.875
    """
    return (inside - 1) / inside


@formula(source=LEVELS)
def levels_out(members: Number, domains: Number) -> Number:
    """Share of the message a chip sends over scale-out in a hierarchical collective: scatter or gather along its rail.

    >>> levels_out(16, 2)
    0.0625
    """
    return (domains - 1) / members


@formula(source="definition: the two levels work at once on different chunks of a message; two chunks are the fewest")
def chunked_rounds(rounds: Number) -> Number:
    """Rounds of a message sent in two chunks.

    >>> chunked_rounds(1.0)
    2.0
    """
    return 2 * rounds


@formula(source="NVIDIA NVLink SHARP (NVSwitch 3, 2022): the switch adds; a chip sends the message once, receives the sum")
def in_switch_up(inside: Number) -> Number:
    """Share of the message over scale-up in each of two phases when the switch adds and copies: half of an all-reduce.

    >>> float(in_switch_up(8)), float(in_switch_up(1))
    (0.5, 0.0)
    """
    return np.where(inside > 1, 0.5, 0.0)


def even_sides(chips: int, rank: int) -> tuple[int, ...]:
    """The most even factors of a number of chips, smallest first.

    >>> even_sides(8, 3), even_sides(32, 2), even_sides(6, 1)
    ((2, 2, 2), (4, 8), (6,))
    """
    if rank == 1:
        return (chips,)
    side = max(n for n in range(1, round(chips ** (1 / rank)) + 1) if chips % n == 0)
    return (side, *even_sides(chips // side, rank - 1))


@functools.lru_cache(maxsize=4096)
def sides_within(chips: int, box: tuple[int, ...]) -> tuple[int, ...]:
    """Sides of the most even part of a torus with so many chips; the box itself where none of its parts has exactly as many.

    >>> sides_within(4, (16, 16)), sides_within(16, (2, 16)), sides_within(4, (12,)), sides_within(32, (4, 4, 8))
    ((2, 2), (2, 8), (4,), (2, 4, 4))
    """
    sides = even_sides(chips, len(box))
    if _inside(sides, box):
        return sides
    fitting = [sides for sides in _factors(chips, len(box)) if _inside(sides, box)]
    return min(fitting, key=lambda sides: (max(sides), sides)) if fitting else box


def _inside(sides: tuple[int, ...], box: tuple[int, ...]) -> bool:
    return all(side <= most for side, most in zip(sorted(sides), sorted(box), strict=True))


def _factors(chips: int, rank: int) -> list[tuple[int, ...]]:
    """All ways to write a number of chips as `rank` sides."""
    if rank == 1:
        return [(chips,)]
    return [(side, *rest) for side in range(1, chips + 1) if chips % side == 0 for rest in _factors(chips // side, rank - 1)]


# -- collectives over named axes of a mesh: share of an array that crosses the busiest link, latency of its hops, and its time --
# The array is counted whole, as one chip holds it after an all-gather or before a reduce-scatter. An all-reduce is both, one after
# the other. Shares of a torus are per link and direction, those of a switch per chip.


GPUS = "Austin et al. 2025, How to Scale Your Model, chapter 12"


@formula(source=BOOK + ": (n - 1) / n goes to 1")
def long_ring_share(links: Number) -> Number:
    """Share of an array per link in an all-gather over a ring of many members, `links` feeding each chip.

    >>> long_ring_share(2)  # both directions of a ring
    0.5
    """
    return 1 / links


@formula(source=GPUS + ": each chip sends its part to every other")
def switch_gather_share(members: Number) -> Number:
    """Share of an array that each chip sends in an all-gather or reduce-scatter through a switch.

    >>> switch_gather_share(8)
    0.875
    """
    return (members - 1) / members


@formula(source=GPUS + ": each of n chips holds 1/n and sends all but 1/n of that")
def switch_exchange_share(members: Number) -> Number:
    """Share of an array that each chip sends in an all-to-all through a switch.

    >>> switch_exchange_share(8)
    0.109375
    """
    return (members - 1) / members**2


@formula(source=GPUS + ": a chip sends its part to the chips of other domains over its own link")
def domains_exchange_share(members: Number, domains: Number) -> Number:
    """Share of an array that each chip sends to other domains in an all-to-all (16 H100 in two nodes).

    >>> domains_exchange_share(16, 2)
    0.03125
    """
    return (domains - 1) / (domains * members)


@formula(source=GPUS + ": with at most k of n parts not empty")
def filled_share(share: Number, active: Number, members: Number) -> Number:
    """Share sent by an all-to-all of which each chip fills only some parts, as tokens go to k experts.

    >>> float(filled_share(0.109375, 4, 8))
    0.0546875
    """
    return share * np.minimum(active / members, 1)


@formula(source=BOOK + ": max(hops x latency, bytes / bandwidth)")
def collective_time_s(latency: Second, transfer: Second) -> Second:
    """Lower bound of a collective's time: its hops or its bytes, whichever takes longer.

    >>> float(collective_time_s(2e-6, 0.7e-6))
    2e-06
    """
    return np.maximum(latency, transfer)


@formula(source="Hockney 1994, Parallel Computing 20(3): alpha + bytes / bandwidth")
def message_time_s(latency: Second, transfer: Second) -> Second:
    """Lower bound of a message's time: the last byte leaves after the transfer, and has the hops before it as the first had.

    >>> round(float(message_time_s(6e-6, 186.4e-6)) * 1e6, 1)  # 16.8 MB over 6 hops and two links of 45 GB/s
    192.4
    """
    return latency + transfer


@formula(source=BOOK + ": a buffer below bandwidth x latency is bound by latency")
def latency_bound_bytes(hops: Number, hop: Second, share: Number, bandwidth: BytePerSecond) -> Byte:
    """Size of the array below which latency sets the time (TPU v5e, one hop of one link at 45 GB/s: 45 kB).

    >>> round(latency_bound_bytes(1, 1e-6, 1, 45e9))
    45000
    """
    return hops * hop * bandwidth / share


@formula(source=BOOK + ": the shortest path on a torus")
def path_hops(distance: Number, side: Number, wrap: Number) -> Number:
    """Hops between two chips along one axis: the shorter way round where the axis closes to a ring.

    >>> float(path_hops(12, 16, 1)), float(path_hops(3, 4, 0))
    (4.0, 3.0)
    """
    return np.where(wrap > 0, np.minimum(distance, side - distance), distance)

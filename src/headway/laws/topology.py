"""Where a group of chips sits: how many scale-up domains it spans, and what part of each axis of a torus it covers.

Placement: tp innermost (stride 1), then cp, dp, and pp outermost; ep uses the chips of tp*cp*dp, the chips that share an expert innermost.
"""

from __future__ import annotations

import numpy as np

from headway.formula import formula
from headway.units import BytePerSecond, Number

PLACEMENT = "definition: tp innermost, then cp, dp, pp; groups spread evenly over the domains they need"


@formula(source=PLACEMENT)
def stage_chips(tp: Number, cp: Number, dp: Number) -> Number:
    """Chips of one pipeline stage: the distance between the chips that hand a token on.

    >>> stage_chips(8, 1, 9)
    72
    """
    return tp * cp * dp


@formula(source=PLACEMENT)
def group_domains(members: Number, stride: Number, domain: Number) -> Number:
    """Scale-up domains that a group spans (DeepSeek-V3's EP144 over servers of 8: 18; over a rack of 72: 2).

    >>> [float(group_domains(144, 1, size)) for size in (8, 72)], float(group_domains(4, 8, 8))
    ([18.0, 2.0], 4.0)
    """
    return np.minimum(members, np.ceil(members * stride / domain))


@formula(source=PLACEMENT)
def group_members(members: Number, domains: Number) -> Number:
    """Members of a group in one scale-up domain.

    >>> group_members(144, 18)
    8.0
    """
    return members / domains


@formula(source="a link to each peer: a group of n uses n-1 of a chip's D-1 links")
def mesh_bandwidth(scale_up_bw: BytePerSecond, members: Number, domain: Number) -> BytePerSecond:
    """What a chip of a full mesh can send within its group (MI300X, 7 links of 64 GB/s: a pair has one of them).

    >>> float(mesh_bandwidth(448e9, 2, 8)) / 1e9, float(mesh_bandwidth(448e9, 8, 8)) / 1e9
    (64.0, 448.0)
    """
    return scale_up_bw * np.maximum(np.minimum(members, domain) - 1, 1) / np.maximum(domain - 1, 1)


@formula(source="half the chips send half of what they hold across the cut")
def bisection_bandwidth(scale_up_bw: BytePerSecond, bisection: BytePerSecond, domain: Number) -> BytePerSecond:
    """What a chip can send in an all-to-all when a cut through the domain may be the limit (Trainium 3, 144 chips, 9,216 GB/s).

    >>> float(bisection_bandwidth(1280e9, 9216e9, 144)) / 1e9
    256.0
    """
    return np.minimum(scale_up_bw, 4 * bisection / domain)


@formula(source="definition: two links per axis of a torus, one per direction")
def torus_link_bandwidth(scale_up_bw: BytePerSecond, axes: Number) -> BytePerSecond:
    """One link of a torus, one direction (TPU v5p: 600 GB/s over 6 links).

    >>> torus_link_bandwidth(600e9, 3) / 1e9
    100.0
    """
    return scale_up_bw / (2 * axes)


@formula(source="definition: chips are numbered along the first axis, then the second")
def torus_extent(members: Number, stride: Number, before: Number, side: Number) -> Number:
    """Members of a group along one axis; `before` is the product of the sides of the axes before it.

    A group that does not fill its axes evenly is taken as the block that holds it.

    >>> [float(torus_extent(8, 4, before, side)) for before, side in ((1, 4), (4, 4), (16, 8))]  # 8 chips, stride 4, of 4x4x8
    [1.0, 4.0, 2.0]
    """
    return np.ceil(np.clip(members * stride / before, 1, side) / np.clip(stride / before, 1, side))


@formula(source="definition: chips are numbered along the first axis, then the second")
def torus_gap(stride: Number, before: Number, side: Number) -> Number:
    """Links between neighbours of a group along one axis, which as many groups share.

    >>> [float(torus_gap(2, before, side)) for before, side in ((1, 4), (4, 4))]
    [2.0, 1.0]
    """
    return np.clip(stride / before, 1, side)


@formula(source="definition: a group that covers an axis has its wrap-around links")
def torus_wrap(extent: Number, gap: Number, side: Number, wraps: Number) -> Number:
    """1 where a group closes a ring along an axis, 0 where it is a line.

    >>> float(torus_wrap(4, 1, 4, 1)), float(torus_wrap(2, 1, 4, 1))
    (1.0, 0.0)
    """
    return np.where(extent * gap == side, wraps, 0)


@formula(source="hierarchical gathers (NCCL, two levels): a domain takes in each byte once, over the links of all its members")
def rail_bandwidth(scale_out_bw: BytePerSecond, inside: Number, scale_up_bw: BytePerSecond) -> BytePerSecond:
    """What a gather over several domains gets per chip, whose domain has `inside` members in it (8 of an H100 node).

    >>> float(rail_bandwidth(50e9, 8, 450e9)) / 1e9, float(rail_bandwidth(50e9, 1, 450e9)) / 1e9
    (400.0, 50.0)
    """
    return np.minimum(scale_out_bw * inside, scale_up_bw)

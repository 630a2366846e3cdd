"""Collectives on a torus: rounds, and what the busiest link carries over the message, axis by axis.

A group covers `extent` chips of an axis, `gap` links apart, closed to a ring (`wrap` 1) or not. Shares are of one link in one direction.
"""

from __future__ import annotations

import functools

import numpy as np

from headway.formula import formula
from headway.units import Number

BOOK = "Austin et al. 2025, How to Scale Your Model, chapter 3 (bidirectional rings, one part of the message per axis)"


@formula(source=BOOK)
def axis_links(extent: Number, gap: Number, wrap: Number) -> Number:
    """Links that feed a chip of the group along one axis: two on a ring, one at the end of a line, shared by the groups in between.

    >>> float(axis_links(4, 1, 1)), float(axis_links(2, 1, 0)), float(axis_links(1, 1, 0))
    (2.0, 1.0, 0.0)
    """
    return np.where(extent > 1, (1 + wrap) / gap, 0.0)


@formula(source=BOOK)
def axis_hops(extent: Number, gap: Number, wrap: Number) -> Number:
    """Hops to the farthest chip of the group along one axis.

    >>> float(axis_hops(8, 1, 1)), float(axis_hops(8, 1, 0))
    (4.0, 7.0)
    """
    return gap * np.where(wrap > 0, np.floor(extent / 2), extent - 1)


@formula(source=BOOK)
def torus_gather_share(members: Number, links: Number) -> Number:
    """All-gather or reduce-scatter over all axes at once: what a chip must receive, over the links that feed it.

    >>> round(float(torus_gather_share(128, 6)), 4)  # a whole TPU v5p 4x4x8
    0.1654
    """
    return (members - 1) / members / np.maximum(links, 1e-9)


@formula(source=BOOK)
def torus_one_shot_share(members: Number, links: Number) -> Number:
    """All-reduce of a short message: every chip receives all others' and adds up.

    >>> float(torus_one_shot_share(4, 2))
    1.5
    """
    return (members - 1) / np.maximum(links, 1e-9)


@formula(source="bisection: floor(n^2/4) pairs per direction cross the middle of a line of n, half as many each link of a ring")
def axis_exchange_share(extent: Number, gap: Number, wrap: Number) -> Number:
    """All-to-all: what the busiest link of one axis carries, over what a chip holds; a ring of side n: n/8.

    >>> float(axis_exchange_share(8, 1, 1)), float(axis_exchange_share(8, 1, 0))
    (1.0, 2.0)
    """
    return gap * np.floor(extent * extent / 4) / extent / (1 + wrap)


@formula(source="definition")
def longest(values: tuple[Number, ...]) -> Number:
    """The busiest axis sets the pace of an all-to-all.

    >>> float(longest((0.5, 0.5, 1.0)))  # TPU v5p 4x4x8
    1.0
    """
    return functools.reduce(np.maximum, values)

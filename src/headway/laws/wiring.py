"""Wires of a scale-up domain: how many links, cables and switch chips a mesh, a star and a two-level Clos need.

A link joins two ports, both directions; a cable is one differential pair, as the cables of an NVL72 are counted.
"""

from __future__ import annotations

import numpy as np

from headway.formula import formula
from headway.units import Number

CLOS = "Clos 1953, Bell System Technical Journal 32(2); as a folded fat tree: half the ports of a leaf go up, none is oversubscribed"
STAR = "Reiner Pope, blackboard lecture, 2026-04-29, claim RK-05: cables to central switches grow with the chips"


@formula(source="pairs of G chips: G (G-1) / 2")
def mesh_links(chips: Number, links_per_pair: Number) -> Number:
    """Links of a full mesh: quadratic in the chips (8 MI300X, one link per pair: 28).

    >>> mesh_links(8, 1), mesh_links(72, 1)
    (28.0, 2556.0)
    """
    return chips * (chips - 1) / 2 * links_per_pair


@formula(source="definition")
def mesh_links_per_chip(chips: Number, links_per_pair: Number) -> Number:
    """Links that each chip of a full mesh needs (MI300X has 7).

    >>> mesh_links_per_chip(8, 1)
    7
    """
    return (chips - 1) * links_per_pair


@formula(source=STAR)
def star_links(chips: Number, links_per_chip: Number) -> Number:
    """Links of chips to central switches: linear in the chips (GB200 NVL72, 18 links each).

    >>> star_links(72, 18)
    1296
    """
    return chips * links_per_chip


@formula(source=CLOS)
def clos_links(chips: Number, links_per_chip: Number) -> Number:
    """Links of a two-level Clos: as many between leaves and spines as between chips and leaves.

    >>> clos_links(576, 18)
    20736
    """
    return 2 * chips * links_per_chip


@formula(source="definition: along each axis every chip has one link to the next")
def torus_links(chips: Number, axes: Number) -> Number:
    """Links of a torus: linear in the chips (TPU v4 pod, 16x16x16).

    >>> torus_links(4096, 3)
    12288
    """
    return chips * axes


@formula(source="SemiAnalysis, GB200 Hardware Architecture, 2024: each NVLink cable is one differential pair")
def cable_count(links: Number, pairs_per_link: Number) -> Number:
    """Cables of so many links (GB200 NVL72: 72 chips x 18 links x 4 pairs).

    >>> cable_count(72 * 18, 4)
    5184
    """
    return links * pairs_per_link


@formula(source="ports on both ends of a link; every port used")
def star_switches(links: Number, ports_per_switch: Number) -> Number:
    """Central switch chips that have ports for all links (GB200 NVL72: 18).

    >>> float(star_switches(1296, 72))
    18.0
    """
    return np.ceil(links / ports_per_switch)


@formula(source=CLOS)
def clos_leaves(chip_links: Number, ports_per_switch: Number) -> Number:
    """Leaf switches, half of whose ports face chips (GB200 NVL576: 288).

    >>> float(clos_leaves(576 * 18, 72))
    288.0
    """
    return np.ceil(2 * chip_links / ports_per_switch)


@formula(source=CLOS)
def clos_spines(leaves: Number) -> Number:
    """Spine switches, all of whose ports face leaves (GB200 NVL576: 144).

    >>> float(clos_spines(288))
    144.0
    """
    return np.ceil(leaves / 2)


@formula(source="definition")
def clos_switches(leaves: Number, spines: Number) -> Number:
    """Switch chips of both levels.

    >>> clos_switches(288, 144)
    432
    """
    return leaves + spines


@formula(source=CLOS)
def clos_most_chips(ports_per_switch: Number) -> Number:
    """Chips that two levels reach, with one link of each chip in each plane; one level reaches as many as a switch has ports.

    >>> clos_most_chips(72)
    2592.0
    """
    return ports_per_switch**2 / 2


@formula(source="definition")
def chip_pairs(links: Number, pairs_per_link: Number) -> Number:
    """Differential pairs that leave one chip (Blackwell: 72).

    >>> chip_pairs(18, 4)
    72
    """
    return links * pairs_per_link


@formula(source="definition")
def chip_connectors(pairs: Number, pairs_per_connector: Number) -> Number:
    """Backplane connectors that one chip needs: a star needs as many at any size, a mesh more with every chip.

    >>> float(chip_connectors(72, 72)), float(chip_connectors(71 * 4, 72))
    (1.0, 4.0)
    """
    return np.ceil(pairs / pairs_per_connector)


@formula(source="definition")
def pairs_per_rack_unit(pairs: Number, rack_units: Number) -> Number:
    """Density of the backplane when all of it is in one rack.

    >>> pairs_per_rack_unit(5184, 48)
    108.0
    """
    return pairs / rack_units


@formula(source="definition")
def growth(now: Number, before: Number) -> Number:
    """How many times more (scale-up domains, Hopper to Blackwell: RK-06).

    >>> growth(72, 8)
    9.0
    """
    return now / before

"""A rack: power, weight, footprint and size, cables and switches of its scale-up network, and the bandwidth that this network carries.

A link joins two ports, both directions; a cable is one differential pair, as the cables of an NVL72 are counted.
"""

from __future__ import annotations

import numpy as np

from headway.core.formula import formula
from headway.core.units import Byte, BytePerSecond, Metre, Number, Same, Second


@formula(source="definition")
def fewest_within(amount: Same, limit: Same) -> Number:
    """Fewest racks, or chips, that hold a total at a limit each (960 kW at 120 or 30 kW a rack).

    >>> float(fewest_within(960e3, 120e3)), float(fewest_within(960e3, 30e3))
    (8.0, 32.0)
    """
    return np.ceil(amount / limit)


@formula(source="non-blocking: each half sends all it can to the other")
def switch_bisection(scale_up_bw: BytePerSecond, chips: Number) -> BytePerSecond:
    """Bandwidth between the halves of a switched domain, one direction (DGX H100: 1.8 TB/s).

    >>> switch_bisection(450e9, 8) / 1e12
    1.8
    """
    return scale_up_bw * chips / 2


@formula(source="half the chips have a link to each of the other half: (G/2)^2 links")
def mesh_bisection(scale_up_bw: BytePerSecond, chips: Number) -> BytePerSecond:
    """Bandwidth between the halves of a full mesh, one direction (8 MI300X, 7 links of 64 GB/s: 16 links).

    >>> mesh_bisection(448e9, 8) / 1e9
    1024.0
    """
    return scale_up_bw / (chips - 1) * (chips / 2) ** 2


@formula(source="a cut across the longest axis meets two links of every ring along it")
def torus_bisection(link_bw: BytePerSecond, chips: Number, longest_side: Number) -> BytePerSecond:
    """Bandwidth between the halves of a torus, one direction (TPU v5p pod 16x20x28, links of 100 GB/s).

    >>> torus_bisection(100e9, 8960, 28) / 1e12
    64.0
    """
    return 2 * chips / longest_side * link_bw


@formula(source="both levels work at once; bytes at the peak of the links, no latency: a floor")
def exchange_s(up: Byte, up_bw: BytePerSecond, out: Byte, out_bw: BytePerSecond) -> Second:
    """Time of an exchange over scale-up and scale-out (lecture MOE-11: 6.45 MB over NVLink 5).

    >>> round(float(exchange_s(6451200, 900e9, 0, 50e9)) * 1e6, 2), round(float(exchange_s(0, 900e9, 6451200, 100e9)) * 1e6, 1)
    (7.17, 64.5)
    """
    return np.maximum(up / up_bw, out / out_bw)


RACK_UNIT: Metre = 0.04445  # EIA-310: 1.75 inches


@formula(source="EIA-310: a rack unit is 1.75 inches")
def rack_height(rack_units: Number) -> Metre:
    """Height of the equipment, without frame and feet (GB200 NVL72).

    >>> round(rack_height(48), 2)
    2.13
    """
    return RACK_UNIT * rack_units


@formula(source="Clos 1953, Bell System Technical Journal 32(2), folded: n levels of switches with p ports reach 2 (p/2)^n chips")
def hops_through_switches(chips: Number, ports_per_switch: Number) -> Number:
    """Links between two chips of a domain: two for each level of switches (GB200 NVL72: 2; 576 chips on the same switches: 4).

    >>> [float(hops_through_switches(chips, 72)) for chips in (1, 2, 72, 576)]
    [0.0, 2.0, 2.0, 4.0]
    """
    levels = np.maximum(np.ceil(np.log(chips / 2) / np.log(ports_per_switch / 2)), 1)
    return np.where(chips > 1, 2 * levels, 0)


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
    """Links of a two-level Clos network: chips to leaves, and an equal number from leaves to spines.

    >>> clos_links(576, 18)
    20736
    """
    return 2 * chips * links_per_chip


@formula(source="SemiAnalysis, GB200 Hardware Architecture, 2024: each NVLink cable is one differential pair")
def cable_count(links: Number, pairs_per_link: Number) -> Number:
    """Cables of a number of links (GB200 NVL72: 72 chips x 18 links x 4 pairs).

    >>> cable_count(72 * 18, 4)
    5184
    """
    return links * pairs_per_link


@formula(source=CLOS)
def clos_leaves(chip_links: Number, ports_per_switch: Number) -> Number:
    """Leaf switches of a two-level Clos: half of their ports face chips (GB200 NVL576: 288).

    >>> float(clos_leaves(576 * 18, 72))
    288.0
    """
    return np.ceil(2 * chip_links / ports_per_switch)


@formula(source=CLOS)
def clos_spines(leaves: Number) -> Number:
    """Spine switches of a two-level Clos: all of their ports face leaves (GB200 NVL576: 144).

    >>> float(clos_spines(288))
    144.0
    """
    return np.ceil(leaves / 2)


@formula(source=CLOS)
def clos_most_chips(ports_per_switch: Number) -> Number:
    """Most chips that two switch levels connect, one link of each chip per plane; one level connects one chip per switch port.

    >>> clos_most_chips(72)
    2592.0
    """
    return ports_per_switch**2 / 2

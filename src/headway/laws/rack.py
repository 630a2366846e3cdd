"""A rack as a body: power, weight and floor, scaled from a known rack; and what its scale-up network carries."""

from __future__ import annotations

import numpy as np

from headway.formula import formula
from headway.units import Byte, BytePerSecond, Kilogram, KilogramPerSquareMetre, Number, Same, Second, SquareMetre, Token, Watt

SCALED = "assumption: power and weight per chip as in the known rack, switches and cooling included"


@formula(source=SCALED)
def share_per_chip(rack_total: Same, chips: Number) -> Same:
    """One chip's share of a known rack (GB200 NVL72: 120 kW over 72).

    >>> round(share_per_chip(120e3, 72), 1)
    1666.7
    """
    return rack_total / chips


@formula(source=SCALED)
def scaled_to(share: Same, chips: Number) -> Same:
    """The same for a domain of another size (576 chips as in an NVL72).

    >>> round(scaled_to(120e3 / 72, 576))
    960000
    """
    return share * chips


@formula(source="definition")
def fewest_within(amount: Same, limit: Same) -> Number:
    """The fewest racks, or chips, that hold a whole when each holds so much (960 kW, 120 or 30 kW a rack).

    >>> float(fewest_within(960e3, 120e3)), float(fewest_within(960e3, 30e3))
    (8.0, 32.0)
    """
    return np.ceil(amount / limit)


@formula(source="definition")
def watts_per_rack_unit(power: Watt, rack_units: Number) -> Watt:
    """Heat that each unit of height gives off (GB200 NVL72, 48 units).

    >>> watts_per_rack_unit(120e3, 48)
    2500.0
    """
    return power / rack_units


@formula(source="weight over the rack's own footprint; a hall spreads it over the aisles too")
def floor_load(weight: Kilogram, footprint: SquareMetre) -> KilogramPerSquareMetre:
    """What one rack puts on the floor beneath it.

    >>> round(floor_load(1360, 0.72))
    1889
    """
    return weight / footprint


@formula(source="definition")
def scale_up_total(scale_up_bw: BytePerSecond, chips: Number) -> BytePerSecond:
    """What all chips can send at once, one direction (GB200 NVL72: half of the 130 TB/s that are printed for both).

    >>> scale_up_total(900e9, 72) / 1e12
    64.8
    """
    return scale_up_bw * chips


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


@formula(source="definition")
def batch_per_chip(batch: Token, chips: Number) -> Token:
    """Tokens of a batch that one chip of the domain holds (lecture MOE-11: 2400 over 64).

    >>> batch_per_chip(2400, 64)
    37.5
    """
    return batch / chips


@formula(source="both levels work at once; bytes at the peak of the links, no latency: a floor")
def exchange_s(up: Byte, up_bw: BytePerSecond, out: Byte, out_bw: BytePerSecond) -> Second:
    """Time of an exchange over scale-up and scale-out (lecture MOE-11: 6.45 MB over NVLink 5).

    >>> round(float(exchange_s(6451200, 900e9, 0, 50e9)) * 1e6, 2), round(float(exchange_s(0, 900e9, 6451200, 100e9)) * 1e6, 1)
    (7.17, 64.5)
    """
    return np.maximum(up / up_bw, out / out_bw)

"""A rack's outside, and the hops between two of its chips."""

from __future__ import annotations

import numpy as np

from headway.formula import formula
from headway.units import Metre, Number, SquareMetre

RACK_UNIT: Metre = 0.04445  # EIA-310: 1.75 inches


@formula(source="EIA-310: a rack unit is 1.75 inches")
def rack_height(rack_units: Number) -> Metre:
    """How tall the equipment stands, frame and feet apart (GB200 NVL72).

    >>> round(rack_height(48), 2)
    2.13
    """
    return RACK_UNIT * rack_units


@formula(source="definition")
def rack_width(footprint: SquareMetre, depth: Metre) -> Metre:
    """How wide a rack of this floor and depth is (the usual 600 x 1200 mm).

    >>> round(rack_width(0.72, 1.2), 2)
    0.6
    """
    return footprint / depth


@formula(source="Clos 1953, Bell System Technical Journal 32(2), folded: n levels of switches with p ports reach 2 (p/2)^n chips")
def hops_through_switches(chips: Number, ports_per_switch: Number) -> Number:
    """Links between two chips of a domain: two for each level of switches (GB200 NVL72: 2; 576 chips on the same switches: 4).

    >>> float(hops_through_switches(72, 72)), float(hops_through_switches(576, 72))
    (2.0, 4.0)
    """
    return 2 * np.ceil(np.log(chips / 2) / np.log(ports_per_switch / 2))

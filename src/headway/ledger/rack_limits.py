"""Claims on what a rack is and holds (RK)."""

from __future__ import annotations

from typing import Any

from headway.laws.rack_shape import rack_height, rack_width
from headway.laws.sums import times
from headway.laws.wiring import cable_count, growth, mesh_links, star_links
from headway.ledger.register import Parts, recomputes


@recomputes("RK-01")
def chips_in_a_rack(inputs: Any) -> Parts:
    """Compute trays times the chips of each."""
    return {"GB200 NVL72": times(inputs.per_tray, inputs.trays)}


@recomputes("RK-03")
def rack_outside(inputs: Any) -> Parts:
    """Height from its units, width from its floor."""
    return {"height": rack_height(inputs.rack_units), "width": rack_width(inputs.footprint, inputs.depth)}


@recomputes("RK-05")
def cables_grow_with_chips(inputs: Any) -> Parts:
    """Links of a star and of a mesh with twice the chips, over those with the chips."""
    more = times(inputs.chips, inputs.twice)
    return {
        "star to central switches": growth(star_links(more, inputs.links), star_links(inputs.chips, inputs.links)),
        "full mesh": growth(mesh_links(more, inputs.per_pair), mesh_links(inputs.chips, inputs.per_pair)),
        "cables of the star": cable_count(star_links(inputs.chips, inputs.links), inputs.pairs),
    }


@recomputes("RK-06")
def domains_by_generation(inputs: Any) -> Parts:
    """Chips of each scale-up domain; Rubin Ultra's in dies and in packages."""
    blackwell = times(inputs.per_tray, inputs.trays)
    return {
        "Rubin Ultra, dies": times(inputs.ultra, inputs.ultra_dies),
        "Blackwell": blackwell,
        "Hopper to Blackwell": growth(blackwell, inputs.hopper),
        "Rubin Ultra, packages of its name": growth(inputs.ultra_name, inputs.ultra_dies),
        "Rubin NVL144, packages": growth(inputs.rubin_dies, inputs.rubin_dies_per_chip),
    }


@recomputes("RK-07")
def genuine_growth(inputs: Any) -> Parts:
    """Growth of the domain counted in dies, in packages and by name."""
    return {
        "in dies": growth(times(inputs.ultra, inputs.ultra_dies), times(inputs.blackwell, inputs.blackwell_dies)),
        "in packages": growth(inputs.ultra, inputs.blackwell),
        "by name": growth(inputs.ultra_name, inputs.blackwell),
    }

"""Claims on what a rack is and holds (RK)."""

from __future__ import annotations

from typing import Any

from headway.laws.rack_shape import rack_height, rack_width
from headway.laws.sums import times
from headway.laws.wiring import cable_count, growth, mesh_links, star_links
from headway.ledger.register import Parts, recomputes


@recomputes("RK-01")
def chips_in_a_rack(i: Any) -> Parts:
    """Compute trays times the chips of each."""
    return {"GB200 NVL72": times(i.per_tray, i.trays)}


@recomputes("RK-03")
def rack_outside(i: Any) -> Parts:
    """Height from its units, width from its floor."""
    return {"height": rack_height(i.rack_units), "width": rack_width(i.footprint, i.depth)}


@recomputes("RK-05")
def cables_grow_with_chips(i: Any) -> Parts:
    """Links of a star and of a mesh with twice the chips, over those with the chips."""
    more = times(i.chips, i.twice)
    return {
        "star to central switches": growth(star_links(more, i.links), star_links(i.chips, i.links)),
        "full mesh": growth(mesh_links(more, i.per_pair), mesh_links(i.chips, i.per_pair)),
        "cables of the star": cable_count(star_links(i.chips, i.links), i.pairs),
    }


@recomputes("RK-06")
def domains_by_generation(i: Any) -> Parts:
    """Chips of each scale-up domain; Rubin Ultra's in dies and in packages."""
    blackwell = times(i.per_tray, i.trays)
    return {
        "Rubin Ultra, dies": times(i.ultra, i.ultra_dies),
        "Blackwell": blackwell,
        "Hopper to Blackwell": growth(blackwell, i.hopper),
        "Rubin Ultra, packages of its name": growth(i.ultra_name, i.ultra_dies),
        "Rubin NVL144, packages": growth(i.rubin_dies, i.rubin_dies_per_chip),
    }


@recomputes("RK-07")
def genuine_growth(i: Any) -> Parts:
    """Growth of the domain counted in dies, in packages and by name."""
    return {
        "in dies": growth(times(i.ultra, i.ultra_dies), times(i.blackwell, i.blackwell_dies)),
        "in packages": growth(i.ultra, i.blackwell),
        "by name": growth(i.ultra_name, i.blackwell),
    }

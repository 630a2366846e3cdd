"""Claims on scale-up domains and racks: capacity, limits of model size, and construction of a rack (FS, RK)."""

from __future__ import annotations

from typing import Any

from headway.evidence.claims.claim import Parts, recomputes
from headway.laws.rack import cable_count, fewest_within, mesh_links, rack_height, star_links
from headway.laws.roofline.balance import bytes_beside_weights, domain_read_s


@recomputes("FS-01")
def hopper_box(inputs: Any) -> Parts:
    """HBM of a machine of eight H100."""
    return {"8 H100": inputs.chips * inputs.hbm}


@recomputes("FS-02")
def blackwell_rack(inputs: Any) -> Parts:
    """HBM of both Blackwell racks."""
    return {"GB200 NVL72": inputs.chips * inputs.hbm, "GB300 NVL72": inputs.chips * inputs.later_hbm}


@recomputes("FS-03")
def five_trillion(inputs: Any) -> Parts:
    """Weights of a 5 T model by format, and memory left for KV with bf16 weights."""
    wide = inputs.total * inputs.bf16
    return {
        "left for KV beside bf16 weights": bytes_beside_weights(inputs.chips * inputs.hbm, wide),
        "fp4 weights": inputs.total * inputs.fp4,
        "fp8 weights": inputs.total * inputs.fp8,
        "bf16 weights": wide,
    }


@recomputes("FS-04")
def floor_of_a_domain(inputs: Any) -> Parts:
    """Weight read time of one domain, and its change with a second domain as a pipeline stage or as more chips."""
    weights = inputs.total * inputs.weight_byte
    domain_s = domain_read_s(weights, inputs.chips, inputs.chip_bw)
    half = domain_read_s(weights / (inputs.one * inputs.domains), inputs.chips, inputs.chip_bw)
    return {
        "two domains as stages, over one": half * inputs.domains / domain_s,
        "one domain of twice the chips, over one": domain_read_s(weights, inputs.chips * inputs.domains, inputs.chip_bw) / domain_s,
        "GB200 NVL72": domain_s,
    }


@recomputes("FS-05")
def growth_by_generation(inputs: Any) -> Parts:
    """Growth of HBM bandwidth per chip and of the scale-up domain, over the previous generation."""
    return {
        "A100 to H100": inputs.h100_bw / inputs.a100_bw,
        "H200 to B200": inputs.b200_bw / inputs.h200_bw,
        "scale-up domain": inputs.chips / inputs.before,
        "H100 to B200": inputs.b200_bw / inputs.h100_bw,
    }


@recomputes("FS-06")
def floor_of_two_machines(inputs: Any) -> Parts:
    """Latency floor on eight H100 and on GB200 NVL72."""
    weights = inputs.total * inputs.weight_byte
    before, now = domain_read_s(weights, inputs.before, inputs.h100_bw), domain_read_s(weights, inputs.chips, inputs.gb200_bw)
    return {
        "improvement": before / now,
        "8 H100": before,
        "GB200 NVL72": now,
        "weights over the memory of 8 H100": weights / (inputs.before * inputs.h100_hbm),
    }


@recomputes("FS-07")
def capacity_or_latency(inputs: Any) -> Parts:
    """A large model on machines of 8 H100: stages needed to fit, its unchanged latency floor, and that of GB200 NVL72."""
    weights = inputs.total * inputs.weight_byte
    stages = fewest_within(weights, inputs.before * inputs.h100_hbm)
    on_a_chip = weights / (inputs.before * stages)
    floor = domain_read_s(weights, inputs.before, inputs.h100_bw)
    staged = domain_read_s(on_a_chip * inputs.before, inputs.before, inputs.h100_bw) * stages
    return {
        "weights over a chip's memory, with stages": on_a_chip / inputs.h100_hbm,
        "latency floor with stages over without": staged / floor,
        "latency floor on GB200 NVL72 over 8 H100": domain_read_s(weights, inputs.chips, inputs.gb200_bw) / floor,
        "stages": stages,
        "latency floor on boxes of 8 H100": staged,
    }


@recomputes("FS-10")
def pods_before_racks(inputs: Any) -> Parts:
    """Chips of TPU pods over contemporary switched domains, and latency floors of the pods."""
    weights = inputs.total * inputs.weight_byte
    return {
        "TPU v4 pod over 8 H100": inputs.v4_pod / inputs.hopper,
        "TPU v5p pod over 8 H100": inputs.v5p_pod / inputs.hopper,
        "TPU v7 pod over GB200 NVL72": inputs.v7_pod / inputs.blackwell,
        "TPU v3 pod": inputs.v3_side * inputs.v3_side,
        "latency floor, TPU v4 pod": domain_read_s(weights, inputs.v4_pod, inputs.v4_bw),
        "latency floor, 8 H100": domain_read_s(weights, inputs.hopper, inputs.h100_bw),
    }


@recomputes("RK-01")
def chips_in_a_rack(inputs: Any) -> Parts:
    """Chips of a rack: compute trays times chips per tray."""
    return {"GB200 NVL72": inputs.per_tray * inputs.trays}


@recomputes("RK-03")
def rack_outside(inputs: Any) -> Parts:
    """Height of a rack from its units, and width from its floor area."""
    return {"height": rack_height(inputs.rack_units), "width": inputs.footprint / inputs.depth}


@recomputes("RK-05")
def cables_grow_with_chips(inputs: Any) -> Parts:
    """Growth of cables with twice the chips: star to central switches, and full mesh."""
    more = inputs.chips * inputs.twice
    return {
        "star to central switches": star_links(more, inputs.links) / star_links(inputs.chips, inputs.links),
        "full mesh": mesh_links(more, inputs.per_pair) / mesh_links(inputs.chips, inputs.per_pair),
        "cables of the star": cable_count(star_links(inputs.chips, inputs.links), inputs.pairs),
    }


@recomputes("RK-06")
def domains_by_generation(inputs: Any) -> Parts:
    """Chips per scale-up domain by generation; Rubin Ultra in dies and in packages."""
    blackwell = inputs.per_tray * inputs.trays
    return {
        "Rubin Ultra, dies": inputs.ultra * inputs.ultra_dies,
        "Blackwell": blackwell,
        "Hopper to Blackwell": blackwell / inputs.hopper,
        "Rubin Ultra, packages of its name": inputs.ultra_name / inputs.ultra_dies,
        "Rubin NVL144, packages": inputs.rubin_dies / inputs.rubin_dies_per_chip,
    }


@recomputes("RK-07")
def genuine_growth(inputs: Any) -> Parts:
    """Growth of the scale-up domain counted in dies, in packages and by name."""
    return {
        "in dies": inputs.ultra * inputs.ultra_dies / (inputs.blackwell * inputs.blackwell_dies),
        "in packages": inputs.ultra / inputs.blackwell,
        "by name": inputs.ultra_name / inputs.blackwell,
    }

"""Claims on what held model size back: memory, or the bandwidth of one scale-up domain (FS, part two)."""

from __future__ import annotations

from typing import Any

from headway.laws.capacity import domain_bytes
from headway.laws.compare import relative
from headway.laws.drain import domain_read_s
from headway.laws.memory import parameter_bytes
from headway.laws.pipeline import stage_weights_bytes
from headway.laws.rack import fewest_within
from headway.laws.sums import times
from headway.laws.wiring import growth
from headway.ledger.register import Parts, recomputes


@recomputes("FS-04")
def floor_of_a_domain(i: Any) -> Parts:
    """The weights' read time of one domain, and what the chips of a second domain that holds other layers change."""
    weights = parameter_bytes(i.total, i.weight_byte)
    one = domain_read_s(weights, i.chips, i.chip_bw)
    half = domain_read_s(stage_weights_bytes(weights, i.one, i.domains), i.chips, i.chip_bw)
    return {
        "two domains as stages, over one": relative(times(half, i.domains), one),
        "one domain of twice the chips, over one": relative(domain_read_s(weights, times(i.chips, i.domains), i.chip_bw), one),
        "GB200 NVL72": one,
    }


@recomputes("FS-05")
def growth_by_generation(i: Any) -> Parts:
    """Bandwidth of one chip and size of the domain, each over the one before."""
    return {
        "A100 to H100": growth(i.h100_bw, i.a100_bw),
        "H200 to B200": growth(i.b200_bw, i.h200_bw),
        "scale-up domain": growth(i.chips, i.before),
        "H100 to B200": growth(i.b200_bw, i.h100_bw),
    }


@recomputes("FS-06")
def floor_of_two_machines(i: Any) -> Parts:
    """The latency floor on eight H100 and on the rack."""
    weights = parameter_bytes(i.total, i.weight_byte)
    before, now = domain_read_s(weights, i.before, i.h100_bw), domain_read_s(weights, i.chips, i.gb200_bw)
    return {
        "improvement": relative(before, now),
        "8 H100": before,
        "GB200 NVL72": now,
        "weights over the memory of 8 H100": relative(weights, domain_bytes(i.before, i.h100_hbm)),
    }


@recomputes("FS-07")
def capacity_or_latency(i: Any) -> Parts:
    """A large model on boxes of eight: stages until it fits, the latency floor that stays, and the rack's."""
    weights = parameter_bytes(i.total, i.weight_byte)
    stages = fewest_within(weights, domain_bytes(i.before, i.h100_hbm))
    on_a_chip = stage_weights_bytes(weights, i.before, stages)
    floor = domain_read_s(weights, i.before, i.h100_bw)
    staged = times(domain_read_s(times(on_a_chip, i.before), i.before, i.h100_bw), stages)
    return {
        "weights over a chip's memory, with stages": relative(on_a_chip, i.h100_hbm),
        "latency floor with stages over without": relative(staged, floor),
        "latency floor on GB200 NVL72 over 8 H100": relative(domain_read_s(weights, i.chips, i.gb200_bw), floor),
        "stages": stages,
        "latency floor on boxes of 8 H100": staged,
    }


@recomputes("FS-10")
def pods_before_racks(i: Any) -> Parts:
    """Chips of a TPU pod over those of the switched domain of its years, and the pods' latency floors."""
    weights = parameter_bytes(i.total, i.weight_byte)
    return {
        "TPU v4 pod over 8 H100": growth(i.v4_pod, i.hopper),
        "TPU v5p pod over 8 H100": growth(i.v5p_pod, i.hopper),
        "TPU v7 pod over GB200 NVL72": growth(i.v7_pod, i.blackwell),
        "TPU v3 pod": times(i.v3_side, i.v3_side),
        "latency floor, TPU v4 pod": domain_read_s(weights, i.v4_pod, i.v4_bw),
        "latency floor, 8 H100": domain_read_s(weights, i.hopper, i.h100_bw),
    }

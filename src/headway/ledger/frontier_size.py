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
def floor_of_a_domain(inputs: Any) -> Parts:
    """The weights' read time of one domain, and what the chips of a second domain that holds other layers change."""
    weights = parameter_bytes(inputs.total, inputs.weight_byte)
    domain_s = domain_read_s(weights, inputs.chips, inputs.chip_bw)
    half = domain_read_s(stage_weights_bytes(weights, inputs.one, inputs.domains), inputs.chips, inputs.chip_bw)
    return {
        "two domains as stages, over one": relative(times(half, inputs.domains), domain_s),
        "one domain of twice the chips, over one": relative(
            domain_read_s(weights, times(inputs.chips, inputs.domains), inputs.chip_bw), domain_s
        ),
        "GB200 NVL72": domain_s,
    }


@recomputes("FS-05")
def growth_by_generation(inputs: Any) -> Parts:
    """Bandwidth of one chip and size of the domain, each over the one before."""
    return {
        "A100 to H100": growth(inputs.h100_bw, inputs.a100_bw),
        "H200 to B200": growth(inputs.b200_bw, inputs.h200_bw),
        "scale-up domain": growth(inputs.chips, inputs.before),
        "H100 to B200": growth(inputs.b200_bw, inputs.h100_bw),
    }


@recomputes("FS-06")
def floor_of_two_machines(inputs: Any) -> Parts:
    """The latency floor on eight H100 and on the rack."""
    weights = parameter_bytes(inputs.total, inputs.weight_byte)
    before, now = domain_read_s(weights, inputs.before, inputs.h100_bw), domain_read_s(weights, inputs.chips, inputs.gb200_bw)
    return {
        "improvement": relative(before, now),
        "8 H100": before,
        "GB200 NVL72": now,
        "weights over the memory of 8 H100": relative(weights, domain_bytes(inputs.before, inputs.h100_hbm)),
    }


@recomputes("FS-07")
def capacity_or_latency(inputs: Any) -> Parts:
    """A large model on boxes of eight: stages until it fits, the latency floor that stays, and the rack's."""
    weights = parameter_bytes(inputs.total, inputs.weight_byte)
    stages = fewest_within(weights, domain_bytes(inputs.before, inputs.h100_hbm))
    on_a_chip = stage_weights_bytes(weights, inputs.before, stages)
    floor = domain_read_s(weights, inputs.before, inputs.h100_bw)
    staged = times(domain_read_s(times(on_a_chip, inputs.before), inputs.before, inputs.h100_bw), stages)
    return {
        "weights over a chip's memory, with stages": relative(on_a_chip, inputs.h100_hbm),
        "latency floor with stages over without": relative(staged, floor),
        "latency floor on GB200 NVL72 over 8 H100": relative(domain_read_s(weights, inputs.chips, inputs.gb200_bw), floor),
        "stages": stages,
        "latency floor on boxes of 8 H100": staged,
    }


@recomputes("FS-10")
def pods_before_racks(inputs: Any) -> Parts:
    """Chips of a TPU pod over those of the switched domain of its years, and the pods' latency floors."""
    weights = parameter_bytes(inputs.total, inputs.weight_byte)
    return {
        "TPU v4 pod over 8 H100": growth(inputs.v4_pod, inputs.hopper),
        "TPU v5p pod over 8 H100": growth(inputs.v5p_pod, inputs.hopper),
        "TPU v7 pod over GB200 NVL72": growth(inputs.v7_pod, inputs.blackwell),
        "TPU v3 pod": times(inputs.v3_side, inputs.v3_side),
        "latency floor, TPU v4 pod": domain_read_s(weights, inputs.v4_pod, inputs.v4_bw),
        "latency floor, 8 H100": domain_read_s(weights, inputs.hopper, inputs.h100_bw),
    }

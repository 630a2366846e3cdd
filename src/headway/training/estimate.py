"""Estimate of a training layout: memory, step time, speed, MFU; and the sizes at which compute hides communication at peak rates.

`train` calls it on candidates, `explain` on one row with the recorder on, `evidence` on measured rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headway.core.quantity import known
from headway.hardware.system import domain_bandwidth, group_bandwidth
from headway.laws.collectives.topology import rail_bandwidth
from headway.laws.roofline.balance import tensor_ways_paid
from headway.laws.serving.request import interval_low
from headway.laws.training.communication import (
    exchanging_stage,
    expert_width_to_hide,
    flop_to_hide_behind,
    parameter_bytes_sent,
    sublayer_width,
    tokens_to_hide,
)
from headway.laws.training.memory import expert_ways, memory_fits
from headway.performance.collectives import ChipGroup, group
from headway.training.memory import Memory, memory
from headway.training.pipeline import TrainingCase, placement, stage
from headway.training.recipe import TrainingLayout
from headway.training.step_time import TWO_FLOP, StepTime, at_mfu, by_runs, step_time, step_work
from headway.training.work import Utilisation, dispatched, is_routed, multiplied_params, over_layers, utilisation


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingEstimate:
    """Estimated numbers of a layout; arrays when the layout holds arrays."""

    micro_batches: Any
    memory: Memory
    memory_low: Any
    memory_high: Any
    fits: Any
    time: StepTime
    step_low: Any
    step_high: Any
    tokens_per_s_chip: Any
    use: Utilisation


def estimate(case: TrainingCase, layout: TrainingLayout) -> TrainingEstimate:
    """Memory, step time, speed and utilisation of a layout."""
    work, recipe, efficiency = case.work, case.recipe, case.efficiency
    at = placement(case, layout)
    footprint, took = memory(at), by_runs(step_time(layout, recipe.schedule, step_work(at), efficiency), case.step_factor)
    speed, spread = case.batch / (took.step * case.system.chips), efficiency.spread
    if recipe.mfu is not None:
        took = at_mfu(took, utilisation(work, recipe, case.machine, speed).mfu, recipe.mfu)
        speed, spread = case.batch / (took.step * case.system.chips), 1
    return TrainingEstimate(
        micro_batches=at.count, memory=footprint, memory_low=interval_low(footprint.total, footprint.weights, efficiency.spread_memory),
        memory_high=footprint.total * efficiency.spread_memory, fits=memory_fits(footprint.total, case.system.chip.need("hbm")),
        time=took, step_low=interval_low(took.step, took.floor, spread), step_high=took.step * spread,
        tokens_per_s_chip=speed, use=utilisation(work, recipe, case.machine, speed),
    )  # fmt: skip


PER_TOKEN = known(2.0, "bytes of an activation", "byte/token", "constant", "activations are sent in 16 bits")
NARROW = known(1.0, "bytes of a dispatched activation", "byte/token", "constant", "DeepSeek-V3 (arXiv:2412.19437) section 3.3.3: in fp8")


def overlap(case: TrainingCase, layout: TrainingLayout) -> dict[str, Any]:
    """Columns of a layout's micro-batch tokens on a chip, and of the sizes at which compute would hide its communication, at peak rates.

    None without such communication or without a known link.
    """
    work, fabric, recipe = case.work, case.machine.fabric, case.recipe
    part, up = stage(work, layout, recipe.schedule), domain_bandwidth(case.system)

    def link_of(chip_group: ChipGroup) -> Any:
        """Bandwidth of a chip on the slowest links of its group (byte/s), None when unknown."""
        if float(chip_group.domains) <= 1:
            return group_bandwidth(case.system, chip_group.inside)
        return None if fabric.out_is_missing else fabric.out

    hide = tp_limit = wide = None
    replicas = group(fabric, part.data_degree, layout.tp)
    if int(part.data_degree) > 1 and (link := link_of(replicas)) is not None:
        if float(replicas.domains) > 1:
            link = rail_bandwidth(link, replicas.inside, up)  # chips of a domain share its scale-out links
        how = exchanging_stage(layout.zero, layout.pp)
        wire_bytes = parameter_bytes_sent(recipe.bytes_param_wire, recipe.bytes_gradient_wire, how)
        hide = tokens_to_hide(wire_bytes, flop_to_hide_behind(TWO_FLOP, how), case.machine.peak, link)
    if up is not None and int(case.system.scale_up_domain) > 1:
        width = sublayer_width(multiplied_params(work), over_layers(work, lambda kind: kind.sublayers), work.hidden)
        tp_limit = tensor_ways_paid(width, up, case.machine.peak, PER_TOKEN)
    ranks = expert_ways(layout.ep, layout.tp)
    if int(ranks) > 1 and is_routed(work) and (link := link_of(group(fabric, ranks, 1))) is not None:
        narrow = NARROW if int(dispatched(recipe.dtype)) == 1 else PER_TOKEN
        wide = expert_width_to_hide(narrow, PER_TOKEN, case.machine.peak, link)
    tokens = layout.micro_batch * work.sequence / layout.cp
    return {"micro_tokens": tokens, "tokens_to_hide": hide, "tp_paid": tp_limit, "expert_width_to_hide": wide}

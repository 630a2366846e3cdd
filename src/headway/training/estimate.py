"""Estimate of a training layout: memory, step time, speed, MFU; and the sizes at which compute hides communication at peak rates.

`train` calls it on candidates, `explain` on one row with the recorder on, `evidence` on measured rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headway.core.quantity import known
from headway.core.schema import defaults
from headway.hardware.links import domain_bandwidth, group_bandwidth
from headway.hardware.system import System
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
from headway.laws.training.step import micro_batches
from headway.performance.assumptions import Assumptions
from headway.performance.collectives import FAR, ChipGroup, Fabric, fabric, group, link_costs
from headway.performance.formats import has_peak, peak
from headway.training.memory import Allowance, Memory, memory
from headway.training.pipeline import Stage, stage
from headway.training.recipe import ARITHMETIC, Optimizer, Recipe, TrainingLayout, TrainingReach
from headway.training.step_time import TWO_FLOP, StepTime, StepWork, TrainingMachine, at_mfu, step_time, step_work
from headway.training.work import TrainingWork, Utilisation, dispatched, multiplied_params, over_layers, utilisation


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingCase:
    """Subject of an estimate: the model's work, the machine, the recipe and the tokens of a step."""

    work: TrainingWork
    system: System
    machine: TrainingMachine
    recipe: Recipe
    optimizer: Optimizer
    efficiency: TrainingReach
    batch: Any  # tokens of one step


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


def machine(system: System, dtype: str) -> TrainingMachine:
    """Peaks, bandwidth and links of a system, as the training laws take them."""
    chip = system.chip
    if not has_peak(chip):
        chip.need("peak_bf16")
    alone = Fabric(kind="switch", domain=system.scale_up_domain, up=FAR, exchange=FAR, out=FAR)  # one chip needs no links
    return TrainingMachine(
        peak=peak(chip, ARITHMETIC.get(dtype, dtype))[1], wide_peak=peak(chip, "bf16")[1], hbm_bw=chip.need("hbm_bw"),
        fabric=alone if int(system.chips) == 1 else fabric(system), costs=link_costs(system, defaults(Assumptions)),
    )  # fmt: skip


def step_work_of(case: TrainingCase, layout: TrainingLayout) -> StepWork:
    """Work of one step of a layout, in seconds at peak rates."""
    part, tokens, count = _placed(case, layout)
    return step_work(case.work, part, layout, case.recipe, case.optimizer, case.machine, tokens, count)


def _placed(case: TrainingCase, layout: TrainingLayout) -> tuple[Stage, Any, Any]:
    """The fullest stage, the tokens of a micro-batch on a chip, and the number of micro-batches per step."""
    tokens = layout.micro_batch * case.work.sequence / layout.cp
    return (
        stage(case.work, layout, case.recipe.schedule),
        tokens,
        micro_batches(case.batch, case.work.sequence, layout.dp, layout.micro_batch),
    )


def estimate(case: TrainingCase, layout: TrainingLayout) -> TrainingEstimate:
    """Memory, step time, speed and utilisation of a layout."""
    work, recipe, efficiency = case.work, case.recipe, case.efficiency
    part, tokens, count = _placed(case, layout)
    room = Allowance(fragmentation=efficiency.fragmentation, fixed=efficiency.fixed)
    footprint = memory(work, part, layout, recipe, case.optimizer, tokens, count, room)
    demand = step_work(work, part, layout, recipe, case.optimizer, case.machine, tokens, count)
    took = step_time(layout, recipe.schedule, demand, efficiency)
    speed, spread = case.batch / (took.step * case.system.chips), efficiency.spread
    if recipe.mfu is not None:
        took = at_mfu(took, utilisation(work, recipe, case.machine, speed).mfu, recipe.mfu)
        speed, spread = case.batch / (took.step * case.system.chips), 1
    return TrainingEstimate(
        micro_batches=count, memory=footprint, memory_low=interval_low(footprint.total, footprint.weights, efficiency.spread_memory),
        memory_high=footprint.total * efficiency.spread_memory, fits=memory_fits(footprint.total, case.system.chip.need("hbm")),
        time=took, step_low=interval_low(took.step, took.floor, spread), step_high=took.step * spread,
        tokens_per_s_chip=speed, use=utilisation(work, recipe, case.machine, speed),
    )  # fmt: skip


PER_TOKEN = known(2.0, "bytes of an activation", "byte/token", "constant", "activations are sent in 16 bits")
NARROW = known(1.0, "bytes of a dispatched activation", "byte/token", "constant", "DeepSeek-V3 (arXiv:2412.19437) section 3.3.3: in fp8")


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """Sizes at which compute hides communication, at peak rates; None without such communication or without a known link."""

    micro_tokens: Any  # tokens of a micro-batch on one chip
    tokens_to_hide: Any = None  # micro-batch tokens per chip that hide gathers and reductions of parameters
    tp_paid: Any = None
    expert_width_to_hide: Any = None


def overlap(case: TrainingCase, layout: TrainingLayout) -> Overlap:
    """A layout's micro-batch tokens, and the sizes at which its communication would be hidden."""
    work, fabric, recipe = case.work, case.machine.fabric, case.recipe
    part, up = stage(work, layout, recipe.schedule), domain_bandwidth(case.system)
    hide = tp_limit = wide = None
    if int(part.data_degree) > 1 and (link := _rails(case, group(fabric, part.data_degree, layout.tp), up)) is not None:
        how = exchanging_stage(layout.zero, layout.pp)
        wire_bytes = parameter_bytes_sent(recipe.bytes_param_wire, recipe.bytes_gradient_wire, how)
        hide = tokens_to_hide(wire_bytes, flop_to_hide_behind(TWO_FLOP, how), case.machine.peak, link)
    if up is not None and int(case.system.scale_up_domain) > 1:
        tp_limit = tensor_ways_paid(_width(work), up, case.machine.peak, PER_TOKEN)
    ranks = expert_ways(layout.ep, layout.tp)
    if int(ranks) > 1 and any(kind.work.experts for kind in work.layers):
        link = _link(case, group(fabric, ranks, 1))
        narrow = NARROW if int(dispatched(recipe.dtype)) == 1 else PER_TOKEN
        wide = None if link is None else expert_width_to_hide(narrow, PER_TOKEN, case.machine.peak, link)
    return Overlap(
        micro_tokens=layout.micro_batch * work.sequence / layout.cp, tokens_to_hide=hide, tp_paid=tp_limit,
        expert_width_to_hide=wide,
    )  # fmt: skip


def _rails(case: TrainingCase, chip_group: ChipGroup, up: Any) -> Any:
    """Bandwidth of a chip's gathers (byte/s); chips of a domain share its scale-out links."""
    link = _link(case, chip_group)
    return link if link is None or float(chip_group.domains) <= 1 else rail_bandwidth(link, chip_group.inside, up)


def _link(case: TrainingCase, chip_group: ChipGroup) -> Any:
    """Bandwidth of a chip on the slowest links of its group (byte/s), None when unknown."""
    if float(chip_group.domains) <= 1:
        return group_bandwidth(case.system, chip_group.inside)
    return None if case.machine.fabric.out_is_missing else case.machine.fabric.out


def _width(work: TrainingWork) -> Any:
    """Width of a plain FFN with as many parameters as the mean sublayer that ends in an exchange."""
    return sublayer_width(multiplied_params(work), over_layers(work, lambda kind: kind.sublayers), work.hidden)

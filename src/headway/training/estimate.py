"""Everything about one layout of a training run: memory, step time with floor and interval, speed, MFU. Scalar or array alike.

`train` calls it on candidates, `explain` on one row with the recorder on, the evidence on measured rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headway.assumptions import Assumptions
from headway.fabric import FAR, Fabric, fabric, link_costs
from headway.laws.serving import interval_high, interval_low
from headway.laws.training_pipeline import micro_batches
from headway.laws.training_state import memory_fits, memory_high, memory_low
from headway.laws.training_step import micro_tokens, tokens_per_s_chip
from headway.resolve import peak
from headway.schema import defaults
from headway.system import System
from headway.training.conventions import Utilisation, utilisation
from headway.training.memory import Allowance, Memory, memory
from headway.training.reach import TrainingReach
from headway.training.recipe import Optimizer, Recipe, TrainingLayout
from headway.training.stage import Stage, stage
from headway.training.time import StepTime, StepWork, TrainingMachine, step_time, step_work
from headway.training.work import TrainingWork


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingCase:
    """What an estimate is about: the model's work, the machine, the recipe, and the tokens of a step."""

    work: TrainingWork
    system: System
    machine: TrainingMachine
    recipe: Recipe
    optimizer: Optimizer
    efficiency: TrainingReach
    batch: Any  # tokens of one step


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingEstimate:
    """One layout's numbers, or those of many as arrays."""

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
    """A system as training's laws need it."""
    chip = system.chip
    alone = Fabric(kind="switch", domain=system.scale_up_domain, up=FAR, exchange=FAR, out=FAR)  # one chip needs no links
    return TrainingMachine(
        peak=peak(chip, dtype)[1], wide_peak=peak(chip, "bf16")[1], hbm_bw=chip.need("hbm_bw"),
        fabric=alone if int(system.chips) == 1 else fabric(system), costs=link_costs(system, defaults(Assumptions)),
    )  # fmt: skip


def step_work_of(case: TrainingCase, layout: TrainingLayout) -> StepWork:
    """What a layout's step asks of the machine."""
    part, tokens, count = _placed(case, layout)
    return step_work(case.work, part, layout, case.recipe, case.optimizer, case.machine, tokens, count)


def _placed(case: TrainingCase, layout: TrainingLayout) -> tuple[Stage, Any, Any]:
    """The fullest stage, the tokens of a micro-batch on a chip, and how many micro-batches there are."""
    tokens = micro_tokens(layout.micro_batch, case.work.sequence, layout.cp)
    return stage(case.work, layout), tokens, micro_batches(case.batch, case.work.sequence, layout.dp, layout.micro_batch)


def estimate(case: TrainingCase, layout: TrainingLayout) -> TrainingEstimate:
    """The numbers of a layout."""
    work, recipe, efficiency = case.work, case.recipe, case.efficiency
    part, tokens, count = _placed(case, layout)
    room = Allowance(fragmentation=efficiency.fragmentation, fixed=efficiency.fixed)
    footprint = memory(work, part, layout, recipe, case.optimizer, tokens, count, room)
    demand = step_work(work, part, layout, recipe, case.optimizer, case.machine, tokens, count)
    took = step_time(layout, recipe.schedule, demand, efficiency)
    speed = tokens_per_s_chip(case.batch, took.step, case.system.chips)
    return TrainingEstimate(
        micro_batches=count, memory=footprint, memory_low=memory_low(footprint.total, footprint.weights, efficiency.spread_memory),
        memory_high=memory_high(footprint.total, efficiency.spread_memory), fits=memory_fits(footprint.total, case.system.chip.need("hbm")),
        time=took, step_low=interval_low(took.step, took.floor, efficiency.spread), step_high=interval_high(took.step, efficiency.spread),
        tokens_per_s_chip=speed, use=utilisation(work, recipe, case.machine, speed),
    )  # fmt: skip

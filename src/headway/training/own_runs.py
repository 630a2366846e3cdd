"""What the user's own training runs say of a case: a factor on its step, one on its memory, and how much narrower both intervals are."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from headway.core.quantity import known
from headway.core.units import Number
from headway.laws.calibration import NORMAL_END, STUDENT_END, run_half
from headway.laws.training.memory import fragmentation_by_own_runs
from headway.models.config import catalogue_name
from headway.performance.calibration.factors import TRAINED
from headway.performance.calibration.in_force import calibrations
from headway.performance.calibration.key import TRAINING, RunKey
from headway.performance.calibration.posterior import NOISE, Posterior
from headway.training.pipeline import TrainingCase

EVEN = NORMAL_END / STUDENT_END  # noise of training is a standard deviation: a step of a steady run has no wild ones


def training_key(model: str, case: TrainingCase) -> RunKey:
    """As which runs of a case are filed: whatever the layout, since a search has many; kernels stand for the software."""
    return RunKey(
        model=catalogue_name(model), chip=case.system.chip.name, chips=int(case.system.chips), layout="", weights=case.recipe.dtype, kv="",
        engine=case.recipe.kernels, mode=TRAINING,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRuns:
    """Factors by runs on the step and on the memory of a case, and what they leave of the interval of either."""

    step: Number
    memory: Number
    step_scatter: Number
    memory_scatter: Number
    runs: tuple[str, ...]  # PROFILE:ID


def training_runs(known_by: Posterior) -> TrainingRuns | None:
    """What runs say of a case; None where they say nothing."""
    if not known_by.runs:
        return None
    source = ", ".join(known_by.runs)
    factors = {name: math.exp(mean) for name, mean in zip(TRAINED, known_by.mean.tolist(), strict=True)}
    scatters = {f"{name}_scatter": known_by.scatter(np.eye(len(TRAINED))[place], EVEN * NOISE[name]) for place, name in enumerate(TRAINED)}
    values = {name: known(float(value), name.replace("_", " "), "", "measured", source) for name, value in (factors | scatters).items()}
    return TrainingRuns(**values, runs=known_by.runs)


def calibrated_case(case: TrainingCase, runs: TrainingRuns | None) -> TrainingCase:
    """A case under what runs say of it."""
    if runs is None:
        return case
    efficiency = case.efficiency
    halves = {"spread": runs.step_scatter, "spread_memory": runs.memory_scatter}
    narrow = {name: run_half(half, scatter) for name, scatter in halves.items() if (half := getattr(efficiency, name)) is not None}
    efficiency = replace(efficiency, fragmentation=fragmentation_by_own_runs(efficiency.fragmentation, runs.memory), **narrow)
    return replace(case, efficiency=efficiency, step_factor=runs.step)


def with_own_runs(case: TrainingCase, model: str) -> TrainingCase:
    """A case under what the user's own runs in force say of it, which the answer tells."""
    force = calibrations()
    runs = None if force is None else training_runs(force.posterior(training_key(model, case)))
    if force is None or runs is None:
        return case
    calibrated = calibrated_case(case, runs)
    force.tell(runs.runs, "step", half=calibrated.efficiency.spread, usual=case.efficiency.spread)
    return calibrated

"""Predictions of training rows: speed, step time, FLOP/s and memory with 90 % intervals, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headway.core.catalog import Catalog
from headway.core.units import Number
from headway.evidence.training.row import TrainingRow
from headway.evidence.training.setup import TrainingSetup, flop_per_token, is_unread, setup
from headway.laws.calibration import run_half
from headway.laws.serving.request import interval_low
from headway.laws.training.memory import allocated_bytes
from headway.laws.training.run import joint_factor
from headway.performance.achieved import Efficiencies
from headway.performance.calibration.observation import Observation
from headway.performance.calibration.posterior import NO_RUNS, Posterior, posterior
from headway.performance.estimate import Estimate
from headway.training.achieved import SHARED_SECTION, training_efficiencies
from headway.training.estimate import estimate
from headway.training.memory import Memory
from headway.training.own_runs import calibrated_case, training_key, training_runs
from headway.training.recipe import TrainingReach

FITTED_YEAR = "2026"  # year of the latest software among the measured runs


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingPrediction:
    """Prediction of a training row, in SI units; `why` is the reason if there is none."""

    row: TrainingRow
    setup: TrainingSetup | None = None
    speed: Estimate | None = None  # tokens per second and chip
    step: Estimate | None = None
    flops: Estimate | None = None  # FLOP/s per chip, as the row's source counts FLOPs
    memory: Estimate | None = None  # bytes of tensors on the fullest chip
    posterior: Posterior = NO_RUNS  # factors by runs of one's own, and which runs those are
    usual: float = 1.0  # half of the interval of the step without those, as a factor
    flags: tuple[str, ...] = ()
    why: str = ""


def predict(rows: Sequence[TrainingRow], catalog: Catalog | None = None, runs: Sequence[Observation] = ()) -> list[TrainingPrediction]:
    """Prediction of each row, in the order of rows; `runs` of one's own move and narrow it."""
    return [predicted(row, setup(row, catalog), catalog, runs) for row in rows]


def predicted(
    row: TrainingRow, row_setup: TrainingSetup | str, catalog: Catalog | None = None, runs: Sequence[Observation] = ()
) -> TrainingPrediction:
    """Prediction of a row from its setup."""
    if isinstance(row_setup, str):
        return TrainingPrediction(row=row, why=row_setup)
    known_by = posterior(runs, training_key(row_setup.model.name, row_setup.case), row.date) if runs else NO_RUNS
    factors = training_runs(known_by)
    case, usual = calibrated_case(row_setup.case, factors), row_spread(row_setup, training_efficiencies(catalog))
    run_estimate = estimate(case, row_setup.layout)
    spread = usual if factors is None else run_half(usual, factors.step_scatter)
    step = _around(run_estimate.time.step, run_estimate.time.floor, spread)
    speeds = {name: float(case.batch / (getattr(step, name) * case.system.chips)) for name in ("expected", "floor", "low", "high")}
    speed = Estimate(**speeds | {"low": speeds["high"], "high": speeds["low"]})  # the longest step is the lowest speed
    flop = flop_per_token(row_setup)
    flops = Estimate(**{name: float(flop * getattr(speed, name)) for name in speeds})
    memory = _around(allocator_bytes(run_estimate.memory, case.efficiency), run_estimate.memory.weights, case.efficiency.spread_memory)
    return TrainingPrediction(
        row=row, setup=row_setup, speed=speed, step=step, flops=flops, memory=memory, flags=row_setup.flags, posterior=known_by,
        usual=float(usual),
    )  # fmt: skip


def _around(expected: Number, floor: Number, spread: Number) -> Estimate:
    """An estimate whose interval is a factor each way, cut at the floor."""
    low = float(interval_low(expected, floor, spread))
    return Estimate(expected=float(expected), floor=float(floor), low=low, high=float(expected * spread))


def row_spread(row_setup: TrainingSetup, table: Efficiencies) -> Any:
    """Factor of half the interval of a row's step: its case's, wider for an open layout, an unread name and later software."""
    factor = row_setup.case.efficiency.spread
    for key, is_new in (
        ("open_layout", row_setup.open),
        ("new_structure", is_unread(row_setup.flags)),
        ("new_year", row_setup.row.date[:4] > FITTED_YEAR),
    ):
        factor = joint_factor(factor, table.find(key, SHARED_SECTION)) if is_new else factor
    return factor


def allocator_bytes(memory: Memory, achieved: TrainingReach) -> Any:
    """Bytes of the framework's allocator, as published tables state memory: without contexts and communicators."""
    parts = (memory.weights, memory.gradients, memory.optimizer, memory.gathered, memory.activations, memory.head)
    return allocated_bytes(sum(parts), achieved.fragmentation, 0)



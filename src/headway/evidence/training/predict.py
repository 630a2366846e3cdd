"""Predictions of training rows: speed, step time, FLOP/s and memory with 90 % intervals, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from headway.core.catalog import Catalog
from headway.evidence.training.row import TrainingRow
from headway.evidence.training.setup import TrainingSetup, flop_per_token, is_unread, setup
from headway.laws.serving.request import interval_low
from headway.laws.training.memory import allocated_bytes
from headway.laws.training.run import joint_factor
from headway.performance.achieved import Efficiencies
from headway.training.achieved import SHARED_SECTION, training_efficiencies
from headway.training.estimate import TrainingEstimate, estimate
from headway.training.memory import Memory
from headway.training.recipe import TrainingReach

FITTED_YEAR = "2026"  # year of the latest software among the measured runs


@dataclass(frozen=True, slots=True, kw_only=True)
class RangedNumber:
    """A predicted value with its 90 % interval."""

    expected: float
    lo: float
    hi: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingPrediction:
    """Prediction of a training row, in SI units; `why` is the reason if there is none."""

    row: TrainingRow
    setup: TrainingSetup | None = None
    speed: RangedNumber | None = None  # tokens per second and chip
    step: RangedNumber | None = None
    flops: RangedNumber | None = None  # FLOP/s per chip, as the row's source counts FLOPs
    memory: RangedNumber | None = None  # bytes of tensors on the fullest chip
    flags: tuple[str, ...] = ()
    why: str = ""


def predict(rows: Sequence[TrainingRow], catalog: Catalog | None = None) -> list[TrainingPrediction]:
    """Prediction of each row, in the order of rows."""
    return [predicted(row, setup(row, catalog), catalog) for row in rows]


def predicted(row: TrainingRow, row_setup: TrainingSetup | str, catalog: Catalog | None = None) -> TrainingPrediction:
    """Prediction of a row from its setup."""
    if isinstance(row_setup, str):
        return TrainingPrediction(row=row, why=row_setup)
    run_estimate = estimate(row_setup.case, row_setup.layout)
    achieved = row_setup.case.efficiency
    step = _step(run_estimate, row_setup, catalog)
    speed = _reversed(step, lambda seconds: row_setup.case.batch / (seconds * row_setup.case.system.chips))
    flop = flop_per_token(row_setup)
    return TrainingPrediction(
        row=row, setup=row_setup, speed=speed, step=step, flops=_mapped(speed, lambda rate: flop * rate),
        memory=_memory(run_estimate.memory, achieved), flags=row_setup.flags,
    )  # fmt: skip


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


def _step(run_estimate: TrainingEstimate, row_setup: TrainingSetup, catalog: Catalog | None) -> RangedNumber:
    spread = row_spread(row_setup, training_efficiencies(catalog))
    seconds = run_estimate.time.step
    return RangedNumber(
        expected=float(seconds), lo=float(interval_low(seconds, run_estimate.time.floor, spread)), hi=float(seconds * spread)
    )  # fmt: skip


def _memory(memory: Memory, achieved: TrainingReach) -> RangedNumber:
    memory_bytes = allocator_bytes(memory, achieved)
    return RangedNumber(
        expected=float(memory_bytes), lo=float(interval_low(memory_bytes, memory.weights, achieved.spread_memory)),
        hi=float(memory_bytes * achieved.spread_memory),
    )  # fmt: skip


def _mapped(of: RangedNumber, law: Callable[[float], Any]) -> RangedNumber:
    return RangedNumber(expected=float(law(of.expected)), lo=float(law(of.lo)), hi=float(law(of.hi)))


def _reversed(of: RangedNumber, law: Callable[[float], Any]) -> RangedNumber:
    """Interval of a decreasing function of a ranged number: low and high exchange."""
    return RangedNumber(expected=float(law(of.expected)), lo=float(law(of.hi)), hi=float(law(of.lo)))

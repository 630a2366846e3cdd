"""Predictions of training rows: speed, step time, FLOP/s and memory, each with its 90 % interval, or why there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headway.catalog import Catalog
from headway.efficiency import Efficiencies
from headway.evidence.training.row import TrainingRow
from headway.evidence.training.setup import TrainingSetup, setup
from headway.evidence.training.target import flop_per_token
from headway.laws.activations import allocated_bytes
from headway.laws.serving import interval_factor, interval_high, interval_low
from headway.laws.sums import total
from headway.laws.training_flop import achieved_flops
from headway.laws.training_step import tokens_per_s_chip
from headway.model import NONE, ONE
from headway.training.estimate import TrainingEstimate, estimate
from headway.training.memory import Memory
from headway.training.reach import TrainingReach, training_efficiencies

EVERY = "training.other.bf16"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranged:
    """A number with its 90 % interval."""

    expected: float
    lo: float
    hi: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingPrediction:
    """What is predicted about a row, in SI units; nothing, and why, where there is none."""

    row: TrainingRow
    setup: TrainingSetup | None = None
    speed: Ranged | None = None  # tokens per second and chip
    step: Ranged | None = None
    flops: Ranged | None = None  # of a chip, as the row's source counts them
    memory: Ranged | None = None  # of the fullest chip, what tensors take
    flags: tuple[str, ...] = ()
    why: str = ""


def predict(rows: Sequence[TrainingRow], catalog: Catalog | None = None) -> list[TrainingPrediction]:
    """A prediction for each row, in their order."""
    return [predicted(row, setup(row, catalog)) for row in rows]


def predicted(row: TrainingRow, found: TrainingSetup | str) -> TrainingPrediction:
    """A row's prediction from its setup."""
    if isinstance(found, str):
        return TrainingPrediction(row=row, why=found)
    made = estimate(found.case, found.layout)
    reach = found.case.reach
    step = _step(made, found, reach)
    speed = _reversed(step, lambda seconds: tokens_per_s_chip(found.case.batch, seconds, found.case.system.chips))
    flop = flop_per_token(found)
    return TrainingPrediction(
        row=row, setup=found, speed=speed, step=step, flops=_mapped(speed, lambda each: achieved_flops(flop, each)),
        memory=_memory(made.memory, reach), flags=found.flags,
    )  # fmt: skip


def wider(found: TrainingSetup, table: Efficiencies) -> Any:
    """How much wider the interval of a row is, in the logarithm."""
    return table.find("wider_open", EVERY) if found.open else ONE


def held_bytes(memory: Memory, reach: TrainingReach) -> Any:
    """What the framework's allocator hands out, as published tables state it: contexts and communicators are outside of it."""
    parts = (memory.weights, memory.gradients, memory.optimizer, memory.gathered, memory.activations, memory.head)
    return allocated_bytes(total(parts), reach.fragmentation, NONE)


def _step(made: TrainingEstimate, found: TrainingSetup, reach: TrainingReach) -> Ranged:
    spread = interval_factor(reach.spread, wider(found, training_efficiencies()))
    seconds = made.time.step
    return Ranged(
        expected=float(seconds), lo=float(interval_low(seconds, made.time.floor, spread)), hi=float(interval_high(seconds, spread))
    )  # fmt: skip


def _memory(memory: Memory, reach: TrainingReach) -> Ranged:
    held = held_bytes(memory, reach)
    return Ranged(
        expected=float(held), lo=float(interval_low(held, memory.weights, reach.spread_memory)),
        hi=float(interval_high(held, reach.spread_memory)),
    )  # fmt: skip


def _mapped(of: Ranged, law: Any) -> Ranged:
    return Ranged(expected=float(law(of.expected)), lo=float(law(of.lo)), hi=float(law(of.hi)))


def _reversed(of: Ranged, law: Any) -> Ranged:
    """The same of what falls where the other rises."""
    return Ranged(expected=float(law(of.expected)), lo=float(law(of.hi)), hi=float(law(of.lo)))

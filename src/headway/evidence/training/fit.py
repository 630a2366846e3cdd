"""Fit what training reaches to measured runs: regularised by what was believed before, robust, each source counted equally.

A row's residual is ln(predicted / measured) of tokens per second and chip. Nothing is keyed by source, model or row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.efficiency import Efficiencies
from headway.evidence.engine_fit import covariance_by_source, softened
from headway.evidence.stacked import columns
from headway.evidence.training.numbers import TrainingNumber, influence, table, values
from headway.evidence.training.setup import TrainingSetup
from headway.evidence.training.target import measured_speed
from headway.laws.training_step import tokens_per_s_chip
from headway.training.estimate import asked_of
from headway.training.reach import TrainingReach, from_table
from headway.training.recipe import TrainingLayout
from headway.training.time import StepWork, step_time

SCATTER = 0.1  # of ln(predicted / measured) that no fit removes
EACH = 20.0  # rows that a source counts as, however many it has
MOST_CALLS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduled:
    """Rows of one pipeline schedule, laid side by side."""

    schedule: str
    place: Any  # in the list of all rows
    layout: TrainingLayout
    work: StepWork
    batch: Any
    chips: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingProblem:
    """Rows to fit, worked out once at every peak."""

    setups: tuple[TrainingSetup, ...]
    groups: tuple[Scheduled, ...]
    measured: Any
    sources: Any
    base: Efficiencies


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingFit:
    """The numbers found, and one standard error of each one's logarithm (0 where it was not fitted)."""

    values: dict[tuple[str, str], float]
    error: dict[tuple[str, str], float]


def problem(setups: Sequence[TrainingSetup], base: Efficiencies) -> TrainingProblem:
    """The rows that measured a speed."""
    timed = tuple(one for one in setups if measured_speed(one) is not None)
    schedules = [one.case.recipe.schedule for one in timed]
    groups = []
    for schedule in sorted(set(schedules)):
        place = np.array([index for index, name in enumerate(schedules) if name == schedule])
        rows = [timed[index] for index in place]
        groups.append(Scheduled(
            schedule=schedule, place=place, layout=columns([one.layout for one in rows]),
            work=columns([asked_of(one.case, one.layout) for one in rows]),
            batch=np.array([float(one.case.batch) for one in rows]), chips=np.array([float(one.case.system.chips) for one in rows]),
        ))  # fmt: skip
    measured = np.array([measured_speed(one) for one in timed])
    sources = np.array([one.row.source for one in timed])
    return TrainingProblem(setups=timed, groups=tuple(groups), measured=measured, sources=sources, base=base)


def speeds(asked: TrainingProblem, found: Efficiencies) -> Any:
    """Tokens per second and chip of every row under a table of numbers."""
    out = np.empty(len(asked.setups))
    for group in asked.groups:
        reach = _reach(asked, group, found)
        step = step_time(group.layout, group.schedule, group.work, reach).step
        out[group.place] = tokens_per_s_chip(group.batch, step, group.chips)
    return out


def _reach(asked: TrainingProblem, group: Scheduled, found: Efficiencies) -> TrainingReach:
    """What each row's chip reaches; rows of one chip, format and kernels look it up once."""
    known: dict[tuple[Any, ...], TrainingReach] = {}
    rows = []
    for index in group.place:
        case = asked.setups[index].case
        how = (case.recipe.dtype, case.recipe.kernels, bool(case.recipe.fused_attention))
        key = (case.system.chip.name, *how)
        known[key] = known.get(key) or from_table(found, case.system.chip, *how)
        rows.append(known[key])
    return columns(rows)


def errors(asked: TrainingProblem, found: Efficiencies) -> Any:
    """ln(predicted / measured) of every row."""
    return np.log(speeds(asked, found) / asked.measured)


def fit(asked: TrainingProblem, every: Sequence[TrainingNumber], seen: Any = None) -> TrainingFit:
    """The numbers found on the rows `seen` (all of them where it is None)."""
    from scipy.optimize import least_squares

    rows = np.ones(len(asked.setups), bool) if seen is None else seen
    sources = asked.sources[rows]
    _, place, count = np.unique(sources, return_inverse=True, return_counts=True)
    weight = np.sqrt(EACH / count[place])
    free = sum(1 for one in every if one.spread)

    def residuals(z: Any) -> Any:
        return np.concatenate([softened(errors(asked, table(values(every, z), asked.base))[rows] / SCATTER) * weight, z])

    found = least_squares(residuals, np.zeros(free), max_nfev=MOST_CALLS)
    moved = influence(every)
    error = np.sqrt(np.einsum("ij,jk,ik->i", moved, covariance_by_source(found.jac, found.fun, sources), moved))
    places = [(one.section, one.key) for one in every]
    return TrainingFit(values=values(every, found.x), error=dict(zip(places, map(float, error), strict=True)))

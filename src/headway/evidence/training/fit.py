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
from headway.training.estimate import step_work_of
from headway.training.reach import TrainingReach, from_table
from headway.training.recipe import TrainingLayout
from headway.training.time import StepWork, step_time

SCATTER = 0.1  # of ln(predicted / measured) that no fit removes
ROWS_PER_SOURCE = 20.0  # rows that a source counts as, however many it has
MOST_CALLS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledRow:
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
    groups: tuple[ScheduledRow, ...]
    measured: Any
    sources: Any
    base: Efficiencies


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingFit:
    """The numbers found, and one standard error of each one's logarithm (0 where it was not fitted)."""

    values: dict[tuple[str, str], float]
    error: dict[tuple[str, str], float]


def training_problem(setups: Sequence[TrainingSetup], base: Efficiencies) -> TrainingProblem:
    """The rows that measured a speed."""
    timed = tuple(setup for setup in setups if measured_speed(setup) is not None)
    schedules = [setup.case.recipe.schedule for setup in timed]
    groups = []
    for schedule in sorted(set(schedules)):
        place = np.array([index for index, name in enumerate(schedules) if name == schedule])
        rows = [timed[index] for index in place]
        groups.append(ScheduledRow(
            schedule=schedule, place=place, layout=columns([setup.layout for setup in rows]),
            work=columns([step_work_of(setup.case, setup.layout) for setup in rows]),
            batch=np.array([float(setup.case.batch) for setup in rows]), chips=np.array([float(setup.case.system.chips) for setup in rows]),
        ))  # fmt: skip
    measured = np.array([measured_speed(setup) for setup in timed])
    sources = np.array([setup.row.source for setup in timed])
    return TrainingProblem(setups=timed, groups=tuple(groups), measured=measured, sources=sources, base=base)


def speeds(problem: TrainingProblem, efficiencies: Efficiencies) -> Any:
    """Tokens per second and chip of every row under a table of numbers."""
    out = np.empty(len(problem.setups))
    for group in problem.groups:
        achieved = _achieved_by_row(problem, group, efficiencies)
        step = step_time(group.layout, group.schedule, group.work, achieved).step
        out[group.place] = tokens_per_s_chip(group.batch, step, group.chips)
    return out


def _achieved_by_row(problem: TrainingProblem, group: ScheduledRow, efficiencies: Efficiencies) -> TrainingReach:
    """What each row's chip reaches; rows of one chip, format and kernels look it up once."""
    known: dict[tuple[Any, ...], TrainingReach] = {}
    rows = []
    for index in group.place:
        case = problem.setups[index].case
        how = (case.recipe.dtype, case.recipe.kernels, bool(case.recipe.fused_attention))
        key = (case.system.chip.name, *how)
        known[key] = known.get(key) or from_table(efficiencies, case.system.chip, *how)
        rows.append(known[key])
    return columns(rows)


def errors(problem: TrainingProblem, efficiencies: Efficiencies) -> Any:
    """ln(predicted / measured) of every row."""
    return np.log(speeds(problem, efficiencies) / problem.measured)


def fit(problem: TrainingProblem, all_numbers: Sequence[TrainingNumber], row_mask: Any = None) -> TrainingFit:
    """The numbers found on the rows of `row_mask` (all of them where it is None)."""
    from scipy.optimize import least_squares

    rows = np.ones(len(problem.setups), bool) if row_mask is None else row_mask
    sources = problem.sources[rows]
    _, place, count = np.unique(sources, return_inverse=True, return_counts=True)
    weight = np.sqrt(ROWS_PER_SOURCE / count[place])
    free = sum(1 for number in all_numbers if number.spread)

    def residuals(z: Any) -> Any:
        return np.concatenate([softened(errors(problem, table(values(all_numbers, z), problem.base))[rows] / SCATTER) * weight, z])

    solution = least_squares(residuals, np.zeros(free), max_nfev=MOST_CALLS)
    sensitivity = influence(all_numbers)
    error = np.sqrt(np.einsum("ij,jk,ik->i", sensitivity, covariance_by_source(solution.jac, solution.fun, sources), sensitivity))
    places = [(number.section, number.key) for number in all_numbers]
    return TrainingFit(values=values(all_numbers, solution.x), error=dict(zip(places, map(float, error), strict=True)))

"""Cross-validation of the engines' fit: each group of rows predicted by a fit that has not seen it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headway.efficiency import Efficiencies
from headway.evidence.engine_fit import EngineFit, fit, problem
from headway.evidence.engine_numbers import EngineNumber, table_at
from headway.evidence.fitted import FittedNumbers
from headway.evidence.folds import Fold, folds, model_folds
from headway.evidence.intervals import circumstances, width_key
from headway.evidence.machines import machines
from headway.evidence.predict import load_of, placed, predict
from headway.evidence.residuals import Residual, residuals
from headway.evidence.tasks import Task
from headway.evidence.widths import HeldOutResiduals, widths
from headway.quantity import known
from headway.watch import tick

LEAST_SHIFT = 3.0  # standard errors by which a fold may move a number without being named


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberShift:
    """A number that one group of rows decides: without it, it moves by so many of its standard errors."""

    fold: str
    number: str
    errors: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingCrossValidation:
    """Numbers from all rows, and every row as a fit without its group predicts it."""

    engines: EngineFit
    table: Efficiencies
    intervals: tuple[FittedNumbers, ...]
    residuals: tuple[Residual, ...]
    shifts: tuple[NumberShift, ...]
    models: tuple[Residual, ...]  # of modes that one source alone has, whole models left out


def cross_validate(tasks: Sequence[Task], base: Efficiencies, engine_numbers: Sequence[EngineNumber]) -> ServingCrossValidation:
    """Fit to all rows, then once without each fold; `base` gives the kernels."""
    start = table_at(base, engine_numbers, [number.prior for number in engine_numbers])
    full_fit = fit(problem(tasks, start), engine_numbers)
    tick(1)
    shifts, fits = [], {}  # what is left out may be the same for several kinds of rows: it is fitted once

    def without(fold: Fold) -> tuple[Fold, Efficiencies]:
        if fold.out not in fits:
            inside = [task for index, task in enumerate(tasks) if index not in fold.out]
            fits[fold.out] = fit(problem(inside, start), engine_numbers, full_fit)
            shifts.extend(_shifts(fold.name, full_fit, fits[fold.out]))
        tick(1)
        return fold, table_at(base, engine_numbers, fits[fold.out].values(engine_numbers))

    fold_tables = [without(fold) for fold in folds(tasks)]
    intervals = widths(_raw_residuals(tasks, fold_tables))
    out, models = (
        tuple(residual for fold, table in tables for residual in _residuals(fold, tasks, with_intervals(table, intervals)))
        for tables in (fold_tables, [without(fold) for fold in model_folds(tasks)])
    )
    table = with_intervals(table_at(base, engine_numbers, full_fit.values(engine_numbers)), intervals)
    return ServingCrossValidation(engines=full_fit, table=table, intervals=intervals, residuals=out, shifts=tuple(shifts), models=models)


def with_intervals(table: Efficiencies, intervals: Sequence[FittedNumbers]) -> Efficiencies:
    """The efficiencies with these widths of intervals."""
    sections = {name: dict(section) for name, section in table.sections.items()}
    for number in intervals:
        value = known(number.value, f"{number.section}.{number.key}", number.unit, "fitted", number.meaning)
        sections.setdefault(number.section, {})[number.key] = value
    return Efficiencies(sections)


def _shifts(fold: str, full_fit: EngineFit, fold_fit: EngineFit) -> list[NumberShift]:
    by = (fold_fit.z - full_fit.z) / full_fit.error
    return [
        NumberShift(fold=fold, number=f"{number.section}.{number.key}", errors=float(move))
        for number, move in zip(full_fit.free, by, strict=True)
        if abs(move) > LEAST_SHIFT
    ]


def _residuals(fold: Fold, tasks: Sequence[Task], table: Efficiencies) -> list[Residual]:
    return [residual for residual, _ in _pairs(fold, tasks, table)]


def _raw_residuals(tasks: Sequence[Task], fold_tables: Sequence[tuple[Fold, Efficiencies]]) -> HeldOutResiduals:
    """Raw residuals of every fold, and what may widen each row's interval."""
    pairs = [(residual, task) for fold, table in fold_tables for residual, task in _pairs(fold, tasks, table)]
    wider = _circumstances([task for _, task in pairs])
    return HeldOutResiduals(
        key=np.array([width_key(residual.kind, residual.quantity) for residual, _ in pairs]),
        error=np.array([residual.log_ratio for residual, _ in pairs]),
        source=np.array([residual.source for residual, _ in pairs]),
        wider=wider,
    )


def _pairs(fold: Fold, tasks: Sequence[Task], table: Efficiencies) -> list[tuple[Residual, Task]]:
    """Each residual of the fold, and the row it is of: rows of several files may share ids and lines."""
    fold_tasks = [tasks[index] for index in sorted(fold.scored)]
    task_predictions = zip(fold_tasks, predict(fold_tasks, table), strict=True)
    return [(residual, task) for task, prediction in task_predictions for residual in residuals([task], [prediction], [fold.name])]


def _circumstances(tasks: Sequence[Task]) -> dict[str, np.ndarray]:
    place, setups = placed(tasks)
    return circumstances(tasks, machines(setups).rows(place), load_of(tasks))

"""Cross-validation of the engines' fit: each group of rows predicted by a fit that has not seen it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headway.efficiency import Efficiencies
from headway.evidence.engine_fit import EngineFit, fit, problem
from headway.evidence.engine_numbers import Number, table_at
from headway.evidence.fitted import Fitted
from headway.evidence.folds import Fold, folds, model_folds
from headway.evidence.intervals import circumstances, width_key
from headway.evidence.machines import machines
from headway.evidence.predict import load_of, placed, predict
from headway.evidence.residuals import Residual, residuals
from headway.evidence.tasks import Task
from headway.evidence.widths import Seen, widths
from headway.quantity import known
from headway.watch import tick

MOVED = 3.0  # standard errors by which a fold may move a number without being named


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """A number that one group of rows decides: without it, it moves by so many of its standard errors."""

    fold: str
    number: str
    errors: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossValidated:
    """Numbers from all rows, and every row as a fit without its group predicts it."""

    engines: EngineFit
    table: Efficiencies
    intervals: tuple[Fitted, ...]
    residuals: tuple[Residual, ...]
    moved: tuple[Moved, ...]
    models: tuple[Residual, ...]  # of modes that one source alone has, whole models left out


def cross_validate(tasks: Sequence[Task], base: Efficiencies, every: Sequence[Number]) -> CrossValidated:
    """Fit to all rows, then once without each fold; `base` gives the kernels."""
    start = table_at(base, every, [number.prior for number in every])
    whole = fit(problem(tasks, start), every)
    tick(1)
    moved, fits = [], {}  # what is left out may be the same for several kinds of rows: it is fitted once

    def without(fold: Fold) -> tuple[Fold, Efficiencies]:
        if fold.out not in fits:
            inside = [task for index, task in enumerate(tasks) if index not in fold.out]
            fits[fold.out] = fit(problem(inside, start), every, whole)
            moved.extend(_moved(fold.name, whole, fits[fold.out]))
        tick(1)
        return fold, table_at(base, every, fits[fold.out].values(every))

    seen = [without(fold) for fold in folds(tasks)]
    intervals = widths(_seen(tasks, seen))
    out, models = (
        tuple(one for fold, table in some for one in _residuals(fold, tasks, with_intervals(table, intervals)))
        for some in (seen, [without(fold) for fold in model_folds(tasks)])
    )
    table = with_intervals(table_at(base, every, whole.values(every)), intervals)
    return CrossValidated(engines=whole, table=table, intervals=intervals, residuals=out, moved=tuple(moved), models=models)


def with_intervals(table: Efficiencies, intervals: Sequence[Fitted]) -> Efficiencies:
    """The efficiencies with these widths of intervals."""
    sections = {name: dict(found) for name, found in table.sections.items()}
    for number in intervals:
        value = known(number.value, f"{number.section}.{number.key}", number.unit, "fitted", number.meaning)
        sections.setdefault(number.section, {})[number.key] = value
    return Efficiencies(sections)


def _moved(fold: str, whole: EngineFit, found: EngineFit) -> list[Moved]:
    by = (found.z - whole.z) / whole.error
    return [
        Moved(fold=fold, number=f"{number.section}.{number.key}", errors=float(move))
        for number, move in zip(whole.free, by, strict=True)
        if abs(move) > MOVED
    ]


def _residuals(fold: Fold, tasks: Sequence[Task], table: Efficiencies) -> list[Residual]:
    return [one for one, _ in _pairs(fold, tasks, table)]


def _seen(tasks: Sequence[Task], seen: Sequence[tuple[Fold, Efficiencies]]) -> Seen:
    """Raw residuals of every fold, and what may widen each row's interval."""
    made = [(one, task) for fold, table in seen for one, task in _pairs(fold, tasks, table)]
    wider = _circumstances([task for _, task in made])
    return Seen(
        key=np.array([width_key(one.kind, one.quantity) for one, _ in made]),
        error=np.array([one.log_ratio for one, _ in made]),
        source=np.array([one.source for one, _ in made]),
        wider=wider,
    )


def _pairs(fold: Fold, tasks: Sequence[Task], table: Efficiencies) -> list[tuple[Residual, Task]]:
    """Each residual of the fold, and the row it is of: rows of several files may share ids and lines."""
    some = [tasks[index] for index in sorted(fold.scored)]
    made = zip(some, predict(some, table), strict=True)
    return [(one, task) for task, prediction in made for one in residuals([task], [prediction], [fold.name])]


def _circumstances(tasks: Sequence[Task]) -> dict[str, np.ndarray]:
    place, setups = placed(tasks)
    return circumstances(tasks, machines(setups).rows(place), load_of(tasks))

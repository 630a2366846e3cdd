"""Cross-validation of the engine fit: groups of rows left out together and predicted unseen, and a flat baseline.

The baseline changes the step alone: lengths, layouts, formats, slots and the closed loop are those of the fitted prediction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headway.core.progress import expect, tick
from headway.core.schema import defaults
from headway.evidence.fit.folds import ClassFold
from headway.evidence.fit.priors import PriorNumber, overlaid
from headway.evidence.fit.residuals import Residual, residuals
from headway.evidence.fit.result import QUEUED, WIDER, FittedNumbers, HeldOutResiduals, widths
from headway.evidence.rows.tasks import Task, Unpredictable
from headway.evidence.serving.engine_fit import EngineFit, fit, fit_without, measured_tasks, problem
from headway.evidence.serving.engine_numbers import table_at
from headway.evidence.serving.folds import MeasuredClasses, classes, cluster
from headway.evidence.serving.machines import machines, rows, stack
from headway.evidence.serving.predict import TIMES, circumstances, load_of, placed, predict, width_key
from headway.evidence.serving.quantities import quantities
from headway.performance.achieved import Efficiencies, efficiencies
from headway.performance.assumptions import Assumptions
from headway.performance.compile import compile_layout

CHIP_FOLDS = 4  # folds of chips: a quarter of the chips is left out at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """Rows left out of a fit (`out`), and those of them that score it (`scored`)."""

    name: str
    out: frozenset[int]
    scored: frozenset[int]


def folds(tasks: Sequence[Task]) -> list[Fold]:
    """All folds: each scored row is in a fold of its source, or in a fold of its chip if one source has all rows of its mode."""
    alone = single_source(tasks)
    all_folds = [_by_source(source, tasks, alone) for source in sorted({task.row.source for task in tasks})]
    for mode in sorted(alone):
        chips = sorted({task.setup.system.chip.name for task in tasks if task.row.mode == mode})
        parts = [chips[start::CHIP_FOLDS] for start in range(min(CHIP_FOLDS, len(chips)))]
        all_folds += [_by_chips(mode, part, tasks) for part in parts]
    return [fold for fold in all_folds if fold.scored]


def model_folds(tasks: Sequence[Task]) -> list[Fold]:
    """Folds that leave out whole models, for single-source modes: a second check, not the scored folds."""
    all_folds = []
    for mode in sorted(single_source(tasks)):
        for model in sorted({task.setup.model.name for task in tasks if task.row.mode == mode}):
            out = frozenset(index for index, task in enumerate(tasks) if task.setup.model.name == model)
            all_folds.append(Fold(name=f"model {model}", out=out, scored=frozenset(i for i in out if tasks[i].row.mode == mode)))
    return all_folds


def single_source(tasks: Sequence[Task]) -> frozenset[str]:
    """Modes whose rows all come from one source."""
    sources: dict[str, set[str]] = {}
    for task in tasks:
        sources.setdefault(task.row.mode, set()).add(task.row.source)
    return frozenset(mode for mode, names in sources.items() if len(names) == 1)


def _by_source(source: str, tasks: Sequence[Task], alone: frozenset[str]) -> Fold:
    out = frozenset(index for index, task in enumerate(tasks) if task.row.source == source)
    return Fold(name=f"source {source}", out=out, scored=frozenset(index for index in out if tasks[index].row.mode not in alone))


def _by_chips(mode: str, chips: Sequence[str], tasks: Sequence[Task]) -> Fold:
    out = frozenset(index for index, task in enumerate(tasks) if task.setup.system.chip.name in chips)
    return Fold(name=f"chips {', '.join(chips)}", out=out, scored=frozenset(index for index in out if tasks[index].row.mode == mode))


LEAST_SHIFT = 3.0  # standard errors by which a number must move for its fold to be reported


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberShift:
    """A fitted number that one fold decides: without the fold it moves by `errors` standard errors."""

    fold: str
    number: str
    errors: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingCrossValidation:
    """Numbers fitted to all rows, and residuals of every row predicted by a fit without its group."""

    engines: EngineFit
    table: Efficiencies
    intervals: tuple[FittedNumbers, ...]
    residuals: tuple[Residual, ...]
    shifts: tuple[NumberShift, ...]
    models: tuple[Residual, ...]  # residuals of single-source modes, predicted with whole models left out
    classes: MeasuredClasses  # every measurement predicted without its class: source, date, model family, kind of chip, engine
    samples: tuple[HeldOutResiduals, ...]  # of each kind of class, what widths are made of


def cross_validate(tasks: Sequence[Task], base: Efficiencies, engine_numbers: Sequence[PriorNumber]) -> ServingCrossValidation:
    """Fit to all rows, then without each fold; `base` gives the kernel efficiencies."""
    start = table_at(base, engine_numbers, [number.prior for number in engine_numbers])
    expect(2 + len(folds(tasks)) + len(model_folds(tasks)))
    all_rows = problem(tasks, start)
    full_fit = fit(all_rows, engine_numbers)
    places = measured_tasks(all_rows)
    tick(1)
    shifts, fits = [], {}  # several folds may leave out identical rows: one fit serves them

    def without(fold: Fold) -> tuple[Fold, Efficiencies]:
        if fold.out not in fits:
            fits[fold.out] = fit_without(all_rows, engine_numbers, full_fit, ~np.isin(places, list(fold.out)))
            shifts.extend(_shifts(fold.name, full_fit, fits[fold.out]))
        tick(1)
        return fold, table_at(base, engine_numbers, fits[fold.out].values(engine_numbers))

    fold_tables = [without(fold) for fold in folds(tasks)]
    measured = classes(all_rows, engine_numbers, full_fit, tasks, width_key)
    tick(1)
    fitted = table_at(base, engine_numbers, full_fit.values(engine_numbers))
    samples = tuple(fold_samples(measured, fold, fitted) for fold in measured.folds)
    classed, plain = joined(samples), _raw_residuals(tasks, fold_tables, fitted)
    intervals = widths(joined((classed, plain.where(~np.isin(plain.key, classed.key)))))
    out, models = (
        tuple(residual for fold, table in tables for residual in _residuals(fold, tasks, with_intervals(table, intervals)))
        for tables in (fold_tables, [without(fold) for fold in model_folds(tasks)])
    )
    table = with_intervals(fitted, intervals)
    return ServingCrossValidation(
        engines=full_fit, table=table, intervals=intervals, residuals=out, shifts=tuple(shifts), models=models, classes=measured,
        samples=samples,
    )  # fmt: skip


def with_intervals(table: Efficiencies, intervals: Sequence[FittedNumbers]) -> Efficiencies:
    """Efficiencies with these interval widths."""
    return overlaid(table.sections, intervals, [number.value for number in intervals])


def _shifts(fold: str, full_fit: EngineFit, fold_fit: EngineFit) -> list[NumberShift]:
    by = (fold_fit.z - full_fit.z) / full_fit.error
    return [
        NumberShift(fold=fold, number=f"{number.section}.{number.key}", errors=float(move))
        for number, move in zip(full_fit.free, by, strict=True)
        if abs(move) > LEAST_SHIFT
    ]


def _residuals(fold: Fold, tasks: Sequence[Task], table: Efficiencies) -> list[Residual]:
    return [residual for residual, _ in _pairs(fold, tasks, table)]


def fold_samples(measured: MeasuredClasses, fold: ClassFold, table: Efficiencies) -> HeldOutResiduals:
    """Errors of one kind of fold, with what may widen each row's interval."""
    scored = np.isfinite(fold.error)
    tasks = [task for task, counts in zip(measured.tasks, scored, strict=True) if counts]
    return _samples(tasks, measured.keys[scored], fold.error[scored], measured.quantities[scored], table)


def _samples(tasks: Sequence[Task], keys: Any, error: Any, quantities: Any, table: Efficiencies) -> HeldOutResiduals:
    return HeldOutResiduals(
        key=keys, error=error, source=np.array([cluster(task) for task in tasks], dtype=str), few=True,
        wider=_circumstances(tasks, keys, table), slower=_slower(error, quantities),
    )  # fmt: skip


def _raw_residuals(tasks: Sequence[Task], fold_tables: Sequence[tuple[Fold, Efficiencies]], table: Efficiencies) -> HeldOutResiduals:
    """Errors of the scored folds: for quantities that too few rows measure to leave out whole classes."""
    pairs = [(residual, task) for fold, fold_table in fold_tables for residual, task in _pairs(fold, tasks, fold_table)]
    fold_tasks = [task for _, task in pairs]
    keys = np.array([width_key(residual.kind, residual.quantity) for residual, _ in pairs], dtype=str)
    errors, quantities = (np.array([getattr(residual, name) for residual, _ in pairs]) for name in ("log_ratio", "quantity"))
    return _samples(fold_tasks, keys, errors, quantities, table)


def joined(samples: Sequence[HeldOutResiduals]) -> HeldOutResiduals:
    """Errors of several kinds of folds together."""
    columns = {name: np.concatenate([getattr(part, name) for part in samples]) for name in ("key", "error", "source", "slower")}
    return replace(samples[0], wider={name: np.concatenate([part.wider[name] for part in samples]) for name in WIDER}, **columns)


def _pairs(fold: Fold, tasks: Sequence[Task], table: Efficiencies) -> list[tuple[Residual, Task]]:
    """Residuals of a fold, each with its task (rows of several files may share ids and lines)."""
    fold_tasks = [tasks[index] for index in sorted(fold.scored)]
    task_predictions = zip(fold_tasks, predict(fold_tasks, table), strict=True)
    return [(residual, task) for task, prediction in task_predictions for residual in residuals([task], [prediction], [fold.name])]


def _slower(error: Any, quantities: Any) -> Any:
    """Whether each measurement is slower than predicted, from ln(predicted / measured): a longer time, or a lower rate."""
    return np.where(np.isin(quantities, TIMES), error < 0, error > 0)


def _circumstances(tasks: Sequence[Task], keys: Any, table: Efficiencies) -> dict[str, Any]:
    """How far each circumstance holds for each measurement, 0 to 1; `keys` are those of the measurements' intervals."""
    if not tasks:
        return {name: np.zeros(0) for name in WIDER}
    place, setups = placed(tasks)
    extents = circumstances(tasks, rows(machines(setups, table), place), load_of(tasks))
    return extents | {QUEUED: np.where(np.char.startswith(keys, "ttft"), extents[QUEUED], 0.0)}


OVERLAP = "operators"  # compute and memory traffic overlap within an operator; operators run in sequence


def flat_residuals(
    tasks: Sequence[Task | Unpredictable], residuals: Sequence[Residual], table: Efficiencies | None = None
) -> list[Residual]:
    """Residuals of the flat model; their intervals are those of the fitted model and have no meaning here."""
    known = [task for task in tasks if isinstance(task, Task)]
    predictions = _predicted(known, table or efficiencies())
    return [replace(residual, predicted=predictions[(residual.line, residual.id, residual.quantity)]) for residual in residuals]


def floor_residuals(residuals: Sequence[Residual]) -> list[Residual]:
    """Residuals of the floor taken as the prediction."""
    return [replace(residual, predicted=residual.floor) for residual in residuals]


def _predicted(tasks: Sequence[Task], table: Efficiencies) -> dict[tuple[int, str, str], float]:
    """Predicted quantities of all rows, keyed by line, id and quantity."""
    if not tasks:
        return {}
    place, setups = placed(tasks)
    assumptions = defaults(Assumptions, {"engine": "none", "overlap": OVERLAP})
    steps = [compile_layout(setup.work, setup.system, setup.layout, assumptions, setup.formats, table).step for setup in setups]
    all_machines = replace(machines(setups, table), step=stack(steps))
    predictions: dict[tuple[int, str, str], float] = {}
    for kind in dict.fromkeys(task.kind for task in tasks):
        at = [index for index, task in enumerate(tasks) if task.kind == kind]
        kind_tasks = [tasks[index] for index in at]
        estimates = quantities(kind, rows(all_machines, place[np.array(at)]), load_of(kind_tasks), False)
        for name in ("ttft", "tpot", "rate", "per_chip"):
            predictions |= {
                (task.row.line, task.row.id, name): float(value) for task, value in zip(kind_tasks, getattr(estimates, name), strict=True)
            }
    return predictions

"""Cross-validation of the engine fit: rows left out together and predicted unseen, scores by class, and a flat baseline.

Groups are sources, chips and models; classes are sources, quarters of the year, model families, kinds of chip and engines. The baseline
changes the step alone: lengths, layouts, formats, slots and the closed loop are those of the fitted prediction.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headway.core.progress import expect, tick
from headway.core.schema import defaults
from headway.evidence.fit.result import (
    QUEUED,
    SLOWER,
    WIDER,
    FittedNumbers,
    HeldOutResiduals,
    overlaid,
    unseen_kind,
    width_factors,
    width_names,
    widths,
)
from headway.evidence.fit.statistics import ClassFold, Misses, misses, misses_by_class, unseen_halves
from headway.evidence.rows.tasks import Task, Unpredictable
from headway.evidence.serving.class_means import model_family, quarter
from headway.evidence.serving.engine_fit import measured_tasks
from headway.evidence.serving.machines import machines, quantities, rows, stack
from headway.evidence.serving.predict import RATES, TIMES, circumstances, load_of, placed, predict, width_key
from headway.evidence.serving.score import Residual, residuals
from headway.evidence.serving.whole_fit import WholeFit
from headway.performance.achieved import OTHER_FAMILY, Efficiencies, efficiencies, family, platform
from headway.performance.assumptions import Assumptions
from headway.performance.compile import compile_layout

FEWEST = 20  # rows of a measure that a fit must have seen for its prediction of the measure to count
CARD_GENERATIONS = ((2022, "before 2022"), (2025, "2022 to 2024"))  # first year after each generation of cards
NEWER_CARDS = "from 2025"


def chip_kind(task: Task) -> str:
    """Kind of a row's chip: the family of its kernels, else its platform, cards by their generation."""
    chip = task.setup.system.chip
    kernels, kind = family(chip), platform(chip)
    if kernels != OTHER_FAMILY or kind != "card":
        return kernels if kernels != OTHER_FAMILY else kind
    year = float(chip.year or 0)
    return f"card, {next((name for first, name in CARD_GENERATIONS if year < first), NEWER_CARDS)}"


KINDS: dict[str, Callable[[Task], str]] = {
    "source": lambda task: task.row.source,
    "date": quarter,
    "family": lambda task: model_family(task.setup.model.name),
    "chip": chip_kind,
    "engine": lambda task: task.setup.engine,
}
IN_ORDER = "date"  # kind whose classes are predicted from the earlier ones alone


def cluster(task: Task) -> str:
    """Rows of a model, a chip and an engine, which count once together."""
    return f"{task.setup.model.name}|{task.setup.system.chip.name}|{task.setup.engine}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredClasses:
    """Each measurement of a problem: its task, quantity and key of its interval, and its error in every kind of fold."""

    tasks: tuple[Task, ...]
    quantities: Any
    keys: Any
    folds: tuple[ClassFold, ...]


def class_fold(full: WholeFit, tasks: Sequence[Task], keys: np.ndarray, kind: str) -> ClassFold:
    """Errors of every class of one kind, each predicted by a fit to the others (by date: to the earlier ones)."""
    labels = np.array([KINDS[kind](task) for task in tasks])
    error = np.full(len(labels), np.nan)
    for name in np.unique(labels):
        out = labels == name
        if kind == IN_ORDER and not name:
            continue
        keep = (labels < name) if kind == IN_ORDER else ~out
        scored = out & np.isin(keys, [key for key in np.unique(keys[keep]) if (keep & (keys == key)).sum() >= FEWEST])
        if scored.any():
            error[scored] = full.without(keep, fresh=False).error[scored]
    return ClassFold(kind=kind, labels=labels, error=error)


def classes(full: WholeFit, tasks: Sequence[Task]) -> MeasuredClasses:
    """All folds by class of a fit; `tasks` are those that it was made of."""
    measured = tuple(tasks[int(index)] for index in measured_tasks(full.problem))
    quantities = np.array([group.quantity for rows in full.problem.kinds for group in rows.groups for _ in group.rows])
    keys = np.array([width_key(task.kind, quantity) for task, quantity in zip(measured, quantities, strict=True)])
    folds = tuple(class_fold(full, measured, keys, kind) for kind in KINDS)
    return MeasuredClasses(tasks=measured, quantities=quantities, keys=keys, folds=folds)


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
    shared = {task.row.mode for task in tasks} - alone
    all_folds = []
    for source in sorted({task.row.source for task in tasks}):
        out = [index for index, task in enumerate(tasks) if task.row.source == source]
        all_folds.append(_fold(f"source {source}", tasks, out, shared))
    for mode in sorted(alone):
        chips = sorted({task.setup.system.chip.name for task in tasks if task.row.mode == mode})
        for part in (chips[start::CHIP_FOLDS] for start in range(min(CHIP_FOLDS, len(chips)))):
            out = [index for index, task in enumerate(tasks) if task.setup.system.chip.name in part]
            all_folds.append(_fold(f"chips {', '.join(part)}", tasks, out, {mode}))
    return [fold for fold in all_folds if fold.scored]


def _fold(name: str, tasks: Sequence[Task], out: Sequence[int], modes: Collection[str]) -> Fold:
    """A fold of the rows `out`, scored by those of some modes."""
    return Fold(name=name, out=frozenset(out), scored=frozenset(index for index in out if tasks[index].row.mode in modes))


def model_folds(tasks: Sequence[Task]) -> list[Fold]:
    """Folds that leave out whole models, for single-source modes: a second check, not the scored folds."""
    all_folds = []
    for mode in sorted(single_source(tasks)):
        for model in sorted({task.setup.model.name for task in tasks if task.row.mode == mode}):
            out = [index for index, task in enumerate(tasks) if task.setup.model.name == model]
            all_folds.append(_fold(f"model {model}", tasks, out, {mode}))
    return all_folds


def single_source(tasks: Sequence[Task]) -> frozenset[str]:
    """Modes whose rows all come from one source."""
    sources: dict[str, set[str]] = {}
    for task in tasks:
        sources.setdefault(task.row.mode, set()).add(task.row.source)
    return frozenset(mode for mode, names in sources.items() if len(names) == 1)


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

    full: WholeFit
    table: Efficiencies
    intervals: tuple[FittedNumbers, ...]
    residuals: tuple[Residual, ...]
    shifts: tuple[NumberShift, ...]
    models: tuple[Residual, ...]  # residuals of single-source modes, predicted with whole models left out
    classes: MeasuredClasses  # every measurement predicted without its class: source, date, model family, kind of chip, engine
    samples: tuple[HeldOutResiduals, ...]  # of each kind of class, what widths are made of


def cross_validate(tasks: Sequence[Task], full: WholeFit) -> ServingCrossValidation:
    """The fit to all rows, and without each fold."""
    expect(2 + len(folds(tasks)) + len(model_folds(tasks)))
    places = measured_tasks(full.problem)
    tick(1)
    shifts, fits = [], {}  # several folds may leave out identical rows: one fit serves them

    def without(fold: Fold) -> tuple[Fold, Efficiencies]:
        if fold.out not in fits:
            part = fits[fold.out] = full.without(~np.isin(places, list(fold.out)))
            moves = zip(full.engines.free, (part.engines.z - full.engines.z) / full.engines.error, strict=True)
            shifts.extend(
                NumberShift(fold=fold.name, number=f"{number.section}.{number.key}", errors=float(move))
                for number, move in moves
                if abs(move) > LEAST_SHIFT
            )
        tick(1)
        return fold, fits[fold.out].table

    fold_tables = [without(fold) for fold in folds(tasks)]
    measured = classes(full, tasks)
    tick(1)
    fitted = full.table
    samples = tuple(fold_samples(measured, fold, fitted) for fold in measured.folds)
    classed, plain = joined(samples), _raw_residuals(tasks, fold_tables, fitted)
    intervals = widths(joined((classed, plain.where(~np.isin(plain.key, classed.key)))))
    chips = next(index for index, fold in enumerate(measured.folds) if fold.kind == "chip")
    kinds = measured.folds[chips].labels[np.isfinite(measured.folds[chips].error)]
    unseen = unseen_kind(samples[chips], kinds, intervals)
    intervals = tuple(unseen if line.key == unseen.key else line for line in intervals)
    out, models = (
        tuple(residual for fold, table in tables for residual, _ in _pairs(fold, tasks, with_intervals(table, intervals)))
        for tables in (fold_tables, [without(fold) for fold in model_folds(tasks)])
    )
    table = with_intervals(fitted, intervals)
    return ServingCrossValidation(
        full=full, table=table, intervals=intervals, residuals=out, shifts=tuple(shifts), models=models, classes=measured, samples=samples,
    )  # fmt: skip


def with_intervals(table: Efficiencies, intervals: Sequence[FittedNumbers]) -> Efficiencies:
    """Efficiencies with these interval widths."""
    return overlaid(table.sections, intervals, [number.value for number in intervals])


def fold_samples(measured: MeasuredClasses, fold: ClassFold, table: Efficiencies) -> HeldOutResiduals:
    """Errors of one kind of fold, with what may widen each row's interval."""
    scored = np.isfinite(fold.error)
    tasks = [task for task, counts in zip(measured.tasks, scored, strict=True) if counts]
    return _samples(tasks, measured.keys[scored], fold.error[scored], measured.quantities[scored], table)


def _samples(tasks: Sequence[Task], keys: np.ndarray, error: np.ndarray, quantities: np.ndarray, table: Efficiencies) -> HeldOutResiduals:
    """Errors of tasks, with how far each circumstance holds for each, 0 to 1, and whether each is slower than predicted.

    Slower is a longer time or a lower rate, from ln(predicted / measured); `keys` are those of the measurements' intervals.
    """
    extents: dict[str, np.ndarray] = {name: np.zeros(0) for name in WIDER}
    if tasks:
        place, setups = placed(tasks)
        extents = circumstances(tasks, rows(machines(setups, table), place), load_of(tasks))
        extents |= {QUEUED: np.where(np.char.startswith(keys, "ttft"), extents[QUEUED], 0.0)}
    slower = np.where(np.isin(quantities, TIMES), error < 0, error > 0)
    source = np.array([cluster(task) for task in tasks], dtype=str)
    return HeldOutResiduals(key=keys, error=error, source=source, few=True, wider=extents, slower=slower)


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


OVERLAP = "operators"  # compute and memory traffic overlap within an operator; operators run in sequence


def flat_residuals(
    tasks: Sequence[Task | Unpredictable], residuals: Sequence[Residual], table: Efficiencies | None = None
) -> list[Residual]:
    """Residuals of the flat model; their intervals are those of the fitted model and have no meaning here."""
    known, flat_table = [task for task in tasks if isinstance(task, Task)], table or efficiencies()
    if not known:
        return []
    place, setups = placed(known)
    assumptions = defaults(Assumptions, {"engine": "none", "overlap": OVERLAP})
    steps = [compile_layout(setup.work, setup.system, setup.layout, assumptions, setup.formats, flat_table).step for setup in setups]
    all_machines = replace(machines(setups, flat_table), step=stack(steps))
    predictions: dict[tuple[int, str, str], float] = {}  # by line, id and quantity
    for kind in dict.fromkeys(task.kind for task in known):
        at = [index for index, task in enumerate(known) if task.kind == kind]
        kind_tasks = [known[index] for index in at]
        estimates = quantities(kind, rows(all_machines, place[np.array(at)]), load_of(kind_tasks), False)
        for name in (*TIMES, *RATES):
            values = zip(kind_tasks, getattr(estimates, name), strict=True)
            predictions |= {(task.row.line, task.row.id, name): float(value) for task, value in values}
    return [replace(residual, predicted=predictions[(residual.line, residual.id, residual.quantity)]) for residual in residuals]


def floor_residuals(residuals: Sequence[Residual]) -> list[Residual]:
    """Residuals of the floor taken as the prediction."""
    return [replace(residual, predicted=residual.floor) for residual in residuals]


MEASURE_OF_KEY = {
    "tpot": "served TPOT", "ttft": "TTFT", "ttft_split": "TTFT, split pools", "decode": "decode", "prefill": "prefill",
    "offline": "throughput",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassScore:
    """Errors of one measure in one kind of fold, each cluster of rows counted once, and of its classes of FEWEST rows and more."""

    kind: str
    measure: str
    all_rows: Misses
    width: float  # median of hi / lo
    classes: tuple[Misses, ...]

    @property
    def worst(self) -> Misses | None:
        """The class with the largest median error."""
        return max(self.classes, key=lambda group: group.median, default=None)


def class_scores(measured: MeasuredClasses, samples: Sequence[HeldOutResiduals]) -> tuple[ClassScore, ...]:
    """Scores of every kind of fold and measure; a class's intervals come from the errors of the others alone."""
    scores = []
    for index, (fold, sample) in enumerate(zip(measured.folds, samples, strict=True)):
        labels = [fold.labels[np.isfinite(kind.error)] for kind in measured.folds]
        factors = {
            str(name): width_factors(joined([part.where(names != name) for part, names in zip(samples, labels, strict=True)]))
            for name in np.unique(labels[index])
        }
        half, opposite_half = (
            unseen_halves(labels[index], lambda name, part=part, factors=factors: _halves(part, factors[str(name)]))
            for part in (sample, replace(sample, slower=~sample.slower))
        )
        within = np.abs(sample.error) <= half
        for key, measure in MEASURE_OF_KEY.items():
            at = sample.key == key
            if at.any():
                part = (sample.error[at], sample.source[at], within[at])
                scores.append(ClassScore(
                    kind=fold.kind, measure=measure, all_rows=misses(*part), width=float(np.exp(np.median((half + opposite_half)[at]))),
                    classes=misses_by_class(labels[index][at], *part, FEWEST),
                ))  # fmt: skip
    return tuple(scores)


def _halves(rows: HeldOutResiduals, factors: dict[str, float]) -> Any:
    """Half of each row's interval in the logarithm, on the side of its error; a quantity that no other class measures has none."""
    half = np.log(np.array([factors.get(name, 1.0) for name in width_names(rows.key)]))
    for name, holds in rows.wider.items():
        extent = np.asarray(holds, dtype=float)
        half = half * factors[name] ** (np.where(rows.slower, extent, 0.0) if name == SLOWER else extent)
    return half

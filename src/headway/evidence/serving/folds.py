"""Folds of the serving fit: clusters left out and predicted unseen, the intervals that their errors make, and how well those hold.

A cluster is a model on a chip with an engine from a source. Ten folds of clusters score the fit. Folds of whole kinds (of chip, engine,
format) say only how intervals grow with the distance to measured rows; the newest quarters are predicted from those
before. Fits start at the shipped numbers, so that folds need no fit to all rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from headway.core.progress import expect, tick
from headway.evidence.fit.nearest import entries
from headway.evidence.fit.result import FittedNumbers, PriorNumber, overlaid
from headway.evidence.fit.widths import HeldOutResiduals, joined, width_factors, widths
from headway.evidence.rows.tasks import Task
from headway.evidence.serving.engine_fit import cluster, measured_tasks
from headway.evidence.serving.machines import dense_form, machines, rows
from headway.evidence.serving.predict import circumstances, load_of, placed, predict, width_key
from headway.evidence.serving.score import RATE, SERVED, Residual, quarter, residuals
from headway.evidence.serving.whole_fit import WholeFit, shipped_fit
from headway.performance.achieved import Efficiencies, chip_kind
from headway.performance.intervals import SLOWER, widens
from headway.performance.nearest import NearestEntry

COUNT, SEED = 10, 40
NEWEST = 2  # quarters that are predicted from those before
FEWEST = 100  # rows before a quarter that a fit needs
CLUSTERS, KINDS, QUARTERS = "clusters", "kinds", "quarters"
DATE = "undated"  # of entries that live as long as a fold


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """Tasks (by index) that are predicted by a fit to others."""

    name: str
    of: str  # CLUSTERS, KINDS or QUARTERS
    out: np.ndarray
    rest: np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldResult:
    """Errors of every fold, each row's interval made of the other folds' errors, and the widths that all folds together make."""

    in_sample: tuple[Residual, ...]  # of the shipped numbers, which have seen the rows
    clusters: tuple[Residual, ...]  # of the ten folds: every measurement once
    quarters: tuple[Residual, ...]  # of the newest quarters, by those before
    intervals: tuple[FittedNumbers, ...]
    count: int  # of clusters
    seed: int


def cluster_folds(tasks: Sequence[Task], seed: int = SEED) -> list[Fold]:
    """Ten folds of whole clusters, drawn by a seed that is printed before anything is fitted."""
    names = np.array([cluster(task) for task in tasks])
    known = np.unique(names)
    place = dict(zip(known, np.random.default_rng(seed).permutation(len(known)) % COUNT, strict=True))
    of = np.array([place[name] for name in names])
    return [_fold(f"clusters {number + 1} of {COUNT}", CLUSTERS, of == number) for number in range(COUNT) if (of == number).any()]


def kind_folds(tasks: Sequence[Task]) -> list[Fold]:
    """Folds of whole kinds of chip, engines and formats."""
    labels = (
        [f"chip {chip_kind(task.setup.system.chip)}" for task in tasks], [f"engine {task.setup.engine}" for task in tasks],
        [f"format {dense_form(task.setup)}" for task in tasks],
    )  # fmt: skip
    return [_fold(name, KINDS, np.array(kinds) == name) for kinds in labels if len(set(kinds)) > 1 for name in sorted(set(kinds))]


def quarter_folds(tasks: Sequence[Task]) -> list[Fold]:
    """The newest quarters, each kept from a fit to the dated rows before it."""
    names = np.array([quarter(task.row) for task in tasks])
    newest = []
    for name in sorted(set(names) - {""})[-NEWEST:]:
        before = (names < name) & (names != "")
        if before.sum() >= FEWEST:
            newest.append(Fold(name=name, of=QUARTERS, out=np.flatnonzero(names == name), rest=np.flatnonzero(before)))
    return newest


def _fold(name: str, of: str, out: np.ndarray) -> Fold:
    """A fold that keeps all other rows."""
    return Fold(name=name, of=of, out=np.flatnonzero(out), rest=np.flatnonzero(~out))


@dataclass(frozen=True, slots=True, kw_only=True)
class _LeftOut:
    """A fold's rows, as a fit without them predicts them."""

    fold: Fold
    table: Efficiencies
    evidence: list[NearestEntry]
    sample: HeldOutResiduals


def cross_validate(tasks: Sequence[Task], base: Efficiencies, engine_numbers: Sequence[PriorNumber], seed: int = SEED) -> FoldResult:
    """Every fold, from the numbers of `base`."""
    all_folds = [*cluster_folds(tasks, seed), *quarter_folds(tasks), *kind_folds(tasks)]
    expect(1 + len(all_folds))
    full = shipped_fit(tasks, base, engine_numbers)
    in_sample = residuals(tasks, predict(tasks, base))
    tick(1)
    parts = list(_left_out(tasks, all_folds, full, in_sample))
    intervals = widths(joined([part.sample for part in parts if part.fold.of != QUARTERS]))
    scored: dict[str, list[Residual]] = {CLUSTERS: [], QUARTERS: []}
    for part in (part for part in parts if part.fold.of in scored):
        scored[part.fold.of] += _scored(tasks, part, parts)
    fitted = with_intervals(base, {line.key: line.value for line in intervals})
    return FoldResult(
        in_sample=tuple(residuals(tasks, predict(tasks, fitted, entries(in_sample, DATE)))), clusters=tuple(scored[CLUSTERS]),
        quarters=tuple(scored[QUARTERS]), intervals=intervals, count=len({cluster(task) for task in tasks}), seed=seed,
    )  # fmt: skip


def _left_out(tasks: Sequence[Task], all_folds: Sequence[Fold], full: WholeFit, in_sample: Sequence[Residual]) -> Iterator[_LeftOut]:
    """Each fold with the numbers of a fit to what it keeps."""
    places = measured_tasks(full.problem)
    for fold in all_folds:
        table = full.without(np.isin(places, fold.rest), fresh=False).table
        lines = {tasks[index].row.line for index in fold.rest}
        evidence = entries([residual for residual in in_sample if residual.line in lines], DATE)
        sample = _sample([tasks[index] for index in fold.out], fold, table, evidence)
        yield _LeftOut(fold=fold, table=table, evidence=evidence, sample=sample)
        tick(1)


def _sample(tasks: Sequence[Task], fold: Fold, table: Efficiencies, evidence: Sequence[NearestEntry]) -> HeldOutResiduals:
    """Errors of a fold's rows, with how far each circumstance holds."""
    place, setups = placed(tasks)
    extents = circumstances(tasks, rows(machines(setups, table), place), load_of(tasks), evidence)
    index = {task.row.line: number for number, task in enumerate(tasks)}
    errors = residuals(tasks, predict(tasks, table, evidence))
    errors = [residual for residual in errors if residual.kind not in SERVED or residual.quantity not in RATE]
    at = np.array([index[residual.line] for residual in errors], dtype=int)
    keys = np.array([width_key(residual.kind, residual.quantity) for residual in errors], dtype=str)
    error = np.array([residual.log_ratio for residual in errors])
    slower = np.array([residual.log_ratio < 0 if residual.is_time else residual.log_ratio > 0 for residual in errors], dtype=bool)
    wider = {name: np.asarray(extent, dtype=float)[at] for name, extent in extents.items()}
    wider = {name: np.where([widens(name, key) for key in keys], extent, 0.0) for name, extent in wider.items()}
    wider |= {SLOWER: np.where(slower, wider[SLOWER], 0.0)}
    names = np.array([residual.cluster for residual in errors], dtype=str)
    return HeldOutResiduals(key=keys, error=error, cluster=names, wider=wider, kind=np.full(len(at), fold.of == KINDS))


def _scored(tasks: Sequence[Task], part: _LeftOut, parts: Sequence[_LeftOut]) -> list[Residual]:
    """Residuals of a fold's rows, with intervals made of the errors of other clusters alone."""
    clusters = np.unique(part.sample.cluster)
    samples = [other_part.sample for other_part in parts if other_part.fold.of != QUARTERS]
    rest = joined([sample.where(~np.isin(sample.cluster, clusters)) for sample in samples])
    fold_tasks, table = [tasks[index] for index in part.fold.out], with_intervals(part.table, width_factors(rest))
    return residuals(fold_tasks, predict(fold_tasks, table, part.evidence), [part.fold.name] * len(fold_tasks))


def with_intervals(table: Efficiencies, values: dict[str, float]) -> Efficiencies:
    """Efficiencies with these widths of intervals."""
    lines = [PriorNumber(section="interval.other", key=key, prior=value) for key, value in values.items()]
    return overlaid(table.sections, lines, values.values())

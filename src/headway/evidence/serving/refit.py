"""The whole serving fit: the numbers of kernels and engines that ship; a second command folds clusters out of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from headway.core.errors import BadFile
from headway.core.progress import expect, tick
from headway.evidence.fit.result import ErrorRow, FittedNumbers, KernelFit, overlaid
from headway.evidence.kernels.efficiency import HEAD, fit_kernels
from headway.evidence.rows.row import left_out, need_rows, read_rows
from headway.evidence.rows.tasks import Task, Unpredictable, tasks
from headway.evidence.serving.class_means import ClassMean, class_means
from headway.evidence.serving.engine_fit import as_fitted, numbers
from headway.evidence.serving.folds import FoldResult, cross_validate
from headway.evidence.serving.score import UNSCORED
from headway.evidence.serving.whole_fit import whole_fit
from headway.performance.achieved import Efficiencies, efficiencies, kind_of

NO_LENGTH = "input length not stated"
LEAST_ROWS = 50  # fewest scored rows for a fit


@dataclass(frozen=True, slots=True, kw_only=True)
class Refit:
    """Result of the fit: the numbers."""

    numbers: tuple[FittedNumbers, ...]
    classes: tuple[ClassMean, ...] = ()  # what the numbers leave of classes of rows
    errors: tuple[ErrorRow, ...] = ()  # of the kernels
    notes: tuple[str, ...] = ()  # lines that were left out

    @property
    def head(self) -> str:
        """Comment at the head of data/efficiency.toml."""
        return HEAD


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    """Result of the folds of the shipped numbers."""

    result: FoldResult
    rows: int  # rows of reliability A and B with a stated input length
    predicted: int  # of those, rows with a prediction
    unstated: int  # rows whose input length is not stated
    notes: tuple[str, ...] = ()

    @property
    def numbers(self) -> tuple[FittedNumbers, ...]:
        """Widths of intervals."""
        return self.result.intervals


def refit(kernels: Path | None, measured: Sequence[Path]) -> Refit:
    """Fit of kernels and engines to the data given; numbers without data, and the widths of intervals, stay as shipped."""
    kernel_fit = fit_kernels(kernels) if kernels is not None else KernelFit(parameters=(), errors=())
    base, notes, engine_numbers = with_kernels(efficiencies(), kernel_fit.parameters), list[str](), numbers()
    if not measured:
        return Refit(numbers=kernel_fit.parameters, errors=kernel_fit.errors)
    known_tasks = [task for task in _scored_tasks(measured, notes)[0] if isinstance(task, Task)]
    expect(1)
    full = whole_fit(known_tasks, base, engine_numbers)
    tick(1)
    what = f"{len(full.rest.error)} measurements of {len(known_tasks)} published rows"
    fitted = as_fitted(full.engines, engine_numbers, len(known_tasks), what)
    lines = (*kernel_fit.parameters, *fitted, *(factor.line() for factor in full.factors))
    classes = class_means(full.rest, full.tasks, full.time_error)
    return Refit(numbers=lines, classes=classes, errors=kernel_fit.errors, notes=tuple(notes))


def folded(measured: Sequence[Path], seed: int) -> Folded:
    """Folds of the rows, by fits that start at the shipped numbers."""
    notes = list[str]()
    scored_tasks, unstated = _scored_tasks(measured, notes)
    known_tasks = [task for task in scored_tasks if isinstance(task, Task)]
    table = efficiencies()
    present = [number for number in numbers() if number.key in table.sections.get(number.section, {})]  # a table may be older than a number
    result = cross_validate(known_tasks, table, present, seed)
    return Folded(result=result, rows=len(scored_tasks), predicted=len(known_tasks), unstated=unstated, notes=tuple(notes))


def _scored_tasks(paths: Sequence[Path], notes: list[str]) -> tuple[list[Task | Unpredictable], int]:
    """Tasks of scored rows with a stated input length, and the count of scored rows without one."""
    all_rows = []
    for path in paths:
        rows, bad = read_rows(str(path))
        need_rows(path, rows, bad)
        notes += left_out(path, bad)
        all_rows += rows
    rows = [replace(row, line=number) for number, row in enumerate(all_rows, 1)]  # unique line numbers: files may share lines and ids
    scored = [task for task in tasks(rows) if task.row.reliability != UNSCORED]
    tasks_with_length = [task for task in scored if isinstance(task, Task) or task.why != NO_LENGTH]
    if sum(isinstance(task, Task) for task in tasks_with_length) < LEAST_ROWS:
        raise BadFile(paths[0], f"has fewer than {LEAST_ROWS} rows that can be predicted and scored")
    return tasks_with_length, len(scored) - len(tasks_with_length)


def with_kernels(table: Efficiencies, parameters: Sequence[FittedNumbers]) -> Efficiencies:
    """Efficiencies with these kernel numbers, which replace all sections of their classes."""
    kinds = {kind_of(number.section) for number in parameters}
    other_sections = {name: section for name, section in table.sections.items() if kind_of(name) not in kinds}
    return overlaid(other_sections, parameters, [number.value for number in parameters])

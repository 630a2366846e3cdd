"""Measured loads as the runs of a profile: which can be used, what each says, and predictions without and with them."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from headway.core.catalog import Catalog
from headway.evidence.calibration.observe import observe
from headway.evidence.rows.cells import cells_of
from headway.evidence.rows.row import BadRow, row_format
from headway.evidence.rows.run_keys import task_month
from headway.evidence.rows.tasks import Task, Unpredictable, tasks
from headway.evidence.serving.predict import Prediction, predict
from headway.evidence.serving.score import UNSCORED, Residual, residuals
from headway.performance.calibration.observation import Observation
from headway.performance.calibration.profile import CalibrationRun

OWN_PREDICTIONS = "its measurements are headway's own predictions"
MOST_HELD_OUT = 24  # runs, each of which is predicted once more
SAME = 1e-6  # of a measurement: nearer to a prediction than any that was measured


@dataclass(frozen=True, slots=True, kw_only=True)
class FiledRow:
    """A row of a run, and the file that it is from."""

    row: Any  # MeasuredRow, TrainingRow or LogRow
    file: str
    hash: str  # SHA-256 of its content
    date: str = ""  # of the run, where a profile has it


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedRun:
    """A run of a profile, with what is predicted of its row, and its measurements beside predictions without and with the runs."""

    run: CalibrationRun
    task: Any  # Task of a load, TrainingSetup of a training run, None of a log
    without: tuple[Residual, ...]
    by_runs: tuple[Residual, ...] = ()  # by all of them, this one among them
    by_others: tuple[Residual, ...] = ()  # by all but this one; none of a single run, or of many


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOutRow:
    """A row that says nothing, and why."""

    file: str
    row: BadRow


def used_loads(filed: Sequence[FiledRow], name: str, catalog: Catalog) -> tuple[list[UsedRun], list[LeftOutRow]]:
    """The runs of rows for a profile of this name, and the rows that are left out."""
    row_tasks = tasks([entry.row for entry in filed], catalog)
    known = [task for task in row_tasks if isinstance(task, Task)]
    measured = {id(task): residuals([task], [prediction]) for task, prediction in zip(known, predict(known), strict=True)}
    ids = Counter(entry.row.id for entry in filed)
    whys = [_why(task, measured.get(id(task), []), ids[task.row.id]) for task in row_tasks]
    good = [(entry, task) for entry, task, why in zip(filed, row_tasks, whys, strict=True) if not why and isinstance(task, Task)]
    runs = {run.id: run for run in _observed(good, name)}
    loads = [UsedRun(run=runs[entry.row.id], task=task, without=tuple(measured[id(task)])) for entry, task in good if entry.row.id in runs]
    silent = "its measurements say nothing of its server"
    reasons = [why or ("" if entry.row.id in runs else silent) for entry, why in zip(filed, whys, strict=True)]
    bad = [
        LeftOutRow(file=entry.file, row=BadRow(line=entry.row.line, id=entry.row.id, why=why))
        for entry, why in zip(filed, reasons, strict=True) if why
    ]  # fmt: skip
    return loads, bad


def twins_why(name: str, count: int) -> str:
    """That so many rows have one id.

    >>> twins_why("a", 2)
    "id 'a' is there twice; wants an id of its own for each run"
    """
    return f"id {name!r} is there {'twice' if count == 2 else f'{count} times'}; wants an id of its own for each run"


def _why(task: Task | Unpredictable, measured: Sequence[Residual], count: int) -> str:
    """Why a row cannot be used; "" where it can."""
    if count > 1:
        return twins_why(task.row.id, count)
    if isinstance(task, Unpredictable):
        return task.why
    if task.row.reliability == UNSCORED:
        return "reliability C is never used"
    if not measured:
        return "states no measurement: wants ttft_ms, tpot_ms, tok_s_per_chip or output_tok_s_total"
    if all(abs(residual.predicted / residual.measured - 1) < SAME for residual in measured):
        return OWN_PREDICTIONS
    return ""


def _observed(good: Sequence[tuple[FiledRow, Task]], name: str) -> list[CalibrationRun]:
    """The runs of good rows, each with what it says, on its own date or else today's."""
    by_run: dict[str, list[Observation]] = {}
    for observation in observe([task for _, task in good], [f"{name}:{entry.row.id}" for entry, _ in good]):
        by_run.setdefault(observation.run.removeprefix(f"{name}:"), []).append(observation)
    today, runs = datetime.date.today().isoformat(), []
    for entry, task in ((entry, task) for entry, task in good if entry.row.id in by_run):
        row, date = entry.row, entry.date or task_month(task) or today
        observations = tuple(replace(item, month=date) for item in by_run[row.id])
        cells = cells_of(row, row_format())
        runs.append(CalibrationRun(id=row.id, file=entry.file, hash=entry.hash, date=date, cells=cells, observations=observations))
    return runs


def with_predicted_loads(loads: Sequence[UsedRun]) -> list[UsedRun]:
    """Runs with predictions of their rows by all of them, and of a few by the others alone."""
    by_runs = _predicted(loads, [observation for load in loads for observation in load.run.observations])
    loads = [replace(load, by_runs=after) for load, after in zip(loads, by_runs, strict=True)]
    return [replace(load, by_others=_by_others(load, loads)) for load in loads] if 1 < len(loads) <= MOST_HELD_OUT else loads


def _predicted(loads: Sequence[UsedRun], runs: Sequence[Observation]) -> list[tuple[Residual, ...]]:
    """Measurements of rows beside predictions by these observations."""
    predictions: Sequence[Prediction] = predict([load.task for load in loads], runs=tuple(runs))
    return [tuple(residuals([load.task], [prediction])) for load, prediction in zip(loads, predictions, strict=True)]


def _by_others(load: UsedRun, loads: Sequence[UsedRun]) -> tuple[Residual, ...]:
    """A run predicted by the others, observed anew: about which factors they are linear must not know it either."""
    dates = {rest.run.id: rest.run.date for rest in loads if rest is not load}
    observations = observe([rest.task for rest in loads if rest is not load], list(dates))
    return _predicted([load], [replace(item, month=dates[item.run]) for item in observations])[0]

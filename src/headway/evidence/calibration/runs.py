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
    """A run of a profile, with what is predicted of its row, and its measurements beside predictions without and with all the runs."""

    run: CalibrationRun
    task: Any  # Task of a load, TrainingSetup of a training run, None of a log
    without: tuple[Residual, ...]
    by_runs: tuple[Residual, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOutRow:
    """A row that says nothing, and why."""

    file: str
    row: BadRow


def used_loads(filed: Sequence[FiledRow], name: str, catalog: Catalog) -> tuple[list[UsedRun], list[LeftOutRow]]:
    """The runs of rows for a profile of this name, and the rows that are left out."""
    row_tasks = tasks([one.row for one in filed], catalog)
    known = [task for task in row_tasks if isinstance(task, Task)]
    measured = {id(task): residuals([task], [prediction]) for task, prediction in zip(known, predict(known), strict=True)}
    ids = Counter(one.row.id for one in filed)
    whys = [_why(task, measured.get(id(task), []), ids[task.row.id]) for task in row_tasks]
    good = [(one, task) for one, task, why in zip(filed, row_tasks, whys, strict=True) if not why and isinstance(task, Task)]
    runs = {run.id: run for run in _observed(good, name)}
    used = [UsedRun(run=runs[one.row.id], task=task, without=tuple(measured[id(task)])) for one, task in good if one.row.id in runs]
    silent = "its measurements say nothing of its server"
    reasons = [why or ("" if one.row.id in runs else silent) for one, why in zip(filed, whys, strict=True)]
    bad = [
        LeftOutRow(file=one.file, row=BadRow(line=one.row.line, id=one.row.id, why=why))
        for one, why in zip(filed, reasons, strict=True) if why
    ]  # fmt: skip
    return used, bad


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
    if all(abs(one.predicted / one.measured - 1) < SAME for one in measured):
        return OWN_PREDICTIONS
    return ""


def _observed(good: Sequence[tuple[FiledRow, Task]], name: str) -> list[CalibrationRun]:
    """The runs of good rows, each with what it says, on its own date or else today's."""
    said: dict[str, list[Observation]] = {}
    for observation in observe([task for _, task in good], [one.row.id for one, _ in good]):
        said.setdefault(observation.run, []).append(observation)
    today, runs = datetime.date.today().isoformat(), []
    for one, task in ((one, task) for one, task in good if one.row.id in said):
        date, cells = one.date or task_month(task) or today, cells_of(one.row, row_format())
        observations = tuple(replace(each, run=f"{name}:{each.run}", month=date) for each in said[one.row.id])
        runs.append(CalibrationRun(id=one.row.id, file=one.file, hash=one.hash, date=date, cells=cells, observations=observations))
    return runs


def with_predicted_loads(used: Sequence[UsedRun]) -> list[UsedRun]:
    """Runs with predictions of their rows by all of them."""
    observations = tuple(each for one in used for each in one.run.observations)
    predictions: Sequence[Prediction] = predict([one.task for one in used], runs=observations)
    return [replace(one, by_runs=tuple(residuals([one.task], [each]))) for one, each in zip(used, predictions, strict=True)]

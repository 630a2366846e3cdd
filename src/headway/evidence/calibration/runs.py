"""Measured rows as the runs of a profile: which can be used, what each says, and predictions without and with them."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from headway.core.catalog import Catalog
from headway.evidence.calibration.observe import observe
from headway.evidence.rows.cells import cells_of, rows_of
from headway.evidence.rows.row import BadRow, MeasuredRow, row_format
from headway.evidence.rows.run_keys import task_month
from headway.evidence.rows.tasks import Task, Unpredictable, tasks
from headway.evidence.serving.predict import Prediction, predict
from headway.evidence.serving.score import UNSCORED, Residual, residuals
from headway.performance.calibration.key import TRAINING
from headway.performance.calibration.observation import Observation
from headway.performance.calibration.profile import CalibrationRun, Profile

SAME = 1e-6  # of a measurement: nearer to a prediction than any that was measured


@dataclass(frozen=True, slots=True, kw_only=True)
class FiledRow:
    """A measured row, and the file that it is from."""

    row: MeasuredRow
    file: str
    hash: str  # SHA-256 of its content
    date: str = ""  # of the run, where a profile has it


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedRun:
    """A run of a profile, with the task of its row, and its measurements beside predictions without and with all the runs."""

    run: CalibrationRun
    task: Task
    without: tuple[Residual, ...]
    by_runs: tuple[Residual, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOutRow:
    """A row that says nothing, and why."""

    file: str
    row: BadRow


def used_runs(filed: Sequence[FiledRow], name: str, catalog: Catalog) -> tuple[list[UsedRun], list[LeftOutRow]]:
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


def _why(task: Task | Unpredictable, measured: Sequence[Residual], count: int) -> str:
    """Why a row cannot be used; "" where it can."""
    if count > 1:
        return f"id {task.row.id!r} is there {'twice' if count == 2 else f'{count} times'}; wants an id of its own for each run"
    if isinstance(task, Unpredictable):
        return task.why
    if task.row.reliability == UNSCORED:
        return "reliability C is never used"
    if not measured:
        return "states no measurement: wants ttft_ms, tpot_ms, tok_s_per_chip or output_tok_s_total"
    if all(abs(one.predicted / one.measured - 1) < SAME for one in measured):
        return "its measurements are headway's own predictions"
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


def with_predictions(used: Sequence[UsedRun]) -> list[UsedRun]:
    """Runs with predictions of their rows by all of them."""
    observations = tuple(each for one in used for each in one.run.observations)
    predictions: Sequence[Prediction] = predict([one.task for one in used], runs=observations)
    return [replace(one, by_runs=tuple(residuals([one.task], [each]))) for one, each in zip(used, predictions, strict=True)]


def filed_rows(profile: Profile, path: str) -> tuple[list[FiledRow], list[LeftOutRow]]:
    """The rows that a profile keeps, but those of training."""
    runs = [run for run in profile.runs if run.key.mode != TRAINING]
    if not runs:
        return [], []
    rows, bad = rows_of([run.cells for run in runs], path, MeasuredRow, row_format())
    by_id = {run.id: run for run in runs}
    filed = [FiledRow(row=row, file=by_id[row.id].file, hash=by_id[row.id].hash, date=by_id[row.id].date) for row in rows]
    return filed, [LeftOutRow(file=path, row=row) for row in bad]


def remade(profile: Profile, catalog: Catalog) -> tuple[Profile, list[LeftOutRow]]:
    """A profile whose observations are made anew from its runs, and the runs of which none can be made any more."""
    filed, bad = filed_rows(profile, profile.name)
    used, silent = used_runs(filed, profile.name, catalog)
    runs = {one.run.id: one.run for one in used} | {run.id: run for run in profile.runs if run.key.mode == TRAINING}
    return replace(profile, runs=tuple(runs[run.id] for run in profile.runs if run.id in runs)), [*bad, *silent]

"""Rows of every kind as the runs of a profile, and back: measured loads, training runs, logs of an engine's start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from headway.core.catalog import Catalog
from headway.evidence.calibration import engine_logs, training
from headway.evidence.calibration.runs import FiledRow, LeftOutRow, UsedRun, used_loads, with_predicted_loads
from headway.evidence.rows.cells import rows_of
from headway.evidence.rows.row import MeasuredRow, row_format
from headway.evidence.training.row import TrainingRow, training_format
from headway.performance.calibration.key import TRAINING
from headway.performance.calibration.profile import CalibrationRun, Profile

READERS = {MeasuredRow: used_loads, TrainingRow: training.used_trainings, engine_logs.LogRow: engine_logs.used_logs}


def used_runs(filed: Sequence[FiledRow], name: str, catalog: Catalog) -> tuple[list[UsedRun], list[LeftOutRow]]:
    """The runs of rows for a profile of this name, and the rows that are left out."""
    runs, bad = [], []
    for kind, reader in READERS.items():
        runs_of_kind, rest = reader([row for row in filed if isinstance(row.row, kind)], name, catalog)
        runs += runs_of_kind
        bad += rest
    return runs, bad


def with_predictions(runs: Sequence[UsedRun], catalog: Catalog) -> list[UsedRun]:
    """Runs with predictions of their rows by all of them."""
    served = with_predicted_loads([run for run in runs if run.run.key.mode != TRAINING and run.task])
    trained = training.with_predicted_trainings([run for run in runs if run.run.key.mode == TRAINING], catalog)
    return [*served, *trained, *(run for run in runs if run.task is None)]


def filed_rows(profile: Profile, path: str) -> tuple[list[FiledRow], list[LeftOutRow]]:
    """The rows that a profile keeps."""
    logs = [run for run in profile.runs if engine_logs.is_log(run)]
    filed, bad = [FiledRow(row=engine_logs.row_of(run), file=run.file, hash=run.hash, date=run.date) for run in logs], []
    for record, form, is_training in ((MeasuredRow, row_format(), False), (TrainingRow, training_format(), True)):
        runs = {run.id: run for run in profile.runs if run not in logs and (run.key.mode == TRAINING) == is_training}
        rows, faults = rows_of([(*run.cells, ("id", run.id)) for run in runs.values()], path, record, form) if runs else ([], [])
        filed += [FiledRow(row=row, file=runs[row.id].file, hash=runs[row.id].hash, date=runs[row.id].date) for row in rows]
        bad += [LeftOutRow(file=path, row=fault) for fault in faults]
    return filed, bad


def remade(profile: Profile, catalog: Catalog) -> tuple[Profile, list[LeftOutRow]]:
    """A profile whose observations are made anew from its runs, and the runs of which none can be made any more."""
    filed, bad = filed_rows(profile, profile.name)
    runs, silent = used_runs(filed, profile.name, catalog)
    by_id: dict[str, CalibrationRun] = {run.run.id: run.run for run in runs}
    return replace(profile, runs=tuple(by_id[run.id] for run in profile.runs if run.id in by_id)), [*bad, *silent]

"""Measured training runs as runs of a profile: what they say of the time of a step, and of the memory of the fullest chip."""

from __future__ import annotations

import datetime
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from headway.core.catalog import Catalog
from headway.evidence.calibration.runs import OWN_PREDICTIONS, SAME, FiledRow, LeftOutRow, UsedRun, twins_why
from headway.evidence.rows.cells import cells_of
from headway.evidence.rows.row import BadRow
from headway.evidence.serving.score import Residual
from headway.evidence.training.predict import TrainingPrediction, predict, predicted
from headway.evidence.training.row import TrainingRow, training_format
from headway.evidence.training.setup import measured_speed
from headway.models.model_class import model_class
from headway.performance.achieved import family
from headway.performance.calibration.factors import TRAINED
from headway.performance.calibration.key import TRAINING
from headway.performance.calibration.observation import Observation
from headway.performance.calibration.profile import CalibrationRun
from headway.training.own_runs import training_key

GIB = 2.0**30  # in which tables state memory


def observe_training(rows: Sequence[TrainingRow], runs: Sequence[str], catalog: Catalog | None = None) -> tuple[Observation, ...]:
    """Observations of measured training rows, named as runs."""
    predictions = predict(rows, catalog)
    pairs = zip(predictions, runs, strict=True)
    return tuple(observation for prediction, run in pairs for observation in observations_of(prediction, run))


def observations_of(prediction: TrainingPrediction, run: str) -> tuple[Observation, ...]:
    """What a row says beside its prediction; nothing without measurements, or without a prediction."""
    row, setup = prediction.row, prediction.setup
    if setup is None or prediction.speed is None or prediction.memory is None:
        return ()
    speed = measured_speed(setup)
    ratios = {
        "step": float(prediction.speed.expected) / speed if speed else None,
        "memory": row.memory_gb_per_chip * GIB / float(prediction.memory.expected) if row.memory_gb_per_chip else None,
    }  # fmt: skip
    key = training_key(setup.model.name, setup.case)
    return tuple(
        Observation(run=run, key=key, month=row.date, quantity=name, slopes=tuple(float(name == parameter) for parameter in TRAINED),
                    excess=math.log(ratio))
        for name, ratio in ratios.items() if ratio
    )  # fmt: skip


def used_trainings(filed: Sequence[FiledRow], name: str, catalog: Catalog) -> tuple[list[UsedRun], list[LeftOutRow]]:
    """The runs of training rows for a profile of this name, and the rows that are left out."""
    runs, bad, today = [], [], datetime.date.today().isoformat()
    ids = Counter(file.row.id for file in filed)
    for file, prediction in zip(filed, predict([file.row for file in filed], catalog), strict=True):
        observations, row = observations_of(prediction, f"{name}:{file.row.id}"), file.row
        why = prediction.why or _why(observations, row.id, ids[row.id])
        if why:
            bad.append(LeftOutRow(file=file.file, row=BadRow(line=row.line, id=row.id, why=why)))
            continue
        date = file.date or row.date or today
        run = CalibrationRun(
            id=row.id, file=file.file, hash=file.hash, date=date, cells=cells_of(row, training_format()),
            observations=tuple(replace(observation, month=date) for observation in observations),
        )  # fmt: skip
        runs.append(UsedRun(run=run, task=prediction.setup, without=residuals_of(prediction)))
    return runs, bad


def _why(observations: Sequence[Observation], name: str, count: int) -> str:
    """Why a row that is predicted cannot be used; "" where it can."""
    if count > 1:
        return twins_why(name, count)
    if not observations:
        return "states no measurement: wants tokens_per_s_per_chip, step_time_s, tflops_per_chip, mfu_pct or memory_gb_per_chip"
    return OWN_PREDICTIONS if all(abs(observation.excess) < SAME for observation in observations) else ""


def residuals_of(prediction: TrainingPrediction) -> tuple[Residual, ...]:
    """Measured quantities of a training row beside their predictions."""
    setup, row = prediction.setup, prediction.row
    if setup is None or prediction.step is None or prediction.memory is None:
        return ()
    speed, chip = measured_speed(setup), setup.case.system.chip
    step = float(setup.case.batch) / (speed * float(setup.case.system.chips)) if speed else None
    sides = {"step": (step, prediction.step), "memory": (row.memory_gb_per_chip and row.memory_gb_per_chip * GIB, prediction.memory)}
    return tuple(
        Residual(
            id=row.id, source=row.source, chip=chip.name, family=family(chip), engine=setup.case.recipe.kernels, model=setup.model.name,
            model_class=model_class(setup.model), kind=TRAINING, quantity=name, measured=value, predicted=float(estimate.expected),
            floor=float(estimate.floor), lo=estimate.low, hi=estimate.high, line=row.line,
        ) for name, (value, estimate) in sides.items() if value
    )  # fmt: skip


def with_predicted_trainings(runs: Sequence[UsedRun], catalog: Catalog) -> list[UsedRun]:
    """Training runs with predictions of their rows by all of them."""
    observations = tuple(observation for run in runs for observation in run.run.observations)
    again = (predicted(run.task.row, run.task, catalog, observations) for run in runs)
    return [replace(run, by_runs=residuals_of(prediction)) for run, prediction in zip(runs, again, strict=True)]

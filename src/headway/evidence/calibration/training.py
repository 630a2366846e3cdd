"""Measured training runs as observations: of the time of a step, and of the memory of the fullest chip."""

from __future__ import annotations

import math
from collections.abc import Sequence

from headway.core.catalog import Catalog
from headway.evidence.training.predict import TrainingPrediction, predict
from headway.evidence.training.row import TrainingRow
from headway.evidence.training.setup import measured_speed
from headway.performance.calibration.factors import TRAINED
from headway.performance.calibration.observation import Observation
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

"""Score of measured runs: errors of the predictions by group, rows left out with the reason, and the parts of each row's step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headway.evidence.fit.residuals import MEASURES, UNSCORED, ErrorGroup, Residual, grouped, measured, residuals
from headway.evidence.rows.tasks import Task, Unpredictable
from headway.evidence.serving.machines import machines
from headway.evidence.serving.predict import Prediction
from headway.laws.collectives.cost import collectives_s
from headway.laws.serving.request import causal_pairs
from headway.laws.step import step
from headway.laws.step.parts import place
from headway.performance.achieved import Efficiencies
from headway.performance.request import Server

BY = ("all", "source", "chip", "model", "engine", "kind")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreRow:
    """Score of a table of runs: residuals, errors by group, and rows without a residual."""

    residuals: tuple[Residual, ...]
    groups: tuple[ErrorGroup, ...]
    rows: int  # scored rows
    unscored: int  # rows of reliability C
    unmeasured: int  # rows without a measurement of any predicted quantity
    unpredicted: tuple[tuple[str, int], ...]  # rows without a prediction: reason and line


def score(tasks: Sequence[Task | Unpredictable], predictions: Sequence[Prediction]) -> ScoreRow:
    """Errors of predictions, grouped by each field of BY."""
    all_residuals = residuals(tasks, predictions)
    scored = [task for task in tasks if task.row.reliability != UNSCORED]
    known = [task for task in scored if isinstance(task, Task)]
    silent = sum(not any(measured(task.row, name) is not None for names in MEASURES[task.kind] for name in names) for task in known)
    return ScoreRow(
        residuals=tuple(all_residuals),
        groups=tuple(group for by in BY for group in grouped(all_residuals, by)),
        rows=len({(residual.line, residual.id) for residual in all_residuals}),
        unscored=len(tasks) - len(scored),
        unmeasured=silent,
        unpredicted=tuple((task.why, task.row.line) for task in scored if isinstance(task, Unpredictable)),
    )


NOTHING = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StepPart:
    """A part of a step and its time at the expected efficiency."""

    name: str
    seconds: float


def parts(task: Task, prediction: Prediction, table: Efficiencies | None = None) -> tuple[StepPart, ...]:
    """Parts of a row's step, largest first: of the prefill for a prefill row, else of a decode step."""
    m = machines([task.setup], table)
    step_parts = _prefill(task, m) if task.kind == "prefill" else _decode(task, prediction, m)
    return tuple(sorted(step_parts, key=lambda part: -part.seconds))


def _decode(task: Task, prediction: Prediction, m: Server) -> Sequence[StepPart]:
    batch = np.array([_batch(task, prediction)])
    kv_tokens = batch * np.array([float(task.context or 1.0)])
    times = {
        "compute": step.compute_s(m.step, batch, kv_tokens), "weights": step.weights_s(m.step, batch),
        "kv": step.kv_s(m.step, batch, kv_tokens), "network": step.network_s(m.step, batch), "overhead": step.overhead_s(m.step, batch),
    }  # fmt: skip
    return [StepPart(name=name, seconds=float(np.ravel(value)[0])) for name, value in times.items()]


def _batch(task: Task, prediction: Prediction) -> float:
    """Sequences that a replica decodes at once: as stated, else from the predicted rate by Little's law."""
    if task.batch is not None:
        return task.batch
    if prediction.rate is None or prediction.tpot is None:
        return 1.0
    return max(prediction.rate.expected * prediction.tpot.expected / task.setup.replicas, 1.0)


def _prefill(task: Task, m: Server) -> Sequence[StepPart]:
    prompt, batch = float(task.prompt or 1.0), float(task.batch or 1.0)
    load = (NOTHING, NOTHING, np.array([batch * prompt]), np.array([batch * causal_pairs(prompt)]))
    at = place(m.step, *load)
    times = {
        "compute": step.work_s(m.step, *load), "network": collectives_s(m.step.collectives, at.tokens),
        "overhead": step.fixed_s(m.step, at),
    }  # fmt: skip
    return [StepPart(name=name, seconds=float(np.ravel(value)[0])) for name, value in times.items()]

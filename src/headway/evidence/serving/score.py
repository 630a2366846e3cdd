"""A table of measured runs scored: errors of its predictions by group, what was left out and why, and what binds each row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headway.evidence.fit.residuals import MEASURES, UNSCORED, ErrorGroup, Residual, grouped, measured, residuals
from headway.evidence.rows.tasks import Task, Unpredictable
from headway.evidence.serving.machines import Machines, machines
from headway.evidence.serving.predict import Prediction
from headway.laws.collectives.cost import collectives_s
from headway.laws.serving.request import causal_pairs, held_kv_tokens
from headway.laws.step import step
from headway.laws.step.parts import place
from headway.performance.efficiency import Efficiencies

BY = ("all", "source", "chip", "model", "engine", "kind")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreRow:
    """Residuals, their groups, and the rows that have none."""

    residuals: tuple[Residual, ...]
    groups: tuple[ErrorGroup, ...]
    rows: int  # that were scored
    unscored: int  # of reliability C
    unmeasured: int  # that state no measurement of what they are predicted
    unpredicted: tuple[tuple[str, int], ...]  # why and on which line, one for each such row


def score(tasks: Sequence[Task | Unpredictable], predictions: Sequence[Prediction]) -> ScoreRow:
    """The errors of predictions, by each of BY."""
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
    """One part of a step and its time at the expected efficiency."""

    name: str
    seconds: float


def parts(task: Task, prediction: Prediction, table: Efficiencies | None = None) -> tuple[StepPart, ...]:
    """The parts of a row's step, the largest first: of a prefill its own, of anything else those of a decode step."""
    m = machines([task.setup], table)
    step_parts = _prefill(task, m) if task.kind == "prefill" else _decode(task, prediction, m)
    return tuple(sorted(step_parts, key=lambda part: -part.seconds))


def _decode(task: Task, prediction: Prediction, m: Machines) -> Sequence[StepPart]:
    batch = np.array([_batch(task, prediction)])
    kv_tokens = held_kv_tokens(batch, np.array([float(task.context or 1.0)]))
    times = {
        "compute": step.compute_s(m.step, batch, kv_tokens), "weights": step.weights_s(m.step, batch),
        "kv": step.kv_s(m.step, batch, kv_tokens), "network": step.network_s(m.step, batch), "overhead": step.overhead_s(m.step, batch),
    }  # fmt: skip
    return [StepPart(name=name, seconds=float(np.ravel(value)[0])) for name, value in times.items()]


def _batch(task: Task, prediction: Prediction) -> float:
    """Sequences that one replica decodes: those given, or by Little's law those that the predicted rate keeps in decode."""
    if task.batch is not None:
        return task.batch
    if prediction.rate is None or prediction.tpot is None:
        return 1.0
    return max(prediction.rate.expected * prediction.tpot.expected / task.setup.replicas, 1.0)


def _prefill(task: Task, m: Machines) -> Sequence[StepPart]:
    prompt, batch = float(task.prompt or 1.0), float(task.batch or 1.0)
    load = (NOTHING, NOTHING, np.array([batch * prompt]), np.array([batch * causal_pairs(prompt)]))
    at = place(m.step, *load)
    times = {
        "compute": step.work_s(m.step, *load), "network": collectives_s(m.step.collectives, at.tokens, 0 * m.step.dense_weights),
        "overhead": step.fixed_s(m.step, at),
    }  # fmt: skip
    return [StepPart(name=name, seconds=float(np.ravel(value)[0])) for name, value in times.items()]

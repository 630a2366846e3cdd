"""What binds a row: the parts of its step at the batch that is predicted to run, largest first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headway.efficiency import Efficiencies
from headway.evidence.machines import Machines, machines
from headway.evidence.predict import Prediction
from headway.evidence.tasks import Task
from headway.laws import step
from headway.laws.collective_lines import collectives_s
from headway.laws.serving import causal_pairs, held_kv_tokens
from headway.laws.step_parts import place

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

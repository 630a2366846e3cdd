"""Predictions of rows: every quantity that a row's mode defines, with its floor and its 90 % interval, or why there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headway.efficiency import Efficiencies, efficiencies
from headway.evidence.beyond import beyond
from headway.evidence.intervals import spreads
from headway.evidence.machines import Machines, machines
from headway.evidence.quantities import MeasuredLoad, Quantities, quantities
from headway.evidence.row import MeasuredRow
from headway.evidence.setup import Setup
from headway.evidence.tasks import Task, Unpredictable
from headway.laws.serving import interval_high, interval_low

TIMES, RATES = ("ttft", "tpot"), ("rate", "per_chip")
# Of Load: of a Task.
LOAD_FIELDS = {"prompt": "prompt", "output": "output", "context": "context", "batch": "batch", "users": "concurrency", "spread": "spread"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedQuantity:
    """One number with its floor (of a rate: the highest there can be) and its 90 % interval."""

    expected: float
    floor: float
    lo: float
    hi: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What is predicted about a row; times in seconds, rates in tokens per second."""

    row: MeasuredRow
    kind: str = ""
    setup: Setup | None = None
    ttft: PredictedQuantity | None = None
    tpot: PredictedQuantity | None = None
    rate: PredictedQuantity | None = None
    per_chip: PredictedQuantity | None = None
    flags: tuple[str, ...] = ()
    why: str = ""


def predict(tasks: Sequence[Task | Unpredictable], table: Efficiencies | None = None) -> list[Prediction]:
    """A prediction for each task, in their order."""
    efficiency_table = table or efficiencies()
    known = [task for task in tasks if isinstance(task, Task)]
    predictions = dict(zip(map(id, known), _predicted(known, efficiency_table), strict=True))
    return [predictions[id(task)] if isinstance(task, Task) else Prediction(row=task.row, why=task.why) for task in tasks]


def _predicted(tasks: Sequence[Task], table: Efficiencies) -> list[Prediction]:
    if not tasks:
        return []
    place, setups = placed(tasks)
    all_machines, predictions = machines(setups, table), {}
    for kind in dict.fromkeys(task.kind for task in tasks):
        at = [index for index, task in enumerate(tasks) if task.kind == kind]
        kind_tasks = [tasks[index] for index in at]
        predictions |= dict(zip(at, _of_kind(kind, kind_tasks, all_machines.rows(place[at]), table), strict=True))
    return [predictions[index] for index in range(len(tasks))]


def placed(tasks: Sequence[Task]) -> tuple[Any, list[Setup]]:
    """Where each task's setup stands among the distinct ones."""
    setups = {id(task.setup): task.setup for task in tasks}
    order = {key: index for index, key in enumerate(setups)}
    return np.array([order[id(task.setup)] for task in tasks]), list(setups.values())


def load_of(tasks: Sequence[Task]) -> MeasuredLoad:
    """What tasks ask, as arrays; NaN where they say nothing."""
    return MeasuredLoad(**{name: np.array([_number(getattr(task, key)) for task in tasks]) for name, key in LOAD_FIELDS.items()})


def _number(value: float | None) -> float:
    return np.nan if value is None else float(value)


def _of_kind(kind: str, tasks: Sequence[Task], m: Machines, table: Efficiencies) -> list[Prediction]:
    load = load_of(tasks)
    expected, floor = (quantities(kind, m, load, at_floor) for at_floor in (False, True))
    if kind == "disagg":  # at the floor the chips are shared out anew, for the most requests: one of the times may then be longer
        floor = replace(floor, ttft=np.fmin(floor.ttft, expected.ttft), tpot=np.fmin(floor.tpot, expected.tpot))
    widths = spreads(kind, tasks, m, load, table)
    limits = beyond(tasks, m)
    return [_prediction(task, _estimates(expected, floor, widths, index), limits[index]) for index, task in enumerate(tasks)]


def _prediction(task: Task, estimates: dict[str, PredictedQuantity | None], limits: tuple[str, ...]) -> Prediction:
    ttft, tpot, rate, chip_rate = (estimates[name] for name in (*TIMES, *RATES))
    flags = (*limits, *task.flags)
    return Prediction(row=task.row, kind=task.kind, setup=task.setup, flags=flags, ttft=ttft, tpot=tpot, rate=rate, per_chip=chip_rate)


def _estimates(expected: Quantities, floor: Quantities, widths: Quantities, index: int) -> dict[str, PredictedQuantity | None]:
    estimates: dict[str, PredictedQuantity | None] = {}
    for name in TIMES + RATES:
        value, least, width = (getattr(columns, name)[index] for columns in (expected, floor, widths))
        estimates[name] = _estimate(value, least, width, name in TIMES)
    return estimates


def _estimate(expected: float, floor: float, width: float, time: bool) -> PredictedQuantity | None:
    """A time is no shorter than its floor, a rate no higher."""
    if not np.isfinite(expected):
        return None
    if time:
        low, high = float(interval_low(expected, floor, width)), float(interval_high(expected, width))
    else:
        low, high = expected / width, min(expected * width, max(floor, expected))
    return PredictedQuantity(expected=float(expected), floor=float(floor), lo=low, hi=high)

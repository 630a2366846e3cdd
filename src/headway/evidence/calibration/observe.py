"""Measured rows as observations of the factors that runs put on a server: how far off each quantity is, and how it follows from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from headway.evidence.calibration.linear import linear
from headway.evidence.rows.run_keys import task_key, task_month
from headway.evidence.rows.tasks import Setup, Task
from headway.evidence.serving.machines import machines, quantities, rows
from headway.evidence.serving.predict import load_of, placed, prefill_places
from headway.evidence.serving.score import MEASURES, measured
from headway.performance.achieved import EAGER, Efficiencies, efficiencies
from headway.performance.calibration.factors import PARAMETERS, RunFactors, calibrated, factors_of
from headway.performance.calibration.observation import Observation
from headway.performance.calibration.posterior import posterior

LINEARISED_AGAIN = 1  # about what the runs say at first
QUANTITY = {"per_chip": "rate"}  # as observations name it, where a row's name differs
FROM_TIME = ("prefill", "ttft")  # of a batch of prompts: its rate, which is as exact


def observe(tasks: Sequence[Task], runs: Sequence[str], table: Efficiencies | None = None) -> tuple[Observation, ...]:
    """Observations of measured rows, named as runs; made linear about what the runs together say at first."""
    if not tasks:
        return ()
    places = [(task_key(task), task_month(task)) for task in tasks]
    observations = _observed(tasks, runs, table or efficiencies(), np.zeros((len(tasks), len(PARAMETERS))))
    for _ in range(LINEARISED_AGAIN):
        logs = {place: posterior(observations, *place).mean for place in dict.fromkeys(places)}
        observations = _observed(tasks, runs, table or efficiencies(), np.array([logs[place] for place in places]))
    return observations


def _observed(tasks: Sequence[Task], runs: Sequence[str], table: Efficiencies, logs: Any) -> tuple[Observation, ...]:
    """Observations, linear about these logarithms of the factors of each row."""
    place, setups = placed(tasks)
    servers, pools = machines(setups, table), prefill_places(tasks)
    is_aged = any(setup.years or set(setup.older) - {EAGER} for setup in setups)
    fresh = machines([_newest(setup) for setup in setups], table) if is_aged else None
    results: list[tuple[int, Observation]] = []
    for kind in dict.fromkeys(task.kind for task in tasks):
        at = np.array([index for index, task in enumerate(tasks) if task.kind == kind])
        kind_tasks = [tasks[index] for index in at]
        pool = rows(servers, pools[at]) if kind == "disagg" else None
        load = load_of(kind_tasks)
        expected, slopes = linear(kind, rows(servers, place[at]), load, pool, logs[at])
        newest = expected
        if fresh is not None:
            server = calibrated(rows(fresh, place[at]), RunFactors(**factors_of(logs[at])))
            newest = quantities(kind, server, load, False, pool and rows(fresh, pools[at]))
        for order, (index, task) in enumerate(zip(at.tolist(), kind_tasks, strict=True)):
            for name in _measured_quantities(task):
                value = measured(task.row, name)
                slope, sign = slopes[name][order], -1.0 if (kind, name) == FROM_TIME else 1.0
                excess = np.log(value / getattr(expected, name)[order]) + slope @ logs[index]
                if not np.isfinite(excess):
                    continue
                quantity = "rate" if (kind, name) == FROM_TIME else QUANTITY.get(name, name)
                results.append((index, Observation(
                    run=str(runs[index]), key=task_key(task), month=task_month(task), quantity=quantity,
                    slopes=tuple((sign * slope).tolist()), excess=float(sign * excess),
                    aged=float(sign * np.log(getattr(expected, name)[order] / getattr(newest, name)[order])),
                )))  # fmt: skip
    return tuple(observation for _, observation in sorted(results, key=lambda pair: pair[0]))


def _newest(setup: Setup) -> Setup:
    """A setup under the newest version of its engine."""
    return replace(setup, years=0.0, older=tuple(what for what in setup.older if what == EAGER))


def _measured_quantities(task: Task) -> list[str]:
    """Quantities of a row that say something of its server: in each bracket of MEASURES the first measured."""
    names = []
    for bracket in MEASURES[task.kind]:
        name = next((name for name in bracket if measured(task.row, name)), None)
        if name and not (name in ("rate", "per_chip") and ("tpot" in names or task.rate is not None)):
            names.append(name)
    return names

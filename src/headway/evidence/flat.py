"""The same rows under one flat pair of efficiencies and one cost per kernel, engines and kernels unfitted: what a fit is measured against.

Only the step differs: lengths, layouts, formats, seats and the closed loop are those of the fitted prediction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from headway.assumptions import Assumptions
from headway.compile import compile_layout
from headway.efficiency import efficiencies
from headway.evidence.machines import machines
from headway.evidence.predict import load_of, placed
from headway.evidence.quantities import quantities
from headway.evidence.residuals import Residual
from headway.evidence.stacked import stack
from headway.evidence.tasks import Task, Unpredictable
from headway.schema import defaults

OVERLAP = "operators"  # arithmetic and traffic of one operator overlap, operators follow one another


def flat_residuals(tasks: Sequence[Task | Unpredictable], residuals: Sequence[Residual]) -> list[Residual]:
    """The residuals with the prediction of the flat model in place of the fitted one; intervals stay and mean nothing there."""
    known = [task for task in tasks if isinstance(task, Task)]
    predictions = _predicted(known)
    return [replace(residual, predicted=predictions[(residual.line, residual.id, residual.quantity)]) for residual in residuals]


def floor_residuals(residuals: Sequence[Residual]) -> list[Residual]:
    """The residuals with the floor in place of the prediction."""
    return [replace(residual, predicted=residual.floor) for residual in residuals]


def _predicted(tasks: Sequence[Task]) -> dict[tuple[int, str, str], float]:
    """Every quantity of every row, by line, id and quantity."""
    if not tasks:
        return {}
    place, setups = placed(tasks)
    assumptions = defaults(Assumptions, {"engine": "none", "overlap": OVERLAP})
    steps = [compile_layout(setup.work, setup.system, setup.layout, assumptions, setup.formats, efficiencies()).step for setup in setups]
    all_machines = replace(machines(setups), step=stack(steps))
    predictions: dict[tuple[int, str, str], float] = {}
    for kind in dict.fromkeys(task.kind for task in tasks):
        at = [index for index, task in enumerate(tasks) if task.kind == kind]
        kind_tasks = [tasks[index] for index in at]
        estimates = quantities(kind, all_machines.rows(place[np.array(at)]), load_of(kind_tasks), False)
        for name in ("ttft", "tpot", "rate", "per_chip"):
            predictions |= {
                (task.row.line, task.row.id, name): float(value) for task, value in zip(kind_tasks, getattr(estimates, name), strict=True)
            }
    return predictions

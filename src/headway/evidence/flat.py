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
    found = _predicted(known)
    return [replace(one, predicted=found[(one.line, one.id, one.quantity)]) for one in residuals]


def floor_residuals(residuals: Sequence[Residual]) -> list[Residual]:
    """The residuals with the floor in place of the prediction."""
    return [replace(one, predicted=one.floor) for one in residuals]


def _predicted(tasks: Sequence[Task]) -> dict[tuple[int, str, str], float]:
    """Every quantity of every row, by line, id and quantity."""
    if not tasks:
        return {}
    place, setups = placed(tasks)
    taken = defaults(Assumptions, {"engine": "none", "overlap": OVERLAP})
    steps = [compile_layout(one.work, one.system, one.layout, taken, one.formats, efficiencies()).step for one in setups]
    every = replace(machines(setups), step=stack(steps))
    found: dict[tuple[int, str, str], float] = {}
    for kind in dict.fromkeys(task.kind for task in tasks):
        at = [index for index, task in enumerate(tasks) if task.kind == kind]
        some = [tasks[index] for index in at]
        made = quantities(kind, every.rows(place[np.array(at)]), load_of(some), False)
        for name in ("ttft", "tpot", "rate", "per_chip"):
            found |= {(task.row.line, task.row.id, name): float(value) for task, value in zip(some, getattr(made, name), strict=True)}
    return found

"""How wide the 90 % interval of each quantity is: from cross-validated residuals, wider where less was measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headway.efficiency import OTHER_FAMILY, Efficiencies, family, foreign
from headway.evidence.machines import Machines
from headway.evidence.quantities import MeasuredLoad, Quantities
from headway.evidence.tasks import Task
from headway.laws.serving import interval_factor

QUANTITY = {  # (kind, quantity) -> the key of its width; the others have the first of their kind
    "decode": {"": "decode"}, "decode_e2e": {"": "decode"}, "prefill": {"": "prefill"},
    "static": {"": "offline"}, "offline": {"": "offline"},
    "serving": {"": "tpot", "ttft": "ttft"}, "serving_unloaded": {"": "tpot", "ttft": "ttft"}, "disagg": {"": "tpot", "ttft": "ttft"},
}  # fmt: skip


def width_key(kind: str, quantity: str) -> str:
    """Which width a quantity of a kind of task has.

    >>> width_key("serving", "ttft"), width_key("serving", "per_chip")
    ('ttft', 'tpot')
    """
    return QUANTITY[kind].get(quantity, QUANTITY[kind][""])


def circumstances(tasks: Sequence[Task], m: Machines, load: MeasuredLoad) -> dict[str, Any]:
    """What widens an interval, of each task whether it is so: the names of evidence/widths.py."""
    seats = m.seats(np.nan_to_num(load.prompt, nan=1.0), np.nan_to_num(load.output, nan=1.0))
    return {
        "unmeasured": np.array([family(task.setup.system.chip) == OTHER_FAMILY for task in tasks]),
        "foreign": np.array([foreign(task.setup.system.chip) for task in tasks]),
        "experts": np.array([any(block.experts for block in task.setup.work.blocks) for task in tasks]),
        "limited": np.nan_to_num(load.users, nan=0.0) / m.replicas > seats,
    }


def spreads(kind: str, tasks: Sequence[Task], m: Machines, load: MeasuredLoad, table: Efficiencies) -> Quantities:
    """Half the interval as a factor, for each task and quantity."""
    wider = np.ones(len(tasks))
    for name, holds in circumstances(tasks, m, load).items():
        wider = np.where(holds, wider * float(table.interval(name)), wider)
    names = ("ttft", "tpot", "rate", "per_chip")
    return Quantities(**{name: interval_factor(float(table.interval(width_key(kind, name))), wider) for name in names})

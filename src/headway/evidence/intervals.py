"""How wide the 90 % interval of each quantity is: from cross-validated residuals, wider where less was measured."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headway.efficiency import Efficiencies, family
from headway.evidence.quantities import Quantities
from headway.evidence.tasks import Task

QUANTITY = {  # (kind, quantity) -> the key of its width; the others have the first of their kind
    "decode": {"": "decode"}, "decode_e2e": {"": "decode"}, "prefill": {"": "prefill"}, "static": {"": "offline"}, "offline": {"": "offline"},
    "serving": {"": "tpot", "ttft": "ttft"}, "serving_unloaded": {"": "tpot", "ttft": "ttft"}, "disagg": {"": "tpot", "ttft": "ttft"},
}  # fmt: skip


def width_key(kind: str, quantity: str) -> str:
    """Which width a quantity of a kind of task has.

    >>> width_key("serving", "ttft"), width_key("serving", "per_chip")
    ('ttft', 'tpot')
    """
    return QUANTITY[kind].get(quantity, QUANTITY[kind][""])


def spreads(kind: str, tasks: Sequence[Task], table: Efficiencies) -> Quantities:
    """Half the interval as a factor, for each task and quantity."""
    sections = [f"interval.{family(task.setup.system.chip)}" for task in tasks]
    return Quantities(
        **{
            name: np.array([float(table.find(width_key(kind, name), section, "interval.other")) for section in sections])
            for name in ("ttft", "tpot", "rate", "per_chip")
        }
    )

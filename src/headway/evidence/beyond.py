"""Rows that ask for more than there is: of memory, or of the model's context. Each is predicted as asked, and flagged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headway.evidence.machines import Machines
from headway.evidence.tasks import Task
from headway.laws.memory import fits_hbm

MEMORY = "taken as if it fitted in memory"  # how such a flag begins
TOGETHER = ("decode", "decode_e2e", "static")  # kinds whose whole batch is in the cache; a scheduler seats what fits, one sequence at least


def beyond(tasks: Sequence[Task], m: Machines) -> list[tuple[str, ...]]:
    """What each task, on the machine in the same place, asks beyond memory and context."""
    sequences = [task.batch if task.kind in TOGETHER and task.batch else 1.0 for task in tasks]
    longest = [_longest(task) for task in tasks]
    cache = np.ceil(np.array(sequences) / m.step.dp) * m.cache_bytes(np.array(longest))
    fits = np.broadcast_to(fits_hbm(m.room.weights, cache, m.room.hbm), len(tasks))
    return [
        (*_memory(bool(fits[index]), m.room.weights[index], cache[index], m.room.hbm[index]), *_context(task, longest[index]))
        for index, task in enumerate(tasks)
    ]


def _longest(task: Task) -> float:
    """Tokens of a sequence at its end; of a decode step at a stated context, that."""
    if task.kind == "decode":
        return task.context or 1.0
    return (task.prompt or 0.0) + (0.0 if task.kind == "prefill" else task.output or 0.0)


def _memory(fits: bool, weights: float, cache: float, hbm: float) -> tuple[str, ...]:
    """The datasheet's capacity is the limit, so that no engine's own reserve makes a flag."""
    if fits:
        return ()
    needs = f"weights need {_gb(weights)}" if weights > hbm else f"weights and KV cache need {_gb(weights + cache)}"
    return (f"{MEMORY}: {needs} on the fullest chip, which has {_gb(hbm)}",)


def _gb(amount: float) -> str:
    return f"{amount / 1e9:.4g} GB"


def _context(task: Task, tokens: float) -> tuple[str, ...]:
    most: Any = task.setup.model.max_context
    if most is None or tokens <= most:
        return ()
    return (f"{tokens:.0f} tokens exceed the longest context of {task.setup.model.name}, {int(most)}: computed as if it took them",)

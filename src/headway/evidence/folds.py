"""What is left out together: whole sources; where one source alone has a mode of row, whole chips and whole models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headway.evidence.tasks import Task

CHIP_FOLDS = 4  # chips are left out a quarter at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """Rows that a fit does not see, and which of them it is then scored on."""

    name: str
    out: frozenset[int]
    scored: frozenset[int]


def folds(tasks: Sequence[Task]) -> list[Fold]:
    """Every fold; each scored row is in one by source, or in one by chip."""
    alone = single_source(tasks)
    all_folds = [_by_source(source, tasks, alone) for source in sorted({task.row.source for task in tasks})]
    for mode in sorted(alone):
        chips = sorted({task.setup.system.chip.name for task in tasks if task.row.mode == mode})
        parts = [chips[start::CHIP_FOLDS] for start in range(min(CHIP_FOLDS, len(chips)))]
        all_folds += [_by_chips(mode, part, tasks) for part in parts]
    return [fold for fold in all_folds if fold.scored]


def model_folds(tasks: Sequence[Task]) -> list[Fold]:
    """For kinds that one source alone has, whole models left out: a second look, not the scored one."""
    all_folds = []
    for mode in sorted(single_source(tasks)):
        for model in sorted({task.setup.model.name for task in tasks if task.row.mode == mode}):
            out = frozenset(index for index, task in enumerate(tasks) if task.setup.model.name == model)
            all_folds.append(Fold(name=f"model {model}", out=out, scored=frozenset(i for i in out if tasks[i].row.mode == mode)))
    return all_folds


def single_source(tasks: Sequence[Task]) -> frozenset[str]:
    """Modes that one source alone has rows of."""
    sources: dict[str, set[str]] = {}
    for task in tasks:
        sources.setdefault(task.row.mode, set()).add(task.row.source)
    return frozenset(mode for mode, names in sources.items() if len(names) == 1)


def _by_source(source: str, tasks: Sequence[Task], alone: frozenset[str]) -> Fold:
    out = frozenset(index for index, task in enumerate(tasks) if task.row.source == source)
    return Fold(name=f"source {source}", out=out, scored=frozenset(index for index in out if tasks[index].row.mode not in alone))


def _by_chips(mode: str, chips: Sequence[str], tasks: Sequence[Task]) -> Fold:
    out = frozenset(index for index, task in enumerate(tasks) if task.setup.system.chip.name in chips)
    return Fold(name=f"chips {', '.join(chips)}", out=out, scored=frozenset(index for index in out if tasks[index].row.mode == mode))

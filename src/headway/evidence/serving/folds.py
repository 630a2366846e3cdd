"""Classes of measured rows that a fit may not have seen: by source, quarter of the year, model family, kind of chip, engine."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.evidence.fit.folds import ClassFold
from headway.evidence.fit.priors import PriorNumber
from headway.evidence.rows.tasks import Task
from headway.evidence.serving.engine_fit import EngineFit, EngineProblem, fit_without, measured_tasks
from headway.performance.achieved import OTHER_FAMILY, family, platform

FEWEST = 20  # rows of a measure that a fit must have seen for its prediction of the measure to count
CARD_GENERATIONS = ((2022, "before 2022"), (2025, "2022 to 2024"))  # first year after each generation of cards
NEWER_CARDS = "from 2025"


def model_family(name: str) -> str:
    """Family of a model: the letters with which its name begins.

    >>> model_family("llama-3.1-70b"), model_family("gpt-oss-120b"), model_family("qwen2.5-7b")
    ('llama', 'gpt-oss', 'qwen')
    """
    match = re.match(r"[a-z]+(?:-oss)?", name.lower())
    return match[0] if match else name


def chip_kind(task: Task) -> str:
    """Kind of a row's chip: the family of its kernels, else its platform, cards by their generation."""
    chip = task.setup.system.chip
    kernels, kind = family(chip), platform(chip)
    if kernels != OTHER_FAMILY or kind != "card":
        return kernels if kernels != OTHER_FAMILY else kind
    year = float(chip.year or 0)
    return f"card, {next((name for first, name in CARD_GENERATIONS if year < first), NEWER_CARDS)}"


def quarter(task: Task) -> str:
    """Quarter of a year in which a row was measured; "" without a date.

    >>> from types import SimpleNamespace as Name
    >>> quarter(Name(row=Name(month="2026-02", date=""))), quarter(Name(row=Name(month="", date="")))
    ('2026-Q1', '')
    """
    match = re.match(r"(20\d\d)-(\d\d)", task.row.month or task.row.date)
    return f"{match[1]}-Q{(int(match[2]) + 2) // 3}" if match else ""


KINDS: dict[str, Callable[[Task], str]] = {
    "source": lambda task: task.row.source,
    "date": quarter,
    "family": lambda task: model_family(task.setup.model.name),
    "chip": chip_kind,
    "engine": lambda task: task.setup.engine,
}
IN_ORDER = "date"  # kind whose classes are predicted from the earlier ones alone


def cluster(task: Task) -> str:
    """Rows of a model, a chip and an engine, which count once together."""
    return f"{task.setup.model.name}|{task.setup.system.chip.name}|{task.setup.engine}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredClasses:
    """Each measurement of a problem: its task, quantity and key of its interval, and its error in every kind of fold."""

    tasks: tuple[Task, ...]
    quantities: Any
    keys: Any
    folds: tuple[ClassFold, ...]


def class_fold(
    fit_problem: EngineProblem, numbers: Sequence[PriorNumber], full: EngineFit, tasks: Sequence[Task], keys: Any, kind: str
) -> ClassFold:
    """Errors of every class of one kind, each predicted by a fit to the others (by date: to the earlier ones)."""
    labels = np.array([KINDS[kind](task) for task in tasks])
    weight = np.concatenate([group.weight for rows in fit_problem.kinds for group in rows.groups])
    error = np.full(len(labels), np.nan)
    for name in np.unique(labels):
        out = labels == name
        if kind == IN_ORDER and not name:
            continue
        keep = (labels < name) if kind == IN_ORDER else ~out
        scored = out & np.isin(keys, [key for key in np.unique(keys[keep]) if (keep & (keys == key)).sum() >= FEWEST])
        if scored.any():
            error[scored] = (fit_without(fit_problem, numbers, full, keep, fresh=False).raw / weight)[scored]
    return ClassFold(kind=kind, labels=labels, error=error)


def classes(
    fit_problem: EngineProblem,
    numbers: Sequence[PriorNumber],
    full: EngineFit,
    tasks: Sequence[Task],
    width_key: Callable[[str, str], str],
) -> MeasuredClasses:
    """All folds by class of a problem; `tasks` are those that it was made of."""
    measured = tuple(tasks[int(index)] for index in measured_tasks(fit_problem))
    quantities = np.array([group.quantity for rows in fit_problem.kinds for group in rows.groups for _ in group.rows])
    keys = np.array([width_key(task.kind, quantity) for task, quantity in zip(measured, quantities, strict=True)])
    folds = tuple(class_fold(fit_problem, numbers, full, measured, keys, kind) for kind in KINDS)
    return MeasuredClasses(tasks=measured, quantities=quantities, keys=keys, folds=folds)

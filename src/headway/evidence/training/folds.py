"""Folds of the training fit: whole classes of rows predicted by fits that have not seen them, by source, model, chip, year and more."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headway.evidence.fit.folds import ClassFold
from headway.evidence.fit.priors import PriorNumber
from headway.evidence.training.fit import TrainingProblem, errors, fit, table
from headway.evidence.training.setup import TrainingSetup
from headway.training.achieved import NARROW, family_of
from headway.training.work import is_recurrent, is_routed


def generation(setup: TrainingSetup) -> str:
    """Generation of a row's model: the letters that its name begins with, and a version.

    >>> from types import SimpleNamespace
    >>> [generation(SimpleNamespace(row=SimpleNamespace(model=name))) for name in ("LLAMA3_70B", "Llama3.1-8B", "GPT OSS 120B", "MPT-7b")]
    ['llama3', 'llama3', 'gptoss', 'mpt']
    """
    match = re.match(r"([a-z]+(?: oss)?)[\s_-]*(\d(?:\.\d)?(?=[\s_-]))?", setup.row.model.lower())
    return (match[1] + (match[2] or "").split(".")[0]).replace(" ", "") if match else setup.row.model


def structure(setup: TrainingSetup) -> str:
    """Structure of a row's model: recurrent, routed or dense."""
    work = setup.case.work
    return "recurrent" if is_recurrent(work) else "routed" if is_routed(work) else "dense"


def _format(setup: TrainingSetup) -> str:
    dtype = setup.case.recipe.dtype
    return dtype if dtype in NARROW else "16 bits"


KINDS: dict[str, Callable[[TrainingSetup], str]] = {
    "source": lambda setup: setup.row.source,
    "model": generation,
    "chip": lambda setup: family_of(setup.case.system.chip),
    "year": lambda setup: setup.row.date[:4],
    "software": lambda setup: setup.row.kernels,
    "format": _format,
    "structure": structure,
}
NEW_BY_KIND = {"chip": "new_chip", "format": "new_format", "structure": "new_structure", "year": "new_year"}  # widths by kind of fold


def labels(setups: Sequence[TrainingSetup], kind: str) -> Any:
    """Class of each row in one kind of fold."""
    return np.array([KINDS[kind](setup) for setup in setups])


def clusters(setups: Sequence[TrainingSetup]) -> Any:
    """Cluster of each row, whose rows count once together: model, chip and software."""
    return np.array([f"{setup.row.model}|{setup.case.system.chip.name}|{setup.row.kernels}" for setup in setups])


def fold(problem: TrainingProblem, hidden: TrainingProblem, all_numbers: Sequence[PriorNumber], kind: str) -> ClassFold:
    """Errors of every class of one kind, each predicted by a fit to the other classes."""
    names = labels(problem.setups, kind)
    error, blind = np.full(len(names), np.nan), np.full(len(names), np.nan)
    for name in np.unique(names):
        out = names == name
        if (problem.fitted & ~out).sum() < len(names) / 4:  # too few rows are left to fit to
            continue
        efficiencies = table(fit(problem, all_numbers, ~out).values, problem.base)
        error[out], blind[out] = errors(problem, efficiencies)[out], errors(hidden, efficiencies)[out]
    return ClassFold(kind=kind, labels=names, error=error, hidden=blind)

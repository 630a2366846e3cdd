"""Training rows predicted by fits that have not seen their source, and simpler models beside them, as residuals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.evidence.training.fit import TrainingFit, TrainingProblem, errors, fit
from headway.evidence.training.numbers import TrainingNumber, table
from headway.evidence.training.predict import allocator_bytes
from headway.evidence.training.setup import TrainingSetup
from headway.evidence.widths import quantile
from headway.training.conventions import model_flop
from headway.training.estimate import estimate
from headway.training.reach import family_of

FLAT = 0.4  # the MFU that planners assume everywhere
GIB = 2.0**30


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOutErrors:
    """ln(predicted / measured) of rows, with what they have in common."""

    error: Any
    sources: Any
    open: Any  # whether a row leaves its layout open
    setups: tuple[TrainingSetup, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingCrossValidation:
    """The fit to all rows, and what fits without a source predict of it."""

    fit: TrainingFit
    speed: HeldOutErrors
    hidden: HeldOutErrors  # the same rows without their notes
    in_sample: HeldOutErrors  # the same rows by the fit to all of them
    flat: HeldOutErrors  # by one MFU
    constant: HeldOutErrors  # by the MFU of a chip's family in the other sources
    memory: HeldOutErrors  # which nothing is fitted to


def cross_validate(
    problem: TrainingProblem, hidden: TrainingProblem, all_numbers: Sequence[TrainingNumber], all_setups: Sequence[TrainingSetup]
) -> TrainingCrossValidation:
    """Every source left out in turn; `hidden` are the rows of `problem` without notes."""
    full_fit = fit(problem, all_numbers)
    speed, blind = np.empty(len(problem.setups)), np.empty(len(hidden.setups))
    for source in sources(problem):
        out = problem.sources == source
        efficiencies = table(fit(problem, all_numbers, ~out).values, problem.base)
        speed[out] = errors(problem, efficiencies)[out]
        blind[hidden.sources == source] = errors(hidden, efficiencies)[hidden.sources == source]
    return TrainingCrossValidation(
        fit=full_fit,
        speed=residuals_of(problem, speed),
        hidden=residuals_of(hidden, blind),
        in_sample=residuals_of(problem, errors(problem, table(full_fit.values, problem.base))),
        flat=residuals_of(problem, np.log(FLAT / measured_mfu(problem))),
        constant=residuals_of(problem, np.log(constant_mfu(problem) / measured_mfu(problem))),
        memory=memory_residuals(all_setups),
    )


def sources(problem: TrainingProblem) -> list[str]:
    """Every source of rows, by name."""
    return sorted(set(problem.sources.tolist()))


def residuals_of(problem: TrainingProblem, error: Any) -> HeldOutErrors:
    """Errors of a problem's rows."""
    return HeldOutErrors(
        error=error, sources=problem.sources, open=np.array([setup.open for setup in problem.setups]), setups=problem.setups
    )


def weights(names: Any) -> Any:
    """The weight of each row where every source counts equally."""
    _, place, count = np.unique(names, return_inverse=True, return_counts=True)
    return 1 / count[place]


def measured_mfu(problem: TrainingProblem) -> Any:
    """Model FLOPs that rows reach, attention in full, over the peak of their format."""
    flop = [
        float(model_flop(setup.case.work, setup.case.recipe, causal=False)) / float(setup.case.machine.peak) for setup in problem.setups
    ]
    return problem.measured * np.array(flop)


def constant_mfu(problem: TrainingProblem) -> Any:
    """For each row the median MFU of its chips' family in the sources that are not its own; of all chips where there is none."""
    families = np.array([family_of(setup.case.system.chip) for setup in problem.setups])
    mfu, weight, family_mfu = measured_mfu(problem), weights(problem.sources), np.empty(len(problem.setups))
    for index, (family, source) in enumerate(zip(families, problem.sources, strict=True)):
        other_sources = problem.sources != source
        like = other_sources & (families == family)
        rows = like if like.any() else other_sources
        family_mfu[index] = quantile(mfu[rows], weight[rows], 0.5)
    return family_mfu


def memory_residuals(setups: Sequence[TrainingSetup]) -> HeldOutErrors:
    """Rows that measured memory: frameworks print GiB and mostly call them GB."""
    measured_setups = tuple(setup for setup in setups if setup.row.memory_gb_per_chip)
    predicted_bytes = [
        float(allocator_bytes(estimate(setup.case, setup.layout).memory, setup.case.efficiency)) for setup in measured_setups
    ]
    measured = [setup.row.memory_gb_per_chip * GIB for setup in measured_setups if setup.row.memory_gb_per_chip]
    return HeldOutErrors(
        error=np.log(np.array(predicted_bytes) / np.array(measured)), sources=np.array([setup.row.source for setup in measured_setups]),
        open=np.array([setup.open for setup in measured_setups]), setups=measured_setups,
    )  # fmt: skip

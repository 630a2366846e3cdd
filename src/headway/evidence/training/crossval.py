"""Cross-validation of the training fit: whole classes predicted unseen, simpler models for comparison, and interval widths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.evidence.fit.folds import ClassFold
from headway.evidence.fit.priors import DATE, PriorNumber
from headway.evidence.fit.result import FittedNumbers
from headway.evidence.fit.weighted import cluster_weights, quantile
from headway.evidence.training.fit import TrainingFit, TrainingProblem, errors, fit, table
from headway.evidence.training.folds import KINDS, clusters, fold, labels
from headway.evidence.training.intervals import MEANINGS, Cause, causes, widths
from headway.evidence.training.predict import allocator_bytes
from headway.evidence.training.setup import TrainingSetup
from headway.training.achieved import SHARED_SECTION, family_of
from headway.training.estimate import estimate
from headway.training.work import model_flop

FLAT = 0.4  # MFU of the flat baseline, the usual planning assumption
GIB = 2.0**30


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOutErrors:
    """Errors ln(predicted / measured) of rows, with the setup of each."""

    error: Any
    setups: tuple[TrainingSetup, ...]

    @property
    def sources(self) -> Any:
        """Source of each row."""
        return labels(self.setups, "source")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingCrossValidation:
    """Fit to all rows, and errors of rows predicted by fits without their class: source, model, chip, year, ..."""

    fit: TrainingFit
    folds: tuple[ClassFold, ...]
    cause: Cause
    speed: HeldOutErrors  # speed errors of the fold by source
    in_sample: HeldOutErrors  # speed errors of the fit to all rows
    flat: HeldOutErrors  # speed errors with MFU = FLAT
    constant: HeldOutErrors  # speed errors with the median MFU of the chip's family in other sources
    memory: HeldOutErrors  # memory errors; no number is fitted to memory


def cross_validate(
    problem: TrainingProblem, hidden: TrainingProblem, all_numbers: Sequence[PriorNumber], all_setups: Sequence[TrainingSetup]
) -> TrainingCrossValidation:
    """Cross-validation with each class of each kind left out in turn; `hidden` holds the rows of `problem` without notes and task."""
    full_fit = fit(problem, all_numbers)

    def held_out(error: Any) -> HeldOutErrors:
        return HeldOutErrors(error=error, setups=problem.setups)

    folds = tuple(fold(problem, hidden, all_numbers, kind) for kind in KINDS)
    return TrainingCrossValidation(
        fit=full_fit, folds=folds, cause=causes(problem.setups),
        speed=held_out(next(one_fold.error for one_fold in folds if one_fold.kind == "source")),
        in_sample=held_out(errors(problem, table(full_fit.values, problem.base))),
        flat=held_out(np.log(FLAT / measured_mfu(problem))),
        constant=held_out(np.log(constant_mfu(problem) / measured_mfu(problem))),
        memory=memory_residuals(all_setups),
    )  # fmt: skip


def sources(problem: TrainingProblem) -> list[str]:
    """Names of all sources, sorted."""
    return sorted(set(problem.sources.tolist()))


def measured_mfu(problem: TrainingProblem) -> Any:
    """Measured MFU of each row: model FLOPs with full attention, over the peak of the row's format."""
    flop = [
        float(model_flop(setup.case.work, setup.case.recipe, causal=False)) / float(setup.case.machine.peak) for setup in problem.setups
    ]
    return problem.measured * np.array(flop)


def constant_mfu(problem: TrainingProblem) -> Any:
    """Median MFU of each row's chip family in other sources; of all chips if other sources have no such family."""
    families = np.array([family_of(setup.case.system.chip) for setup in problem.setups])
    mfu, weight, family_mfu = measured_mfu(problem), cluster_weights(problem.sources), np.empty(len(problem.setups))
    for index, (family, source) in enumerate(zip(families, problem.sources, strict=True)):
        other_sources = problem.sources != source
        like = other_sources & (families == family)
        rows = like if like.any() else other_sources
        family_mfu[index] = quantile(mfu[rows], weight[rows], 0.5)
    return family_mfu


def memory_residuals(setups: Sequence[TrainingSetup]) -> HeldOutErrors:
    """Errors of predicted memory; measured values count as GiB, which most frameworks print as GB."""
    measured_setups = tuple(setup for setup in setups if setup.row.memory_gb_per_chip)
    predicted_bytes = [
        float(allocator_bytes(estimate(setup.case, setup.layout).memory, setup.case.efficiency)) for setup in measured_setups
    ]
    measured = [setup.row.memory_gb_per_chip * GIB for setup in measured_setups if setup.row.memory_gb_per_chip]
    return HeldOutErrors(error=np.log(np.array(predicted_bytes) / np.array(measured)), setups=measured_setups)


def memory_width(residuals: HeldOutErrors, rows: Any = None) -> float:
    """Half of the 90 % interval of the memory in ln, each cluster counted once."""
    keep = np.ones(len(residuals.error), bool) if rows is None else rows
    names = clusters([setup for setup, counts in zip(residuals.setups, keep, strict=True) if counts])
    return quantile(np.abs(residuals.error[keep]), cluster_weights(names))


def shipped_widths(validation: TrainingCrossValidation) -> tuple[FittedNumbers, ...]:
    """Interval widths that ship, as factors, with jackknife errors over the sources."""
    folds, cause, memory = validation.folds, validation.cause, validation.memory
    names = validation.speed.sources
    width_by_key = widths(folds, cause)
    parts = [widths(folds, cause, names != name) for name in np.unique(names)]
    again = [memory_width(memory, memory.sources != name) for name in np.unique(memory.sources) if (memory.sources != name).any()]
    lines = [_line(key, value, [part[key] for part in parts], len(names)) for key, value in width_by_key.items()]
    return (*lines, _line("spread_memory", memory_width(memory), again, len(memory.error)))


def _line(key: str, width: float, again: Sequence[float], rows: int) -> FittedNumbers:
    factors = np.exp(np.array(again))
    return FittedNumbers(
        section=SHARED_SECTION, key=key, value=float(np.exp(width)), unit="",
        error=float(np.sqrt((len(factors) - 1) * np.var(factors))), rows=rows, range="rows whose class the fit did not see",
        meaning=MEANINGS[key], source="published training runs, docs/accuracy.md", date=DATE,
    )  # fmt: skip

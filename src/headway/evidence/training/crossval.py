"""Cross-validation of the training fit: each source predicted unseen, simpler models for comparison, and interval widths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headway.evidence.fit.result import DRAWS, FittedNumbers, quantile
from headway.evidence.training.fit import TrainingFit, TrainingNumber, TrainingProblem, errors, fit, table
from headway.evidence.training.predict import SHARED_SECTION, allocator_bytes
from headway.evidence.training.setup import TrainingSetup
from headway.training.achieved import family_of
from headway.training.estimate import estimate
from headway.training.work import model_flop

FLAT = 0.4  # MFU of the flat baseline, the usual planning assumption
GIB = 2.0**30


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOutErrors:
    """Errors ln(predicted / measured) of rows, with source, open layout and setup of each."""

    error: Any
    sources: Any
    open: Any  # whether the row states no layout
    setups: tuple[TrainingSetup, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingCrossValidation:
    """Fit to all rows, and errors of rows predicted by fits without their source."""

    fit: TrainingFit
    speed: HeldOutErrors
    hidden: HeldOutErrors  # speed errors with the rows' notes removed
    in_sample: HeldOutErrors  # speed errors of the fit to all rows
    flat: HeldOutErrors  # speed errors with MFU = FLAT
    constant: HeldOutErrors  # speed errors with the median MFU of the chip's family in other sources
    memory: HeldOutErrors  # memory errors; no number is fitted to memory


def cross_validate(
    problem: TrainingProblem, hidden: TrainingProblem, all_numbers: Sequence[TrainingNumber], all_setups: Sequence[TrainingSetup]
) -> TrainingCrossValidation:
    """Cross-validation with each source left out in turn; `hidden` holds the rows of `problem` without notes."""
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
    """Names of all sources, sorted."""
    return sorted(set(problem.sources.tolist()))


def residuals_of(problem: TrainingProblem, error: Any) -> HeldOutErrors:
    """Errors of a problem's rows as a record."""
    return HeldOutErrors(
        error=error, sources=problem.sources, open=np.array([setup.open for setup in problem.setups]), setups=problem.setups
    )


def weights(names: Any) -> Any:
    """Weight of each row such that all sources count equally."""
    _, place, count = np.unique(names, return_inverse=True, return_counts=True)
    return 1 / count[place]


def measured_mfu(problem: TrainingProblem) -> Any:
    """Measured MFU of each row: model FLOPs with full attention, over the peak of the row's format."""
    flop = [
        float(model_flop(setup.case.work, setup.case.recipe, causal=False)) / float(setup.case.machine.peak) for setup in problem.setups
    ]
    return problem.measured * np.array(flop)


def constant_mfu(problem: TrainingProblem) -> Any:
    """Median MFU of each row's chip family in other sources; of all chips if other sources have no such family."""
    families = np.array([family_of(setup.case.system.chip) for setup in problem.setups])
    mfu, weight, family_mfu = measured_mfu(problem), weights(problem.sources), np.empty(len(problem.setups))
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
    return HeldOutErrors(
        error=np.log(np.array(predicted_bytes) / np.array(measured)), sources=np.array([setup.row.source for setup in measured_setups]),
        open=np.array([setup.open for setup in measured_setups]), setups=measured_setups,
    )  # fmt: skip


MEANINGS = {
    "spread": "half of the 90 % interval of a step's time, as a factor",
    "wider_open": "that many times wider in the logarithm where the layout is not stated",
    "spread_memory": "half of the 90 % interval of the memory, as a factor",
}
DATE = "2026-11"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Half-width of the 90 % interval in ln, and the factor by which an open layout widens it."""

    half: float
    wider: float = 1.0

    def of(self, residuals: HeldOutErrors) -> Any:
        """Half-width of each row's interval, in ln."""
        return np.where(residuals.open, self.half * self.wider, self.half)


def spread_of(residuals: HeldOutErrors) -> Spread:
    """Half-widths that hold 90 % of the rows, with a stated layout and with an open layout."""
    size, weight, rows = np.abs(residuals.error), weights(residuals.sources), ~residuals.open
    half = quantile(size[rows], weight[rows])
    return Spread(half=half, wider=max(1.0, quantile(size[residuals.open], weight[residuals.open]) / half) if residuals.open.any() else 1.0)


def covered(residuals: HeldOutErrors, unseen: bool, width_source: HeldOutErrors | None = None) -> Any:
    """Whether each row lies within its interval; `unseen`: with a width computed without the row's source.

    The width comes from the rows `width_source` (default: `residuals`).
    """
    size, reference = np.abs(residuals.error), residuals if width_source is None else width_source
    if not unseen:
        return size <= spread_of(reference).of(residuals)
    within = np.zeros(len(size), bool)
    for source in np.unique(residuals.sources):
        out = residuals.sources == source
        within[out] = (size <= spread_of(rows_of(reference, reference.sources != source)).of(residuals))[out]
    return within


def rows_of(residuals: HeldOutErrors, index: Any) -> HeldOutErrors:
    """Errors of the rows `index`."""
    place = np.arange(len(residuals.error))[index]
    return replace(residuals, error=residuals.error[place], sources=residuals.sources[place], open=residuals.open[place],
                   setups=tuple(residuals.setups[position] for position in place))  # fmt: skip


def widths(validation: TrainingCrossValidation) -> tuple[FittedNumbers, ...]:
    """Interval widths that ship, with bootstrap errors over sources; speed uses rows without notes, the usual case."""
    speed, memory = spread_of(validation.hidden), spread_of(replace(validation.memory, open=np.zeros(len(validation.memory.error), bool)))
    halves, widers = zip(*((draw.half, draw.wider) for draw in _bootstrap_spreads(validation.hidden)), strict=True)
    again = [draw.half for draw in _bootstrap_spreads(validation.memory)]
    rows = len(validation.hidden.error)
    return (
        _line("spread", np.exp(speed.half), np.std(np.exp(halves)), rows),
        _line("wider_open", speed.wider, np.std(widers), int(validation.hidden.open.sum())),
        _line("spread_memory", np.exp(memory.half), np.std(np.exp(again)), len(validation.memory.error)),
    )


def _bootstrap_spreads(residuals: HeldOutErrors) -> list[Spread]:
    """Widths of bootstrap samples of the sources."""
    names, random, spreads = np.unique(residuals.sources), np.random.default_rng(0), []
    for _ in range(DRAWS):
        parts = [np.flatnonzero(residuals.sources == name) for name in random.choice(names, len(names))]
        sample = replace(rows_of(residuals, np.concatenate(parts)), sources=np.repeat(np.arange(len(parts)), [len(part) for part in parts]))
        if not sample.open.all():
            spreads.append(spread_of(sample))
    return spreads


def _line(key: str, value: Any, error: Any, rows: int) -> FittedNumbers:
    return FittedNumbers(
        section=SHARED_SECTION,
        key=key,
        value=float(value),
        unit="",
        error=float(error),
        rows=rows,
        range="rows whose source the fit did not see",
        meaning=MEANINGS[key],
        source="published training runs, docs/accuracy.md",
        date=DATE,
    )

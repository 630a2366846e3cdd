"""Cross-validation of the training fit: whole classes predicted unseen, simpler models for comparison, and widths of intervals.

Classes are left out by source, model, chip, year and more. A width has a base for what is like measured runs, and a term for each thing
that is new about a row, measured by what the errors of left-out classes have beyond those of rows whose class of that kind was seen.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.evidence.fit.result import DATE, FittedNumbers, PriorNumber
from headway.evidence.fit.statistics import ClassFold, cluster_weights, quantile, t_factor, unseen_halves
from headway.evidence.training.fit import TrainingFit, TrainingProblem, errors, fit, table
from headway.evidence.training.predict import allocator_bytes
from headway.evidence.training.setup import TrainingSetup, is_unread
from headway.training.achieved import NARROW, SHARED_SECTION, family_of
from headway.training.estimate import estimate
from headway.training.work import is_recurrent, is_routed, model_flop


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


BASE_KINDS = ("source", "model")  # every row that is predicted comes from another source, most of another model
MEANINGS = {
    "spread": "half of the 90 % interval of a step's time, as a factor: dense models of another source",
    "spread_routed": "the same of models with routed experts",
    "new_chip": "factor that widens it, independently, on a family of chips that no measured run has",
    "new_format": "the same for a format that no measured run of the chip's family has",
    "new_structure": "the same for models with SSM or linear-attention layers, and for names that no catalogue has",
    "new_year": "the same for software of a year after the last measured run",
    "open_layout": "the same where the layout is not stated",
    "spread_memory": "half of the 90 % interval of the memory, as a factor",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Causes of width of each row: whether it has routed experts, an open layout, a name that no catalogue has."""

    routed: Any
    open: Any
    unread: Any
    clusters: Any
    kinds: Any  # pair of model family and chip family of each row


def causes(setups: Sequence[TrainingSetup]) -> Cause:
    """Causes of width of rows."""
    return Cause(
        routed=np.array([structure(setup) == "routed" for setup in setups]), open=np.array([setup.open for setup in setups]),
        unread=np.array([is_unread(setup.flags) for setup in setups]), clusters=clusters(setups),
        kinds=np.array([f"{model}|{chip}" for model, chip in zip(labels(setups, "model"), labels(setups, "chip"), strict=True)]),
    )  # fmt: skip


def widths(folds: Sequence[ClassFold], cause: Cause, rows: np.ndarray | None = None) -> dict[str, float]:
    """Widths by cause, half of the 90 % interval in ln, from the rows `rows` (default: all); a term is 0 where nothing measures it."""
    keep = np.ones(len(cause.routed), bool) if rows is None else rows
    by_kind = {fold.kind: np.where(keep, np.abs(fold.hidden), np.nan) for fold in folds}
    base = [by_kind[kind] for kind in BASE_KINDS]
    parts = ~cause.routed & ~cause.open, cause.routed & ~cause.open
    plain, routed = (_q90(base, cause, part) for part in parts)
    few_plain, few_routed = (t_factor(len(np.unique(cause.kinds[part & keep]))) for part in parts)
    dense = plain * few_plain
    open_layout = _beyond(_q90(base, cause, cause.open), plain)
    width_by_key = {"spread": dense, "spread_routed": max(routed, plain) * few_routed, "open_layout": open_layout}
    for kind, key in NEW_BY_KIND.items():
        part = cause.routed if kind == "structure" else ~cause.open
        reference = plain if kind == "structure" else _q90(base, cause, part)
        width_by_key[key] = _beyond(_q90([by_kind[kind]], cause, part), reference) if kind in by_kind else 0.0
    return width_by_key


def _q90(errors: Sequence[Any], cause: Cause, part: np.ndarray) -> float:
    """90 % of the errors of rows of a part, each cluster counted once; 0 without rows."""
    error, names = np.concatenate([values[part] for values in errors]), np.tile(cause.clusters[part], len(errors))
    finite = np.isfinite(error)
    return quantile(error[finite], cluster_weights(names[finite])) if finite.any() else 0.0


def _beyond(width: float, base: float) -> float:
    """Width that joins `base` to `width`, as variances of independent causes add."""
    return float(np.sqrt(max(width**2 - base**2, 0.0)))


def halves(cause: Cause, of: Mapping[str, float], new: Sequence[str] = ()) -> Any:
    """Half-width of each row's interval in ln; `new` names the widths of what is new about all rows."""
    variance = np.where(cause.routed, of["spread_routed"], of["spread"]) ** 2
    variance = variance + np.where(cause.open, of["open_layout"] ** 2, 0) + np.where(cause.unread, of["new_structure"] ** 2, 0)
    return np.sqrt(variance + sum(of[key] ** 2 for key in new))


def covered(fold: ClassFold, folds: Sequence[ClassFold], cause: Cause, hidden: bool = True) -> Any:
    """Whether each row of a fold lies within its interval, of widths that have not seen the row's class either."""
    new = [NEW_BY_KIND[fold.kind]] if fold.kind in NEW_BY_KIND and fold.kind != "structure" else []
    half = unseen_halves(fold.labels, lambda name: halves(cause, widths(folds, cause, fold.labels != name), new))
    return np.abs(fold.hidden if hidden else fold.error) <= half


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

    def held_out(error: np.ndarray) -> HeldOutErrors:
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


def memory_width(residuals: HeldOutErrors, rows: np.ndarray | None = None) -> float:
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

"""The whole training fit: the numbers that ship, and the generated part of docs/accuracy.md about training runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from headway.core.errors import BadFile
from headway.evidence.fit.result import FittedNumbers, PriorNumber, fitted_lines, values_at
from headway.evidence.fit.statistics import Misses, misses, misses_by_class
from headway.evidence.pages import section, target_table
from headway.evidence.rows.row import left_out, need_rows
from headway.evidence.training.crossval import (
    FLAT,
    HeldOutErrors,
    TrainingCrossValidation,
    clusters,
    covered,
    cross_validate,
    memory_width,
    shipped_widths,
    sources,
)
from headway.evidence.training.fit import MEANINGS, TrainingFit, number, numbers, table, training_problem
from headway.evidence.training.row import MEASURED, TrainingRow, read_training_rows
from headway.evidence.training.setup import TrainingSetup, setup
from headway.performance.achieved import Efficiencies
from headway.training.achieved import SHARED_SECTION, training_efficiencies

LEAST_SOURCES, LEAST_ROWS = 3, 50
UNFITTED_VALUES = {"fragmentation": 0.0, "fixed": 1e9}  # measured memory is already below the computed value; no table has contexts
HEAD = """\
# What training reaches, fitted by `headway fit --training`; not to be edited by hand. Sections are training.family.format; a number is
# looked for in training.family.format, training.other.format, training.family.bf16, training.other.bf16."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRefit:
    """Result of the training fit: the numbers that ship, and the data of the accuracy page."""

    numbers: tuple[FittedNumbers, ...]
    validation: TrainingCrossValidation
    setups: tuple[TrainingSetup, ...]
    unpredicted: tuple[str, ...]  # reason per row without a prediction
    notes: tuple[str, ...]  # lines that were left out
    rows: int
    command: str
    date: str


def refit(path: Path, command: str, date: str) -> TrainingRefit:
    """Fit to a table of measured runs, with each source predicted from the others."""
    rows, bad = read_training_rows(path)
    need_rows(path, rows, bad)
    base, all_numbers = training_efficiencies(), numbers()
    believed = table(values_at(all_numbers, {}), base)  # layouts left open do not depend on an earlier fit
    outcomes = [(row, blind(row, believed)) for row in rows]
    setups = tuple(replace(outcome, row=row) for row, outcome in outcomes if isinstance(outcome, TrainingSetup))
    unpredicted = tuple(reason for _, reason in outcomes if isinstance(reason, str))
    speed_problem = training_problem(setups, base)
    if len(speed_problem.setups) < LEAST_ROWS or len(sources(speed_problem)) < LEAST_SOURCES:
        raise BadFile(path, f"has fewer than {LEAST_ROWS} rows of {LEAST_SOURCES} sources that measured a speed and can be predicted")
    validation = cross_validate(speed_problem, training_problem(without_notes(rows, believed), base), all_numbers, setups)
    lines = (*as_fitted(validation.fit, all_numbers, len(speed_problem.setups)), *shipped_widths(validation))
    return TrainingRefit(
        numbers=lines, validation=validation, setups=setups, unpredicted=unpredicted, notes=tuple(left_out(path, bad)), rows=len(rows),
        command=command, date=date,
    )  # fmt: skip


def blind(row: TrainingRow, believed: Efficiencies | None = None) -> TrainingSetup | str:
    """Setup of a row with its measurements removed; `believed` chooses layouts left open, by default what ships."""
    return setup(replace(row, **dict.fromkeys(MEASURED)), table=believed)


def without_notes(rows: Sequence[TrainingRow], believed: Efficiencies) -> list[TrainingSetup]:
    """Setups of rows with measurements, notes and task removed."""
    outcomes = [(row, blind(replace(row, notes="", task=""), believed)) for row in rows]
    return [replace(outcome, row=row) for row, outcome in outcomes if isinstance(outcome, TrainingSetup)]


def as_fitted(training_fit: TrainingFit, all_numbers: Sequence[PriorNumber], rows: int) -> tuple[FittedNumbers, ...]:
    """Numbers as lines of data/training/efficiency.toml, after them those that no row can determine, at their assumed values."""
    fixed = [number(SHARED_SECTION, key, value) for key, value in UNFITTED_VALUES.items()]
    values = training_fit.values | {entry.place: entry.prior for entry in fixed}
    return fitted_lines((*all_numbers, *fixed), values, training_fit.error, rows, f"{rows} published rows", "training")


PAGE = "training accuracy"  # name of the markers around the generated part
WORST = 12
TARGETS = {"dense": 0.10, "routed": 0.16, "all": 0.14}  # median errors asked of rows whose source or model is unseen
TARGET_COVERAGE, TARGET_MEMORY = (0.85, 0.97), 0.045
FEWEST_ROWS = 8  # classes of fewer rows are not named as the worst
READ = (
    "Rows of a model, a chip and a software count once together. Median, p90: of |predicted / measured - 1| of tokens/s per chip. Bias: "
    "median of ln(predicted / measured). Coverage: share within the 90 % interval, notes and task of the row hidden, of widths that have "
    "not seen the class either. A row is predicted without what it measured; what TFLOP/s or MFU count is the source's convention "
    "(`docs/training_rows.md`)."
)


def misses_of(residuals: HeldOutErrors, rows: np.ndarray | None = None) -> Misses:
    """Error statistics of residuals, or of the rows `rows` among them."""
    keep = np.ones(len(residuals.error), bool) if rows is None else rows
    return misses(residuals.error[keep], clusters(residuals.setups)[keep])


def parts_of(validation: TrainingCrossValidation) -> dict[str, Any]:
    """Row masks of dense and routed models, and of all."""
    routed = validation.cause.routed
    return {"dense": ~routed, "routed": routed, "all": np.ones(len(routed), bool)}


def sentence(refit: TrainingRefit) -> str:
    """Sentence on the errors of rows from sources that the fit had not seen."""
    all_rows, memory = misses_of(refit.validation.speed), misses_of(refit.validation.memory)
    fitted = sum(1 for number in refit.numbers if number.error and number.key in MEANINGS)
    return (
        f"{fitted} numbers fitted; sources that a fit has not seen are missed by {all_rows.median:.1%} in the median, {all_rows.p90:.0%} "
        f"at p90 ({all_rows.rows:,} rows), their memory by {memory.median:.1%} ({memory.rows:,})"
    )


def page(refit: TrainingRefit) -> str:
    """Part of docs/accuracy.md about training runs."""
    return "\n\n".join(_sections(refit))


def _sections(refit: TrainingRefit) -> Iterator[str]:
    """Where the figures come from, targets, folds, errors by source, memory, simpler models and the worst rows."""
    of, speed, memory = refit.validation, refit.validation.speed, refit.validation.memory
    count = f"{len(speed.error):,} rows of {len(np.unique(speed.sources))} sources that measured a speed"
    why = "; ".join(f"{reason} ({count:,})" for reason, count in Counter(refit.unpredicted).most_common())
    omissions = f"Of {refit.rows:,} rows, {len(refit.unpredicted):,} are not predicted{': ' if why else ''}{why}."
    yield (
        f"Generated by `{refit.command}` on {refit.date}: {count}. Every row is predicted by a fit that has not seen its class. "
        f"{omissions}\n\n{READ}"
    )
    yield f"### Training: targets\n\n{target_table(_targets(of))}"
    head = ("left out, class by class", "classes", "dense: median (coverage)", "routed", "all", "worst class: median, bias, coverage, rows")
    yield section("Training: folds", head, _fold_lines(of))
    lines = []
    for name, rows in _sources(speed):
        in_sample = misses_of(of.in_sample, rows)
        lines.append((name, *_brief(misses_of(speed, rows)), f"{in_sample.median:.1%}", f"{in_sample.p90:.0%}"))
    yield section("Training: by source", ("source", "n", "median", "p90", "bias", "median in sample", "p90 in sample"), lines)
    lines = [(name, *_brief(misses_of(memory, rows))) for name, rows in _sources(memory)]
    about = (
        "Nothing is fitted to these but the interval: states, activations, logits and gathered layers are counted. "
        f"Half of the interval is a factor {np.exp(memory_width(memory)):.2f}."
    )
    yield section("Training: memory", ("source", "n", "median", "p90", "bias"), lines, about)
    models = (("this model", speed), (f"an MFU of {FLAT:.0%} everywhere", of.flat),
              ("the median MFU of the chip's family in the other sources", of.constant))  # fmt: skip
    lines = [(name, *_brief(misses_of(residuals))[1:]) for name, residuals in models]
    about = "Attention in full, over the peak of the row's format."
    yield section("Training: what the model buys", ("model", "median", "p90", "bias"), lines, about)
    lines = []
    for index in np.argsort(-np.abs(speed.error))[:WORST]:
        row, layout = speed.setups[index].row, speed.setups[index].layout
        deployment = f"{row.chips or '?'} x {row.hardware}, tp {layout.tp} cp {layout.cp} pp {layout.pp} zero {layout.zero}"
        lines.append((row.id, f"{row.model}, {row.seq_len or '?'} tokens", deployment, f"{np.exp(speed.error[index]):.2f}"))
    yield section("Training: worst rows", ("row", "what", "on", "predicted / measured"), lines)


def _targets(validation: TrainingCrossValidation) -> Iterator[tuple[str, str, str, bool]]:
    low, high = TARGET_COVERAGE
    names, parts = clusters(validation.speed.setups), parts_of(validation)
    for fold in (one_fold for one_fold in validation.folds if one_fold.kind in ("source", "model")):
        within = covered(fold, validation.folds, validation.cause)
        for part, target in TARGETS.items():
            rows = parts[part]
            if rows.any():
                summary = misses(fold.error[rows], names[rows], within[rows])
                share, what = summary.coverage, f"{part}, {fold.kind} unseen"
                yield f"{what}: median", f"<= {target:.0%}", f"{summary.median:.1%}", summary.median <= target
                yield f"{what}: coverage", f"{low:.0%} to {high:.0%}", f"{share:.0%}", low <= share <= high
    memory = misses_of(validation.memory)
    yield "median error of memory", f"<= {TARGET_MEMORY:.1%}", f"{memory.median:.1%}", memory.median <= TARGET_MEMORY


def _fold_lines(validation: TrainingCrossValidation) -> Iterator[tuple[str, ...]]:
    """Every kind of fold, with its worst class: that of the largest median error, among those with enough rows."""
    names, parts = clusters(validation.speed.setups), parts_of(validation)
    for fold in validation.folds:
        within, cells = covered(fold, validation.folds, validation.cause), []
        for part in parts.values():
            known = part & np.isfinite(fold.error)
            summary = misses(fold.error[known], names[known], within[known]) if known.any() else None
            cells.append("-" if summary is None else f"{summary.median:.1%} ({summary.coverage:.0%})")
        classes = misses_by_class(fold.labels, fold.error, names, within, FEWEST_ROWS)
        worst = max(classes, key=lambda part: part.median, default=None)
        text = "-" if worst is None else f"{worst.name}: {worst.median:.0%}, {worst.bias:+.2f}, {worst.coverage:.0%}, {worst.rows:,}"
        yield fold.kind, str(len(np.unique(fold.labels))), *cells, text


def _sources(residuals: HeldOutErrors) -> list[tuple[str, Any]]:
    """Row masks of each source, then of all rows."""
    names: Sequence[str] = sorted(set(residuals.sources.tolist()))
    return [*((name, residuals.sources == name) for name in names), ("all", np.ones(len(residuals.sources), bool))]


def _brief(summary: Misses) -> tuple[str, ...]:
    return f"{summary.rows:,}", f"{summary.median:.1%}", f"{summary.p90:.0%}", f"{summary.bias:+.2f}"

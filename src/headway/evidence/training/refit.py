"""The whole fit of training: numbers, cross-validation by source, widths of intervals; and everything that ships of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from headway.errors import BadFile
from headway.evidence.fitted import FittedNumbers
from headway.evidence.training.fit import TrainingFit, training_problem
from headway.evidence.training.held_out import TrainingCrossValidation, cross_validate, sources
from headway.evidence.training.numbers import MEANINGS, TrainingNumber, numbers
from headway.evidence.training.predict import SHARED_SECTION
from headway.evidence.training.row import MEASURED, TrainingRow, read_training_rows
from headway.evidence.training.setup import TrainingSetup, setup
from headway.evidence.training.spread import DATE, widths
from headway.training.reach import training_efficiencies

LEAST_SOURCES, LEAST_ROWS = 3, 50
UNFITTED_VALUES = {"fragmentation": 0.0, "fixed": 1e9}  # tensors take less than computed already; no table has contexts
HEAD = """\
# What training reaches, fitted by `headway fit --training`; not to be edited by hand. Sections are training.family.format; a number is
# looked for in training.family.format, training.other.format, training.family.bf16, training.other.bf16."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRefit:
    """What a fit leaves: the numbers that ship, and what the page about them is made of."""

    numbers: tuple[FittedNumbers, ...]
    validation: TrainingCrossValidation
    setups: tuple[TrainingSetup, ...]
    unpredicted: tuple[str, ...]  # why, one for each row
    rows: int
    command: str
    date: str


def refit(path: Path, command: str, date: str) -> TrainingRefit:
    """Fit to a table of measured runs, and predict each source by the others."""
    rows, bad = read_training_rows(path)
    outcomes = [(row, blind(row)) for row in rows]
    setups = tuple(replace(outcome, row=row) for row, outcome in outcomes if isinstance(outcome, TrainingSetup))
    unpredicted = (*(reason for _, reason in outcomes if isinstance(reason, str)), *(bad_row.why for bad_row in bad))
    base, all_numbers = training_efficiencies(), numbers()
    speed_problem = training_problem(setups, base)
    if len(speed_problem.setups) < LEAST_ROWS or len(sources(speed_problem)) < LEAST_SOURCES:
        raise BadFile(path, f"has fewer than {LEAST_ROWS} rows of {LEAST_SOURCES} sources that measured a speed and can be predicted")
    validation = cross_validate(speed_problem, training_problem(without_notes(rows), base), all_numbers, setups)
    lines = (*as_fitted(validation.fit, all_numbers, len(speed_problem.setups)), *unfitted_numbers(), *widths(validation))
    return TrainingRefit(
        numbers=lines, validation=validation, setups=setups, unpredicted=unpredicted, rows=len(rows) + len(bad), command=command, date=date
    )


def blind(row: TrainingRow) -> TrainingSetup | str:
    """The setup of a row that does not know what it measured."""
    return setup(replace(row, **dict.fromkeys(MEASURED)))


def without_notes(rows: Sequence[TrainingRow]) -> list[TrainingSetup]:
    """The setups of rows whose notes are hidden too."""
    outcomes = [(row, blind(replace(row, notes=""))) for row in rows]
    return [replace(outcome, row=row) for row, outcome in outcomes if isinstance(outcome, TrainingSetup)]


def as_fitted(training_fit: TrainingFit, all_numbers: Sequence[TrainingNumber], rows: int) -> tuple[FittedNumbers, ...]:
    """The numbers as lines of data/training/efficiency.toml; those that were fixed have no error."""
    return tuple(
        _line(number, training_fit.values[number.section, number.key], training_fit.error[number.section, number.key], rows)
        for number in all_numbers
    )


def unfitted_numbers() -> tuple[FittedNumbers, ...]:
    """Numbers that no row decides."""
    return tuple(
        _line(TrainingNumber(section=SHARED_SECTION, key=key, prior=value), value, 0.0, 0) for key, value in UNFITTED_VALUES.items()
    )


def _line(number: TrainingNumber, value: float, error: float, rows: int) -> FittedNumbers:
    unit, meaning = MEANINGS[number.key]
    return FittedNumbers(
        section=number.section, key=number.key, value=value, unit=unit, error=value * error, rows=rows if error else 0,
        range=f"{rows} published rows" if error else "fixed", meaning=meaning,
        source="published training runs, docs/accuracy.md" if error else "stated, docs/decisions.md", date=DATE,
    )  # fmt: skip

"""The whole fit of training: numbers, cross-validation by source, widths of intervals; and everything that ships of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from headway.errors import BadFile
from headway.evidence.fitted import Fitted
from headway.evidence.training.fit import TrainingFit, problem
from headway.evidence.training.held_out import CrossValidated, cross_validate, sources
from headway.evidence.training.numbers import MEANINGS, TrainingNumber, numbers
from headway.evidence.training.predict import EVERY
from headway.evidence.training.row import MEASURED, TrainingRow, read_training_rows
from headway.evidence.training.setup import TrainingSetup, setup
from headway.evidence.training.spread import DATE, widths
from headway.training.reach import training_efficiencies

LEAST_SOURCES, LEAST_ROWS = 3, 50
STATED = {"fragmentation": 0.0, "fixed": 1e9}  # tensors take less than computed already; no table has contexts
HEAD = """\
# What training reaches, fitted by `headway fit --training`; not to be edited by hand. Sections are training.family.format; a number is
# looked for in training.family.format, training.other.format, training.family.bf16, training.other.bf16."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRefit:
    """What a fit leaves: the numbers that ship, and what the page about them is made of."""

    numbers: tuple[Fitted, ...]
    found: CrossValidated
    setups: tuple[TrainingSetup, ...]
    unpredicted: tuple[str, ...]  # why, one for each row
    rows: int
    command: str
    date: str


def refit(path: Path, command: str, date: str) -> TrainingRefit:
    """Fit to a table of measured runs, and predict each source by the others."""
    rows, bad = read_training_rows(path)
    made = [(row, blind(row)) for row in rows]
    setups = tuple(replace(one, row=row) for row, one in made if isinstance(one, TrainingSetup))
    unpredicted = (*(one for _, one in made if isinstance(one, str)), *(one.why for one in bad))
    base, every = training_efficiencies(), numbers()
    asked = problem(setups, base)
    if len(asked.setups) < LEAST_ROWS or len(sources(asked)) < LEAST_SOURCES:
        raise BadFile(path, f"has fewer than {LEAST_ROWS} rows of {LEAST_SOURCES} sources that measured a speed and can be predicted")
    found = cross_validate(asked, problem(without_notes(rows), base), every, setups)
    lines = (*as_fitted(found.fit, every, len(asked.setups)), *stated(), *widths(found))
    return TrainingRefit(numbers=lines, found=found, setups=setups, unpredicted=unpredicted, rows=len(rows) + len(bad), command=command,
                         date=date)  # fmt: skip


def blind(row: TrainingRow) -> TrainingSetup | str:
    """The setup of a row that does not know what it measured."""
    return setup(replace(row, **dict.fromkeys(MEASURED)))


def without_notes(rows: Sequence[TrainingRow]) -> list[TrainingSetup]:
    """The setups of rows whose notes are hidden too."""
    made = [(row, blind(replace(row, notes=""))) for row in rows]
    return [replace(one, row=row) for row, one in made if isinstance(one, TrainingSetup)]


def as_fitted(found: TrainingFit, every: Sequence[TrainingNumber], rows: int) -> tuple[Fitted, ...]:
    """The numbers as lines of data/training/efficiency.toml; those that were fixed have no error."""
    return tuple(_line(one, found.values[one.section, one.key], found.error[one.section, one.key], rows) for one in every)


def stated() -> tuple[Fitted, ...]:
    """Numbers that no row decides."""
    return tuple(_line(TrainingNumber(section=EVERY, key=key, prior=value), value, 0.0, 0) for key, value in STATED.items())


def _line(number: TrainingNumber, value: float, error: float, rows: int) -> Fitted:
    unit, meaning = MEANINGS[number.key]
    return Fitted(
        section=number.section, key=number.key, value=value, unit=unit, error=value * error, rows=rows if error else 0,
        range=f"{rows} published rows" if error else "fixed", meaning=meaning,
        source="published training runs, docs/accuracy.md" if error else "stated, docs/decisions.md", date=DATE,
    )  # fmt: skip

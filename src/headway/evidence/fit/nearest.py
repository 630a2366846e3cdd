"""Measured rows nearest to a plan: data/evidence.csv, a line per chip, engine, model class and kind of row.

The table is written from cross-validated residuals (`text(entries(...))`); reading it needs no fit.
"""

from __future__ import annotations

import csv
import functools
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from importlib.resources import files
from typing import TYPE_CHECKING

from headway.core.records import record_of
from headway.evidence.rows.names import NAMES, model_class
from headway.hardware.chip import Chip
from headway.models.model import Model
from headway.performance.achieved import OTHER_FAMILY, family

if TYPE_CHECKING:
    from headway.evidence.serving.score import Residual

MEASURES = ("served TPOT", "throughput", "decode", "prefill")  # measures in order of preference
PLACES = ("chip", "family")


@dataclass(frozen=True, slots=True, kw_only=True)
class NearestEntry:
    """A group of measured rows and the median error of their predictions."""

    chip: str
    family: str
    engine: str
    model_class: str
    kind: str
    measure: str
    rows: int
    median_error: float
    cross_validated: bool  # whether the fits had not seen these rows
    sources: str
    date: str


def entries(residuals: Iterable[Residual], date: str) -> list[NearestEntry]:
    """Entries of the table: a group of rows per chip, engine, model class, kind and measure."""
    from headway.evidence.serving.score import stats

    groups: dict[tuple[str, ...], list[Residual]] = {}
    for residual in residuals:
        groups.setdefault((residual.chip, residual.engine, residual.model_class, residual.kind, residual.measure), []).append(residual)
    return [
        NearestEntry(
            chip=chip, family=members[0].family, engine=engine, model_class=kind_of_model, kind=kind, measure=measure, rows=len(members),
            median_error=round(stats(members).median_error, 4), cross_validated=all(residual.fold for residual in members),
            sources=" ".join(sorted({residual.source for residual in members if residual.source})), date=date,
        )
        for (chip, engine, kind_of_model, kind, measure), members in sorted(groups.items())
    ]  # fmt: skip


def text(table: Sequence[NearestEntry]) -> str:
    """CSV text of a table."""
    out, names = io.StringIO(), [field.name for field in fields(NearestEntry)]
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    for entry in table:
        cells = [getattr(entry, name) for name in names]
        writer.writerow([("yes" if cell else "no") if isinstance(cell, bool) else cell for cell in cells])
    return out.getvalue()


@functools.cache
def shipped() -> tuple[NearestEntry, ...]:
    """Table that ships with the package."""
    return read(files("headway").joinpath("data/evidence.csv").read_text(encoding="utf-8"))


def read(lines: str) -> tuple[NearestEntry, ...]:
    """Table from CSV text."""
    return tuple(record_of(NearestEntry, row) for row in csv.DictReader(io.StringIO(lines)))


def nearest(chip: Chip, model: Model, engine: str, table: Sequence[NearestEntry] | None = None) -> list[NearestEntry]:
    """Entries of the nearest rows, largest group first; empty if none is within range.

    Within range: the chip itself, else a chip with its kernels; a model of this structure, at most one size class away;
    the requested engine before any other.
    """
    known = shipped() if table is None else table
    place = {"chip": chip.name, "family": family(chip)}
    structure, _, size = model_class(model).rpartition(" ")
    for where in PLACES:
        if place[where] == OTHER_FAMILY:
            continue
        chip_entries = [entry for entry in known if getattr(entry, where) == place[where] and _away(entry, structure, size) <= 1]
        for away in (0, 1):
            candidates = [entry for entry in chip_entries if _away(entry, structure, size) == away]
            matches = _preferred([entry for entry in candidates if entry.engine == engine]) or _preferred(candidates)
            if matches:
                return sorted(matches, key=lambda entry: -entry.rows)
    return []


def _away(entry: NearestEntry, structure: str, size: str) -> int:
    """Size classes between an entry's models and `size`; a large number if the structure differs."""
    entry_structure, _, name = entry.model_class.rpartition(" ")
    return abs(NAMES.index(name) - NAMES.index(size)) if entry_structure == structure else len(NAMES)


def _preferred(candidates: Sequence[NearestEntry]) -> list[NearestEntry]:
    """Candidates of the first measure, in order of preference, that any candidate has."""
    return next((matches for measure in MEASURES if (matches := [entry for entry in candidates if entry.measure == measure])), [])

"""The measured rows nearest to a plan: data/evidence.csv, one line for each chip, engine, class of models and kind of row.

The table is written from cross-validated residuals (`text(entries(...))`) and read without any of the machinery that made them.
"""

from __future__ import annotations

import csv
import functools
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from importlib.resources import files
from typing import TYPE_CHECKING

from headway.evidence.rows.names import NAMES, model_class
from headway.hardware.chip import Chip
from headway.models.model import Model
from headway.performance.efficiency import OTHER_FAMILY, family

if TYPE_CHECKING:
    from headway.evidence.fit.residuals import Residual

MEASURES = ("served TPOT", "throughput", "decode", "prefill")  # what a plan is nearest to, before anything else that was measured
PLACES = ("chip", "family")


@dataclass(frozen=True, slots=True, kw_only=True)
class NearestEntry:
    """Some measured rows and the median error of their predictions."""

    chip: str
    family: str
    engine: str
    model_class: str
    kind: str
    measure: str
    rows: int
    median_error: float
    cross_validated: bool  # predicted by fits that had not seen them
    sources: str
    date: str


def entries(residuals: Iterable[Residual], date: str) -> list[NearestEntry]:
    """One for each chip, engine, class of models, kind and measure."""
    from headway.evidence.fit.residuals import stats

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
    """The file of a table."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    names = [field.name for field in fields(NearestEntry)]
    writer.writerow(names)
    writer.writerows([_cell(getattr(entry, name)) for name in names] for entry in table)
    return out.getvalue()


def _cell(value: object) -> object:
    return ("yes" if value else "no") if isinstance(value, bool) else value


@functools.cache
def shipped() -> tuple[NearestEntry, ...]:
    """The table that ships."""
    return read(files("headway").joinpath("data/evidence.csv").read_text(encoding="utf-8"))


def read(lines: str) -> tuple[NearestEntry, ...]:
    """The table of a file."""
    return tuple(
        NearestEntry(
            chip=row["chip"], family=row["family"], engine=row["engine"], model_class=row["model_class"], kind=row["kind"],
            measure=row["measure"], rows=int(row["rows"]), median_error=float(row["median_error"]),
            cross_validated=row["cross_validated"] == "yes", sources=row["sources"], date=row["date"],
        )
        for row in csv.DictReader(io.StringIO(lines))
    )  # fmt: skip


def nearest(chip: Chip, model: Model, engine: str, table: Sequence[NearestEntry] | None = None) -> list[NearestEntry]:
    """The entries of the nearest rows, the most first; none when nothing is within range.

    Within range: the same chip or, failing that, one whose kernels it shares; a model of the same structure, at most one class of
    size away; the engine asked for before any other.
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
    """Classes of size between an entry's models and another; many where the structure differs."""
    entry_structure, _, name = entry.model_class.rpartition(" ")
    return abs(NAMES.index(name) - NAMES.index(size)) if entry_structure == structure else len(NAMES)


def _preferred(candidates: Sequence[NearestEntry]) -> list[NearestEntry]:
    """Those of the first measure that any of them has."""
    return next((matches for measure in MEASURES if (matches := [entry for entry in candidates if entry.measure == measure])), [])

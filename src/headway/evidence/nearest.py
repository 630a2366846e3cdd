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

from headway.chip import Chip
from headway.efficiency import OTHER, family
from headway.evidence.model_class import NAMES, model_class
from headway.model import Model

if TYPE_CHECKING:
    from headway.evidence.residuals import Residual

MEASURES = ("served TPOT", "throughput", "decode", "prefill")  # what a plan is nearest to, before anything else that was measured
PLACES = ("chip", "family")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
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


def entries(residuals: Iterable[Residual], date: str) -> list[Entry]:
    """One for each chip, engine, class of models, kind and measure."""
    from headway.evidence.groups import stats

    found: dict[tuple[str, ...], list[Residual]] = {}
    for one in residuals:
        found.setdefault((one.chip, one.engine, one.model_class, one.kind, one.measure), []).append(one)
    return [
        Entry(
            chip=chip, family=own[0].family, engine=engine, model_class=kind_of_model, kind=kind, measure=measure, rows=len(own),
            median_error=round(stats(own).median_error, 4), cross_validated=all(one.fold for one in own),
            sources=" ".join(sorted({one.source for one in own if one.source})), date=date,
        )
        for (chip, engine, kind_of_model, kind, measure), own in sorted(found.items())
    ]  # fmt: skip


def text(table: Sequence[Entry]) -> str:
    """The file of a table."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    names = [field.name for field in fields(Entry)]
    writer.writerow(names)
    writer.writerows([_cell(getattr(one, name)) for name in names] for one in table)
    return out.getvalue()


def _cell(value: object) -> object:
    return ("yes" if value else "no") if isinstance(value, bool) else value


@functools.cache
def shipped() -> tuple[Entry, ...]:
    """The table that ships."""
    return read(files("headway").joinpath("data/evidence.csv").read_text(encoding="utf-8"))


def read(lines: str) -> tuple[Entry, ...]:
    """The table of a file."""
    return tuple(
        Entry(
            chip=row["chip"], family=row["family"], engine=row["engine"], model_class=row["model_class"], kind=row["kind"],
            measure=row["measure"], rows=int(row["rows"]), median_error=float(row["median_error"]),
            cross_validated=row["cross_validated"] == "yes", sources=row["sources"], date=row["date"],
        )
        for row in csv.DictReader(io.StringIO(lines))
    )  # fmt: skip


def nearest(chip: Chip, model: Model, engine: str, table: Sequence[Entry] | None = None) -> list[Entry]:
    """The entries of the nearest rows, the most first; none when nothing is within range.

    Within range: the same chip or, failing that, one whose kernels it shares; a model of the same structure, at most one class of
    size away; the engine asked for before any other.
    """
    known = shipped() if table is None else table
    place = {"chip": chip.name, "family": family(chip)}
    structure, _, size = model_class(model).rpartition(" ")
    for where in PLACES:
        if place[where] == OTHER:
            continue
        here = [one for one in known if getattr(one, where) == place[where] and _away(one, structure, size) <= 1]
        for away in (0, 1):
            like = [one for one in here if _away(one, structure, size) == away]
            found = _preferred([one for one in like if one.engine == engine]) or _preferred(like)
            if found:
                return sorted(found, key=lambda one: -one.rows)
    return []


def _away(one: Entry, structure: str, size: str) -> int:
    """Classes of size between an entry's models and another; many where the structure differs."""
    own, _, name = one.model_class.rpartition(" ")
    return abs(NAMES.index(name) - NAMES.index(size)) if own == structure else len(NAMES)


def _preferred(some: Sequence[Entry]) -> list[Entry]:
    """Those of the first measure that any of them has."""
    return next((found for measure in MEASURES if (found := [one for one in some if one.measure == measure])), [])

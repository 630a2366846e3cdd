"""The table of measured rows near a question, data/evidence.csv, as a fit writes it: performance/nearest.py reads it."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import fields

from headway.evidence.serving.score import Residual, stats
from headway.performance.nearest import NearestEntry


def entries(residuals: Iterable[Residual], date: str) -> list[NearestEntry]:
    """Entries of the table: a group of rows per chip, engine, model class, kind and measure."""
    groups: dict[tuple[str, ...], list[Residual]] = {}
    for residual in residuals:
        groups.setdefault((residual.chip, residual.engine, residual.model_class, residual.kind, residual.measure), []).append(residual)
    return [
        NearestEntry(
            chip=chip, family=members[0].family, engine=engine, model_class=kind_of_model, kind=kind, measure=measure, rows=len(members),
            median_error=round(stats(members).median_error, 4), cross_validated=all(residual.fold for residual in members),
            sources=_names(residual.source for residual in members), date=date, formats=_names(residual.form for residual in members),
            layouts=_names(residual.layout for residual in members),
        )
        for (chip, engine, kind_of_model, kind, measure), members in sorted(groups.items())
    ]  # fmt: skip


def _names(words: Iterable[str]) -> str:
    """Distinct words, in their order."""
    return " ".join(sorted(set(words) - {""}))


def text(table: Sequence[NearestEntry]) -> str:
    """CSV text of a table."""
    out, names = io.StringIO(), [field.name for field in fields(NearestEntry)]
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    for entry in table:
        cells = [getattr(entry, name) for name in names]
        writer.writerow([("yes" if cell else "no") if isinstance(cell, bool) else cell for cell in cells])
    return out.getvalue()

"""Words of a sweep: what it would take, how far it is, which questions have no answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headway.core.units import show
from headway.report.output import Summary
from headway.report.words import number_of

VIEW = ("verb", "questions", "answered", "failed", "rows", "chunks", "chunks_left", "busy_s", "file_bytes")


def estimate(questions: Mapping[str, int], seconds: float, size: float, workers: str, count: int) -> str:
    """What these questions would take.

    >>> estimate({"plan": 2000}, 4800.0, 12e6, "2 processes", 2)
    '2,000 plan questions: about 40 min on 2 processes, 12 MB.'
    """
    if not questions:
        return "Every question is answered."
    what = " and ".join(f"{number:,} {verb}" for verb, number in questions.items())
    return f"{what} questions: about {show(seconds / count, 's', 2)} on {workers}, {show(size, 'byte', 2)}."


def summary(rows: Sequence[Mapping[str, Any]], folder: str, digest: str, failures: Sequence[str], way_on: str, stopped: bool) -> Summary:
    """The sentence, the table by verb and what comes next."""
    total, answered, failed = (sum(row[key] for row in rows) for key in ("questions", "answered", "failed"))
    without = f", {failed:,} of them without an answer" if failed else ""
    if digest:
        headline = f"{number_of(total, 'question')} in {folder}{without}; rows sha256 {digest}."
    else:
        headline = f"{'Interrupted: ' if stopped else ''}{answered:,} of {number_of(total, 'question')} in {folder}{without}."
    return Summary(headline, VIEW, after=[way_on] if way_on else (), remarks=failures)

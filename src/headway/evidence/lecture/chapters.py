"""Chapters of the lecture (data/lecture/N_*.toml): prose in sections, each with its claims in the order of the argument.

Beside them the points on which published summaries disagree or err, each with the right version and the claims that show it.
"""

from __future__ import annotations

import dataclasses
import functools
import tomllib
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from headway.core.errors import UnknownName
from headway.core.listing import format_value
from headway.core.records import record_of
from headway.evidence.claims.claim import ENDS
from headway.evidence.claims.rows import AGREES, DIFFERS, ROUNDING, ClaimPart, ClaimRow, claim, range_text

EXTRA = 8  # number of the cross-checks, which are no chapter of the lecture; shown as +
FORMS = ("form", "formula", "shape", "policy", "equality", "neutral", "cancels", "fits", "limited", "floor", "stable")
SAYINGS = ("qualitative", "yes", "assumption")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LectureFacts:
    """Title, speaker, host and date of the lecture, what it claims in a sentence, and words of which it is silent."""

    title: str
    speaker: str
    role: str
    host: str
    date: str
    source: str
    says: str
    about: dict[str, str]  # what to say of a word that is no claim, above what a search meets


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A step of a chapter's argument: its prose, and a plain statement for each of its claims."""

    title: str
    text: str
    statements: dict[str, str]  # claim id -> statement in plain words
    commands: tuple[str, ...] = ()  # what to try next; none: those of the chapter


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Chapter:
    """A chapter of the lecture."""

    number: int
    title: str
    time: str
    says: str
    words: tuple[str, ...]  # terms of its subject, for the search
    commands: tuple[str, ...]  # what to try next
    sections: tuple[Section, ...]
    figures: dict[str, str] = dataclasses.field(default_factory=dict)  # claim id -> name of the figure to show; "" for none

    @property
    def label(self) -> str:
        """Number of the chapter; + for the cross-checks."""
        return "+" if self.number == EXTRA else str(self.number)

    def claim_ids(self) -> list[str]:
        """Claims of the chapter in the order of its argument."""
        return [claim_id for section in self.sections for claim_id in section.statements]


def folder() -> Any:
    """Folder of the lecture's texts."""
    return files("headway") / "data" / "lecture"


def document(name: str) -> dict[str, Any]:
    """One file of the folder."""
    return tomllib.loads((folder() / f"{name}.toml").read_text(encoding="utf-8"))


@functools.cache
def facts() -> LectureFacts:
    """Which lecture this is."""
    return LectureFacts(**document("lecture"))


@functools.cache
def chapters() -> tuple[Chapter, ...]:
    """Chapters in the lecture's order, then the cross-checks."""
    pages = [document(name) for name in sorted(path.name.removesuffix(".toml") for path in folder().iterdir() if path.name[0].isdigit())]
    return tuple(record_of(Chapter, page, sections=tuple(map(_section, page["section"]))) for page in pages)


def _section(part: dict[str, Any]) -> Section:
    return record_of(Section, part, text=part["text"].strip(), statements=part["claims"])


def chapter(label: str) -> Chapter:
    """Chapter by its number, or + for the cross-checks."""
    for page in chapters():
        if label.strip() in (page.label, str(page.number)):
            return page
    raise UnknownName("chapter", label, [page.label for page in chapters()], f"chapters are 1 to {EXTRA - 1}, and + for the cross-checks")


@functools.cache
def _places() -> dict[str, tuple[Chapter, Section]]:
    return {claim_id: (page, section) for page in chapters() for section in page.sections for claim_id in section.statements}


def chapter_of(claim_id: str) -> Chapter:
    """Chapter that a claim belongs to."""
    return _places()[claim_id][0]


def statement(claim_id: str) -> str:
    """A claim in plain words."""
    return _places()[claim_id][1].statements[claim_id]


def neighbours(claim_id: str) -> tuple[str, str]:
    """Claims before and after this one in its chapter's argument; "" at the ends."""
    ids = chapter_of(claim_id).claim_ids()
    at = ids.index(claim_id)
    return ids[at - 1] if at else "", ids[at + 1] if at + 1 < len(ids) else ""


def verdict_counts(rows: Sequence[ClaimRow], page: Chapter) -> tuple[int, int, int]:
    """Claims of a chapter that agree (after rounding too), that differ, and that are open: undecided or not arithmetic."""
    verdicts = [row.verdict for row in rows if chapter_of(row.id) is page]
    agree, differ = sum(verdict in (AGREES, ROUNDING) for verdict in verdicts), verdicts.count(DIFFERS)
    return agree, differ, len(verdicts) - agree - differ


def lecture_text(row: ClaimRow) -> str:
    """Figure that the lecture gives, as it gives it; "formula" for a form, "in words" for no figure, "-" for what only follows from it."""
    text = row.stated_text
    if not text:
        return "in words" if row.source.startswith("lecture") and "derived" not in row.source else "-"
    return "formula" if text in FORMS else "in words" if text in SAYINGS else text.replace('"', "")


def recomputed_text(row: ClaimRow) -> str:
    """Figure by the laws with its name; for a form the figure that it gives, not the 1 of its test."""
    ends = [part for part in row.parts if part.name.endswith(ENDS)]
    if ends:
        return f"{range_text((ends[0].recomputed, ends[1].recomputed), ends[0].unit)} ({ends[0].name.removesuffix(ENDS[0])})"
    part = shown_part(row)
    if part is None:
        return "holds" if row.parts else "-"
    name = f" ({part.name})" if len(row.parts) > 1 else ""
    return format_value(part.recomputed, part.unit) + name


def shown_part(row: ClaimRow) -> ClaimPart | None:
    """Part that says most: the one behind the verdict, or, where that is a ratio of 1, the first that is not."""
    deciding = next((part for part in row.parts if part.verdict == row.verdict), None)
    figures = chapter_of(row.id).figures
    if row.id in figures:
        return next((part for part in row.parts if part.name == figures[row.id]), None)
    if deciding is None or row.verdict == DIFFERS or not _is_unit_ratio(deciding):
        return deciding
    return next((part for part in row.parts if not _is_unit_ratio(part)), None)


def _is_unit_ratio(part: ClaimPart) -> bool:
    return part.unit == "" and abs(part.recomputed - 1) < 1e-9


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DisputedPoint:
    """A point that summaries dispute."""

    topic: str
    versions: tuple[str, ...]
    right: str
    reason: str
    claim_ids: tuple[str, ...]


@functools.cache
def disputed_points() -> tuple[DisputedPoint, ...]:
    """All disputed points, in the order of the lecture's check."""
    points = document("disputed")["point"]
    return tuple(record_of(DisputedPoint, point, reason=point["why"], claim_ids=tuple(point["claims"])) for point in points)


def claim_rows(point: DisputedPoint) -> list[ClaimRow]:
    """Rows of the claims that show a point."""
    return [row for claim_id in point.claim_ids for row in claim(claim_id)]

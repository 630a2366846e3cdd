"""Words of `headway lecture`: the front page, a chapter, a search, the points that summaries dispute."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from headway.core.listing import Listing
from headway.evidence.claims.claim import claims
from headway.evidence.claims.rows import ClaimRow
from headway.evidence.lecture import chapters as lecture
from headway.evidence.lecture.chapters import Chapter, DisputedPoint, claim_rows
from headway.evidence.lecture.search import LectureMatches
from headway.report.output import Summary

WIDTH = 100
FRONT = ("chapter", "title", "time", "agree", "differ", "open", "what_it_says")
MATCHES = ("id", "says", "verdict", "chapter")
FRONT_NEXT = 'Next: headway lecture 1 (a chapter), lecture RB-10 (a claim), lecture --find "spinning disk", lecture "why ...?" (a question)'
MORE_NEXT = (
    "More: lecture --model deepseek-v3 --on gb200-nvl72 (your model), lecture quiz (flashcards), lecture --disputed (summaries that err)"
)


def paragraph(text: str, indent: str = "") -> str:
    """A text in lines of WIDTH letters."""
    return textwrap.fill(text, WIDTH, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)


def front_page(rows: Sequence[ClaimRow]) -> Summary:
    """All chapters in a table, with the counts of verdicts."""
    about = lecture.facts()
    pages = []
    totals = [0, 0, 0]
    for page in lecture.chapters():
        counts = lecture.verdict_counts(rows, page)
        totals = [total + count for total, count in zip(totals, counts, strict=True)]
        agree, differ, unsettled = counts
        pages.append({"chapter": page.label, "title": page.title, "time": page.time, "agree": agree, "differ": differ, "open": unsettled,
                      "what_it_says": page.says})  # fmt: skip
    agree, differ, unsettled = totals
    counts = f"{agree} agree, {differ} differ, {unsettled} open"
    headline = f"{about.speaker}'s lecture ({about.host}, {about.date}): of {len(rows)} claims, {counts}."
    after = [f"{about.title}: {about.says}", FRONT_NEXT, MORE_NEXT]
    return Summary(headline, FRONT, after, Listing(pages))


def chapter_page(page: Chapter, rows: Sequence[ClaimRow]) -> Summary:
    """A chapter: its prose, and below each section its claims in the order of the argument."""
    agree, differ, unsettled = lecture.verdict_counts(rows, page)
    by_id = {row.id: row for row in rows}
    counts = {"claims": agree + differ + unsettled, "agree": agree, "differ": differ, "open": unsettled}
    after: list[str] = []
    for section in page.sections:
        after += ["", section.title, *(paragraph(text) for text in section.text.split("\n\n"))]
        after.append("\n".join(line for claim_id in section.statements for line in _claim_lines(by_id[claim_id])))
    return Summary(f"{_name(page)}: {page.says}.", tuple(counts), [*after, "", _next_line(page)], Listing([counts]))


def _name(page: Chapter) -> str:
    return f"{page.title}" if page.number == lecture.EXTRA else f"Chapter {page.label}, {page.title} ({page.time})"


def _claim_lines(row: ClaimRow) -> Iterator[str]:
    """A claim in two lines: what it says; the lecture's figure, the recomputed figure and the verdict."""
    yield f"    {row.id:7}{lecture.statement(row.id)}"
    cause = f" ({row.cause})" if row.cause and row.cause != row.verdict else ""
    figure = lecture.lecture_text(row)
    origin = "follows from the lecture" if figure == "-" else f"lecture: {figure}"
    recomputed = lecture.recomputed_text(row)
    middle = "" if recomputed == "-" else f"; recomputed: {recomputed}"
    yield f"           {origin}{middle}; {row.verdict}{cause}"


def _next_line(page: Chapter) -> str:
    ids = page.claim_ids()
    following = [chapter.label for chapter in lecture.chapters() if chapter.number == page.number + 1]
    onward = f"headway lecture {following[0]} (the next chapter), " if following else "headway "
    return f"Next: {onward}lecture {ids[0]} (a claim in full), lecture quiz {page.label}; try: {'; '.join(page.commands)}"


def search_page(result: LectureMatches, rows: Sequence[ClaimRow]) -> Summary:
    """The chapter that answers, its passage, and the claims that match."""
    best = result.chapters[0].chapter
    after: list[str] = []
    if result.passage:
        after = ["", result.passage.title, *(paragraph(text) for text in result.passage.text.split("\n\n")), ""]
    after += result.remarks
    for word, offers in result.unknown.items():
        after.append(f"{word!r} does not occur" + (f"; nearest: {', '.join(offers)}" if offers else ""))
    commands = (result.passage.commands if result.passage else ()) or best.commands
    further = ", ".join(f"{match.chapter.label} ({match.chapter.title})" for match in result.chapters[1:3])
    after.append(
        f"Next: headway lecture {best.label}" + (f"; other chapters: {further}" if further else "") + f"; try: {'; '.join(commands)}"
    )
    people = [
        {"id": row.id, "says": lecture.statement(row.id), "verdict": row.verdict, "chapter": lecture.chapter_of(row.id).label}
        for row in rows
    ]
    return Summary(f"{_name(best)} answers: {best.says}.", MATCHES, after, Listing(people) if people else None)


def disputed_page(points: Sequence[DisputedPoint]) -> Summary:
    """Points that summaries dispute: the right version in a table, who says what and why below."""
    people, after = [], []
    for point in points:
        rows = claim_rows(point)
        verdicts = ", ".join(f"{row.id} {row.verdict}" for row in rows)
        people.append({"topic": point.topic, "right": point.right, "claims_behind": verdicts})
        after.append("")
        after.append(paragraph(f"{point.topic}: {'; '.join(point.versions)}. Right: {point.right}. {point.reason}"))
        after += ["\n".join(line for row in rows for line in _claim_lines(row))] if rows else []
    headline = f"On {len(points)} points published summaries of the lecture disagree or err; this is the right version of each."
    return Summary(headline, ("topic", "right", "claims_behind"), after, Listing(people))


def place_lines(claim_id: str) -> Iterator[str]:
    """Lines on where a claim stands: plain words, chapter, the claims before and after it."""
    page = lecture.chapter_of(claim_id)
    yield f"in words: {lecture.statement(claim_id)}"
    before, after = lecture.neighbours(claim_id)
    neighbours = (("follows", before), ("leads to", after))
    steps = [f"{word} {neighbour} ({lecture.statement(neighbour)})" for word, neighbour in neighbours if neighbour]
    yield f"chapter {page.label}, {page.title}, group {claims()[claim_id].title}: " + "; ".join(steps)


def claim_fields(claim_id: str) -> dict[str, Any]:
    """Keys of a claim's row that say where it stands."""
    return {"chapter": lecture.chapter_of(claim_id).label, "says": lecture.statement(claim_id)}

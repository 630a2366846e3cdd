"""Search of the lecture in plain words: its claims, sections and chapters by the one search, and what to say where none of them answers."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from headway.core import search
from headway.core.errors import UnknownName, clip
from headway.core.stems import stems_of
from headway.evidence.lecture.chapters import Chapter, Section, chapters, facts

KINDS = ("chapter", "section", "claim")
BEST_CLAIMS = 3  # claims of a chapter that count for it
MOST_MATCHES = 12
LEAST_SHARE = 0.4  # of the best claim's score, below which a claim does not answer
LEAST_BESIDE = 0.5  # of a question's weight, which a remark answers unless a claim does


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A chapter or a claim that answers a search."""

    chapter: Chapter
    claim_id: str  # "" for the chapter itself
    score: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LectureMatches:
    """Chapters and claims best first, the passage to read, words that occur nowhere with the nearest, remarks on words."""

    chapters: tuple[Match, ...]
    claims: tuple[Match, ...]
    passage: Section | None  # of the best chapter
    unknown: dict[str, tuple[str, ...]]
    remarks: tuple[str, ...]


def find(text: str) -> LectureMatches:
    """Chapters and claims that answer a question or hold its words; none of them where too little of it is answered.

    Raises UnknownName with the nearest words for one that does not occur.
    """
    query = search.read(text, KINDS)
    about = facts().about
    remarks = tuple(dict.fromkeys(line for words, line in about.items() if set(stems_of(words)) <= set(query.stems)))
    if not remarks and not any(query.readings) and len(text.split()) == 1:
        words = list(dict.fromkeys(word for words in query.unknown.values() for word in words))
        offer = f"nearest words: {', '.join(words[:5])}" if words else "try a word such as batch, rack, pipeline, cache or disk"
        raise UnknownName("word of the lecture", clip(text), [], offer)
    scores = search.scores(query)
    claims = sorted((match for match in scores if match.page.kind == "claim" and match.score > 0), key=lambda match: -match.score)
    if not search.answers(query, scores) or (remarks and max(match.share for match in scores) < LEAST_BESIDE):
        return LectureMatches(chapters=(), claims=(), passage=None, unknown=query.unknown, remarks=remarks)
    by_label = {page.label: page for page in chapters()}
    claim_matches = tuple(
        Match(chapter=by_label[match.page.section.partition(".")[0]], claim_id=match.page.name, score=match.score)
        for match in claims[:MOST_MATCHES]
        if match.score >= LEAST_SHARE * claims[0].score
    )
    by_chapter = [Match(chapter=page, claim_id="", score=_chapter_score(page, scores)) for page in chapters()]
    ranked = tuple(match for match in sorted(by_chapter, key=lambda match: -match.score) if match.score > 0)
    best = ranked[0].chapter
    by_section = [0.0] * len(best.sections)
    for match in scores:  # the section of the best chapter that answers best, its claims counted
        label, _, place = match.page.section.partition(".")
        if label == best.label and place:
            by_section[int(place)] = max(by_section[int(place)], match.score)
    passage = best.sections[by_section.index(max(by_section))]
    return LectureMatches(chapters=ranked, claims=claim_matches, passage=passage, unknown=query.unknown, remarks=remarks)


def _chapter_score(chapter: Chapter, scores: Iterable[search.PageMatch]) -> float:
    """A chapter's own words, its best section, and a part of its best claims."""
    by_kind: dict[str, list[float]] = {"chapter": [0.0], "section": [0.0], "claim": [0.0]}
    for match in scores:
        if match.page.section.partition(".")[0] == chapter.label:
            by_kind[match.page.kind].append(match.score)
    best_claims = sorted(by_kind["claim"], reverse=True)[:BEST_CLAIMS]
    return max(by_kind["chapter"]) + max(by_kind["section"]) + sum(best_claims) / BEST_CLAIMS

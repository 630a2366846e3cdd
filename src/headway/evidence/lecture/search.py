"""Search of the lecture in plain words: claims, prose, chapters and a list of concepts whose words a listener takes for each other."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator

from headway.core.errors import UnknownName, clip, nearest
from headway.evidence.claims.claim import claims
from headway.evidence.lecture.chapters import Chapter, Section, chapters, document

SYNONYM = 0.4  # weight of a word of the same concept, against the word itself
MISSPELT = 0.5  # weight of the words nearest to one that occurs nowhere
SATURATION, LENGTH = 1.2, 0.5  # of BM25: how soon repetition stops to count, and how much long texts are discounted
BEST_CLAIMS = 3  # claims of a chapter that count for it
MOST_MATCHES = 12
LEAST_SHARE = 0.4  # of the best claim's score, below which a claim does not answer


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


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TextPage:
    """A text of the index: weighted counts of its stems."""

    chapter: Chapter
    claim_id: str
    section: int  # its place in the chapter
    kind: str  # claim, section or chapter
    counts: dict[str, float]
    length: float


def find(text: str) -> LectureMatches:
    """Chapters and claims that answer a question or hold its words; an error with the nearest words where none occurs."""
    stems = [stem for stem in stems_of(text) if stem not in STOP_STEMS]
    known = vocabulary()
    stems += [pair for pair in map("".join, itertools.pairwise(stems)) if pair in known]  # micro batch: micro-batch
    unknown = {stem: near(stem) for stem in stems if stem not in known and stem not in _concept_stems()}
    if not stems or len(unknown) == len(stems):
        words = list(dict.fromkeys(spellings()[word] for words in unknown.values() for word in words))
        offer = f"nearest words: {', '.join(words[:5])}" if words else "try a word such as batch, rack, pipeline, cache or disk"
        raise UnknownName("word of the lecture", clip(text), [], offer)
    readings = _readings(stems) + [dict.fromkeys(stems_near, MISSPELT) for stems_near in unknown.values()]
    scores = [(page, sum(_score(page, reading) for reading in readings)) for page in index()]
    by_claim = sorted(((page, score) for page, score in scores if page.kind == "claim" and score > 0), key=lambda item: -item[1])
    claim_matches = tuple(
        Match(chapter=page.chapter, claim_id=page.claim_id, score=score)
        for page, score in by_claim[:MOST_MATCHES]
        if score >= LEAST_SHARE * by_claim[0][1]
    )
    by_chapter = [Match(chapter=page, claim_id="", score=_chapter_score(page, scores)) for page in chapters()]
    ranked = tuple(match for match in sorted(by_chapter, key=lambda match: -match.score) if match.score > 0)
    about = document("words")["about"]
    remarks = tuple(dict.fromkeys(line for word, line in about.items() if set(stems_of(word)) & set(stems)))
    spelling = {_stem(word.replace("-", "")): word for word in words_of(text)}
    offers = {spelling.get(stem, stem): tuple(spellings()[word] for word in words) for stem, words in unknown.items()}
    passage = None
    if ranked:  # the section of the best chapter that answers best, its claims counted
        best = ranked[0].chapter
        by_section = [0.0] * len(best.sections)
        for page, score in scores:
            if page.chapter is best and page.kind != "chapter":
                by_section[page.section] = max(by_section[page.section], score)
        passage = best.sections[by_section.index(max(by_section))]
    return LectureMatches(chapters=ranked, claims=claim_matches, passage=passage, unknown=offers, remarks=remarks)


def _chapter_score(chapter: Chapter, scores: Iterable[tuple[TextPage, float]]) -> float:
    """A chapter's own words, its best section, and a part of its best claims."""
    by_kind: dict[str, list[float]] = {"chapter": [0.0], "section": [0.0], "claim": [0.0]}
    for page, score in scores:
        if page.chapter is chapter:
            by_kind[page.kind].append(score)
    best_claims = sorted(by_kind["claim"], reverse=True)[:BEST_CLAIMS]
    return max(by_kind["chapter"]) + max(by_kind["section"]) + sum(best_claims) / BEST_CLAIMS


# -- words ----------------------------------------------------------------------------------------------------------------------


def stems_of(text: str) -> list[str]:
    """Stems of a text in order: lower case, numbers in one spelling, endings cut.

    >>> stems_of("Why does fast mode cost 6x, at 2,400 sequences?")
    ['why', 'doe', 'fast', 'mode', 'cost', '6', 'at', '2400', 'sequenc']
    >>> stems_of("pipelining over-trained spinning disks"), stems_of("200,000 tokens"), stems_of("200k tokens")
    (['pipelin', 'overtrain', 'spin', 'disk'], ['200k', 'token'], ['200k', 'token'])
    """
    return [_stem(word.replace("-", "")) for word in words_of(text)]


def words_of(text: str) -> list[str]:
    """Words of a text in lower case, numbers in one spelling."""
    plain = re.sub(r"(?<=\d),(?=\d{3})", "", text.lower()).replace("'", "").replace("\u2019", "")
    plain = re.sub(r"\b(\d+(?:\.\d+)?) ([kmbt])\b", r"\1\2", plain)
    plain = re.sub(r"\b(\d+)000\b(?!\d)", lambda match: f"{match[1]}k" if len(match[1]) > 1 else match[0], plain)
    plain = re.sub(r"\b(\d+(?:\.\d+)?)[x\u00d7](?![a-z])", r"\1 ", plain)
    return re.findall(r"\w+(?:-\w+)*(?:\.\d+)?", plain)


def _stem(word: str) -> str:
    if len(word) <= 3 or word[0].isdigit():
        return word
    for ending, least in (("ies", 3), ("ing", 3), ("ed", 3), ("es", 4), ("s", 3), ("er", 4), ("ly", 3)):
        if word.endswith(ending) and len(word) - len(ending) >= least and not word.endswith(("ss", "us", "is")):
            root = word[: -len(ending)] + ("y" if ending == "ies" else "")
            if ending in ("ing", "ed", "er", "es"):
                doubled = len(root) > 3 and root[-1] == root[-2] and root[-1] not in "lsz"  # the consonant before the ending
                return (root[:-1] if doubled else root).removesuffix("e")
            return root.removesuffix("e") if len(root) > 5 else root
    return word.removesuffix("e") if len(word) > 5 else word


STOP_STEMS = frozenset(stems_of(document("words")["stop_words"]))


@functools.cache
def _concepts() -> tuple[tuple[tuple[str, ...], ...], ...]:
    """Concepts, each a tuple of terms, each a tuple of stems."""
    return tuple(tuple(tuple(stems_of(term)) for term in concept) for concept in document("words")["concepts"])


@functools.cache
def _concept_stems() -> frozenset[str]:
    return frozenset(stem for concept in _concepts() for term in concept for stem in term)


def _readings(stems: list[str]) -> list[dict[str, float]]:
    """For each stem of a query what may stand for it: itself, and at a lower weight the words of its concepts."""
    concepts = [concept for concept in _concepts() if any(_holds(stems, term) for term in concept)]
    readings = []
    for stem in dict.fromkeys(stems):
        reading = {stem: 1.0}
        for concept in concepts:
            if any(stem in term and _holds(stems, term) for term in concept):
                for term in concept:
                    for other_stem in term:
                        reading.setdefault(other_stem, SYNONYM / len(term))
        readings.append(reading)
    return readings


def _holds(stems: list[str], term: tuple[str, ...]) -> bool:
    """Whether a term's stems stand together in a query."""
    return any(tuple(stems[at : at + len(term)]) == term for at in range(len(stems) - len(term) + 1))


def near(stem: str) -> list[str]:
    """Stems of the lecture nearest to one that does not occur."""
    return nearest(stem, sorted(word for word in vocabulary() if len(word) > 2))


# -- index ----------------------------------------------------------------------------------------------------------------------


@functools.cache
def index() -> tuple[TextPage, ...]:
    """Every claim, section and chapter as a weighted bag of stems."""
    return tuple(page for chapter in chapters() for page in _pages(chapter))


def _pages(chapter: Chapter) -> Iterator[TextPage]:
    yield _page(chapter, 0, "", "chapter", ((chapter.title, 2.0), (chapter.says, 1.0), (" ".join(chapter.words), 1.5)))
    for number, section in enumerate(chapter.sections):
        yield _page(chapter, number, "", "section", ((section.title, 2.0), (section.text, 1.0)))
        for claim_id, statement in section.statements.items():
            yield _page(chapter, number, claim_id, "claim", _claim_fields(claim_id, statement, section))


def _claim_fields(claim_id: str, statement: str, section: Section) -> tuple[tuple[str, float], ...]:
    claim = claims()[claim_id]
    return (statement, 2.0), (claim.claim, 1.0), (claim.note, 0.7), (claim.stated_text, 0.7), (section.title, 0.7), (claim.title, 0.5)


def _page(chapter: Chapter, section: int, claim_id: str, kind: str, weighted_texts: Iterable[tuple[str, float]]) -> TextPage:
    counts: Counter[str] = Counter()
    for text, weight in weighted_texts:
        for stem in stems_of(text):
            if stem not in STOP_STEMS:
                counts[stem] += weight  # type: ignore[assignment]
    return TextPage(chapter=chapter, section=section, claim_id=claim_id, kind=kind, counts=dict(counts), length=sum(counts.values()))


@functools.cache
def spellings() -> dict[str, str]:
    """A word of the index for each stem: the shortest."""
    words: dict[str, str] = {}
    for chapter in chapters():
        texts = [chapter.title, chapter.says, " ".join(chapter.words)]
        for section in chapter.sections:
            texts += (section.title, section.text)
            texts += [text for claim_id, statement in section.statements.items() for text, _ in _claim_fields(claim_id, statement, section)]
        for word in (word for text in texts for word in words_of(text)):
            stem = _stem(word.replace("-", ""))
            words[stem] = min(words.get(stem, word), word, key=len)
    return words


@functools.cache
def vocabulary() -> dict[str, float]:
    """Stems of the index, each with its weight: rare ones weigh more (inverse document frequency)."""
    frequency = Counter(stem for page in index() for stem in page.counts)
    total = len(index())
    return {stem: math.log(1 + (total - count + 0.5) / (count + 0.5)) for stem, count in frequency.items()}


@functools.cache
def _mean_length(kind: str) -> float:
    lengths = [page.length for page in index() if page.kind == kind]
    return sum(lengths) / len(lengths)


def _score(page: TextPage, reading: dict[str, float]) -> float:
    """BM25 of a page for one word of a query, by whichever word stands for it best."""
    rarity, norm = vocabulary(), SATURATION * (1 - LENGTH + LENGTH * page.length / _mean_length(page.kind))
    return max(
        (
            weight * rarity[stem] * page.counts[stem] * (SATURATION + 1) / (page.counts[stem] + norm)
            for stem, weight in reading.items()
            if stem in page.counts
        ),
        default=0.0,
    )

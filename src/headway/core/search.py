"""Search in plain words over everything that answers: laws, claims, chapters, verbs, models, chips, worked problems, pages of docs.

A page of the index (data/search/index.json, written by tools/search_index.py) is a bag of weighted stems, its sentence and a command. Words
of a query are weighed by how rare they are (BM25), none is required; words of one concept stand for each other at a lower weight.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from importlib.resources import files

from headway.core.errors import nearest
from headway.core.stems import (
    Concept,
    concepts_in,
    foreign_stems,
    holds,
    is_name,
    parts_of,
    stem_of,
    stems_of,
    stop_stems,
    talk_stems,
    weight,
)

SYNONYM, LONE_SYNONYM = 0.4, 0.7  # weight of a word of the same concept, against the word itself; where that occurs nowhere
MISSPELT, NEAR, LEAST_WORD = 0.5, 0.8, 5  # weight of words nearest to one that occurs nowhere, how alike they are, its letters
SATURATION, LENGTH = 1.2, 0.5  # of BM25: how soon repetition stops to count, and how much long pages are discounted
LEAST_COUNT = 0.5  # weight from which a page counts where the rarity of a stem is taken
UNKNOWN = 0.8  # weight of a word that occurs nowhere, against the rarest
FOREIGN = 2.0  # of a word of a subject that nothing here treats
TOGETHER, LONGEST = 0.5, 3  # weight of words that the index writes as one, beside those words alone; how many at most
MOST_WORDS = 60  # of a query that are read
SHORT = 4  # words of a query that a page should answer whole; of longer ones it answers as much of the square root
LEAST_SHARE = 0.25  # of a query's weight, below which nothing answers it
LEAST_KNOWN, LEAST_OF_UNKNOWN = 0.7, 0.37  # share of it that known words have, and the least share where they have less
PHRASE = 1.0  # how much more a page counts of which a phrase has the query's words and no others
NAME_FIT = 0.5  # of a page that is found by name
NEAR_BEST = 0.4  # of the best score, below which a page of one kind is left out


@dataclasses.dataclass(frozen=True, slots=True)
class IndexPage:
    """What a search may answer with: its kind and name, what it says, the command that shows it, and its stems by weight."""

    kind: str
    name: str
    says: str
    command: str
    counts: dict[str, float]
    phrases: str  # stems of its name, its sentence and each thing that people call it, with | between them
    section: str = ""  # of the lecture: chapter, and place in it

    @property
    def length(self) -> float:
        """Weight of all its stems."""
        return sum(self.counts.values())


@dataclasses.dataclass(frozen=True, slots=True)
class PageMatch:
    """A page that a search met, its score, and the share of the query's weight that it answers, 0 to 1, more forgiving of long ones."""

    page: IndexPage
    score: float
    share: float


@dataclasses.dataclass(frozen=True, slots=True)
class Query:
    """A query as it is read in the pages of some kinds."""

    kinds: tuple[str, ...]
    stems: tuple[str, ...]
    readings: tuple[dict[str, float], ...]  # for each stem what may stand for it, by weight
    rarities: tuple[float, ...]  # of each stem
    compounds: tuple[dict[str, float], ...]  # words that the index writes as one
    unknown: dict[str, tuple[str, ...]]  # words that occur nowhere, with the nearest
    known_share: float  # of the query's weight, that of words which occur, or for which others do


# -- index ----------------------------------------------------------------------------------------------------------------------


def bag(weighted_texts: Iterable[tuple[str, float]]) -> dict[str, float]:
    """Stems of texts, each with the sum of its weights."""
    counts: dict[str, float] = {}
    for text, heaviness in weighted_texts:
        for stem in stems_of(text):
            if stem not in stop_stems():
                counts[stem] = counts.get(stem, 0.0) + heaviness
    return {stem: round(count, 2) for stem, count in sorted(counts.items())}


def phrase(text: str) -> str:
    """Stems of a text, each once, without those that say nothing."""
    return " ".join(dict.fromkeys(stem for stem in stems_of(text) if stem not in stop_stems()))


@functools.cache
def pages(kinds: tuple[str, ...] = ()) -> tuple[IndexPage, ...]:
    """Pages of these kinds; of none, all."""
    if kinds:
        return tuple(page for page in pages() if page.kind in kinds)
    return tuple(IndexPage(*row) for row in json.loads((files("headway") / "data" / "search" / "index.json").read_text(encoding="utf-8")))


@functools.cache
def rarity(kinds: tuple[str, ...] = ()) -> dict[str, float]:
    """Stems of the pages of these kinds, each with its weight: rare ones weigh more (inverse document frequency), numbers less."""
    frequency: Counter[str] = Counter()
    for page in pages(kinds):
        frequency.update({stem: int(count >= LEAST_COUNT) for stem, count in page.counts.items()})
    total = len(pages(kinds))
    return {stem: math.log(1 + (total - count + 0.5) / (count + 0.5)) * weight(stem) for stem, count in frequency.items()}


@functools.cache
def _mean_length(kind: str) -> float:
    lengths = [page.length for page in pages((kind,))]
    return sum(lengths) / len(lengths)


@functools.cache
def _vocabulary(kinds: tuple[str, ...]) -> dict[str, str]:
    """Stems of the pages of these kinds that are words, each with its shortest word where a page's sentence has one."""
    spellings = {stem: "" for stem in sorted(rarity(kinds)) if len(stem) > 2 and stem.isalpha()}
    for word in (part for page in pages(kinds) for part in parts_of(page.says)):
        stem = stem_of(word)
        if stem in spellings:
            spellings[stem] = min(spellings[stem] or word, word, key=len)
    return {stem: word or stem for stem, word in spellings.items()}


# -- a query --------------------------------------------------------------------------------------------------------------------


def read(text: str, kinds: tuple[str, ...] = ()) -> Query:
    """What the words of a query may stand for in the pages of these kinds."""
    rarities, typed = rarity(kinds), {stem_of(part): part for part in parts_of(text)}
    words = [stem_of(part) for part in parts_of(text)][:MOST_WORDS]
    spans = [words[at : at + size] for size in range(2, LONGEST + 1) for at in range(len(words) - size + 1)]
    spans = [span for span in spans if "".join(span) in rarities]
    with_stops = ["".join(span) for span in spans if stop_stems() & set(span)]  # all to all: its words count for nothing alone
    passing = stop_stems() | (talk_stems() - rarities.keys())
    stems = tuple(dict.fromkeys([*(stem for stem in words if stem not in passing), *with_stops]))
    compounds = tuple(dict.fromkeys(name for span in spans if (name := "".join(span)) not in stems))
    concepts = list(dict.fromkeys([*concepts_in(words), *(concept for name in compounds for concept in concepts_in([name]))]))
    readings = [_reading(stem, words, concepts, rarities) for stem in stems]
    unknown = [stem for stem, reading in zip(stems, readings, strict=True) if not reading]
    rarest = UNKNOWN * max(rarities.values(), default=1.0)
    heaviness = [
        rarities.get(
            stem, max((rarities[synonym] for synonym in reading), default=rarest * (FOREIGN if stem in foreign_stems() else weight(stem)))
        )
        for stem, reading in zip(stems, readings, strict=True)
    ]
    known_share = sum(part for part, reading in zip(heaviness, readings, strict=True) if reading) / (sum(heaviness) or 1.0)
    return Query(
        kinds=kinds, stems=(*stems, *compounds), rarities=tuple(heaviness), known_share=known_share,
        readings=tuple(reading or _misspelt(stem, kinds) for stem, reading in zip(stems, readings, strict=True)),
        compounds=tuple({name: TOGETHER} for name in compounds),
        unknown={typed.get(stem, stem): tuple(_vocabulary(kinds)[word] for word in nearest(stem, _vocabulary(kinds))) for stem in unknown},
    )  # fmt: skip


def _reading(stem: str, words: Sequence[str], concepts: Sequence[Concept], rarities: dict[str, float]) -> dict[str, float]:
    """A stem and, at a lower weight, the words of the concepts that the query names with it."""
    reading = {stem: 1.0} if stem in rarities else {}
    share = SYNONYM if reading else LONE_SYNONYM
    for concept in concepts:
        if any(stem in term and (len(term) == 1 or holds(words, term)) for term in concept):
            for term in concept:
                for other_stem in set(term) & rarities.keys() - stop_stems() - {stem}:
                    reading[other_stem] = max(reading.get(other_stem, 0.0), share / len(term))
    return reading


def _misspelt(stem: str, kinds: tuple[str, ...]) -> dict[str, float]:
    """Stems that one may be a misspelling of."""
    return dict.fromkeys(nearest(stem, _vocabulary(kinds), likeness=NEAR) if len(stem) >= LEAST_WORD else (), MISSPELT)


# -- scores ---------------------------------------------------------------------------------------------------------------------


def scores(query: Query) -> list[PageMatch]:
    """Every page of a query's kinds with its score, in the order of the index."""
    rarities, matches = rarity(query.kinds), []
    most = sum(query.rarities) * (SATURATION + 1) * min(1.0, SHORT / max(len(query.rarities), 1)) ** 0.5
    for page in pages(query.kinds):
        norm = SATURATION * (1 - LENGTH + LENGTH * page.length / _mean_length(page.kind))
        score = sum(_score(page, reading, rarities, norm) for reading in (*query.readings, *query.compounds))
        fit = max(_fit(page, query, rarities), NAME_FIT * (page.kind in CATALOGUE)) if score else 0.0
        matches.append(PageMatch(page, score * (1 + PHRASE * fit), min(score / most, 1.0) if most else 0.0))
    return matches


def _score(page: IndexPage, reading: dict[str, float], rarities: dict[str, float], norm: float) -> float:
    """BM25 of a page for one word of a query, by whichever word stands for it best."""
    best_score = 0.0
    for stem, share in reading.items():
        count = page.counts.get(stem)
        if count:
            raised = OF_NAME if page.kind in CATALOGUE and is_name(stem) else 1.0
            best_score = max(best_score, share * raised * rarities[stem] * count * (SATURATION + 1) / (count + norm))
    return best_score


def _fit(page: IndexPage, query: Query, rarities: dict[str, float]) -> float:
    """How much the words of a query and of the page's nearest phrase are the same, 0 to 1: a cosine of their rarities."""
    of_query = sum(rarity_of**2 for rarity_of in query.rarities)
    best_fit = 0.0
    for text in page.phrases.split("|"):
        stems = text.split()
        common = sum(
            max((share * rarities[stem] for stem, share in reading.items() if stem in stems), default=0.0) * rarity_of
            for reading, rarity_of in zip(query.readings, query.rarities, strict=True)
        )
        if common:
            best_fit = max(best_fit, common / math.sqrt(of_query * sum(rarities.get(stem, 0.0) ** 2 for stem in stems)))
    return min(best_fit, 1.0)


def answers(query: Query, matches: Iterable[PageMatch]) -> bool:
    """Whether the best of these pages answers enough of a query, more of one whose words are unknown."""
    least = LEAST_SHARE if query.known_share >= LEAST_KNOWN else LEAST_OF_UNKNOWN
    return max((match.share for match in matches), default=0.0) >= least


def near_best(text: str, kind: str) -> list[PageMatch]:
    """Pages of a kind that a query meets nearly as well as the best one, best first; none where that answers too little."""
    query = read(text, (kind,))
    matches = sorted((match for match in scores(query) if match.score > 0), key=lambda match: (-match.score, match.page.name))
    return [match for match in matches if match.score >= NEAR_BEST * matches[0].score] if answers(query, matches) else []


# -- the best of all kinds --------------------------------------------------------------------------------------------------------

CATALOGUE, OF_NAME = ("model", "chip", "rack"), 2.2  # kinds of pages that are found by name, and the weight of a name there
KIND_WEIGHT = {"verb": 1.1, "law": 1.0, "claim": 1.0, "command": 0.9, "model": 0.9, "chip": 0.9, "rack": 0.9, "problem": 0.8,
               "chapter": 0.75, "section": 0.75, "docs": 0.75}  # fmt: skip
AGAIN = 0.93  # weight of a further answer of a kind that stands above
MOST_RANKED = 40


def best(text: str, count: int) -> list[PageMatch]:
    """The best answers of all kinds, each command once, at most one of the catalogue first; none where none answers enough of the query."""
    query = read(text)

    def merit(match: PageMatch) -> float:
        return match.score * KIND_WEIGHT[match.page.kind]

    met = (match for match in scores(query) if match.score > 0)
    rest = sorted(met, key=lambda match: (-merit(match), match.page.kind, match.page.name))[: max(MOST_RANKED, 2 * count)]
    if not answers(query, rest[:count]):
        return []
    top: list[PageMatch] = []
    while rest and len(top) < count:
        above = Counter(match.page.kind for match in top)
        further = [match for match in rest if match.page.kind not in CATALOGUE] if above.keys() & set(CATALOGUE) else rest
        top.append(max(further or rest, key=lambda match: merit(match) * AGAIN ** above[match.page.kind]))
        rest = [match for match in rest if match.page.command != top[-1].page.command]
    return top

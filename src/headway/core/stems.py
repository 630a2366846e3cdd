"""Words of a text as a search reads them: stems, words that say nothing, names, and concepts whose words stand for each other.

The lists stand in data/search/words.toml.
"""

from __future__ import annotations

import functools
import re
import string
import tomllib
from collections.abc import Iterator, Sequence
from importlib.resources import files
from typing import Any

NUMBER = 0.4  # weight of a number, or of a word of talk, against a word as rare
ONE_LETTER = {"thousand": "k", "billion": "b", "trillion": "t"}  # a million stands in prices as a word
NAME = 0.4  # of a name of a model, chip or firm: what is asked of it says more
Term = tuple[str, ...]  # stems that stand together
Concept = tuple[Term, ...]


def words_of(text: str) -> list[str]:
    """Words of a text in lower case, numbers in one spelling.

    >>> words_of("At 2,400 sequences, 200 k tokens of TP8 cost 6x Gemini's 405 billion; learning rates")
    ['at', '2400', 'sequences', '200k', 'tokens', 'of', 'tp', '8', 'cost', '6', 'gemini', '405b', 'learningrates']
    """
    plain = re.sub(r"['\u2019]s?\b|(?<=\d),(?=\d{3})", "", text.lower())
    plain = re.sub(r"\bone (?=trillion|billion)", "1 ", plain)
    plain = re.sub(
        r"\b(\d+(?:\.\d+)?)[ -](?:([kmbt])|(thousand|[bt]illion))\b", lambda match: match[1] + (match[2] or ONE_LETTER[match[3]]), plain
    )
    plain = re.sub(r"\b(\d+)000\b(?!\d)", lambda match: f"{match[1]}k" if len(match[1]) > 1 else match[0], plain)
    plain = _compounds().sub(lambda match: re.sub(r"\W", "", match[0]), plain)
    plain = re.sub(r"\b([tpedc]p)[ =]?(\d+)\b", r"\1 \2", plain)
    plain = re.sub(r"\b(\d+(?:\.\d+)?)[x\u00d7](?![a-z])", r"\1 ", plain)
    return re.findall(r"[^\W_]+(?:-[^\W_]+)*(?:\.\d+)?", plain)


def parts_of(text: str) -> Iterator[str]:
    """Words of a text, one with a hyphen as its parts."""
    return (part for word in words_of(text) for part in word.split("-"))


def stems_of(text: str) -> list[str]:
    """Stems of a text in order; of a word with a hyphen the whole and, behind it, its parts.

    >>> stems_of("pipelining over-trained caches, GPUs utilized")
    ['pipelin', 'overtrain', 'over', 'train', 'cach', 'gpu', 'utilis']
    """
    stems = []
    for word in words_of(text):
        parts = word.split("-")
        stems += map(stem_of, ["".join(parts), *parts] if len(parts) > 1 else parts)
    return stems


@functools.cache
def stem_of(word: str) -> str:
    """A word without the endings that its relatives differ in.

    >>> [stem_of(word) for word in ("queues", "queueing", "queue", "latencies", "batches", "stopped", "transfers", "busier")]
    ['queu', 'queu', 'queu', 'latency', 'batch', 'stop', 'transf', 'busy']
    """
    if len(word) <= 3 or word[0].isdigit():
        return word
    if word.removesuffix("s") in _lists()["whole"].split():
        return word.removesuffix("s")
    word = re.sub(r"i[sz](?:e|ed|es|ing|er|ation|ations)$", "is", word) if len(word) > 6 else word
    if word.endswith(("ies", "ier", "iest")) and len(word) > 5:
        word = re.sub("i(?:es|er|est)$", "y", word)
    elif word.endswith("s") and (word.endswith("pus") or not word.endswith(("ss", "us", "is"))):
        word = word[:-1]
    for ending in ("ing", "ed", "er", "ly"):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("eed"):
            word = word[: -len(ending)]
            if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz":  # the consonant before the ending
                word = word[:-1]
            break
    return word.removesuffix("e") if len(word) > 3 else word


# -- lists ----------------------------------------------------------------------------------------------------------------------


@functools.cache
def _lists() -> dict[str, Any]:
    return tomllib.loads((files("headway") / "data" / "search" / "words.toml").read_text(encoding="utf-8"))


@functools.cache
def _compounds() -> re.Pattern[str]:
    """Words that together name another subject than either."""
    return re.compile(rf"\b(?:{'|'.join(_lists()['compounds']).replace(' ', '[ -]')})s?\b")


@functools.cache
def stop_stems() -> frozenset[str]:
    """Stems that a search leaves out."""
    return frozenset((*stems_of(_lists()["stop_words"]), *string.ascii_lowercase))


@functools.cache
def talk_stems() -> frozenset[str]:
    """Stems that a search leaves out where no page has them."""
    return frozenset(stems_of(_lists()["talk"]))


@functools.cache
def foreign_stems() -> frozenset[str]:
    """Stems of words and compounds that name subjects of which no page is."""
    return frozenset((*stems_of(_lists()["foreign"]), *(stem for compound in _lists()["compounds"] for stem in stems_of(compound))))


@functools.cache
def name_stems() -> frozenset[str]:
    """Stems of names of models, chips and firms."""
    return frozenset(stems_of(_lists()["names"]))


def is_name(stem: str) -> bool:
    """Whether a stem is of a name: it has digits behind letters, or it is listed."""
    return stem in name_stems() or not (stem.isalpha() or stem[0].isdigit())


def weight(stem: str) -> float:
    """Weight of a stem against an ordinary word as rare."""
    return NUMBER if stem[0].isdigit() or stem in talk_stems() else NAME if is_name(stem) else 1.0


@functools.cache
def _concepts() -> dict[str, tuple[Concept, ...]]:
    """Concepts by the stems in them."""
    by_stem: dict[str, tuple[Concept, ...]] = {}
    for terms in _lists()["concepts"]:
        concept = tuple(tuple(map(stem_of, parts_of(term))) for term in terms)
        for stem in dict.fromkeys(stem for term in concept for stem in term):
            by_stem[stem] = (*by_stem.get(stem, ()), concept)
    return by_stem


def concepts_in(stems: Sequence[str]) -> list[Concept]:
    """Concepts of which these stems hold a term."""
    near_by = dict.fromkeys(concept for stem in stems for concept in _concepts().get(stem, ()))
    return [concept for concept in near_by if any(holds(stems, term) for term in concept)]


def holds(stems: Sequence[str], term: Term) -> bool:
    """Whether a term's stems stand together."""
    return any(tuple(stems[at : at + len(term)]) == term for at in range(len(stems) - len(term) + 1))

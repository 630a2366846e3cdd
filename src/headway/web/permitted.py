"""What a request may ask: the verbs that say so (`Question.refresh`), and for each kind of value the texts that are legal.

Nothing here is a path. A field that names a file or a folder, acts or is secret is of no kind here and therefore refused.
"""

from __future__ import annotations

import functools
import re
from typing import Any

from headway import QUESTIONS
from headway.core.catalog import default_catalog, fold
from headway.core.errors import BadValue, HeadwayError, UnknownName
from headway.core.question import QuestionField, question_of
from headway.hardware.system import system
from headway.models.config import shipped_file, spellings

VERBS = tuple(verb for verb in QUESTIONS if question_of(verb).refresh)
HEAVY = tuple(verb for verb in VERBS if question_of(verb).refresh == "on release")  # they search or simulate
LONGEST = 400  # letters of one value

NUMBER = re.compile(r"[$+-]?\d[\w.,+*/$%: -]*|none|all|never|drain")
COUNT = re.compile(r"\d[\d_.]*(?:[eE]\d+)?[kKMG]?")
WORD = re.compile(r"[\w.:,+@-]+")
TEXT = re.compile(r"[^\x00-\x1f\x7f]+")
EDIT = re.compile(r"(?:chip|system)[.][\w-]+=[$+-]?\d[\w.,+*/$% -]*")
LENGTHS = re.compile(r"(?!trace)(?:[a-z]+:)?\d[\w.,+*-]*")
MACHINE = re.compile(r"[\w.+*=$%(), /-]+")
SHEET = re.compile(r"(?i)(?!.*[.](?:toml|json|ya?ml|csv)\b)\w[\w.@+-]*(?:/\w[\w.@+-]*)?(?:,\w[\w.@+/-]*)*")  # a name, never a file
MODEL, SUBJECT, PAIRS = "model", "subject", "pairs"  # names of the catalogue: never a file, never a download
PATTERNS = {
    "number": NUMBER, "count": COUNT, "word": WORD, "text": TEXT, "edit": EDIT, "lengths": LENGTHS, "machine": MACHINE, "sheet": SHEET,
    "manifest": re.compile("k8s"),
}  # fmt: skip


class Refused(HeadwayError):
    """A question that a page may not ask."""


def check_verb(verb: str) -> None:
    """Refused where a verb has no page, with the reason and what to do instead."""
    if verb in QUESTIONS and verb not in VERBS:
        raise Refused(f"headway {verb} has no page: {question_of(verb).no_page}.")


def kind_of(flag: QuestionField) -> Any:
    """Kind of a flag's values: choices, a pattern, MODEL, PAIRS or SUBJECT; None where a request may not give it."""
    field = flag.field
    if field.kind in ("switch", MODEL, SUBJECT, PAIRS):
        return bool if field.kind == "switch" else field.kind
    return PATTERNS.get(field.kind) if field.kind else field.choices or NUMBER


def check(flag: QuestionField, value: Any) -> None:
    """Raise Refused where a value is not of its flag's kind."""
    kind, word = kind_of(flag), flag.word
    if kind is None:
        raise Refused(f"{word}: a page may not ask that; use the command line")
    if kind is bool:
        if not isinstance(value, bool):
            raise BadValue(word, value, "true or false")
        return
    if isinstance(value, bool) and flag.field.truths:
        return
    for text in value if isinstance(value, list) else [value]:
        if not isinstance(text, str) or not 0 < len(text) <= LONGEST:
            raise BadValue(word, text, f"a text of 1 to {LONGEST} letters")
        _check_text(kind, word, text)


def check_model(text: str) -> None:
    """Raise UnknownName where a text names no model of the catalogue."""
    if not is_model(text):
        raise UnknownName("model", text, models(), "a name of the catalogue")


def _check_text(kind: Any, flag: str, text: str) -> None:
    if isinstance(kind, tuple):
        for part in text.split(","):
            if part.strip().lower() not in kind:
                raise UnknownName(f"{flag} value", part, kind, "one of " + ", ".join(choice for choice in kind if choice))
    elif kind in (MODEL, SUBJECT):
        for name in (part.strip() for part in re.split(r",(?![^()]*\))", text)):
            if not is_model(name) and (kind == MODEL or not is_machine(name)):
                raise UnknownName("model" if kind == MODEL else "model or machine", name, models(), "a name of the catalogue")
    elif kind == PAIRS:
        check_named(flag, text)
    elif not kind.fullmatch(text):
        raise Refused(f"{flag}: a page may not ask for {text[:60]!r}")


def check_named(flag: str, text: str) -> None:
    """KEY=VALUE: each value a number, or a name of the catalogue with a fact behind it."""
    key, equals, value = text.partition("=")
    if not equals or not re.fullmatch(r"[\w-]+", key):
        raise BadValue(flag, text, "KEY=VALUE, such as total=1T")
    for part in value.split(","):
        name = re.sub(r"^\d+[*]", "", part.strip())
        if NUMBER.fullmatch(name) and not re.match(r"\d+x[a-z]", name):
            continue
        owner = name.rpartition(".")[0] or name
        if not any(is_model(known) or is_machine(known) for known in (name, owner)):
            raise UnknownName(f"{flag} value", name, models(), "a number, or a model, chip or system of the catalogue")


@functools.cache
def models() -> frozenset[str]:
    """Every spelling of a model that ships or lies in the user's own catalogue."""
    return frozenset((*spellings(), *default_catalog().files("models")))


def is_model(text: str) -> bool:
    """Whether a text names a model of the catalogue, or is one by numbers: never a file, never a download."""
    bare = re.sub(r":\d+layers?$", "", text.strip())
    return (text.startswith("(") and text.endswith(")")) or fold(bare) in models() or shipped_file(bare) is not None


def is_machine(text: str) -> bool:
    """Whether a text names a machine or a chip of the catalogue."""
    if not MACHINE.fullmatch(text):
        return False
    try:
        system(text)
    except HeadwayError:
        return False
    return True

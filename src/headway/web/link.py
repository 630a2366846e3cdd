"""A command line as the state of a page: `headway web plan deepseek-v3 --on gb200-nvl72` opens the page that asks it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import quote, urlencode

from headway.core.errors import BadValue, UnknownName
from headway.evidence.claims.claim import claims
from headway.evidence.lecture.inputs import cases
from headway.web import pages

CLAIM = re.compile(r"[A-Za-z]{2,3}-\d{1,3}")
CHAPTER = re.compile(r"\d|\+")


def state(words: Sequence[str], flags: Sequence[tuple[str, str]]) -> str:
    """Path and query of the page for a verb with its words and flags; without words the first page."""
    if not words:
        return f"/{pages.names()[0]}"
    first, *rest = words
    if first == "lecture":
        _refuse_unseen(rest, flags)
    if first == "lecture" and rest and CLAIM.fullmatch(rest[0]):
        return _claim(rest[0].upper(), [text for name, text in flags if name == "with"])
    if first == "lecture" and (not rest or CHAPTER.fullmatch(rest[0])):
        return "/blackboard" + (f"?chapter={quote(rest[0])}" if rest else "")
    if first in pages.names() and first not in _views():
        return f"/{first}"
    page, view = _place(first, dict(flags))
    query = [("view", view), *(("w", word) for word in rest), *flags]
    return f"/{page}?{urlencode(query)}"


ON_THE_BOARD = ("with",)  # of the flags of `lecture`; model and machine of the card are chosen there


def _refuse_unseen(words: Sequence[str], flags: Sequence[tuple[str, str]]) -> None:
    """BadValue for what the lecture answers on the command line alone, and the page would leave out."""
    if words[:1] == ["quiz"]:
        raise BadValue("web lecture", "quiz", "headway web lecture, which deals cards; `headway lecture quiz` asks at a terminal")
    unseen = [name for name, _ in flags if name not in ON_THE_BOARD]
    if unseen:
        raise BadValue(f"--{unseen[0]}", "a flag of headway web lecture", f"headway lecture --{unseen[0]}: no page shows it")


def _claim(claim_id: str, changes: list[str]) -> str:
    """A claim on the blackboard with its changed inputs, which are checked here already."""
    if claim_id not in claims():
        raise UnknownName("claim", claim_id, claims())
    if changes:
        cases(claims()[claim_id], changes)
    return "/blackboard?" + urlencode([("claim", claim_id), *(("with", text) for text in changes)])


def _views() -> dict[str, list[tuple[str, str]]]:
    """Verbs that a page asks, each with its pages and views."""
    places: dict[str, list[tuple[str, str]]] = {}
    for page in pages.document():
        for view in page.get("view", ()):
            places.setdefault(view["verb"], []).append((page["name"], view["name"]))
    return places


def _place(verb: str, flags: dict[str, str]) -> tuple[str, str]:
    """Page and view of a verb; a price list has a view of its own."""
    views = _views()
    if verb not in views:
        raise UnknownName("page or verb", verb, [*pages.names(), *views], "one of " + ", ".join(dict.fromkeys([*pages.names(), *views])))
    return next((place for place in views[verb] if place[1] == "sheet" and "sheet" in flags), views[verb][0])

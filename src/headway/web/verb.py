"""Where a question of `headway web [VERB ...]` is on its pages: a command line is the state of a page.

`headway web plan deepseek-v3 --on gb200-nvl72` opens the page that asks it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote, urlencode

from headway.cli import main
from headway.core.errors import BadValue, UnknownName
from headway.core.question import texts_of
from headway.evidence.lecture import inputs
from headway.web import pages, permitted
from headway.web import question as page_question
from headway.web.questions import OWN_FIELDS

CLAIM = re.compile(r"[A-Za-z]{2,3}-\d{1,3}")
CHAPTER = re.compile(r"\d|\+")
ON_THE_BOARD = ("with",)  # of the flags of `lecture`; model and machine of the card are chosen there


def place_of(args: Any) -> str:
    """Path and query of the page for a question of `web`."""
    known, flags = args.flags(), []
    for name, value in args.entries().items():
        if name not in OWN_FIELDS and known[name].field.kind != "file":  # which is dropped on the page
            flags += [(known[name].word.removeprefix("--"), "on" if text is True else text) for text in texts_of(value)]
    return state(list(args.page), flags)


def place_of_command(text: str) -> str:
    """Path and query of the page for a command line as one types it.

    >>> place_of_command("headway law hardware_ratio weight_byte=1")
    '/formulas?view=law&w=hardware_ratio&w=weight_byte%3D1'
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise BadValue("command", text, f"quotes that close ({error})") from None
    words = words[1:] if words[:1] == ["headway"] else words
    if not words or words[0].startswith("-") or words[0] == "web":
        raise BadValue("command", text, "a verb and its flags, such as plan llama-3.1-70b --on 8xh100-sxm --rate 4/s")
    if {"-h", "--help", "--help-all"} & set(words):
        return state(words[:1], [])
    return place_of(main.parsed(["web", *words])[0])


def state(words: Sequence[str], flags: Sequence[tuple[str, str]]) -> str:
    """Path and query of the page for a verb with its words and flags; without words the first page."""
    if not words:
        return f"/{pages.names()[0]}"
    first, *rest = words
    if first == "lecture":
        rest = rest[1:] if rest[:1] == ["quiz"] else rest  # whose cards the blackboard deals
        if rest and CLAIM.fullmatch(rest[0]):
            return _claim(rest[0].upper(), [text for name, text in flags if name in ON_THE_BOARD])
        is_on_the_board = all(name in ON_THE_BOARD for name, _ in flags)  # other flags have a table of claims for their answer
        if is_on_the_board and (not rest or CHAPTER.fullmatch(rest[0])):
            return "/blackboard" + (f"?chapter={quote(rest[0])}" if rest else "")
    views: dict[str, list[tuple[str, str]]] = {}  # of each verb that a page asks, its pages and views
    for page in pages.document():
        for view in page.get("view", ()):
            views.setdefault(view["verb"], []).append((page["name"], view["name"]))
    if first in pages.names() and first not in views:
        return f"/{first}"
    if first not in views:
        permitted.check_verb(first)
        known = list(dict.fromkeys([*pages.names(), *views]))
        raise UnknownName("page or verb", first, known, "one of " + ", ".join(known))
    has_sheet = any(name == "sheet" for name, _ in flags)  # a price list has a view of its own
    page, view = next((place for place in views[first] if place[1] == "sheet" and has_sheet), views[first][0])
    rest = [] if first in page_question.UPLOADS else rest
    return f"/{page}?{urlencode([('view', view), *(('w', word) for word in rest), *flags])}"


def _claim(claim_id: str, changes: list[str]) -> str:
    """A claim on the blackboard with its changed inputs, which are checked here already."""
    from headway.evidence.claims.claim import claims  # of all claims, which few links need

    if claim_id not in claims():
        raise UnknownName("claim", claim_id, claims())
    if changes:
        inputs.cases(claims()[claim_id], changes)
    return "/blackboard?" + urlencode([("claim", claim_id), *(("with", text) for text in changes)])

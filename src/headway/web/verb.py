"""`headway web [VERB ...]`: the verbs as pages in a browser, on this machine; a command line is the state of a page.

`headway web plan deepseek-v3 --on gb200-nvl72` opens the page that asks it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote, urlencode

from headway.core import schema
from headway.core.errors import BadValue, UnknownName
from headway.core.listing import Listing
from headway.core.question import texts_of
from headway.evidence.claims.claim import claims
from headway.evidence.lecture.inputs import cases
from headway.report import output
from headway.web import pages, server
from headway.web.questions import OWN_FIELDS

CLAIM = re.compile(r"[A-Za-z]{2,3}-\d{1,3}")
CHAPTER = re.compile(r"\d|\+")
ON_THE_BOARD = ("with",)  # of the flags of `lecture`; model and machine of the card are chosen there


def run(args: Any) -> output.Answer:
    """Serve until interrupted; with --link print the address."""
    known, flags = args.flags(), []
    for name, value in args.entries().items():
        if name not in OWN_FIELDS:
            flags += [(known[name].word.removeprefix("--"), "on" if text is True else text) for text in texts_of(value)]
    at = state(list(args.page), flags)
    port = int(schema.scalar(args.port, known["port"].field, "--port"))
    if args.link:
        return output.Answer(Listing([]), output.Summary(server.link(args.host, port, at)))
    server.serve(args.host, port, at, args.open)
    return output.Answer(Listing([]), output.Summary("headway web has ended."))


def state(words: Sequence[str], flags: Sequence[tuple[str, str]]) -> str:
    """Path and query of the page for a verb with its words and flags; without words the first page."""
    if not words:
        return f"/{pages.names()[0]}"
    first, *rest = words
    if first == "lecture":
        _refuse_unseen(rest, flags)
        if rest and CLAIM.fullmatch(rest[0]):
            return _claim(rest[0].upper(), [text for name, text in flags if name == "with"])
        if not rest or CHAPTER.fullmatch(rest[0]):
            return "/blackboard" + (f"?chapter={quote(rest[0])}" if rest else "")
    views: dict[str, list[tuple[str, str]]] = {}  # of each verb that a page asks, its pages and views
    for page in pages.document():
        for view in page.get("view", ()):
            views.setdefault(view["verb"], []).append((page["name"], view["name"]))
    if first in pages.names() and first not in views:
        return f"/{first}"
    if first not in views:
        known = [*pages.names(), *views]
        raise UnknownName("page or verb", first, known, "one of " + ", ".join(dict.fromkeys(known)))
    has_sheet = any(name == "sheet" for name, _ in flags)  # a price list has a view of its own
    page, view = next((place for place in views[first] if place[1] == "sheet" and has_sheet), views[first][0])
    return f"/{page}?{urlencode([('view', view), *(('w', word) for word in rest), *flags])}"


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

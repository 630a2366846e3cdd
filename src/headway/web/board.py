"""The blackboard's side of the lecture: chapters, a claim with its inputs and their sliders, flashcards and their marks."""

from __future__ import annotations

import contextlib
import functools
import re
import tomllib
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from headway.core import units
from headway.core.errors import BadValue, HeadwayError, UnknownName
from headway.core.listing import format_value
from headway.evidence import claims as ledger
from headway.evidence.claims.claim import Claim, claims
from headway.evidence.claims.rows import ClaimRow
from headway.evidence.lecture import chapters as lecture
from headway.evidence.lecture import inputs, quiz
from headway.evidence.lecture.inputs import PER_MTOK, InputCase, cases, figures
from headway.report.lecture import chapter_page, law_lines
from headway.web import pages, permitted, verb
from headway.web.drawings import drawing

POINTS = 96
MOST_CARDS = 12
MOST_SLIDERS = 6  # beside a curve
MOST_CHANGES = 32
SPAN = re.compile(r"[.]{2}|,")  # in a range or a list
SEEDS = 1_000_000


def answer(kind: str, request: dict[str, Any]) -> Any:
    """The answer to a question of the blackboard."""
    makers = {"open": _open, "chapter": _chapter, "claim": _claim, "cards": _cards, "grade": _grade, "stop": _stop, "drawing": drawing}
    return makers[kind](request)


def _open(request: dict[str, Any]) -> dict[str, str]:
    """Where the page of a typed command is."""
    return {"at": verb.place_of_command(_text(request, "command", r"[^\x00-\x1f]{1,2000}"))}


def _stop(request: dict[str, Any]) -> dict[str, int]:
    """Where the handle of a slider stands for a value that was typed."""
    texts = [_text(request, name, r"[\w.+-]{1,40}") for name in ("page", "view", "flag", "word")]
    return {"at": pages.nearest_stop(*texts)}


@functools.cache
def stages() -> dict[str, dict[str, Any]]:
    """What each section draws, by its title."""
    text = (files("headway") / "data" / "web" / "board.toml").read_text(encoding="utf-8")
    return {entry["title"]: entry for entry in tomllib.loads(text)["section"]}


def _text(request: dict[str, Any], name: str, pattern: str) -> str:
    value = request.get(name, "")
    if not isinstance(value, str) or not re.fullmatch(pattern, value):
        raise BadValue(name, str(value)[:60], "a chapter or claim of the lecture")
    return value


# -- chapters -------------------------------------------------------------------------------------------------------------------


def _chapter(request: dict[str, Any]) -> dict[str, Any]:
    page = lecture.chapter(_text(request, "chapter", r"\d|\+") or "1")
    rows = {row.id: row for row in ledger.rows()}
    about = lecture.facts()
    counts = dict(zip(("agree", "differ", "open"), lecture.verdict_counts(list(rows.values()), page), strict=True))
    contents = [{"label": entry.label, "title": entry.title, "time": entry.time} for entry in lecture.chapters()]
    sections = [
        {"title": section.title, "paragraphs": section.text.strip().split("\n\n"), "stage": _stage(section.title),
         "claims": [_brief(rows[claim_id]) for claim_id in section.statements]}
        for section in page.sections
    ]  # fmt: skip
    return {
        "lecture": {"title": about.title, "speaker": about.speaker, "host": about.host, "date": about.date, "says": about.says},
        "contents": contents, "label": page.label, "title": page.title, "time": page.time, "says": page.says, "counts": counts,
        "command": f"headway lecture {page.label}", "commands": list(page.commands), "sections": sections,
        "answer": chapter_page(page, [rows[claim_id] for claim_id in page.claim_ids()], {}).headline,
    }  # fmt: skip


def _stage(title: str) -> dict[str, Any] | None:
    """What a section draws, with the sliders and labels of one that asks a verb."""
    entry = stages().get(title)
    if entry is None:
        return None
    stage = {key: value for key, value in entry.items() if key != "title"}
    if "verb" in entry:
        stage["sliders"] = pages._sliders(entry)
        stage["labels"] = {name: pages.label(name) for name in stage["sliders"]}
    return stage


def _brief(row: ClaimRow) -> dict[str, Any]:
    return {
        "id": row.id, "says": lecture.statement(row.id), "stated": lecture.lecture_text(row), "recomputed": lecture.recomputed_text(row),
        "verdict": row.verdict, "cause": row.cause if row.cause != row.verdict else "", "moves": bool(claims()[row.id].inputs),
    }  # fmt: skip


# -- a claim --------------------------------------------------------------------------------------------------------------------


def _claim(request: dict[str, Any]) -> dict[str, Any]:
    """A claim in full: its equation, its verdict, its inputs, and the question of its curve."""
    claim = claims().get(_text(request, "id", r"[A-Za-z]{2,3}-\d{1,3}").upper())
    if claim is None:
        raise UnknownName("claim", str(request.get("id"))[:20], claims())
    row = next(entry for entry in ledger.claim(claim.id))
    before, after = lecture.neighbours(claim.id)
    moving, changes = inputs.moving(claim.id), _changes(claim, request)
    axis = _text(request, "axis", r"[\w-]*")
    if not axis:  # the input with a range or a list, else the claim's own, else one that was left alone
        spans = [name for name, text in changes.items() if SPAN.search(text)]
        free = [name for name in (inputs.axis(claim), *moving) if name not in changes]
        axis = next((name for name in (*spans, *free, *moving) if name in moving), "")
    laws, seen_laws = list[str](), set[str]()  # the laws behind the claim's figures, an indented line each
    for name, value in figures(claim, InputCase(labels={}, values={})).items() if claim.inputs else ():
        laws += law_lines(value, name, 0, seen_laws)
    part = lecture.shown_part(row)
    entries = [_input(claim, name, moving.get(name, []), changes.get(name, "")) for name in claim.inputs]
    along, related = _sliders(entries, axis)
    return _brief(row) | {
        "equation": claim.claim, "chapter": lecture.chapter_of(claim.id).label, "note": claim.note, "source": claim.source,
        "before": before, "after": after, "laws": laws,
        "inputs": entries,
        "subjects": [f"{name}={text}" for name, text in changes.items() if name not in claim.inputs],
        "axis": along, "related": related,
        "explains": part is not None and part.recomputed == row.recomputed,  # `--explain recomputed` unfolds the figure shown
        "command": f"headway lecture {claim.id}",
    }  # fmt: skip


def _sliders(entries: Sequence[dict[str, Any]], axis: str) -> tuple[str, list[str]]:
    """The input along which a claim is drawn, and those with a slider beside it: they move the same figures, first those that were set."""
    stopped = [entry for entry in entries if entry["stops"]]
    along = next((entry for entry in stopped if entry["name"] == axis), next(iter(stopped), None))
    if along is None:
        return "", []
    near = [entry for entry in stopped if entry is not along and {*entry["changes"]} & {*along["changes"]}]
    return along["name"], [entry["name"] for entry in sorted(near, key=lambda entry: not entry["word"])][:MOST_SLIDERS]


def _changes(claim: Claim, request: dict[str, Any]) -> dict[str, str]:
    """Changed inputs of a request by name, each a number, a range, or a name of the catalogue."""
    changes = request.get("with", [])
    if not isinstance(changes, list) or len(changes) > MOST_CHANGES:
        raise BadValue("with", "a list", f"at most {MOST_CHANGES} inputs NAME=VALUE")
    for text in changes:
        if not isinstance(text, str) or len(text) > permitted.LONGEST:
            raise BadValue("with", "an input", "NAME=VALUE")
        permitted.check_named("--with", text)
    if changes:
        cases(claim, changes)
    return {name.replace("-", "_"): text for name, _, text in (change.partition("=") for change in changes)}


def _input(claim: Claim, name: str, changes: list[str], word: str = "") -> dict[str, Any]:
    """An input with its value, source and stops, the word of the user's among them; as an axis, the range that the command line takes."""
    value = claim.inputs[name]
    stops, at = _stops(name, float(value), value.unit) if changes else ([], 0)
    span, is_axis = inputs.span(claim, name) if stops else "", bool(SPAN.search(word))
    if is_axis:
        span = word
    elif word and stops:
        with contextlib.suppress(HeadwayError):  # a name such as h100.hbm_bw has no place on a slider
            stops, at = pages.with_stop(stops, word, value.unit)
    return {
        "name": name, "label": inputs.input_words(claim, name), "text": format_value(float(value), value.unit), "source": value.source,
        "date": value.date, "changes": changes, "stops": stops, "at": at, "span": span,
        "word": "" if is_axis else word,
    }  # fmt: skip


def _stops(name: str, value: float, unit: str) -> tuple[list[dict[str, str]], int]:
    """Stops of a slider over an input's ends, the lecture's value among them, and its place."""
    low, high, step = inputs.ends(name, value)
    if step:
        values = sorted({*(low + step * place for place in range(round((high - low) / step) + 1)), value})
    else:
        spaced = [value * (high / low) ** (place / POINTS - 0.5) for place in range(POINTS + 1)]
        values = [float(f"{entry:.{pages.SIGNIFICANT}g}") for entry in spaced]  # so that a stop's text is the word of the command
    at = min(range(len(values)), key=lambda place: abs(values[place] - value))
    words = [inputs.word(entry, unit) for entry in values]
    try:
        for word in words if unit not in PER_MTOK else ():
            units.parse(word, unit, "slider")
    except HeadwayError:
        return [], 0
    return [{"word": word, "text": format_value(entry, unit)} for word, entry in zip(words, values, strict=True)], at


# -- flashcards -----------------------------------------------------------------------------------------------------------------


def _hand(request: dict[str, Any]) -> list[quiz.QuizCard]:
    seed = request.get("seed", 1)
    if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed < SEEDS:
        raise BadValue("seed", str(seed)[:20], f"a whole number below {SEEDS:,}")
    return quiz.hand(_text(request, "chapter", r"\d|\+|"), lambda _: 0, MOST_CARDS, seed)


def _cards(request: dict[str, Any]) -> list[dict[str, Any]]:
    """Cards without their answers."""
    return [{"kind": card.kind, "question": card.question, "inputs": list(card.inputs), "claim": card.claim_id} for card in _hand(request)]


def _grade(request: dict[str, Any]) -> dict[str, Any]:
    """Whether an answer is right, and the answer; a sentence is judged by the reader, and what cannot be read is asked for again."""
    cards, place, text = _hand(request), request.get("card", 0), request.get("text", "")
    if not isinstance(place, int) or isinstance(place, bool) or not 0 <= place < len(cards):
        raise BadValue("card", str(place)[:20], f"a number below {len(cards)}")
    if not isinstance(text, str) or len(text) > 200:
        raise BadValue("text", str(text)[:20], "an answer of at most 200 letters")
    card = cards[place]
    try:
        right = None if card.kind == quiz.SENTENCE or not text.strip() else quiz.judge(card, text)
    except BadValue as error:
        return {"unread": str(error)}
    figure = quiz.derivation(card)
    lines = [] if figure is None else list(law_lines(figure, card.figure, 0, set()))
    return {"right": right, "answer": card.answer_text, "laws": lines, "claim": card.claim_id, "says": lecture.statement(card.claim_id)}

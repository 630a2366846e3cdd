"""`headway lecture`: chapters, a chapter, a claim, a search, other inputs, a model's card and bridge, disputed points, flashcards."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import Any

from headway.answers import lecture_pictures
from headway.core.errors import BadValue
from headway.core.listing import Listing, clean
from headway.core.quantity import known
from headway.evidence import claims as ledger
from headway.evidence.claims.claim import claims
from headway.evidence.claims.rows import ClaimRow
from headway.evidence.lecture import chapters as lecture
from headway.evidence.lecture.disputed import claim_rows, disputed_points
from headway.report import lecture as words
from headway.report import output
from headway.report.lecture_claim import words as claim_words

FIGURES = ("recomputed", "today", "stated", "reference")
VIEW = ("id", "says", "stated", "recomputed", "unit", "verdict", "cause", "note")
CODE = re.compile(r"[A-Za-z]{2,3}-?\d+")
CHAPTER = re.compile(r"\d{1,2}|\+")


def run(args: Any) -> output.Answer:
    """Answer with the page that was asked for."""
    text = " ".join(args.what).strip()
    if args.model or args.on or args.bridge:
        from headway.answers.lecture_card import run as card

        return card(args, args.model)
    if args.with_:
        from headway.answers.lecture_inputs import run as other_inputs

        return other_inputs(text, args.with_)
    if args.what[:1] == ("quiz",) or args.forget:
        from headway.answers.lecture_quiz import run as quiz

        return quiz(args)
    if args.disputed:
        return _disputed()
    if args.find is not None:
        return _search(args.find)
    if CHAPTER.fullmatch(text):
        return _chapter(text)
    is_group = text.upper() in {claim.group for claim in claims().values()}
    return _claims(text) if not text or is_group or CODE.fullmatch(text) else _search(text)


def _claims(text: str) -> output.Answer:
    """All claims under the table of chapters, a group, or one claim."""
    rows = ledger.claim(text) if text else ledger.rows()

    def describe(table: Any) -> output.Summary:
        if not text and len(table) == len(rows):
            return words.front_page(rows)
        return _counts(list(table))

    return output.Answer(_listing(rows), describe=describe, describes_none=True, pictures=lecture_pictures.pictures(rows), most=1000)


def _chapter(label: str) -> output.Answer:
    page = lecture.chapter(label)
    by_id = {row.id: row for row in ledger.rows()}
    rows = [by_id[claim_id] for claim_id in page.claim_ids()]

    def describe(table: Any) -> output.Summary:
        return words.chapter_page(page, rows) if len(table) == len(rows) else _counts(list(table))

    return output.Answer(_listing(rows), describe=describe, describes_none=True, most=1000)


def _search(text: str) -> output.Answer:
    from headway.evidence.lecture.search import find

    result = find(text)
    rows = [row for match in result.claims for row in ledger.claim(match.claim_id)]
    return output.Answer(_listing(rows), describe=lambda _: words.search_page(result, rows), describes_none=True, most=1000)


def _disputed() -> output.Answer:
    rows = [
        {"topic": point.topic, "versions": list(point.versions), "right": point.right, "reason": point.reason,
         "claims": [_brief(row) for row in claim_rows(point)]}
        for point in disputed_points()
    ]  # fmt: skip
    return output.Answer(Listing(rows), words.disputed_page(disputed_points()), most=100)


def _brief(row: ClaimRow) -> dict[str, Any]:
    fields = ("id", "stated", "recomputed", "unit", "verdict")
    return {**{key: getattr(row, key) for key in fields}, **words.claim_fields(row.id)}


def _listing(rows: Sequence[ClaimRow]) -> Listing:
    return Listing([{**clean(dataclasses.asdict(row)), **words.claim_fields(row.id)} for row in rows], tree=_tree)


def _counts(rows: list[dict[str, Any]]) -> output.Summary:
    """One claim in full, or the count of verdicts above a table."""
    if len(rows) == 1:
        return claim_words(rows[0])
    verdicts = [row["verdict"] for row in rows]
    counts = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in dict.fromkeys(verdicts))
    titles = ", ".join(f"{group}: {title}" for group, title in dict.fromkeys((row["group"], claims()[row["id"]].title) for row in rows))
    headline = f"{len(rows)} claims of the lecture: {counts}" if rows else "no claim of the lecture is left"
    return output.Summary(headline, VIEW, [titles] if rows else [])


def _tree(row: Any, key: str) -> Any:
    """Formula tree of a claim's figure: of the first part that decides the verdict."""
    if key not in FIGURES or row[key] is None:
        raise BadValue("--explain", key, "a figure that the claim has: " + ", ".join(FIGURES))
    if key in ("stated", "reference"):
        return known(row[key], f"{row['id']} as {key}", row["unit"], "claim", row["source"])
    parts = ledger.explain(row["id"], today=key == "today")
    names = [part["name"] for part in row["parts"] if part[key] == row[key]]
    return parts[names[0] if names else next(iter(parts))]

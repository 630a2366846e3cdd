"""Words of `headway find`: the best answer as the sentence; of each its command, and below it what that shows."""

from __future__ import annotations

from headway.core.errors import clip
from headway.core.listing import Listing, Rows
from headway.report.output import Summary

NOTHING = "Nothing here answers this: headway knows speed, size and cost of language models on chips; other words may find it."
NAMELESS = ("problem", "command", "docs")  # whose sentence says it all
MOST_LETTERS = 150  # of the first sentence


def describe(rows: Rows) -> Summary:
    """Summary of the answers, best first."""
    answers = list(rows)
    if not answers:
        return Summary(NOTHING)
    after = [line for row in answers for line in (row["command"], f"    {row['kind']}: {row['says']}")]
    first = answers[0]
    name = "" if first["kind"] in NAMELESS else f" {first['name']}"
    headline = clip(f"{first['kind'].capitalize()}{name}: {first['says']}", MOST_LETTERS)
    return Summary(headline, after=after, people=Listing([]))

"""`headway lecture [ID or GROUP]`: the claims ledger."""

from __future__ import annotations

import dataclasses
from typing import Any

from headway import ledger, output
from headway.cli import claim
from headway.errors import BadValue
from headway.listing import Listing
from headway.quantity import known

FIGURES = ("recomputed", "today", "stated", "reference")
VIEW = ("id", "claim", "stated", "recomputed", "unit", "verdict", "cause", "note")


def add_flags(parser: Any) -> None:
    """Which claims."""
    parser.add_argument("claim", nargs="?", default="", metavar="ID|GROUP", help="one claim (RB-10) or one group (RB)")


def run(args: Any) -> output.Answer:
    """The rows of the ledger, or of one claim or group."""
    claim_rows = ledger.claim(args.claim) if args.claim else ledger.rows()
    rows = [output.clean(dataclasses.asdict(row)) for row in claim_rows]
    return output.Answer(Listing(rows, tree=_tree), describe=_words, most=1000)


def _words(rows: Any) -> output.Summary:
    """One claim in full, or a table of many under the count of their verdicts."""
    claims = list(rows)
    if len(claims) == 1:
        return claim.words(claims[0])
    verdicts = [row["verdict"] for row in claims]
    counts = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in dict.fromkeys(verdicts))
    return output.Summary(f"{len(claims)} claims of the lecture: {counts}" if claims else "no claim of the lecture is left", VIEW)


def _tree(row: Any, key: str) -> Any:
    """What is behind a claim's figure: that of its first part that the verdict rests on."""
    if key not in FIGURES or row[key] is None:
        raise BadValue("--explain", key, "a figure that the claim has: " + ", ".join(FIGURES))
    if key in ("stated", "reference"):
        return known(row[key], f"{row['id']} as {key}", row["unit"], "claim", row["source"])
    parts = ledger.explain(row["id"], today=key == "today")
    names = [part["name"] for part in row["parts"] if part[key] == row[key]]
    return parts[names[0] if names else next(iter(parts))]

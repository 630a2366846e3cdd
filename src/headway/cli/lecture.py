"""`headway lecture [ID or GROUP]`: the claims ledger."""

from __future__ import annotations

from typing import Any

from headway import ledger, output
from headway.errors import UnknownName
from headway.listing import Listing

VIEW = ("id", "claim", "stated", "recomputed", "unit", "verdict", "cause", "note")


def add_flags(parser: Any) -> None:
    """Which claims."""
    parser.add_argument("claim", nargs="?", default="", metavar="ID|GROUP", help="one claim (RB-10) or one group (RB)")


def run(args: Any) -> output.Answer:
    """The rows of the ledger, or of one claim or group."""
    rows = output.clean(list(ledger.rows()))
    wanted = args.claim.upper()
    if wanted:
        known = {row["id"] for row in rows} | {row["id"].partition("-")[0] for row in rows}
        if wanted not in known:
            raise UnknownName("claim or group", args.claim, [name.lower() for name in sorted(known)], "such as RB-10 or RB")
        rows = [row for row in rows if wanted in (row["id"], row["id"].partition("-")[0])]
    verdicts = [str(row["verdict"]) for row in rows]
    counts = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in dict.fromkeys(verdicts))
    return output.Answer(Listing(rows), headline=f"{len(rows)} claims of the lecture: {counts}", view=VIEW, most=1000)

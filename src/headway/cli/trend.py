"""`headway trend chips`."""

from __future__ import annotations

from typing import Any

from headway import output
from headway.cli import subjects
from headway.errors import UnknownName
from headway.listing import Listing


def add_flags(parser: Any) -> None:
    """What to follow through the generations."""
    parser.add_argument("what", metavar="chips")


def run(args: Any) -> output.Answer:
    """One row per chip, by year."""
    if args.what != "chips":
        raise UnknownName("trend", args.what, ("chips",), "chips")
    from headway.trend import COLUMNS, trend_chips

    rows = output.clean(list(trend_chips(subjects.catalog(args))))
    return output.Answer(Listing(rows), headline="what each generation of chips changed; - where a fact is not public", most=1000, columns=COLUMNS)

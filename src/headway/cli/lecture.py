"""`headway lecture [ID or GROUP]`: the claims ledger."""

from __future__ import annotations

import dataclasses
from typing import Any

from headway import ledger, output
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
    found = ledger.claim(args.claim) if args.claim else ledger.rows()
    rows = [output.clean(dataclasses.asdict(row)) for row in found]
    verdicts = [row["verdict"] for row in rows]
    counts = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in dict.fromkeys(verdicts))
    headline = f"{rows[0]['id']} {rows[0]['verdict']}" if len(rows) == 1 else f"{len(rows)} claims of the lecture: {counts}"
    detail = _detail(rows[0]) if len(rows) == 1 else ()
    return output.Answer(Listing(rows, tree=_tree), words=output.Words(headline, VIEW, detail), most=1000)


def _detail(row: dict[str, Any]) -> list[str]:
    """One claim in full: what was said, where, and each of its figures."""
    keys = ("stated", "reference", "recomputed", "today", "verdict")
    lines = [f"as stated: {row['stated_text'] or '-'}   [{row['source']}]"]
    for part in row["parts"]:
        figures = ", ".join(f"{key} {output.shown(part[key], '')}" for key in keys if part[key] not in (None, ""))
        lines.append(f"{part['name']} ({part['unit'] or 'a number'}): {figures}")
    return lines


def _tree(row: Any, key: str) -> Any:
    """What is behind a claim's figure: that of its first part that the verdict rests on."""
    if key not in FIGURES or row[key] is None:
        raise BadValue("--explain", key, "a figure that the claim has: " + ", ".join(FIGURES))
    if key in ("stated", "reference"):
        return known(row[key], f"{row['id']} as {key}", row["unit"], "claim", row["source"])
    parts = ledger.explain(row["id"], today=key == "today")
    shown = [part["name"] for part in row["parts"] if part[key] == row[key]]
    return parts[shown[0] if shown else next(iter(parts))]

"""`headway mcp`: the verbs as tools of an assistant, on standard input and output."""

from __future__ import annotations

from typing import Any

from headway.core.columns import Column
from headway.core.listing import Listing
from headway.report import output

COLUMNS = {"tool": Column("", "name of the tool"), "answers": Column("", "what the tool answers")}


def add_flags(parser: Any) -> None:
    """Flags of the verb."""
    parser.add_argument("--list", action="store_true", help="only list the tools")


def run(args: Any) -> output.Answer:
    """Serve until the assistant leaves; nothing but the protocol goes to standard output."""
    from headway.web import tools

    if args.list:
        rows = [{"tool": name, "answers": sentence} for name, sentence in tools.sentences().items()]
        headline = f"{len(rows)} tools for an assistant; its settings take the command: headway mcp."
        return output.Answer(Listing(rows), output.Summary(headline), columns=COLUMNS)
    tools.serve()
    return output.Answer(Listing([]), output.Summary(), document="\n")

"""`headway price ...`: cost to price at a layout; a sheet read backwards; dated sheets; a published day; the share of memory."""

from __future__ import annotations

from typing import Any

from headway import output
from headway.cli import price_case, price_cost, price_history, price_memory, price_score, price_sheet
from headway.cli.flags import Usage

ASKS = (
    "wants a model and --on MACHINE (what its tokens cost and sell for), --sheet NAME (what a sheet implies), --history WHOSE, "
    "--score PRICES.csv, --case NAME or --memory-share MACHINE"
)


def add_flags(parser: Any) -> None:
    """The flags of every question that the verb answers."""
    parser.add_argument("model", nargs="?", default="", help="catalogue name, config.json or Hugging Face id; several with commas")
    parser.add_argument("--on", default="", metavar="MACHINE", help="gb200-nvl72, 8xh100-sxm, ...; several with commas")
    price_cost.add_flags(parser)
    price_sheet.add_flags(parser)
    price_score.add_flags(parser)
    price_history.add_flags(parser)
    price_case.add_flags(parser)
    price_memory.add_flags(parser)


def run(args: Any) -> output.Answer:
    """The answer to the one question asked."""
    questions = {
        "--sheet": args.sheet,
        "--score": args.score,
        "--history": args.history,
        "--case": args.case,
        "--memory-share": args.memory_share,
        "a model": args.model,
    }
    asked = [name for name, value in questions.items() if value]
    if len(asked) > 1:
        raise Usage(f"{' and '.join(asked)} are questions of their own: give one")
    if args.sheet:
        return price_sheet.run(args)
    if args.score:
        return price_score.run(args)
    if args.history:
        return price_history.run(args)
    if args.case:
        return price_case.run(args)
    if args.memory_share:
        return price_memory.run(args)
    if not args.model or not args.on:
        raise Usage(f"headway price {ASKS}; see headway price --help")
    return price_cost.run(args)

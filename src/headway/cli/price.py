"""`headway price ...`: cost and price at a layout; a price sheet inverted; dated sheets; a published day; the share of memory."""

from __future__ import annotations

import argparse
from typing import Any

from headway.cli import price_case, price_cost, price_history, price_memory, price_score, price_sheet
from headway.cli.verb import Usage
from headway.core import schema
from headway.report import output

ASKS = (
    "wants a model and --on MACHINE (what its tokens cost and sell for), --sheet NAME (what a sheet implies), --history WHOSE, "
    "--score PRICES.csv, --case NAME or --memory-share MACHINE"
)
MODES = (
    ("MODEL --on MACHINE [flags]", "cost per token, at which price of a chip, use and margin"),
    ("--sheet NAME [flags]", "what a price sheet implies of model and machine"),
    ("--history WHOSE", "dated sheets of a provider, a family or a model"),
    ("--score PRICES.csv [flags]", "what sheets imply, beside models whose architecture is published"),
    ("--case NAME", "a published day of a service, recomputed"),
    ("--memory-share MACHINE [flags]", "share of a machine's cost that is memory"),
)
MODEL = "model"
QUESTIONS: dict[str, Any] = {  # argument -> module of its question, in the order of --help
    MODEL: price_cost, "sheet": price_sheet, "score": price_score, "history": price_history, "case": price_case,
    "memory_share": price_memory,
}  # fmt: skip
ASSUME_KEYS = {"chip_price": "price", "utilisation": "utilisation", "margin": "margin"}  # cost flag -> key of --assume for a sheet


def add_flags(parser: Any) -> None:
    """Flags of all questions of the verb."""
    parser.add_argument(MODEL, nargs="?", default="", help="catalogue name, config.json or Hugging Face id; several with commas")
    parser.add_argument("--on", default="", metavar="MACHINE", help="gb200-nvl72, 8xh100-sxm, ...; several with commas")
    for question in QUESTIONS.values():
        question.add_flags(parser)


def run(args: Any) -> output.Answer:
    """Answer to the question that the flags ask."""
    questions = [name for name in QUESTIONS if getattr(args, name)]
    if len(questions) > 1:
        beside = "; --at-sheet NAME sets a model's cost beside a sheet" if {MODEL, "sheet"} <= set(questions) else ""
        raise Usage(f"{' and '.join(sorted(map(_question_name, questions)))} are questions of their own: give one{beside}")
    if not questions or (questions == [MODEL] and not args.on):
        raise Usage(f"headway price {ASKS}; see headway price --help")
    _check(args, questions[0])
    return QUESTIONS[questions[0]].run(args)


def _question_name(question: str) -> str:
    return "a model" if question == MODEL else schema.flag(question)


def _check(args: Any, topic: str) -> None:
    """Raise an error for a flag of another question, which would be ignored."""
    for name, question in QUESTIONS.items():
        if name != topic:
            parser = argparse.ArgumentParser(add_help=False)
            question.add_flags(parser)
            extra = [key for key, value in vars(parser.parse_args([])).items() if getattr(args, key) != value]
            extra += ["on"] if name == MODEL and args.on else []
            if extra:
                hint = f"; --assume {ASSUME_KEYS[extra[0]]}=... takes it as known" if topic == "sheet" and extra[0] in ASSUME_KEYS else ""
                raise Usage(
                    f"{schema.flag(extra[0])} says nothing beside {_question_name(topic)}: it goes with {_question_name(name)}{hint}"
                )

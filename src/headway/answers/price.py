"""`headway price ...`: cost and price at a layout; a price sheet inverted; dated sheets; a published day; the share of memory."""

from __future__ import annotations

from typing import Any

from headway.answers import price_case, price_cost, price_history, price_memory, price_score, price_sheet
from headway.core import schema
from headway.core.errors import HeadwayError
from headway.economics.questions import FORMS
from headway.report import output

ASKS = (
    "wants a model and --on MACHINE (what its tokens cost and sell for), --sheet NAME (what a sheet implies), --history WHOSE, "
    "--score PRICES.csv, --case NAME or --memory-share MACHINE"
)
MODEL = "model"
QUESTIONS: dict[str, Any] = {  # argument -> module of its question, in the order of --help
    MODEL: price_cost, "sheet": price_sheet, "score": price_score, "history": price_history, "case": price_case,
    "memory_share": price_memory,
}  # fmt: skip
ASSUME_KEYS = {"chip_price": "price", "utilisation": "utilisation", "margin": "margin"}  # cost flag -> key of --assume for a sheet


def run(args: Any) -> output.Answer:
    """Answer to the question that the flags ask."""
    questions = [name for name in QUESTIONS if getattr(args, name)]
    if len(questions) > 1:
        beside = "; --at-sheet NAME sets a model's cost beside a sheet" if {MODEL, "sheet"} <= set(questions) else ""
        raise HeadwayError(f"{' and '.join(sorted(map(_question_name, questions)))} are questions of their own: give one{beside}")
    if not questions or (questions == [MODEL] and not args.on):
        raise HeadwayError(f"headway price {ASKS}; see headway price --help")
    _check(args, questions[0])
    return QUESTIONS[questions[0]].run(args)


def _question_name(question: str) -> str:
    return "a model" if question == MODEL else schema.flag(question)


def _check(args: Any, topic: str) -> None:
    """Raise an error for a flag of another question, which would be ignored."""
    typed = args.entries()
    for name, fields in FORMS.items():
        extra = [key for key in fields if key in typed] if name != topic else []
        if extra:
            hint = f"; --assume {ASSUME_KEYS[extra[0]]}=... takes it as known" if topic == "sheet" and extra[0] in ASSUME_KEYS else ""
            raise HeadwayError(
                f"{schema.flag(extra[0])} says nothing beside {_question_name(topic)}: it goes with {_question_name(name)}{hint}"
            )

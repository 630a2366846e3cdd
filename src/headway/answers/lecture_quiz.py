"""`headway lecture quiz [CHAPTER]`: flashcards from the claims; answers are read line by line, and what was missed comes back."""

from __future__ import annotations

import datetime
import secrets
import sys
from typing import Any

from headway.core import schema
from headway.core.columns import Column
from headway.core.errors import BadValue, HeadwayError
from headway.core.listing import Listing
from headway.evidence.lecture import quiz
from headway.evidence.lecture.chapters import chapter, statement
from headway.evidence.lecture.deck import Deck, deck_path, forget, load
from headway.evidence.lecture.quiz import QuizCard
from headway.report import output
from headway.report.lecture import paragraph
from headway.report.lecture_claim import law_lines

MOST_CARDS = 50
MOST_TRIES = 3  # at a number that cannot be read
MOST_ANSWER = 10_000  # characters of a line that is typed
QUIT = ("q", "quit", "exit")
COLUMNS = {
    "card": Column("", "name of the card in the record of past answers"),
    "kind": Column("", "number, direction or sentence"),
    "question": Column("", "question, with its inputs"),
    "shown_inputs": Column("", "inputs shown with the question"),
    "answer": Column("", "the answer: a number in the row's unit, rises, falls or stays, or a sentence"),
    "answer_text": Column("", "the answer as shown"),
    "tolerance": Column("", "relative tolerance of a number; null for other kinds"),
    "derivation": Column("", "laws behind the answer, a line each"),
}


def run(args: Any) -> output.Answer:
    """Deal cards, as rows for a program or one by one for a person."""
    path = deck_path()
    if args.forget:
        text = (
            f"Past answers are forgotten: {path} is deleted." if forget(path) else f"There are no past answers to forget: no file {path}."
        )
        return output.Answer(Listing([]), output.Summary(text))
    label = " ".join(args.what[1:])
    if label:
        chapter(label)
    count = int(schema.scalar(args.cards, schema.Field(integer=True, low=1, high=MOST_CARDS, open_low=False), "--cards"))
    counts = schema.Field(integer=True, open_low=False)
    seed = secrets.randbelow(10**6) if args.seed is None else int(schema.scalar(args.seed, counts, "--seed"))

    def dialogue() -> output.Answer:
        deck, today = load(path), datetime.date.today()
        return _ask(quiz.hand(label, lambda key: deck.rank(key, today), count, seed), deck, today)

    cards = quiz.hand(label, lambda _: 0, count, seed)
    words = output.Summary(f"{len(cards)} cards")
    return output.Answer(Listing([_row(card) for card in cards]), words, columns=COLUMNS, dialogue=dialogue)


def _row(card: QuizCard) -> dict[str, Any]:
    figure = quiz.derivation(card)
    return {
        "card": card.key, "chapter": card.chapter, "id": card.claim_id, "kind": card.kind, "question": card.text(),
        "shown_inputs": list(card.inputs), "answer": card.answer, "answer_text": card.answer_text, "unit": card.unit,
        "tolerance": card.tolerance if card.kind == quiz.NUMBER else None,
        "derivation": [] if figure is None else [line.strip() for line in law_lines(figure, card.figure, 1, set())],
    }  # fmt: skip


# -- one by one -----------------------------------------------------------------------------------------------------------------


def _ask(cards: list[QuizCard], deck: Deck, today: datetime.date) -> output.Answer:
    """Ask one card after another until the end, q or the end of the input; each answer is saved at once."""
    _print(f"{len(cards)} cards; answer with a number and its unit, with rises, falls or stays, or in your own words; q ends.")
    if deck.note:
        _print(f"note: {deck.note}")
    rights = answered = 0
    for number, card in enumerate(cards, 1):
        _print("")
        _print(paragraph(f"{number}/{len(cards)}  {card.text()}"))
        verdict = _graded(card)
        if verdict is None:
            break
        answered += 1
        rights += verdict
        _print(
            paragraph(f"{'Right' if verdict else 'Not quite'}: {_answer_text(card)} (claim {card.claim_id}: {statement(card.claim_id)})")
        )
        figure = quiz.derivation(card)
        for line in law_lines(figure, card.figure, 1, set()) if figure is not None else ():
            _print(line)
        _save(deck, card, verdict, today)
    _print("")
    return output.Answer(Listing([]), output.Summary(_result(rights, answered), (), _after(deck, today)))


def _answer_text(card: QuizCard) -> str:
    return "see above" if card.kind == quiz.SENTENCE else card.answer_text


def _graded(card: QuizCard) -> bool | None:
    """Whether the reader was right; None where the reader quits. A number that cannot be read is asked for again."""
    for _ in range(MOST_TRIES):
        line = _read()
        if line is None or line.lower() in QUIT:
            return None
        if card.kind == quiz.SENTENCE:
            _print(paragraph(f"Answer: {card.answer_text}"))
            _print("Did you have it? y or n")
            grade = _read()
            return None if grade is None or grade.lower() in QUIT else grade.lower() in ("y", "yes")
        try:
            return quiz.judge(card, line)
        except BadValue as error:
            _print(str(error))
    return False


def _read() -> str | None:
    """A line of the input without its end; None at the end of the input."""
    sys.stdout.write("> ")
    sys.stdout.flush()
    line = sys.stdin.readline(MOST_ANSWER)
    if not line:
        _print("")
        return None
    if not sys.stdin.isatty():
        _print(line.strip())  # a pipe does not echo
    return line.strip()


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")


def _save(deck: Deck, card: QuizCard, right: bool, today: datetime.date) -> None:
    try:
        deck.answer(card.key, right, today)
    except OSError as error:
        raise HeadwayError(f"cannot write {deck.path}: {error.strerror or error}; HEADWAY_QUIZ names another file") from None


def _result(rights: int, answered: int) -> str:
    if not answered:
        return "No card was answered."
    misses = answered - rights
    return f"{rights} of {answered} right" + (
        f"; {misses} come back first next time." if misses > 1 else "; 1 comes back first next time." if misses else "."
    )


def _after(deck: Deck, today: datetime.date) -> list[str]:
    due = deck.due(today)
    return [f"{len(deck.cards)} cards have been answered so far, {due} are due; the record is {deck.path} (--forget deletes it)."]

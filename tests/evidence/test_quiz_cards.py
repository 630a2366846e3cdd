"""Every flashcard can be answered from its own wording: the printed equation with the numbers on the card gives the answer marked right."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from headway.core import units
from headway.evidence.claims.claim import claims
from headway.evidence.lecture import quiz
from headway.evidence.lecture.inputs import InputCase, cases
from support.claim_equations import EQUATIONS, evaluate

NUDGE = 1.1
READ = {"byte/token": "byte", "flop/token": "flop", "USD/Mtok": "USD"}  # units as a card shows them


class Pick(random.Random):
    """A draw that takes the item at one place."""

    place = 0

    def choice(self, seq: Sequence[Any]) -> Any:
        return seq[self.place % len(seq)]


def variants(kind: str) -> Iterator[tuple[quiz.CardSource, tuple[str, ...], InputCase]]:
    """All cards of a kind with all of their inputs."""
    for source in quiz.sources():
        if source.kind == kind:
            for changes in ((), *(tuple(variant.split()) for variant in source.variants)):
                claim = claims()[source.claim_id]
                yield source, changes, cases(claim, changes)[0] if changes else InputCase(labels={}, values={})


def given(source: quiz.CardSource, case: InputCase) -> dict[str, float]:
    return {name: float(case.values.get(name, value)) for name, value in claims()[source.claim_id].inputs.items()}


def as_worded(source: quiz.CardSource, card: quiz.QuizCard, case: InputCase) -> dict[str, float]:
    """Inputs as a reader has them: those on the card as its text has them, all others at 1 or as the lecture has what changes nothing."""
    values = given(source, case)
    for name, item in zip(quiz.relevant(source, case), card.inputs, strict=True):
        assert item.startswith(quiz.label(source, name) + " ")
        text, unit = item.removeprefix(quiz.label(source, name) + " "), claims()[source.claim_id].inputs[name].unit
        values[name] = units.parse(text.replace("/token", ""), READ.get(unit, unit), name)
    return values


def test_numbers__the_equation_with_the_numbers_on_the_card_is_marked_right() -> None:
    offenders, count = [], 0
    for source, changes, case in variants(quiz.NUMBER):
        card, equation = quiz._number(source, changes), EQUATIONS[source.claim_id][source.figure]
        answer = evaluate(equation, as_worded(source, card, case))
        wrong = answer * (1 + 3 * card.tolerance) if card.tolerance < 1 else answer * 10
        if not quiz.judge(card, repr(answer)) or not quiz.judge(card, card.answer_text):
            offenders.append((card.key, changes, card.text(), answer, card.answer_text))
        if quiz.judge(card, repr(wrong)) or quiz.judge(card, repr(answer / (1 + 3 * max(card.tolerance, 3)))):
            offenders.append((card.key, changes, "a wrong answer is marked right", wrong))
        count += 1
    assert not offenders and count > 90


def test_numbers__nothing_that_moves_the_answer_is_left_unsaid() -> None:
    """An input that is not on the card is a plain 1, an absent limit, or moves nothing."""
    offenders = []
    for source, _, case in variants(quiz.NUMBER):
        values, equation = given(source, case), EQUATIONS[source.claim_id][source.figure]
        for name in set(values) - set(quiz.relevant(source, case)):
            moved = evaluate(equation, values) != pytest.approx(evaluate(equation, {**values, name: values[name] * 1.01}), rel=1e-9)
            if moved and values[name] != 1.0:
                offenders.append((source.key, name, values[name]))
    assert offenders == []


def test_directions__the_equation_decides_for_every_input_that_a_card_may_ask_of() -> None:
    offenders, answers = [], set()
    for source, changes, case in variants(quiz.DIRECTION):
        values, equation = given(source, case), EQUATIONS[source.claim_id][source.figure]
        names = quiz.movable(source, case)
        labels = [quiz.label(source, name) for name in names]
        if len(set(labels)) != len(labels):
            offenders.append((source.key, labels))
        for place, name in enumerate(names):
            draw = Pick(0)
            draw.place = place
            card = quiz._direction(source, changes, draw)
            before, after = (evaluate(equation, {**values, name: values[name] * factor}) for factor in (1.0, NUDGE))
            right = quiz.STAYS if after == pytest.approx(before, rel=1e-9) else quiz.RISES if after > before else quiz.FALLS
            answers.add(right)
            verdicts = {word: quiz.judge(card, word) for word in (quiz.RISES, quiz.FALLS, quiz.STAYS)}
            if verdicts != {word: word == right for word in verdicts} or f"Now {quiz.label(source, name)} grows" not in card.question:
                offenders.append((source.key, changes, name, right, card.answer))
    assert not offenders and answers == {quiz.RISES, quiz.FALLS, quiz.STAYS}


def test_directions__by_hand() -> None:
    """More layers, more cache; better utilisation, a smaller factor."""
    for key, words, right in (("AP-06 direction", "layers with a cache", "rises"), ("OT-06 direction", "utilisation", "falls")):
        source = next(source for source in quiz.sources() if source.key == key)
        cards = [quiz.deal(source, random.Random(seed)) for seed in range(40)]
        asked = [card for card in cards if words in card.question.partition(" Now ")[2]]
        assert asked and all(card.answer == right for card in asked), key

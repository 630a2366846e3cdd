"""`headway lecture quiz`: rounds through a pipe (right, wrong, sentence, quit, resume, broken file); no card gives its answer away."""

from __future__ import annotations

import dataclasses
import datetime
import io
import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

from headway.core.errors import BadValue
from headway.evidence.claims.claim import claims
from headway.evidence.claims.rows import recompute
from headway.evidence.lecture import quiz
from headway.evidence.lecture.inputs import cases, figures
from headway.evidence.lecture.quiz import INTERVALS, Deck, load
from support.command import Cli

TODAY = datetime.date(2026, 5, 1)


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "folder" / "quiz.json"
    monkeypatch.setenv("HEADWAY_QUIZ", str(path))
    return path


@pytest.fixture
def play(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A round with these lines as its input."""

    def run(lines: list[str], *flags: str) -> str:
        monkeypatch.setattr("sys.stdin", io.StringIO("".join(line + "\n" for line in lines)))
        return cli("lecture", "quiz", *flags).text

    return run


def dealt(seed: int, count: int, label: str = "") -> list[quiz.QuizCard]:
    return quiz.hand(label, lambda _: 0, count, seed)


def right_lines(card: quiz.QuizCard) -> list[str]:
    if card.kind == quiz.SENTENCE:
        return ["in my words", "y"]
    return [str(card.answer) if card.kind == quiz.DIRECTION else repr(float(card.answer))]


def test_cards__answers_are_the_figures_of_their_claims() -> None:
    for source in quiz.sources():
        if source.kind == quiz.NUMBER:
            claim = claims()[source.claim_id]
            for changes in ((), *(tuple(variant.split()) for variant in source.variants)):
                card = quiz._number(source, changes)
                parts = figures(claim, cases(claim, changes)[0]) if changes else recompute(claim)
                assert parts is not None and card.answer == float(parts[source.figure])
            values = [quiz._number(source, tuple(variant.split())).answer for variant in source.variants]
            assert float((recompute(claim) or {})[source.figure]) not in values, f"{source.key}: a variant that changes nothing"


def test_cards__no_text_gives_its_answer_away() -> None:
    offenders = []
    for source in quiz.sources():
        for seed in range(8):
            card = quiz.deal(source, random.Random(seed))
            if card.kind == quiz.DIRECTION:
                assert not re.search(r"\b(rises?|falls?|stays?)\b", card.text().replace("all else stays", "")), card.key
            elif quiz.gives_away(card):
                offenders.append((card.key, card.text(), card.answer_text))
    assert offenders == []


def test_cards__giveaways_are_recognised() -> None:
    source = next(source for source in quiz.sources() if source.key == "TS-12 number")
    card = quiz._number(source, ())
    assert not quiz.gives_away(card)
    assert quiz.gives_away(dataclasses.replace(card, question="It is 50 a second. How many?"))
    assert quiz.gives_away(dataclasses.replace(card, question="It is 51 a second. How many?"))  # within the tolerance


def test_cards__directions_follow_the_law() -> None:
    """By hand: a balanced batch rises with the total and the FLOP rate, falls with the active parameters and the bandwidth."""
    source = next(source for source in quiz.sources() if source.key == "RB-10 direction")
    rules = {
        "total parameters": "rises",
        "FLOP rate": "rises",
        "bytes per weight": "rises",
        "active parameters": "falls",
        "memory bandwidth": "falls",
    }
    seen = {}
    for seed in range(60):
        card = quiz.deal(source, random.Random(seed))
        name = card.question.partition(" Now ")[2].partition(" grows")[0]
        seen[name] = card.answer
    assert seen == {name: answer for name, answer in rules.items() if name in seen} and len(seen) >= 4
    answers = {
        quiz.deal(source, random.Random(seed)).answer for source in quiz.sources() if source.kind == quiz.DIRECTION for seed in range(3)
    }
    assert answers == {"rises", "falls", "stays"}


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [("24 ms", "s", 0.024), ("0.024", "s", 0.024), ("5,100", "token", 5100), ("5.1k", "token", 5100), ("$0.40", "USD/Mtok", 0.4),
     ("11 %", "", 0.11), ("1.67 kB", "byte/token", 1670), ("1667 B/token", "byte/token", 1667), ("128k", "token/s", 128_000)],
)  # fmt: skip
def test_answers__numbers_as_people_type_them(text: str, unit: str, value: float) -> None:
    assert quiz.read_number(text, unit) == pytest.approx(value)


def test_answers__within_the_claims_tolerance() -> None:
    source = next(source for source in quiz.sources() if source.key == "TS-04 number")
    card = quiz._number(source, ())
    assert card.tolerance == 0.05
    assert quiz.judge(card, "40 ms") and quiz.judge(card, "41.9ms") and not quiz.judge(card, "42.1ms") and not quiz.judge(card, "40 s")
    assert quiz.is_near(1000, 2900, 2.0) and not quiz.is_near(1000, 3100, 2.0)
    with pytest.raises(BadValue):
        quiz.judge(card, "forty")


def test_quiz__right_wrong_sentence_and_derivation(play: Any, record: Path) -> None:
    cards = dealt(1, 8)
    assert {card.kind for card in cards} == {quiz.NUMBER, quiz.DIRECTION, quiz.SENTENCE}
    number = next(card for card in cards if card.kind == quiz.NUMBER)
    lines = [line for card in cards for line in (["1e-9"] if card is number else right_lines(card))]
    text = play(lines, "--seed", "1", "--cards", "8")
    assert text.rstrip().splitlines()[-2] == "7 of 8 right; 1 comes back first next time."
    assert text.count("\nRight: ") == 7 and text.count("\nNot quite: ") == 1
    assert f"Not quite: {number.answer_text} (claim {number.claim_id}" in " ".join(text.split())
    assert f"  {number.figure} = " in text  # the laws behind it
    assert "\x1b" not in text
    saved = json.loads(record.read_text(encoding="utf-8"))["cards"]
    assert saved.keys() == {card.key for card in cards}
    assert saved[number.key] | {"due": ""} == {"box": 0, "due": "", "answers": 1, "misses": 1}


def test_quiz__quit_and_resume_with_the_missed_card_first(play: Any, record: Path) -> None:
    cards = dealt(1, 8)
    first = play(["quit"], "--seed", "1") + play([], "--seed", "1")
    assert first.count("No card was answered.") == 2 and not record.exists()
    missed = next(card for card in cards if card.kind == quiz.DIRECTION)
    before = cards[: cards.index(missed)]
    wrong = next(word for word in ("rises", "falls", "stays") if word != missed.answer)
    lines = [line for card in before for line in right_lines(card)] + [wrong, "q"]
    assert f"{len(before)} of {len(before) + 1} right; 1 comes back first next time." in play(lines, "--seed", "1", "--cards", "8")
    again = play(["q"], "--seed", "77")
    question = missed.question.partition(" Now ")[0]
    assert question[:60] in " ".join(again.split()) and "1/10" in again
    assert all(card.question.partition(" Now ")[0] not in " ".join(again.split()) for card in before)


def test_quiz__broken_file_is_set_aside(play: Any, record: Path) -> None:
    record.parent.mkdir()
    for content in (
        "{",
        "[]",
        '{"cards": {"RB-10 number": {"box": 99, "due": "2026-01-01", "answers": 1, "misses": 0}}}',
        '{"cards": {"a": 3}}',
    ):
        record.write_text(content, encoding="utf-8")
        text = play(["q"])
        assert "note: the record of past answers could not be read: it is now quiz.broken" in text
        assert record.with_suffix(".broken").read_text(encoding="utf-8") == content and not record.exists()


def test_quiz__forget(cli: Cli, record: Path) -> None:
    assert "no past answers to forget" in cli("lecture", "quiz", "--forget").text
    load(record).answer("RB-10 number", True, TODAY)
    assert record.exists() and "forgotten" in cli("lecture", "quiz", "--forget").text and not record.exists()


def test_deck__boxes_grow_and_a_miss_begins_anew(record: Path) -> None:
    deck = load(record)
    day = TODAY
    for box in (1, 2, 3, 4, 5, 5):
        deck.answer("a", True, day)
        assert (deck.cards["a"].box, deck.cards["a"].due) == (box, (day + datetime.timedelta(days=INTERVALS[box])).isoformat())
    deck.answer("a", False, day)
    deck.answer("b", True, day)
    assert load(record).cards == deck.cards
    assert [deck.rank(key, day) for key in ("a", "b", "new")] == [0, 3, 2]
    assert deck.rank("b", day + datetime.timedelta(days=1)) == 1
    assert Deck(record, {}).due(day) == 0 and deck.due(day) == 1


def test_quiz__cards_for_a_page(cli: Cli, record: Path) -> None:
    rows = cli.rows("lecture", "quiz", "6", "--cards", "9", "--seed", "1")
    assert len(rows) == 9 and {row["chapter"] for row in rows} == {"6"} and not record.exists()
    assert len({row["id"] for row in rows}) == 9
    assert rows == cli.rows("lecture", "quiz", "6", "--cards", "9", "--seed", "1")
    for row in rows:
        assert bool(row["derivation"]) == (row["kind"] != "sentence") and (row["tolerance"] is None) == (row["kind"] != "number")
    for label in "1234567":
        assert cli.rows("lecture", "quiz", label, "--cards", "2"), label


@pytest.mark.parametrize("flags", [("--cards", "0"), ("--cards", "51"), ("--cards", "x"), ("9",), ("--seed", "x"), ("nonsense",)])
def test_quiz__wrong_input_is_one_line(flags: tuple[str, ...], cli: Cli, record: Path) -> None:
    status, out, err = cli("lecture", "quiz", *flags)
    assert (status, out, err.count("\n")) == (2, "", 1)

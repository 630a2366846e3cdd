"""Flashcards drawn from the claims (a number, a direction or a sentence to answer), and the record of past answers.

The record is one file in the user's folder; what was missed comes back first (boxes of growing intervals).
"""

from __future__ import annotations

import dataclasses
import datetime
import functools
import json
import os
import random
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from headway.core import spellings, units, user_file
from headway.core.errors import BadValue
from headway.core.listing import format_value
from headway.core.records import record_of
from headway.evidence.claims.claim import Claim, claims
from headway.evidence.claims.rows import ORDER, recompute, width
from headway.evidence.lecture.chapters import chapter, chapter_of, document
from headway.evidence.lecture.inputs import InputCase, cases, figures, type_of

NUMBER, DIRECTION, SENTENCE = "number", "direction", "sentence"
RISES, FALLS, STAYS = "rises", "falls", "stays"
LEAST_TOLERANCE = 0.05  # of an answer in the head, where the claim's own is narrower
NUDGE = 1.1  # factor on the input of a direction
ANSWERS = {RISES: ("r", "rise", "rises", "up", "more", "+"), FALLS: ("f", "fall", "falls", "down", "less", "-"),
           STAYS: ("s", "stay", "stays", "same", "none", "=")}  # fmt: skip


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class QuizCard:
    """A flashcard: question, inputs shown with it, and the answer."""

    key: str  # claim and kind: what the record of past answers goes by
    chapter: str
    claim_id: str
    kind: str
    question: str
    inputs: tuple[str, ...]
    answer: float | str
    answer_text: str
    unit: str
    tolerance: float  # relative; a factor for an order of magnitude is 2 (x3 up, /3 down)
    figure: str  # "" for a sentence
    changes: tuple[str, ...]  # inputs that differ from the lecture's, as --with takes them

    def text(self) -> str:
        """All that a reader sees before the answer."""
        return self.question + (f" ({', '.join(self.inputs)})" if self.inputs else "")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CardSource:
    """A card as its file has it."""

    claim_id: str
    kind: str
    ask: str
    figure: str = ""
    answer: str = ""
    variants: tuple[str, ...] = ()
    names: dict[str, str] = dataclasses.field(default_factory=dict)  # what inputs are called
    essential: frozenset[str] = frozenset()  # inputs that the card itself names: shown even where they are a plain 1

    @property
    def key(self) -> str:
        """Name of the card in the record of past answers."""
        return f"{self.claim_id} {self.kind}"


@functools.cache
def sources() -> tuple[CardSource, ...]:
    """All cards: each number also asks for directions."""
    page = document("cards")
    cards = []
    for entry in page["number"]:
        names = entry.get("names", {})
        for kind in (NUMBER, DIRECTION):
            cards.append(
                record_of(CardSource, entry, claim_id=entry["claim"], kind=kind, names=page["inputs"] | names, essential=frozenset(names))
            )
    return (*cards, *(record_of(CardSource, entry, claim_id=entry["claim"], kind=SENTENCE) for entry in page["sentence"]))


def chapter_sources(label: str) -> list[CardSource]:
    """Cards of a chapter; of all chapters without a label."""
    if not label:
        return list(sources())
    page = chapter(label)
    return [source for source in sources() if chapter_of(source.claim_id) is page]


def deal(source: CardSource, draw: random.Random) -> QuizCard:
    """A card with the lecture's inputs or with a variant's, whichever is drawn and does not give its answer away."""
    if source.kind == SENTENCE:
        return _card(source, source.ask, (), source.answer, source.answer)
    options = [()] + [tuple(variant.split()) for variant in source.variants]
    draw.shuffle(options)
    if source.kind == DIRECTION:
        return _direction(source, options[0], draw)
    cards = [_number(source, changes) for changes in options]
    return next((card for card in cards if not gives_away(card)), cards[0])


def _card(source: CardSource, question: str, inputs: Iterable[str], answer: float | str, text: str, **values: Any) -> QuizCard:
    values = {"unit": "", "tolerance": 0.0, "changes": ()} | values
    return QuizCard(
        key=source.key, chapter=chapter_of(source.claim_id).label, claim_id=source.claim_id, kind=source.kind, question=question,
        inputs=tuple(inputs), answer=answer, answer_text=text, figure=source.figure, **values,
    )  # fmt: skip


def _number(source: CardSource, changes: tuple[str, ...]) -> QuizCard:
    claim = claims()[source.claim_id]
    case = _case(claim, changes)
    value, unit = float(figures(claim, case)[source.figure]), claim.units.get(source.figure, claim.unit)
    text = format_value(value, unit)
    return _card(source, source.ask, _inputs(source, case), value, text, unit=unit, tolerance=tolerance(claim), changes=changes)


def _direction(source: CardSource, changes: tuple[str, ...], draw: random.Random) -> QuizCard:
    claim = claims()[source.claim_id]
    case = _case(claim, changes)
    before = float(figures(claim, case)[source.figure])
    name = draw.choice(movable(source, case))
    value = float(_value(claim, case, name))
    nudged = dataclasses.replace(case, values={**case.values, name: type_of(claim, name, value * NUDGE)})
    after = float(figures(claim, nudged)[source.figure])
    answer = STAYS if abs(after - before) <= 1e-9 * abs(before) else RISES if after > before else FALLS
    question = f"{source.ask} Now {label(source, name)} grows by 10 % and all else stays. What happens to that figure?"
    return _card(source, question, _inputs(source, case), answer, f"it {answer}", changes=changes)


def _case(claim: Claim, changes: tuple[str, ...]) -> InputCase:
    return cases(claim, changes)[0] if changes else InputCase(labels={}, values={})


def _value(claim: Claim, case: InputCase, name: str) -> Any:
    return case.values.get(name, claim.inputs[name])


def _is_shown(source: CardSource, case: InputCase, name: str) -> bool:
    """Whether an input belongs on a card: an absent limit does not, nor a plain 1 that neither the card nor a variant speaks of."""
    claim = claims()[source.claim_id]
    value = float(_value(claim, case, name))
    plain = claim.inputs[name].unit == "" and value == 1.0 and name not in source.essential and name not in case.values
    return not plain and value not in (float("inf"), 0.0)


def relevant(source: CardSource, case: InputCase) -> list[str]:
    """Inputs that a card shows: those that change its figure."""
    claim = claims()[source.claim_id]
    before = recompute(claim, case.values) or {}
    changed = []
    for name in claim.inputs:
        after = recompute(claim, {**case.values, name: _value(claim, case, name) * 1.01}) or {}
        if _is_shown(source, case, name) and float(after[source.figure]) != float(before[source.figure]):
            changed.append(name)
    return changed


def movable(source: CardSource, case: InputCase) -> list[str]:
    """Inputs of which a direction may ask: those on the card, and those of which the claim says that they change nothing.

    An input of another figure of the claim is neither: the reader would take it for the input of that name on the card.
    """
    claim, on_card = claims()[source.claim_id], relevant(source, case)
    return on_card + [
        name for name in claim.invariant if name in claim.inputs and name not in on_card and _is_shown(source, case, name)
    ]


def label(source: CardSource, name: str) -> str:
    """What an input is called on a card."""
    return source.names.get(name, name.replace("_", " "))


def _inputs(source: CardSource, case: InputCase) -> Iterator[str]:
    """Inputs as a card shows them: their words, values and units."""
    claim = claims()[source.claim_id]
    for name in relevant(source, case):
        yield f"{label(source, name)} {format_value(float(_value(claim, case, name)), claim.inputs[name].unit)}"


# -- answers --------------------------------------------------------------------------------------------------------------------


def tolerance(claim: Claim) -> float:
    """Relative tolerance of an answer: the claim's, and at least what arithmetic in the head needs."""
    return ORDER - 1 if claim.tolerance == "oom" else max(width(claim.tolerance), LEAST_TOLERANCE)


def judge(card: QuizCard, text: str) -> bool:
    """Whether an answer is right: a number within the tolerance, or the direction; BadValue for what is neither."""
    if card.kind == DIRECTION:
        word = text.strip().lower()
        for direction, spellings in ANSWERS.items():
            if word in spellings:
                return direction == card.answer
        raise BadValue("answer", text, "rises, falls or stays (r, f, s)")
    return is_near(read_number(text, card.unit), float(card.answer), card.tolerance)


def is_near(value: float, answer: float, relative: float) -> bool:
    """Whether a number is within a relative tolerance of the answer; a tolerance above 1 is a factor, up or down."""
    if relative > 1:
        return answer / (1 + relative) <= value <= answer * (1 + relative)
    return abs(value - answer) <= relative * abs(answer) * (1 + 1e-12)


READ_UNITS = {"USD/Mtok": "USD", "byte/token": "byte", "flop/token": "flop", "s/token": "s", "m": ""}


def read_number(text: str, unit: str) -> float:
    """A number as people type one: 5,100, 5.1k, 24 ms, $0.40, 11 %."""
    plain = text.strip().replace(",", "").removesuffix("/token").removesuffix("/Mtok").strip()
    read_as = READ_UNITS.get(unit, unit)
    return units.parse(plain, read_as if read_as in spellings.SPELLINGS else "", "answer")


NUMBERS = re.compile(r"\d[\d,]*(?:\.\d+)?")


def gives_away(card: QuizCard) -> bool:
    """Whether a card's own text holds its answer: the number within tolerance, or most words of the sentence."""
    if card.kind == NUMBER:
        label = format_value(float(card.answer), card.unit)
        exact = {match.replace(",", "") for match in NUMBERS.findall(label)}
        text = [match.replace(",", "") for match in NUMBERS.findall(card.text())]
        return bool(exact & set(text)) or any(
            is_near(float(number), float(card.answer), min(card.tolerance, LEAST_TOLERANCE)) for number in text
        )
    words = {word for word in re.findall(r"[a-z]{4,}", str(card.answer).lower())}
    return len(words & set(re.findall(r"[a-z]{4,}", card.text().lower()))) > len(words) / 2


def hand(chapter_label: str, rank: Callable[[str], int], count: int, seed: int) -> list[QuizCard]:
    """Cards of a round: by the rank of their keys, as drawn among equals, at most one of each claim."""
    draw = random.Random(seed)
    pool = chapter_sources(chapter_label)
    draw.shuffle(pool)
    pool.sort(key=lambda source: rank(source.key))
    by_claim: dict[str, CardSource] = {}
    for source in pool:
        by_claim.setdefault(source.claim_id, source)
    return [deal(source, draw) for source in list(by_claim.values())[:count]]


def derivation(card: QuizCard) -> Any:
    """Recorded figure behind a number or a direction; None for a sentence."""
    if not card.figure:
        return None
    claim = claims()[card.claim_id]
    return figures(claim, _case(claim, card.changes))[card.figure]


INTERVALS = (0, 1, 3, 7, 21, 60)  # days until a card of each box comes back
VERSION = 1


@dataclasses.dataclass(slots=True)
class CardRecord:
    """Past answers to one card."""

    box: int
    due: str  # date
    answers: int
    misses: int


@dataclasses.dataclass(slots=True)
class Deck:
    """Past answers by card; `note` says what was wrong with the file."""

    path: Path
    cards: dict[str, CardRecord]
    note: str = ""

    def answer(self, key: str, right: bool, today: datetime.date) -> None:
        """Move a card up a box, or back to the first, and save the file."""
        record = self.cards.get(key) or CardRecord(0, today.isoformat(), 0, 0)
        record.box = min(record.box + 1, len(INTERVALS) - 1) if right else 0
        record.due = (today + datetime.timedelta(days=INTERVALS[record.box])).isoformat()
        record.answers += 1
        record.misses += not right
        self.cards[key] = record
        self.save()

    def save(self) -> None:
        """Write the file as a whole, by way of a temporary one beside it."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        page = {"version": VERSION, "cards": {key: dataclasses.asdict(record) for key, record in self.cards.items()}}
        draft = self.path.with_suffix(".new")
        draft.write_text(json.dumps(page, indent=1) + "\n", encoding="utf-8")
        draft.replace(self.path)

    def rank(self, key: str, today: datetime.date) -> int:
        """Place of a card in a round: missed ones that are due, then others due, then unseen; those not yet due last."""
        record = self.cards.get(key)
        if record is None:
            return 2
        if record.due > today.isoformat():
            return 3
        return 0 if record.box == 0 else 1

    def due(self, today: datetime.date) -> int:
        """Number of cards that are due."""
        return sum(record.due <= today.isoformat() for record in self.cards.values())


def deck_path() -> Path:
    """Place of the file: $HEADWAY_QUIZ, or quiz.json in the user's folder."""
    place = os.environ.get("HEADWAY_QUIZ")
    if place:
        return Path(place)
    base = os.environ.get("XDG_CONFIG_HOME")
    return (Path(base) if base else Path.home() / ".config") / "headway" / "quiz.json"


def load(path: Path) -> Deck:
    """Deck of a file; a broken file is set aside under another name, and the deck begins anew."""
    if not path.exists():
        return Deck(path, {})
    text = user_file.data_of(path, user_file.DECK)
    cards: dict[str, CardRecord] = {}
    try:
        for key, entry in json.loads(text)["cards"].items():
            box = int(entry["box"])
            datetime.date.fromisoformat(entry["due"])
            if not 0 <= box < len(INTERVALS):
                raise ValueError(box)
            cards[str(key)] = CardRecord(box, entry["due"], int(entry["answers"]), int(entry["misses"]))
        return Deck(path, cards)
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError, OverflowError):
        aside = path.with_suffix(".broken")
        path.replace(aside)
        return Deck(path, {}, f"the record of past answers could not be read: it is now {aside.name}, and a new one begins")


def forget(path: Path) -> bool:
    """Delete the file; whether there was one."""
    existed = path.is_file()
    path.unlink(missing_ok=True)
    return existed

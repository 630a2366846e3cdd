"""Record of past answers to flashcards: one file in the user's folder; what was missed comes back first (boxes of growing intervals)."""

from __future__ import annotations

import dataclasses
import datetime
import json
import os
from pathlib import Path

from headway.core import user_file

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
    try:
        page = json.loads(text)
        cards = {str(key): _record(entry) for key, entry in page["cards"].items()}
        return Deck(path, cards)
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError, OverflowError):
        aside = path.with_suffix(".broken")
        path.replace(aside)
        return Deck(path, {}, f"the record of past answers could not be read: it is now {aside.name}, and a new one begins")


def _record(entry: dict) -> CardRecord:
    box = int(entry["box"])
    datetime.date.fromisoformat(entry["due"])
    if not 0 <= box < len(INTERVALS):
        raise ValueError(box)
    return CardRecord(box, entry["due"], int(entry["answers"]), int(entry["misses"]))


def forget(path: Path) -> bool:
    """Delete the file; whether there was one."""
    existed = path.is_file()
    path.unlink(missing_ok=True)
    return existed

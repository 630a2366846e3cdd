"""Notes of an answer, each said once by whoever assumes, drops or finds something on the way to it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field


@dataclass(slots=True)
class Notebook:
    """Notes of one answer."""

    texts: list[str] = field(default_factory=list)  # in the order of the work
    remarks: list[str] = field(default_factory=list)  # on models and machines
    borrowed: list[str] = field(default_factory=list)  # costs that hypothetical chips borrow, which the sentence says
    readings: dict[str, str] = field(default_factory=dict)  # arithmetic of the user's -> the number that was read

    def as_read(self, words: Sequence[str]) -> list[str]:
        """The words of a command with numbers in place of the arithmetic that was read as them."""
        texts = sorted(self.readings, key=len, reverse=True)
        if not texts:
            return list(words)
        value = re.compile(rf"(?<![^\s=,(])(?:{'|'.join(map(re.escape, texts))})(?![^\s,)])")
        return [value.sub(lambda match: self.readings[match[0]], word) for word in words]


_open: ContextVar[Notebook | None] = ContextVar("notebook", default=None)


def note(*texts: str) -> None:
    """Say what was assumed, dropped or found on the way to an answer, unless it was said."""
    book = _open.get()
    if book is not None:
        book.texts += [text for text in dict.fromkeys(texts) if text not in book.texts]


def remark(*notes: str) -> None:
    """Say what was assumed of a model or machine, unless it was said."""
    book = _open.get()
    if book is not None:
        book.remarks += [note for note in dict.fromkeys(notes) if note not in book.remarks]


def borrow(*notes: str) -> None:
    """Say which costs a hypothetical chip borrows, unless it was said."""
    book = _open.get()
    if book is not None:
        book.borrowed += [note for note in dict.fromkeys(notes) if note not in book.borrowed]


def read_as(text: str, number: str) -> None:
    """Keep what a user's arithmetic was read as."""
    book = _open.get()
    if book is not None and text.strip() != number:
        book.readings[text.strip()] = number


def reading(text: str) -> str:
    """What a text was read as, where it is arithmetic; else the text."""
    book = _open.get()
    return text if book is None else book.readings.get(text.strip(), text)


@contextmanager
def noted() -> Iterator[Notebook]:
    """Within this block notes are kept; inside another one they are its own."""
    book = Notebook()
    token = _open.set(book)
    try:
        yield book
    finally:
        _open.reset(token)

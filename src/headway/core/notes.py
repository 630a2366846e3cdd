"""Notes of an answer, each said once by whoever assumes, drops or finds something on the way to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field


@dataclass(slots=True)
class Notebook:
    """Notes of one answer."""

    texts: list[str] = field(default_factory=list)  # in the order of the work
    remarks: list[str] = field(default_factory=list)  # on models and machines
    borrowed: list[str] = field(default_factory=list)  # costs that hypothetical chips borrow, which the sentence says


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


@contextmanager
def noted() -> Iterator[Notebook]:
    """Within this block notes are kept; inside another one they are its own."""
    book = Notebook()
    token = _open.set(book)
    try:
        yield book
    finally:
        _open.reset(token)

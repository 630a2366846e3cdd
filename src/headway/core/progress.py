"""Progress of a run: runs call `expect`, `tick` and `draft`, `watched` sets the listeners that show it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

# Called with a line that a long run says before it begins.
_hearer: ContextVar[Callable[[str], None] | None] = ContextVar("hearer", default=None)
# Called with the work that was done and the work that was announced.
_listener: ContextVar[Callable[[int, int], None] | None] = ContextVar("listener", default=None)
# Called with what makes the answer as far as it is known, whenever more of it is.
_reader: ContextVar[Callable[[Callable[[], Any]], None] | None] = ContextVar("reader", default=None)


def tick(count: int) -> None:
    """Report that `count` more layouts were evaluated."""
    listener = _listener.get()
    if listener is not None:
        listener(count, 0)


def expect(count: int) -> None:
    """Announce that `count` more layouts will be evaluated, so that progress has an end."""
    listener = _listener.get()
    if listener is not None:
        listener(0, count)


def tell(text: str) -> None:
    """Say a line before a long run begins, to whoever waits for it."""
    hearer = _hearer.get()
    if hearer is not None:
        hearer(text)


def draft(make: Callable[[], Any]) -> None:
    """Offer the answer so far; `make` makes it, where anybody wants it now."""
    reader = _reader.get()
    if reader is not None:
        reader(make)


@contextmanager
def watched(
    listener: Callable[[int, int], None],
    hearer: Callable[[str], None] | None = None,
    reader: Callable[[Callable[[], Any]], None] | None = None,
) -> Iterator[None]:
    """Within this block `listener` receives every tick and every announcement, `hearer` every line that is told, `reader` every draft."""
    token, hearer_token, reader_token = _listener.set(listener), _hearer.set(hearer), _reader.set(reader)
    try:
        yield
    finally:
        _listener.reset(token)
        _hearer.reset(hearer_token)
        _reader.reset(reader_token)

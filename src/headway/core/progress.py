"""Progress of a search: searches call `expect` and `tick`, `watched` sets the listener that shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# Called with the work that was done and the work that was announced.
_listener: ContextVar[Callable[[int, int], None] | None] = ContextVar("listener", default=None)


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


@contextmanager
def watched(listener: Callable[[int, int], None]) -> Iterator[None]:
    """Within this block `listener` receives every tick and every announcement."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)

"""Progress of a search: searches call `tick`, `watched` sets the listener that shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_listener: ContextVar[Callable[[int], None] | None] = ContextVar("listener", default=None)


def tick(count: int) -> None:
    """Report that `count` more layouts were evaluated."""
    listener = _listener.get()
    if listener is not None:
        listener(count)


@contextmanager
def watched(listener: Callable[[int], None]) -> Iterator[None]:
    """Within this block `listener` receives every tick."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)

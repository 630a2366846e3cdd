"""Telling whoever waits how far a search is: what searches calls `tick`, who shows it listens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_listener: ContextVar[Callable[[int], None] | None] = ContextVar("listener", default=None)


def tick(count: int) -> None:
    """So many more layouts have been weighed."""
    listener = _listener.get()
    if listener is not None:
        listener(count)


@contextmanager
def watched(listener: Callable[[int], None]) -> Iterator[None]:
    """Within this block `listener` hears every tick."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)

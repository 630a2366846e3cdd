"""A bar on the terminal for what takes longer than a second or two; nothing in a pipe, nothing for a quick answer."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from headway.watch import watched

PATIENCE_S = 1.0


@contextmanager
def bar(stream: Any = None, label: str = "layouts weighed", patience: float | None = None) -> Iterator[None]:
    """Show how many layouts have been weighed, or whatever is counted, once some time has passed."""
    out = sys.stderr if stream is None else stream
    if not out.isatty():
        yield
        return
    bars: list[Any] = []
    start, total = time.perf_counter(), 0
    after = PATIENCE_S if patience is None else patience

    def listen(count: int) -> None:
        nonlocal total
        total += count
        if not bars and time.perf_counter() - start > after:
            bars.append(_progress(out))
        if bars:
            bars[0].update(0, description=f"{total:,} {label}")

    try:
        with watched(listen):
            yield
    finally:
        for progress in bars:
            progress.stop()


def _progress(out: Any) -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    progress = Progress(TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), console=Console(file=out), transient=True)
    progress.add_task("", total=None)
    progress.start()
    return progress

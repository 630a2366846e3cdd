"""The runner of a command: the progress bar, and output of the answer."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from headway.core.errors import UnknownName
from headway.core.notes import Notebook
from headway.core.progress import watched
from headway.report import output
from headway.report.printed import Printed

FAILED = 2  # exit status of a command without an answer


@contextmanager
def bar(stream: Any, label: str, patience_s: float) -> Iterator[None]:
    """Show progress as `label` states and its end, after `patience_s`."""
    if not stream.isatty():
        yield
        return
    bars: list[Any] = []
    start, total, end = time.perf_counter(), 0, 0

    def listen(count: int, more: int) -> None:
        nonlocal total, end
        total, end = total + count, end + more
        if not bars and time.perf_counter() - start > patience_s:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

            columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn()
            bars.append(Progress(*columns, console=Console(file=stream), transient=True))
            bars[0].add_task("", total=None)
            bars[0].start()
        if bars:
            of = f" of {end:,}" if end >= total else ""
            rate = total / (time.perf_counter() - start)
            bars[0].update(0, description=f"{total:,}{of} {label}, {rate:,.3g}/s", completed=total, total=end if of else None)

    try:
        with watched(listen, lambda text: print(text, file=stream, flush=True)):
            yield
    finally:
        for progress in bars:
            progress.stop()


def finish(answer: output.Answer, book: Notebook, printed: Printed, command: Sequence[str]) -> None:
    """Choose the rows of an answer as asked and print it."""
    if answer.dialogue and printed.format == "text":
        answer = answer.dialogue()
    borrowed = "; ".join(book.borrowed)
    output.settle(answer, book, borrowed, printed.where, printed.sort)
    answer.verbose, answer.depth = printed.verbose, printed.levels()
    if printed.format not in output.FORMATS:
        if printed.format not in answer.documents:
            raise UnknownName("output format", printed.format, output.FORMATS, "one of " + ", ".join(output.FORMATS))
        answer.document = answer.documents[printed.format]()
    keys = printed.keys()
    if keys and len(answer.rows):
        answer.trees = {key: answer.rows.explain(key) for key in keys}
    if printed.format in output.SPOKEN or answer.status == FAILED:
        output.describe(answer, borrowed)
    if printed.plot:
        output.draw(answer, printed.view(), printed.picture).save(printed.plot)
    output.write(answer, printed.format, book.as_read(command))
    if answer.status == FAILED and printed.format not in ("text", "md"):  # a script that reads rows is told why as well
        sys.stderr.write(f"headway: {' '.join(answer.words.headline.split())}\n")

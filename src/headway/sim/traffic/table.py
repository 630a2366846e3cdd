"""Reads a trace that is a table (CSV), some thousand lines at a time."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, TextIO

import numpy as np

from headway.errors import BadFile
from headway.sim.traffic import cells
from headway.sim.traffic.formats import CONVERSATION, KNOWN, TraceFormat, recognised
from headway.sim.traffic.record import NO_CONVERSATION, Traffic
from headway.sim.traffic.trace import Tally, Trace, in_order

AT_ONCE = 8192  # lines: more are slower, for their cells outgrow the caches
Rows = tuple[Any, Any, Any, Any]  # arrival in ticks, prompt, output, conversation


def read_table(file: TextIO, path: object, most_malformed: float) -> Trace:
    """A trace from a CSV file whose header names its format."""
    lines = csv.reader(map(_closed, file))
    try:
        header = [name.strip().lower() for name in next(lines, [])]
        layout = recognised(header)
        if layout is None:
            raise BadFile(path, f"is no known trace: its first line is {','.join(header)[:80]!r}; known are {KNOWN}")
        tally, columns = Tally(), _columns(layout, header)
        chunks = [_chunk(first, chunk, layout, columns, tally) for first, chunk in _numbered(lines)]
    except csv.Error as error:
        raise BadFile(path, f"line {lines.line_num}: is not CSV ({error})") from None
    tally.check(path, most_malformed)
    arrival, prompt, output, conversation = (np.concatenate(parts) for parts in zip(*chunks, strict=True))
    order, late = in_order(arrival)
    if order is not None:
        arrival, prompt, output, conversation = (values[order] for values in (arrival, prompt, output, conversation))
    traffic = Traffic.of((arrival - arrival[0]) * layout.tick_s, prompt, output, conversation=conversation)
    return Trace(
        format=layout.name,
        traffic=traffic,
        lines=tally.lines,
        malformed_count=tally.malformed_count,
        malformed=tuple(tally.malformed),
        failed=tally.failed,
        sorted=late,
    )


def _closed(line: str) -> str:
    """A line whose quotes are in pairs; one that is not would take those after it for its own, and is malformed by itself."""
    return line if line.count('"') % 2 == 0 else line.replace('"', "'")


def _columns(layout: TraceFormat, header: list[str]) -> list[tuple[int, str, cells.Column]]:
    """Where each column is, what it is called there, and how its cells are read: arrival, prompt, output and perhaps conversation."""
    columns = [
        (header.index(name), name, read)
        for name, read in ((layout.arrival, layout.time), (layout.prompt, cells.lengths), (layout.output, cells.lengths))
    ]
    name = next((name for name in CONVERSATION if name in header), None)
    return [*columns, (header.index(name), name, cells.Names())] if name else columns


def _numbered(lines: Any) -> Iterator[tuple[int, list[list[str]]]]:
    """Lines many at a time, with the number of the first."""
    first = lines.line_num + 1
    while chunk := list(islice(lines, AT_ONCE)):
        yield first, chunk
        first = lines.line_num + 1


def _chunk(first: int, chunk: list[list[str]], layout: TraceFormat, columns: Sequence[tuple[int, str, cells.Column]], tally: Tally) -> Rows:
    """The good rows of some lines; the others are tallied."""
    width = 1 + max(at for at, _, _ in columns)
    rows, at_line, wrong = _wide_enough(first, chunk, width)
    values, bad = [], {}
    for at, name, read in columns:
        column, reasons = read([row[at] for row in rows], name)
        values.append(column)
        bad = {**reasons, **bad}  # the first column's reason is the one shown
    if len(values) == 3:
        values.append(np.full(len(rows), NO_CONVERSATION, np.int64))
    _zero_lengths(values, layout, bad)
    keep = np.ones(len(rows), bool)
    keep[list(bad)] = False
    wrong += [(at_line[row], why) for row, why in bad.items()]
    tally.lines += len(rows) - len(bad) + len(wrong)
    for line, why in sorted(wrong):
        tally.bad(line, why)
    if layout.failures:
        failed = keep & (values[2] == 0)
        tally.failed += int(failed.sum())
        keep &= ~failed
    return values[0][keep], values[1][keep], values[2][keep], values[3][keep]


def _wide_enough(first: int, chunk: list[list[str]], width: int) -> tuple[list[list[str]], Sequence[int], list[tuple[int, str]]]:
    """Rows that have every column, their line numbers, and the lines that have not (a blank one is neither)."""
    if all(len(row) >= width for row in chunk):
        return chunk, range(first, first + len(chunk)), []
    numbered = list(enumerate(chunk, first))
    good = [(line, row) for line, row in numbered if len(row) >= width]
    wrong = [(line, f"{len(row)} cells; wants at least {width}") for line, row in numbered if 0 < len(row) < width]
    return [row for _, row in good], [line for line, _ in good], wrong


def _zero_lengths(values: list[Any], layout: TraceFormat, bad: cells.Why) -> None:
    """A request without a prompt, or without an answer where that is not how the format marks a failure, is malformed."""
    _, prompt, output, _ = values
    empty = [(output, layout.output)] if not layout.failures else []
    wrong = prompt == 0 if not layout.failures else (prompt == 0) & (output > 0)
    for row in np.flatnonzero(wrong):
        bad.setdefault(int(row), f"{layout.prompt}: got 0; wants at least 1 token")
    for column, name in empty:
        for row in np.flatnonzero(column == 0):
            bad.setdefault(int(row), f"{name}: got 0; wants at least 1 token")

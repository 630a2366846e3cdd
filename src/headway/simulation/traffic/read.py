"""Reader of traces of any known format, compressed or not: CSV tables, or JSON lines with block ids, as in Mooncake's traces."""

from __future__ import annotations

import codecs
import csv
import functools
import io
import json
import re
import warnings
import zlib
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from headway.core import user_file
from headway.core.csv_text import width_error
from headway.core.errors import BadFile, BadValue, clip
from headway.core.measured import INSTANT, reason
from headway.simulation.traffic.requests import LONGEST, NO_CONVERSATION, Floats, Ints, Tally, Trace, Traffic, in_order, without_strays

BLOCK = 512  # tokens per block in Mooncake's own traces
MILLISECOND = 1e-3
TOO_MANY = "hash_ids: got {}; wants one for each {} tokens (--trace-block) of a prompt of {}"
SECONDS_KEY = "chat_id"  # of Qwen's traces, whose timestamps are seconds


class _BadLine(Exception):
    """The reason why a line is malformed."""


@dataclass(frozen=True, slots=True)
class _Requests:
    """Requests as their lines state them, and the ids of their blocks one after another."""

    lines: Ints
    time: Any
    prompt: Ints
    output: Ints
    ids: Ints
    start: Ints
    conversation: Ints
    delay: Any  # after the answer before, nan for a line with a time of its own

    def subset(self, rows: Ints) -> _Requests:
        """Some of them, in this order."""
        ids, start = _reordered(self.ids, self.start, rows)
        return _Requests(
            self.lines[rows], self.time[rows], self.prompt[rows], self.output[rows], ids, start, self.conversation[rows], self.delay[rows]
        )  # fmt: skip

    def pause(self, unit: float) -> Any:
        """Seconds after the answer before, 0 for a line with a time of its own; None where all have one."""
        return None if np.isnan(self.delay).all() else np.nan_to_num(self.delay, nan=0.0) * unit


class _Conversations:
    """Turns of conversations, each of which names the time after the answer before it, or a time of its own and begins anew."""

    def __init__(self) -> None:
        self.last: dict[str, tuple[int, float]] = {}  # id -> its conversation, and its last turn's time had answers come at once
        self.count = 0

    def turn(self, name: str, time: float | None, delay: float | None) -> tuple[int, float, float]:
        """Conversation, time and delay of the next turn of one id."""
        if not name:
            if time is None:
                raise _BadLine("timestamp: missing; wants a number, or session_id and delay of a later turn")
            return NO_CONVERSATION, time, np.nan
        number, before = self.last.get(name, (NO_CONVERSATION, 0.0))
        if number != NO_CONVERSATION and delay is not None:
            time = before + delay
        elif time is None:
            wants = "a delay" if number != NO_CONVERSATION else "a number in the first turn of a conversation"
            raise _BadLine(f"timestamp: missing; wants {wants}")
        else:
            number, delay = self.count, None
            self.count += 1
        self.last[name] = number, time
        return number, time, np.nan if delay is None else delay


def read_mooncake(file: TextIO, path: object, most_malformed: float, block: int | None = None) -> Trace:
    """A trace from lines of {"timestamp": ..., "input_length": ..., "output_length": ..., "hash_ids": [an id per `block` tokens]}.

    Timestamps are milliseconds, as Mooncake's; seconds where lines have the keys of Qwen's traces, or fractions. Without `block` it is
    Mooncake's, else the largest power of two that the counts of ids allow. A line with a "session_id" of an earlier line may have a
    "delay" in place of a timestamp: it is sent so long after the answer to that line.
    """
    tally = Tally()
    requests, unit = _read_lines(file, block, tally)
    tally.check(path, most_malformed)
    if block is None:
        counts = np.diff(requests.start)
        block = _block_of(requests.prompt, counts)
        fits = counts <= -(-requests.prompt // block)
        for row in np.flatnonzero(~fits):
            tally.bad(int(requests.lines[row]), TOO_MANY.format(counts[row], block, requests.prompt[row]))
        tally.check(path, most_malformed)
        requests = requests.subset(np.flatnonzero(fits))
    order, _ = in_order(requests.time)
    late = in_order(requests.time[np.isnan(requests.delay)])[1]
    requests = requests if order is None else requests.subset(order)
    near = without_strays((requests.time - requests.time[0]) * unit, requests.lines, "timestamp", tally)
    if near is not None:
        requests = requests.subset(np.flatnonzero(near))
        of_lines = requests.subset(np.argsort(requests.lines))
        late = in_order(of_lines.time[np.isnan(of_lines.delay)])[1]
    read_as = [f"timestamps taken as seconds ({SECONDS_KEY} or fractions of a millisecond)"] if unit == 1.0 else []
    read_as += [f"hash_ids of {block} tokens each, by their counts (--trace-block)"] if len(requests.ids) and block != BLOCK else []
    traffic = Traffic.of(
        (requests.time - requests.time[0]) * unit, requests.prompt, requests.output,
        blocks=requests.ids, block_start=requests.start, block_tokens=block, conversation=requests.conversation, pause=requests.pause(unit),
    )  # fmt: skip
    if traffic.pause is not None:
        turns = int(np.isfinite(requests.delay).sum())
        read_as.append(f"{turns} turns of conversations are sent their delay after the answer before, not at a recorded time")
    return replace(tally.trace("mooncake", traffic, late), units=tuple(read_as))


def _read_lines(file: TextIO, block: int | None, tally: Tally) -> tuple[_Requests, float]:
    """The requests of all good lines, and the seconds of a unit of time."""
    times, prompts, outputs, starts, ids, at_line, unit = [], [], [], [0], [], array("q"), MILLISECOND
    conversations, talks, delays = _Conversations(), array("q"), array("d")
    for number, line in enumerate(file, 1):
        if not line.strip():
            continue
        tally.lines += 1
        try:
            row, prompt, output, of_line = _request(line, block)
            stamp, wait = (_time(row, name) for name in ("timestamp", "delay"))
            talk, time, delay = conversations.turn(_conversation(row), stamp, wait)
        except _BadLine as error:
            tally.bad(number, str(error))
            continue
        unit = 1.0 if SECONDS_KEY in row or (stamp is not None and stamp != int(stamp)) else unit
        talks.append(talk)
        delays.append(delay)
        at_line.append(number)
        times.append(time)
        prompts.append(prompt)
        outputs.append(output)
        ids.extend(of_line)
        starts.append(len(ids))
    lines, prompt_array, output_array, id_array, start = (np.array(part, np.int64) for part in (at_line, prompts, outputs, ids, starts))
    when, waits, talk_array = np.array(times, np.float64), np.array(delays, np.float64), np.array(talks, np.int64)
    return _Requests(lines, when, prompt_array, output_array, id_array, start, talk_array, waits), unit


def _block_of(prompts: Ints, counts: Ints) -> int:
    """Tokens per id: Mooncake's, unless more prompts have more ids than that; then the largest power of two that suits all but a few."""
    blocks = [BLOCK >> power for power in range(BLOCK.bit_length())]
    return next((block for block in blocks if (counts > -(-prompts // block)).mean() <= MOST_MALFORMED), BLOCK)


def _request(line: str, block: int | None) -> tuple[dict[str, Any], int, int, list[int]]:
    """A line as JSON, and its lengths and block ids."""
    try:
        row = json.loads(line, object_pairs_hook=user_file.members)
    except (ValueError, RecursionError) as error:
        raise _BadLine(str(error) if "twice" in str(error) else f"is not JSON: {clip(line, 40)!r}") from None
    if not isinstance(row, dict):
        raise _BadLine(f"is no JSON object: {clip(line, 40)!r}")
    prompt, output = _tokens(row, "input_length"), _tokens(row, "output_length")
    ids: Any = row.get("hash_ids", [])
    if type(ids) is not list or not all(type(block_id) is int and -(2**63) <= block_id < 2**63 for block_id in ids):
        raise _BadLine(f"hash_ids: got {clip(ids)!r}; wants a list of whole numbers")
    if block is not None and len(ids) > -(-prompt // block):
        raise _BadLine(TOO_MANY.format(len(ids), block, prompt))
    return row, prompt, output, ids


def _time(row: dict[str, Any], name: str) -> float | None:
    """A time as the line has it, None without any; a timestamp is missing only where the line has a conversation's id."""
    time = row.get(name)
    if time is None and (name != "timestamp" or "session_id" in row):
        return None
    if not isinstance(time, int | float) or isinstance(time, bool):
        raise _BadLine(f"{name}: got {clip(time)!r}; wants a number")
    if not INSTANT.low <= time <= INSTANT.high / MILLISECOND:
        raise _BadLine(reason(time, INSTANT, name, MILLISECOND))
    return float(time)


def _conversation(row: dict[str, Any]) -> str:
    """Name of the conversation of a line, "" without any."""
    name: Any = row.get("session_id", "")
    if type(name) not in (int, str):
        raise _BadLine(f"session_id: got {clip(name)!r}; wants a text or a whole number")
    return str(name)


def _tokens(row: dict[str, Any], name: str) -> int:
    value: Any = row.get(name)
    if type(value) not in (int, float) or not 1 <= value <= LONGEST or value != int(value):
        raise _BadLine(f"{name}: got {clip(value)!r}; wants whole tokens from 1 to {LONGEST}")
    return int(value)


def _reordered(ids: Ints, start: Ints, order: Ints) -> tuple[Ints, Ints]:
    """Block ids and offsets of some requests, in this order."""
    counts = np.diff(start)[order]
    offsets = np.concatenate([[0], np.cumsum(counts)])
    return ids[np.repeat(start[:-1][order] - offsets[:-1], counts) + np.arange(offsets[-1])], offsets


MOST_MALFORMED = 0.05  # share of malformed lines above which a trace is refused
LOOKED_AT = 4096  # bytes read to detect the format


def read_trace(path: str | Path, most_malformed: float = MOST_MALFORMED, block: int | None = None) -> Trace:
    """The requests of a trace, with the first arrival at 0, and counts of its other lines.

    Formats: Azure, BurstGPT, Vidur and plain (arrival_s,prompt,output[,conversation]) CSV, and Mooncake's JSON lines; optionally gzip.
    Requests out of order are sorted by arrival, and counted. Malformed lines are dropped; a larger share than `most_malformed` is an
    error. `block` is the number of prompt tokens per id in JSON lines, by default by their counts.
    """
    if not 0 <= most_malformed <= 1:
        raise BadValue("most malformed", most_malformed, "a share from 0 to 1")
    try:
        with user_file.opened_lines(path, user_file.TRACE) as binary:
            begin = binary.peek(LOOKED_AT)[:LOOKED_AT].removeprefix(codecs.BOM_UTF8).lstrip()[:1]
            if not begin:
                raise BadFile(path, "is empty")
            read = functools.partial(read_mooncake, block=block) if begin == b"{" else read_table
            # Undecodable bytes make a malformed line, not the end of the file.
            with io.TextIOWrapper(binary, encoding="utf-8-sig", errors="replace", newline="") as file:
                return read(file, path, most_malformed)
    except (EOFError, zlib.error) as error:
        raise BadFile(path, f"is not whole gzip ({error})") from None


STAMP = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d(?:\.\d{1,9})?)\s*(Z|[+-]\d\d:?\d\d)?", re.ASCII)
Why = dict[int, str]  # row -> reason why it is malformed
Column = Callable[[Sequence[str], str], tuple[Any, Why]]


def seconds(cells: Sequence[str], name: str) -> tuple[Floats, Why]:
    """Arrivals in seconds from numeric cells, and malformed rows."""
    values, bad = _floats(cells, name, "seconds, as a number")
    for row in np.flatnonzero(~((values >= INSTANT.low) & (values <= INSTANT.high))).tolist():
        bad.setdefault(row, reason(cells[row], INSTANT, name))
    return values, bad


def lengths(cells: Sequence[str], name: str) -> tuple[Floats, Why]:
    """Whole tokens as floats, and malformed rows; negative is malformed, 0 is left to the format."""
    values, bad = _floats(cells, name, "whole tokens")
    for row in np.flatnonzero(~((values >= 0) & (values <= LONGEST) & (values == np.floor(values)))).tolist():
        bad.setdefault(row, _wants(name, cells[row], f"whole tokens from 1 to {LONGEST}"))
    return values, bad


def stamps(cells: Sequence[str], name: str) -> tuple[Any, Why]:
    """Dates with time of day as nanoseconds since 1970 UTC (int64, so that differences are exact), and malformed rows."""
    first = STAMP.fullmatch(cells[0].strip()) if len(cells) else None
    zone = (first[3] or "") if first else ""
    if zone in ("", "Z", "+00:00") and all(cell.endswith(zone) for cell in cells):
        cut = -len(zone) or None
        try:
            with warnings.catch_warnings():  # numpy warns about a time zone in a later cell, handled below
                warnings.simplefilter("error")
                dates = np.array([cell[:cut].rstrip() for cell in cells], "datetime64[ns]")
            if not np.isnat(dates).any():
                return dates.astype(np.int64), {}
        except (ValueError, Warning):
            pass
    values, bad = np.zeros(len(cells), np.int64), {}
    for row, cell in enumerate(cells):
        instant = _instant(cell.strip())
        if instant is None:
            bad[row] = _wants(name, cell, "a time such as 2023-11-16 18:15:46.6805900")
        else:
            values[row] = instant
    return values, bad


class Names:
    """Text ids as numbers in order of first appearance in a file; "" means no conversation."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {"": NO_CONVERSATION}

    def __call__(self, cells: Sequence[str], name: str) -> tuple[Any, Why]:
        known = self.known
        return np.fromiter((known.setdefault(cell.strip(), len(known) - 1) for cell in cells), np.int64, len(cells)), {}


def _floats(cells: Sequence[str], name: str, wants: str) -> tuple[Floats, Why]:
    separated = "_" in "".join(cells)  # 1_000 is a number to Python alone
    try:
        if not separated:
            return np.fromiter(map(float, cells), np.float64, len(cells)), {}
    except ValueError:
        pass
    values, bad = np.zeros(len(cells)), {}
    for row, cell in enumerate(cells):
        try:
            values[row] = float("x" if "_" in cell else cell)
        except ValueError:
            bad[row] = _wants(name, cell, wants)
    return values, bad


def _instant(text: str) -> int | None:
    match = STAMP.fullmatch(text)
    if not match:
        return None
    try:
        instant_ns = int(np.datetime64(f"{match[1]}T{match[2]}", "ns").astype(np.int64))
    except ValueError:
        return None
    zone = match[3]
    if not zone or zone == "Z":
        return instant_ns
    offset_s = (int(zone[1:3]) * 60 + int(zone[-2:])) * (-60 if zone[0] == "-" else 60)
    return instant_ns - offset_s * 1_000_000_000


def _wants(name: str, cell: str, wants: str) -> str:
    return f"{name}: got {clip(cell)!r}; wants {wants}"


CONVERSATION = ("conversation", "Session ID".lower(), "Session_ID".lower(), "Session".lower())


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceFormat:
    """A format of request tables: names (lower case) and meaning of its columns."""

    name: str
    arrival: str
    prompt: str
    output: str
    time: Column  # reader of the arrival column
    tick_s: float  # seconds per unit of the arrival column
    failures: bool  # True: a row without output tokens is a failed request, not a malformed line

    @property
    def header(self) -> str:
        return f"{self.arrival},{self.prompt},{self.output}"


TABLES = (
    TraceFormat(
        name="azure", arrival="timestamp", prompt="contexttokens", output="generatedtokens", time=stamps, tick_s=1e-9, failures=False
    ),
    TraceFormat(
        name="burstgpt",
        arrival="timestamp",
        prompt="request tokens",
        output="response tokens",
        time=seconds,
        tick_s=1.0,
        failures=True,
    ),
    TraceFormat(
        name="vidur",
        arrival="arrived_at",
        prompt="num_prefill_tokens",
        output="num_decode_tokens",
        time=seconds,
        tick_s=1.0,
        failures=False,
    ),
    TraceFormat(name="plain", arrival="arrival_s", prompt="prompt", output="output", time=seconds, tick_s=1.0, failures=False),
)
KNOWN = (
    "; ".join(f"{table.name} ({table.header})" for table in TABLES) + "; mooncake (JSON lines with timestamp, input_length, output_length)"
)


def recognised(header: list[str]) -> TraceFormat | None:
    """The format whose three columns are in the header, in any order and letter case, or None."""
    return next((table for table in TABLES if {table.arrival, table.prompt, table.output} <= set(header)), None)


AT_ONCE = 8192  # lines read at once; more would outgrow the CPU caches
Rows = tuple[Any, Any, Any, Any, Any]  # arrival in ticks, prompt, output, conversation, line


def read_table(file: TextIO, path: object, most_malformed: float) -> Trace:
    """A trace from a CSV file whose header names its format."""
    lines = csv.reader(map(_closed, file))
    try:
        header = [name.strip().lower() for name in next(lines, [])]
        layout = recognised(header)
        if layout is None:
            raise BadFile(path, f"is no known trace: its first line is {','.join(header)[:80]!r}; known are {KNOWN}")
        twice = next((name for name in header if name and header.count(name) > 1), None)
        if twice is not None:
            raise BadFile(path, f"has two columns {twice!r}; wants one, since nobody knows which holds")
        tally, columns = Tally(), _columns(layout, header)
        chunks = [_chunk(first, chunk, len(header), layout, columns, tally) for first, chunk in _numbered(lines)]
    except csv.Error as error:
        raise BadFile(path, f"line {lines.line_num}: is not CSV ({error})") from None
    tally.check(path, most_malformed)
    rows = tuple(np.concatenate(parts) for parts in zip(*chunks, strict=True))
    order, late = in_order(rows[0])
    if order is not None:
        rows = tuple(values[order] for values in rows)
    near = without_strays((rows[0] - rows[0][0]) * layout.tick_s, rows[4], layout.arrival, tally)
    if near is not None:
        rows = tuple(values[near] for values in rows)
        late = in_order(rows[0][np.argsort(rows[4])])[1]
    arrival, prompt, output, conversation, _ = rows
    traffic = Traffic.of((arrival - arrival[0]) * layout.tick_s, prompt, output, conversation=conversation)
    return tally.trace(layout.name, traffic, late)


def _closed(line: str) -> str:
    """The line, with unpaired double quotes replaced, since an open quote would swallow the lines after it."""
    return line if line.count('"') % 2 == 0 else line.replace('"', "'")


def _columns(layout: TraceFormat, header: list[str]) -> list[tuple[int, str, Column]]:
    """Index, name and reader of each column: arrival, prompt, output and optionally conversation."""
    columns = [
        (header.index(name), name, read)
        for name, read in ((layout.arrival, layout.time), (layout.prompt, lengths), (layout.output, lengths))
    ]
    name = next((name for name in CONVERSATION if name in header), None)
    return [*columns, (header.index(name), name, Names())] if name else columns


def _numbered(lines: Any) -> Iterator[tuple[int, list[list[str]]]]:
    """Chunks of rows, each with the number of its first line."""
    first = lines.line_num + 1
    while chunk := list(islice(lines, AT_ONCE)):
        yield first, chunk
        first = lines.line_num + 1


def _chunk(
    first: int, chunk: list[list[str]], width: int, layout: TraceFormat, columns: Sequence[tuple[int, str, Column]], tally: Tally
) -> Rows:
    """The well-formed rows of a chunk; malformed lines are tallied."""
    rows, at_line, wrong = _of_width(first, chunk, width)
    values, bad = [], {}
    for at, name, read in columns:
        column, reasons = read([row[at] for row in rows], name)
        values.append(column)
        bad = {**reasons, **bad}  # the first column's reason is shown
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
    lines = np.fromiter(at_line, np.int64, len(rows))
    return values[0][keep], values[1][keep], values[2][keep], values[3][keep], lines[keep]


def _of_width(first: int, chunk: list[list[str]], width: int) -> tuple[list[list[str]], Sequence[int], list[tuple[int, str]]]:
    """Rows with a cell for each column, their line numbers, and the lines with fewer or more; blank lines are skipped."""
    if all(len(row) == width for row in chunk):
        return chunk, range(first, first + len(chunk)), []
    numbered = [(line, row, width_error(row, width)) for line, row in enumerate(chunk, first) if row]
    good = [(line, row) for line, row, why in numbered if not why]
    wrong = [(line, why) for line, _, why in numbered if why]
    return [row for _, row in good], [line for line, _ in good], wrong


def _zero_lengths(values: list[Any], layout: TraceFormat, bad: Why) -> None:
    """Mark rows without prompt tokens as malformed, and rows without output tokens unless the format marks failures so."""
    _, prompt, output, _ = values
    empty = [(output, layout.output)] if not layout.failures else []
    wrong = prompt == 0 if not layout.failures else (prompt == 0) & (output > 0)
    for row in np.flatnonzero(wrong):
        bad.setdefault(int(row), f"{layout.prompt}: got 0; wants at least 1 token")
    for column, name in empty:
        for row in np.flatnonzero(column == 0):
            bad.setdefault(int(row), f"{name}: got 0; wants at least 1 token")

"""Reader of traces of any known format, compressed or not: CSV tables, or JSON lines with block ids, as in Mooncake's traces."""

from __future__ import annotations

import codecs
import functools
import io
import json
import zlib
from array import array
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from headway.core import user_file
from headway.core.errors import BadFile, BadValue, clip
from headway.core.measured import INSTANT, reason
from headway.simulation.traffic.csv import read_table
from headway.simulation.traffic.requests import LONGEST, Ints, Tally, Trace, Traffic, in_order, without_strays

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

    def subset(self, rows: Ints) -> _Requests:
        """Some of them, in this order."""
        ids, start = _reordered(self.ids, self.start, rows)
        return _Requests(self.lines[rows], self.time[rows], self.prompt[rows], self.output[rows], ids, start)


def read_mooncake(file: TextIO, path: object, most_malformed: float, block: int | None = None) -> Trace:
    """A trace from lines of {"timestamp": ..., "input_length": ..., "output_length": ..., "hash_ids": [an id per `block` tokens]}.

    Timestamps are milliseconds, as Mooncake's; seconds where lines have the keys of Qwen's traces, or fractions. Without `block` it is
    Mooncake's, else the largest power of two that the counts of ids allow.
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
    order, late = in_order(requests.time)
    requests = requests if order is None else requests.subset(order)
    near = without_strays((requests.time - requests.time[0]) * unit, requests.lines, "timestamp", tally)
    if near is not None:
        requests = requests.subset(np.flatnonzero(near))
        late = in_order(requests.time[np.argsort(requests.lines)])[1]
    read_as = [f"timestamps taken as seconds ({SECONDS_KEY} or fractions of a millisecond)"] if unit == 1.0 else []
    read_as += [f"hash_ids of {block} tokens each, by their counts (--trace-block)"] if len(requests.ids) and block != BLOCK else []
    traffic = Traffic.of(
        (requests.time - requests.time[0]) * unit, requests.prompt, requests.output,
        blocks=requests.ids, block_start=requests.start, block_tokens=block,
    )  # fmt: skip
    return replace(tally.trace("mooncake", traffic, late), units=tuple(read_as))


def _read_lines(file: TextIO, block: int | None, tally: Tally) -> tuple[_Requests, float]:
    """The requests of all good lines, and the seconds of a unit of time."""
    times, prompts, outputs, starts, ids, at_line, unit = [], [], [], [0], [], array("q"), MILLISECOND
    for number, line in enumerate(file, 1):
        if not line.strip():
            continue
        tally.lines += 1
        try:
            time, prompt, output, of_line, has_seconds = _request(line, block)
        except _BadLine as error:
            tally.bad(number, str(error))
            continue
        unit = 1.0 if has_seconds else unit
        at_line.append(number)
        times.append(time)
        prompts.append(prompt)
        outputs.append(output)
        ids.extend(of_line)
        starts.append(len(ids))
    lines, prompt_array, output_array, id_array, start = (np.array(part, np.int64) for part in (at_line, prompts, outputs, ids, starts))
    return _Requests(lines, np.array(times, np.float64), prompt_array, output_array, id_array, start), unit


def _block_of(prompts: Ints, counts: Ints) -> int:
    """Tokens per id: Mooncake's, unless more prompts have more ids than that; then the largest power of two that suits all but a few."""
    blocks = [BLOCK >> power for power in range(BLOCK.bit_length())]
    return next((block for block in blocks if (counts > -(-prompts // block)).mean() <= MOST_MALFORMED), BLOCK)

def _request(line: str, block: int | None) -> tuple[float, int, int, list[int], bool]:
    try:
        row = json.loads(line, object_pairs_hook=user_file.members)
    except (ValueError, RecursionError) as error:
        raise _BadLine(str(error) if "twice" in str(error) else f"is not JSON: {clip(line, 40)!r}") from None
    if not isinstance(row, dict):
        raise _BadLine(f"is no JSON object: {clip(line, 40)!r}")
    time: Any = row.get("timestamp")
    if type(time) not in (int, float):
        raise _BadLine(f"timestamp: got {clip(time)!r}; wants a number")
    if not INSTANT.low <= time <= INSTANT.high / MILLISECOND:
        raise _BadLine(reason(time, INSTANT, "timestamp", MILLISECOND))
    prompt, output = _tokens(row, "input_length"), _tokens(row, "output_length")
    ids: Any = row.get("hash_ids", [])
    if type(ids) is not list or not all(type(block_id) is int and -(2**63) <= block_id < 2**63 for block_id in ids):
        raise _BadLine(f"hash_ids: got {clip(ids)!r}; wants a list of whole numbers")
    if block is not None and len(ids) > -(-prompt // block):
        raise _BadLine(TOO_MANY.format(len(ids), block, prompt))
    return float(time), prompt, output, ids, SECONDS_KEY in row or time != int(time)


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

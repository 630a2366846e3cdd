"""Reader of traces of any known format, compressed or not: CSV tables, or JSON lines with block ids, as in Mooncake's traces."""

from __future__ import annotations

import codecs
import functools
import io
import json
import zlib
from array import array
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from headway.core import user_file
from headway.core.errors import BadFile, BadValue, clip
from headway.core.measured import INSTANT, reason
from headway.sim.traffic.csv import read_table
from headway.sim.traffic.requests import LONGEST, Ints, Tally, Trace, Traffic, in_order, without_strays

BLOCK = 512  # tokens per block in Mooncake's own traces
MILLISECOND = 1e-3


class _BadLine(Exception):
    """The reason why a line is malformed."""


def read_mooncake(file: TextIO, path: object, most_malformed: float, block: int = BLOCK) -> Trace:
    """A trace from lines of {"timestamp": ms, "input_length": ..., "output_length": ..., "hash_ids": [an id per `block` tokens]}."""
    tally = Tally()
    times, prompts, outputs, starts, blocks, at_line = [], [], [], [0], [], array("q")
    for number, line in enumerate(file, 1):
        if not line.strip():
            continue
        tally.lines += 1
        try:
            time, prompt, output, ids = _request(line, block)
        except _BadLine as error:
            tally.bad(number, str(error))
            continue
        at_line.append(number)
        times.append(time)
        prompts.append(prompt)
        outputs.append(output)
        blocks.extend(ids)
        starts.append(len(blocks))
    tally.check(path, most_malformed)
    arrival, lengths = np.array(times, np.float64), (np.array(prompts, np.int64), np.array(outputs, np.int64))
    ids, start, lines = (np.array(numbers, np.int64) for numbers in (blocks, starts, at_line))
    order, late = in_order(arrival)
    if order is not None:
        arrival, lines, lengths = arrival[order], lines[order], tuple(column[order] for column in lengths)
        ids, start = _reordered(ids, start, order)
    near = without_strays((arrival - arrival[0]) * MILLISECOND, lines, "timestamp", tally)
    if near is not None:
        arrival, lengths = arrival[near], tuple(column[near] for column in lengths)
        late = in_order(arrival[np.argsort(lines[near])])[1]
        ids, start = _reordered(ids, start, np.flatnonzero(near))
    traffic = Traffic.of((arrival - arrival[0]) * MILLISECOND, *lengths, blocks=ids, block_start=start, block_tokens=block)
    return tally.trace("mooncake", traffic, late)


def _request(line: str, block: int) -> tuple[float, int, int, list[int]]:
    try:
        row = json.loads(line, object_pairs_hook=user_file.members)
    except (ValueError, RecursionError) as error:
        raise _BadLine(str(error) if "twice" in str(error) else f"is not JSON: {clip(line, 40)!r}") from None
    if not isinstance(row, dict):
        raise _BadLine(f"is no JSON object: {clip(line, 40)!r}")
    time: Any = row.get("timestamp")
    if type(time) not in (int, float):
        raise _BadLine(f"timestamp: got {clip(time)!r}; wants milliseconds, as a number")
    if not INSTANT.low <= time <= INSTANT.high / MILLISECOND:
        raise _BadLine(reason(time, INSTANT, "timestamp", MILLISECOND))
    prompt, output = _tokens(row, "input_length"), _tokens(row, "output_length")
    ids: Any = row.get("hash_ids", [])
    if type(ids) is not list or not all(type(block_id) is int and -(2**63) <= block_id < 2**63 for block_id in ids):
        raise _BadLine(f"hash_ids: got {clip(ids)!r}; wants a list of whole numbers")
    if len(ids) > -(-prompt // block):
        raise _BadLine(f"hash_ids: got {len(ids)}; wants one for each {block} tokens (--trace-block) of a prompt of {prompt}")
    return float(time), prompt, output, ids


def _tokens(row: dict[str, Any], name: str) -> int:
    value: Any = row.get(name)
    if type(value) not in (int, float) or not 1 <= value <= LONGEST or value != int(value):
        raise _BadLine(f"{name}: got {clip(value)!r}; wants whole tokens from 1 to {LONGEST}")
    return int(value)


def _reordered(ids: Ints, start: Ints, order: Ints) -> tuple[Ints, Ints]:
    """Block ids and offsets with the requests reordered by `order`."""
    counts = np.diff(start)[order]
    offsets = np.concatenate([[0], np.cumsum(counts)])
    return ids[np.repeat(start[:-1][order] - offsets[:-1], counts) + np.arange(len(ids))], offsets


MOST_MALFORMED = 0.05  # share of malformed lines above which a trace is refused
LOOKED_AT = 4096  # bytes read to detect the format


def read_trace(path: str | Path, most_malformed: float = MOST_MALFORMED, block: int = BLOCK) -> Trace:
    """The requests of a trace, with the first arrival at 0, and counts of its other lines.

    Formats: Azure, BurstGPT, Vidur and plain (arrival_s,prompt,output[,conversation]) CSV, and Mooncake's JSON lines; optionally gzip.
    Requests out of order are sorted by arrival, and counted. Malformed lines are dropped; a larger share than `most_malformed` is an
    error. `block` is the number of prompt tokens per id in JSON lines.
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

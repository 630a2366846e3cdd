"""Reads a trace of any known format, compressed or not; the format is recognised from how the file begins."""

from __future__ import annotations

import gzip
import io
import zlib
from pathlib import Path
from typing import BinaryIO, cast

from headway.errors import BadFile, BadValue
from headway.sim.traffic.mooncake import read_mooncake
from headway.sim.traffic.table import read_table
from headway.sim.traffic.trace import Trace

MOST_MALFORMED = 0.05  # share of the lines above which a trace is refused
GZIP = b"\x1f\x8b"


def read_trace(path: str | Path, most_malformed: float = MOST_MALFORMED) -> Trace:
    """The requests of a trace from the first arrival on, which is at 0, and what became of its other lines.

    Azure, BurstGPT, Vidur and plain (arrival_s,prompt,output[,conversation]) CSV, and Mooncake's JSON lines; any of them in gzip.
    Requests out of order are sorted by arrival, and counted. Malformed lines are left out, and more than a share of them refused.
    """
    if not 0 <= most_malformed <= 1:
        raise BadValue("most malformed", most_malformed, "a share from 0 to 1")
    try:
        with Path(path).open("rb") as raw:
            start = raw.read(2)
            raw.seek(0)
            binary = cast(BinaryIO, gzip.GzipFile(fileobj=raw)) if start == GZIP else raw
            # Bytes that are no text become a malformed line, not the end of the file.
            return _read(io.TextIOWrapper(binary, encoding="utf-8-sig", errors="replace", newline=""), path, most_malformed)
    except (EOFError, zlib.error) as error:
        raise BadFile(path, f"is not whole gzip ({error})") from None
    except OSError as error:
        raise BadFile(path, f"cannot be read ({error.strerror or error})") from None


def _read(file: io.TextIOWrapper, path: str | Path, most_malformed: float) -> Trace:
    begin = file.read(1)
    while begin and begin.isspace():
        begin = file.read(1)
    if not begin:
        raise BadFile(path, "is empty")
    file.seek(0)
    return (read_mooncake if begin == "{" else read_table)(file, path, most_malformed)

"""Reads a trace of any known format, compressed or not; the format is recognised from how the file begins."""

from __future__ import annotations

import codecs
import functools
import gzip
import io
import zlib
from pathlib import Path

from headway.errors import BadFile, BadValue
from headway.sim.traffic.mooncake import BLOCK, read_mooncake
from headway.sim.traffic.table import read_table
from headway.sim.traffic.trace import Trace

MOST_MALFORMED = 0.05  # share of the lines above which a trace is refused
LOOKED_AT = 4096  # bytes
GZIP = b"\x1f\x8b"


def read_trace(path: str | Path, most_malformed: float = MOST_MALFORMED, block: int = BLOCK) -> Trace:
    """The requests of a trace from the first arrival on, which is at 0, and what became of its other lines.

    Azure, BurstGPT, Vidur and plain (arrival_s,prompt,output[,conversation]) CSV, and Mooncake's JSON lines; any of them in gzip.
    Requests out of order are sorted by arrival, and counted. Malformed lines are left out, and more than a share of them refused.
    `block` is the prompt tokens that an id of JSON lines stands for.
    """
    if not 0 <= most_malformed <= 1:
        raise BadValue("most malformed", most_malformed, "a share from 0 to 1")
    try:
        with Path(path).open("rb") as raw:
            # Looked at without being taken, so that what cannot be read twice, such as a pipe, can be read too.
            packed = raw.peek(2)[:2] == GZIP
            with io.BufferedReader(gzip.GzipFile(fileobj=raw)) if packed else raw as binary:  # type: ignore[arg-type]
                begin = binary.peek(LOOKED_AT)[:LOOKED_AT].removeprefix(codecs.BOM_UTF8).lstrip()[:1]
                if not begin:
                    raise BadFile(path, "is empty")
                read = functools.partial(read_mooncake, block=block) if begin == b"{" else read_table
                # Bytes that are no text become a malformed line, not the end of the file.
                with io.TextIOWrapper(binary, encoding="utf-8-sig", errors="replace", newline="") as file:
                    return read(file, path, most_malformed)
    except (EOFError, zlib.error) as error:
        raise BadFile(path, f"is not whole gzip ({error})") from None
    except OSError as error:
        raise BadFile(path, f"cannot be read ({error.strerror or error})") from None

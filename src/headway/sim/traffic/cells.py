"""Columns of text to arrays of numbers: fast where every cell is good, cell by cell where one is not, so that each bad one is found."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headway.errors import clip
from headway.sim.traffic.record import LONGEST, NO_CONVERSATION, Floats

STAMP = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d(?:\.\d{1,9})?)\s*(Z|[+-]\d\d:?\d\d)?", re.ASCII)
ZONE = re.compile(r"Z|[+-]\d\d:?\d\d", re.ASCII)
FARTHEST = 1e12  # seconds: an arrival beyond is a mistake
Why = dict[int, str]  # row -> what is wrong with it
Column = Callable[[Sequence[str], str], tuple[Any, Why]]


def seconds(cells: Sequence[str], name: str) -> tuple[Floats, Why]:
    """Seconds written as numbers."""
    values, bad = _floats(cells, name, "seconds, as a number")
    for row in np.flatnonzero(~(np.abs(values) <= FARTHEST)).tolist():
        bad.setdefault(row, _wants(name, cells[row], "seconds, as a finite number"))
    return values, bad


def lengths(cells: Sequence[str], name: str) -> tuple[Floats, Why]:
    """Whole tokens, none included, as floats; below 0 is an error here and 0 one of the format."""
    values, bad = _floats(cells, name, "whole tokens")
    for row in np.flatnonzero(~((values >= 0) & (values <= LONGEST) & (values == np.floor(values)))).tolist():
        bad.setdefault(row, _wants(name, cells[row], f"whole tokens from 1 to {LONGEST}"))
    return values, bad


def stamps(cells: Sequence[str], name: str) -> tuple[Any, Why]:
    """Date and time of day, as nanoseconds since 1970 UTC (int64, so that differences are exact)."""
    first = STAMP.fullmatch(cells[0].strip()) if len(cells) else None
    zone = (first[3] or "") if first else ""
    if zone in ("", "Z", "+00:00") and all(cell.endswith(zone) for cell in cells):
        cut = -len(zone) or None
        try:
            with warnings.catch_warnings():  # a zone in a later cell is a warning of numpy's, and handled below
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
    """Text ids as numbers, in order of first appearance over all of a file; "" is no conversation."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {"": NO_CONVERSATION}

    def __call__(self, cells: Sequence[str], name: str) -> tuple[Any, Why]:
        known = self.known
        return np.fromiter((known.setdefault(cell.strip(), len(known) - 1) for cell in cells), np.int64, len(cells)), {}


def _floats(cells: Sequence[str], name: str, wants: str) -> tuple[Floats, Why]:
    try:
        return np.fromiter(map(float, cells), np.float64, len(cells)), {}
    except ValueError:
        pass
    values, bad = np.zeros(len(cells)), {}
    for row, cell in enumerate(cells):
        try:
            values[row] = float(cell)
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
    return instant_ns - _offset_s(match[3]) * 1_000_000_000


def _offset_s(zone: str | None) -> int:
    if not zone or zone == "Z":
        return 0
    minutes = int(zone[1:3]) * 60 + int(zone[-2:])
    return int(math.copysign(minutes * 60, -1 if zone[0] == "-" else 1))


def _wants(name: str, cell: str, wants: str) -> str:
    return f"{name}: got {clip(cell)!r}; wants {wants}"

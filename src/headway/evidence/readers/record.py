"""Reading one record of a benchmark's output: a value is there, absent or wrong, and one wrong record does not stop the others."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headway.errors import BadFile, HeadwayError, clip
from headway.evidence.row import BadRow, MeasuredRow

Record = Mapping[str, Any]
MOST = 1e15
MOST_WHY = 300  # characters


class Unusable(HeadwayError):
    """A record that is no measurement a row can hold; `str()` says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordLine:
    """A record and the line it starts on, or why there is none."""

    line: int
    record: Record | None
    why: str = ""


def rows_of(
    path: str | Path, entries: Iterable[RecordLine], make: Callable[[Record, int, str], MeasuredRow]
) -> tuple[list[MeasuredRow], list[BadRow]]:
    """A row of each record, by `make(record, line, id)`; BadFile when not one record could even be decoded."""
    rows: list[MeasuredRow] = []
    bad: list[BadRow] = []
    decoded = 0
    for number, entry in enumerate(entries, 1):
        name = f"{Path(path).stem}-{number}"
        if entry.record is None:
            bad.append(BadRow(line=entry.line, id=name, why=entry.why))
            continue
        decoded += 1
        try:
            rows.append(make(entry.record, entry.line, name))
        except Unusable as error:
            bad.append(BadRow(line=entry.line, id=name, why=clip(error, MOST_WHY)))
    if not decoded:
        raise BadFile(path, f"line {bad[0].line}: {bad[0].why}" if bad else "holds no result")
    return rows, bad


def number(record: Record, key: str) -> float | None:
    """A finite number from 0 on, also where it is written as text; None where the key is absent, null or empty."""
    value = record.get(key)
    if value is None or value == "":
        return None
    try:
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise ValueError
        amount = float(value)
    except (ValueError, OverflowError):
        raise Unusable(f"{key}: got {clip(value)!r}; wants a number") from None
    if not math.isfinite(amount) or not 0 <= amount <= MOST:
        raise Unusable(f"{key}: got {clip(value)!r}; wants a number from 0 to {MOST:g}")
    return amount


def positive(record: Record, *keys: str) -> float | None:
    """The first of these that is there and not 0: tools write 0 for what they did not measure."""
    return next((value for key in keys if (value := number(record, key))), None)


def needed(record: Record, *keys: str) -> float:
    """As `positive`, but the record is unusable without it."""
    value = positive(record, *keys)
    if value is None:
        raise Unusable(f"{' or '.join(keys)}: missing or 0")
    return value


def count(record: Record, *keys: str) -> int | None:
    """A count of at least 1, or None."""
    for key in keys:
        value = number(record, key)
        if value:
            if value != int(value):
                raise Unusable(f"{key}: got {clip(record[key])!r}; wants a whole number")
            return int(value)
    return None


def text(record: Record, key: str) -> str:
    """A text; "" where it is absent, null or no text."""
    value = record.get(key)
    return value.strip() if isinstance(value, str) else ""


def flag(record: Record, key: str) -> bool:
    """True, also as the texts and numbers that stand for it."""
    return str(record.get(key, "")).strip().lower() in ("true", "1", "yes", "on")


def inner(record: Record, *keys: str) -> Record:
    """The record inside records under these keys; an empty one where there is none."""
    for key in keys:
        value = record.get(key)
        record = value if isinstance(value, Mapping) else {}
    return record

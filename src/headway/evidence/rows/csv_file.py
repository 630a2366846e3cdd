"""CSV files of measured rows: columns by header name, numbers within limits, malformed lines one by one; slips in names are refused.

A table may have columns of its own, but none that is nearly, or means, one that is read.
"""

from __future__ import annotations

import csv
import difflib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headway.core.errors import BadFile, clip, printable


@dataclass(frozen=True, slots=True, kw_only=True)
class BadRow:
    """A line that is not a valid row, and the reason."""

    line: int
    id: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberColumn:
    """A column of numbers: its header, the field of the row, and the parser of a cell."""

    header: str
    field: str
    read: Callable[[str], int | float]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFormat:
    """Columns of a kind of rows: those that a file needs (cells of all but the first are never blank), texts and numbers."""

    what: str
    needed: tuple[str, ...]
    texts: Mapping[str, str]  # header -> field
    numbers: tuple[NumberColumn, ...]
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # needed header -> texts that a cell may have
    skipped: tuple[str, ...] = ()  # fields of numbers that are known and not read

    @property
    def headers(self) -> tuple[str, ...]:
        """All columns that are read."""
        return (*self.texts, *(column.header for column in self.numbers))


class _Malformed(Exception):
    """Error in one row."""


def limited(low: float, high: float, wants: str, integer: bool = False) -> Callable[[str], int | float]:
    """Parser of a number from `low` to `high`."""

    def read(text: str) -> int | float:
        try:
            value = float(text)
        except ValueError:
            raise ValueError(wants) from None
        if "_" in text or not low <= value <= high or (integer and value != int(value)):
            raise ValueError(wants)
        return int(value) if integer else value

    return read


def read_csv(path: str | Path, record: Callable[..., Any], columns: RowFormat) -> tuple[list[Any], list[BadRow]]:
    """Rows of a CSV file as records, and its malformed lines; BadFile if the file cannot be read."""
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            return _read(csv.reader(file), path, record, columns)
    except OSError as error:
        raise BadFile(path, f"cannot be read ({error.strerror or error})") from None
    except UnicodeDecodeError:
        raise BadFile(path, f"is not UTF-8 text, so not a CSV of {columns.what}") from None
    except csv.Error as error:
        raise BadFile(path, f"is not a CSV file ({error})") from None


def _read(lines: Iterator[list[str]], path: str | Path, record: Any, columns: RowFormat) -> tuple[list[Any], list[BadRow]]:
    header = [name.strip() for name in next(lines, [])]
    _check(path, header, columns)
    needed = [(header.index(name), name, columns.choices.get(name, ())) for name in columns.needed[1:]]
    texts = [(header.index(name), field) for name, field in columns.texts.items() if name in header]
    numbers = [
        (header.index(column.header), column)
        for column in columns.numbers
        if column.header in header and column.field not in columns.skipped
    ]
    rows, bad, line = [], [], _line(lines)
    for cells in lines:
        if any(cells):
            try:
                rows.append(record(line=line, **_values(cells, len(header), needed, texts, numbers)))
            except _Malformed as error:
                at = header.index(columns.needed[0])
                bad.append(BadRow(line=line, id=cells[at] if at < len(cells) else "", why=str(error)))
        line = _line(lines)
    return rows, bad


def _check(path: str | Path, header: Sequence[str], columns: RowFormat) -> None:
    """Raise BadFile for a header without the columns needed, with one twice, or with a slip."""
    missing = [name for name in columns.needed if name not in header]
    if missing:
        needed = ", ".join(columns.needed)
        raise BadFile(path, f"has no column {', '.join(missing)}: the first line of {columns.what} names at least {needed}")
    duplicates = [name for name in columns.headers if header.count(name) > 1]
    if duplicates:
        raise BadFile(path, f"has more than one column {', '.join(duplicates)}")
    refuse_slips(path, header, columns.headers)


def _line(lines: Iterator[list[str]]) -> int:
    """Line on which the next row starts."""
    return lines.line_num + 1  # type: ignore[attr-defined]


def _values(
    cells: list[str],
    width: int,
    needed: Iterable[tuple[int, str, Collection[str]]],
    texts: Iterable[tuple[int, str]],
    numbers: Iterable[tuple[int, NumberColumn]],
) -> dict[str, Any]:
    """Fields of a row; _Malformed names the cell that is wrong."""
    if len(cells) > width and any(cells[width:]):
        raise _Malformed(f"{len(cells)} cells under {width} column names")
    cells += [""] * (width - len(cells))
    values: dict[str, Any] = {field: cells[at].strip() for at, field in texts}
    if not "".join(values.values()).isprintable():
        values = {field: printable(text) for field, text in values.items()}
    for at, name, choices in needed:
        text = cells[at].strip()
        if not text:
            raise _Malformed(f"{name}: missing")
        if choices and text not in choices:
            raise _Malformed(f"{name}: got {clip(text)!r}; wants one of {', '.join(choices)}")
    for at, column in numbers:
        text = cells[at].strip()
        if text:
            try:
                values[column.field] = column.read(text)
            except ValueError as error:
                raise _Malformed(f"{column.header}: got {clip(text)!r}; wants {error}") from None
    return values


NEAR = 0.85  # of difflib's ratio, from which a name is a misspelling
# Names under which other verbs and tools know the columns of measured rows.
MEANT = {
    "weights": "weight_precision", "quantization": "weight_precision", "kv": "kv_precision", "kv_cache_dtype": "kv_precision",
    "prompt": "isl", "input_len": "isl", "output": "osl", "output_len": "osl", "context": "context_len", "batch": "batch_or_concurrency",
    "concurrency": "batch_or_concurrency", "users": "batch_or_concurrency", "chips": "n_chips", "gpus": "n_chips", "num_gpus": "n_chips",
    "chip": "hardware", "gpu": "hardware", "machine": "hardware", "seq": "seq_len",
}  # fmt: skip


def refuse_slips(path: str | Path, header: Sequence[str], known: Collection[str]) -> None:
    """Raise BadFile for a column that stands for a known one which is not there: its values would be taken as not stated."""
    absent = [name for name in known if name not in header]
    for name in header:
        if not name or name in known:
            continue
        plain = name.lower().replace(" ", "_").replace("-", "_")
        meant = MEANT.get(plain) or next(iter(difflib.get_close_matches(plain, absent, 1, NEAR)), "")
        if meant in absent:
            raise BadFile(path, f"column {name!r} is not read; did you mean {meant}? A column of your own needs a name less like it")

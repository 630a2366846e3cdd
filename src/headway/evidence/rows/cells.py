"""A measured row as the cells of its columns, and back: how a profile of runs keeps it."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from typing import Any

from headway.evidence.rows.row import BadRow, RowFormat, rows_of_text

Cells = tuple[tuple[str, str | float], ...]  # header and what the cell holds, of those that hold something
DIGITS = (12, 15, 16, 17)  # of a number in a unit of its own: the first with which the row is the same again


def cells_of(row: Any, columns: RowFormat) -> Cells:
    """What a row states, by the columns of its kind of table."""
    texts = [(header, text) for header, field in columns.texts.items() if (text := getattr(row, field))]
    numbers = [(column.header, _number(value, column.scale)) for column in columns.numbers
               if (value := getattr(row, column.field)) is not None]  # fmt: skip
    return (*texts, *numbers)


def _number(value: float, scale: float) -> float:
    """A value in the unit of its column."""
    cells = [float(f"{value / scale:.{digits}g}") for digits in DIGITS]
    return value if scale == 1 else next((number for number in cells if number * scale == value), cells[-1])


def rows_of(cells: Sequence[Cells], path: str, record: Callable[..., Any], columns: RowFormat) -> tuple[list[Any], list[BadRow]]:
    """The rows of such cells, checked as those of a table; `path` names the file that keeps them."""
    headers = [header for header in columns.headers if any(header in dict(row) for row in cells)]
    text = io.StringIO()
    table = csv.DictWriter(text, [*columns.needed, *(header for header in headers if header not in columns.needed)], extrasaction="ignore")
    table.writeheader()
    table.writerows({name: cell if isinstance(cell, str) else repr(cell) for name, cell in row} for row in cells)
    return rows_of_text(text.getvalue(), path, record, columns)

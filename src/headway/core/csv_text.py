"""Lines of a CSV text, each with its number: a line that cannot be read is told by itself and swallows none of the lines after it."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence

from headway.core.errors import BadFile, clip

MOST_JOINED = 100  # lines of one quoted cell
UNCLOSED = "opens a quote and does not close it"
BLANK = ", \t\r\n"


CsvLine = tuple[int, list[str], str]  # the line at which a row begins; its cells; why it has none, else ""


def csv_lines(text: str) -> Iterator[CsvLine]:
    """Rows of a text but blank ones; a cell in quotes may go on over line ends, if the quotes are closed.

    >>> [(number, cells, why[:17]) for number, cells, why in csv_lines('a,b\\n1,"x\\ny"\\n2,"z\\n3,4')]
    [(1, ['a', 'b'], ''), (2, ['1', 'x\\ny'], ''), (4, [], 'opens a quote and'), (5, ['3', '4'], '')]
    """
    lines = text.splitlines(keepends=True)
    at = 0
    while at < len(lines):
        if '"' in lines[at]:
            cells, end, why = _quoted(lines, at)
        else:
            cells, end, why = lines[at].rstrip("\r\n").split(","), at + 1, ""
        if why or lines[at].strip(BLANK):
            yield at + 1, cells, why
        at = end


def _quoted(lines: Sequence[str], at: int) -> tuple[list[str], int, str]:
    """Cells of the row with quotes that begins at a line, the index after its last line, and why it has none."""
    for end in range(at + 1, min(len(lines), at + MOST_JOINED) + 1):
        try:
            return next(csv.reader(lines[at:end], strict=True)), end, ""
        except csv.Error as error:
            if "unexpected end" in str(error):
                continue
            if end == at + 1:
                break  # quotes within a cell: read as they stand
            return [], at + 1, UNCLOSED
    else:
        return [], at + 1, UNCLOSED
    try:
        return next(csv.reader(lines[at : at + 1]), []), at + 1, ""
    except csv.Error as error:
        return [], at + 1, f"is not CSV ({clip(error)})"


def csv_header(rows: Iterator[CsvLine], path: object) -> list[str]:
    """Names of the columns, from the first row; BadFile where it cannot be read."""
    number, cells, why = next(rows, (1, [], ""))
    if why:
        raise BadFile(path, f"line {number}: {why}")
    return [name.strip() for name in cells]


def refuse_twins(names: Sequence[str], path: object) -> None:
    """Raise BadFile for a name that two columns have: nobody knows which of them holds."""
    twins = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twins:
        raise BadFile(path, f"has more than one column {clip(', '.join(twins))}")


def width_error(cells: Sequence[str], width: int) -> str:
    """Why a row does not fit under its header: it lacks cells, or has more that are not blank; "" if it fits."""
    fits = len(cells) == width or (len(cells) > width and not any(cell.strip() for cell in cells[width:]))
    return "" if fits else f"{len(cells)} cells under {width} column names"

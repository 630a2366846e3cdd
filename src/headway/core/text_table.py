"""One table of text that fits the terminal, and the lines below it.

Columns are dropped, never wrapped into a second table: first the key columns of the caller stay, then those that identify a row, then the
others from left to right, each where room is left for it. A text column may be folded to what is left.
"""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TextIO

from headway.core import columns
from headway.core.listing import MOST, Rows, cell, first_rows, headings, visible

MOST_CELL = 60  # letters of a cell before it is folded
LEAST_CELL = 18  # letters to which a column of text may be folded so that the table fits
GAP = 3  # letters between two columns
WIDTH = 200  # of text that goes to a file or a pipe, unless the environment names COLUMNS
MOST_NAMED = 4  # dropped columns that the line below a table names


def console_for(out: TextIO) -> Any:
    """A console of rich that writes text as it is, in notebooks too; 200 letters wide where `out` is no terminal and COLUMNS is not set."""
    from rich.console import Console

    free = out.isatty() or os.environ.get("COLUMNS", "").isdigit()
    width = None if free else WIDTH
    console = Console(
        file=out, width=width, highlight=False, markup=False, emoji=False, force_terminal=out.isatty(), force_jupyter=False
    )  # without the last two a notebook would get colours and displays of its own
    console.on_broken_pipe = _closed  # rich would exit with 1
    return console


def _closed() -> None:
    raise BrokenPipeError


def print_rows(console: Any, rows: Rows, view: Sequence[str] = (), most: int = MOST, first: Sequence[str] = ()) -> None:
    """Print the first rows as one table of the console's width; `view` chooses columns, those in `first` are dropped last."""
    head = first_rows(rows, most)
    keys = visible(head, view or rows.keys())
    widths = fitting(head, keys, console.width, first)
    if head and widths:
        console.print(_rich(head, widths))
    hidden = headings([key for key in keys if key not in widths])
    if hidden:
        names = ", ".join(hidden[:MOST_NAMED]) + (", ..." if len(hidden) > MOST_NAMED else "")
        console.print(f"... and {len(hidden)} more column{'s' * (len(hidden) > 1)} with -o csv: {names}", soft_wrap=True)
    if len(rows) > len(head):
        console.print(f"... and {len(rows) - len(head)} more rows: all of them with -o csv, json or parquet", soft_wrap=True)


def fitting(rows: Sequence[Mapping[str, Any]], keys: Sequence[str], width: int, first: Sequence[str] = ()) -> dict[str, int]:
    """Columns that fit into a width, in the order of `keys`, each with its own width in letters."""
    identity = columns.identity()
    order = sorted(keys, key=lambda key: (key not in first, first.index(key) if key in first else 0, key not in identity))
    names = dict(zip(keys, headings(keys), strict=True))
    widths: dict[str, int] = {}
    room = width + GAP
    for key in order:
        lengths = [len(cell(key, row)) for row in rows]
        head = len(names[key])
        natural = max(head, min(MOST_CELL, max(lengths, default=0)))
        is_text = any(isinstance(row.get(key), str) for row in rows)
        least = max(head, min(natural, LEAST_CELL)) if is_text else natural
        if least + GAP <= room or not widths:
            widths[key] = min(natural, max(room - GAP, 1))
            room -= widths[key] + GAP
    return {key: widths[key] for key in keys if key in widths}


def print_lines(console: Any, lines: Iterable[str]) -> None:
    """Lines below a table; on a terminal long ones are wrapped under their own beginning, and notes are dim."""
    terminal = console.file.isatty()
    for line in lines:
        style = "dim" if terminal and line.startswith("note: ") else None
        indent = " " * (len(line) - len(line.lstrip()))
        folded = terminal and len(line) > console.width  # a hyphen of a flag ends no line: a folded command stays one that can be copied
        texts = textwrap.wrap(line, console.width, subsequent_indent=indent + "  ", break_on_hyphens=False) if folded else [line]
        for text in texts:
            console.print(text, style=style, soft_wrap=True)


def _rich(rows: Sequence[Mapping[str, Any]], widths: Mapping[str, int]) -> Any:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE, show_edge=False, pad_edge=False)
    for (key, width), name in zip(widths.items(), headings(list(widths)), strict=True):
        number = any(isinstance(row.get(key.split("~")[0]), int | float) for row in rows)
        wraps = any(len(cell(key, row)) > width for row in rows)
        fixed = width if wraps else None
        table.add_column(name, justify="right" if number else "left", overflow="fold", no_wrap=not wraps, width=fixed)
    for row in rows:
        table.add_row(*(cell(key, row) for key in widths))
    return table


def print_table(rows: Rows, keys: Sequence[str] = (), most: int = MOST) -> None:
    """A table on standard output."""
    console = console_for(sys.stdout)
    print_rows(console, rows, keys, most)
    print_lines(console, (f"note: {note}" for note in rows.notes))

"""Rows out: text for a person, Markdown, CSV, JSON and Parquet. The only file that writes an answer."""

from __future__ import annotations

import dataclasses
import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Protocol, TextIO

from headway.core import columns, units
from headway.core.errors import BadValue, MissingExtra

FORMATS = ("text", "md", "csv", "json", "parquet")
MOST = 40  # rows of a text table
MOST_CELL = 60  # letters of a cell before it is folded
WIDTH = 200  # of text that goes to a file or a pipe


class Rows(Protocol):
    """What is written: a Table, or a plain list of rows."""

    @property
    def notes(self) -> Any: ...
    def keys(self) -> Any: ...
    def __iter__(self) -> Iterator[dict[str, Any]]: ...
    def __len__(self) -> int: ...


@dataclasses.dataclass(slots=True)
class Summary:
    """What a person reads around and in place of the rows."""

    headline: str = ""
    view: Sequence[str] = ()  # columns of the text table; all when empty
    after: Sequence[str] = ()  # lines below the table
    people: Any = None  # rows for text and Markdown, where they differ from the rows of the data formats


@dataclasses.dataclass(slots=True)
class Answer:
    """All that one command says: the rows, and the words for a person; `describe` finds these for the rows that are left."""

    rows: Any
    words: Summary = dataclasses.field(default_factory=Summary)
    notes: Sequence[str] = ()
    trees: Mapping[str, Any] | None = None  # explained key -> tree
    figure: Callable[[Any], dict[str, Any]] | None = None  # rows -> the Vega-Lite specification of --plot
    columns: Mapping[str, columns.Column] = dataclasses.field(default_factory=dict)  # of keys that are not in the contract
    describe: Callable[[Any], Summary] | None = None
    most: int = MOST
    status: int = 0  # exit status of the command, where the answer is not all that was asked for


# -- cells ----------------------------------------------------------------------------------------------------------------------


def cell(key: str, row: Mapping[str, Any]) -> str:
    """One cell for a person. The key `lo~hi` of two columns shows them as an interval."""
    if "~" in key:
        low, high = (format_value(row.get(part), columns.unit(part)) for part in key.split("~"))
        return "-" if low == high == "-" else f"{low} .. {high}"
    if key == "solution":
        return input_text(row["solution"], row["for"])
    return format_value(row.get(key), columns.unit(key))


def input_text(value: float, name: str) -> str:
    """A value of an input as it can be typed, with enough digits to type it again."""
    unit = columns.unit(name)
    return f"{value:.7g}" if unit in ("", "token") else units.show(value, unit, 6)


def format_value(value: Any, unit: str) -> str:
    """A value with its unit: whole counts in full, measured quantities with three digits."""
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {format_value(item, columns.unit(key))}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(format_value(item, unit) for item in value)
    if unit in ("", "token") and float(value).is_integer() and abs(value) < 1e6:
        return f"{value / 1000:g}k" if unit == "token" and value and value % 1000 == 0 else str(int(value))
    known = unit in units.SPELLINGS or unit in ("USD/Mtok", "byte/token", "flop/token")
    text = units.show(value, unit if known else "")
    return text if known else f"{text} {unit}"


def heading(key: str) -> str:
    """The head of a column."""
    return key.split("~")[0].replace("_lo", "") + " 90 %" if "~" in key else key


def visible(rows: Sequence[Mapping[str, Any]], view: Iterable[str]) -> list[str]:
    """The columns of a view that have something to say in these rows."""
    return [key for key in view if any(cell(key, row) != "-" for row in rows)]


def _head(rows: Rows, most: int) -> list[dict[str, Any]]:
    taker = getattr(rows, "take", None)
    return list(taker(range(min(most, len(rows)))) if taker else islice(rows, most))


# -- text -----------------------------------------------------------------------------------------------------------------------


def text(answer: Answer, out: TextIO) -> None:
    """One sentence, the table, what binds and what would help, the notes."""
    from rich.console import Console

    terminal = out.isatty()
    console = Console(file=out, width=None if terminal else WIDTH, highlight=False, markup=False, emoji=False)
    console.on_broken_pipe = _closed  # rich would exit with 1
    if answer.words.headline:
        console.print(answer.words.headline, style="bold" if terminal else None, soft_wrap=True)
    rows = answer.words.people or answer.rows
    head = _head(rows, answer.most)
    keys = visible(head, answer.words.view or rows.keys())
    for number, block in enumerate(_blocks(head, keys, console.width)):
        data_keys = [key for key in block if key not in columns.IDENTITY]
        console.print(_rich([row for row in head if not number or visible([row], data_keys)], block))
    if len(rows) > len(head):
        console.print(f"... and {len(rows) - len(head)} more rows: all of them with -o csv, json or parquet", soft_wrap=True)
    for line in [*answer.words.after, *(f"note: {note}" for note in answer.notes)]:
        console.print(line, style="dim" if terminal and line.startswith("note: ") else None, soft_wrap=True)
    for key, tree in (answer.trees or {}).items():
        from headway.core.explain import explain

        out.write("\n" + explain(tree, key) + "\n")


def _closed() -> None:
    raise BrokenPipeError


def _blocks(rows: list[dict[str, Any]], keys: list[str], width: int) -> list[list[str]]:
    """The columns in as many tables as the width needs; what identifies a row leads each of them."""
    if not rows:
        return []
    wide = {key: min(MOST_CELL, max(len(heading(key)), *(len(cell(key, row)) for row in rows))) + 3 for key in keys}
    lead = [key for key in keys if key in columns.IDENTITY]
    blocks: list[list[str]] = [[]]
    for key in keys:
        block = blocks[-1]
        if key not in block and block[len(lead) :] and sum(wide[column] for column in block) + wide[key] > width:
            blocks.append([*lead])
        if key not in blocks[-1]:
            blocks[-1].append(key)
    return blocks


def _rich(rows: list[dict[str, Any]], keys: list[str]) -> Any:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE, show_edge=False, pad_edge=False)
    for key in keys:
        number = any(isinstance(row.get(key.split("~")[0]), int | float) for row in rows)
        wraps = any(len(cell(key, row)) > MOST_CELL for row in rows)
        table.add_column(heading(key), justify="right" if number else "left", overflow="fold", no_wrap=not wraps)
    for row in rows:
        table.add_row(*(cell(key, row) for key in keys))
    return table


def print_table(rows: Rows, keys: Sequence[str] = (), most: int = MOST) -> None:
    """A table on standard output."""
    text(Answer(rows, Summary(view=keys), notes=rows.notes, most=most), sys.stdout)


def html_table(rows: Rows, keys: Sequence[str] = (), most: int = MOST) -> str:
    """A table as HTML, for a notebook."""
    from html import escape

    head = _head(rows, most)
    shown_keys = visible(head, keys or rows.keys())
    lines = ["".join(f'<th title="{escape(columns.doc(key))}">{escape(heading(key))}</th>' for key in shown_keys)]
    lines += ["".join(f"<td>{escape(cell(key, row))}</td>" for key in shown_keys) for row in head]
    more = f"<p>{len(rows) - len(head)} more rows</p>" if len(rows) > len(head) else ""
    return "<table>" + "".join(f"<tr>{line}</tr>" for line in lines) + f"</table>{more}"


def markdown(answer: Answer, out: TextIO) -> None:
    """The same as text, in Markdown."""
    if answer.words.headline:
        out.write(answer.words.headline + "\n\n")
    rows = answer.words.people or answer.rows
    head = _head(rows, answer.most)
    keys = visible(head, answer.words.view or rows.keys())
    if head:
        out.write("| " + " | ".join(map(heading, keys)) + " |\n|" + "---|" * len(keys) + "\n")
        for row in head:
            out.write("| " + " | ".join(cell(key, row).replace("|", "\\|").replace("\n", " ") for key in keys) + " |\n")
    if len(rows) > len(head):
        out.write(f"\n... and {len(rows) - len(head)} more rows\n")
    for line in [*answer.words.after, *(f"note: {note}" for note in answer.notes)]:
        out.write(f"\n{line}\n")
    for key, tree in (answer.trees or {}).items():
        from headway.core.explain import explain

        out.write("\n```\n" + explain(tree, key) + "\n```\n")


# -- data -----------------------------------------------------------------------------------------------------------------------


def clean(value: Any) -> Any:
    """A value that JSON can hold: no NaN, no infinity, no numpy, no record, at any depth."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: clean(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean(item) for item in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    item = getattr(value, "item", None)  # a number of numpy
    return clean(item()) if item else str(value)


def described(answer: Answer) -> dict[str, dict[str, str]]:
    """The `columns` object of the JSON contract."""
    known = {key: answer.columns.get(key) or columns.column(key) for key in list(answer.rows.keys())}
    return {key: {"unit": column.unit, "doc": column.doc} for key, column in known.items()}


def to_json(answer: Answer, command: Sequence[str], out: TextIO) -> None:
    """The JSON contract, written row by row."""
    from headway import __version__
    from headway.core.explain import to_json as tree_json

    start = {"headway": __version__, "command": list(command), "columns": described(answer)}
    out.write(json.dumps(start, allow_nan=False)[:-1] + ', "rows": [')
    for number, row in enumerate(answer.rows):
        out.write(("," if number else "") + "\n" + json.dumps(clean(row), allow_nan=False))
    end: dict[str, Any] = {"notes": list(answer.notes)}
    if answer.trees:
        end["explain"] = {key: tree_json(tree, key) for key, tree in answer.trees.items()}
    out.write("\n], " + json.dumps(clean(end), allow_nan=False)[1:] + "\n")


def to_csv(answer: Answer, out: TextIO) -> None:
    """Plain CSV: SI numbers, empty where null."""
    import csv

    writer = csv.writer(out, lineterminator="\n")
    keys = list(answer.rows.keys())
    writer.writerow(keys)
    for row in answer.rows:
        writer.writerow([_plain_text(row.get(key)) for key in keys])


def _plain_text(value: Any) -> Any:
    if value is None or isinstance(value, str):
        return value
    value = clean(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value) if isinstance(value, dict | list) else value


def to_parquet(answer: Answer) -> None:
    """Parquet on standard output, with each column's unit in its metadata."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise MissingExtra("-o parquet", "table") from None
    if sys.stdout.isatty():
        raise BadValue("-o", "parquet", "standard output redirected to a file: headway ... -o parquet > FILE")
    table = pyarrow.Table.from_pylist([clean(row) for row in answer.rows])
    about = described(answer)
    schema = pyarrow.schema([field.with_metadata(about[field.name]) for field in table.schema])
    parquet.write_table(table.cast(schema), sys.stdout.buffer)


def write(answer: Answer, how: str, command: Sequence[str]) -> None:
    """The answer on standard output in one of FORMATS."""
    out = sys.stdout
    if how == "json":
        to_json(answer, command, out)
    elif how == "csv":
        to_csv(answer, out)
    elif how == "md":
        markdown(answer, out)
    elif how == "parquet":
        to_parquet(answer)
    else:
        text(answer, out)
    out.flush()

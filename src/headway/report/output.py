"""Output of answers: text, Markdown, CSV, JSON and Parquet. The only file that writes an answer."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TextIO

from headway.core import columns, listing
from headway.core.errors import BadValue, MissingExtra
from headway.core.listing import MOST, cell, clean, first_rows, heading, visible

FORMATS = ("text", "md", "csv", "json", "parquet")


@dataclasses.dataclass(slots=True)
class Summary:
    """Text around the table of an answer, and its view for people."""

    headline: str = ""
    view: Sequence[str] = ()  # columns of the text table; empty: all
    after: Sequence[str] = ()  # lines below the table
    people: Any = None  # rows for text and Markdown, if they differ from those of the data formats


@dataclasses.dataclass(slots=True)
class Answer:
    """Answer of a command: rows, and a `describe` function that gives the Summary of the rows left after filters."""

    rows: Any
    words: Summary = dataclasses.field(default_factory=Summary)
    notes: Sequence[str] = ()
    trees: Mapping[str, Any] | None = None  # explained key -> tree
    figure: Callable[[Any], dict[str, Any]] | None = None  # rows -> the Vega-Lite specification of --plot
    columns: Mapping[str, columns.Column] = dataclasses.field(default_factory=dict)  # columns outside the contract
    describe: Callable[[Any], Summary] | None = None
    most: int = MOST
    document: str = ""  # the answer as a file of its own format, written in place of rows
    status: int = 0  # exit status of the command; nonzero for an incomplete answer


# -- text -----------------------------------------------------------------------------------------------------------------------


def text(answer: Answer, out: TextIO) -> None:
    """Write the answer as text: sentence, table, lines below it, notes."""
    console = listing.console_for(out)
    if answer.words.headline:
        console.print(answer.words.headline, style="bold" if out.isatty() else None, soft_wrap=True)
    listing.print_rows(console, answer.words.people or answer.rows, answer.words.view, answer.most)
    listing.print_lines(console, [*answer.words.after, *(f"note: {note}" for note in answer.notes)])
    for key, tree in (answer.trees or {}).items():
        from headway.core.explain import explain

        out.write("\n" + explain(tree, key) + "\n")


def markdown(answer: Answer, out: TextIO) -> None:
    """Write the answer as Markdown: sentence, table, lines below it, notes."""
    if answer.words.headline:
        out.write(answer.words.headline + "\n\n")
    rows = answer.words.people or answer.rows
    head = first_rows(rows, answer.most)
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


def described(answer: Answer) -> dict[str, dict[str, str]]:
    """Object `columns` of the JSON contract."""
    known = {key: answer.columns.get(key) or columns.column(key) for key in list(answer.rows.keys())}
    return {key: {"unit": column.unit, "doc": column.doc} for key, column in known.items()}


def to_json(answer: Answer, command: Sequence[str], out: TextIO) -> None:
    """Write the answer as JSON by the contract, row by row."""
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
    """Write the rows as CSV: SI numbers, empty for null."""
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
    """Write the rows as Parquet to standard output, with units in the column metadata."""
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
    """Write the answer to standard output in one of FORMATS."""
    out = sys.stdout
    if answer.document:
        out.write(answer.document)
    elif how == "json":
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

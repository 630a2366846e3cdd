"""Output of answers: rows chosen, notes gathered, then text, Markdown, CSV, JSON or Parquet. The only file that writes an answer."""

from __future__ import annotations

import csv
import dataclasses
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from headway import QUESTIONS
from headway.core import columns, explain, mermaid, text_table
from headway.core.errors import BadValue, MissingExtra, UnknownName
from headway.core.listing import MOST, Rows, cell, clean, first_rows, headings, visible
from headway.core.notes import Notebook
from headway.core.question import question_of
from headway.core.units import plain
from headway.report.pictures import frame, grid
from headway.report.words import NO_ROW, number_of, with_clause

if TYPE_CHECKING:
    import pyarrow

    from headway.report.pictures.frame import Picture, View

FORMATS = ("text", "md", "csv", "json", "parquet", "mermaid")
SPOKEN = ("text", "md", "json")  # formats that hold the sentence
MOST_NOTES = 5  # that text and Markdown print without --verbose


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Help:
    """A change that would help, with its effect; `gain` is the share by which it makes the objective better."""

    change: str
    effect: str
    gain: float | None = None


DEPTH = 3  # levels of an explanation unless told


PictureOf = Callable[[Any, "View"], "Picture"]  # of the rows that are left


@dataclasses.dataclass(slots=True)
class Summary:
    """Text around the table of an answer, and its view for people."""

    headline: str = ""  # the answer: one sentence of at most MOST_WORDS words
    view: Sequence[str] = ()  # columns of the text table; empty: all
    after: Sequence[str] = ()  # lines below the table
    people: Any = None  # rows for text and Markdown, if they differ from those of the data formats
    binds: str = ""  # what limits the answer
    helps: Sequence[Help] = ()  # changes that would help, the greatest gain first
    remarks: Sequence[str] = ()  # notes about these rows, before the notes of the command
    first: Sequence[str] = ()  # columns that a narrow table keeps before all others


@dataclasses.dataclass(slots=True)
class Answer:
    """Answer of a command: rows, and a `describe` function that gives the Summary of the rows left after filters."""

    rows: Any
    words: Summary = dataclasses.field(default_factory=Summary)
    notes: Sequence[str] = ()
    trees: Mapping[str, Any] | None = None  # explained key -> tree
    pictures: Mapping[str, PictureOf] = dataclasses.field(default_factory=dict)  # by name, the default first
    default_picture: Callable[[Any], str] | None = None  # name of the default where it depends on the rows left after filters
    columns: Mapping[str, columns.Column] = dataclasses.field(default_factory=dict)  # columns outside the contract
    describe: Callable[[Any], Summary] | None = None
    describes_none: bool = False  # whether `describe` has words of its own where no row is left
    most: int = MOST
    document: str = ""  # the answer as a file of its own format, written in place of rows
    documents: Mapping[str, Callable[[], str]] = dataclasses.field(default_factory=dict)  # such files by the format that asks for them
    status: int = 0  # exit status of the command; nonzero for an incomplete answer
    dialogue: Callable[[], Answer] | None = None  # what a person at a terminal is asked in place of rows; the answer after it
    launch: Sequence[str] = ()  # command lines that realise the answer
    checked: Mapping[str, Any] | None = None  # what was simulated to check the answer, and its verdict
    facts: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # files of the user's that moved it: calibration profiles
    verbose: bool = False  # whether text and Markdown print every note
    depth: int | None = DEPTH  # levels of an explanation in text and Markdown; None: all


def ranked(helps: Sequence[Help]) -> list[Help]:
    """Changes by their gain, the greatest first; those without a gain last."""
    return sorted(helps, key=lambda change: -(change.gain or 0.0))


# -- text -----------------------------------------------------------------------------------------------------------------------


def text(answer: Answer, out: TextIO) -> None:
    """Write the answer as text: sentence, table, what binds, what would help, notes."""
    console = text_table.console_for(out)
    if answer.words.headline:
        console.print(answer.words.headline, style="bold" if out.isatty() else None, soft_wrap=True)
    rows = answer.rows if answer.words.people is None else answer.words.people
    text_table.print_rows(console, rows, answer.words.view, answer.most, answer.words.first)
    text_table.print_lines(console, lines(answer))
    for key, tree in (answer.trees or {}).items():
        out.write("\n" + explain.explain(tree, key, answer.depth) + "\n")


def lines(answer: Answer) -> list[str]:
    """Lines below the table: what binds, what would help, what was simulated, the launch lines, notes."""
    below = list(answer.words.after)
    if answer.words.binds:
        below.append(f"Binds:   {answer.words.binds}")
    for place, change in enumerate(answer.words.helps, 1):
        below.append(f"{'Helps:' if place == 1 else '':9}{place}. {change.change}: {change.effect}")
    if answer.checked:
        below.append(f"Checked: {answer.checked['answer']}")
    below += [f"{'Launch:' if not place else '':9}{line}" for place, line in enumerate(answer.launch)]
    notes = by_weight(list(dict.fromkeys([*answer.words.remarks, *answer.notes])))
    visible_notes = notes if answer.verbose else notes[:MOST_NOTES]
    below += [f"note: {note}" for note in visible_notes]
    if len(notes) > len(visible_notes):
        below.append(f"... and {len(notes) - len(visible_notes)} more note{'s' * (len(notes) - len(visible_notes) > 1)} with --verbose")
    return below


FIRST = ("calibrated on ", "the newest of these runs ", "before calibration ")  # of the user's own runs, in every format
# Beginnings of notes by weight, the heaviest first; a note that begins with none of them stands between the two groups.
HEAVY = ("by default ", "--where ", "no price", "dropped as illegal", "launch: ", "overloaded", "unfitted: ", "nothing meets", "prices: ")
LIGHT = (
    "TTFT", "nearest measured", "no --engine is named", "prefix hits are in HBM", "KV cache formats searched",
    "latencies leave out", "scheduler of engine",
    "multi-token prediction layers are left out", "intervals: ", "searched ", "dropped 0 layouts", "dropped ", "fitted: ",
)  # fmt: skip


def _place(note: str) -> int:
    """Place of a note among those that come first in every format; that of all others is behind them."""
    return next((place for place, start in enumerate(FIRST) if note.startswith(start)), len(FIRST))


def by_weight(notes: Sequence[str]) -> list[str]:
    """Notes with those first that this answer owes to what was typed; otherwise in the order in which they came."""

    def weight(note: str) -> int:
        if note.startswith(FIRST):
            return _place(note) - len(FIRST)
        if note.startswith(HEAVY):
            return 0
        place = next((place for place, start in enumerate(LIGHT) if note.startswith(start) or f": {start}" in note), None)
        return 1 if place is None else 2 + place

    return sorted(notes, key=weight)


def all_notes(answer: Answer) -> list[str]:
    """Every note, each once: those of the command, then those about the rows."""
    return list(dict.fromkeys([*answer.notes, *answer.words.remarks]))


def markdown(answer: Answer, out: TextIO) -> None:
    """Write the answer as Markdown: sentence, table, what binds, what would help, notes."""
    if answer.words.headline:
        out.write(answer.words.headline + "\n\n")
    rows = answer.rows if answer.words.people is None else answer.words.people
    head = first_rows(rows, answer.most)
    keys = visible(head, answer.words.view or rows.keys())
    if head:
        out.write("| " + " | ".join(headings(keys)) + " |\n|" + "---|" * len(keys) + "\n")
        for row in head:
            out.write("| " + " | ".join(cell(key, row).replace("|", "\\|").replace("\n", " ") for key in keys) + " |\n")
    if len(rows) > len(head):
        out.write(f"\n... and {len(rows) - len(head)} more rows\n")
    for line in lines(answer):
        out.write(f"\n{line}\n")
    for key, tree in (answer.trees or {}).items():
        out.write("\n```\n" + explain.explain(tree, key, answer.depth) + "\n```\n")


# -- data -----------------------------------------------------------------------------------------------------------------------


def described(answer: Answer) -> dict[str, dict[str, str]]:
    """Object `columns` of the JSON contract."""
    return {key: {"unit": column.unit, "doc": column.doc} for key, column in known_columns(answer).items()}


def known_columns(answer: Answer) -> dict[str, columns.Column]:
    """Unit and sentence of each column of the rows."""
    return {key: answer.columns.get(key) or columns.column(key) for key in list(answer.rows.keys())}


def to_json(answer: Answer, command: Sequence[str], out: TextIO) -> None:
    """Write the answer as JSON by the contract, row by row."""
    from headway import __version__

    words = answer.words
    sentences = {"answer": words.headline, "binds": words.binds or None, "helps": list(words.helps), "launch": list(answer.launch)}
    start = {"headway": __version__, "command": list(command)} | sentences | {"checked": answer.checked, "columns": described(answer)}
    start |= {"facts": answer.facts} if answer.facts else {}
    start = clean(start)
    out.write(json.dumps(start, allow_nan=False)[:-1] + ', "rows": [')
    for number, row in enumerate(answer.rows):
        out.write(("," if number else "") + "\n" + json.dumps(clean(row), allow_nan=False))
    end: dict[str, Any] = {"notes": all_notes(answer)}
    if answer.trees:
        end["explain"] = {key: explain.to_json(tree, key) for key, tree in answer.trees.items()}
    out.write("\n], " + json.dumps(clean(end), allow_nan=False)[1:] + "\n")


FORMULA = ("=", "+", "-", "@")  # with which a text is a formula to spreadsheets; an apostrophe before it makes it text


def to_csv(answer: Answer, out: TextIO) -> None:
    """Write the rows as CSV: SI numbers, empty for null."""
    writer = csv.writer(out, lineterminator="\n")
    keys = list(answer.rows.keys())
    writer.writerow(keys)
    for row in answer.rows:
        writer.writerow([_plain_text(row.get(key)) for key in keys])


def _plain_text(value: Any) -> Any:
    if isinstance(value, str):
        return f"'{value}" if value.startswith(FORMULA) else value
    if value is None:
        return value
    value = clean(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value) if isinstance(value, dict | list) else value


def to_mermaid(answer: Answer, out: TextIO) -> None:
    """Write the explained numbers as diagrams of Mermaid."""
    out.write("\n\n".join(mermaid.diagram(tree, key, answer.depth) for key, tree in (answer.trees or {}).items()) + "\n")


def arrow_table(rows: Rows, columns_of_rows: Mapping[str, columns.Column], what: str = "to_arrow()") -> pyarrow.Table:
    """The rows as an Arrow table: SI numbers, null where a value does not apply, unit and sentence in each column's metadata.

    Values of several kinds become JSON text, a column of nulls has the type of its unit; `what` is named where pyarrow is not installed.
    """
    try:
        import pyarrow
    except ImportError:
        raise MissingExtra(what, "table") from None

    def has_empty_struct(kind: pyarrow.DataType) -> bool:
        """Whether a type holds a record without fields or of nulls alone, which neither Parquet nor polars can hold."""
        if pyarrow.types.is_struct(kind):
            return kind.num_fields == 0 or any(has_empty_struct(kind.field(place).type) for place in range(kind.num_fields))
        return pyarrow.types.is_list(kind) and has_empty_struct(kind.value_type)

    def as_json(values: Sequence[Any]) -> pyarrow.Array:
        texts = [value if value is None or isinstance(value, str) else json.dumps(value) for value in values]
        return pyarrow.array(texts, pyarrow.string())

    arrays, fields = [], []
    for key, column in columns_of_rows.items():
        column_of = getattr(rows, "values", None)  # which a table has
        values = [clean(value) for value in (column_of(key) if column_of else [row.get(key) for row in rows])]
        try:
            array = pyarrow.array(values)
        except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError, OverflowError):
            is_number = all(value is None or isinstance(value, int | float) for value in values)
            array = pyarrow.array([None if value is None else float(value) for value in values]) if is_number else as_json(values)
        if pyarrow.types.is_null(array.type):
            array = array.cast(pyarrow.float64() if column.unit not in ("", "bool") else pyarrow.string())
        elif has_empty_struct(array.type):
            array = as_json(values)
        arrays.append(array)
        fields.append(pyarrow.field(key, array.type, metadata={"unit": column.unit, "doc": column.doc}))
    return pyarrow.table(arrays, schema=pyarrow.schema(fields))


def to_parquet(answer: Answer) -> None:
    """Write the rows as Parquet to standard output, with units in the column metadata."""
    table = arrow_table(answer.rows, known_columns(answer), "-o parquet")
    if sys.stdout.isatty():
        raise BadValue("-o", "parquet", "standard output redirected to a file: headway ... -o parquet > FILE")
    from pyarrow import parquet

    parquet.write_table(table, sys.stdout.buffer)


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
    elif how == "mermaid":
        to_mermaid(answer, out)
    else:
        text(answer, out)
    out.flush()


def settle(answer: Answer, book: Notebook, borrowed: str = "", where: str | None = None, sort: str | None = None) -> None:
    """Apply `--where` and `--sort`, and give the answer every note once.

    Notes are what was said on the way, its own, those of its rows, what was assumed of models, the rows left out, and costs that
    hypothetical chips borrow.
    """
    notes = [*book.texts, *answer.notes, *answer.rows.notes, *book.remarks]
    answer.notes = sorted(dict.fromkeys(notes), key=_place)
    choose_rows(answer, where, sort)
    answer.notes = [*answer.notes, borrowed] if borrowed else answer.notes


def choose_rows(answer: Answer, where: str | None = None, sort: str | None = None) -> None:
    """Apply `--where` and `--sort` to the rows; a note says how many are left."""
    if where:
        total = len(answer.rows)
        answer.rows = answer.rows.where(where)
        if len(answer.rows) < total:
            answer.notes = [*answer.notes, f"--where kept {len(answer.rows)} of {total} rows"]
    if sort:
        answer.rows = answer.rows.sort(sort.lstrip("-").replace("-", "_"), sort.startswith("-"))


def describe(answer: Answer, borrowed: str = "") -> None:
    """Make the text around the table, for the rows that are left; an answer without a sentence counts its rows."""
    if answer.describe:
        answer.words = answer.describe(answer.rows) if len(answer.rows) or answer.describes_none else Summary(NO_ROW)
    if not answer.words.headline:
        answer.words = dataclasses.replace(answer.words, headline=f"{number_of(len(answer.rows), 'row')}.")
    if borrowed and answer.words.headline:
        answer.words = dataclasses.replace(answer.words, headline=with_clause(answer.words.headline, borrowed))
    words = answer.words  # with every number as a person writes it, whatever formatted it
    answer.words = dataclasses.replace(
        words, headline=plain(words.headline), after=[*map(plain, words.after)], binds=plain(words.binds),
        remarks=[*map(plain, words.remarks)],
        helps=[dataclasses.replace(change, change=plain(change.change), effect=plain(change.effect)) for change in words.helps],
    )  # fmt: skip
    answer.notes = [*map(plain, answer.notes)]


def draw(answer: Answer, view: View | None = None, name: str = "") -> Picture:
    """The picture that `--plot` writes: the answer's own, the one of its pictures that is named, or of two columns, as X,Y."""
    if "," in name:
        x, y, *more = (key.strip().replace("-", "_") for key in name.split(","))
        for key in (x, y):
            if key not in answer.rows.keys():  # noqa: SIM118 -- a listing's columns
                raise UnknownName("column", key, answer.rows.keys())
        if more:
            raise BadValue("--picture", name, "two columns, X,Y")
        return grid.of_columns(list(answer.rows), x, y, view or frame.View())
    if not answer.pictures:
        verbs = ", ".join(verb for verb in QUESTIONS if question_of(verb).pictures)
        raise BadValue("--plot", "an answer without a picture", f"a verb that draws: {verbs}")
    if name and name not in answer.pictures:
        raise UnknownName("picture", name, answer.pictures, "one of " + ", ".join(answer.pictures))
    default = answer.default_picture(answer.rows) if answer.default_picture else next(iter(answer.pictures))
    return answer.pictures[name or default](answer.rows, view or frame.View())

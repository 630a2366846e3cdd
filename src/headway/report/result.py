"""The result of every public function: rows in SI, the table for people, the sentence, figures, explanations, other libraries' tables."""

from __future__ import annotations

import dataclasses
import functools
import io
import sys
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, overload

from headway.core import explain, formula, mermaid, text_table
from headway.core.columns import Column
from headway.core.errors import BadValue, MissingExtra, UnknownName
from headway.core.listing import MOST, Rows, clean, html_table
from headway.report import output
from headway.report.output import Answer, Help, Summary
from headway.report.pictures import file, frame

if TYPE_CHECKING:
    import numpy
    import pandas
    import polars
    import pyarrow

    from headway.report.pictures.frame import Picture


class ReadableTable:
    """The rows as people read them: columns of interest, numbers with units. A call prints it."""

    def __init__(self, rows: Rows, summary: Summary) -> None:
        self._rows, self._view, self._first = rows, summary.view, summary.first

    def __call__(self, keys: Sequence[str] = (), most: int = MOST) -> None:
        """Print the first `most` rows, as wide as the terminal; `keys` chooses columns."""
        self._print(sys.stdout, keys, most)

    def _print(self, out: Any, keys: Sequence[str], most: int) -> None:
        for key in keys:
            if key not in self._rows.keys():  # noqa: SIM118 -- rows are not a mapping
                raise UnknownName("column", key, self._rows.keys())
        text_table.print_rows(text_table.console_for(out), self._rows, keys or self._view, most, self._first)

    def __str__(self) -> str:
        out = io.StringIO()
        self._print(out, (), MOST)
        return out.getvalue().rstrip("\n")

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_table(self._rows, self._view)

    def __len__(self) -> int:
        return len(self._rows)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Explanation:
    """A number and the tree of laws behind it; `repr` is the tree as text."""

    key: str
    tree: Any  # a recorded call, or a fact with its source

    @property
    def value(self) -> float:
        """The number, in SI."""
        return float(self.tree)

    def replay(self) -> float:
        """The number computed again from the leaves of the tree."""
        return float(formula.replay(self.tree))

    def anonymous(self) -> list[str]:
        """Paths of leaves without a source: empty for a complete explanation."""
        return formula.anonymous(self.tree)

    def to_json(self) -> Any:
        """The tree as plain objects, as `-o json --explain` writes it."""
        return explain.to_json(self.tree, self.key)

    def text(self, depth: int | None = None) -> str:
        """The tree as indented lines, `depth` levels of it (None: all)."""
        return explain.explain(self.tree, self.key, depth)

    def to_mermaid(self, depth: int | None = output.DEPTH) -> str:
        """The tree as a diagram of Mermaid."""
        return mermaid.diagram(self.tree, self.key, depth)

    def __str__(self) -> str:
        return self.text(output.DEPTH)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


class Result:
    """Answer of a verb: `repr` is its sentence, `str` the text of the command line; `rows()`, `result["tpot_s"]` and tables are in SI."""

    def __init__(self, answer: Answer, command: Sequence[str], borrowed: str = "") -> None:
        self._answer, self.command, self._borrowed = answer, tuple(command), borrowed

    # -- words ------------------------------------------------------------------------------------------------------------------

    @functools.cached_property
    def _described(self) -> Answer:
        """The answer with its sentence, which is made when it is first read."""
        output.describe(self._answer, self._borrowed)
        return self._answer

    @property
    def answer(self) -> str:
        """The answer in one sentence."""
        return self._described.words.headline

    @property
    def binds(self) -> str:
        """What limits the answer; empty where nothing does."""
        return self._described.words.binds

    @property
    def helps(self) -> list[Help]:
        """Changes that would help, the greatest gain first."""
        return list(self._described.words.helps)

    @property
    def launch(self) -> list[str]:
        """Command lines that realise the answer."""
        return list(self._answer.launch)

    @property
    def checked(self) -> Mapping[str, Any] | None:
        """What was simulated to check the answer, and its verdict."""
        return self._answer.checked

    @property
    def notes(self) -> list[str]:
        """Every note."""
        return output.all_notes(self._described)

    # -- rows -------------------------------------------------------------------------------------------------------------------

    @property
    def table(self) -> ReadableTable:
        """The table for people; `result.table()` prints it."""
        words = self._described.words
        return ReadableTable(words.people or self._answer.rows, words)

    @property
    def columns(self) -> dict[str, Column]:
        """Unit and sentence of each column."""
        return output.known_columns(self._answer)

    def keys(self) -> list[str]:
        """Names of the columns."""
        return list(self._answer.rows.keys())

    def rows(self) -> list[dict[str, Any]]:
        """All rows: SI numbers, texts, booleans, None where a value does not apply."""
        return list(self)

    def __len__(self) -> int:
        return len(self._answer.rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return ({key: clean(value) for key, value in row.items()} for row in self._answer.rows)

    @overload
    def __getitem__(self, key: str) -> numpy.ndarray[Any, Any]: ...
    @overload
    def __getitem__(self, key: int) -> dict[str, Any]: ...
    def __getitem__(self, key: str | int) -> Any:
        """A column as an array with a value for each row (null is NaN in numbers, None in texts), or a row by its number."""
        if isinstance(key, str):
            return self._grid[key].ravel()
        return self.rows()[key]

    @functools.cached_property
    def _grid(self) -> Any:
        from headway.core.table import Table, from_rows

        rows = self._answer.rows
        return rows if isinstance(rows, Table) else from_rows(self.rows())

    def where(self, condition: str) -> Result:
        """Rows that meet a condition, such as `tpot_s <= 20ms and tp = 8`: the same as `--where`."""
        return self._narrowed(where=condition)

    def sort(self, key: str) -> Result:
        """Rows ordered by a column, `-key` for the largest first: the same as `--sort`."""
        return self._narrowed(sort=key)

    def _narrowed(self, **choice: str) -> Result:
        answer = dataclasses.replace(self._answer, words=Summary() if self._answer.describe else self._answer.words)
        output.choose_rows(answer, **choice)
        flags = [word for name, value in choice.items() for word in (f"--{name}", value)]
        return Result(answer, [*self.command, *flags], self._borrowed)

    # -- equations and figures --------------------------------------------------------------------------------------------------

    def explain(self, key: str, row: int = 0) -> Explanation:
        """The tree of laws, inputs and sources behind one number."""
        if not -len(self) <= row < len(self):
            raise BadValue("row", row, f"a row number below {len(self)}")
        return Explanation(key=key, tree=self._answer.rows.explain(key, row % len(self)))

    def plot(self, path: Any = None, *, picture: str = "", width: int = 760, theme: str = "light") -> Picture:
        """The picture that `--plot` draws; a notebook shows it, and `path` (png, svg or html) saves it."""
        if path is not None:
            file.check_path(str(path))
        plotted = output.draw(self._answer, frame.View(width=width, theme=theme), picture)
        if path is not None:
            plotted.save(path)
        return plotted

    # -- other forms ------------------------------------------------------------------------------------------------------------

    def to_json(self) -> str:
        """What `-o json` writes."""
        out = io.StringIO()
        output.to_json(self._described, self.command, out)
        return out.getvalue()

    def to_csv(self) -> str:
        """What `-o csv` writes."""
        out = io.StringIO()
        output.to_csv(self._answer, out)
        return out.getvalue()

    def to_arrow(self) -> pyarrow.Table:
        """A table of pyarrow, with unit and sentence in each field's metadata."""
        return output.arrow_table(self._answer.rows, self.columns)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> pandas.DataFrame:
        """A data frame of pandas."""
        try:
            import pandas  # noqa: F401 -- pyarrow needs it, and would say so in words of its own
        except ImportError:
            raise MissingExtra("to_pandas()", "frames") from None
        return self.to_arrow().to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """A data frame of polars."""
        try:
            import polars
        except ImportError:
            raise MissingExtra("to_polars()", "frames") from None
        return polars.DataFrame(self.to_arrow())

    # -- shown ------------------------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return f"<headway {self.command[1]}: {self.answer} {len(self):,} row{'s' * (len(self) != 1)}>"

    def __str__(self) -> str:
        if self._answer.document:
            return self._answer.document.rstrip("\n")
        out = io.StringIO()
        output.text(self._described, out)
        return out.getvalue().rstrip("\n")

    def _repr_html_(self) -> str:
        below = "".join(f"<div>{escape(line)}</div>" for line in output.lines(self._described))
        return f"<p><b>{escape(self.answer)}</b></p>{self.table._repr_html_()}{below}"

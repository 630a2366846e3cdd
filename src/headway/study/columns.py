"""Rows of many answers as one Arrow table, whose types and values do not depend on how the questions were cut into chunks.

Whole numbers, numbers, truths and texts stay what they are; null is one null whatever stood for it; a column of several kinds is text.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headway.core import columns
from headway.core.errors import MissingExtra
from headway.core.listing import clean
from headway.core.table import Labels, Table

if TYPE_CHECKING:
    import pyarrow

LARGE = 500  # rows from which an answer's columns are taken whole
INPUT = "in."  # before the name of a field that differs between the questions
QUESTION, ERROR = "question", "error"


def arrow() -> Any:
    """pyarrow, or the line that says how to install it."""
    try:
        import pyarrow
    except ImportError:
        raise MissingExtra("sweep", "table") from None
    return pyarrow


class Gathering:
    """Answers on their way into one table."""

    def __init__(self) -> None:
        self.tables: list[pyarrow.Table] = []
        self.rows: list[Mapping[str, Any]] = []

    def add(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Plain rows."""
        self.rows += rows

    def add_table(self, lead: Mapping[str, Any], table: Table) -> None:
        """A large table, beside columns of its length."""
        self._close()
        pyarrow = arrow()
        arrays = {**lead} | {key: _column(table, key) for key in table.keys()}  # noqa: SIM118 -- a table is not a mapping
        self.tables.append(pyarrow.table(arrays))

    def table(self) -> pyarrow.Table:
        """All of it."""
        self._close()
        types = joined_types([table.schema for table in self.tables])
        return arrow().concat_tables([cast(table, types) for table in self.tables])

    def _close(self) -> None:
        if self.rows:
            keys = dict.fromkeys(key for row in self.rows for key in row)
            self.tables.append(arrow().table({key: array([clean(row.get(key)) for row in self.rows]) for key in keys}))
            self.rows = []


def array(values: Sequence[Any]) -> pyarrow.Array:
    """A column of plain values."""
    pyarrow, values = arrow(), list(map(_plain, values))
    kinds = {type(value) for value in values if value is not None}
    if not kinds:
        return pyarrow.nulls(len(values))
    if kinds <= {bool} or kinds <= {str}:
        return pyarrow.array(values)
    if kinds <= {int, float}:
        is_whole = kinds == {int} and all(value is None or abs(value) < 2**63 for value in values)
        return pyarrow.array([None if value is None else value if is_whole else float(value) for value in values])
    return pyarrow.array([None if value is None else text(value) for value in values], pyarrow.string())


def _plain(value: Any) -> Any:
    """A number without its origin."""
    kind = next((kind for kind in (bool, int, float) if isinstance(value, kind)), None)
    return kind(value) if kind else value


def text(value: Any) -> str:
    """A value in a column of several kinds: a number is the same text whether it is whole or not.

    >>> text(8), text(8.0), text(0.5), text(True), text("8k"), text([1])
    ('8', '8', '0.5', 'true', '8k', '[1]')
    """
    if isinstance(value, str):
        return value
    return str(int(value)) if isinstance(value, float) and value.is_integer() else json.dumps(value)


def _column(table: Table, key: str) -> pyarrow.Array:
    """A column of a table, without a Python object for each cell where it can be."""
    pyarrow, column = arrow(), table.column(key)
    if isinstance(column, str):
        return pyarrow.repeat(pyarrow.scalar(column), len(table))
    if isinstance(column, Labels):
        codes = dataclasses.replace(table, columns={key: column.codes})[key].ravel().astype(np.int32)
        return pyarrow.array([*column.labels, None], pyarrow.string()).take(pyarrow.array(codes % (len(column.labels) + 1)))
    if column is None:
        return pyarrow.nulls(len(table))
    cells = np.asarray(table[key]).ravel()
    if cells.dtype.kind not in "biuf":
        return array([clean(value) for value in table.values(key)])
    null = ~np.isfinite(cells) if cells.dtype.kind == "f" else None
    if null is not None and null.all():
        return pyarrow.nulls(len(table))
    return pyarrow.array(cells, mask=null)


# -- one schema -----------------------------------------------------------------------------------------------------------------


def joined_types(schemas: Iterable[pyarrow.Schema]) -> dict[str, pyarrow.DataType]:
    """The type of each column over all schemas, in the order in which columns first appear."""
    types: dict[str, Any] = {}
    for schema in schemas:
        for field in schema:
            types[field.name] = _joined(types[field.name], field.type) if field.name in types else field.type
    return types


def _joined(first: Any, second: Any) -> Any:
    kinds = arrow().types
    if first == second or kinds.is_null(second):
        return first
    if kinds.is_null(first):
        return second
    numbers = [kinds.is_integer(kind) or kinds.is_floating(kind) for kind in (first, second)]
    return arrow().float64() if all(numbers) else arrow().string()


def cast(table: pyarrow.Table, types: Mapping[str, Any]) -> pyarrow.Table:
    """The table with these columns in these types; null where it lacks one."""
    pyarrow = arrow()
    arrays = []
    for name, kind in types.items():
        column = table.column(name) if name in table.column_names else pyarrow.nulls(table.num_rows)
        if column.type != kind and kind == pyarrow.string() and not pyarrow.types.is_null(column.type):
            column = pyarrow.array([None if value is None else text(value) for value in column.to_pylist()], kind)
        arrays.append(column if column.type == kind else column.cast(kind, safe=False))
    return pyarrow.table(arrays, schema=schema_of(types))


def settled_types(types: Mapping[str, Any]) -> dict[str, Any]:
    """Types of a whole sweep: a column that is null in every row has that of its unit."""
    pyarrow = arrow()
    usual = {name: pyarrow.string() if columns.unit(name) in ("", "bool") else pyarrow.float64() for name in types}
    return {name: usual[name] if pyarrow.types.is_null(kind) else kind for name, kind in types.items()}


def schema_of(types: Mapping[str, Any]) -> pyarrow.Schema:
    """The schema of these columns, with unit and sentence of each."""
    pyarrow = arrow()
    return pyarrow.schema([pyarrow.field(name, kind, metadata=_about(name)) for name, kind in types.items()])


@functools.cache
def _about(name: str) -> dict[str, str]:
    column = columns.column(name)
    return {"unit": column.unit, "doc": column.doc or (f"what the question says of {name.removeprefix(INPUT)}" if INPUT in name else "")}

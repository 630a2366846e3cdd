"""Table: the result of every estimate; named axes, and columns each kept at its own rank and broadcast on access."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from headway.core import listing, text_table
from headway.core.errors import BadValue, UnknownName
from headway.core.quantity import Sourced

CHUNK = 10_000  # rows converted to plain objects at a time


@dataclasses.dataclass(frozen=True, slots=True)
class Axis:
    """One named axis of the grid."""

    name: str
    values: Any  # a sequence or an array


@dataclasses.dataclass(frozen=True, slots=True)
class Labels:
    """A text column: integer codes into a tuple of texts; code -1 is null."""

    codes: Any
    labels: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Table:
    """Rows are the points of `axes` in C order (or the points that `pick` numbers); a column is anything broadcastable to them.

    NaN stands for null in a numeric column and never leaves the table: `rows()` gives None. `tree(row, key)` explains one cell.
    """

    axes: tuple[Axis, ...]
    columns: Mapping[str, Any]
    notes: tuple[str, ...] = ()
    tree: Callable[[int, str], Any] | None = None
    pick: Any = None

    @property
    def grid(self) -> tuple[int, ...]:
        """Shape of the whole grid."""
        return tuple(len(axis.values) for axis in self.axes)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of `table[key]`."""
        return self.grid if self.pick is None else (len(self.pick),)

    def __len__(self) -> int:
        return math.prod(self.shape)

    def __contains__(self, key: str) -> bool:
        return key in self.columns

    def keys(self) -> list[str]:
        """Column keys, in order."""
        return list(self.columns)

    def __getitem__(self, key: str) -> Any:
        """One column as an array of the table's shape: a view where it can be; null is NaN in numbers, None in texts."""
        column = self.column(key)
        if column is None:
            return np.broadcast_to(np.nan, self.shape)
        if isinstance(column, Labels):
            return np.array([*column.labels, None], dtype=object)[self._spread(column.codes)]
        return self._spread(np.asarray(column, dtype=object) if isinstance(column, str) else column)

    def distinct(self, key: str) -> tuple[Any, Any]:
        """Distinct values of a column, and the index that spreads them over the table: cheaper to test than each row."""
        column = self.column(key)
        if isinstance(column, Labels):
            return np.array([*column.labels, None], dtype=object), self._spread(column.codes)
        if isinstance(column, str):
            return np.array([column], dtype=object), np.zeros(self.shape, dtype=np.int8)
        return self[key], ...

    def column(self, key: str) -> Any:
        """One column as stored, before broadcasting."""
        if key not in self.columns:
            raise UnknownName("column", key, self.columns)
        return self.columns[key]

    def _spread(self, column: Any) -> Any:
        values = np.asarray(column)
        if self.pick is None or values.size == 1:
            return np.broadcast_to(values.reshape(()) if values.size == 1 else values, self.shape)
        padded = values.reshape((1,) * (len(self.grid) - values.ndim) + values.shape)
        where = np.unravel_index(self.pick, self.grid)
        return padded[tuple(index if size > 1 else 0 for index, size in zip(where, padded.shape, strict=True))]

    def varies(self, key: str) -> bool:
        """Whether a column has more than one value."""
        column = self.column(key)
        if column is None or isinstance(column, str | bool | int | float):
            return False
        values = self._spread(column.codes if isinstance(column, Labels) else column).ravel() if self.pick is not None else column
        values = np.asarray(values.codes if isinstance(values, Labels) else values).ravel()
        return bool((values[1:] != values[:-1]).any())

    # -- rows -------------------------------------------------------------------------------------------------------------------

    def rows(self) -> list[dict[str, Any]]:
        """All rows as plain Python: SI numbers, texts, booleans, None."""
        return list(self)

    def row(self, number: int) -> dict[str, Any]:
        """One row as plain Python."""
        return self.take([number]).rows()[0]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        keys = self.keys()
        for start in range(0, len(self), CHUNK):
            part = self if len(self) <= CHUNK else self.take(np.arange(start, min(start + CHUNK, len(self))))
            for values in zip(*(part.values(key) for key in keys), strict=True):
                yield dict(zip(keys, values, strict=True))

    def values(self, key: str) -> list[Any]:
        """One column as a list of plain Python values."""
        column = self.column(key)
        if column is None or isinstance(column, str | bool | int | float | np.number | np.bool_):
            return [_plain(column)] * len(self)
        cells = self[key].ravel()
        return cells.tolist() if cells.dtype.kind in "iub" else [_plain(value) for value in cells.tolist()]

    # -- choosing rows ----------------------------------------------------------------------------------------------------------

    def take(self, rows: Any) -> Table:
        """Rows with these numbers, in this order."""
        rows = np.asarray(rows, dtype=np.int64)
        return dataclasses.replace(self, pick=rows if self.pick is None else self.pick[rows])

    def where(self, text: str) -> Table:
        """Rows that meet a condition, such as `tpot_s <= 20ms and tp = 8`."""
        from headway.core.filter import parse

        row_mask = parse(text).mask(self)
        return self.take(np.flatnonzero(np.broadcast_to(row_mask, self.shape)))

    def sort(self, key: str, descending: bool = False) -> Table:
        """Rows ordered by one column; null last."""
        values = self[key].ravel()
        if values.dtype == object:
            valued_rows = [row for row in range(len(self)) if values[row] is not None]
            null = [row for row in range(len(self)) if values[row] is None]
            return self.take(sorted(valued_rows, key=lambda row: str(values[row]), reverse=descending) + null)
        return self.take(np.argsort(-values.astype(float) if descending else values, kind="stable"))

    def best(self, key: str, maximise: bool = False) -> Table:
        """The row with the least (or greatest) value among rows that fit; no row when none fits."""
        values = self._numbers(key, maximise)
        return self.take([int(np.argmin(values))] if len(self) and np.isfinite(values).any() else [])

    def pareto(self, x: str, y: str, maximise: Sequence[str] = ()) -> Table:
        """Rows that fit and that no other row beats in both columns; less is better except for keys in `maximise`; ordered by `x`."""
        first, second = self._numbers(x, x in maximise), self._numbers(y, y in maximise)
        order = np.lexsort((second, first))
        order = order[np.isfinite(first[order]) & np.isfinite(second[order])]
        running = np.minimum.accumulate(second[order]) if len(order) else second[order]
        new = np.ones(len(order), dtype=bool)
        new[1:] = running[1:] < running[:-1]
        return self.take(order[new])

    def _numbers(self, key: str, maximise: bool) -> Any:
        """A column as floats where less is better; infinity where null or where the row does not fit."""
        column = self[key]
        if column.dtype == object:
            raise BadValue("column", key, "a column of numbers")
        values = np.where(np.isnan(column), np.inf, column.astype(float) * (-1 if maximise else 1))
        if "fits" in self.columns:
            values = np.where(self["fits"], values, np.inf)
        return values.ravel()

    # -- joining ----------------------------------------------------------------------------------------------------------------

    def concat(self, *tables: Table) -> Table:
        """Rows of this table, then rows of the others; null where a table lacks a column."""
        parts = (self, *tables)
        keys = list(dict.fromkeys(key for part in parts for key in part.columns))
        sizes = [len(part) for part in parts]
        notes = tuple(dict.fromkeys(note for part in parts for note in part.notes))
        columns = {key: _joined([part.columns.get(key) for part in parts], parts, key) for key in keys}
        return Table((Axis("row", range(sum(sizes))),), columns, notes, _joined_tree(parts))

    def explain(self, key: str, row: int = 0) -> Any:
        """Tree of formulas behind one cell (see headway.core.explain)."""
        if self.tree is None:
            raise BadValue("explain", key, "a table of estimates; this one holds facts")
        self.column(key)
        return self.tree(int(row if self.pick is None else self.pick[row]), key)

    # -- showing ----------------------------------------------------------------------------------------------------------------

    def table(self, keys: Sequence[str] = (), most: int = 40) -> None:
        """Print the rows, numbers with units; `keys` chooses columns."""
        text_table.print_table(self, keys, most)

    def _repr_html_(self) -> str:
        return listing.html_table(self)


def from_rows(rows: Sequence[Mapping[str, Any]], notes: Sequence[str] = (), tree: Callable[[int, str], Any] | None = None) -> Table:
    """A table of plain rows, with one axis."""
    keys = list(dict.fromkeys(key for row in rows for key in row))
    return Table((Axis("row", range(len(rows))),), {key: _packed([row.get(key) for row in rows]) for key in keys}, tuple(notes), tree)


def _packed(values: list[Any]) -> Any:
    """A column from plain values: numbers as numbers (None as NaN), texts as labels, other values unchanged."""
    kinds = {type(value) for value in values if value is not None}
    if not kinds:
        return None
    if kinds == {bool} and None not in values:
        return np.array(values)
    if all(issubclass(kind, int | float | np.number) and kind is not bool for kind in kinds):
        return np.array([math.nan if value is None else value for value in values])
    if kinds == {str}:
        labels = tuple(dict.fromkeys(value for value in values if value is not None))
        index = {label: code for code, label in enumerate(labels)}
        return Labels(np.array([-1 if value is None else index[value] for value in values]), labels)
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def _joined(columns: list[Any], parts: tuple[Table, ...], key: str) -> Any:
    first = columns[0]
    is_scalar = first is None or isinstance(first, str | bool | int | float)
    if is_scalar and all(type(column) is type(first) and column == first for column in columns):
        return first
    if any(isinstance(column, str | Labels) for column in columns):
        return _packed([value for part in parts for value in (part.values(key) if key in part else [None] * len(part))])
    return np.concatenate([part[key].ravel() if key in part else np.full(len(part), np.nan) for part in parts])


def _joined_tree(parts: tuple[Table, ...]) -> Callable[[int, str], Any]:
    def tree(row: int, key: str) -> Any:
        for part in parts:
            if row < len(part):
                return part.explain(key, row)
            row -= len(part)
        raise IndexError(row)

    return tree


def _plain(value: Any) -> Any:
    """A value as in JSON: no numpy, no origin, no NaN."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return (float(value) if isinstance(value, Sourced) else value) if math.isfinite(value) else None
    if isinstance(value, Sourced):
        return int(value)  # type: ignore[call-overload]
    return value

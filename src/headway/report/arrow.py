"""Rows of an answer as an Arrow table: SI numbers, null where a value does not apply, unit and sentence in each column's metadata."""

from __future__ import annotations

import json
from typing import Any

from headway.core.columns import Column
from headway.core.errors import MissingExtra
from headway.core.listing import clean


def arrow_table(rows: Any, columns: dict[str, Column], what: str = "to_arrow()") -> Any:
    """A pyarrow.Table of all rows; `what` is named in the error where pyarrow is not installed."""
    try:
        import pyarrow
    except ImportError:
        raise MissingExtra(what, "table") from None
    arrays, fields = [], []
    for key, column in columns.items():
        arrays.append(_array(_values(rows, key), column))
        fields.append(pyarrow.field(key, arrays[-1].type, metadata={"unit": column.unit, "doc": column.doc}))
    return pyarrow.table(arrays, schema=pyarrow.schema(fields))


def _values(rows: Any, key: str) -> list[Any]:
    """One column as plain values."""
    values = rows.values(key) if hasattr(rows, "values") else [row.get(key) for row in rows]
    return [clean(value) for value in values]


def _array(values: list[Any], column: Column) -> Any:
    """An Arrow array; values of several kinds become JSON text, a column of nulls has the type of its unit."""
    import pyarrow

    try:
        array = pyarrow.array(values)
    except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError, OverflowError):
        is_number = all(value is None or isinstance(value, int | float) for value in values)
        array = pyarrow.array([_float(value) for value in values]) if is_number else _texts(values)
    if pyarrow.types.is_null(array.type):
        return array.cast(pyarrow.float64() if column.unit not in ("", "bool") else pyarrow.string())
    return _texts(values) if _has_empty_struct(array.type) else array


def _float(value: Any) -> float | None:
    return None if value is None else float(value)


def _texts(values: list[Any]) -> Any:
    """Values as text: JSON for all but texts and nulls."""
    import pyarrow

    return pyarrow.array([value if value is None or isinstance(value, str) else json.dumps(value) for value in values], pyarrow.string())


def _has_empty_struct(kind: Any) -> bool:
    """Whether a type holds a record without fields or of nulls alone, which neither Parquet nor polars can hold."""
    import pyarrow

    if pyarrow.types.is_struct(kind):
        return kind.num_fields == 0 or any(_has_empty_struct(kind.field(place).type) for place in range(kind.num_fields))
    return pyarrow.types.is_list(kind) and _has_empty_struct(kind.value_type)

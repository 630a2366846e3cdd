"""Frozen records from declared data: a table of TOML or a row of CSV, read as the fields of a dataclass say."""

from __future__ import annotations

import dataclasses
import functools
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

R = TypeVar("R")


def record_of(kind: type[R], entry: Mapping[str, Any], /, **more: Any) -> R:
    """A record: `more`, and each other field from the entry of its name; a field that neither has keeps its default.

    >>> @dataclasses.dataclass
    ... class Row:
    ...     rows: int
    ...     names: tuple[str, ...] = ()
    >>> record_of(Row, {"rows": "3", "names": ["h100"], "unread": 1})
    Row(rows=3, names=('h100',))
    """
    return kind(**{name: _value(hint, entry[name]) for name, hint in _types(kind).items() if name in entry and name not in more}, **more)


@functools.cache
def _types(kind: type) -> dict[str, Any]:
    hints = typing.get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


def _value(hint: Any, value: Any) -> Any:
    """A value as a field's type has it: numbers and `yes` of a CSV are text, sequences of TOML are lists."""
    origin, members = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple:
        return tuple(_value(members[0], item) for item in value)
    if origin is not None and issubclass(origin, Mapping):
        return {key: _value(members[1], item) for key, item in value.items()}
    if hint in (int, float):
        return hint(value)
    return value == "yes" if hint is bool and isinstance(value, str) else value

"""Plain rows that can be filtered and sorted like a Table, for answers that need no arrays (numpy stays unimported)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from headway.core.errors import BadValue, UnknownName


def computed(value: Any, key: str) -> Any:
    """A number that can be explained: one a law gave, or one that knows its origin."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadValue("--explain", key, "a column of numbers that has one in this row")
    return value


@dataclasses.dataclass(frozen=True, slots=True)
class Listing:
    """Rows as they are shown."""

    plain: Sequence[Mapping[str, Any]]
    notes: tuple[str, ...] = ()
    tree: Callable[[Mapping[str, Any], str], Any] | None = None  # row, key -> the formulas behind it
    always: tuple[str, ...] = ()  # keys there are even without a row

    def keys(self) -> list[str]:
        """Every key of any row, in order of appearance."""
        return list(dict.fromkeys([*self.always, *(key for row in self.plain for key in row)]))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        keys = self.keys()
        return ({key: row.get(key) for key in keys} for row in self.plain)

    def __len__(self) -> int:
        return len(self.plain)

    def where(self, text: str) -> Listing:
        """The rows for which a condition of where.py holds."""
        from headway.core.filter import parse

        condition = parse(text)
        return dataclasses.replace(self, plain=[row for row in self if condition.row(row)])

    def sort(self, key: str, descending: bool = False) -> Listing:
        """The rows in the order of one key; null last."""
        if key not in self.keys():
            raise UnknownName("column", key, self.keys())
        known = [row for row in self if row[key] is not None]
        if any(isinstance(row[key], Mapping | list | tuple) for row in known):
            raise BadValue("--sort", key, "a column of numbers or of texts")
        texts = any(isinstance(row[key], str) for row in known)
        known.sort(key=lambda row: str(row[key]) if texts else row[key], reverse=descending)
        return dataclasses.replace(self, plain=[*known, *(row for row in self if row[key] is None)])

    def explain(self, key: str, row: int = 0) -> Any:
        """How one cell came about, where it was computed; a fact has a source instead."""
        if key not in self.keys():
            raise UnknownName("column", key, self.keys())
        if self.tree is None:
            raise BadValue("--explain", key, "a verb that computes or knows one thing: serve, plan, solve, show, trend or lecture")
        return self.tree(self.plain[row], key)

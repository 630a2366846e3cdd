"""One table of a price file with its place in it, so that an error names the key; and what reading a file gives."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from headway.core import units
from headway.core.errors import BadFile, BadValue, clip, nearest
from headway.economics.sheets.sheet import PriceSheet


@dataclass(frozen=True, slots=True, kw_only=True)
class SheetMatches:
    """The sheets that could be read, and notes."""

    sheets: tuple[PriceSheet, ...]
    notes: tuple[str, ...] = ()


MOST_RATE = 1e5  # USD per Mtok: more than ten cents for one token is a mistake of units


@dataclass(frozen=True, slots=True, kw_only=True)
class SheetEntry:
    """A table, the file it is from, and where in the file."""

    values: Mapping[str, Any]
    path: Any
    where: str = ""

    def wrong(self, key: str, why: str) -> BadFile:
        """The error for what is wrong with a key."""
        return BadFile(self.path, f"{self.where}{key}: {why}")

    def only(self, keys: Iterable[str]) -> None:
        """Refuse a key that nothing reads: a misspelt one would be lost silently."""
        known = list(keys)
        for key in self.values:
            if key not in known:
                near = nearest(str(key), known)
                offer = f"did you mean {' or '.join(near)}?" if near else f"wants {', '.join(known)}"
                raise self.wrong(clip(key), f"no such entry; {offer}")

    def text(self, key: str, default: str) -> str:
        """A text, or the default where there is none."""
        value = self.values.get(key, default)
        if not isinstance(value, str) or not value.strip():
            raise self.wrong(key, f"got {clip(value)!r}; wants text in quotes")
        return " ".join(value.split())

    def number(self, key: str, most: float = math.inf, above: float | None = None) -> float | None:
        """A finite number of 0 or more, or None where there is none."""
        value = self.values.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise self.wrong(key, f"got {clip(value)!r}; wants a finite number")
        if value < 0 or (above is not None and value <= above):
            raise self.wrong(key, f"got {value:g}; wants a number {'of 0 or more' if above is None else f'above {above:g}'}")
        if value > most:
            raise self.wrong(key, f"got {value:g}; wants at most {most:g}: rates are in USD per million tokens")
        return float(value)

    def tokens(self, key: str) -> float | None:
        """A count of tokens, as a number or as 200k."""
        value = self.values.get(key)
        if isinstance(value, str):
            try:
                value = units.parse(value, "token", key)
            except BadValue as error:
                raise BadFile(self.path, f"{self.where}{error}") from None
        count = SheetEntry(values={key: value}, path=self.path, where=self.where).number(key, most=1e12, above=0)
        if count is not None and not count.is_integer():
            raise self.wrong(key, f"got {count:g}; wants whole tokens")
        return count

    def part(self, key: str) -> SheetEntry:
        """The table under a key, empty where there is none."""
        value = self.values.get(key, {})
        if not isinstance(value, Mapping):
            raise self.wrong(key, f"got {clip(value)!r}; wants a table")
        return SheetEntry(values=value, path=self.path, where=f"{self.where}{key}.")

    def parts(self, key: str) -> Iterator[SheetEntry]:
        """The tables in the list under a key."""
        value = self.values.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
            raise self.wrong(key, f"got {clip(value)!r}; wants a list of tables")
        for number, table in enumerate(value, 1):
            yield SheetEntry(values=table, path=self.path, where=f"{self.where}{key}[{number}].")

    def present_keys(self, keys: Iterable[str]) -> list[str]:
        """Those of the keys that are there."""
        return [key for key in keys if self.values.get(key) is not None]

"""One table of a price file with its position, so that errors name the key; and the sheets read from a file."""

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
    """The readable sheets of a file, and notes."""

    sheets: tuple[PriceSheet, ...]
    notes: tuple[str, ...] = ()


MOST_RATE = 1e5  # USD per Mtok; more than ten cents per token is a unit error


@dataclass(frozen=True, slots=True, kw_only=True)
class SheetEntry:
    """A table of a price file, with its file and position."""

    values: Mapping[str, Any]
    path: Any
    where: str = ""

    def wrong(self, key: str, why: str) -> BadFile:
        """The error for a key, with the reason."""
        return BadFile(self.path, f"{self.where}{key}: {why}")

    def only(self, keys: Iterable[str]) -> None:
        """Refuse unknown keys, since a misspelt key would be lost silently."""
        known = list(keys)
        for key in self.values:
            if key not in known:
                near = nearest(str(key), known)
                offer = f"did you mean {' or '.join(near)}?" if near else f"wants {', '.join(known)}"
                raise self.wrong(clip(key), f"no such entry; {offer}")

    def text(self, key: str, default: str) -> str:
        """The text under a key, or the default."""
        value = self.values.get(key, default)
        if not isinstance(value, str) or not value.strip():
            raise self.wrong(key, f"got {clip(value)!r}; wants text in quotes")
        return " ".join(value.split())

    def number(self, key: str, most: float = math.inf, above: float | None = None) -> float | None:
        """The finite number of 0 or more under a key, or None."""
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
        """The count of tokens under a key, given as a number or as 200k."""
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
        """The table under a key, empty if absent."""
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
        """The keys that the table has."""
        return [key for key in keys if self.values.get(key) is not None]

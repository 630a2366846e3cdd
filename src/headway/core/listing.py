"""Plain rows that can be filtered and sorted like a Table, for answers without arrays (numpy stays unimported)."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Protocol

from headway.core import columns, spellings, units
from headway.core.errors import BadValue, UnknownName
from headway.core.trace import record

MOST = 40  # rows of a text table
CHIPS = ("chip", "domain_chip")
LOOSE = 10.0  # hi / lo beyond which an answer says no more than its ends


def computed(value: Any, key: str) -> Any:
    """A number that can be explained: the result of a law, or a number with an origin."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadValue("--explain", key, "a column of numbers that has one in this row")
    return value


@dataclasses.dataclass(frozen=True, slots=True)
class Listing:
    """Rows as shown to the user."""

    plain: Sequence[Mapping[str, Any]]
    notes: tuple[str, ...] = ()
    tree: Callable[[Mapping[str, Any], str], Any] | None = None  # row, key -> the formulas behind it
    always: tuple[str, ...] = ()  # keys present even without a row

    def keys(self) -> list[str]:
        """All keys of all rows, in order of appearance."""
        return list(dict.fromkeys([*self.always, *(key for row in self.plain for key in row)]))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        keys = self.keys()
        return ({key: row.get(key) for key in keys} for row in self.plain)

    def __len__(self) -> int:
        return len(self.plain)

    def where(self, text: str) -> Listing:
        """Rows that meet a condition (see headway.core.filter)."""
        from headway.core.filter import parse

        condition = parse(text)
        return dataclasses.replace(self, plain=[row for row in self if condition.row(row)])

    def sort(self, key: str, descending: bool = False) -> Listing:
        """Rows ordered by one key; null last."""
        if key not in self.keys():
            raise UnknownName("column", key, self.keys())
        known = [row for row in self if row[key] is not None]
        if any(isinstance(row[key], Mapping | list | tuple) for row in known):
            raise BadValue("--sort", key, "a column of numbers or of texts")
        texts = any(isinstance(row[key], str) for row in known)
        known.sort(key=lambda row: str(row[key]) if texts else row[key], reverse=descending)
        return dataclasses.replace(self, plain=[*known, *(row for row in self if row[key] is None)])

    def explain(self, key: str, row: int = 0) -> Any:
        """Tree of formulas behind one computed cell; a fact has a source instead."""
        if key not in self.keys():
            raise UnknownName("column", key, self.keys())
        if self.tree is None:
            raise BadValue("--explain", key, "a verb that computes or knows one thing: serve, plan, solve, show, trend or lecture")
        return self.tree(self.plain[row], key)


def place_of(row: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> int:
    """Place of a row among `rows`, from which a filter made it anew."""
    return next(place for place, candidate in enumerate(rows) if all(row.get(key) == candidate[key] for key in candidate))


def traced_listing(traced: Sequence[Mapping[str, Any]], notes: tuple[str, ...] = ()) -> Listing:
    """Rows whose numbers were recorded: each cell explains itself."""
    rows = [clean(row) for row in traced]
    return Listing(rows, notes, tree=lambda row, key: computed(traced[place_of(row, rows)].get(key), key))


def remade(rows: Sequence[Mapping[str, Any]], make: Callable[[int], Any], notes: Sequence[str] = ()) -> Listing:
    """Rows of which each is made again, by its place, where a number of it is explained: then its formulas are recorded."""

    def tree(row: Mapping[str, Any], key: str) -> Any:
        with record():
            return computed(getattr(make(place_of(row, rows)), key, None), key)

    return Listing(rows, tuple(dict.fromkeys(notes)), tree)


# -- cells ----------------------------------------------------------------------------------------------------------------------


NAMING = ("quantity", "kind")  # columns whose cells are names of quantities and of rows, told in words


def cell(key: str, row: Mapping[str, Any]) -> str:
    """One cell for a person. The key `lo~hi` of two columns shows them as an interval."""
    if "~" in key:
        low, high = (format_value(row.get(part), columns.unit(part)) for part in key.split("~"))
        return "-" if low == high == "-" else f"{low} .. {high}"
    if key == "solution":
        return input_text(row["solution"], row["for"])
    if key in CHIPS and isinstance(row.get(key), str):
        return row[key].replace("_", "-")  # as it is typed
    value, (_, low, high) = row.get(key), (row.get(end) for end in ends(key))
    if key in NAMING and isinstance(value, str) and "_" in value:
        return heading(value)
    return units.plain(value) or "-" if isinstance(value, str) else estimate_text(value, low, high, columns.unit(key))


def ends(key: str) -> tuple[str, str, str]:
    """Keys of a column's floor, low end and high end, which need not exist.

    >>> ends("ttft_s"), ends("tok_per_s")
    (('ttft_floor_s', 'ttft_lo_s', 'ttft_hi_s'), ('tok_per_s_floor', 'tok_per_s_lo', 'tok_per_s_hi'))
    """
    stem, tail = (key[:-2], "_s") if key.endswith("_s") and columns.unit(key) == "s" else (key, "")
    return f"{stem}_floor{tail}", f"{stem}_lo{tail}", f"{stem}_hi{tail}"


def is_loose(low: object, high: object) -> bool:
    """Whether an interval spans so much that the middle of it is no answer."""
    return isinstance(low, float | int) and isinstance(high, float | int) and 0 < low * LOOSE < high


def estimate_text(value: float | None, low: float | None, high: float | None, unit: str) -> str:
    """A value with its unit, or its ends where they are far apart; an end may be None."""
    return format_value(value, unit) if low is None or high is None or not is_loose(low, high) else between(low, high, unit)


def between(low: float, high: float, unit: str) -> str:
    """An answer that is no more than its ends.

    >>> between(0.04, 1.2, "s"), between(2.2e13, 1.25e15, "token")
    ('between 0.04 and 1.2 s', 'between 22T and 1.25P')
    """
    first, last = format_value(low, unit), format_value(high, unit)
    digits, _, suffix = last.partition(" ")
    if unit == "s" and suffix and low > high / 100:  # one unit for both
        first = f"{low / high * float(digits):.3g}"
    return f"between {first} and {last}"


def input_text(value: float, name: str) -> str:
    """A value of an input as it can be typed, with four digits."""
    unit = columns.unit(name)
    if unit in ("", "token"):
        return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else units.number(value, 4)
    return units.show(value, unit, 4)


def format_value(value: Any, unit: str, digits: int = 3) -> str:
    """A value with its unit: whole counts in full, measured quantities with so many digits."""
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {format_value(item, columns.unit(key), digits)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(format_value(item, unit, digits) for item in value)
    if unit in ("", "token") and float(value).is_integer() and abs(value) < 1e6:
        return f"{value / 1000:g}k" if unit == "token" and value and value % 1000 == 0 else str(int(value))
    known = unit in spellings.SPELLINGS or unit in ("USD/Mtok", "byte/token", "flop/token")
    text = units.show(value, unit if known else "", digits)
    return text if known else f"{text} {unit}"


WORDS = {"ttft": "TTFT", "tpot": "TPOT", "itl": "ITL", "e2e": "E2E", "kv": "KV", "hbm": "HBM", "mfu": "MFU", "usd": "$", "rl": "RL"}
LIMITS = ("ttft", "tpot", "e2e")  # inputs, unlike ttft_s, which is an answer
SPOKEN = {
    "tok per s": "tok/s",
    "req per s": "req/s",
    "$ per mtok": "$/Mtok",
    "$ per 1k requests": "$/1k requests",
    "$ per hour": "$/hour",
    "$ per month": "$/month",
    "tokens per s": "tokens/s",
    "$ per byte": "$/byte",
    " bytes chip": "/chip",
}


def heading(key: str) -> str:
    """The head of a column for a person: the key in words, without the unit that each cell states.

    >>> heading("usd_per_mtok_out"), heading("tpot_lo_s~tpot_hi_s"), heading("p99_9_ttft_s")
    ('$/Mtok out', 'TPOT 90 %', 'p99.9 TTFT')
    """
    if key in LIMITS:
        return f"{WORDS[key]} limit"
    first = key.split("~")[0]
    bare = first.removesuffix("_s") if columns.unit(first) == "s" else first
    name = " ".join(WORDS.get(word, word) for word in bare.split("_"))
    name = re.sub(r"\bp(\d+) (\d+)\b", r"p\1.\2", name)
    for words, short in SPOKEN.items():
        name = name.replace(words, short)
    return re.sub(r" lo\b", "", name) + " 90 %" if "~" in key else name


def headings(keys: Sequence[str]) -> list[str]:
    """Heads of the columns of one table: no two share a name, since the whole key tells apart those that would.

    >>> headings(["batch", "step", "step_s"])
    ['batch', 'step', 'step s']
    """
    names: list[str] = []
    for key in keys:
        name = heading(key)
        names.append(name if name not in names else key.replace("_", " ").replace("~", " .. "))
    return names


def visible(rows: Sequence[Mapping[str, Any]], view: Iterable[str]) -> list[str]:
    """Columns of a view that have a value in these rows."""
    return [key for key in view if any(cell(key, row) != "-" for row in rows)]


PLAIN = (bool, int, str)  # that JSON has


def clean(value: Any) -> Any:
    """A value that JSON can hold: no NaN, no infinity, no numpy, no record, at any depth."""
    if isinstance(value, float):  # the usual value first
        return float(value) if math.isfinite(value) else None
    if value is None or isinstance(value, PLAIN):
        return value
    if type(value) is dict:  # then, in trees, those of laws and leaves
        return {str(key): clean(item) for key, item in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: clean(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean(item) for item in value]
    item = getattr(value, "item", None)  # a number of numpy
    return clean(item()) if item else str(value)


# -- rows that are written ------------------------------------------------------------------------------------------------------


class Rows(Protocol):
    """What is written: a Table, or a plain list of rows."""

    @property
    def notes(self) -> Any: ...
    def keys(self) -> Any: ...
    def __iter__(self) -> Iterator[dict[str, Any]]: ...
    def __len__(self) -> int: ...


def first_rows(rows: Rows, most: int) -> list[dict[str, Any]]:
    """The first rows as dictionaries."""
    taker = getattr(rows, "take", None)
    return list(taker(range(min(most, len(rows)))) if taker else islice(rows, most))


def html_table(rows: Rows, keys: Sequence[str] = (), most: int = MOST) -> str:
    """A table as HTML, for a notebook."""
    from html import escape

    head = first_rows(rows, most)
    shown_keys = visible(head, keys or rows.keys())
    heads = zip(shown_keys, headings(shown_keys), strict=True)
    lines = ["".join(f'<th title="{escape(columns.doc(key))}">{escape(name)}</th>' for key, name in heads)]
    lines += ["".join(f"<td>{escape(cell(key, row))}</td>" for key in shown_keys) for row in head]
    more = f"<p>{len(rows) - len(head)} more rows</p>" if len(rows) > len(head) else ""
    return "<table>" + "".join(f"<tr>{line}</tr>" for line in lines) + f"</table>{more}"

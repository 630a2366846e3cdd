"""Sentences of at most thirty words: a first clause, and further clauses while there is room."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headway.core import columns
from headway.core.listing import between, ends, estimate_text, format_value, is_loose

NO_ROW = "No row is left."
MOST_WORDS = 30  # of the first sentence
Row = Mapping[str, Any]


def sentence(first: str, *clauses: str, most: int = MOST_WORDS, last: str = "") -> str:
    """The first clause and those of the others, in order, that keep the sentence within `most` words; `last` stays. Ends with a full stop.

    >>> sentence("TPOT is 16 ms", "", ", TTFT 178 ms", "; cost is not known", most=7)
    'TPOT is 16 ms, TTFT 178 ms.'
    >>> sentence("TPOT is 16 ms", ", TTFT 178 ms", most=8, last="; no price")
    'TPOT is 16 ms; no price.'
    """
    most -= count(last)
    words = first.rstrip(".").split(" ")
    text = " ".join(words[:most]) if len(words) > most else first.rstrip(".")
    for clause in clauses:
        if clause and count(text + clause) <= most:
            text += clause
    return text.rstrip(".;, ") + last + "."


def with_clause(text: str, clause: str, most: int = MOST_WORDS) -> str:
    """A sentence with one more clause, for which its own last clauses and brackets make room; as it was where the clause is too long.

    >>> with_clause("A step takes 9.9 ms (90 %: 5 .. 17 ms, floor 5 ms), 101 tok/s; weights bind.", "X borrows costs of Y", most=16)
    'A step takes 9.9 ms (90 %: 5 .. 17 ms); X borrows costs of Y.'
    """
    room = text.rstrip(".")
    while count(room) + count(clause) > most:
        cut = max(room.rfind(mark) for mark in ("; ", ", ", " ("))
        if cut < 0:
            return text
        room = room[:cut]
        room += ")" * (room.count("(") - room.count(")"))
    return f"{room}; {clause}."


def count(text: str) -> int:
    """Words of a text, as its spaces part them."""
    return len(text.split())


def value(row: Row, key: str) -> str:
    """Value of a row with its unit, or its ends where they are far apart."""
    _, low, high = (row.get(end) for end in ends(key))
    return estimate_text(row.get(key), low, high, columns.unit(key))


def subject(row: Row) -> str:
    """Model and machine of a row."""
    return f"{row['model']} on {row['system']}"


def interval(low: Any, high: Any, unit: str) -> str:
    """Two ends with the unit once where it is the same.

    >>> interval(0.0121, 0.021, "s"), interval(0.9, 1.2, "s")
    ('12.1 .. 21 ms', '900 ms .. 1.2 s')
    """
    first, last = format_value(low, unit), format_value(high, unit)
    number, _, suffix = first.partition(" ")
    return f"{number} .. {last}" if suffix and suffix == last.partition(" ")[2] else f"{first} .. {last}"


def with_ends(middle: Any, low: Any, high: Any, unit: str, more: str = "") -> str:
    """A value with its 90 % interval; where that spans more than ten times, its ends alone.

    >>> with_ends(0.016, 0.0121, 0.021, "s", ", floor 5 ms"), with_ends(0.2, 0.04, 1.2, "s")
    ('16 ms (90 %: 12.1 .. 21 ms, floor 5 ms)', 'between 0.04 and 1.2 s (90 %)')
    """
    if is_loose(low, high):
        return f"{between(low, high, unit)} (90 %{more})"
    return f"{format_value(middle, unit)} (90 %: {interval(low, high, unit)}{more})"


def timed(row: Row, stem: str) -> str:
    """Time of a row with its interval and floor."""
    floor = f", floor {value(row, f'{stem}_floor_s')}"
    middle, low, high = (row.get(f"{stem}{end}_s") for end in ("", "_lo", "_hi"))
    return with_ends(middle, low, high, "s", floor)


def number_of(number: int, noun: str) -> str:
    """A number with its noun in the singular or plural.

    >>> number_of(1, "point"), number_of(2000, "point")
    ('1 point', '2,000 points')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"

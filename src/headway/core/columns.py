"""All keys of all answers: unit and sentence of each, a line a key in data/columns.csv. A key that stands nowhere is not in the contract.

A key with a star stands for the percentiles of one quantity: `p*_ttft_s` for `p99_ttft_s` and, where they are chosen, `p99_9_ttft_s`.

A key that two tables have (`step_s` of `train` and of `serve`) has, for people, the later line; a table's own line is in `table`.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import re
from collections.abc import Iterator
from typing import Any

from headway.core.catalog import lines

TABLES = "columns.csv"
PERCENTILES = (50, 90, 95, 99)  # that an answer always has
_PERCENTILE = re.compile(r"p(\d+(?:_\d+)?)(_.+)")
NAMES = ("name", "fact")  # of a listed record: they identify a row, and its record says what they are


@dataclasses.dataclass(frozen=True, slots=True)
class Column:
    """One key of an answer."""

    unit: str
    doc: str


@functools.cache
def table(name: str) -> dict[str, Column]:
    """The columns of one table, in order.

    >>> list(table("capacity"))[:2], table("serve")["tpot_s"].unit
    (['weights_bytes', 'sequence_bytes'], 's')
    """
    return dict(_columns(name))


@functools.cache
def declared() -> dict[str, Column]:
    """The columns of all tables."""
    return dict(_columns())


def _columns(name: str = "") -> Iterator[tuple[str, Column]]:
    """Keys and columns of one table, or of all, line by line."""
    for line in lines(TABLES):
        if not name or line["table"] == name:
            for mark in map(percentile_mark, PERCENTILES) if "*" in line["key"] else ("",):
                yield line["key"].replace("*", mark), Column(line["unit"], line["doc"].replace("*", mark))


def percentile_mark(percent: float) -> str:
    """A percentile as keys have it.

    >>> percentile_mark(99), percentile_mark(99.9)
    ('99', '99_9')
    """
    return f"{percent:g}".replace(".", "_")


def percentile(key: str) -> float | None:
    """The percentile that a key is of, None of any other key.

    >>> percentile("p99_9_ttft_s"), percentile("mean_ttft_s")
    (99.9, None)
    """
    match = _PERCENTILE.fullmatch(key)
    return float(match[1].replace("_", ".")) if match and f"p*{match[2]}" in _stars() else None


@functools.cache
def _stars() -> dict[str, Column]:
    """Columns of percentiles, by their key with a star."""
    return {line["key"]: Column(line["unit"], line["doc"]) for line in lines(TABLES) if "*" in line["key"]}


def _of_percentile(key: str) -> Column | None:
    """The column of a percentile that was chosen."""
    percent, match = percentile(key), _PERCENTILE.fullmatch(key)
    if percent is None or match is None:
        return None
    star = _stars()[f"p*{match[2]}"]
    return Column(star.unit, star.doc.replace("*", f"{percent:g}"))


@functools.cache
def identity() -> frozenset[str]:
    """Keys that identify a row: they lead every block of a wide table."""
    return frozenset((*NAMES, *(line["key"] for line in lines(TABLES) if line["identity"])))


@functools.cache
def _fields() -> dict[str, Column]:
    """Facts of chips and systems and named assumptions, by the names that flags and --set take."""
    from headway import PREFIXED_RECORDS, RECORDS
    from headway.core import schema

    fields: dict[str, Any] = {}
    for prefix, place in PREFIXED_RECORDS.items():
        fields |= {f"{prefix}.{key}": field for record in _records(place) for key, (field, _) in schema.fields(record).items()}
    for place in RECORDS:
        fields |= {key: field for record in _records(place) for key, (field, _) in schema.fields(record).items()}
    return {key: Column(field.unit, field.help) for key, field in fields.items()}


def _records(place: str) -> tuple[type, ...]:
    """The record, or the tuple of records, at `module:name`."""
    module, name = place.split(":")
    records = getattr(importlib.import_module(f"headway.{module}"), name)
    return records if isinstance(records, tuple) else (records,)


def column(key: str) -> Column:
    """The unit and the sentence of a key; both empty for a key that is in no contract."""
    return declared().get(key) or _of_percentile(key) or _fields().get(key) or Column("", "")


def unit(key: str) -> str:
    """The unit of a key: "" for counts, ratios and texts."""
    return column(key).unit


def doc(key: str) -> str:
    """The sentence of a key."""
    return column(key).doc

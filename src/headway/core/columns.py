"""All keys of all answers: unit and sentence of each. A key that no package declares is not in the contract.

Each package declares its own columns in its `columns.py`. The root of the package lists these files as strings, so that they are
imported at the first look-up and nothing here imports what lies above.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
from typing import Any


@dataclasses.dataclass(frozen=True, slots=True)
class Column:
    """One key of an answer."""

    unit: str
    doc: str


def interval_columns(stem: str, unit: str, doc: str, ends: tuple[str, ...], suffix: str = "") -> dict[str, Column]:
    """Columns of an expected value, its floor and the ends of its interval."""
    words = {
        "floor": "roofline floor of weights and cache as stored: nothing real is faster",
        "lo": "lower end of the 90 % interval",
        "hi": "upper end of the 90 % interval",
    }
    expected_column = {stem + suffix: Column(unit, doc + "; expected value")}
    return expected_column | {f"{stem}_{end}{suffix}": Column(unit, f"{doc}; {words[end]}") for end in ends}


@functools.cache
def declared() -> dict[str, Column]:
    """Columns declared by packages; of a key that two packages declare, the later declaration in the order of the list."""
    from headway import COLUMN_MODULES

    columns: dict[str, Column] = {}
    for module in COLUMN_MODULES:
        columns |= importlib.import_module(f"headway.{module}").COLUMNS
    return columns


@functools.cache
def identity() -> frozenset[str]:
    """Keys that identify a row: they lead every block of a wide table."""
    from headway import COLUMN_MODULES

    modules = [importlib.import_module(f"headway.{module}") for module in COLUMN_MODULES]
    return frozenset(key for module in modules for key in getattr(module, "IDENTITY", ()))


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
    return declared().get(key) or _fields().get(key) or Column("", "")


def unit(key: str) -> str:
    """The unit of a key: "" for counts, ratios and texts."""
    return column(key).unit


def doc(key: str) -> str:
    """The sentence of a key."""
    return column(key).doc

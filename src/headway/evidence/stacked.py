"""Many compiled layouts as one whose numbers are arrays, so that a table of rows is one call of the step law.

Layouts differ in how many kinds of experts, spans and collectives they have; the shorter lists are filled up with terms of no work.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from headway.laws.coefficients import ExpertTerm, SpanTerm, StepCoefficients
from headway.laws.lines import CollectiveLine, CollectiveTerm

NO_EXPERTS = ExpertTerm(compute=0.0, weights=0.0, activations=0.0, experts=1, active=0)
NO_SPAN = SpanTerm(cap=math.inf, root=math.inf, read=0.0, decode_compute=0.0, prefill_compute=0.0)
NO_COLLECTIVE = CollectiveTerm(count=0, lines=(CollectiveLine(alpha=0.0, slope=0.0),), floor=0.0)
SHARED_FIELDS = ("overlap", "communication")  # step models: one for all


def stack(compiled: Sequence[StepCoefficients]) -> StepCoefficients:
    """The coefficients of many layouts, each number an array along them."""
    experts, spans, collectives = (max(len(getattr(step, name)) for step in compiled) for name in ("experts", "spans", "collectives"))
    lines = max((len(term.lines) for c in compiled for term in c.collectives), default=1)
    filled = [
        replace(
            c,
            experts=fill(c.experts, NO_EXPERTS, experts),
            spans=fill(c.spans, NO_SPAN, spans),
            collectives=tuple(
                replace(term, lines=fill(term.lines, term.lines[-1], lines)) for term in fill(c.collectives, NO_COLLECTIVE, collectives)
            ),
        )
        for c in compiled
    ]
    return replace(columns(filled), **{name: getattr(compiled[0], name) for name in SHARED_FIELDS})


def fill(items: tuple[Any, ...], nothing: Any, length: int) -> tuple[Any, ...]:
    """The items, and as many of no effect as are missing."""
    return items + (nothing,) * (length - len(items))


def columns(records: Sequence[Any]) -> Any:
    """Records of one shape as one record of arrays."""
    first = records[0]
    if is_dataclass(first):
        return type(first)(**{field.name: columns([getattr(record, field.name) for record in records]) for field in fields(first)})  # type: ignore[misc]
    if isinstance(first, tuple):
        return tuple(columns([record[index] for record in records]) for index in range(len(first)))
    return np.array([float(record) for record in records])


def rows(record: Any, index: Any) -> Any:
    """Some rows of a record of arrays."""
    if is_dataclass(record):
        values = {field.name: getattr(record, field.name) for field in fields(record)}
        return type(record)(**{name: value if name in SHARED_FIELDS else rows(value, index) for name, value in values.items()})  # type: ignore[misc]
    if isinstance(record, tuple):
        return tuple(rows(item, index) for item in record)
    return record[index] if isinstance(record, np.ndarray) else record

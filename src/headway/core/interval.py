"""Intervals as typed: `2.2..4.5` is one interval, `1,2,4` three values, `0..0.8+0.2` five."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from headway.core import schema
from headway.core.errors import BadValue

STEPPED = re.compile(r"[*]|(?<=[^eE.])[+]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """Interval from low to high; a point where they are equal."""

    low: Any
    high: Any
    middle: Any = None  # where it is known better than as between the ends

    @property
    def wide(self) -> bool:
        """Whether the interval is wider than a point."""
        return self.high > self.low


def point(value: Any) -> Interval:
    """Interval of a known value: a point."""
    return Interval(low=value, high=value)


def read(text: str, q: schema.Field, field: str) -> tuple[Interval, ...]:
    """Intervals and values from text: one, or a comma-separated list.

    >>> from headway.core.schema import Field
    >>> [(one.low, one.high) for one in read("0.3..0.7", Field(), "--utilisation")]
    [(0.3, 0.7)]
    >>> [(one.low, one.high) for one in read("0.1,0.3..0.7", Field(), "--utilisation")]
    [(0.1, 0.1), (0.3, 0.7)]
    >>> [one.low for one in read("0.2..0.6+0.2", Field(), "--utilisation")]
    [0.2, 0.4, 0.6]
    """
    return tuple(entry for part in text.split(",") for entry in _part(part, q, field))


def _part(text: str, q: schema.Field, field: str) -> tuple[Interval, ...]:
    start, dots, end = text.partition("..")
    if not start.strip() or (dots and not end.strip()):
        raise BadValue(field, text, "a number, an interval such as 2..4, or several with a comma between")
    if not dots:
        return (point(schema.scalar(text, q, field)),)
    if STEPPED.search(end):
        values, _ = schema.axis(text, q, field)
        return tuple(map(point, values if isinstance(values, tuple) else (values,)))
    low, high = schema.scalar(start, q, field), schema.scalar(end, q, field)
    if high < low:
        raise BadValue(field, text, "an interval whose end is not below its start")
    return (Interval(low=low, high=high),)

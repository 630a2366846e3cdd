"""The size of a question, known before it runs: how many points its lists and ranges span."""

from __future__ import annotations

import math
from typing import Any

from headway.core import schema
from headway.core.errors import BadValue, HeadwayError
from headway.web.question import PageQuestion, asked_by, flags_of

MOST_LIGHT, MOST_HEAVY = 4_000, 20_000  # points of a grid
UNKNOWN_RANGE = 100  # points of a range whose unit only its verb knows; the verb itself bounds it
MOST_REQUESTS = 50_000  # of a simulation
CONDITIONS = (
    "with",
    "set",
    "where",
    "sort",
    "find",
    "so-that",
    "assume",
    "tokens",
    "prefix-cache",
    "current",
    "mesh",
    "over",
    "rings",
    "turns",
)


def check(question: PageQuestion) -> None:
    """Raise BadValue for a question with more points than a page may ask."""
    flags = flags_of(asked_by(question.verb, question.words))
    points = 1
    for name, value in question.flags:
        for text in value if isinstance(value, tuple) else (value,):
            if isinstance(text, str):
                points *= _points(name, text, flags[name].field if flags[name].field.is_number else None)
    most = MOST_HEAVY if question.is_heavy else MOST_LIGHT
    if points > most:
        raise BadValue("question", f"{points:,} points", f"at most {most:,}; the command line has no such bound")
    for name, value in question.flags:
        if name in ("requests", "users", "cards") and isinstance(value, str):
            _bounded(name, value)


def _points(name: str, text: str, field: Any) -> int:
    """Members of a list or a range."""
    if name in CONDITIONS and ".." not in text:
        return 1
    if field is not None and ".." in text:
        try:
            values, _ = schema.axis(text, field, name)
        except HeadwayError:
            return 1  # the verb says what is wrong with it
        return len(values) if isinstance(values, tuple) else 1
    return sum(UNKNOWN_RANGE if ".." in part else 1 for part in text.split(","))


def _bounded(name: str, text: str) -> None:
    try:
        count = max(float(value) for value in _values(text, name))
    except HeadwayError:
        return
    if math.isfinite(count) and count > MOST_REQUESTS:
        raise BadValue(name, text, f"at most {MOST_REQUESTS:,} on a page")


def _values(text: str, name: str) -> tuple[Any, ...]:
    values, _ = schema.axis(text, schema.Field(open_low=False), name)
    return values if isinstance(values, tuple) else (values,)

"""Inputs that vary: combinations of the values a user gave, and the columns of a table with more than one value."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from headway.core import schema
from headway.core.errors import BadValue
from headway.report import serving
from headway.serving.columns import SERVE

MOST_TABLES = 2000  # most combinations of models, machines, formats and assumptions, each a grid
MOST_VALUES = 10_000  # most values of one flag of a search
COUNTS = ("batch", "context", "prompt", "output")


OF_PLANS = ("usd_per_1k_requests",)  # results beside those of serve


def varied(table: Any) -> list[str]:
    """Inputs with more than one value in a table."""
    extra = [key for key in table.keys() if key not in (*SERVE, *OF_PLANS)]  # noqa: SIM118 -- a table is not a mapping
    keys = [key for key in (*serving.WHAT, *extra) if table.varies(key)]
    follows = {"context"} if {"prompt", "output"} & set(keys) else set()  # the context follows from prompt and output,
    follows |= {"batch"} if table.take([0]).values("rate")[0] is not None else set()  # and the batch from the rate
    return [key for key in keys if key not in follows]


def combinations(args: Any, record: type, skip: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Combinations of the user's values for the fields of a record but those to `skip`."""
    values = schema.read(args, record, skip=tuple(skip), most=MOST_TABLES)
    lists = [schema.several(value) for value in values.values()]
    count = 1
    for members in lists:
        count *= len(members)
        if count > MOST_TABLES:
            raise BadValue(record.__name__.lower(), f"{count} combinations", f"at most {MOST_TABLES}")
    return [dict(zip(values, members, strict=True)) for members in itertools.product(*lists)]

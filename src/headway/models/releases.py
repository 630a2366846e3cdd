"""When the catalogue's models were released, and on how many tokens they were trained, where that is public."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

from headway.core.catalog import lines
from headway.core.quantity import known


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A model's release: month as YYYY-MM; training tokens are None where their number is not public."""

    name: str
    month: str
    year: Any
    training_tokens: Any
    source: str
    status: str  # of the training tokens: checked, or unverified where written from memory of the source


@functools.cache
def releases() -> dict[str, Release]:
    """Releases by catalogue name; a model whose date is not known has none.

    >>> release = releases()["llama-3.1-405b"]
    >>> release.month, float(release.training_tokens)
    ('2024-07', 15600000000000.0)
    """
    return {row["name"]: _release(row) for row in lines("model_releases.csv")}


def _release(row: dict[str, str]) -> Release:
    name, month, source = row["name"], row["released"], row["source"]
    about = source if row["status"] == "checked" else f"{source} (unverified)"
    tokens = (
        known(float(row["training_tokens"]), f"{name}.training_tokens", "token", "datasheet", about, month)
        if row["training_tokens"]
        else None
    )
    year = known(int(month[:4]), f"{name}.year", "", "datasheet", source, month)
    return Release(name=name, month=month, year=year, training_tokens=tokens, source=source, status=row["status"])

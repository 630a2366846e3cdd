"""Every fact that ships has a value, a unit, a source, a date and a kind."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from typing import Any

from headway.core.quantity import KINDS
from support.facts import DATE
from support.paths import SOURCE


def lines_of(value: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every table under `value` that states a value."""
    if isinstance(value, dict) and "value" in value:
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from lines_of(item, f"{path}.{key}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from lines_of(item, f"{path}[{index}]")


def test_facts__have_value_unit_source_date_and_kind() -> None:
    count = 0
    for path in sorted((SOURCE / "data").rglob("*.toml")):
        for place, line in lines_of(tomllib.loads(path.read_text(encoding="utf-8"))):
            count += 1
            where = f"{path.name}{place}"
            assert isinstance(line["value"], int | float) and not isinstance(line["value"], bool), where
            assert isinstance(line.get("unit"), str), where
            assert isinstance(line.get("source"), str) and line["source"].strip(), where
            assert DATE.fullmatch(str(line.get("date"))), f"{where}: {line.get('date')}"
            assert line.get("kind", "claim" if path.parent.name == "claims" else None) in KINDS, where
    assert count > 1000

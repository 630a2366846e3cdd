"""A refactor reproduces these estimates exactly; a change of a law rewrites them on purpose (replay/regenerate.py says how)."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from contract.replay.regenerate import estimates

STORED: dict[str, dict[str, Any]] = json.loads((Path(__file__).parent / "estimates.json").read_text(encoding="utf-8"))


@cache
def now() -> dict[str, dict[str, Any]]:
    return estimates()


def test_replay__points_as_stored() -> None:
    assert len(STORED) >= 40
    assert now().keys() == STORED.keys()


@pytest.mark.parametrize("name", STORED)
def test_replay__estimate_as_stored(name: str) -> None:
    row, old = now()[name], STORED[name]
    assert old.keys() <= row.keys()  # a new column changes no estimate
    changed = {key: (old[key], row[key]) for key in old if not same(row[key], old[key])}
    assert changed == {}


def same(new: Any, old: Any) -> bool:
    if isinstance(old, float) and isinstance(new, int | float):
        return new == pytest.approx(old, rel=1e-12, abs=0)
    return new == old

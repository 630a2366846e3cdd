"""Names and places may change, answers may not: every golden command answers what is stored (golden.py says how it is written)."""

from __future__ import annotations

from typing import Any

import pytest

from contract.golden.golden import FITTED, fitted, stored, stored_fitted
from contract.golden.golden_answers import answer, commands, verb_of
from contract.golden.golden_compare import differences, far, listed
from headway import QUESTIONS as VERBS

pytestmark = pytest.mark.slow

COMMANDS = commands()
ANSWERS: dict[str, dict[str, Any]] = stored()
NUMBERS: dict[str, list[Any]] = stored_fitted()


def test_golden__every_verb_and_command_is_stored() -> None:
    assert len(COMMANDS) == len(set(COMMANDS)) >= 150
    assert {verb_of(line) for line in COMMANDS} >= VERBS.keys()
    assert sorted(COMMANDS) == sorted(ANSWERS)
    assert sorted(FITTED) == sorted(NUMBERS)


@pytest.mark.parametrize("line", COMMANDS)
def test_golden__command_answers_as_stored(line: str) -> None:
    assert differences(ANSWERS[line], answer(line)) == []


@pytest.mark.parametrize("name", FITTED)
def test_golden__fitted_numbers_as_stored(name: str) -> None:
    assert NUMBERS[name]
    assert list(listed("numbers", NUMBERS[name], fitted(name, NUMBERS[name]))) == []


def test_differences__number_unit_text_and_row() -> None:
    assert far(1.0, 1.0 + 1e-13) == 0.0 and far(1.0, 1.0 + 1e-11) > 0 and far(0, 0.0) == 0.0
    assert far(True, 1) == far(None, 0) == far("a", "b") == far([1], [1, 2]) == float("inf")
    old = {"status": 0, "stderr": "", "text": ["a"], "columns": {"x": "s", "y": ""}, "rows": [[1.0, "p"], [2.0, "q"]], "notes": []}
    new = old | {"columns": {"x": "s", "y": "s"}, "rows": [[1.0, "p"], [3.0, "q"]], "text": ["a", "b"]}
    assert differences(old, old) == []
    assert [line.partition(":")[0] for line in differences(old, new)] == ["unit of y", "x", "text", "text 1 is the first"]

"""`headway law`: every law by its name with its own example's numbers, what it takes, questions backwards, and wrong input."""

from __future__ import annotations

import math
import typing
from typing import Any

import pytest

import headway as hw
from headway.core.formula import REGISTRY, Law
from headway.core.law_index import LawPlace, place, places
from headway.core.law_values import typed
from headway.report.law import example_calls
from support.command import Cli
from support.package import MODULES

LAWS = {law.name: law for law in REGISTRY.values() if law.run.__module__.startswith("headway.laws")}


def words_of(law: Law, inputs: dict[str, Any]) -> list[str]:
    """A call of a law as it is typed."""
    hints = typing.get_type_hints(law.run, include_extras=True)
    return ["law", law.name, *(f"{name}={typed(value, hints[name])}" for name, value in inputs.items())]


def mismatch(cli: Cli, law: Law, inputs: dict[str, Any], result: Any) -> str:
    """What is wrong with the answer to the example of a law; empty where nothing is."""
    answer = cli(*words_of(law, inputs), "-o", "json")
    if answer.status:
        return f"{law.name}: {answer.err}"
    got, expected = answer.rows[0]["result"], float(result)
    same = got is None if math.isinf(expected) else math.isclose(got, expected, rel_tol=1e-12)
    return "" if same else f"{law.name}: {got} instead of {expected}"


def test_law__every_law_gives_the_numbers_of_its_example(cli: Cli) -> None:
    assert len(MODULES) > 250
    silent = [name for name, law in LAWS.items() if not example_calls(law)]
    assert silent == []
    calls = [(law, inputs, result) for law in LAWS.values() for inputs, result in example_calls(law)]
    assert [text for call in calls if (text := mismatch(cli, *call))] == []


def test_law_index__knows_every_law_of_the_registry() -> None:
    assert {law.full_name for law in places()} == {f"{law.module}.{law.name}" for law in LAWS.values()}


def test_law_index__shared_name_lists_both() -> None:
    laws = (LawPlace("span_s", "step.parts"), LawPlace("span_s", "training.step"))
    with pytest.raises(hw.HeadwayError, match=r"several laws are named 'span-s': write step\.parts\.span_s or training\.step\.span_s"):
        place("span-s", laws)
    assert place("training.step.span_s", laws) == laws[1]

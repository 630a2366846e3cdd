"""Single runs that others published, beside what is said of them: the sign of a difference, and no factor beyond 2.

Runs whose law they judge were named before the law was written; none was fitted. What is off by more says why in its column `missed`,
what stands in the wrong order in `misordered`: these must fail, until a law mends them.
A fact with `against` (a field of another run, and its value there) is a ratio to that run.
"""

from __future__ import annotations

import csv
import functools
import itertools
import shlex
from pathlib import Path
from typing import Any

import pytest

from support.command import command

FACTS = Path(__file__).with_name("speed_facts.csv")
COLUMNS = {
    "TPOT": ("tpot_s", 1e-3), "TTFT": ("ttft_s", 1e-3), "tok/s": ("tok_per_s", 1.0), "decode tok/s": ("tok_per_s_user", 1.0),
    "TPOT saved": ("tpot_s", 0.01), "prefill rate": ("capacity_req_per_s", 1.0),
}  # fmt: skip
CLEAR = 1.1  # ratio of two runs from which their order counts
FACTOR = 2.0
Fact = dict[str, str]


@functools.cache
def facts() -> tuple[Fact, ...]:
    with FACTS.open(encoding="utf-8") as file:
        return tuple(csv.DictReader(file))


def measured(fact: Fact) -> float:
    """The middle of what was measured."""
    ends = [float(end) for end in fact["value"].split("..")]
    return sum(ends) / len(ends) * COLUMNS[fact["measure"]][1]


@functools.cache
def answer(words: tuple[str, ...]) -> dict[str, Any]:
    return command(*words, "-o", "json").rows[0]


def served(fact: Fact) -> float:
    degrees = itertools.chain.from_iterable((f"--{name}", value) for name, value in (part.split("=") for part in fact["layout"].split()))
    formats = () if fact["weights"] == "stored" else ("--weights", fact["weights"])
    load = ("--batch", fact["users"], "--prompt", fact["prompt"], "--output", fact["output"])
    about = (*degrees, *formats, "--engine", fact["engine"], *load, *shlex.split(fact["flags"]))
    return float(answer(("serve", fact["model"], "--on", fact["on"], *about))[COLUMNS[fact["measure"]][0]])


def expected(fact: Fact) -> float:
    if not fact["against"]:
        return served(fact)
    field, _, value = fact["against"].partition(":")
    ratio = served(fact) / served(fact | {field: value})
    return 1 - ratio if fact["measure"] == "TPOT saved" else ratio


def name(fact: Fact) -> str:
    return " ".join(fact[key] for key in ("subject", "model", "layout", "measure", "users", "prompt", "flags") if fact[key])


def missing(fact: Fact) -> tuple[pytest.MarkDecorator, ...]:
    return (pytest.mark.xfail(strict=True, reason=fact["missed"]),) if fact["missed"] else ()


def misordered(one: Fact, other: Fact) -> tuple[pytest.MarkDecorator, ...]:
    cause = one["misordered"] or other["misordered"]
    return (pytest.mark.xfail(strict=True, reason=cause),) if cause else ()


PAIRS = [
    pytest.param((one, other), marks=misordered(one, other), id=f"{name(one)} | {name(other)}")
    for one, other in itertools.combinations(facts(), 2)
    if one["subject"] == other["subject"] and one["measure"] == other["measure"] and not one["against"]
    and not 1 / CLEAR < measured(one) / measured(other) < CLEAR
]  # fmt: skip
RATIOS = [fact for fact in facts() if fact["against"]]


@pytest.mark.parametrize("fact", [pytest.param(fact, marks=missing(fact), id=name(fact)) for fact in facts()])
def test_run__within_a_factor_of_two(fact: Fact) -> None:
    assert 1 / FACTOR <= expected(fact) / measured(fact) <= FACTOR


@pytest.mark.parametrize("pair", PAIRS)
def test_runs__order_as_measured(pair: tuple[Fact, Fact]) -> None:
    one, other = pair
    assert (expected(one) > expected(other)) == (measured(one) > measured(other))


@pytest.mark.parametrize("fact", RATIOS, ids=name)
def test_run__differs_from_another_in_the_sign_that_was_measured(fact: Fact) -> None:
    even = 0.0 if fact["measure"] == "TPOT saved" else 1.0
    assert (expected(fact) > even) == (measured(fact) > even)

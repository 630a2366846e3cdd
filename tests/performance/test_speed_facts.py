"""Single runs that others published, beside what is said of them: the sign of a difference, and no factor beyond 2.

Runs whose law they judge were named before the law was written; none was fitted. What misses says why in its column `missed`.
"""

from __future__ import annotations

import csv
import functools
import itertools
import shlex
from pathlib import Path
from typing import Any

import pytest

FACTS = Path(__file__).with_name("speed_facts.csv")
COLUMNS = {"TPOT": ("tpot_s", 1e-3), "TTFT": ("ttft_s", 1e-3), "tok/s": ("tok_per_s", 1.0),
           "decode tok/s": ("tok_per_s_user", 1.0)}  # fmt: skip
CLEAR = 1.1  # ratio of two runs from which their order counts
FACTOR = 2.0


@functools.cache
def facts() -> tuple[dict[str, str], ...]:
    with FACTS.open(encoding="utf-8") as file:
        return tuple(csv.DictReader(file))


def measured(fact: dict[str, str]) -> float:
    """The middle of what was measured."""
    ends = [float(end) for end in fact["value"].split("..")]
    return sum(ends) / len(ends) * COLUMNS[fact["measure"]][1]


@functools.cache
def said(command: tuple[str, ...], key: str) -> float:
    from support.command import command as run

    return float(run(*command, "-o", "json").json["rows"][0][key])


def expected(fact: dict[str, str]) -> float:
    degrees = itertools.chain.from_iterable((f"--{name}", value) for name, value in (part.split("=") for part in fact["layout"].split()))
    formats = () if fact["weights"] == "stored" else ("--weights", fact["weights"])
    load = ("--batch", fact["users"], "--prompt", fact["prompt"], "--output", fact["output"])
    about = (*degrees, *formats, "--engine", fact["engine"], *load, *shlex.split(fact["flags"]))
    return said(("serve", fact["model"], "--on", fact["on"], *about), COLUMNS[fact["measure"]][0])


def name(fact: dict[str, Any]) -> str:
    return " ".join((fact["subject"], fact["layout"], fact["measure"], fact["users"], fact["prompt"], fact["flags"]))


PAIRS = [
    (one, other) for one, other in itertools.combinations(facts(), 2)
    if one["subject"] == other["subject"] and one["measure"] == other["measure"]
    and not 1 / CLEAR < measured(one) / measured(other) < CLEAR
]  # fmt: skip


@pytest.mark.parametrize("fact", [fact for fact in facts() if not fact["missed"]], ids=name)
def test_run__within_a_factor_of_two(fact: dict[str, str]) -> None:
    assert 1 / FACTOR <= expected(fact) / measured(fact) <= FACTOR


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{name(pair[0])} | {name(pair[1])}")
def test_runs__order_as_measured(pair: tuple[dict[str, str], dict[str, str]]) -> None:
    one, other = pair
    assert (expected(one) > expected(other)) == (measured(one) > measured(other))

"""`headway law`: every law by its name with its own example's numbers, what it takes, questions backwards, and wrong input."""

from __future__ import annotations

import math
import typing
from typing import Any

import pytest

import headway as hw
from headway.core.formula import REGISTRY
from headway.core.law_index import LawPlace, place, places
from headway.core.law_values import typed
from headway.core.trace import Law
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


def test_law__alone_shows_equation_units_source_and_example(cli: Cli) -> None:
    (row,) = cli.rows("law hardware_ratio")
    assert row["equation"] == "weight_byte * peak_flops / (MULTIPLY_ADD * mem_bw)"
    assert [(part["argument"], part["takes"]) for part in row["arguments"]] == [
        ("weight_byte", "byte"), ("peak_flops", "flop/s"), ("mem_bw", "byte/s"),
    ]  # fmt: skip
    assert row["unit"] == "token" and "Scaling Book" in row["source"]
    assert cli.rows(*row["example"].split()[1:])[0]["result"] == pytest.approx(295.34, rel=1e-4)


def test_law__lists_ranges_and_facts_are_axes(cli: Cli) -> None:
    rows = cli.rows("law hardware_ratio weight_byte=1,2 peak_flops=h100.peak_bf16 mem_bw=1TB/s..4TB/s*2")
    assert [(row["weight_byte"], row["mem_bw"]) for row in rows] == [(byte, bw * 1e12) for byte in (1, 2) for bw in (1, 2, 4)]
    assert [row["result"] for row in rows] == [
        pytest.approx(row["weight_byte"] * 989.4e12 / (2 * row["mem_bw"]), rel=1e-12) for row in rows
    ]
    (row,) = cli.rows("law batch_kv_s batch=2 context=1k kv_bytes_per_token=deepseek-v3.kv_bytes_per_token mem_bw=8*h100.hbm_bw")
    assert row["result"] == pytest.approx(2 * 1000 * 70272 / (8 * 3.35e12), rel=1e-12)


def test_law__explanation_has_a_source_for_each_leaf(cli: Cli) -> None:
    document = cli.json("law hardware_ratio weight_byte=2 peak_flops=h100.peak_bf16 mem_bw=8*h100.hbm_bw --explain result")
    inputs = document["explain"]["result"]["inputs"]
    assert (inputs["weight_byte"]["kind"], inputs["peak_flops"]["kind"]) == ("input", "datasheet")
    assert inputs["mem_bw"]["equation"] == "factor * hbm_bw" and inputs["mem_bw"]["unit"] == "byte/s"
    assert inputs["mem_bw"]["inputs"]["hbm_bw"]["name"] == "h100_sxm.hbm_bw"


def test_law__solved_argument_gives_the_result(cli: Cli) -> None:
    (row,) = cli.rows("law hardware_ratio weight_byte=2 peak_flops=989.4TFLOPS --for mem_bw --so-that 250")
    assert row["solution"] == pytest.approx(989.4e12 / 250, rel=1e-9)
    assert row["result"] == pytest.approx(250, rel=1e-9)
    answer = cli("law smooth_max a=1 b=2 norm=3 --for nothing --so-that 1")
    assert answer.status == 2


def test_law__search_finds_laws_by_words(cli: Cli) -> None:
    assert "drain_s" in [row["name"] for row in cli.rows("law", "--find", "read a whole memory")]
    assert cli("law", "--find", "zebra crossing").status == 2


def test_law__python_call_takes_numbers_texts_and_arrays() -> None:
    assert hw.law("hardware_ratio", weight_byte=2, peak_flops="h100.peak_bf16", mem_bw=3.35e12) == pytest.approx(295.34, rel=1e-4)
    ratios = hw.law("hardware_ratio", weight_byte=2, peak_flops=1e15, mem_bw=[1e12, 2e12])
    assert list(ratios) == [1000, 500]


@pytest.mark.parametrize(
    ("command", "part"),
    [
        ("law mfu compute_s=-1 step_s=1", "0 or more"),
        ("law", "a law, such as hardware_ratio"),
        ("law hardware_ratoi", "did you mean hardware_ratio"),
        ("law hardware_ratio weight_byte=2", "hardware_ratio needs peak_flops=... mem_bw=..."),
        ("law hardware_ratio weight_byte=2 peak_flops=1TB/s mem_bw=1", "a quantity in flop/s, such as 989TFLOPS"),
        ("law hardware_ratio weight_byte=2 peak_flops=1 mem_bw=1 speed=3", "no argument of hardware_ratio named 'speed'"),
        ("law hardware_ratio weight_byte=2 weight_byte=3", "weight_byte once"),
        ("law hardware_ratio weight_byte=2 peak_flops=h100.hbm mem_bw=1", "h100.hbm is in byte"),
        ("law hardware_ratio weight_byte=2 peak_flops=h100.speed mem_bw=1", "no fact of h100 named 'speed'"),
        ("law hardware_ratio weight_byte=2 peak_flops=1 mem_bw=0", "values at which the law is defined"),
        ("law hardware_ratio weight_byte=nan peak_flops=1 mem_bw=1", "a finite number"),
        ("law batch_kv_s batch=1 context=1 kv_bytes_per_token=70kB mem_bw=1", "such as 70kB/token"),
        ("law gross_margin cost=3GB revenue=1ms", "a quantity in byte, as cost is"),
        ("law least values=3", "values in parentheses"),
        ("law collective_term_s term=3 tokens=1", "LLAMA_70B_TP8"),
        ("law hardware_ratio weight_byte=2 peak_flops=1 --for mem_bw", "both --for KEY and --so-that VALUE"),
        ("law hardware_ratio weight_byte=2 peak_flops=1e15 --for mem_bw --so-that 20ms", "a quantity in token"),
        ("law drain_s 80GB", "key=value"),
    ],
)
def test_law__wrong_input_is_one_line(cli: Cli, command: str, part: str) -> None:
    answer = cli(command)
    assert (answer.status, answer.out, answer.err.count("\n")) == (2, "", 1), answer
    assert part in answer.err

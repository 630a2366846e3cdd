"""The winner of a list equals the cheapest of its members asked alone, in both orders; and the best row is not beaten by its own table."""

from __future__ import annotations

import shlex

import pytest

from support.command import Cli
from support.lists import ListedQuestion, disagreement

LIMITS = "--prompt 1k --output 200 --tpot 30ms"
LISTS = [  # flag before the list, its members, the other words
    ("--on", "h100-sxm l40s", f"llama-3.1-8b {LIMITS} --rate 5 --ttft-p95 1.5s"), ("--on", "8xh100-sxm 8xl40s", f"llama-3.1-8b {LIMITS}"),
    ("", "llama-3.1-8b qwen3-30b-a3b", f"--on 8xh100-sxm {LIMITS} --launch vllm"),
    ("--weights", "bf16 fp8", f"llama-3.1-8b --on 8xb200-sxm {LIMITS} --ttft 2s"),
    ("--tp", "1 2 8", f"llama-3.1-8b --on 8xh100-sxm {LIMITS}"), ("--batch", "8 32 128", f"llama-3.1-8b --on 8xh100-sxm {LIMITS}"),
]  # fmt: skip


@pytest.mark.parametrize(("flag", "members", "words"), LISTS)
def test_plan__winner_of_a_list_is_the_cheapest_alone(flag: str, members: str, words: str) -> None:
    """`make winners` draws thirty, of every size."""
    assert not disagreement(ListedQuestion(flag=flag, members=tuple(members.split()), words=tuple(words.split())))


@pytest.mark.slow
def test_plan__dear_machine_in_a_list_trims_the_cheap_one_too() -> None:
    """The count of every machine is trimmed, and not that of the first winner alone."""
    words = "deepseek-v3.1 --prompt 4k --output 600 --rate 12 --ttft-p95 1.5s --tpot 40ms --disaggregate never"
    assert not disagreement(ListedQuestion(flag="--on", members=("mi300x", "b200-sxm"), words=tuple(shlex.split(words))))


LIMITED = {"ttft_s": "--ttft", "tpot_s": "--tpot"}
TABLES = [
    "qwen3-32b --on 8xh100-sxm --prompt 4k --output 500 --tpot 0.03 --disaggregate", "qwen3-32b --on 8xh100-sxm --prompt 100 --output 4000",
    "llama-3.1-8b --on 8xh100-sxm,8xl40s --prompt 1k --output 200 --ttft 0.5 --tpot 0.02",
    "llama-3.1-8b --on h100-sxm --rate 5/s --prompt 2k --output 300 --tpot 0.03 --no-check",
    "qwen3-30b-a3b --on 8xh200-sxm --prompt 2k --output 300 --tpot 0.02 --weights bf16,fp8",
]  # fmt: skip


@pytest.mark.parametrize("command", TABLES)
def test_plan__no_row_that_keeps_all_limits_beats_the_best(cli: Cli, command: str) -> None:
    """None is cheaper by the cost that the sentence names; of the equally cheap none is faster; a row that breaks a limit says so."""
    words = shlex.split(f"plan {command}")
    answer = cli.json(*words)
    best, *rows = [row for row in answer["rows"] if row["kind"] in ("best", "frontier")]
    limits = {key: float(words[words.index(flag) + 1]) for key, flag in LIMITED.items() if flag in words}
    for row in rows:
        if not row["fits"] or row["usd_per_1k_requests"] is None:
            continue
        if any(row[key] > limit * (1 + 1e-9) for key, limit in limits.items()):
            assert "limit" in row["why"]
        else:
            assert row["usd_per_1k_requests"] >= best["usd_per_1k_requests"] * (1 - 1e-9)
            is_equal = row["usd_per_1k_requests"] <= best["usd_per_1k_requests"] * (1 + 1e-9)
            assert not (is_equal and row["tpot_s"] < best["tpot_s"] * (1 - 1e-6))

"""Every Help that names flags is the result of its own command, and better; the winner of a sentence is the best row that is printed."""

from __future__ import annotations

import random
import re
import shlex

import pytest

from headway.core.listing import format_value
from support.command import Answer, Cli
from support.helps import checked_serve, checked_winner, with_flags

SEED = 20261125
SUBJECTS = [
    "gpt-oss-120b --on dgx-spark-gb10", "gpt-oss-120b --on 2xh100-sxm --tp 2", "gpt-oss-20b --on l40s",
    "deepseek-v3 --on 16xh100-sxm --tp 8 --pp 2",
    "deepseek-v3 --on 8xh200-sxm --tp 8 --ep 8", "deepseek-v3 --on 8xb200-sxm --dp 8 --ep 8", "llama-3.1-70b --on 4xh100-sxm --tp 2 --pp 2",
    "llama-3.1-70b --on 8xh100-sxm --tp 4 --replicas 2", "llama-3.1-8b --on l40s", "llama-3.1-8b --on 8xh100-sxm --replicas 8",
    "qwen3-30b-a3b --on h100-sxm", "qwen3-235b-a22b --on 8xmi300x --tp 8 --ep 8", "mixtral-8x7b --on 2xa100-sxm --tp 2",
    "llama-3.1-8b --on a100-sxm --weights int4", "qwen3-32b --on h100-sxm --weights fp8",
    "llama-3.1-70b --on 2xh200-sxm --tp 2 --weights fp8 --kv fp8",
]  # fmt: skip
LOADS = [
    "--batch 1 --context 4k", "--batch 16 --context 2k", "--batch 64 --prompt 2k --output 300", "--batch 8 --prompt 500 --output 1",
    "--rate 2 --prompt 1k --output 200", "--rate 0.5 --prompt 4k --output 500", "--rate 40 --prompt 1k --output 100",
]  # fmt: skip
SWEPT = [
    "llama-3.1-8b --on l40s --batch 16 --prompt 2k --output 20,500", "llama-3.1-8b --on h100-sxm --prompt 2k --output 200 --rate 1,4,20,80",
    "qwen3-30b-a3b --on h100-sxm,l40s --batch 1,16,64 --context 4k",
    "gpt-oss-120b --on 2xh100-sxm --tp 1,2 --batch 8 --prompt 1k --output 200",
    "llama-3.1-8b --on h100-sxm --weights bf16,fp8 --batch 4,32 --prompt 1k --output 200",
    "mixtral-8x7b --on l40s --batch 4,8 --context 2k",
    "llama-3.1-8b --on l40s,h100-sxm --rate 30,60 --prompt 2k --output 300",
    "llama-3.1-8b --on h100-sxm --rate 500,900 --prompt 2k --output 300",
]  # fmt: skip
PLANS = [
    "llama-3.1-8b --on 8xh100-sxm --prompt 1k --output 200 --tpot 30ms", "qwen3-32b --on 8xh100-sxm --prompt 4k --output 500",
    "qwen3-30b-a3b --on 4xl40s --prompt 1k --output 300 --objective throughput",
    "llama-3.1-70b --on 8xh100-sxm --prompt 1k --output 200 --objective latency",
    "gpt-oss-120b --on 8xh100-sxm --prompt 2k --output 300 --tpot 20ms", "mixtral-8x7b --on 8xmi300x --prompt 1k --output 1k --ttft 1s",
]  # fmt: skip


def points() -> list[str]:
    """Twenty-five commands of `serve`, drawn with a fixed seed; `make helps` draws hundreds."""
    each = [f"serve {subject} {load}" for subject in SUBJECTS for load in LOADS]
    return random.Random(SEED).sample(each, 25)


def test_serve__helps_are_what_their_commands_print(cli: Cli) -> None:
    count = 0
    for command in points():
        words = shlex.split(command)
        answer = Answer.of([*words, "-o", "json"])
        if answer.status == 0:
            count += checked_serve(words, answer.json["rows"][0], answer.json["helps"])
    assert count >= 36


@pytest.mark.parametrize("command", SWEPT)
def test_serve__winner_of_a_sentence_is_the_best_row_that_runs(cli: Cli, command: str) -> None:
    """A point that does not fit or is overloaded wins nothing; Helps are those of the winner."""
    answer = cli.json(f"serve {command}")
    checked_winner(f"serve {command}", answer)


@pytest.mark.parametrize("command", PLANS)
def test_plan__helps_are_what_their_commands_plan(cli: Cli, command: str) -> None:
    words = shlex.split(f"plan {command}")
    answer = cli.json(*words)
    before = answer["rows"][0]
    for change in answer["helps"]:
        flags = re.search(r"(?:^|\()(--[^()]*)\)?$", change["change"])
        assert flags, change
        after = cli.json(*with_flags(words, shlex.split(flags[1])))["rows"][0]
        key, unit, sign = ("usd_per_1k_requests", "USD", 1) if "per 1,000 requests" in change["effect"] else (
            "tok_per_s_user" if "for a user" in change["effect"] else "tok_per_s_chip", "token/s", -1)  # fmt: skip
        assert f"-> {format_value(after[key], unit)} " in change["effect"], (change, after[key])
        assert sign * (before[key] - after[key]) > 0
        assert change["gain"] == pytest.approx((before[key] / after[key]) ** sign - 1, rel=1e-6)


@pytest.mark.parametrize("terms", ["", "--utilisation 0.3..0.7", "--margin 0.2..0.4 --utilisation 0.5"])
def test_price__helps_are_what_their_commands_price(cli: Cli, terms: str) -> None:
    words = shlex.split(f"price llama-3.1-8b --on h100-sxm --prompt 2k --output 300 --tpot 40ms {terms}")
    answer = cli.json(*words)
    before = answer["rows"][0]
    assert answer["helps"]
    for change in answer["helps"]:
        flags = re.search(r"\((--.*)\)$", change["change"])
        assert flags, change
        after = cli.json(*with_flags(words, shlex.split(flags[1])))["rows"][0]
        if "90 %" in change["effect"]:
            low, high = (format_value(after[f"price_out_{end}"], "USD/Mtok") for end in ("lo", "hi"))
            assert f"-> {low} .. {high} " in change["effect"]
            assert after["price_out_hi"] / after["price_out_lo"] < before["price_out_hi"] / before["price_out_lo"]
        else:
            assert f"-> {format_value(after['cost_out'], 'USD/Mtok')} " in change["effect"]
            assert change["gain"] == pytest.approx(1 - after["cost_out"] / before["cost_out"], rel=1e-6) and change["gain"] > 0


def test_train__a_faster_row_behind_the_best_says_why(cli: Cli) -> None:
    subjects = "llama-3.1-70b --on 1024xh100-sxm", "llama-3.1-8b --on 64xh100-sxm", "qwen3-30b-a3b --on 128xh200-sxm"
    for command in subjects:
        rows = cli.json(f"train {command} --tokens 1T")["rows"]
        faster = [row for row in rows if row["fits"] and row["step_s"] < rows[0]["step_s"]]
        assert all("faster, less plain: " in row["why"] for row in faster)
        assert all(not row["why"] for row in rows if row["fits"] and row not in faster)


@pytest.mark.parametrize("command", [
    "llama-3.1-8b --on h100-sxm,l40s --chip-price 2.125,1..4*2 --prompt 2k --output 300 --set chip.hbm=24GB,96GiB",
    "llama-3.1-8b,qwen3-8b --on l40s,h100-sxm --rate 60 --no-check --prompt 2k --output 300 --set chip.hbm_bw=1TB/s,3TB/s",
])  # fmt: skip
def test_plan__helps_of_lists_are_of_the_best_row(cli: Cli, command: str) -> None:
    """The printed command names the machine, the model and the edited values of the best row, and gives the printed figure."""
    answer = cli.json("plan", *shlex.split(command))
    best, printed = answer["rows"][0], [change["effect"].partition("try: headway ")[2] for change in answer["helps"]]
    assert any(printed)
    for effect, words in zip((change["effect"] for change in answer["helps"]), map(shlex.split, printed), strict=True):
        if words:
            after = cli.json(*words)["rows"][0]
            assert {after["model"], words[1]} == {best["model"]} and words[words.index("--on") + 1] in best["system"]
            assert not any("," in word for word in words)
            key, unit = ("usd_per_month", "") if "/month" in effect else ("usd_per_1k_requests", "USD")
            assert (format_value(after[key], unit) if unit else f"-> ${after[key]:,.0f}/month") in effect

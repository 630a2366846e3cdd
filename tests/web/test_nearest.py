"""Where no layout is the answer, the numbers, the table and the pictures are named for what they are of: the nearest."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest

from headway.cli.command import command
from headway.web.question import question
from headway.web.reply import reply, whose
from support.command import unhelped

PARTS = ["answer", "figures", "table", "pictures"]
LENGTHS = {"prompt": "4k", "output": "500"}
SHORT = {  # of a load and of none: by its confidence, by its limit, by its memory
    "confidence": ("qwen3-32b", {"on": "8xh100-sxm", "rate": "10/s", "ttft-p95": "2s", "tpot-p95": "50ms"}, "fewer than 80% confidence"),
    "limit": ("llama-3.1-8b", {"on": "h100-sxm", "tpot": "1ms"}, "TPOT"),
    "memory": ("llama-3.1-70b", {"on": "l4"}, "GB"),
}


def answered(model: str, flags: dict[str, str]) -> dict[str, Any]:
    query = question({"verb": "plan", "words": [model], "flags": LENGTHS | flags, "parts": PARTS})
    with unhelped():
        return reply(query, command(shlex.join(query.argv())))


def kinds(answer: dict[str, Any]) -> set[str]:
    place = next(place for place, column in enumerate(answer["table"]["columns"]) if column["key"] == "kind")
    return {row[place]["text"] for row in answer["table"]["rows"]}


@pytest.mark.parametrize("short", SHORT)
def test_numbers__of_what_falls_short_are_not_those_of_a_plan(short: str) -> None:
    model, flags, why = SHORT[short]
    answer = answered(model, flags)
    assert f"the nearest layout on {flags['on']}, which falls short: " in answer["whose"] and why in answer["whose"]
    assert "nearest" in kinds(answer) and "best" not in kinds(answer)
    assert "the plan:" not in json.dumps(answer["pictures"])


def test_numbers__of_a_plan_are_its_own() -> None:
    answer = answered("llama-3.1-8b", {"on": "h100-sxm", "tpot": "50ms"})
    assert answer["whose"] == "" and "best" in kinds(answer)
    assert "the plan: batch" in json.dumps(answer["pictures"])


@pytest.mark.parametrize(("command_line", "words"), [
    ("serve llama-3.1-405b --on h100-sxm --context 1k", "this layout on h100-sxm, which falls short: weights need"),
    ("scale --quality 7B --served 100B --law sardana --kappa 1", "what was asked, which falls short: tokens equal to serving"),
    ("speed llama-3.1-405b --on h100 --prompt 1k --output 1k", "the nearest layout on h100-sxm, which falls short: weights need"),
])  # fmt: skip
def test_numbers__of_what_no_search_chose_are_not_called_the_nearest(command_line: str, words: str) -> None:
    assert words in whose(command(f"headway {command_line}"))

"""`--launch` under a plan: the line of the best layout, a reason, or one clear refusal."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headway.cli.main import main
from support.command import changed

PLAN = ["plan", "llama-3.1-70b", "--on", "8xh100-sxm", "--prompt", "1k", "--output", "1k", "--tp", "4", "--pp", "2"]


def launched(capsys: pytest.CaptureFixture[str], *argv: str) -> list[str]:
    assert main([*changed(PLAN, *argv), "-o", "json"]) == 0
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return [note.removeprefix("launch: ") for note in answer["notes"] if note.startswith("launch: ")]


def test_launch__layout_and_batch_of_the_best_row(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*PLAN, "-o", "json"]) == 0
    best = json.loads(capsys.readouterr().out)["rows"][0]
    assert main([*PLAN, "--launch", "vllm", "-o", "json"]) == 0
    (line,) = json.loads(capsys.readouterr().out)["launch"]
    assert line.startswith("vllm serve ")
    assert f"--tensor-parallel-size 4 --pipeline-parallel-size 2 --max-num-seqs {int(best['batch'])} --max-model-len 2304" in line


def test_launch__unsupported_parallelism_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert "context parallelism" in launched(capsys, "--cp", "2", "--pp", "1", "--launch", "trtllm")[0]


def test_launch__nothing_when_no_layout_meets_the_limits(capsys: pytest.CaptureFixture[str]) -> None:
    assert launched(capsys, "--ttft", "1us", "--launch", "sglang") == ["nothing to launch, no layout meets every limit"]


@pytest.mark.parametrize("extra", [["--launch", "triton"], ["--launch", "vllm", "--prompt", "1k,2k"]])
def test_launch__wrong_input_is_one_line(capsys: pytest.CaptureFixture[str], extra: list[str]) -> None:
    assert main(changed(PLAN, *extra)) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and err.startswith("headway: ")

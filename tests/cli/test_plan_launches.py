"""Launch lines of twenty plans, three engines: the id asked for is served, every flag is known, pools and hosts have their lines."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from headway.cli.main import main
from headway.serving.launch.launch import flags
from support import kubernetes

pytestmark = pytest.mark.slow

INSTRUCT, DEEPSEEK = "meta-llama/Llama-3.1-8B-Instruct", "deepseek-ai/DeepSeek-V3"
SHORT = ["--prompt", "2k", "--output", "500"]
PINNED = ["--pp", "1", "--cp", "1"]
PLANS = {
    "one node": [INSTRUCT, "--on", "8xh100-sxm", *SHORT, *PINNED, "--tp", "2"],
    "a rate": [INSTRUCT, "--on", "h100-sxm", *SHORT, *PINNED, "--tp", "1", "--rate", "20", "--no-check"],
    "both pools": [INSTRUCT, "--on", "8xh100-sxm", *SHORT, *PINNED, "--tp", "1,2", "--disaggregate"],
    "pools on two servers": [INSTRUCT, "--on", "16xh100-sxm", *SHORT, *PINNED, "--tp", "8", "--disaggregate"],
    "three trays": [DEEPSEEK, "--on", "12xgb200", *SHORT, *PINNED, "--tp", "1", "--dp", "12", "--ep", "12"],
    "two servers": [DEEPSEEK, "--on", "16xh200", *SHORT, *PINNED, "--tp", "1", "--dp", "16", "--ep", "16"],
    "host of the user": [INSTRUCT, "--on", "8xh100-sxm", *SHORT, "--cp", "1", "--pp", "1", "--tp", "8", "--chips-per-host", "4"],
}
CASES = [(engine, name) for engine in ("vllm", "sglang", "trtllm") for name in PLANS if (engine, name) != ("trtllm", "host of the user")]
FLAG = re.compile(r"(?<=\s)--?[a-zA-Z][\w-]*")


@pytest.fixture(autouse=True)
def _no_elasticities(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out what 1 % of each input would change, which takes longest and no launch line needs."""
    monkeypatch.setattr("headway.serving.plan.plan.elasticities", lambda *_: [])


def answered(capsys: pytest.CaptureFixture[str], *argv: str) -> dict[str, Any]:
    assert main(["plan", *argv, "-o", "json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_plans__are_twenty() -> None:
    assert len(CASES) == 20


@pytest.mark.parametrize(("engine", "name"), CASES)
def test_launch__line_of_a_plan(capsys: pytest.CaptureFixture[str], engine: str, name: str) -> None:
    argv = PLANS[name]
    answer = answered(capsys, *argv, "--launch", engine)
    lines = [line for line in answer["launch"] if not line.startswith("printf ")]
    assert lines, answer["notes"]
    for line in lines:
        assert f" {argv[0]} " in line
        assert set(FLAG.findall(line)) - {"-m"} <= flags(engine).flags.keys(), line
    pools, text = "--disaggregate" in argv, "\n".join(answer["launch"])
    limit = {"vllm": "--max-num-seqs", "sglang": "--max-running-requests", "trtllm": "--max_batch_size"}[engine]
    assert len(re.findall(f"{limit} [1-9]", lines[-1])) == 1
    if pools:
        ends = {"vllm": "kv_{}r", "sglang": "--disaggregation-mode {}", "trtllm": "> trtllm-{}.yaml"}[engine]
        names = ("produce", "consume") if engine == "vllm" else ("prefill", "decode")
        assert all(ends.format(role) in text for role in names)
    several = {"three trays": 3, "two servers": 2, "host of the user": 2}.get(name, 1)
    if several > 1:
        marks = {"vllm": "--headless", "sglang": f"--nnodes {several} ", "trtllm": "trtllm-llmapi-launch "}
        assert marks[engine] in text and any(f"{several} hosts: " in note for note in answer["notes"])
    assert not any("as if one host" in note for note in answer["notes"])


def test_manifest__is_printed_or_written(capsys: pytest.CaptureFixture[str], tmp_path: Any) -> None:
    argv = ["plan", *PLANS["both pools"], "--launch", "sglang", "--manifest", "k8s"]
    assert main(argv) == 0
    entries = kubernetes.parsed(capsys.readouterr().out)
    assert [entry["kind"] for entry in entries] == ["Deployment", "Service"] * 2
    assert [fault for entry in entries for fault in kubernetes.faults(entry)] == []
    path = tmp_path / "pools.yaml"
    assert main([*argv, str(path)]) == 0
    assert kubernetes.parsed(path.read_text(encoding="utf-8")) == entries and str(path) in capsys.readouterr().out


@pytest.mark.parametrize(
    ("extra", "wants"),
    [
        (["--manifest", "k8s"], "--launch vllm"),
        (["--launch", "vllm", "--manifest", "helm"], "k8s"),
        (["--launch", "vllm", "--manifest", "k8s", "/nowhere/at/all.yaml"], "cannot be written"),
        (["--launch", "vllm", "--chips-per-host", "four"], "--chips-per-host"),
    ],
)
def test_manifest__wrong_input_is_one_line(capsys: pytest.CaptureFixture[str], extra: list[str], wants: str) -> None:
    assert main(["plan", *PLANS["one node"], *extra]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and wants in err

"""Launch lines of twenty plans, three engines: the id asked for is served, every flag is known, pools and hosts have their lines."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from headway.cli.main import main
from support import command_lines, kubernetes
from support.command_lines import CommandLine

pytestmark = pytest.mark.slow

INSTRUCT, DEEPSEEK = "meta-llama/Llama-3.1-8B-Instruct", "deepseek-ai/DeepSeek-V3"
SHORT = ["--prompt", "2k", "--output", "500"]
PINNED = ["--pp", "1", "--cp", "1"]
PLANS = {
    "one node": [INSTRUCT, "--on", "8xh100-sxm", *SHORT, *PINNED, "--tp", "2"],
    "a rate": [INSTRUCT, "--on", "h100-sxm", *SHORT, *PINNED, "--tp", "1", "--kv", "fp8", "--rate", "20", "--no-check"],
    "both pools": [INSTRUCT, "--on", "8xh100-sxm", *SHORT, *PINNED, "--tp", "1,2", "--disaggregate"],
    "pools on two servers": [INSTRUCT, "--on", "16xh100-sxm", *SHORT, *PINNED, "--tp", "8", "--disaggregate"],
    "three trays": [DEEPSEEK, "--on", "12xgb200", *SHORT, *PINNED, "--tp", "1", "--dp", "12", "--ep", "12"],
    "two servers": [DEEPSEEK, "--on", "16xh200", *SHORT, *PINNED, "--tp", "1", "--dp", "16", "--ep", "16"],
    "host of the user": [INSTRUCT, "--on", "8xh100-sxm", *SHORT, "--cp", "1", "--pp", "1", "--tp", "8", "--chips-per-host", "4"],
}
CASES = [(engine, name) for engine in ("vllm", "sglang", "trtllm") for name in PLANS if (engine, name) != ("trtllm", "host of the user")]
SEQUENCES = {"vllm": "--max-num-seqs", "sglang": "--max-running-requests", "trtllm": "--max_batch_size"}


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
def test_launch__lines_and_manifests_of_a_plan(capsys: pytest.CaptureFixture[str], tmp_path: Any, engine: str, name: str) -> None:
    """The id served is the id asked for, flags and values are on record, chips add up, and the manifest keeps the schema."""
    argv, path = PLANS[name], tmp_path / "pools.yaml"
    hosts = {"three trays": 3, "two servers": 2, "host of the user": 2}.get(name, 1)
    has_manifest = engine != "trtllm" or hosts == 1  # TensorRT-LLM needs MPI between hosts
    manifest = ["--manifest", "k8s", str(path)] if has_manifest else []
    answer = answered(capsys, *argv, "--launch", engine, *manifest)
    assert [fault for line in answer["launch"] for fault in command_lines.faults(engine, line)] == []
    commands = [command_lines.parsed(engine, line) for line in answer["launch"] if not line.startswith("printf ")]
    assert {command.model for command in commands} == {argv[0]}, answer["notes"]
    best, flag = answer["rows"][0], "--disaggregate" in argv
    layouts = [[best[f"{pool}{key}"] for key in ("tp", "cp", "dp", "pp")] for pool in (("prefill_", "") if flag else ("",))]
    assert {chips(engine, command) for command in commands} == {math.prod(map(int, layout)) for layout in layouts}
    assert int(commands[-1].flags[SEQUENCES[engine]]) >= 1
    assert [role(engine, command, answer["launch"]) for command in commands] == (["prefill", "decode"] if flag else [""] * len(commands))
    if hosts > 1:
        assert any(f"{hosts} hosts: " in note for note in answer["notes"])
    assert not any("as if one host" in note for note in answer["notes"])
    if has_manifest:
        entries = kubernetes.parsed(path.read_text(encoding="utf-8"))
        assert [fault for entry in entries for fault in kubernetes.faults(entry)] == []
        workload = "LeaderWorkerSet" if hosts > 1 else "Deployment"
        assert [entry["kind"] for entry in entries] == [workload, "Service"] * (2 if flag else 1)
        starts = [text for entry in entries for text in kubernetes.commands(entry)]
        assert starts and all(f" {argv[0]} " in text for text in starts)


@pytest.mark.parametrize(
    ("engine", "line", "fault"),
    [
        ("vllm", "vllm serve org/model --tensor-parallel 8", "--tensor-parallel: not kept"),
        ("vllm", "vllm serve org/model --kv-cache-dtype fp9", "--kv-cache-dtype=fp9: not legal"),
        ("vllm", "VLLM_PORT=1 vllm serve org/model --port $((8000 + REPLICA))", "VLLM_PORT: not kept"),
        ("trtllm", r"printf 'kv_cache_config:\n  kind: fp8\n' > trtllm.yaml", "kv_cache_config.kind: not kept"),
    ],
)
def test_checker__refuses_what_is_not_on_record(engine: str, line: str, fault: str) -> None:
    assert command_lines.faults(engine, line) == [fault]


def chips(engine: str, command: CommandLine) -> int:
    """Chips that the command's degrees of parallelism take: SGLang's and TensorRT-LLM's tp counts data-parallel ranks of a MoE too."""
    flags = {key.strip("-").replace("-", "_"): value for key, value in command.flags.items()}
    keys = (
        ("tensor_parallel_size", "data_parallel_size", "pipeline_parallel_size") if engine == "vllm" else ("tp_size", "dp_size", "pp_size")
    )
    return math.prod(int(flags.get(key, 1)) for key in keys)


def role(engine: str, command: CommandLine, lines: list[str]) -> str:
    """The pool that a command belongs to, read from what its engine calls it."""
    if engine == "vllm":
        transfer = command.flags.get("--kv-transfer-config")
        return {"kv_producer": "prefill", "kv_consumer": "decode"}[json.loads(transfer)["kv_role"]] if transfer else ""
    if engine == "sglang":
        return command.flags.get("--disaggregation-mode", "")
    file = command.flags.get("--extra_llm_api_options", "")
    written = next((line for line in lines if line.endswith(f"> {file}")), "") if file else ""
    pooled = "cache_transceiver_config.backend" in (command_lines.options(written) if written else {})
    return file.removeprefix("trtllm-").removesuffix(".yaml") if pooled else ""


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

"""Causes of measured runs: benchmark files simulated from deployments with known faults; `score` is told the deployment alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headway.evidence.readers import vllm_bench
from headway.evidence.readers.files import RunFields
from headway.evidence.rows.tasks import Task, tasks
from headway.evidence.serving.causes import REST, Causes, causes
from headway.evidence.serving.predict import Prediction, predict
from headway.evidence.serving.remedies import remedies, sim_command
from support.benchmark_file import FaultyRun, write
from support.command import Cli

PROMPTS, LEAST_NAMED = "other requests' prefill", 18  # of 20


def slow(bandwidth: str, **facts: Any) -> FaultyRun:
    """A run over slow links."""
    return FaultyRun(cause="network", edits=(("chip.scale_up_bw", bandwidth),), **facts)


SMALL = {"model": "llama-3.1-8b", "tp": 1}
KNOWN = (
    FaultyRun(cause=PROMPTS, users=32, prompt=8000, output=150), FaultyRun(cause=PROMPTS, users=64, prompt=4000, output=150),
    FaultyRun(cause=PROMPTS, rate=3.0, prompt=4000, output=150), FaultyRun(cause=PROMPTS, users=48, prompt=6000, spread=1.0),
    FaultyRun(cause=PROMPTS, **SMALL, users=32, prompt=4000, output=150),
    slow("32 GB/s", users=32, prompt=4000), slow("32 GB/s", users=64), slow("32 GB/s", users=16, prompt=2000, output=300),
    slow("32 GB/s", rate=1.0, prompt=2000), slow("12 GB/s", model="llama-3.1-8b", tp=4, users=16, prompt=4000),
    FaultyRun(cause="batch limit", users=64, max_seqs=8), FaultyRun(cause="batch limit", users=128, max_seqs=16, prompt=500),
    FaultyRun(cause="batch limit", users=64, kv_tokens=16_000), FaultyRun(cause="small batch", users=2),
    FaultyRun(cause="small batch", users=4, prompt=500, output=400),
    FaultyRun(cause="queue", rate=12.0, prompt=2000, requests=1500), FaultyRun(cause="queue", rate=6.0, prompt=8000, requests=600),
    FaultyRun(cause="queue", **SMALL, rate=40.0, output=300, requests=2000),
    FaultyRun(cause="queue", users=600, prompt=8000, requests=1500),
    FaultyRun(cause="queue", tp=4, users=400, prompt=2000, output=300, requests=1200),
)  # fmt: skip
OTHER_MODELS = (  # drawn up after the rules that name a cause; arrivals at a rate and backlogs got laws of their own later
    FaultyRun(cause=PROMPTS, model="qwen3-30b-a3b", tp=2, users=48, prompt=8000, output=120),
    FaultyRun(cause=PROMPTS, model="gpt-oss-120b", tp=4, users=64, prompt=6000),
    FaultyRun(cause=PROMPTS, **SMALL, rate=4.0, prompt=3000, output=100),
    FaultyRun(cause=PROMPTS, model="qwen2.5-32b", tp=4, users=40, prompt=5000, output=250, spread=0.8),
    FaultyRun(cause=PROMPTS, chip="h200-sxm", tp=4, users=24, prompt=8000, output=300),
    slow("25 GB/s", tp=4, users=32, prompt=3000, output=250), slow("20 GB/s", model="qwen2.5-32b", tp=4, users=24, prompt=4000),
    slow("30 GB/s", chip="h200-sxm", users=48, prompt=2000, output=400), slow("15 GB/s", model="llama-3.1-8b", tp=2, users=32, prompt=2000),
    slow("20 GB/s", model="qwen3-30b-a3b", tp=4, users=32, prompt=3000),
    FaultyRun(cause="batch limit", model="qwen2.5-32b", tp=4, users=96, max_seqs=12, prompt=1500),
    FaultyRun(cause="batch limit", **SMALL, users=64, max_seqs=4, prompt=800, output=150),
    FaultyRun(cause="batch limit", model="gpt-oss-120b", tp=4, users=128, kv_tokens=30_000, prompt=1200, output=300, requests=600),
    FaultyRun(cause="small batch", model="qwen3-30b-a3b", tp=2, users=3, prompt=700, output=300),
    FaultyRun(cause="small batch", model="qwen2.5-32b", chip="h200-sxm", tp=2, users=4, prompt=300, output=500),
    FaultyRun(cause="queue", model="qwen2.5-32b", tp=4, rate=20.0, prompt=2000, output=300, requests=2000),
    FaultyRun(cause="queue", **SMALL, rate=15.0, prompt=4000, requests=1500),
    FaultyRun(cause="queue", model="qwen3-30b-a3b", tp=2, users=900, prompt=6000, output=300, requests=2500),
    FaultyRun(cause="queue", model="gpt-oss-120b", tp=4, rate=60.0, prompt=1500, output=400, requests=3000),
    FaultyRun(cause="queue", tp=4, rate=7.0, prompt=2500, output=250, requests=1000),
)  # fmt: skip


def scored(case: FaultyRun, folder: Path) -> tuple[Task, Prediction, Causes]:
    """The cause of a simulated run, of which only the deployment as it should be is told."""
    row = vllm_bench.read(write(case, folder / "bench.json"), RunFields(hardware=case.chip, chips=case.tp, tp=case.tp))[0][0]
    task = tasks([row])[0]
    assert isinstance(task, Task)
    prediction = predict([task])[0]
    cause = causes(task, prediction)
    assert cause is not None
    return task, prediction, cause


@pytest.mark.parametrize("cases", (KNOWN, OTHER_MODELS), ids=("known", "other models"))
def test_causes__true_one_of_simulated_faults(cases: tuple[FaultyRun, ...], tmp_path: Path) -> None:
    runs = [(case, *scored(case, tmp_path)) for case in cases]
    wrong = [(case, cause.name) for case, _, _, cause in runs if cause.name != case.cause]
    assert len(runs) - len(wrong) >= LEAST_NAMED, wrong
    for _, task, _, cause in runs:
        assert sum(part.measured for part in cause.tpot) == pytest.approx(task.row.tpot_s, rel=1e-9)
        assert sum(part.measured for part in cause.ttft) == pytest.approx(task.row.ttft_s, rel=1e-9)
        assert all(part.measured >= 0 for part in (*cause.tpot, *cause.ttft) if part.name != REST)


def test_remedies__three_to_five_with_intervals(tmp_path: Path) -> None:
    for case in (KNOWN[3], KNOWN[7], OTHER_MODELS[12], KNOWN[14], KNOWN[15], KNOWN[18]):
        task, prediction, cause = scored(case, tmp_path)
        options = remedies(task, prediction, cause)
        assert 3 <= len(options) <= 5
        assert all(option.after.lo < option.after.expected < option.after.hi for option in options)


def test_causes__nothing_unexplained_is_large_where_nothing_is_wrong(tmp_path: Path) -> None:
    for case in (KNOWN[0], KNOWN[2], KNOWN[13]):
        task, _, cause = scored(case, tmp_path)
        assert cause.usual and cause.fault is None and task.row.tpot_s
        assert abs(cause.tpot[-1].measured) < 0.05 * task.row.tpot_s


def test_causes__size_of_the_fault(tmp_path: Path) -> None:
    cause = scored(KNOWN[6], tmp_path)[2]
    assert cause.fault is not None and cause.fault.size == pytest.approx(450 / 32, rel=0.1)  # H100: 450 GB/s a direction
    limited = scored(KNOWN[10], tmp_path)[2]
    assert limited.fault is not None
    assert float(limited.fault.served.times.in_service[0]) == pytest.approx(8, rel=0.2)  # --max-seqs 8


def test_causes__saturated_run_waits_for_its_backlog(tmp_path: Path) -> None:
    task, _, cause = scored(KNOWN[16], tmp_path)
    wait = next(part.measured for part in cause.ttft if part.name == "wait for a seat")
    # 600 requests at 6 per second, served at the capacity: the mean one waits for half of the difference
    assert wait == pytest.approx(300 * (1 / cause.capacity - 1 / 6))
    assert cause.saturated and task.row.ttft_s and wait == pytest.approx(task.row.ttft_s, rel=0.2)


def test_remedy__simulated_as_predicted(tmp_path: Path) -> None:
    task, prediction, cause = scored(KNOWN[0], tmp_path)
    option = next(option for option in remedies(task, prediction, cause) if option.flags == (("users", "16"),))
    changed = scored(FaultyRun(cause="", users=16, prompt=8000, output=150), tmp_path)[0]
    assert changed.row.tpot_s and option.after.lo < changed.row.tpot_s < option.after.hi
    assert sim_command(task, option.flags).startswith("headway sim llama-3.1-70b --on 8xh100-sxm --tp 8 --engine vllm --users 16 ")


def test_score__operator_story(cli: Cli, tmp_path: Path) -> None:
    path = write(KNOWN[1], tmp_path / "bench.json")
    command = ("score", "--vllm", str(path), "--on", "8xh100-sxm", "--tp", "8")
    status, out, _ = cli(*command)
    assert status == 0
    assert out.startswith("TPOT is 87.1 ms, 2.5 times the floor at this load; other requests' prefill takes 84% of it.\n")
    assert "the server runs as it should" in out and "\n         3. " in out
    answer = json.loads(cli(*command, "-o", "json")[1])
    row = answer["rows"][0]
    assert row["cause"] == PROMPTS and sum(row["parts"].values()) == pytest.approx(row["measured"])
    assert 3 <= len(answer["helps"]) <= 5
    tried = answer["helps"][0]["effect"].partition("try: headway ")[2].split()
    status, out, _ = cli(*tried, "--requests", "300")
    assert status == 0 and "TPOT" in out


def test_score__saturated_is_told(cli: Cli, tmp_path: Path) -> None:
    path = write(KNOWN[15], tmp_path / "bench.json")
    out = cli("score", "--vllm", str(path), "--on", "8xh100-sxm", "--tp", "8").text
    assert out.startswith("The server is saturated: 12 requests/s arrive, it carries 9.92; TTFT is 18.8 s.\n")

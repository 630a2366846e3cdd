"""Causes of measured runs: benchmark files simulated from deployments with known faults; `score` is told the deployment alone."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path
from typing import Any

import pytest

from headway.evidence.readers import requests, vllm_bench
from headway.evidence.readers.files import RunFields
from headway.evidence.rows.tasks import Task, tasks
from headway.evidence.serving.causes import REST, Causes, as_run, causes, expected
from headway.evidence.serving.predict import Prediction, predict
from headway.evidence.serving.remedies import remedies
from headway.report.causes import headline, notes
from support.benchmark_file import FaultyRun, write, write_log
from support.command import Cli
from support.score_runs import drawn, problems, score_command

PROMPTS, MOST_WRONG = "other requests' prefill", 1  # of 15


def slow(bandwidth: str, **facts: Any) -> FaultyRun:
    """A run over slow links."""
    return FaultyRun(cause="network", edits=(("chip.scale_up_bw", bandwidth),), **facts)


SMALL = {"model": "llama-3.1-8b", "tp": 1}
KNOWN = (
    FaultyRun(cause=PROMPTS, users=32, prompt=8000, output=150), FaultyRun(cause=PROMPTS, users=64, prompt=4000, output=150),
    FaultyRun(cause=PROMPTS, rate=3.0, prompt=4000, output=150), FaultyRun(cause=PROMPTS, users=48, prompt=6000, spread=1.0),
    FaultyRun(cause=PROMPTS, **SMALL, users=32, prompt=4000, output=150),
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
FAR_TOO_SLOW = (  # links at 1/14 of their bandwidth and less
    slow("32 GB/s", users=32, prompt=4000), slow("32 GB/s", users=64), slow("32 GB/s", users=16, prompt=2000, output=300),
    slow("12 GB/s", model="llama-3.1-8b", tp=4, users=16, prompt=4000), slow("25 GB/s", tp=4, users=32, prompt=3000, output=250),
    slow("20 GB/s", model="qwen2.5-32b", tp=4, users=24, prompt=4000), slow("30 GB/s", chip="h200-sxm", users=48, prompt=2000, output=400),
    slow("15 GB/s", model="llama-3.1-8b", tp=2, users=32, prompt=2000), slow("20 GB/s", model="qwen3-30b-a3b", tp=4, users=32, prompt=3000),
)  # fmt: skip
SLOW_LINKS = slow("155 GB/s", model="qwen2.5-32b", users=64, prompt=8000, output=50)  # 2.9 times: as much as is plausible


def scored(case: FaultyRun, folder: Path, log: bool = False) -> tuple[Task, Prediction, Causes]:
    """The cause of a simulated run, of which only the deployment as it should be is told."""
    fields = RunFields(hardware=case.chip, chips=case.tp, tp=case.tp, model=case.model)
    path = write_log(case, folder / "requests.csv") if log else write(case, folder / "bench.json")
    row = (requests if log else vllm_bench).read(path, fields)[0][0]
    task = tasks([row])[0]
    assert isinstance(task, Task)
    due = expected(task)
    prediction = as_run(task, predict([task])[0], due)
    cause = causes(task, prediction, due)
    assert cause is not None
    return task, prediction, cause


@pytest.mark.parametrize("cases", (KNOWN, OTHER_MODELS), ids=("known", "other models"))
def test_causes__true_one_of_simulated_faults(cases: tuple[FaultyRun, ...], tmp_path: Path) -> None:
    runs = [(case, *scored(case, tmp_path)) for case in cases]
    wrong = [(case, cause.name) for case, _, _, cause in runs if cause.name != case.cause]
    assert len(wrong) <= MOST_WRONG, wrong
    for _, task, _, cause in runs:
        assert sum(part.measured for part in cause.tpot) == pytest.approx(task.row.tpot_s, rel=1e-9)
        assert sum(part.measured for part in cause.ttft) == pytest.approx(task.row.ttft_s, rel=1e-9)
        assert all(part.measured >= 0 for part in (*cause.tpot, *cause.ttft))


def test_headline__says_how_far_the_prediction_is_off(tmp_path: Path) -> None:
    task, prediction, cause = scored(SLOW_LINKS, tmp_path)
    assert prediction.tpot is not None and task.row.tpot_s
    off = round(100 * (1 - prediction.tpot.expected / task.row.tpot_s))
    text = headline(task, prediction, cause)
    assert off > 10 and f"({off} % too low)" in text and cause.name in text and len(text.split()) <= 30


def test_causes__a_fault_that_no_server_has_is_implausible(tmp_path: Path) -> None:
    """Links 14 times slower are never the cause that is named: another of up to three times is, or none, and then links are listed."""
    for case in FAR_TOO_SLOW:
        task, prediction, cause = scored(case, tmp_path)
        text = headline(task, prediction, cause)
        assert not cause.usual and cause.name != "network"
        if cause.fault is not None:
            assert cause.fault.size <= 3 and cause.name in text
        else:
            assert cause.name == REST and "no cause is plausible" in text
            assert all(fault.size > 3 for fault in cause.implausible) and "network" in {fault.name for fault in cause.implausible}
            assert any("links" in note and "implausible" in note for note in notes(cause, "TPOT"))


def test_causes__nothing_unexplained_is_large_where_nothing_is_wrong(tmp_path: Path) -> None:
    for case in (KNOWN[0], KNOWN[2], KNOWN[13]):
        task, _, cause = scored(case, tmp_path)
        assert cause.usual and cause.fault is None and task.row.tpot_s
        assert abs(cause.tpot[-1].measured) < 0.05 * task.row.tpot_s


def test_causes__size_of_the_fault(tmp_path: Path) -> None:
    cause = scored(SLOW_LINKS, tmp_path)[2]
    assert cause.name == "network" and cause.fault is not None and cause.fault.size == pytest.approx(450 / 155, rel=0.1)
    limited = scored(FaultyRun(cause="batch limit", users=64, max_seqs=8), tmp_path)[2]
    assert limited.fault is not None
    assert float(limited.fault.served.times.in_service[0]) == pytest.approx(8, rel=0.2)  # --max-seqs 8


def test_causes__a_run_that_ended_waits_as_its_requests_did(tmp_path: Path) -> None:
    """Bursts and arrivals beyond the capacity: the wait is that of so many requests, not of a queue without end."""
    for case in (
        FaultyRun(cause="", rate=6.0, prompt=8000, requests=600), FaultyRun(cause="", **SMALL, users=300, requests=300, prompt=500),
        FaultyRun(cause="", **SMALL, users=300, requests=300, prompt=500, max_seqs=64, output=300),
    ):  # fmt: skip
        for log in (False, True):
            task, _, cause = scored(case, tmp_path, log)
            wait = next(part for part in cause.ttft if part.name == "wait for a seat")
            rest = next(part for part in cause.ttft if part.name == REST)
            assert task.row.ttft_s and 0 < wait.measured <= task.row.ttft_s and rest.measured < 0.25 * task.row.ttft_s
            if case.max_seqs is None:
                assert cause.usual and wait.expected == pytest.approx(task.row.ttft_s, rel=0.25)
            else:
                assert cause.name == "batch limit"


PERFECT: Any = {
    "engine": "none", "overlap": "full", "imbalance": 1.0, "t0": 0.0, "alpha": 0.0, "alpha_exchange": 0.0,
    **dict.fromkeys(("eff_compute", "eff_memory", "eff_network", "eff_in_switch", "eff_exchange"), 1.0),
}  # fmt: skip
EXPERTS = {"model": "qwen3-30b-a3b", "tp": 2}
LOADS: tuple[dict[str, Any], ...] = (
    SMALL | {"users": 64, "prompt": 500}, SMALL | {"users": 300, "requests": 300, "output_spread": 0.8},
    SMALL | {"rate": 200.0, "output": 300, "requests": 300, "max_seqs": 16}, {"users": 32, "prompt": 8000, "output": 50},
    SMALL | {"rate": 3.0, "spread": 1.0, "output_spread": 1.2, "requests": 150, "output": 300}, {"rate": 12.0, "prompt": 2000},
    EXPERTS | {"users": 300, "requests": 300, "output_spread": 0.8, "spread": 0.8}, EXPERTS | {"users": 64, "max_seqs": 4},
    EXPERTS | {"rate": 5.0, "output": 100}, EXPERTS | {"rate": 100.0, "requests": 150, "output": 400, "output_spread": 1.0},
)  # fmt: skip


def test_floors__hold_on_perfect_hardware(tmp_path: Path) -> None:
    """Runs simulated at datasheet rates, with neither an engine nor latencies: nothing real is faster, so no floor exceeds their times."""
    nearest: dict[bool, list[float]] = {False: [], True: []}
    for load, log in zip(LOADS, itertools.cycle((False, True))):
        task, prediction, _ = scored(FaultyRun(cause="", assumed=tuple(PERFECT.items()), **load), tmp_path, log)
        row, (tpot, ttft, rate) = task.row, (prediction.tpot, prediction.ttft, prediction.rate)
        assert tpot and ttft and rate and row.tpot_s and row.ttft_s and row.output_tok_per_s
        assert max(tpot.floor / row.tpot_s, ttft.floor / row.ttft_s, row.output_tok_per_s / rate.floor) <= 1.02, (load, log)
        nearest[log].append(tpot.floor / row.tpot_s)
    assert all(max(shares) > 0.9 for shares in nearest.values())  # and they are no formality


@pytest.mark.parametrize("number", range(3))
def test_score__helps_parts_and_floors_of_any_run(number: int, tmp_path: Path) -> None:
    """A few of the runs that `make score-runs` draws: each help is what its command answers, parts sum, floors hold."""
    case = drawn(random.Random(f"score {number}"))
    assert list(problems(score_command(case, tmp_path, log=number % 2 == 1))) == []


def test_remedies__of_a_fault_are_tried_with_it_and_its_repair_without(tmp_path: Path) -> None:
    task, prediction, cause = scored(FaultyRun(cause="batch limit", users=64, max_seqs=8), tmp_path)
    commands = []

    def ask(line: str) -> dict[str, Any]:
        commands.append(line)
        limited = "--max-seqs" in line
        ttft = ((task.row.ttft_s or 0.0) if limited else 0.3) * (0.5 if "--users 32" in line else 1.0)
        return {"stable": True, "mean_ttft_s": ttft, "mean_tpot_s": 0.01, "output_tok_per_s": 1000.0}

    options = remedies(task, prediction, cause, ask)
    assert options[0].after.expected == 0.3 and "--max-seqs" not in options[0].command and "--max-num-seqs" in options[0].change
    assert [option.command for option in options[1:]] == [line for line in commands if "--users 32" in line]  # nothing else is better
    assert "--max-seqs 9" in options[1].command or "--max-seqs 8" in options[1].command


def test_remedies__none_that_is_overloaded_or_no_better(tmp_path: Path) -> None:
    task, prediction, cause = scored(KNOWN[0], tmp_path)
    measured = task.row.tpot_s
    for row in (
        None, {"stable": False, "mean_tpot_s": 0.001, "mean_ttft_s": 0.1}, {"stable": True, "mean_tpot_s": measured, "mean_ttft_s": 0.1},
        {"stable": True, "mean_tpot_s": None, "mean_ttft_s": None},
    ):  # fmt: skip
        assert remedies(task, prediction, cause, lambda _, row=row: row) == []


def test_score__operator_story(cli: Cli, tmp_path: Path) -> None:
    path = write(KNOWN[1], tmp_path / "bench.json")
    command = ("score", "--vllm", str(path), "--on", "8xh100-sxm", "--tp", "8")
    status, out, _ = cli(*command)
    assert status == 0
    assert out.startswith("TPOT is 80.4 ms, predicted 82.3 ms (2 % too high), 2.4 times its floor; other requests' prefill takes 81 %")
    assert "the server runs as it should" in out and "\n         2. " in out
    answer = json.loads(cli(*command, "-o", "json")[1])
    row = answer["rows"][0]
    assert row["cause"] == PROMPTS and sum(row["parts"].values()) == pytest.approx(row["measured"])
    assert 2 <= len(answer["helps"]) <= 5 and all(helps["gain"] > 0 for helps in answer["helps"])
    assert list(problems(command)) == []


def test_score__saturated_is_told(cli: Cli, tmp_path: Path) -> None:
    path = write(KNOWN[10], tmp_path / "bench.json")
    out = cli("score", "--vllm", str(path), "--on", "8xh100-sxm", "--tp", "8").text
    assert out.startswith("The server is saturated: 12 requests/s arrive, it carries 9.3; TTFT is 12.3 s, predicted between 246 ms")

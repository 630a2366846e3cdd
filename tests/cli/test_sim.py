"""The verb, its report and what surrounds a run: routing, split pools, the search for a rate, capacity, overload, timelines."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headway.cli.main import main
from headway.performance.achieved import efficiencies
from headway.performance.layout import Layout
from headway.simulation import capacity, results
from headway.simulation import state as of
from headway.simulation.capacity import highest
from headway.simulation.fleet import PrefillDecodePools, split
from headway.simulation.questions import Policy
from headway.simulation.simulate import simulate
from headway.simulation.traffic.requests import Traffic
from support.command import Cli
from support.simulated import RULES, pace, play, real

pytestmark = pytest.mark.slow

ASKED = "sim llama-3.1-70b --on 8xh100-sxm --tp 8 --prompt 2k --output 100 --requests 300 --loop plain"


def poisson(count: int, rate: float, prompt: Any = 1, output: Any = 10, seed: int = 1) -> Traffic:
    rng = np.random.default_rng(seed)
    return Traffic.of(np.cumsum(rng.exponential(1 / rate, count)), prompt, output)


def test_sim__every_column_has_a_unit_and_a_sentence(cli: Cli) -> None:
    found = cli.json(f"{ASKED} --rate 1,2 --ttft 1s --tpot 50ms")
    assert [row["rate"] for row in found["rows"]] == [1, 2]
    assert all(column["doc"] for column in found["columns"].values())
    first = found["rows"][0]
    assert first["completed"] == 300
    assert first["measured"] == 270
    assert first["p50_ttft_s"] <= first["p99_ttft_s"]
    assert first["mean_e2e_s"] == pytest.approx(first["mean_ttft_s"] + 99 * first["mean_tpot_s"], rel=1e-9)
    assert 0 < first["goodput_req_per_s"] <= first["req_per_s"]
    assert first["usd_per_mtok_out_and_prompt"] == pytest.approx(first["usd_per_request"] / 100 * 1e6)
    assert first["joule_per_token"] > 0


def test_sim__overload_has_queue_growth_and_no_latency(cli: Cli) -> None:
    [row] = cli.json(f"{ASKED.replace('300', '3000')} --rate 100")["rows"]
    assert row["stable"] is False
    assert row["mean_ttft_s"] is None
    assert row["p99_e2e_s"] is None
    assert row["utilisation"] > 2
    assert row["queue_growth_per_s"] == pytest.approx(100 - row["capacity_req_per_s"], rel=0.15)


def test_find_rate__highest_rate_within_the_limits(cli: Cli) -> None:
    found, beyond = cli.json(f"{ASKED} --find rate --so-that p99_ttft_s=1s,p99_tpot_s=30ms")["rows"]
    assert found["kind"] == "found"
    assert found["p99_tpot_s"] <= 0.030 < beyond["p99_tpot_s"] or beyond["p99_ttft_s"] > 1.0
    assert found["rate"] < beyond["rate"] < found["rate"] * 1.0101  # three digits


def test_find_rate__no_rate_meets_the_limits() -> None:
    good, bad = highest(lambda rate: {"stable": True, "p99_ttft_s": 2.0}, 10.0, {"p99_ttft_s": 1.0})
    assert good is None
    assert bad["p99_ttft_s"] == 2.0


@pytest.mark.parametrize(
    "command",
    [
        "--rate 1 --trace none.csv", "", "--rate 1 --users 4", "--rate 1 --find rate", "--rate 0",
        "--users 4 --find rate --so-that p99_ttft_s=1s",
        "--rate 1 --so-that p99_ttft_s=1s", "--rate 1 --find rate --so-that nothing=1s", "--rate 1 --loop fast", "--rate 1 --requests 0.5",
        "--rate 1 --warmup 2", "--rate 1 --max-seqs 0", "--rate 1 --token-budget 1,2", "--rate 1 --token-budget 1",
        "--users 3 --token-budget 15", "--rate 1 --token-budget 64 --max-seqs 65", "--rate 1 --policy best",
    ],
)  # fmt: skip
def test_sim__wrong_input_is_one_line(capsys: pytest.CaptureFixture[str], command: str) -> None:
    assert main([*ASKED.split(), *command.split()]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_sim__model_that_does_not_fit_says_why(cli: Cli) -> None:
    [row] = cli.json("sim llama-3.1-70b --on h100 --rate 1 --prompt 100 --output 10 --requests 10")["rows"]
    assert row["fits"] is False
    assert "weights need" in row["why"]


def test_timeline__writes_trace_events(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    assert main([*ASKED.split(), "--rate", "2", "--timeline", str(path)]) == 0
    events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    assert {event["ph"] for event in events} == {"M", "C", "X"}
    assert sum(event["name"] == "answer" for event in events) == 300
    capsys.readouterr()


def test_routing__least_loaded_waits_less_than_round_robin() -> None:
    rng = np.random.default_rng(5)
    traffic = replace(poisson(3000, 10.0), output=rng.integers(1, 60, 3000))
    turns, least = (
        simulate(traffic, pace("0.02"), RULES._replace(seats=2), replicas=4, routing=routing, how="plain")
        for routing in ("round-robin", "least-loaded")
    )
    assert least.completed.all()
    assert sorted(set(least.replica)) == [0, 1, 2, 3]
    assert (least.scheduled - least.arrival).mean() < (turns.scheduled - turns.arrival).mean()


def test_ttft__split_pools_include_transfer_and_decode_queue() -> None:
    traffic = Traffic.of([0.0, 0.0], 100, 5)
    pools = PrefillDecodePools(prefill=2, decode=1, transfer_s=lambda prompt: np.full(len(prompt), 0.25))
    run, before = split(traffic, pace("0.1"), RULES._replace(seats=1), pools, how="plain")
    assert before.finish == pytest.approx([0.1, 0.1])
    assert run.first == pytest.approx([0.35, 0.75])  # the second waits until the first has its four further tokens
    assert run.finish == pytest.approx([0.75, 1.15])
    assert run.total(of.EMITTED) == 10


def test_preemption__is_no_second_first_token() -> None:
    run = play(Traffic.of([0.0, 0.0], 4, 8), "1.0", capacity=10, block=2)
    found = results.latencies(run, results.measured(run, 0.0))
    assert found["mean_ttft_s"] == 1.0
    gaps = np.sum([state.log[: of.GAPS] for state in run.states])
    assert gaps == 14


def test_kv_tokens__request_beyond_the_cache_is_rejected(cli: Cli) -> None:
    [row] = cli.json(f"{ASKED} --rate 1 --kv-tokens 2048")["rows"]
    assert (row["completed"], row["rejected"]) == (0, 300)


def test_capacity__equals_the_fluid_limit() -> None:
    """Iterations of c0 + c1 n, N tokens a request, unlimited seats but for the cache: capacity 1 / (N (c1 + c0 / seats))."""
    step = pace("0.02 + 0.001 * (batch + tokens)", 64)
    able = capacity.capacity(poisson(500, 1.0, output=50), step, RULES._replace(seats=64), 1, "plain")
    assert able and able.per_s == pytest.approx(1 / (50 * (0.001 + 0.02 / 64)), rel=0.02)


def test_prefix_cache__hits_carry_more_than_the_capacity_without(cli: Cli) -> None:
    """At 18/s the same hits last for 1,500 requests, and not for ten times as many."""
    asked = "sim llama-3.1-8b --on h100 --turns 5,5s --prompt 1k --output 50 --requests 1500 --rate {}"
    with_cache = f"{asked} --prefix-cache hbm:60GB"
    [bare] = cli.json(asked.format(12))["rows"]
    assert bare["utilisation"] > 1.05 and not bare["stable"] and bare["p99_ttft_s"] is None
    [row] = cli.json(with_cache.format(12))["rows"]
    assert row["stable"] and row["utilisation"] < 1 and row["hit_rate"] > 0.5 and row["p99_ttft_s"] < 2.0
    assert row["capacity_req_per_s"] > 2 * bare["capacity_req_per_s"]
    [short] = cli.json(with_cache.format(18))["rows"]
    [longer] = cli.json(with_cache.format(18).replace("1500", "15k"))["rows"]
    assert short["hit_rate"] > 0.5 and longer["hit_rate"] < 0.5
    assert (short["stable"], longer["stable"]) == (False, False)


def test_seed__draws_the_class_of_each_request(cli: Cli) -> None:
    fast = [cli.json(f"{ASKED} --rate 1 --fast 0.5 --seed {seed}")["rows"][1]["measured"] for seed in (1, 2, 1)]
    assert fast[0] == fast[2] != fast[1]


def test_fast_class__latencies_when_the_slow_class_is_overloaded(cli: Cli) -> None:
    asked = "sim llama-3.1-8b --on h100 --prompt 2k --output 200 --requests 1500 --fast 0.2"
    whole, fast, slow = cli.json(f"{asked} --rate 20")["rows"]
    assert [row["stable"] for row in (whole, fast, slow)] == [False, True, False]
    assert whole["mean_ttft_s"] is None and slow["mean_ttft_s"] is None
    assert fast["p99_ttft_s"] < 3.0
    assert [row["stable"] for row in cli.json(f"{asked} --rate 200")["rows"]] == [False, False, False]


def test_half_width__covers_the_mean_as_often_as_stated() -> None:
    rng = np.random.default_rng(6)
    inside = 0
    for _ in range(400):
        values = rng.exponential(1.0, 400)
        inside += abs(values.mean() - 1.0) <= (results.half_width(values) or 0)
    assert 0.91 < inside / 400 < 0.985


def test_tpot__includes_engine_overhead_per_step(cli: Cli) -> None:
    """An engine's own work per step is part of each step: TPOT grows by at least it, and as much as `serve` says for one user."""
    traffic = Traffic.of([0.0], 1000, 200)
    bare, served = (real("llama-3.1-70b", "8xh100-sxm", Layout(tp=8), traffic, engine=engine) for engine in ("none", "vllm"))
    times = []
    for made in (bare, served):
        assert made.pace
        run = simulate(traffic, made.pace, made.scheduler.rules, how="plain")
        times.append(float(results.measured(run, 0.0).tpot_s[0]))
    growth = times[1] - times[0]
    assert growth > efficiencies().find("step_overhead_s", "engine.vllm") > 0
    rows = cli.json("serve llama-3.1-70b --on 8xh100-sxm --tp 8 --prompt 1000 --output 200 --batch 1 --engine none,vllm")["rows"]
    assert growth == pytest.approx(rows[1]["tpot_s"] - rows[0]["tpot_s"], rel=0.02)


def test_engine__adds_request_overhead() -> None:
    traffic = Traffic.of([0.0], 1000, 20)
    named = real("llama-3.1-70b", "8xh100-sxm", Layout(tp=8), traffic, engine="vllm")
    asked = real("llama-3.1-70b", "8xh100-sxm", Layout(tp=8), traffic, Policy(request_overhead=0.5))
    assert 0.005 < named.scheduler.overhead_s < 0.1
    assert asked.scheduler.overhead_s == 0.5
    assert real("llama-3.1-70b", "8xh100-sxm", Layout(tp=8), traffic).scheduler.overhead_s == 0.015  # an engine like the usual ones
    assert real("llama-3.1-70b", "8xh100-sxm", Layout(tp=8), traffic, engine="none").scheduler.overhead_s == 0.0


@pytest.mark.parametrize("flags", ["--swap-space 4GiB", "--prefill-replicas 2"])
def test_sim__flag_without_its_companion_is_refused(flags: str, cli: Cli, capsys: pytest.CaptureFixture[str]) -> None:
    from headway.cli.main import main

    command = f"sim llama-3.1-8b --on h100 --rate 1 --requests 20 --prompt 1k --output 100 {flags}"
    assert main(command.split()) == 2
    assert "beside it" in capsys.readouterr().err

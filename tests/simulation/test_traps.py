"""What simulators of serving get wrong: one test each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from headway.performance.layout import Layout
from headway.simulation import capacity as saturation
from headway.simulation import results
from headway.simulation import state as of
from headway.simulation.fleet import PrefillDecodePools, split
from headway.simulation.prefix_tiers import Prefix, parse_tiers
from headway.simulation.settled import Verdict
from headway.simulation.simulate import SimulatedRun, simulate
from headway.simulation.traffic.requests import Traffic
from reference.queueing import md1_wait_s, mmc_wait_s
from support.simulated import RULES, pace, play, real


def gaps_s(run: SimulatedRun) -> tuple[float, float]:
    """Tokens after the first of each request, and the sum of the times between them, from the loop's histogram."""
    counted = np.sum([np.asarray(state.log[: of.GAPS]) for state in run.states], axis=0)
    middle = of.GAP_LEAST * of.GAP_RATIO ** (np.arange(of.GAPS) + 0.5)
    return float(counted.sum()), float((counted * middle).sum())


def crowd(count: int = 300, seed: int = 1) -> Traffic:
    rng = np.random.default_rng(seed)
    return Traffic.of(np.cumsum(rng.exponential(0.05, count)), rng.integers(1, 300, count), rng.integers(2, 60, count))


def test_departures__arrival_on_the_beat_starts_at_once() -> None:
    """Multiples of a beat that are rounded to either side of the time that was written."""
    times = np.arange(1, 1000) * 330 / 1000
    run = play(Traffic.of(times, 1, 1), "0.004", departures=0.03)
    assert np.abs(run.scheduled - times).max() < 1e-9
    assert run.finish - run.scheduled == pytest.approx(0.03)


def test_preemption__prompt_and_answer_are_prefilled_again() -> None:
    """Without a prefix cache nothing of it is found: prompt and answer so far are prefilled once more."""
    run = play(Traffic.of([0.0, 0.0], 4, 8), "1.0", capacity=10, block=2)
    assert run.total_count(of.PREEMPTED) == 1
    made = 7  # each then needs room for an eleventh token, and a sixth block with it
    assert run.total(of.PREFILLED) == 4 + 4 + (4 + made)
    assert play(Traffic.of([0.0, 0.0], 4, 8), "1.0").total(of.PREFILLED) == 8


def test_least_loaded__router_never_sees_a_step_end_early() -> None:
    run = simulate(Traffic.of([0.0, 0.001], 1, 1), pace("0.02"), RULES._replace(seats=1), replicas=2, routing="least-loaded", how="plain")
    assert run.replica.tolist() == [0, 1]


@pytest.mark.parametrize("mixed", [1, 0])
@pytest.mark.parametrize("capacity", [1000, 60])
def test_itl__sums_to_decode_time_with_preemption(capacity: int, mixed: int) -> None:
    """Preempted or not, each token but the first of a request has one time since the one before, and no time is lost."""
    run = play(crowd(), "0.004 + 1e-5 * tokens", capacity=capacity, seats=16, mixed=mixed)
    assert (run.total_count(of.PREEMPTED) > 0) == (capacity == 60)
    tokens, time = gaps_s(run)
    assert tokens == (run.traffic.output - 1).sum()
    assert time == pytest.approx((run.finish - run.first).sum(), rel=0.005)  # bins of 1 %


@pytest.mark.parametrize("changes", [{}, {"mixed": 0}, {"reserve": 1.0}, {"departures": 0.02}, {"seats": 1}])
@pytest.mark.parametrize("routing", ["round-robin", "least-loaded"])
def test_admission__requests_beyond_the_kv_cache_refused_by_every_policy(changes: dict[str, Any], routing: str) -> None:
    output = np.where(np.arange(60) % 7 == 0, 2000, 20)
    traffic = Traffic.of(np.arange(60) * 0.01, 30, output)
    run = simulate(traffic, pace("0.003"), RULES._replace(capacity=20, **changes), replicas=2, routing=routing, how="plain")
    assert (run.refused == (output == 2000)).all()
    assert (run.completed == ~run.refused).all()


def test_closed_loop__refused_requests_do_not_stop_other_users() -> None:
    prompt = np.where(np.arange(40) % 5 == 1, 5000, 10)
    run = simulate(
        Traffic.of(np.zeros(40), prompt, 5), pace("0.01"), RULES._replace(capacity=20, closed=1), users=4, think=np.zeros(40), how="plain"
    )
    assert (run.completed == (prompt == 10)).all()


def test_admission__kv_cache_of_zero_blocks_refuses_all_requests() -> None:
    for routing in ("round-robin", "least-loaded"):
        run = simulate(crowd(), pace("0.01"), RULES._replace(capacity=0), replicas=2, routing=routing, how="plain")
        assert run.refused.all() and not run.completed.any()


def test_ttft__disaggregated_is_two_queues_and_the_kv_transfer() -> None:
    """Prompts of exponential length leave an M/M/1 queue as they came (Burke), so that the decode pool is one too, with its own wait."""
    count, rate, length, transfer = 12_000, 3.0, 2000, 0.25
    rng = np.random.default_rng(2)
    traffic = Traffic.of(
        np.cumsum(rng.exponential(1 / rate, count)), rng.geometric(1 / length, count), 1 + rng.geometric(1 / length, count)
    )
    made = pace("1e-4 * tokens + (7.5e-5 if batch > 0.0 else 0.0)", 1)
    rules = RULES._replace(seats=1, capacity=10**9, budget=10**6, chunk=10**6)
    pools = PrefillDecodePools(prefill=1, decode=1, transfer_s=lambda prompt: transfer + 0.0 * prompt)
    run, before = split(traffic, made, rules, pools, how="plain")
    service = (1e-4 * length, 7.5e-5 * length)
    wanted = float(mmc_wait_s(rate, service[0], 1)) + service[0] + transfer + float(mmc_wait_s(rate, service[1], 1))
    ttft = (run.first - run.arrival)[count // 20 :]
    error = float(ttft.reshape(40, -1).mean(axis=1).std(ddof=1)) / np.sqrt(40)
    assert error < 0.05 * wanted
    assert abs(ttft.mean() - wanted) < 3.5 * error
    assert (run.first >= before.finish + transfer - 1e-9).all()


def test_disaggregated__refused_request_takes_no_prefill_time() -> None:
    pools = PrefillDecodePools(prefill=1, decode=1, transfer_s=lambda prompt: 0.0 * prompt)
    run, _ = split(Traffic.of([0.0, 0.001], [100, 10], [500, 5]), pace("0.1"), RULES._replace(seats=1, capacity=20), pools, how="plain")
    assert run.refused.tolist() == [True, False]
    assert run.first[1] == pytest.approx(0.101)


def test_occupancy__requests_loading_a_prefix_are_in_service() -> None:
    ids, length = np.array([1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4]), 16
    start = np.array([0, 4, 8, 12])
    traffic = Traffic.of([0.0, 10.0, 20.0], length, 2, blocks=ids, block_start=start, block_tokens=4)
    prefix = Prefix(below=parse_tiers("ddr:1GB@0.5GB/s"), ttl=np.inf, names=("hbm", "ddr"))
    rules = RULES._replace(capacity=10, block=2, caching=1, block_tokens=4, block_bytes=1e6)
    run = simulate(traffic, pace("0.01 + 1e-4 * batch + 1e-3 * tokens"), rules, prefix=prefix, how="plain")
    assert results.occupancy(run)["running_mean"] * run.end == pytest.approx((run.finish - run.scheduled).sum())


def test_step_time__host_overhead_is_in_every_step() -> None:
    """One millisecond more of it is one millisecond more for each iteration of a busy replica."""
    traffic = Traffic.of(np.zeros(50), 100, 40)
    bare, more = (play(traffic, f"{host!r} + 0.002 + 1e-5 * tokens") for host in (0.0, 0.001))
    assert bare.total_count(of.STEPS) == more.total_count(of.STEPS)
    assert more.finish.max() - bare.finish.max() == pytest.approx(0.001 * bare.total_count(of.STEPS))
    assert more.total(of.BUSY) == pytest.approx(more.finish.max())


@pytest.mark.parametrize("engine", ["none", "vllm", "trtllm", "sglang"])
@pytest.mark.parametrize(
    ("model", "system", "layout"),
    [
        ("llama-3.1-70b", "8xh100-sxm", Layout(tp=8)),
        ("deepseek-v3", "gb200-nvl72", Layout(tp=1, ep=64, dp=64)),
        ("gpt-oss-120b", "8xb200", Layout(tp=4)),
    ],
)
def test_step_time__never_below_the_floor_of_the_chip(model: str, system: str, layout: Layout, engine: str) -> None:
    traffic = Traffic.of([0.0], 4000, 1000)
    made = real(model, system, layout, traffic, engine=engine)
    assert made.pace and made.pace.floor
    rng = np.random.default_rng(3)
    for _ in range(200):
        batch, tokens = float(rng.integers(0, 300)), float(rng.integers(1, 9000))
        point = (batch, batch * float(rng.integers(1, 30_000)), tokens, tokens * float(rng.integers(1, 20_000)))
        prompts = float(rng.integers(1, 9))
        assert made.pace.step(*point, prompts) >= float(made.pace.floor(*point, prompts)) * (1 - 1e-12)


def near(load: float, count: int = 6000) -> tuple[SimulatedRun, saturation.Saturation]:
    """One server of 20 ms at a load, and where it stands."""
    arrival = np.cumsum(np.random.default_rng(4).exponential(0.02 / load, count))
    rules = RULES._replace(seats=1)
    traffic = Traffic.of(arrival, 1, 1)
    run = simulate(traffic, pace("0.02", 1), rules, how="plain")
    return run, saturation.stand(run, saturation.capacity(traffic, pace("0.02", 1), rules, 1, "plain"))


@pytest.mark.parametrize("load", [0.5, 0.9, 0.97])
def test_utilisation__interval_widens_near_saturation(load: float) -> None:
    run, stands = near(load)
    assert stands.capacity and stands.capacity.per_s == pytest.approx(50.0, rel=0.01)
    assert stands.utilisation == pytest.approx(load, rel=0.03)
    row = results.latencies(run, results.measured(run, 0.1))
    share = row["mean_queue_ci_s"] / row["mean_queue_s"]
    assert share < 0.15 if load < 0.8 else share > 0.15
    if load < 0.95:
        assert abs(row["mean_queue_s"] - float(md1_wait_s(load * 50, 0.02))) < 2 * row["mean_queue_ci_s"]


def test_overload__row_has_queue_growth_and_no_latencies() -> None:
    made = real("llama-3.1-70b", "8xh100-sxm", Layout(tp=8), Traffic.of([0.0], 500, 20))
    assert made.pace
    arrival, rules = np.cumsum(np.random.default_rng(5).exponential(1.0, 3000)), made.scheduler.rules
    able = saturation.capacity(Traffic.of(arrival, 500, 20), made.pace, rules, 1, "plain")
    assert able
    rows = {}
    for load in (0.7, 0.97, 1.3):
        run = simulate(Traffic.of(arrival / (able.per_s * load), 500, 20), made.pace, rules, how="plain")
        verdict = Verdict(standing=saturation.stand(run, able), hits=None, requests=len(arrival))
        rows[load] = results.row(made, run, verdict, {}, 0.1, True)
        assert rows[load]["utilisation"] == pytest.approx(load, rel=0.06)
        assert rows[load]["capacity_req_per_s"] == able.per_s
    assert rows[0.7]["stable"] and rows[0.7]["p99_ttft_s"] > 0
    assert not rows[1.3]["stable"]
    told = [f"{key}_{name}_s" for key in ("mean", "p50", "p99") for name in ("ttft", "tpot", "itl", "e2e", "queue")]
    assert [rows[1.3][key] for key in told] == [None] * len(told)
    assert rows[1.3]["queue_growth_per_s"] == pytest.approx(0.3 * able.per_s, rel=0.25)

"""Plans with prefill apart at a load: alone on them a request takes the law's time, a saved plan plays as it was checked, limits hold."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headway.performance.layout import Layout
from headway.performance.workload import Load
from headway.serving.pools import estimate_pools, hand_over_link
from headway.simulation.check.offered import OfferedTraffic
from headway.simulation.check.plays import Candidate, candidate, playable
from headway.simulation.traffic.distributions import parse_lengths
from support.command import Cli

PROMPT, OUTPUT = parse_lengths("4000", "prompt"), parse_lengths("200", "output", answers=True)
SPLIT = Layout(tp=2, pp=2, replicas=2), Layout(tp=4, replicas=3)
ASK = "plan llama-3.1-8b --on l40s --rate 12 --prompt 2k --output 150 --ttft-p95 2s --tpot-p95 60ms --kv bf16 --disaggregate"


def split(prefill: Layout, decode: Layout) -> Candidate:
    on = candidate("llama-3.1-70b", "4x8xh100-sxm", decode, prompt=4000, output=200)
    return replace(on, prefill=prefill)


@pytest.mark.parametrize(("prefill", "decode"), [SPLIT, (Layout(tp=8, replicas=1), Layout(tp=4, replicas=1))])
def test_pools__alone_a_request_takes_the_time_of_the_law(prefill: Layout, decode: Layout) -> None:
    pools = split(prefill, decode)
    alone = playable(pools, OfferedTraffic(users=1, prompt=PROMPT, output=OUTPUT), 5, (0,), "plain").play().latencies
    case = pools.query.at(decode, Load(prompt=4000, output=200, batch=1))
    row = estimate_pools(case, prefill, hand_over_link(case.system))
    assert alone.of("ttft") == pytest.approx(row["ttft_unloaded_s"], rel=1e-9)
    assert alone.of("tpot") == pytest.approx(row["tpot_s"], rel=1e-6)


def test_pools__layouts_of_their_own_change_what_is_played() -> None:
    """More chips for a prompt shorten the first token and leave the time between tokens as it is."""
    offered = OfferedTraffic(rate=4.0, prompt=PROMPT, output=OUTPUT)
    slow, fast = (playable(split(Layout(tp=tp, replicas=2), SPLIT[1]), offered, 400, (0,), "plain").play().latencies for tp in (4, 8))
    assert fast.of("ttft").mean() < 0.7 * slow.of("ttft").mean()
    assert fast.of("tpot").mean() == pytest.approx(slow.of("tpot").mean(), rel=0.02)


@pytest.mark.parametrize(("prefill", "rate"), [(Layout(tp=2, pp=2, replicas=2), 5.0), (Layout(tp=4, replicas=2), 5.0),
                                               (Layout(tp=8, replicas=2), 7.0)])  # fmt: skip
def test_pools__row_at_a_rate_is_near_the_play(prefill: Layout, rate: float) -> None:
    """Law of the mean at half the capacity, where queues are short."""
    pools = split(prefill, SPLIT[1])
    case = pools.query.at(SPLIT[1], Load(prompt=4000, output=200, rate=rate))
    row = estimate_pools(case, prefill, hand_over_link(case.system))
    play = playable(pools, OfferedTraffic(rate=rate, prompt=PROMPT, output=OUTPUT), 1500, (0,), "plain").play()
    assert play.stable and 0.3 < row["utilisation"] < 0.75
    assert play.latencies.of("tpot").mean() == pytest.approx(row["tpot_s"], rel=0.02)
    assert play.latencies.of("ttft").mean() == pytest.approx(row["ttft_s"], rel=0.15)


@pytest.mark.parametrize(("prefill", "users"), [(Layout(tp=4, replicas=2), 12), (Layout(tp=2, pp=2, replicas=2), 40), (Layout(tp=8), 60)])
def test_pools__row_of_users_is_near_the_play(prefill: Layout, users: int) -> None:
    """Users who wait for their answers, ten requests each, from few to so many that prompts hold all of them up."""
    pools = split(prefill, SPLIT[1])
    case = pools.query.at(SPLIT[1], Load(prompt=4000, output=200, batch=users / int(SPLIT[1].replicas)))
    row = estimate_pools(case, prefill, hand_over_link(case.system))
    play = playable(pools, OfferedTraffic(users=users, prompt=PROMPT, output=OUTPUT), 10 * users, (0,), "plain").play()
    assert play.latencies.of("tpot").mean() == pytest.approx(row["tpot_s"], rel=0.05)
    assert play.latencies.of("ttft").mean() == pytest.approx(row["ttft_s"], rel=0.25)
    assert row["concurrency"] == users and row["e2e_s"] * row["capacity_req_per_s"] == pytest.approx(users, rel=0.1)


def test_pools__scaled_steps_are_scaled_in_both_pools() -> None:
    """At a factor on every step the whole play is as with steps so much longer, but for the transfer and the engine's own work."""
    pools = split(*SPLIT)
    scene = playable(pools, OfferedTraffic(users=1, prompt=PROMPT, output=OUTPUT), 3, (0,), "plain")
    once, twice = (scene.play(factor).latencies for factor in (1.0, 2.0))
    case = pools.query.at(SPLIT[1], Load(prompt=4000, output=200, batch=1))
    rest = estimate_pools(case, SPLIT[0], hand_over_link(case.system))["transfer_s"] + scene.fleet.scheduler.overhead_s
    assert twice.of("tpot") == pytest.approx(2 * once.of("tpot"))
    assert twice.of("ttft") - rest == pytest.approx(2 * (once.of("ttft") - rest))


@pytest.fixture(scope="module")
def saved(tmp_path_factory: Any) -> tuple[Path, dict[str, Any]]:
    path = tmp_path_factory.mktemp("plans") / "pools.json"
    answer = Cli().json(ASK)
    path.write_text(json.dumps(answer), encoding="utf-8")
    return path, answer


def test_plan__pools_at_a_rate_hold(saved: Any) -> None:
    _, answer = saved
    best = answer["rows"][0]
    assert best["kind"] == "best" and best["prefill_replicas"] >= 1 and best["confidence"] >= 0.8
    assert best["chips"] >= best["prefill_chips"] + best["decode_chips"] and best["rate"] == 12.0
    assert answer["checked"]["stable"] and all(limit["met"] for limit in answer["checked"]["limits"])


def test_sim_plan__pools_play_as_they_were_checked(saved: Any, cli: Cli) -> None:
    path, answer = saved
    checked, best = answer["checked"], answer["rows"][0]
    (row,) = cli.json(f"sim --plan {path} --requests {checked['requests']} --loop plain")["rows"]
    assert row["limits_met"]
    for limit in checked["limits"]:
        column = {"--ttft-p95": "p95_ttft_s", "--tpot-p95": "p95_tpot_s"}[limit["limit"]]
        assert row[column] == pytest.approx(limit["simulated_s"], rel=1e-9)
    assert [row[f"prefill_{name}"] for name in ("tp", "pp", "replicas")] == [best[f"prefill_{name}"] for name in ("tp", "pp", "replicas")]


def test_plan__trace_on_pools(cli: Cli, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    lines = [f"{time:.3f},{prompt},{output}" for time, prompt, output in
             zip(np.cumsum(rng.exponential(0.2, 400)), rng.integers(200, 4000, 400), rng.integers(20, 300, 400), strict=True)]  # fmt: skip
    trace = tmp_path / "trace.csv"
    trace.write_text("\n".join(["arrival_s,prompt,output", *lines]), encoding="utf-8")
    answer = cli.json(f"plan llama-3.1-8b --on l40s --trace {trace} --ttft-p95 2s --tpot-p95 60ms --kv bf16 --disaggregate")
    best = answer["rows"][0]
    assert best["prefill_replicas"] >= 1 and best["confidence"] >= 0.8 and answer["checked"]["requests"] == 400

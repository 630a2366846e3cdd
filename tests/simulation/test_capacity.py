"""Capacity of a whole traffic, with its error; stable or not; and the rate that --find prints, played again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from headway.simulation import capacity as saturation
from headway.simulation.capacity import capacity, stand
from headway.simulation.simulate import simulate
from headway.simulation.traffic.requests import Traffic
from support.command import Cli
from support.simulated import RULES, pace

NOISY = ("wall_s", "compile_s", "kind", "rate_lo", "rate_hi", "seeds", "replay_requests", "replay_difference")


def heavy(count: int, seed: int = 0) -> tuple[Any, Any]:
    """Prompts and outputs with long tails."""
    rng = np.random.default_rng(seed)
    return rng.lognormal(5, 1, count).astype(int) % 3000 + 1, rng.lognormal(2.5, 1, count).astype(int) % 400 + 1


def test_capacity__of_one_server_is_one_over_its_service_time() -> None:
    able = capacity(Traffic.of(np.arange(50.0), 1, 1), pace("0.02", 1), RULES._replace(seats=1), 1, "plain")
    assert able and able.per_s == pytest.approx(50.0, rel=1e-9)
    assert able.half_width == pytest.approx(0.0, abs=1e-6)


def test_capacity__of_one_server_with_drawn_lengths_is_one_over_their_mean() -> None:
    """One seat, one step a token, a prompt in one step: `output` steps of 10 ms a request, in any order."""
    lengths = np.random.default_rng(3).geometric(1 / 20, 3000)
    able = capacity(Traffic.of(np.zeros(3000), 1, lengths), pace("0.01", 1), RULES._replace(seats=1), 1, "plain")
    exact = 1 / (0.01 * lengths.mean())
    assert able and abs(able.per_s - exact) < max(able.half_width, 0.005 * exact)


@pytest.mark.parametrize("seats", [4, 32])
def test_capacity__of_bulk_service_is_the_bulk_over_its_time(seats: int) -> None:
    """Answers of one token: every step serves as many as there are seats, whatever its time."""
    able = capacity(Traffic.of(np.zeros(100), 1, 1), pace("0.03 + 0.001 * tokens", seats), RULES._replace(seats=seats), 2, "plain")
    assert able and able.per_s == pytest.approx(2 * seats / (0.03 + 0.001 * seats), rel=0.005)


def test_capacity__same_requests_in_three_orders() -> None:
    prompt, output = heavy(40_000)
    up = np.lexsort((output, prompt))
    found = [
        capacity(Traffic.of(np.zeros(40_000), prompt[rows], output[rows]), pace("0.01 + 1e-5 * tokens"), RULES, 1, "auto")
        for rows in (np.arange(40_000), up, up[::-1])
    ]
    assert found[0] and found[0].per_s > 0
    assert found[0] == found[1] == found[2]


def test_capacity__of_a_traffic_longer_than_its_sample_in_two_orders() -> None:
    prompt, output = heavy(saturation.LOOKED_AT + 50_000)
    up = np.lexsort((output, prompt))
    found = [
        capacity(Traffic.of(np.zeros(len(rows)), prompt[rows], output[rows]), pace("0.01 + 1e-5 * tokens"), RULES, 1, "auto")
        for rows in (np.arange(len(up)), up)
    ]
    assert found[0] and found[1] and found[0].per_s == pytest.approx(found[1].per_s, rel=0.02)


def test_capacity__interval_contains_a_long_saturated_run() -> None:
    prompt, output = heavy(5000, 5)
    step = pace("0.01 + 1e-5 * tokens + 1e-7 * context")
    able = capacity(Traffic.of(np.zeros(5000), prompt, output), step, RULES, 1, "auto")
    again = np.concatenate([np.random.default_rng(seed).permutation(5000) for seed in range(8)])
    run = simulate(Traffic.of(np.zeros(len(again)), prompt[again], output[again]), step, RULES, how="auto")
    long = 6 * 5000 / float(run.scheduled[7 * 5000] - run.scheduled[5000])
    assert able and abs(able.per_s - long) < max(1.3 * able.half_width, 0.01 * long)
    assert able.half_width < 0.05 * able.per_s


def verdicts(seed: int, times: tuple[int, ...], traits: tuple[float, int, int, int, int]) -> list[saturation.Saturation]:
    """Where a random open queue stands at several lengths; its traits are utilisation, requests, seats, mean answer, and 1 for bursts."""
    share, count, seats, mean, bursty = traits
    rules, step = RULES._replace(seats=seats), pace("0.01 + 1e-4 * tokens", seats)
    able = capacity(Traffic.of(np.zeros(2000), 20, np.random.default_rng(9).geometric(1 / mean, 2000)), step, rules, 1, "plain")
    assert able
    stands = []
    for longer in times:
        rng, number = np.random.default_rng([seed, longer]), longer * count
        gaps = rng.gamma(0.25, 4.0, number) if bursty else rng.exponential(1.0, number)
        traffic = Traffic.of(np.cumsum(gaps) / (share * able.per_s), 20, rng.geometric(1 / mean, number))
        stands.append(stand(simulate(traffic, step, rules, how="plain"), able, rate=share * able.per_s))
    return stands


def test_stable__as_a_run_ten_times_longer_says() -> None:
    draw = np.random.default_rng(11)
    for number in range(30):
        share, count, seats, mean = float(draw.uniform(0.4, 1.6)), *map(int, draw.integers([150, 1, 2], [400, 12, 20]))
        short, longer = verdicts(number, (1, 10), (share, count, seats, mean, number % 2))
        assert short.stable == longer.stable == (share <= 1.0), (share, count, seats, mean)
        assert (short.growth > 0) == (not short.stable)


@pytest.mark.parametrize("share", [0.5, 0.9, 0.97, 0.999, 1.001, 1.02, 1.3])
def test_growth__never_against_the_verdict(share: float) -> None:
    [stands] = verdicts(1, (3,), (share, 300, 8, 10, 0))
    assert stands.stable == (share <= 1.0)
    assert (stands.growth > 0) == (not stands.stable)


def test_stable__trace_whose_second_half_is_above_the_capacity_is_overloaded() -> None:
    """Short answers first, long ones last: 70 % of the capacity over the whole, and a queue that grows to the end."""
    lengths = np.sort(np.random.default_rng(2).geometric(1 / 20, 4000))
    rules, step = RULES._replace(seats=1), pace("0.01", 1)
    able = capacity(Traffic.of(np.zeros(4000), 1, lengths), step, rules, 1, "plain")
    assert able
    for rows, stable in ((np.arange(4000), False), (np.random.default_rng(3).permutation(4000), True)):
        run = simulate(Traffic.of(np.arange(4000) / (0.7 * able.per_s), 1, lengths[rows]), step, rules, how="plain")
        stands = stand(run, able)
        assert stands.utilisation == pytest.approx(0.7, rel=0.001)
        assert stands.stable == stable
        assert (stands.growth > 0) == (not stable)


FIND = "sim llama-3.1-8b --on h200 --requests 200 --seeds 1 --loop plain"


@pytest.mark.parametrize(
    ("traffic", "limits"),
    [
        ("--prompt 500 --output 50", "p99_tpot_s=1s"),
        ("--prompt lognormal:1k,1 --output uniform:20,80 --arrivals bursty:2 --seed 3", "p99_ttft_s=300ms"),
        pytest.param("--prompt 500 --output 50 --turns 3,1s --prefix-cache hbm:20GB", "p99_ttft_s=200ms", marks=pytest.mark.slow),
    ],
)
def test_find_rate__typed_again_gives_the_same_figures(traffic: str, limits: str, cli: Cli) -> None:
    found = cli.json(f"{FIND} {traffic} --find rate --so-that {limits}")["rows"][0]
    asked = FIND.replace(" --seeds 1", "").replace("--requests 200", f"--requests {found['requests']}")
    [again] = cli.json(f"{asked} {traffic} --rate {found['rate']:.3g} --sensitivity 0")["rows"]
    assert found["kind"] == "found" and found["stable"]
    assert {key: value for key, value in found.items() if key not in NOISY} == {
        key: value for key, value in again.items() if key not in NOISY
    }
    assert found["utilisation"] <= 1.0


def test_find_rate__of_a_trace_typed_again_gives_the_same_figures(cli: Cli, tmp_path: Any) -> None:
    path, rng = tmp_path / "trace.csv", np.random.default_rng(4)
    lines = [
        f"{time:.3f},{prompt},30" for time, prompt in zip(np.cumsum(rng.exponential(1, 150)), rng.integers(100, 4000, 150), strict=True)
    ]
    path.write_text("\n".join(["arrival_s,prompt,output", *lines]) + "\n", encoding="utf-8")
    asked = f"sim llama-3.1-8b --on h200 --trace {path} --loop plain"
    found = cli.json(f"{asked} --find rate --so-that p99_ttft_s=300ms")["rows"][0]
    [again] = cli.json(f"{asked} --rate {found['rate']:.3g} --sensitivity 0")["rows"]
    assert {key: value for key, value in found.items() if key not in NOISY} == {
        key: value for key, value in again.items() if key not in NOISY
    }


def test_find_rate__users_who_give_up_make_no_room_above_the_capacity(cli: Cli) -> None:
    found = cli.json(f"{FIND} --prompt 2k --output 100 --patience 1s --find rate --so-that p99_ttft_s=10s")["rows"][0]
    assert found["utilisation"] <= 1.0


def test_find_rate__interval_over_seeds_contains_the_rate(cli: Cli) -> None:
    asked = f"{FIND.replace('--seeds 1', '--seeds 3')} --prompt lognormal:1k,1 --output 50 --find rate --so-that p99_ttft_s=300ms"
    found = cli.json(asked)["rows"][0]
    assert found["seeds"] == 3
    assert found["rate_lo"] <= found["rate"] <= found["rate_hi"]
    assert found["rate_lo"] < found["rate_hi"]


def test_prefix_cache__size_of_hbm_is_told_or_refused(cli: Cli, capsys: pytest.CaptureFixture[str]) -> None:
    from headway.cli.main import main

    asked = "sim llama-3.1-8b --on h100 --turns 3,1s --rate 2 --prompt 500 --output 20 --requests 50 --loop plain --prefix-cache"
    for size, told in (("20GB", "in place of"), ("600GB", "more than there is")):
        assert any(told in note for note in cli.json(f"{asked} hbm:{size}")["notes"])
    assert not any("KV cache" in note for note in cli.json(f"{asked} ddr:1TB")["notes"])
    assert main(f"{asked} hbm:1kB".split()) == 2
    assert "room for a block" in capsys.readouterr().err

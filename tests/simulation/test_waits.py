"""Who waits, tails of the wait, and the spread of the batch, against M/M/1, M/G/1, Erlang's C and batch service."""

from __future__ import annotations

import math

import numpy as np
import pytest

from headway.cli.main import main
from headway.simulation import results
from headway.simulation.traffic.requests import Traffic
from reference.queueing import erlang_c
from support.command import Cli
from support.simulated import play as play_few
from support.steady import BEAT, COUNT, FAST, play, random, wait

ASKED = "sim llama-3.1-8b --on h100-sxm --rate 20 --prompt 500 --output 50 --requests 300 --loop plain --sensitivity 0"
PART = 0.01 if FAST else 0.03  # of a share


@pytest.mark.parametrize("load", [0.3, 0.8])
def test_wait_share__load_of_one_server(load: float) -> None:
    """M/G/1: who comes while the server is busy waits, whatever the services: a share equal to the load."""
    lengths = np.random.default_rng(3).choice([1, 300], COUNT, p=[0.8, 0.2])
    each = BEAT / (0.8 + 0.2 * 300)
    run = play(Traffic.of(random(load / BEAT, 4), lengths, 1), f"{each!r} * tokens", seats=1)
    found = results.latencies(run, results.measured(run, 0.05))
    assert found["wait_share"] == pytest.approx(load, abs=PART)


def test_percentiles__of_the_wait_in_mm1() -> None:
    """M/M/1: P(wait > t) is load * exp(-(service rate - arrival rate) t)."""
    load, mean = 0.7, 200
    lengths = np.random.default_rng(5).geometric(1 / mean, COUNT)
    run = play(Traffic.of(random(load / BEAT, 6), lengths, 1), f"{BEAT / mean!r} * tokens", seats=1)
    found = results.latencies(run, results.measured(run, 0.05), (75.0, 99.0, 99.9))
    for percent, key in ((75.0, "p75_queue_s"), (99.0, "p99_queue_s"), (99.9, "p99_9_queue_s")):
        exact = BEAT / (1 - load) * math.log(load / (1 - percent / 100))
        assert found[key] == pytest.approx(exact, rel=0.08 if percent > 99 else 0.04 if FAST else 0.25), key
    assert found["max_queue_s"] == wait(run)[len(run.arrival) // 20 :].max()


@pytest.mark.parametrize(("seats", "load"), [(10, 0.8), (3, 0.6)])
def test_queued_share__erlang_c_where_seats_are_servers(seats: int, load: float) -> None:
    """All wait for the end of a step, few for a seat: those are Erlang's."""
    service, tokens = 0.2, 4000
    rate = load * seats / service
    count = max(COUNT // 2, 30_000)
    traffic = Traffic.of(random(rate, 7, count), 1, np.random.default_rng(8).geometric(1 / tokens, count))
    run = play(traffic, f"{service / tokens!r}", seats=seats)
    share = results.queued_share(run)
    assert share == pytest.approx(float(erlang_c(rate, service, seats)), abs=0.02)
    assert share == pytest.approx(float((wait(run) > service / tokens).mean()), abs=2e-3)  # a step is a constant: the requests say the same


@pytest.mark.parametrize("seats", [1, 4])
def test_queued_share__one_request_at_a_time_and_a_burst(seats: int) -> None:
    """Ten requests at once: all but the first `seats` are passed over."""
    run = play_few(Traffic.of(np.zeros(10), 1, 30), "0.01", seats=seats)
    assert results.queued_share(run) == pytest.approx(1 - seats / 10)


@pytest.mark.parametrize("load", [0.2, 1.0, 5.0])
def test_batches__poisson_where_a_step_takes_all_who_wait(load: float) -> None:
    """A step takes all who came during the last; after none came, the one who comes next: max(1, Poisson), each drawn anew."""
    run = play(Traffic.of(random(load / BEAT, 9, COUNT // 2), 1, 1), f"{BEAT}")
    found = results.batches(run, (50.0, 99.0))
    shares = np.exp(-load + np.arange(60) * np.log(load) - np.array([math.lgamma(k + 1) for k in range(60)]))
    shares[1] += shares[0]
    shares[0] = 0.0
    mean = load + math.exp(-load)
    assert found["mean_batch"] == pytest.approx(mean, rel=0.01 if FAST else 0.04)
    assert found["std_batch"] == pytest.approx(math.sqrt(load + load**2 - mean**2 + math.exp(-load)), rel=0.02 if FAST else 0.1)
    for percent in (50, 99):
        near = np.searchsorted(shares.cumsum(), [percent / 100 - PART / 2, percent / 100 + PART / 2])
        assert near[0] <= found[f"p{percent}_batch"] <= near[1]


def bulk_shares(mean: float, seats: int, most: int = 400) -> np.ndarray:
    """Shares of batch sizes of M/D^(1,b)/1, from the stationary queue that a step leaves behind: brute force over its states."""
    came = np.exp(-mean + np.arange(most) * np.log(mean) - np.array([math.lgamma(k + 1) for k in range(most)]))
    change = np.zeros((most, most))
    for before in range(most):
        for_next = max(before - seats, 0)  # who stays behind a full step; an empty system is entered by the first to come
        change[before, for_next:] = came[: most - for_next]
    share = np.full(most, 1 / most)
    for _ in range(4000):
        share = share @ change
        share /= share.sum()
    sizes = np.zeros(seats + 1)
    for waiting, part in enumerate(share):
        sizes[min(max(waiting, 1), seats)] += part
    return sizes


@pytest.mark.parametrize(("seats", "load"), [(4, 0.5), (4, 0.9), (8, 0.7)])
def test_batches__of_bulk_service_with_a_limit(seats: int, load: float) -> None:
    """M/D^(1,b)/1: a step takes at most so many."""
    exact = bulk_shares(load * seats, seats)
    run = play(Traffic.of(random(load * seats / BEAT, 10, COUNT), 1, 1), f"{BEAT}", seats=seats)
    steps = np.sum([np.asarray(state.batches) for state in run.states], axis=0)
    assert np.abs(steps / steps.sum() - exact).max() < (0.005 if FAST else 0.03)
    assert results.batches(run)["max_batch"] == seats


def test_batches__prompts_beside_decodes_and_before_them() -> None:
    """Two requests at once, the second in its prompt while the first decodes, or, prefill first, alone in its step."""
    traffic = Traffic.of([0.0, 0.015], 1, 4)
    beside, before = (play_few(traffic, "0.01", seats=4, mixed=mixed) for mixed in (1, 0))
    assert list(beside.states[0].batches[:3]) == [0, 4, 2]
    assert list(before.states[0].batches[:3]) == [0, 4, 2]  # the prompt of the second in a step of its own
    assert results.occupancy(before)["decode_batch_mean"] == pytest.approx(6 / 4)  # six decodes in four steps


def test_percentiles__chosen_ones_are_columns_and_limits(cli: Cli, capsys: pytest.CaptureFixture[str]) -> None:
    [row] = cli.rows(f"{ASKED} --percentiles 12.5,99.9")
    assert row["p12_5_ttft_s"] < row["p50_ttft_s"] < row["p99_9_ttft_s"] <= row["max_ttft_s"]
    assert main(f"{ASKED} --percentiles 12.5,99.9".split()) == 0
    printed = capsys.readouterr().out
    assert "p12.5 TTFT" in printed and "p99.9 ITL" in printed
    assert "p99 TTFT  " not in printed
    [found, *_] = cli.rows(f"{ASKED} --find rate --so-that p99_5_e2e_s=2s".replace(" --rate 20", ""))
    assert found["p99_5_e2e_s"] <= 2.0


@pytest.mark.parametrize("wrong", ["0.99", "101", "p99"])
def test_percentiles__wrong_ones_are_refused(capsys: pytest.CaptureFixture[str], wrong: str) -> None:
    assert main(f"{ASKED} --percentiles {wrong}".split()) == 2
    assert "--percentiles" in capsys.readouterr().err

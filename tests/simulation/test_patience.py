"""Users who give up: by hand, against queues with impatient customers and losses, and what becomes of what they leave behind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from headway.simulation import results
from headway.simulation import state as of
from headway.simulation.fleet import PrefillDecodePools, split
from headway.simulation.simulate import SimulatedRun, simulate
from headway.simulation.step_time import pace_from
from headway.simulation.traffic.requests import Traffic
from reference.queueing import erlang_b, impatient_share, mmc_wait_s
from support.simulated import RULES, STEP, pace
from support.steady import HOW, random

LENGTH = 4000  # tokens of an exponential service: so many that a step is nothing
COUNT = 60_000 if HOW == "compiled" else 12_000


def play(traffic: Traffic, formula: str, patience: Any, how: str = "plain", **changes: Any) -> SimulatedRun:
    rest = {key: changes.pop(key) for key in ("users", "think", "replicas", "routing", "overhead_s") if key in changes}
    rules = RULES._replace(**changes)
    return simulate(traffic, pace_from(STEP.format(formula), rules.seats, 4096.0), rules, how=how, patience=patience, **rest)


def queue(rate: float, service: float, servers: int, patience: float | None, seed: int = 30) -> SimulatedRun:
    """Seats as servers, whose users wait for their first step for so long."""
    lengths = np.random.default_rng(seed + 1).geometric(1 / LENGTH, COUNT)
    room = {"seats": servers, "capacity": 10**9, "budget": 10**6, "chunk": 10**6}
    return play(Traffic.of(random(rate, seed, COUNT), 1, lengths), f"{service / LENGTH!r}", patience, HOW, **room)


def share_left(run: SimulatedRun) -> tuple[float, float]:
    """Share of requests whose users gave up, and its standard error by batch means."""
    gone = np.isfinite(run.abandonment)[COUNT // 20 :]
    means = gone[: len(gone) // 40 * 40].reshape(40, -1).mean(axis=1)
    return float(means.mean()), float(means.std(ddof=1) / np.sqrt(40))


@pytest.mark.parametrize(("load", "servers", "patience"), [(0.8, 1, 0.1), (1.0, 1, 0.3), (1.5, 1, 0.2), (0.9, 4, 0.05), (1.3, 8, 0.1)])
def test_patience__share_abandoned_in_mmc_with_deadline(load: float, servers: int, patience: float) -> None:
    """M/M/c+D (Barrer 1957), below capacity and above it."""
    service = 0.2
    run = queue(load * servers / service, service, servers, patience)
    share, error = share_left(run)
    assert error < 0.05 * share
    assert share == pytest.approx(float(impatient_share(load * servers / service, service, servers, patience)), abs=3.5 * error)


@pytest.mark.parametrize(("load", "servers"), [(0.8, 1), (1.2, 6)])
def test_patience__none_is_an_erlang_b_loss_system(load: float, servers: int) -> None:
    """Erlang B: whoever does not begin at once is lost; two steps are the least in which a first token can come."""
    service = 0.2
    run = queue(load * servers / service, service, servers, 2.0 * service / LENGTH)
    share, error = share_left(run)
    assert share == pytest.approx(float(erlang_b(load * servers / service, service, servers)), abs=3.5 * error + 2e-3)


def test_patience__infinite_changes_nothing() -> None:
    rate, service = 4.0, 0.2
    patient, endless = queue(rate, service, 1, None), queue(rate, service, 1, 1e6)
    for key in ("scheduled", "first", "finish"):
        assert np.array_equal(getattr(patient, key), getattr(endless, key))
    assert patient.abandonment is None and np.isnan(endless.abandonment).all()
    assert float(impatient_share(rate, service, 1, 1e6)) == pytest.approx(0.0, abs=1e-12)
    assert (endless.scheduled - endless.arrival).mean() == pytest.approx(float(mmc_wait_s(rate, service, 1)), rel=0.2)


def test_patience__abandons_in_queue_and_in_prefill_by_hand() -> None:
    """Prompts of ten tokens, one a step: the second has waited 4.5 s at the end of a step, the third is in work when it has."""
    run = play(Traffic.of([0.0, 0.5, 9.0, 9.5], [10, 10, 10, 1], 1), "1.0", [99.0, 4.5, 4.5, 9.0], budget=1, chunk=1)
    assert run.finish[0] == 10.0
    assert run.abandonment[1] == 5.0 and np.isnan(run.scheduled[1])
    assert run.scheduled[2] == 10.0 and run.abandonment[2] == 13.5
    assert run.finish[3] == 15.0  # from the end of the step in which the third was given up
    assert run.total(of.PREFILLED) == 10 + 4 + 1
    assert run.total(of.EMITTED) == 2.0
    assert run.cancelled.tolist() == [False, True, True, False]
    row = results.run_rates(run)
    assert (row["completed"], row["cancelled"], row["rejected"]) == (2, 2, 0)


def test_patience__ends_with_the_first_token() -> None:
    run = play(Traffic.of([0.0], 4, 100), "1.0", 1.0)
    assert run.completed.all() and run.first[0] == 1.0
    assert not play(Traffic.of([0.0], 4, 100), "1.0", 0.999).completed.any()


def test_patience__includes_engine_overhead() -> None:
    """Half a second of it, and a step of one: patience for one and a half is just enough."""
    traffic = Traffic.of([0.0, 10.0], 4, 2)
    assert play(traffic, "1.0", 1.5, overhead_s=0.5).completed.all()
    short = play(traffic, "1.0", 1.4, overhead_s=0.5)
    assert short.abandonment == pytest.approx(traffic.arrival + 1.4)


def test_patience__abandoned_requests_free_their_blocks() -> None:
    rng = np.random.default_rng(5)
    traffic = Traffic.of(np.cumsum(rng.exponential(0.02, 400)), rng.integers(1, 300, 400), rng.integers(2, 60, 400))
    ways: tuple[dict[str, Any], ...] = ({}, {"mixed": 0}, {"swap": 100, "copy_s": 0.001}, {"reserve": 1.0}, {"departures": 0.02})
    for changes in ways:
        run = play(traffic, "0.004 + 1e-4 * tokens", rng.exponential(1.0, 400), capacity=60, seats=16, budget=64, chunk=64, **changes)
        done, left = run.completed, np.isfinite(run.abandonment)
        assert (done ^ left).all() and 20 < left.sum() < 380
        assert run.total_count(of.ABANDONED) == left.sum()
        assert run.total(of.EMITTED) == traffic.output[done].sum()
        state = run.states[0]
        zero = (of.RUNNING, of.PARTIAL, of.QUEUED, of.HEAPED, of.PROMPT_BLOCKS, of.RESERVED, of.HOSTED)
        assert [state.count[element] for element in zero] == [0] * len(zero)
        waiting = np.where(np.isfinite(run.scheduled), run.scheduled, run.abandonment) - run.arrival
        if not run.total_count(of.PREEMPTED):
            seen = results.occupancy(run)["waiting_mean"]
            assert seen * float(state.at[of.NOW]) == pytest.approx(waiting.sum(), rel=1e-6)


def test_closed_loop__user_sends_the_next_request_after_abandoning() -> None:
    """One server for two users, who wait three seconds: the second leaves at 3, and again three seconds after each time it asks."""
    run = play(Traffic.of(np.zeros(4), 1, 10), "1.0", 3.0, seats=1, users=2, think=np.full(4, 1.0))
    assert run.finish[0] == 10.0 and run.abandonment[1] == 3.0
    assert run.arrival.tolist() == [0.0, 0.0, 4.0, 8.0]
    assert run.abandonment[2] == 7.0
    assert run.finish[3] == 20.0


@pytest.mark.parametrize("routing", ["round-robin", "least-loaded"])
def test_patience__more_replicas_lose_fewer_requests(routing: str) -> None:
    rng = np.random.default_rng(6)
    traffic = Traffic.of(np.cumsum(rng.exponential(0.5, 2000)), 1, rng.geometric(1 / 50, 2000))
    lost = [int(np.isfinite(play(traffic, "0.01", 0.3, seats=1, replicas=n, routing=routing).abandonment).sum()) for n in (1, 2, 4)]
    assert lost[0] > lost[1] > lost[2]


def test_patience__disaggregated_spans_both_queues_and_the_transfer() -> None:
    pools = PrefillDecodePools(prefill=1, decode=1, transfer_s=lambda prompt: 0.5 + 0.0 * prompt)
    traffic = Traffic.of([0.0, 0.1, 0.2, 30.0], 10, [20, 2, 2, 2])
    run, _ = split(traffic, pace("1.0", 1), RULES._replace(seats=1), pools, how="plain", patience=2.5)
    assert run.first[0] == 1.5
    assert run.abandonment[1] == pytest.approx(2.6)  # prefilled at 2, handed over at 2.5, and the decode pool is taken
    assert run.abandonment[2] == pytest.approx(2.7)  # its prompt is still in work
    assert run.finish[3] == pytest.approx(32.5)
    assert run.cancelled.tolist() == [False, True, True, False]

"""The simulator's own loop against queues whose waits are known: one server, several, replicas, classes, closed loops, and Little's law."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from headway.simulation import capacity, results
from headway.simulation import state as of
from headway.simulation.traffic.requests import Traffic
from reference.queueing import batch_arrival_wait_s, congestion, erlang_c, growth_per_s, md1_wait_s, mg1_wait_s, mmc_wait_s
from support.steady import BEAT, COUNT, agrees, near, play, random, response, wait

pytestmark = pytest.mark.slow

# -- one server -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("load", "output"), [(0.3, 1), (0.6, 50), (0.8, 1), (0.8, 20), (0.95, 1)])
def test_queue_wait__md1_for_constant_service(load: float, output: int) -> None:
    """M/D/1: a prompt of one step, or an answer of so many."""
    rate, count = load / BEAT, (4 if load > 0.9 else 2 if load > 0.7 else 1) * COUNT // (1 if output == 1 else 2)
    run = play(Traffic.of(random(rate, 8, count), 1, output), f"{BEAT / output!r}", seats=1)
    agrees(wait(run), md1_wait_s(rate, BEAT), near(load))
    assert np.abs(run.finish - run.scheduled - BEAT).max() < 1e-6


def drawn(kind: str, count: int) -> tuple[Any, float, float]:
    """Lengths, and the mean and coefficient of variation of their distribution."""
    rng = np.random.default_rng(9)
    if kind == "geometric":
        return rng.geometric(1 / 200, count), 200.0, float(np.sqrt(1 - 1 / 200))
    if kind == "uniform":
        return rng.integers(1, 1000, count, endpoint=True), 500.5, float(np.sqrt((1000**2 - 1) / 12) / 500.5)
    return np.where(rng.random(count) < 0.1, 3000, 100), 390.0, float(np.sqrt(0.1 * 2610**2 + 0.9 * 290**2) / 390)


@pytest.mark.parametrize("part", ["prompt", "chunked prompt", "output"])
@pytest.mark.parametrize(("kind", "load"), [("geometric", 0.6), ("uniform", 0.75), ("two lengths", 0.5)])
def test_queue_wait__mg1_for_varied_service(kind: str, load: float, part: str) -> None:
    """M/G/1: prompts of varied length in one step or in chunks, or answers of varied length."""
    lengths, mean, cv = drawn(kind, COUNT)
    each = 1e-4
    rate = load / (mean * each)
    traffic = Traffic.of(random(rate, 10), *((1, lengths) if part == "output" else (lengths, 1)))
    law = f"{each}" if part == "output" else f"{each} * tokens"
    run = play(traffic, law, seats=1, **({"budget": 128, "chunk": 128} if part == "chunked prompt" else {}))
    agrees(wait(run), mg1_wait_s(rate, mean * each, cv))


@pytest.mark.parametrize(("together", "load"), [(4, 0.8), (9, 0.5), (2, 0.3)])
def test_queue_wait__batch_arrivals(together: int, load: float) -> None:
    rate = load / BEAT
    arrival = np.repeat(random(rate / together, 11, 2 * COUNT // together), together)
    agrees(wait(play(Traffic.of(arrival, 1, 1), f"{BEAT}", seats=1)), batch_arrival_wait_s(rate, BEAT, together))


def test_queue_wait__zero_for_even_arrivals() -> None:
    run = play(Traffic.of(np.arange(5000) * BEAT * 1.001, 1, 1), f"{BEAT}", seats=1)
    assert np.abs(wait(run)).max() < 1e-9


@pytest.mark.parametrize(("first", "second"), [(0.3, 0.4), (0.6, 0.2)])
def test_priority__waits_of_two_classes_follow_cobham(first: float, second: float) -> None:
    """Cobham 1954: two classes, none interrupted: the work that is found in service, over what the classes before leave."""
    load = first + second
    rate = load / BEAT
    ranks = (np.random.default_rng(12).random(COUNT) < second / load).astype(int)
    run = play(Traffic.of(random(rate, 13), 1, 1), f"{BEAT}", seats=1, lanes=2 * of.LANE, ranks=ranks)
    found = rate * BEAT**2 / 2
    agrees(wait(run)[ranks == 0], found / (1 - first))
    agrees(wait(run)[ranks == 1], found / ((1 - first) * (1 - load)))


# -- several servers ------------------------------------------------------------------------------------------------------------

LENGTH = 4000  # tokens of an exponential service: so many that the wait for the end of a step is nothing


def exponential(rate: float, seed: int, count: int) -> Traffic:
    return Traffic.of(random(rate, seed, count), 1, np.random.default_rng(seed + 100).geometric(1 / LENGTH, count))


@pytest.mark.parametrize(("seats", "load"), [(10, 0.8), (3, 0.6), (1, 0.5), (16, 0.85)])
def test_queue_wait__erlang_c_with_slots_as_servers(seats: int, load: float) -> None:
    service = 0.2
    rate = load * seats / service
    run = play(exponential(rate, 14, max(COUNT, 30_000)), f"{service / LENGTH!r}", seats=seats)
    agrees(wait(run), mmc_wait_s(rate, service, seats))
    agrees((wait(run) > service / LENGTH).astype(float), erlang_c(rate, service, seats), 0.02)


@pytest.mark.parametrize(("replicas", "load"), [(2, 0.7), (5, 0.5)])
def test_round_robin__each_replica_waits_as_gim1(replicas: int, load: float) -> None:
    """Each of c replicas gets every c-th request, so that its arrivals are Erlang-c: the GI/M/1 queue."""
    service = 0.2
    rate = load * replicas / service
    run = play(exponential(rate, 15, COUNT), f"{service / LENGTH!r}", seats=1, replicas=replicas)
    busy = 0.5
    for _ in range(500):
        busy = (rate / (rate + (1 - busy) / service)) ** replicas
    agrees(wait(run), service * float(congestion(busy)))


def shortest_of_two(rate: float, service: float, most: int = 40) -> float:
    """Mean wait where each request joins the shorter of two queues, from the balance of all states up to so many in each."""
    change = np.zeros((most, most, most, most))
    for n, m in np.ndindex(most, most):
        joined = (n + 1, m) if n <= m else (n, m + 1)
        if max(joined) < most:
            change[n, m][joined] += rate
        if n:
            change[n, m, n - 1, m] += 1 / service
        if m:
            change[n, m, n, m - 1] += 1 / service
    flow = change.reshape(most**2, most**2)
    balance = (flow - np.diag(flow.sum(axis=1))).T
    balance[-1] = 1
    share = np.linalg.solve(balance, np.eye(most**2)[-1]).reshape(most, most)
    waiting = np.maximum(np.arange(most) - 1, 0)
    return float((share * (waiting[:, None] + waiting)).sum()) / rate


@pytest.mark.parametrize(("load", "count"), [(0.3, 15_000), (0.55, 30_000)])
def test_least_loaded__waits_as_the_shorter_of_two_queues(load: float, count: int) -> None:
    service = 0.2
    rate = load * 2 / service
    run = play(exponential(rate, 22, min(COUNT, count)), f"{service / LENGTH!r}", seats=1, replicas=2, routing="least-loaded")
    agrees(wait(run), shortest_of_two(rate, service), telling=0.1)  # routing costs time: few requests


def finite_source(users: int, seats: int, think: float, service: float) -> float:
    """Mean response of users who each wait for an answer, from the stationary states of the chain."""
    share = [1.0]
    for n in range(users):
        share.append(share[-1] * (users - n) / think / (min(n + 1, seats) / service))
    answered = sum(one * min(n, seats) / service for n, one in enumerate(share)) / sum(share)
    return users / answered - think


@pytest.mark.parametrize(("users", "seats", "think"), [(6, 1, 1.0), (40, 8, 0.5)])
def test_closed_loop__response_of_a_finite_source_queue(users: int, seats: int, think: float) -> None:
    """A closed loop: M/M/c with a finite source."""
    service, count = 0.2, COUNT // 2
    traffic = exponential(1.0, 16, count)
    pauses = np.random.default_rng(17).exponential(think, count)
    traffic = Traffic.of(np.zeros(count), traffic.prompt, traffic.output)
    run = play(traffic, f"{service / LENGTH!r}", seats=seats, closed=1, users=users, think=pauses)
    agrees(response(run), finite_source(users, seats, think, service))


@pytest.mark.parametrize(("users", "replicas"), [(1, 2), (2, 3), (3, 2), (7, 3)])
def test_closed_loop__rate_is_even_when_replicas_do_not_divide_users(users: int, replicas: int) -> None:
    """Each has half a second of work at a time and thinks as long: all of them ask as often as one alone, and nobody is left out."""
    traffic = Traffic.of(np.zeros(1200), 1, 50)
    run = play(traffic, "0.01", replicas=replicas, users=users, think=np.full(1200, 0.5))
    assert results.run_rates(run)["req_per_s"] == pytest.approx(users, rel=0.01)


# -- what the report adds -------------------------------------------------------------------------------------------------------

QUEUES = {
    "timetabled": (140.0, 1, "0.001", {"seats": 4, "departures": BEAT}),
    "triggered": (100.0, 1, f"{BEAT}", {"seats": 4}),
    "growing": (50.0, 1, "0.02 + 0.001 * tokens", {}),
    "one server": (40.0, 1, f"{BEAT}", {"seats": 1}),
    "seats": (30.0, 40, "0.005 + 0.0001 * batch", {"seats": 8}),
    "replicas": (60.0, 40, "0.001", {"seats": 1, "replicas": 3}),
}


@pytest.mark.parametrize("queue", QUEUES)
def test_littles_law__requests_in_service(queue: str) -> None:
    rate, output, formula, changes = QUEUES[queue]
    run = play(Traffic.of(random(rate, 20, 5000), 1, output), formula, **changes)
    time = sum(float(state.at[of.NOW]) for state in run.states)
    assert results.occupancy(run)["running_mean"] == pytest.approx((run.finish - run.scheduled).sum() / time, rel=1e-6)


@pytest.mark.parametrize("queue", QUEUES)
def test_littles_law__requests_waiting(queue: str) -> None:
    """Counted over time by the loop they are what the requests themselves say, exactly."""
    rate, output, formula, changes = QUEUES[queue]
    run = play(Traffic.of(random(rate, 20, 5000), 1, output), formula, **changes)
    seen = results.occupancy(run)
    time = sum(float(state.at[of.NOW]) for state in run.states)
    assert seen["waiting_mean"] == pytest.approx(wait(run).sum() / time, rel=1e-6)


def test_confidence_interval__covers_the_true_mean_wait() -> None:
    rate, held, runs = 25.0, 0, 40
    for seed in range(runs):
        run = play(Traffic.of(random(rate, 1000 + seed, 4000), 1, 1), f"{BEAT}", seats=1)
        row = results.latencies(run, results.measured(run, 0.1))
        held += abs(row["mean_queue_s"] - float(md1_wait_s(rate, BEAT))) <= row["mean_queue_ci_s"]
    assert held >= 0.85 * runs  # of 95 %


@pytest.mark.parametrize("load", [1.1, 1.5])
def test_overload__queue_grows_at_the_excess_rate(load: float) -> None:
    rate = load / BEAT
    run = play(Traffic.of(random(rate, 21, 12_000), 1, 1), f"{BEAT}", seats=1)
    stands = capacity.stand(run, capacity.MeasuredCapacity(per_s=1 / BEAT, half_width=0.0))
    assert not stands.stable
    assert stands.growth == pytest.approx(float(growth_per_s(rate, 1 / BEAT)), abs=4 * np.sqrt(rate / (6000 / rate)))
    assert stands.utilisation == pytest.approx(load, rel=0.03)

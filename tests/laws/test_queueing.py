"""The queueing laws against published figures, against chains solved by linear algebra, and against simulations written here."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from headway.laws.queueing.departures import (
    beat_response_s,
    beat_wait_quantile_s,
    beat_wait_s,
    empty_share,
    filling_wait_s,
    left_behind,
    timetable_response_s,
    timetable_wait_s,
    train_load,
    train_rate,
    trains_missed,
    triggered_wait_s,
)
from reference.growing_steps import (
    affine_batch,
    affine_response_s,
    affine_square,
    affine_wait_s,
    fluid_capacity_per_s,
    fluid_tpot_s,
    idle_share,
)
from reference.queueing import (
    batch_arrival_wait_s,
    erlang_b,
    erlang_c,
    growth_per_s,
    md1_wait_s,
    mg1_wait_s,
    mmc_wait_s,
    present,
    seats_taken,
)

BEAT = 0.020


def ms(seconds: Any) -> float:
    return round(float(seconds) * 1e3, 3)


# -- figures given with three decimals of a millisecond -------------------------------------------------------------------------


@pytest.mark.parametrize(("seats", "load", "wanted"), [(1, 0.8, 50.000), (4, 0.8, 17.722), (32, 0.9, 11.524)])
def test_timetable_wait_s__reference_values(seats: int, load: float, wanted: float) -> None:
    rate = train_rate(load, BEAT, seats)
    assert ms(timetable_wait_s(rate, BEAT, seats)) == wanted
    assert ms(timetable_response_s(rate, BEAT, seats)) == round(wanted + 20, 3)
    assert float(train_load(rate, BEAT, seats)) == pytest.approx(load)


def test_beat_wait_s__reference_values() -> None:
    assert ms(beat_wait_s(BEAT)) == 10.0 and ms(beat_wait_quantile_s(BEAT, 0.99)) == 19.8 and ms(beat_response_s(BEAT)) == 30.0


def test_triggered_wait_s__reference_value() -> None:
    assert ms(triggered_wait_s(train_rate(0.5, BEAT, 4), BEAT, 4)) == 10.339


def test_affine_wait_s__reference_values() -> None:
    point = (5000.0, 0.020, 0.0001)
    assert ms(affine_wait_s(*point)) == 20.033 and ms(affine_response_s(*point)) == 60.167
    assert float(affine_batch(*point)) == pytest.approx(200.0, abs=1e-9)


@pytest.mark.parametrize("seats", [33, 40, 64, 128, 512])
@pytest.mark.parametrize("load", [0.3, 0.6, 0.8, 0.9])
def test_trains_missed__below_8_percent_above_32_seats_and_load_up_to_0_9(seats: int, load: float) -> None:
    assert 0 <= float(trains_missed(train_rate(load, BEAT, seats), BEAT, seats)) < 0.08


# -- the same by other means ----------------------------------------------------------------------------------------------------


def poisson(mean: float, states: int) -> np.ndarray:
    counts = np.arange(states)
    return np.exp(counts * math.log(mean) - mean - np.array([math.lgamma(count + 1) for count in counts]))


def stationary(matrix: np.ndarray) -> np.ndarray:
    equations = matrix.T - np.eye(len(matrix))
    equations[-1] = 1
    return np.linalg.solve(equations, np.eye(len(matrix))[-1])


@pytest.mark.parametrize("seats", [1, 2, 3, 8, 32])
@pytest.mark.parametrize("load", [0.05, 0.5, 0.8, 0.95])
def test_timetable_wait_s__roots_equal_markov_chain(seats: int, load: float) -> None:
    states = int(3 * seats + 60 / (1 - load) + 40)
    come, matrix = poisson(seats * load, states), np.zeros((states, states))
    for waiting in range(states):
        left = max(waiting - seats, 0)
        matrix[waiting, left:] = come[: states - left]
    share = stationary(matrix)
    rate = train_rate(load, BEAT, seats)
    assert float(left_behind(rate, BEAT, seats)) == pytest.approx((share * np.maximum(np.arange(states) - seats, 0)).sum(), abs=1e-7)
    assert float(empty_share(rate, BEAT, seats)) == pytest.approx(share[0], abs=1e-10)


@pytest.mark.parametrize(
    ("rate", "fixed", "each"), [(50, 0.02, 0.001), (5, 0.02, 0.001), (1, 0.5, 0.5), (100, 0.02, 0.009), (10, 0.02, 0.0)]
)
def test_affine_wait_s__generating_function_equals_markov_chain(rate: float, fixed: float, each: float) -> None:
    states = 300
    batch = np.maximum(np.arange(states), 1)
    ride = fixed + each * batch
    share = stationary(np.array([poisson(rate * one, states) for one in ride]))
    cycle = (share * ride).sum() + share[0] / rate
    mean, wait = (share * batch).sum(), (share * ride**2).sum() / 2 / cycle
    assert float(idle_share(rate, fixed, each)) == pytest.approx(share[0], abs=1e-9)
    assert float(affine_batch(rate, fixed, each)) == pytest.approx(mean)
    assert float(affine_square(rate, fixed, each)) == pytest.approx((share * batch**2).sum())
    assert float(affine_wait_s(rate, fixed, each)) == pytest.approx(wait)
    assert float(affine_response_s(rate, fixed, each)) == pytest.approx(wait + (share * batch * ride).sum() / mean)


def test_queueing_laws__limits_of_one_another() -> None:
    rate = 40.0
    assert float(triggered_wait_s(rate, BEAT, 1)) == pytest.approx(float(md1_wait_s(rate, BEAT)))
    assert float(timetable_wait_s(rate, BEAT, 1)) == pytest.approx(BEAT / 2 + float(md1_wait_s(rate, BEAT)))
    assert float(timetable_wait_s(rate, BEAT, 500)) == pytest.approx(BEAT / 2)
    assert float(affine_wait_s(rate, BEAT, 0.0)) == pytest.approx(float(triggered_wait_s(rate, BEAT, 60)))
    assert float(mg1_wait_s(rate, BEAT, 0.0)) == float(md1_wait_s(rate, BEAT)) == float(batch_arrival_wait_s(rate, BEAT, 1))
    assert float(mmc_wait_s(rate, BEAT, 1)) == pytest.approx(float(mg1_wait_s(rate, BEAT, 1.0)))
    assert float(erlang_c(rate, BEAT, 1)) == pytest.approx(0.8)


@pytest.mark.parametrize(("offered", "servers"), [(0.5, 1), (8.0, 10), (40.0, 30), (90.0, 100)])
def test_erlang__equals_its_sums(offered: float, servers: int) -> None:
    terms = [offered**count / math.factorial(count) for count in range(servers + 1)]
    assert float(erlang_b(offered, 1.0, servers)) == pytest.approx(terms[-1] / sum(terms))
    if offered < servers:
        queued = terms[-1] * servers / (servers - offered)
        assert float(erlang_c(offered, 1.0, servers)) == pytest.approx(queued / (sum(terms[:-1]) + queued))


@pytest.mark.parametrize("law", [timetable_wait_s, triggered_wait_s, mmc_wait_s, erlang_b])
def test_queueing_laws__arrays_equal_scalars(law: Callable[..., Any]) -> None:
    rates, seats = np.array([[10.0], [100.0], [700.0]]), np.array([1, 3, 16, 40])
    grid = law(rates, BEAT, seats)
    assert grid.shape == (3, 4)
    for place, value in np.ndenumerate(grid):
        assert value == pytest.approx(float(law(rates[place[0], 0], BEAT, seats[place[1]])), rel=1e-12)


def test_overload__infinite_wait_and_growth_per_second() -> None:
    for rate in (50.0, 60.0):  # a load of 1, and one above
        for wait in (md1_wait_s(rate, BEAT), timetable_wait_s(rate, BEAT, 1), triggered_wait_s(rate, BEAT, 1), mmc_wait_s(rate, BEAT, 1)):
            assert float(wait) == math.inf
        assert float(affine_wait_s(rate, 0.01, BEAT)) == math.inf
    assert float(growth_per_s(60.0, 1 / BEAT)) == pytest.approx(10.0)
    assert float(fluid_tpot_s(30.0, 400, 0.02, 0.0001)) == math.inf


# -- simulations ----------------------------------------------------------------------------------------------------------------

JOBS = 400_000
GROUPS = 40


def agrees(sample: np.ndarray, expected: Any, within: float = 0.01) -> None:
    """The mean is as expected within 1 %, or within 3.5 standard errors of the means of successive groups (the first group left out)."""
    means = sample[: len(sample) // GROUPS * GROUPS].reshape(GROUPS, -1).mean(axis=1)[1:]
    error = means.std(ddof=1) / math.sqrt(len(means))
    assert error < 0.03 * float(expected), "the sample is too short to tell"
    assert abs(means.mean() - float(expected)) < max(within * float(expected), 3.5 * error), (means.mean(), float(expected), error)


def arrivals(rate: float, seed: int, count: int = JOBS) -> np.ndarray:
    return np.cumsum(np.random.default_rng(seed).exponential(1 / rate, count))


def lindley(arrival: np.ndarray, service: np.ndarray) -> np.ndarray:
    """Waits at one server: the work that was brought less the time that passed, above its least value so far."""
    walk = np.concatenate([[0.0], np.cumsum(service[:-1] - np.diff(arrival))])
    return walk - np.minimum.accumulate(walk)


@pytest.mark.parametrize("load", [0.3, 0.8, 0.9])
def test_md1_wait_s__matches_simulation(load: float) -> None:
    rate = load / BEAT
    arrival = arrivals(rate, 1, 5 * JOBS)
    wait = lindley(arrival, np.full(len(arrival), BEAT))
    agrees(wait, md1_wait_s(rate, BEAT))
    # Little's law, the queue counted over time and not from the waits: those who have come less those who were taken.
    when = np.linspace(arrival[JOBS // 4], arrival[-1], 200_000, endpoint=False)
    queue = np.searchsorted(arrival, when, side="right") - np.searchsorted(arrival + wait, when, side="right")
    assert queue.mean() == pytest.approx(float(present(rate, wait[JOBS // 4 :].mean())), rel=0.02)


def test_mg1_wait_s__matches_simulation() -> None:
    rate, cv = 35.0, 1.5
    service = np.random.default_rng(3).gamma(cv**-2, BEAT * cv**2, JOBS)
    agrees(lindley(arrivals(rate, 2), service), mg1_wait_s(rate, BEAT, cv), 0.02)


def test_batch_arrival_wait_s__matches_simulation() -> None:
    rate, together = 30.0, 4
    arrival = np.repeat(arrivals(rate / together, 4, JOBS // together), together)
    agrees(lindley(arrival, np.full(JOBS, BEAT)), batch_arrival_wait_s(rate, BEAT, together))


def test_mmc_wait_s__matches_simulation() -> None:
    rate, service, servers = 40.0, 0.2, 10
    times = np.random.default_rng(6).exponential(service, 3 * JOBS)
    free, waits = [0.0] * servers, []
    for arrival, time in zip(arrivals(rate, 5, 3 * JOBS).tolist(), times.tolist(), strict=True):
        start = max(arrival, free[0])
        waits.append(start - arrival)
        heapq.heapreplace(free, start + time)
    agrees(np.array(waits), mmc_wait_s(rate, service, servers))
    agrees((np.array(waits) > 0).astype(float), erlang_c(rate, service, servers))


def test_erlang_b__matches_simulation() -> None:
    rate, service, servers = 40.0, 0.2, 10
    free, lost = [0.0] * servers, []
    for arrival in arrivals(rate, 7).tolist():
        lost.append(free[0] > arrival)
        if not lost[-1]:
            heapq.heapreplace(free, arrival + service)  # of one length: the spread of services does not matter
    agrees(np.array(lost, float), erlang_b(rate, service, servers))


def timetable(arrival: np.ndarray, seats: int) -> np.ndarray:
    """Waits for trains on the clock: the first departure after arrival, and after the train of whoever came `seats` before."""
    trains = np.ceil(arrival / BEAT).astype(int).tolist()
    for one in range(seats, len(trains)):
        trains[one] = max(trains[one], trains[one - seats] + 1)
    return np.array(trains) * BEAT - arrival


@pytest.mark.parametrize(("seats", "load"), [(1, 0.8), (4, 0.8), (4, 0.3), (32, 0.9), (7, 0.9)])
def test_timetable_wait_s__matches_simulation(seats: int, load: float) -> None:
    rate = train_rate(load, BEAT, seats)
    wait = timetable(arrivals(rate, 8), seats)
    agrees(wait, timetable_wait_s(rate, BEAT, seats))
    assert wait.mean() >= BEAT / 2 * 0.99


def test_beat_wait_quantile_s__uniform_waits_where_seats_suffice() -> None:
    wait = timetable(arrivals(1000.0, 9), 10_000)
    assert wait.max() <= BEAT * (1 + 1e-9)
    assert np.quantile(wait, 0.99) == pytest.approx(float(beat_wait_quantile_s(BEAT, 0.99)), rel=0.01)


def test_filling_wait_s__matches_simulation() -> None:
    arrival = arrivals(1000.0, 10).reshape(-1, 50)
    agrees((arrival[:, -1:] - arrival).reshape(-1), filling_wait_s(1000.0, 50))


def triggered(arrival: np.ndarray, seats: int, fixed: float, each: float) -> tuple[np.ndarray, np.ndarray]:
    """Waits and responses of trains that leave once they are back and one request waits."""
    times, back, first = arrival.tolist(), 0.0, 0
    left, home = np.empty(len(times)), np.empty(len(times))
    while first < len(times):
        start = max(back, times[first])
        last = min(first + seats, int(np.searchsorted(arrival, start, side="right")))
        back = start + fixed + each * (last - first)
        left[first:last], home[first:last] = start, back
        first = last
    return left - arrival, home - arrival


@pytest.mark.parametrize(("seats", "load"), [(4, 0.5), (1, 0.7), (16, 0.9)])
def test_triggered_wait_s__matches_simulation(seats: int, load: float) -> None:
    rate = train_rate(load, BEAT, seats)
    wait, _ = triggered(arrivals(rate, 11), seats, BEAT, 0.0)
    agrees(wait, triggered_wait_s(rate, BEAT, seats))


@pytest.mark.parametrize(("rate", "fixed", "each"), [(5000.0, 0.020, 0.0001), (50.0, 0.020, 0.001), (100.0, 0.020, 0.008)])
def test_affine_wait_s__matches_simulation(rate: float, fixed: float, each: float) -> None:
    wait, response = triggered(arrivals(rate, 12), JOBS, fixed, each)
    agrees(wait, affine_wait_s(rate, fixed, each))
    agrees(response, affine_response_s(rate, fixed, each))


def test_seats_taken__poisson_at_unlimited_seats() -> None:
    rate, output, step = 5.0, 400, 0.020
    arrival = arrivals(rate, 13)
    answers = np.random.default_rng(14).geometric(1 / output, JOBS) * step
    when = np.linspace(arrival[1000], arrival[-1000], 200_000)
    batch = np.searchsorted(arrival, when, side="right") - np.searchsorted(np.sort(arrival + answers), when, side="right")
    assert batch.mean() == pytest.approx(float(seats_taken(rate, output, step)), rel=0.01)
    assert batch.var() == pytest.approx(float(seats_taken(rate, output, step)), rel=0.05)


def test_fluid_tpot_s__where_a_growing_batch_settles() -> None:
    rate, output, fixed, each = 160.0, 50, 0.020, 0.0001
    tpot = float(fluid_tpot_s(rate, output, fixed, each))
    assert tpot == pytest.approx(fixed + each * rate * output * tpot)
    assert fluid_capacity_per_s(output, each) == pytest.approx(200.0)
    # Requests that ride for N iterations: the batch over many iterations.
    rng, ends, batches, riding = np.random.default_rng(15), [0] * 100_000, [], 0
    for now in range(len(ends) - output):
        came = int(rng.poisson(rate * (fixed + each * riding)))
        riding += came - ends[now]
        ends[now + output] = came
        batches.append(riding)
    agrees(np.array(batches), rate * output * tpot, 0.02)

"""The simulator's own loop against trains and growing iterations whose waits are known: on the clock, triggered, affine, seats for all."""

from __future__ import annotations

from dataclasses import replace
from math import exp, lgamma, log

import numpy as np
import pytest

from headway.laws.queueing.departures import (
    beat_response_s,
    beat_wait_quantile_s,
    filling_wait_s,
    timetable_response_s,
    timetable_wait_s,
    train_rate,
    triggered_wait_s,
)
from headway.laws.step.coefficients import EXPOSED, SERIAL, Achieved, StepCoefficients
from headway.simulation import capacity as saturation
from headway.simulation import results
from headway.simulation import state as of
from headway.simulation.simulate import simulate
from headway.simulation.step_time import StepPace, pace_from, pace_of
from headway.simulation.traffic.requests import Traffic
from reference.growing_steps import affine_batch, affine_response_s, affine_wait_s, fluid_capacity_per_s, fluid_tpot_s
from reference.queueing import present, seats_taken
from support.simulated import RULES, STEP
from support.steady import BEAT, COUNT, FAST, FEWER, HOW, agrees, near, play, random, response, wait

# -- trains on the clock --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rate", "beat"), [(5000.0, BEAT), (40.0, 0.25)])
def test_departures__wait_half_a_beat_with_unlimited_slots(rate: float, beat: float) -> None:
    run = play(Traffic.of(random(rate, 1), 1, 1), "0.004", departures=beat)
    agrees(wait(run), beat / 2)
    agrees(response(run), beat_response_s(beat))
    assert np.quantile(wait(run), 0.99) == pytest.approx(float(beat_wait_quantile_s(beat, 0.99)), rel=0.01)
    assert wait(run).min() >= -1e-9 and response(run).max() <= 2 * beat * (1 + 1e-6)  # the lecture's worst case: 2 beats


@pytest.mark.parametrize(
    ("seats", "load", "beat"),
    [(1, 0.8, BEAT), (4, 0.8, BEAT), (32, 0.9, BEAT), (2, 0.3, 0.1), (7, 0.85, 0.005), (64, 0.8, 0.03), (16, 0.95, 0.014)],
)
def test_departures__wait_with_limited_slots(seats: int, load: float, beat: float) -> None:
    rate = float(train_rate(load, beat, seats))
    run = play(Traffic.of(random(rate, 2, 2 * COUNT if load >= 0.8 else COUNT), 1, 1), "0.001", seats=seats, departures=beat)
    agrees(wait(run), timetable_wait_s(rate, beat, seats), near(load))
    agrees(response(run), timetable_response_s(rate, beat, seats), near(load))


def test_departures__wait_a_tenth_of_filling_the_batch() -> None:
    seats, load = 2000, 0.1
    rate = float(train_rate(load, BEAT, seats))
    mean, _ = agrees(wait(play(Traffic.of(random(rate, 3), 1, 1), "0.015", seats=seats, departures=BEAT)), BEAT / 2)
    assert filling_wait_s(rate, seats) / mean == pytest.approx(10.0, rel=0.02)


def test_departures__each_token_takes_one_beat() -> None:
    """N tokens are N beats on board, and as many seats as Little's law says."""
    rate, output = 100.0, 50
    run = play(Traffic.of(random(rate, 4, max(COUNT // 4, 12_000)), 1, output), "0.012", departures=BEAT)
    assert np.abs(run.finish - run.scheduled - output * BEAT).max() < 1e-6
    agrees(wait(run), BEAT / 2)
    assert results.occupancy(run)["running_mean"] == pytest.approx(present(rate, output * BEAT), rel=0.02 * FEWER)


# -- trains that leave once they are back ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("seats", "load", "ride"), [(4, 0.5, BEAT), (1, 0.7, BEAT), (3, 0.6, 0.1), (16, 0.9, 0.007), (8, 0.2, 1.0)])
def test_queue_wait__triggered_batches(seats: int, load: float, ride: float) -> None:
    rate = float(train_rate(load, ride, seats))
    run = play(Traffic.of(random(rate, 5), 1, 1), f"{ride}", seats=seats)
    agrees(wait(run), triggered_wait_s(rate, ride, seats))
    agrees(response(run), triggered_wait_s(rate, ride, seats) + ride)


def affine(fixed: float, each: float) -> StepPace:
    """The step law itself with all of its terms at 0 but two."""
    reach = Achieved(
        compute=1.0, memory=1.0, activation=1.0, norm=3, expert_compute=1.0, expert_memory=1.0, expert_activation=1.0, expert_norm=3,
        decode_compute=1.0, decode_memory=1.0, block=0.0, prefill_compute=1.0, prefill_pad=0.0, elementwise=1.0, fixed=fixed,
        expert_fixed=0.0,
        sequence=0.0, prompted=0.0,
    )  # fmt: skip
    law = StepCoefficients(
        dense_compute=each, head_compute=0.0, dense_weights=0.0, experts=(), spans=(), state=0.0, kv_write=0.0, collectives=(),
        activations=0.0, blocks=0, elementwise=0.0, dp=1, pp=1, cp=1, layers=1, imbalance=1, prefill_ranks=1,
        overlap=SERIAL, communication=EXPOSED, attention_gain=1, achieved=reach,
    )  # fmt: skip
    return pace_of(law, 2000, 4096.0)


@pytest.mark.parametrize(
    ("rate", "fixed", "each"), [(5000.0, BEAT, 0.0001), (50.0, BEAT, 0.001), (100.0, BEAT, 0.008), (1.0, 0.5, 0.5), (800.0, 0.002, 0.0001)]
)
def test_queue_wait__step_time_affine_in_batch(rate: float, fixed: float, each: float) -> None:
    run = play(Traffic.of(random(rate, 6, max(COUNT, 40_000)), 1, 1), affine(fixed, each))
    agrees(wait(run), affine_wait_s(rate, fixed, each))
    agrees(response(run), affine_response_s(rate, fixed, each))
    assert run.total(of.EMITTED) / run.total_count(of.STEPS) == pytest.approx(float(affine_batch(rate, fixed, each)), rel=0.01 * FEWER)


NEARLY_FULL = [(160.0, 50, BEAT, 0.0001)] if FAST else []  # takes long to settle


@pytest.mark.parametrize(
    ("rate", "output", "fixed", "each"), [(5.0, 400, BEAT, 0.0001), (30.0, 200, 0.01, 0.00005), (100.0, 50, BEAT, 0.0001), *NEARLY_FULL]
)
def test_tpot__fluid_limit_of_an_open_loop(rate: float, output: int, fixed: float, each: float) -> None:
    run = play(Traffic.of(random(rate, 7, max(COUNT // 4, 12_000)), 1, output), affine(fixed, each))
    tpot = (run.finish - run.first) / (output - 1)
    mean, _ = agrees(tpot, fluid_tpot_s(rate, output, fixed, each))
    batch = (run.finish - run.scheduled).sum() / (run.arrival[-1] - run.arrival[0])
    assert batch == pytest.approx(present(rate, output * mean), rel=0.02 * FEWER)


@pytest.mark.parametrize(("output", "seats"), [(400, 64), (50, 700)])
def test_capacity__rate_of_a_full_batch(output: int, seats: int) -> None:
    fixed, each = BEAT, 0.0001
    rules = RULES._replace(seats=seats, capacity=10**9, budget=10**6, chunk=10**6)
    able = saturation.capacity(Traffic.of(np.zeros(10), 1, output), affine(fixed, each), rules, 1, HOW)
    assert able.per_s == pytest.approx(seats / (output * (fixed + each * seats)), rel=0.02)
    assert able.per_s < fluid_capacity_per_s(output, each)  # which only a batch without end would reach


@pytest.mark.parametrize("seats", [1, 20, 50, 300])
@pytest.mark.parametrize("output", [3, 41, 400])
def test_capacity__synchronised_waves_carry_one_batch_per_wave(output: int, seats: int) -> None:
    """Like requests, prompts first: all are let in together and end together, ten prompts a step of 0.11 s, then steps of 10 ms."""
    rules = RULES._replace(seats=seats, capacity=10**9, budget=1000, chunk=1000, mixed=0)
    able = saturation.capacity(Traffic.of(np.zeros(10), 100, output), pace_from(STEP.format("0.01 + 1e-4 * tokens"), 300, 512.0), rules, 1)
    prompts = -(-seats // 10) * 0.01 + seats * 0.01
    assert able.per_s == pytest.approx(seats / (prompts + (output - 1) * 0.01), rel=0.01)


def test_capacity__large_batch_excludes_the_ramp_up() -> None:
    """With so many seats that few requests go round: 10 ms a step whatever is in it, 60 steps an answer."""
    rules = RULES._replace(seats=5000, capacity=10**9, budget=10**6, chunk=10**6)
    lengths = np.random.default_rng(31).integers(1, 119, 10_000, endpoint=True)
    able = saturation.capacity(Traffic.of(np.zeros(10_000), 1, lengths), pace_from(STEP.format("0.01"), 5000, 512.0), rules, 1, HOW)
    assert able.per_s == pytest.approx(5000 / (60 * 0.01), rel=0.02)


# -- everyone in a seat ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rate", "output", "step"), [(5.0, 400, BEAT), (50.0, 30, 0.01)])
def test_batch_size__poisson_with_unlimited_slots(rate: float, output: int, step: float) -> None:
    count = COUNT
    lengths = np.random.default_rng(18).geometric(1 / output, count)
    run = play(Traffic.of(random(rate, 19, count), 1, lengths), f"{step}")
    when = np.linspace(run.scheduled[count // 20], run.arrival[-count // 20], 20 * count // output)
    batch = np.searchsorted(np.sort(run.scheduled), when, side="right") - np.searchsorted(np.sort(run.finish), when, side="right")
    mean = float(seats_taken(rate, output, step))
    agrees(batch.astype(float), mean)
    agrees((batch - mean) ** 2, mean, 0.02)
    share = np.cumsum([exp(n * log(mean) - mean - lgamma(n + 1)) for n in range(int(2 * mean) + 1)])
    for part in (0.9, 1.0, 1.1):
        agrees((batch <= part * mean).astype(float), share[int(part * mean)], 0.02)


def test_step_time__at_most_the_drain_time_of_hbm() -> None:
    """288 GB at 20 TB/s: 14.4 ms. A step of 30 ms would have read all of it twice, and one beside an emptier cache is shorter."""
    capacity, block, drain = 500, 16, 288e9 / 20e12
    rng, seen = np.random.default_rng(23), []

    def reading(batch: float, context: float, tokens: float, pairs: float, ranks: float) -> float:
        seen.append(1e-6 + drain * context / (capacity * block))
        return seen[-1]

    traffic = Traffic.of(np.zeros(400), rng.integers(1, 200, 400), rng.integers(2, 200, 400))
    made = pace_from(STEP.format("1.0"), 200, 400.0)
    watched = replace(made, step=reading, line=np.zeros_like(made.line))
    run = simulate(traffic, watched, RULES._replace(seats=200, capacity=capacity, block=block), how="plain")
    assert run.total_count(of.PREEMPTED) > 0  # it was full
    assert 0.85 * drain < max(seen) <= drain + 1e-6
    assert 30e-3 / drain == pytest.approx(2.083, abs=1e-3)

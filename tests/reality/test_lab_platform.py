"""Trains of the lab on a virtual clock: who boards, waits against the laws, tokens that do not depend on who rides beside."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pytest

from headway.laws.queueing.departures import timetable_wait_s
from headway.reality.lab.decoder import random_decoder
from headway.reality.lab.platform import Passenger, Platform, TrainRun
from headway.reality.lab.shape import LabShape
from headway.reality.lab.train_work import CHUNK, DecoderStep, StatedStep
from support.virtual_clock import VirtualClock

SMALL = LabShape(layers=2, hidden=16, heads=2, kv_heads=1, head_dim=8, experts=4, per_token=2, expert_width=8, shared_width=8, vocab=50)


def ride(passengers: list[Passenger], platform: Platform) -> list[TrainRun]:
    """Departures until all have arrived; who comes is told by the time of arrival."""
    left, trains = iter(sorted(passengers, key=lambda passenger: passenger.arrival)), []
    following = [next(left, None)]

    def arrived(now: float) -> Iterator[Passenger]:
        while following[0] is not None and following[0].arrival <= now:
            yield following[0]
            following[0] = next(left, None)

    def goes_on(train: TrainRun) -> bool:
        trains.append(train)
        return following[0] is not None or bool(platform.waiting or platform.riders)

    platform.run(arrived, goes_on)
    return trains


def stated(seats: int, base: float, slope: float, interval: float = 0.02) -> Platform:
    clock = VirtualClock()
    return Platform(seats, interval, StatedStep(base, slope, clock, 100), clock)


def poisson(rate: float, count: int, seed: int = 0) -> list[Passenger]:
    return [Passenger(arrival=time) for time in np.cumsum(np.random.default_rng(seed).exponential(1 / rate, count))]


@pytest.mark.parametrize(("seats", "load", "within"), [(16, 0.25, 0.02), (16, 0.75, 0.02), (4, 0.8, 0.06)])
def test_waits_follow_the_law_of_a_timetable(seats, load, within):
    passengers = poisson(load * seats / 0.02, 40_000)
    trains = ride(passengers, stated(seats, 0.002, 0.0005))
    waits = [passenger.departure - passenger.arrival for passenger in passengers]
    assert np.mean(waits) == pytest.approx(float(timetable_wait_s(load * seats / 0.02, 0.02, seats)), rel=within)
    assert max(train.riders for train in trains) <= seats
    assert np.allclose(np.diff([train.departure for train in trains]), 0.02)  # full or not


def test_no_response_is_longer_than_two_intervals_while_no_train_is_full():
    passengers = poisson(200, 5000)
    trains = ride(passengers, stated(64, 0.002, 0.0002))
    assert max(train.riders for train in trains) < 64
    assert max(passenger.end - passenger.arrival for passenger in passengers) <= 0.04


def test_a_late_train_leaves_at_once_and_first_come_board_first():
    passengers = [Passenger(arrival=0.001 * place, tokens=3) for place in range(5)]
    trains = ride(passengers, stated(2, 0.03, 0.01))
    assert [train.riders for train in trains] == [2, 2, 2, 2, 2, 2, 1, 1, 1]
    assert np.allclose(np.diff([train.departure for train in trains]), [0.05] * 6 + [0.04] * 2)
    assert [train.waiting for train in trains] == [3, 3, 3, 1, 1, 1, 0, 0, 0]
    assert sorted(passengers, key=lambda passenger: passenger.departure) == passengers


def test_who_cancels_frees_the_seat():
    quitter, other = Passenger(arrival=0.0, tokens=10**6), Passenger(arrival=0.001)

    def tell(token: int) -> None:
        quitter.cancelled = True

    quitter.tell = tell
    platform = stated(1, 0.001, 0.0)
    come: list[Iterable[Passenger]] = [[quitter, other]]
    platform.run(lambda now: come.pop() if come else (), lambda train: np.isnan(other.end))
    assert other.departure == pytest.approx(0.04) and platform.riders == []


def test_tokens_of_a_rider_do_not_depend_on_who_rides_beside():
    decoder = random_decoder(SMALL, form=np.float64)
    draw = np.random.default_rng(1)
    prompts = [tuple(draw.integers(SMALL.vocab, size=size)) for size in (1, 5, 3, 7, 2)]

    def texts(seats: int) -> list[list[int]]:
        heard: list[list[int]] = [[] for _ in prompts]
        passengers = [
            Passenger(arrival=0.01 * place, prompt=prompt, tokens=2 + 2 * place, tell=heard[place].append)
            for place, prompt in enumerate(prompts)
        ]
        clock = VirtualClock()
        ride(passengers, Platform(seats, 0.02, DecoderStep(decoder, seats, 24), clock))
        return heard

    alone = texts(1)
    assert texts(3) == alone and texts(5) == alone
    assert [len(text) for text in alone] == [2, 4, 6, 8, 10]


def test_a_long_prompt_in_parts_is_the_prompt_at_once():
    decoder, prompt = random_decoder(SMALL), [token % SMALL.vocab for token in range(2 * CHUNK + 2)]
    work = DecoderStep(decoder, 2, len(prompt) + 1)
    work.board(0, prompt)
    at_once = decoder.step(np.array([prompt]), decoder.cache(1, len(prompt)))
    assert work.step(1) == at_once.logits.argmax(axis=1).tolist()

"""Departures of a run on a clock: who boards each train, how full it is, who waits for it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headway.simulation.simulate import SimulatedRun

DEPARTURES = 12  # of one replica, that a timetable lists


class Departure(NamedTuple):
    """One train: when it leaves, how many ride, how many of them boarded there."""

    time_s: float
    riders: int
    boarded: int


class Boarding(NamedTuple):
    """One request: when it came, when its train left."""

    arrival_s: float
    departure_s: float


def timetable(run: SimulatedRun, count: int = DEPARTURES) -> tuple[list[Departure], list[Boarding]]:
    """Departures of the first replica where most board, and the requests that board them; empty without a clock."""
    beat = float(run.rules.departures)
    mine = run.completed & (run.replica == 0)
    if beat <= 0 or not mine.any():
        return [], []
    arrival, scheduled, finish = run.arrival[mine], run.scheduled[mine], run.finish[mine]
    beats = np.sort(np.round(scheduled / beat).astype(int))
    in_window = np.searchsorted(beats, beats + count) - np.arange(len(beats))
    first = int(beats[np.argmax(in_window)])  # the window in which most board
    times = (first + np.arange(count)) * beat
    half = beat / 2  # a boarding is at a departure up to rounding
    departures = [
        Departure(
            time_s=float(time),
            riders=int(((scheduled <= time + half) & (finish > time + half)).sum()),
            boarded=int((np.abs(scheduled - time) < half).sum()),
        )
        for time in times
    ]
    boards = (scheduled > times[0] - half) & (scheduled < times[-1] + half)
    order = np.argsort(arrival[boards])
    return departures, [Boarding(*map(float, pair)) for pair in zip(arrival[boards][order], scheduled[boards][order], strict=True)]


class DrawnTimetable(NamedTuple):
    """Departures of a train with so many seats, the requests that board, and how many are left behind at each."""

    departures: list[Departure]
    boardings: list[Boarding]
    left_behind: list[int]


def random_timetable(rate: float, beat: float, seats: int, count: int, seed: int) -> DrawnTimetable:
    """Requests that arrive at random at `rate` and board the next train with a free seat, first come, first served; each rides a beat."""
    source = np.random.default_rng(seed)
    expected = rate * beat * count
    arrivals = np.cumsum(source.exponential(1 / rate, int(expected + 10 * expected**0.5 + 20)))
    departures, boardings, left_behind = [], [], []
    for number in range(1, count + 1):
        arrived = int(np.searchsorted(arrivals, number * beat, side="right"))
        riders = min(seats, arrived - len(boardings))
        boardings += [Boarding(float(arrivals[len(boardings) + place]), number * beat) for place in range(riders)]
        departures.append(Departure(number * beat, riders, riders))
        left_behind.append(arrived - len(boardings))
    return DrawnTimetable(departures, boardings, left_behind)

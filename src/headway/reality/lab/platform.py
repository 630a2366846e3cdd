"""Trains: requests wait on a platform, and one leaves every interval with all that wait, as far as it has seats.

A train that comes back late leaves at once, and the timetable goes on from there. A request of several tokens keeps its seat.
"""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from headway.core.units import Second
from headway.reality.lab.clock import Clock
from headway.reality.lab.train_work import TrainWork


@dataclass(slots=True, kw_only=True, eq=False)
class Passenger:
    """A request: its prompt, the tokens that it wants, and who is told of each."""

    arrival: Second
    prompt: Sequence[int] = (0,)
    tokens: int = 1  # that it still wants
    tell: Callable[[int], None] | None = None  # of each token
    departure: Second = math.nan  # of its first train
    end: Second = math.nan
    cancelled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainRun:
    """One departure."""

    due: Second
    departure: Second
    seconds: Second  # that it took
    riders: int
    waiting: int  # who found no seat


class Platform:
    """Those who wait and those who ride; requests may come from any thread."""

    def __init__(self, seats: int, interval: Second, work: TrainWork, clock: Clock) -> None:
        self.seats, self.interval, self.work, self.clock = seats, interval, work, clock
        self.waiting: deque[Passenger] = deque()
        self.riders: list[Passenger] = []
        self.lock = threading.Lock()

    def enter(self, passengers: Iterable[Passenger]) -> None:
        """Requests that come, in their order."""
        with self.lock:
            self.waiting.extend(passengers)

    def run(self, arrived: Callable[[Second], Iterable[Passenger]], goes_on: Callable[[TrainRun], bool]) -> None:
        """Departures until `goes_on` says no of one; `arrived` gives those who came by a moment, beside those that enter by themselves."""
        due = self.clock.now() + self.interval
        while True:
            self.clock.sleep_until(due)
            departure = self.clock.now()
            self.enter(arrived(departure))
            train = self._ride(due, departure)
            if not goes_on(train):
                return
            due = max(due + self.interval, departure + train.seconds)

    def _ride(self, due: Second, departure: Second) -> TrainRun:
        """One train: new riders take the free seats, all get a token, those who have all of theirs leave."""
        self._leave(lambda rider: rider.cancelled)
        with self.lock:
            boarding = []
            while self.waiting and len(self.riders) < self.seats:
                if not (passenger := self.waiting.popleft()).cancelled:
                    boarding.append(passenger)
                    self.riders.append(passenger)
            left_behind = len(self.waiting)
        for seat, passenger in enumerate(boarding, len(self.riders) - len(boarding)):
            passenger.departure = departure
            self.work.board(seat, passenger.prompt)
        riders = len(self.riders)
        for rider, token in zip(self.riders, self.work.step(riders) if riders else (), strict=True):
            rider.tokens -= 1
            if not rider.tokens:
                rider.end = self.clock.now()
            if rider.tell:
                rider.tell(token)
        self._leave(lambda rider: not rider.tokens)
        return TrainRun(due=due, departure=departure, seconds=self.clock.now() - departure, riders=riders, waiting=left_behind)

    def _leave(self, goes: Callable[[Passenger], bool]) -> None:
        """Riders leave, and those in the last seats take the free ones."""
        for seat in reversed([seat for seat, rider in enumerate(self.riders) if goes(rider)]):
            last = self.riders.pop()
            if seat < len(self.riders):
                self.work.move(len(self.riders), seat)
                self.riders[seat] = last

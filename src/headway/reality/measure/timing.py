"""A time, measured until it no longer scatters: the median of its rounds, and how far it lies above the fastest of them.

Whatever else a machine does adds to a round, so the scatter tells how quiet it was. Of one thread its own processor time is taken, which
leaves out the time that others' work takes from it. The median, since a short round meets a quiet moment more easily than a long one.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

Clock = Callable[[], float]  # seconds, from any beginning
QUIET = 0.1  # spread up to which a machine counts as quiet
LEAST_ROUND_S = 1e-3  # of a round: far above what reading a clock takes
FEWEST = 5  # rounds
FINE_S = 1e-6
PATIENCE = 4  # times the budget after which fewer rounds do


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounds:
    """How long to go on: until the spread is small, or the time or the rounds are used up."""

    budget_s: float = 1.0
    most: int = 200
    spread: float = QUIET / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """Seconds of one call."""

    fastest_s: float
    median_s: float
    rounds: int

    @property
    def spread(self) -> float:
        """How far the median lies above the fastest, as a share of it."""
        return self.median_s / self.fastest_s - 1 if self.fastest_s > 0 else 0.0


USUAL = Rounds()


def clock_of(threads: int) -> Clock:
    """The clock by which work of so many threads is timed; the wall's where the thread's own is too coarse."""
    is_fine = threads == 1 and time.get_clock_info("thread_time").resolution <= FINE_S
    return time.thread_time if is_fine else time.perf_counter


def nothing() -> None:
    """Work that ends when its call does needs no waiting for."""


def timed(
    work: Callable[[], object], rounds: Rounds = USUAL, clock: Clock = time.perf_counter, settle: Callable[[], object] = nothing
) -> Timed:
    """The time of `work`, each round of so many calls that a clock tells it well; a first round warms up and does not count.

    `settle` waits for what the calls of a round began, as those of a card go on after they return.

    >>> ticks = iter([0.0, 9.0, 10.0, 12.0, 20.0, 22.0, 30.0, 32.0, 40.0, 42.0, 50.0, 52.0])
    >>> timed(lambda: None, Rounds(budget_s=100.0), lambda: next(ticks))
    Timed(fastest_s=2.0, median_s=2.0, rounds=5)
    """
    calls = _calls(work, clock, settle)
    times = list[float]()
    while True:
        start = clock()
        for _ in range(calls):
            work()
        settle()
        times.append((clock() - start) / calls)
        result = Timed(fastest_s=min(times), median_s=statistics.median(times), rounds=len(times))
        enough = result.spread <= rounds.spread or sum(times) * calls >= rounds.budget_s or len(times) >= rounds.most
        is_long = sum(times) * calls >= PATIENCE * rounds.budget_s
        if enough and (len(times) >= FEWEST or is_long):
            return result


def _calls(work: Callable[[], object], clock: Clock, settle: Callable[[], object]) -> int:
    """Calls of a round, doubled until one lasts long enough; these rounds warm caches and clocks."""
    calls = 1
    while True:
        start = clock()
        for _ in range(calls):
            work()
        settle()
        if clock() - start >= LEAST_ROUND_S or calls >= 2**20:
            return calls
        calls *= 2

"""Long runs of drawn requests: each is drawn when it is due, counted when it has ended, and then forgotten.

A request has a slot while it lives. Replicas are run up to the arrival of the next piece of requests; slots of those that have ended are
counted in a `RunTally` and given to later ones. So memory grows with the requests in service or in queues, not with all. Every figure is
what a run that keeps all has, but percentiles, which are within `sketch.RELATIVE_ERROR` of theirs.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from headway.core.progress import expect, tick
from headway.simulation import routing as sending
from headway.simulation import state as slot
from headway.simulation.compiled import Runner, runner
from headway.simulation.events import initial_times
from headway.simulation.loop import STUCK
from headway.simulation.simulate import STUCK_LINE, SimulatedRun, StuckLoop, no_order
from headway.simulation.state import Rules, State, make_state
from headway.simulation.step_time import StepPace, rises
from headway.simulation.tally import RunTally
from headway.simulation.traffic.requests import Traffic
from headway.simulation.traffic.stream import DrawnTraffic

AT_ONCE = 1 << 40  # iterations, no limit


@dataclass(slots=True, kw_only=True)
class Slots:
    """Lengths, times and queues of the requests that live; an empty slot has no number."""

    lengths: Any
    times: Any
    order: Any
    number: Any  # of each slot: which request of all it holds, -1 for none

    @classmethod
    def empty(cls) -> Slots:
        """No slots yet."""
        return cls(lengths=np.empty(0, np.int32), times=np.empty(0), order=no_order(0, False), number=np.empty(0, np.int64))

    def take(self, traffic: Traffic, first: int, fits: Any, overhead_s: float) -> tuple[Any, bool]:
        """Slots for requests that are numbered from `first` on, all that `fits`; and whether the arrays had to be made larger."""
        numbers = np.flatnonzero(fits)
        free = np.flatnonzero(self.number < 0)
        grows = len(numbers) > len(free)
        if grows:
            more = len(numbers) - len(free) + len(self.number) // 4
            free = np.append(free, np.arange(len(self.number), len(self.number) + more))
            self.lengths = np.append(self.lengths, np.zeros(2 * more, np.int32))
            self.times = np.append(self.times, np.full(4 * more, np.nan))
            self.order = np.append(self.order, no_order(more, False))
            self.number = np.append(self.number, np.full(more, -1))
        places = free[: len(numbers)]
        self.number[places] = first + numbers
        self.lengths[2 * places + slot.PROMPT], self.lengths[2 * places + slot.OUTPUT] = traffic.prompt[fits], traffic.output[fits]
        self.times.reshape(-1, 4)[places] = initial_times(traffic.arrival[fits], None, None, None, overhead_s)
        return places.astype(np.int32), grows

    def ended(self) -> Any:
        """Slots of the requests that have ended."""
        return np.flatnonzero((self.number >= 0) & np.isfinite(self.times[slot.FINISH :: 4]))

    def in_order(self, places: Any) -> Any:
        """Slots in the order of their requests."""
        return places[np.argsort(self.number[places])]


@dataclass(slots=True, kw_only=True)
class StreamedPlay:
    """Replicas, the slots of living requests, and what was counted."""

    form: Runner
    pace: StepPace
    rules: Rules
    overhead_s: float
    routed: bool
    tally: RunTally
    slots: Slots = field(default_factory=Slots.empty)
    states: list[State] = field(default_factory=list)
    board: Any = None  # of `routing.board`
    sent_count: int = 0
    routed_count: int = 0  # to replicas, refused ones left out

    def begin(self, replicas: int) -> None:
        """Empty replicas."""
        shared, nobody = self.slots, np.zeros(0, np.int32)
        states = [
            make_state(self.rules, shared.lengths, shared.times, shared.order, [nobody], self.pace.line, False) for _ in range(replicas)
        ]
        self.states, self.board = slot.side_by_side(states), sending.board(replicas)

    def play(self, traffic: Traffic, until: float) -> None:
        """Send the requests of a piece, run every replica until a time, and count those that have ended."""
        fits = (traffic.prompt + traffic.output + self.rules.block - 1) // self.rules.block <= self.rules.capacity
        places, grows = self.slots.take(traffic, self.sent_count, fits, self.overhead_s)
        if grows:
            shared = self.slots
            self.states = [state._replace(lengths=shared.lengths, times=shared.times, order=shared.order) for state in self.states]
        self.tally.send(traffic, fits)
        where, rules = self.form.hold(self.states), self.form.rule_table(self.rules)
        self.send(places, where, rules)
        for number in range(len(self.states)):
            if self.form.run_one(where, number, rules, self.form.step, until, AT_ONCE) == STUCK:
                raise StuckLoop(STUCK_LINE)
        self.sent_count, self.routed_count = self.sent_count + len(traffic), self.routed_count + len(places)
        self.count()
        tick(len(traffic))

    def send(self, places: Any, where: Any, rules: Any) -> None:
        """Send requests to replicas in turn, or each to its best on arrival."""
        replicas = len(self.states)
        if not self.routed:
            for number in range(replicas):
                slot.know(self.states[number], 0, places[(number - self.routed_count) % replicas :: replicas])
            return
        ranks, destinations = np.zeros(len(places), np.int8), np.zeros(len(places), np.int32)
        ended = self.form.send(where, replicas, rules, self.form.step, places, ranks, destinations, *self.board, 0, len(places), 0)
        if ended == STUCK:
            raise StuckLoop(STUCK_LINE)

    def count(self) -> None:
        """Count the requests that have ended and empty their slots."""
        places = self.slots.in_order(self.slots.ended())
        times = self.slots.times.reshape(-1, 4)[places]
        for column in (slot.FIRST, slot.FINISH):
            times[:, column] += self.overhead_s
        lengths = self.slots.lengths.reshape(-1, 2)[places].astype(np.int64)
        self.tally.add(self.slots.number[places], times, lengths)
        self.slots.number[places] = -1


def simulate_stream(
    stream: DrawnTraffic, pace: StepPace, rules: Rules, *, replicas: int = 1, overhead_s: float = 0.0, how: str = "auto",
    routing: str = "round-robin", warmup: float = 0.0, limits: Mapping[str, float] | None = None, first_token_factor: float = 1.0,
) -> SimulatedRun:  # fmt: skip
    """Simulate drawn requests on replicas without keeping them; the run has every so many-th request, and the tally of all."""
    start = time.perf_counter()
    routed = routing != "round-robin" and replicas > 1
    form = runner(pace.source, pace.step, float("inf"), "compiled" if how == "auto" else how, routed)
    longest = int((stream.sample.prompt + stream.sample.output).max())
    falling = routed and not rises(pace.source, rules.seats, rules.budget, longest)
    rules = rules._replace(closed=0, leaving=0, caching=0, falling=int(falling))
    tally = RunTally.of(len(stream), stream.span, warmup, limits or {}, first_token_factor)
    play = StreamedPlay(form=form, pace=pace, rules=rules, overhead_s=overhead_s, routed=routed, tally=tally)
    play.begin(replicas)
    expect(len(stream))
    interrupted = False
    try:
        for piece, following in ahead(stream.pieces()):
            play.play(piece, np.inf if following is None else float(following.arrival[0]))
    except KeyboardInterrupt:
        interrupted = True
        play.count()
    return tally.run(play.states, rules, overhead_s, form.compile_s, interrupted, time.perf_counter() - start)


def ahead(pieces: Iterator[Traffic]) -> Iterator[tuple[Traffic, Traffic | None]]:
    """Each piece with the next one, None after the last."""
    before = next(pieces)
    for piece in pieces:
        yield before, piece
        before = piece
    yield before, None

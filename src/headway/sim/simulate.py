"""Traffic through replicas: what each request waited and took, and what the replicas did meanwhile."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.errors import BadValue, HeadwayError
from headway.sim import state as of
from headway.sim.fast import Runner, runner
from headway.sim.loop import IDLE, STUCK
from headway.sim.pacing import Pace
from headway.sim.prefix import Prefix
from headway.sim.state import Rules, State, make_state
from headway.sim.traffic.record import Traffic
from headway.watch import tick

SLICE = 100_000  # iterations between two looks at the keyboard
PLAIN_SLICE = 5_000
SENT, PLAIN_SENT = 20_000, 500  # requests, where they are sent one by one
TURNS, PLAIN_TURNS = 20_000, 500  # of replicas that share a tier
STUCK_LINE = "the simulation cannot go on: a request waits that nothing can serve; please report it"


class StuckLoop(HeadwayError):
    """A request that nothing can serve and that was not refused: never the user's fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A simulation: times of each request in the order of the traffic, nan where it did not come so far."""

    traffic: Traffic
    arrival: Any  # as it was played: of a closed loop it depends on the answers
    scheduled: Any
    first: Any
    finish: Any
    refused: Any  # whether the cache could never hold it
    replica: Any
    states: tuple[State, ...]
    rules: Rules
    overhead_s: float
    interrupted: bool
    compile_s: float
    wall_s: float
    prefill: Run | None = None  # of the pool that computes prompts, where that is another

    @property
    def completed(self) -> Any:
        """Whether a request has its last token."""
        return np.isfinite(self.finish)

    @property
    def reached(self) -> Any:
        """Whether a request was sent before its replica's clock stood still: all of them, unless the run was interrupted."""
        known = np.isfinite(self.arrival)
        if self.interrupted:
            clock = np.array([*(state.at[of.NOW] for state in self.states), self.end])  # who went to no replica: -1, the last
            known &= self.arrival <= clock[self.replica]
        return known

    @property
    def cancelled(self) -> Any:
        """Whether a request was under way, or not sent yet, when the run was interrupted."""
        return ~self.completed & ~self.refused

    def sent_between(self, counts: Any) -> tuple[float, float]:
        """When the first and the last of some requests were sent; 0 for none."""
        if not counts.any():
            return 0.0, 0.0
        return float(np.min(self.arrival, where=counts, initial=np.inf)), float(np.max(self.arrival, where=counts, initial=-np.inf))

    def total(self, element: int) -> float:
        """A scalar of `at` over all replicas."""
        return float(sum(state.at[element] for state in self.states))

    def counted(self, element: int) -> int:
        """A count over all replicas."""
        return int(sum(state.count[element] for state in self.states))

    @property
    def end(self) -> float:
        """The clock of the replica that ended last."""
        return float(max(state.at[of.NOW] for state in self.states))


def simulate(
    traffic: Traffic, pace: Pace, rules: Rules, *, replicas: int = 1, overhead_s: float = 0.0, ranks: Any = None, think: Any = None,
    users: int = 0, how: str = "auto", routing: str = "round-robin", prefix: Prefix | None = None, barred: Any = False,
) -> Run:  # fmt: skip
    """Play traffic through so many replicas; `ranks` are classes of priority, `think` and `users` make it a closed loop.

    `barred` are refused beside those that the cache could never hold.
    """
    start = time.perf_counter()
    count = len(traffic)
    refused = (traffic.prompt + traffic.output + rules.block - 1) // rules.block > rules.capacity
    refused |= barred
    served = np.flatnonzero(~refused).astype(np.int32)
    times = np.full((count, 4), np.nan)
    times[:, of.ARRIVAL] = traffic.arrival
    if users:
        times[users:, of.ARRIVAL] = (0.0 if think is None else np.asarray(think, float)[users:]) + overhead_s
    lengths = np.empty(2 * count, np.int32)
    lengths[of.PROMPT :: 2], lengths[of.OUTPUT :: 2] = traffic.prompt, traffic.output
    routed = routing != "round-robin" and replicas > 1 and not users
    shared = prefix is not None and prefix.shared and replicas > 1
    if routing == "prefix-aware":
        if prefix is None:
            raise BadValue("--routing", routing, "--prefix-cache beside it")
        rules = rules._replace(answer=float(traffic.output.mean()))
    form = runner(pace.source, pace.step, count, how, routed, shared)
    flat = (lengths.tolist(), times.ravel().tolist()) if form.lists else (lengths, times.ravel())
    caches = prefix.caches(rules, traffic, pace, replicas, form.lists) if prefix else [(None, 0)] * replicas
    play = Play(
        form=form, pace=pace, rules=rules, lengths=flat[0], times=flat[1], served=served, ranks=ranks, caches=caches, shared=shared
    )  # fmt: skip
    if routed:
        states, replica, ended = play.one_by_one(replicas)
    else:
        states, replica, ended = play.in_turn(replicas, users)
    played = np.asarray(flat[1]).reshape(-1, 4)
    where = np.full(count, -1, np.int16)
    where[play.served] = replica
    if overhead_s:
        played[:, of.FIRST] += overhead_s
        played[:, of.FINISH] += overhead_s
    if users:
        played[refused, of.ARRIVAL] = np.nan
        for state in states:  # who was never asked has no time of asking
            played[np.asarray(state.order)[int(state.ends[of.KNOWN]) : int(state.count[of.TOTAL])], of.ARRIVAL] = np.nan
    return Run(
        traffic=traffic, arrival=played[:, of.ARRIVAL], scheduled=played[:, of.SCHEDULED],
        first=played[:, of.FIRST], finish=played[:, of.FINISH], refused=refused, replica=where,
        states=tuple(state._replace(lengths=(), order=()) for state in states), rules=rules, overhead_s=overhead_s,
        interrupted=not ended, compile_s=form.compile_s,
        wall_s=time.perf_counter() - start,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Play:
    """Requests that can be served, and what serves them."""

    form: Runner
    pace: Pace
    rules: Rules
    lengths: Any
    times: Any
    served: Any
    ranks: Any
    caches: list[tuple[Any, int]]  # of each replica, and its first pool
    shared: bool  # replicas have a tier of the cache in common

    def state(self, number: int, mine: Any) -> State:
        """A replica to which these requests may go."""
        classes = range(self.rules.lanes // of.LANE)
        lanes = [mine if self.ranks is None else mine[np.asarray(self.ranks)[mine] == lane] for lane in classes]
        pace, (cache, own) = self.pace, self.caches[number]
        return make_state(self.rules, self.lengths, self.times, lanes, pace.line, pace.spread, self.form.lists, cache, own)

    def in_turn(self, replicas: int, users: int) -> tuple[list[State], Any, bool]:
        """Each request, or each user, to the next replica: they never meet, so each runs by itself."""
        replica = np.zeros(len(self.served), np.int16)
        for number in range(1, replicas):
            replica[number::replicas] = number
        states = []
        for number in range(replicas):
            state = self.state(number, self.served[number::replicas])
            if users:
                state.ends[of.KNOWN] = min(users // replicas + (number < users % replicas), int(state.count[of.TOTAL]))
            states.append(state)
        return states, replica, self.run(states)

    def one_by_one(self, replicas: int) -> tuple[list[State], Any, bool]:
        """Each request to a replica that is chosen when it comes."""
        states, count = [self.state(number, self.served.copy()) for number in range(replicas)], len(self.served)
        for state in states:
            for lane in range(0, self.rules.lanes, of.LANE):
                state.ends[lane + of.KNOWN] = state.ends[lane + of.SERVED]
        ranks = np.zeros(count, np.int64) if self.ranks is None else np.asarray(self.ranks)[self.served].astype(np.int64)
        replica = np.full(count, -1)
        who, lanes, sent = (each.tolist() if self.form.lists else each for each in (self.served, ranks, replica))
        where, size = self.form.hold(states), PLAIN_SENT if self.form.lists else SENT
        try:
            for first in range(0, count, size):
                ended = self.form.send(where, replicas, self.rules, self.form.step, who, lanes, sent, first, min(first + size, count))
                tick(size)
                if ended == STUCK:
                    raise StuckLoop(STUCK_LINE)
        except KeyboardInterrupt:
            return states, np.asarray(sent), False
        return states, np.asarray(sent), self.run(states)

    def run(self, states: list[State]) -> bool:
        """Run replicas by turns, a slice each, until nothing is left to do; False when the user interrupted them."""
        where, left = self.form.hold(states), range(len(states))
        try:
            while left and self.shared:
                left = [] if self.all_idle(states, where) else left
            while left:
                left = [number for number in left if not self.idle(states, where, number)]
        except KeyboardInterrupt:
            return False
        return True

    def all_idle(self, states: list[State], where: Any) -> bool:
        """Run replicas that share a tier for some turns, side by side; whether nothing is left for them to do."""
        done = sum(int(state.count[of.DONE]) for state in states)
        most = PLAIN_TURNS if self.form.lists else TURNS
        ended = self.form.take_turns(where, len(states), self.rules, self.form.step, np.inf, most)
        tick(sum(int(state.count[of.DONE]) for state in states) - done)
        if ended == STUCK:
            raise StuckLoop(STUCK_LINE)
        return ended == IDLE

    def idle(self, states: list[State], where: Any, number: int) -> bool:
        """Run one replica for a slice; whether nothing is left for it to do."""
        count = states[number].count
        done = int(count[of.DONE])
        ended = self.form.run_one(where, number, self.rules, self.form.step, np.inf, PLAIN_SLICE if self.form.lists else SLICE)
        tick(int(count[of.DONE]) - done)
        if ended == STUCK:
            raise StuckLoop(STUCK_LINE)
        return ended == IDLE

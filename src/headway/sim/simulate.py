"""Traffic through replicas: what each request waited and took, and what the replicas did meanwhile."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.errors import HeadwayError
from headway.sim import state as of
from headway.sim.fast import Runner, runner
from headway.sim.loop import IDLE, STUCK
from headway.sim.pacing import Pace
from headway.sim.state import Rules, State, make_state
from headway.sim.traffic.record import Traffic
from headway.watch import tick

SLICE = 100_000  # iterations between two looks at the keyboard
PLAIN_SLICE = 5_000


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

    @property
    def completed(self) -> Any:
        """Whether a request has its last token."""
        return np.isfinite(self.finish)

    @property
    def cancelled(self) -> Any:
        """Whether a request was still under way when the run was interrupted."""
        return ~self.completed & ~self.refused

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
    users: int = 0, how: str = "auto",
) -> Run:  # fmt: skip
    """Play traffic through so many replicas in turn; `ranks` are classes of priority, `think` and `users` make it a closed loop."""
    start = time.perf_counter()
    count = len(traffic)
    times = np.full((count, 4), np.nan)
    times[:, of.ARRIVAL] = traffic.arrival
    if users:
        times[users:, of.ARRIVAL] = (0.0 if think is None else np.asarray(think, float)[users:]) + overhead_s
    lengths = np.stack((traffic.prompt, traffic.output), axis=1)
    blocks = (traffic.prompt + traffic.output + rules.block - 1) // rules.block
    refused = blocks > rules.capacity
    served = np.flatnonzero(~refused)
    replica = np.full(count, -1)
    replica[served] = np.arange(len(served)) % replicas
    form = runner(pace.source, pace.step, count, how)
    flat = times.ravel(), lengths.ravel()
    shared = (flat[1].tolist(), flat[0].tolist()) if form.lists else (flat[1], flat[0])
    states, interrupted = [], False
    for number in range(replicas):
        mine = served[replica[served] == number]
        lanes = [mine if ranks is None else mine[np.asarray(ranks)[mine] == lane] for lane in range(rules.lanes // of.LANE)]
        state = make_state(rules, *shared, lanes, pace.line, pace.spread, form.lists)
        if users:
            share = users // replicas + (number < users % replicas)
            state.ends[of.KNOWN] = min(share, len(mine))
        states.append(state)
    for state in states:
        interrupted = interrupted or not _to_the_end(form, state, rules)
    played = np.asarray(shared[1]).reshape(-1, 4)
    return Run(
        traffic=traffic, arrival=np.where(refused & (users > 0), np.nan, played[:, of.ARRIVAL]), scheduled=played[:, of.SCHEDULED],
        first=played[:, of.FIRST] + overhead_s, finish=played[:, of.FINISH] + overhead_s, refused=refused, replica=replica,
        states=tuple(states), rules=rules, overhead_s=overhead_s, interrupted=interrupted, compile_s=form.compile_s,
        wall_s=time.perf_counter() - start,
    )  # fmt: skip


def _to_the_end(form: Runner, state: State, rules: Rules) -> bool:
    """Run a replica until nothing is left to do; False when the user interrupted it."""
    done = 0
    try:
        while True:
            ended = form.advance(state, rules, form.step, np.inf, PLAIN_SLICE if form.lists else SLICE)
            tick(int(state.count[of.DONE]) - done)
            done = int(state.count[of.DONE])
            if ended == IDLE:
                return True
            if ended == STUCK:
                raise StuckLoop("the simulation cannot go on: a request waits that nothing can serve; please report it")
    except KeyboardInterrupt:
        return False

"""Users of a closed loop on prefill replicas and decode replicas: who waits for an answer of one pool sends the next prompt to the other.

Neither pool can be played before the other, so both are played event by event: the replica whose work is due first runs one iteration, a
decode replica at most until a prompt could reach it that is not known yet. So every replica knows each request when it comes.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace
from math import inf, isfinite
from typing import Any

import numpy as np

from headway.core.progress import expect, tick
from headway.simulation import state as slot
from headway.simulation.compiled import plain_s, runner
from headway.simulation.fleet import PrefillDecodePools, as_clients_saw
from headway.simulation.loop import STUCK
from headway.simulation.routing import due
from headway.simulation.simulate import STUCK_LINE, PlayableTraffic, SimulatedRun, StuckLoop, no_order, run_of
from headway.simulation.state import Rules, State
from headway.simulation.step_time import StepPace
from headway.simulation.traffic.requests import Traffic

LEAVES, ASKS, HANDED = 0, 1, 2  # kinds of event; of those at one time the first comes first: a request that leaves makes room


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pool:
    """Replicas of one pool, with the requests that each has."""

    play: PlayableTraffic
    states: list[State]
    where: Any
    rules: Any
    loads: list[int]
    serving: list[list[int]]
    dues: list[float]
    replica: np.ndarray

    @classmethod
    def of(cls, traffic: Traffic, pace: StepPace, rules: Rules, replicas: int, how: str, served: Any) -> _Pool:
        """Empty replicas, to which requests are sent one by one."""
        form = runner(pace.source, pace.step, plain_s(traffic), how)
        lengths, times = np.empty(2 * len(traffic), np.int32), np.full(4 * len(traffic), np.nan)
        lengths[slot.PROMPT :: 2], lengths[slot.OUTPUT :: 2] = traffic.prompt, traffic.output
        flat = (lengths.tolist(), times.tolist()) if form.lists else (lengths, times)
        play = PlayableTraffic(
            form=form, pace=pace, rules=rules, lengths=flat[0], times=flat[1],
            order=no_order(len(traffic), form.lists), served=served, ranks=None, caches=[(None, 0)] * replicas,
            shared=False, turns=None,
        )  # fmt: skip
        states = [play.state(number, served[:0]) for number in range(replicas)]
        return cls(
            play=play, states=states, where=form.hold(states), rules=form.rule_table(rules), loads=[0] * replicas,
            serving=[[] for _ in states], dues=[inf] * replicas, replica=np.full(len(traffic), -1),
        )  # fmt: skip

    def send(self, request: int, time: float) -> None:
        """Send a request to the replica with the fewest."""
        number = min(range(len(self.loads)), key=self.loads.__getitem__)
        state = self.states[number]
        self.play.times[4 * request + slot.ARRIVAL] = time
        slot.hear_of(state, 0, request)
        self.loads[number] += 1
        if not self.play.rules.handed:  # of answers it is enough how many end
            self.serving[number].append(request)
        self.replica[request] = number
        self.dues[number] = due(state, self.play.rules)

    def run(self, number: int, until: float) -> int:
        """Run one iteration of a replica; how many requests it finished with it."""
        state, form = self.states[number], self.play.form
        before = state.count[slot.COMPLETED]
        if form.run_one(self.where, number, self.rules, form.step, until, 1) == STUCK:
            raise StuckLoop(STUCK_LINE)
        self.dues[number] = due(state, self.play.rules)
        return int(state.count[slot.COMPLETED] - before)

    def finished(self, number: int, count: int) -> list[int]:
        """The so many requests that a replica finished last, which are forgotten: mostly those that came first."""
        mine, times, places = self.serving[number], self.play.times, list[int]()
        for place, request in enumerate(mine):
            if isfinite(times[4 * request + slot.FINISH]):
                places.append(place)
                if len(places) == count:
                    break
        return [mine.pop(place) for place in reversed(places)][::-1]

    def result(self, traffic: Traffic, refused: Any, overhead_s: float, rules: Rules) -> SimulatedRun:
        """The run of the pool, in the order of the traffic."""
        run = run_of(self.play, traffic, refused, 0, overhead_s, self.states, self.replica[self.play.served])
        return replace(run, rules=rules)


@dataclass(slots=True)
class _Users:
    """Users who ask again when they are answered: events to come, and how many were sent."""

    prefill: _Pool
    decode: _Pool
    transfer: Any
    pause: Any
    overhead_s: float
    soonest: float  # least seconds from the begin of a prefill step until what it computed is handed over
    sent_count: int
    events: tuple[list[tuple[float, int]], ...]  # of each kind a heap of time and request; who leaves is named by the replica

    def go_on(self) -> bool:
        """The next event, or one iteration of the replica whose work is due first; False at the end."""
        side = min((self.prefill, self.decode), key=lambda pool: min(pool.dues))
        number = min(range(len(side.dues)), key=side.dues.__getitem__)
        kind = min(range(len(self.events)), key=self.time_of)
        if self.time_of(kind) <= side.dues[number] < inf or self.time_of(kind) < inf == side.dues[number]:
            self.happen(kind, *heapq.heappop(self.events[kind]))
            return True
        if side.dues[number] == inf:
            return False
        ended = side.run(number, inf if side is self.prefill else self.known_until(number))
        time = float(side.states[number].at[slot.NOW])
        for _ in range(ended):
            heapq.heappush(self.events[LEAVES], (time, number if side is self.prefill else -1 - number))
        if side is self.prefill and ended:
            for request in side.finished(number, ended):
                heapq.heappush(self.events[HANDED], (time + float(self.transfer[request]), request))
        elif side is self.decode:
            for _ in range(ended):
                self.ask_again(time)
        return True

    def time_of(self, kind: int) -> float:
        """Time of the next event of a kind."""
        return self.events[kind][0][0] if self.events[kind] else inf

    def known_until(self, number: int) -> float:
        """Time until which every prompt that reaches a decode replica is known."""
        decoders = min((time for replica, time in enumerate(self.decode.dues) if replica != number), default=inf)
        return min(self.time_of(HANDED), min(*self.prefill.dues, decoders, self.time_of(ASKS)) + self.soonest)

    def happen(self, kind: int, time: float, name: int) -> None:
        """A request is sent or is handed over; or one leaves its replica, a decode replica where the number is negative."""
        if kind == ASKS:
            self.prefill.send(name, time)
        elif kind == HANDED:
            self.decode.send(name, time)
        elif name < 0:
            self.decode.loads[-1 - name] -= 1
        else:
            self.prefill.loads[name] -= 1

    def ask_again(self, time: float) -> None:
        """The user whose answer ended asks again after a pause, as long as there are requests."""
        tick(1)
        if self.sent_count < len(self.prefill.play.served):
            request = int(self.prefill.play.served[self.sent_count])
            self.sent_count += 1
            heapq.heappush(self.events[ASKS], (time + self.overhead_s + float(self.pause[request]), request))


def play_users(
    traffic: Traffic, users: int, think: Any, pace: StepPace, rules: Rules, pools: PrefillDecodePools, *, overhead_s: float = 0.0,
    how: str = "auto",
) -> tuple[SimulatedRun, SimulatedRun]:  # fmt: skip
    """The run of `users` users as they see it, with the decode pool's states; and the run of the prefill pool."""
    refused = (traffic.prompt + traffic.output + rules.block - 1) // rules.block > rules.capacity
    first_pace, first_rules = pools.prefill_side(pace, rules)
    refused |= (traffic.prompt + first_rules.block) // first_rules.block > first_rules.capacity
    served = np.flatnonzero(~refused).astype(np.int32)
    prompts = replace(traffic, output=np.ones_like(traffic.output))
    sides = [
        _Pool.of(part, step, limits._replace(closed=0, caching=0, leaving=0), count, how, served)
        for part, step, limits, count in (
            (prompts, first_pace, first_rules, pools.prefill),
            (traffic, pace, rules._replace(handed=1), pools.decode),
        )
    ]
    begin, transfer = min(users, len(served)), np.broadcast_to(pools.transfer_s(traffic.prompt), (len(traffic),))
    loop = _Users(
        prefill=sides[0], decode=sides[1], transfer=transfer, overhead_s=overhead_s, sent_count=begin,
        pause=np.zeros(len(traffic)) if think is None else np.broadcast_to(np.asarray(think, float), (len(traffic),)),
        soonest=float(np.min(transfer, initial=inf)) + float(first_pace.step(0.0, 0.0, 1.0, 0.5, 1.0)),
        events=([], [(float(traffic.arrival[request]), int(request)) for request in served[:begin]], []),
    )  # fmt: skip
    expect(len(served))
    interrupted = False
    try:
        while loop.go_on():
            pass
    except KeyboardInterrupt:
        interrupted = True
    closed = rules._replace(closed=1)
    before, after = (side.result(part, refused, 0.0, closed) for side, part in zip(sides, (prompts, traffic), strict=True))
    run = as_clients_saw(traffic, before, after, np.arange(len(traffic)), overhead_s)
    return replace(run, interrupted=interrupted), before

"""Simulation of traffic on replicas, conversations included: times of each request, and the final state of each replica."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headway.core.errors import BadValue, HeadwayError
from headway.core.progress import expect, tick
from headway.simulation import routing as sending
from headway.simulation import state as slot
from headway.simulation.compiled import Runner, plain_s, runner
from headway.simulation.events import abandonments, initial_times
from headway.simulation.loop import IDLE, STUCK
from headway.simulation.prefix_tiers import Prefix
from headway.simulation.state import Rules, State, make_state
from headway.simulation.step_time import StepPace, rises
from headway.simulation.traffic.requests import NO_CONVERSATION, Mask, Traffic


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnOrder:
    """Order of turns in conversations, by request in the order of the traffic."""

    after: Any  # the next turn of its conversation, -1 for the last turn
    first: Any  # the first turn of its conversation; the request itself if in none

    @property
    def later(self) -> Any:
        """Mask of requests that wait for an answer before they are sent."""
        return self.first != np.arange(len(self.first))

    def unasked(self, completed: Mask) -> Any:
        """Mask of turns after an incomplete turn."""
        before = np.full(len(self.after), -1, np.int64)
        has = np.flatnonzero(self.after >= 0)
        before[self.after[has]] = has
        return (before >= 0) & ~completed[before]


def turns_of(traffic: Traffic) -> TurnOrder:
    """The order of requests within each conversation.

    >>> turns = turns_of(Traffic.of([0, 1, 2, 3], 1, 1, conversation=[0, -1, 0, 0]))
    >>> turns.after.tolist(), turns.first.tolist()
    ([2, -1, 3, -1], [0, 1, 0, 0])
    """
    count = len(traffic)
    order = np.argsort(traffic.conversation, kind="stable")
    names = traffic.conversation[order]
    same = (names[1:] == names[:-1]) & (names[1:] != NO_CONVERSATION)
    after, first = np.full(count, -1, np.int64), np.empty(count, np.int64)
    after[order[:-1][same]] = order[1:][same]
    begins = np.flatnonzero(np.concatenate(([True], ~same))) if count else np.zeros(0, np.int64)
    first[order] = np.repeat(order[begins], np.diff(np.append(begins, count)))
    return TurnOrder(after=after, first=first)


def cut_short(turns: TurnOrder, refused: Mask) -> tuple[TurnOrder, Any]:
    """The turns that are sent, and the mask of refused requests; a conversation ends before a turn that cannot be served."""
    ends, at = refused.copy(), np.flatnonzero(refused)
    while len(at):
        at = turns.after[at]
        at = at[at >= 0]
        at = at[~ends[at]]
        ends[at] = True
    after = np.where((turns.after >= 0) & ends[turns.after], -1, turns.after)
    return replace(turns, after=after), ends


SLICE = 100_000  # iterations between checks for an interrupt
PLAIN_SLICE = 5_000
SEND_SLICE, PLAIN_SEND_SLICE = 20_000, 500  # requests between checks, if routed one by one
TURNS, PLAIN_TURNS = 20_000, 500  # turns between checks, if replicas share a tier
STUCK_LINE = "the simulation cannot go on: a request waits that nothing can serve; please report it"


class StuckLoop(HeadwayError):
    """A request that cannot be served was not refused: an internal error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedRun:
    """A finished simulation: times of each request in the order of the traffic, nan for stages that it did not reach."""

    traffic: Traffic
    arrival: Any  # as simulated; in a closed loop it depends on the answers
    scheduled: Any
    first: Any
    finish: Any
    refused: Any  # whether the cache could never hold it or an earlier turn
    replica: Any
    abandonment: Any  # time of abandonment, nan if none; None without patience
    states: tuple[State, ...]
    rules: Rules
    overhead_s: float
    first_token_factor: float = 1.0  # of the user's own runs, on the TTFT that users measure: the loop goes on at its own time
    interrupted: bool
    compile_s: float
    wall_s: float
    prefill: SimulatedRun | None = None  # run of a separate prefill pool
    tally: Any = None  # of a run whose requests are not kept, what was counted of all; the arrays are then those of a sample

    @property
    def completed(self) -> Any:
        """Mask of requests with their last token."""
        return np.isfinite(self.finish)

    @property
    def caches(self) -> bool:
        """Whether prompts go through a prefix cache."""
        return bool((self if self.prefill is None else self.prefill).rules.caching)

    @property
    def is_sent(self) -> Any:
        """Mask of requests sent by the end of their replica's clock; all of them unless the run was interrupted."""
        known = np.isfinite(self.arrival)
        if self.interrupted:
            clock = np.array([*(state.at[slot.NOW] for state in self.states), self.end])  # replica -1 (none) reads the last entry
            known &= self.arrival <= clock[self.replica]
        return known

    @property
    def cancelled(self) -> Any:
        """Mask of requests neither completed nor refused: abandoned, after an abandoned turn, or cut off by an interrupt."""
        return ~self.completed & ~self.refused

    def sent_between(self, counts: Mask) -> tuple[float, float]:
        """Send times of the first and the last of some requests; zeros for none."""
        if not counts.any():
            return 0.0, 0.0
        return float(np.min(self.arrival, where=counts, initial=np.inf)), float(np.max(self.arrival, where=counts, initial=-np.inf))

    def total(self, element: int) -> float:
        """Sum of an element of `at` over all replicas."""
        return float(sum(state.at[element] for state in self.states))

    def total_count(self, element: int) -> int:
        """Sum of an element of `count` over all replicas."""
        return int(sum(state.count[element] for state in self.states))

    @property
    def end(self) -> float:
        """The latest clock of all replicas."""
        return float(max(state.at[slot.NOW] for state in self.states))


def simulate(
    traffic: Traffic, pace: StepPace, rules: Rules, *, replicas: int = 1, overhead_s: float = 0.0,
    ranks: NDArray[Any] | None = None, think: ArrayLike | None = None, users: int = 0, sends: int = 0, how: str = "auto",
    routing: str = "round-robin", prefix: Prefix | None = None, barred: Mask | bool = False, patience: ArrayLike | None = None,
) -> SimulatedRun:  # fmt: skip
    """Simulate traffic on `replicas` replicas; `ranks` are priority classes, `think` and `users` make a closed loop.

    `barred` requests are refused, as are requests that the cache could never hold. A request without a first token after `patience`
    seconds (one number, or one per request) is abandoned. Traffic with pauses has conversations: a turn waits for the previous
    answer and goes to its replica; if each request is routed anew, turns arrive as recorded. Users of such traffic, who send `sends`
    requests, each go on with a conversation and then begin the next, a pause of its first turn later; the run has what they sent.
    """
    start = time.perf_counter()
    count = len(traffic)
    refused = (traffic.prompt + traffic.output + rules.block - 1) // rules.block > rules.capacity
    refused |= barred
    turns = None
    routed = routing != "round-robin" and replicas > 1 and not users
    if traffic.pause is not None and not routed:
        turns, refused = cut_short(turns_of(traffic), refused)
    served = np.flatnonzero(~refused).astype(np.int32)
    kind = (slot.ARRIVALS if turns is None else slot.TALKS) if not users else slot.USERS if turns is None else slot.TALKING_USERS
    longest = int((traffic.prompt + traffic.output).max())
    falling = routed and not rises(pace.source, rules.seats, rules.budget, longest)
    rules = rules._replace(closed=kind, leaving=int(patience is not None), falling=int(falling))
    if routing == "prefix-aware" and prefix is not None:
        rules = rules._replace(answer=float(traffic.output.mean()))
    later = turns.later if turns else None
    if users:  # all but each user's first
        begins = served if later is None else served[~later[served]]
        later = np.ones(count, bool)
        later[begins[:users]] = False
    times = initial_times(traffic.arrival, later, think if kind == slot.USERS else traffic.pause, patience, overhead_s)
    lengths = np.empty(2 * count, np.int32)
    lengths[slot.PROMPT :: 2], lengths[slot.OUTPUT :: 2] = traffic.prompt, traffic.output
    shared = prefix is not None and prefix.shared and replicas > 1
    if routing == "prefix-aware" and prefix is None:
        raise BadValue("--routing", routing, "--prefix-cache beside it")
    form = runner(pace.source, pace.step, plain_s(traffic, prefix is not None), how, routed, shared)
    flat = (lengths.tolist(), times.ravel().tolist()) if form.lists else (lengths, times.ravel())
    caches = prefix.caches(rules, traffic, pace, replicas, form.lists) if prefix else [(None, 0)] * replicas
    play = PlayableTraffic(
        form=form, pace=pace, rules=rules, lengths=flat[0], times=flat[1], order=no_order(count, form.lists), served=served, ranks=ranks,
        caches=caches, shared=shared, turns=turns,
    )  # fmt: skip
    expect(len(served) * (2 if routed else 1))  # routed requests are sent, then answered
    states, replica, ended = play.one_by_one(replicas) if routed else play.in_turn(replicas, users, sends)
    run = run_of(play, traffic, refused, users, overhead_s, states, replica)
    run = of_those_sent(run) if kind == slot.TALKING_USERS else run
    return replace(run, interrupted=not ended, wall_s=time.perf_counter() - start)


def of_those_sent(run: SimulatedRun) -> SimulatedRun:
    """The run of users' conversations with the requests that they sent or wanted to: of those that nobody began it knows nothing."""
    turns = turns_of(run.traffic).first
    is_sent = np.isfinite(run.scheduled) if run.abandonment is None else np.isfinite(run.scheduled) | np.isfinite(run.abandonment)
    begun = np.zeros(len(turns), bool)
    begun[turns[is_sent]] = True
    rows = np.flatnonzero(is_sent | (run.refused & begun[turns]))
    traffic = Traffic.of(np.zeros(len(rows)), run.traffic.prompt[rows], run.traffic.output[rows])
    times = {name: getattr(run, name)[rows] for name in ("arrival", "scheduled", "first", "finish", "refused", "replica")}
    return replace(run, traffic=traffic, abandonment=None if run.abandonment is None else run.abandonment[rows], **times)


def no_order(count: int, lists: bool) -> Any:
    """Of so many requests what follows each in its queue: nothing yet."""
    return [slot.NONE] * count if lists else np.full(count, slot.NONE, np.int32)


def run_of(
    play: PlayableTraffic, traffic: Traffic, refused: Mask, users: int, overhead_s: float, states: list[State], replica: NDArray[Any]
) -> SimulatedRun:
    """The run as users saw it, from the final states."""
    played = np.asarray(play.times).reshape(-1, 4)
    where = np.full(len(traffic), -1, np.int32)
    where[play.served] = replica
    gave_up = abandonments(played, overhead_s) if play.rules.leaving else None
    for column in (slot.FIRST, slot.FINISH):
        played[:, column] += overhead_s
    # Requests that waited for an answer and were never sent have no arrival time.
    if play.turns is not None:
        played[play.turns.unasked(np.isfinite(played[:, slot.FINISH])), slot.ARRIVAL] = np.nan
    elif users:
        for state in states:
            request = int(state.ends[slot.NEXT_REQUEST])
            while request != slot.NONE:
                played[request, slot.ARRIVAL], request = np.nan, int(state.order[request])
        played[refused, slot.ARRIVAL] = np.nan
    arrival, scheduled, first, finish = played.T
    return SimulatedRun(
        traffic=traffic,
        arrival=arrival,
        scheduled=scheduled,
        first=first,
        finish=finish,
        refused=refused,
        replica=where,
        abandonment=gave_up,
        states=tuple(state._replace(lengths=(), order=()) for state in states),
        rules=play.rules,
        overhead_s=overhead_s,
        interrupted=False,
        compile_s=play.form.compile_s,
        wall_s=0.0,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayableTraffic:
    """Requests that can be served, with the loop, step times, rules and caches to simulate them."""

    form: Runner
    pace: StepPace
    rules: Rules
    lengths: Any
    times: Any
    order: Any  # by request: the next of its queue
    served: Any
    ranks: Any
    caches: list[tuple[Any, int]]  # cache and first pool of each replica
    shared: bool  # whether replicas share a tier of the cache
    turns: TurnOrder | None  # turns of conversations, if they wait for answers

    def state(self, number: int, mine: NDArray[Any]) -> State:
        """The initial state of a replica that may get the requests `mine`."""
        classes = range(self.rules.lanes // slot.LANE)
        first = mine[~self.turns.later[mine]] if self.turns is not None and self.rules.closed == slot.TALKING_USERS else mine
        lanes = [first if self.ranks is None else first[np.asarray(self.ranks)[first] == lane] for lane in classes]
        pace, (cache, first_pool) = self.pace, self.caches[number]
        after = None if self.turns is None else self.turns.after.tolist() if self.form.lists else self.turns.after
        room = len(mine) if self.rules.closed else 0
        return make_state(
            self.rules, self.lengths, self.times, self.order, lanes, pace.line, self.form.lists, cache, first_pool, after, room
        )  # fmt: skip

    def call(self, state: State, first: NDArray[Any]) -> None:
        """Schedule requests that wait for no answer."""
        times = np.array([self.times[4 * request + slot.ARRIVAL] for request in first])
        lanes = 0 if self.ranks is None else slot.LANE * np.asarray(self.ranks)[first]
        order = np.argsort(times, kind="stable")  # a sorted list is a heap
        state.coming[0 : 2 * len(first) : 2] = times[order].tolist()
        state.coming[1 : 2 * len(first) : 2] = (first.astype(np.int64) * self.rules.lanes + lanes)[order].tolist()
        state.count[slot.COMING] = len(first)

    def in_turn(self, replicas: int, users: int, sends: int = 0) -> tuple[list[State], Any, bool]:
        """Simulate round-robin routing of requests or users; replicas do not interact, so each runs independently."""
        begins = self.begins
        replica, callers = np.zeros(len(begins), np.int32), users or replicas  # users send equally many requests
        for caller in range(callers):
            replica[caller::callers] = caller % replicas
        if self.turns is not None:  # a conversation stays on the replica of its first turn
            replica = replica[np.searchsorted(begins, self.turns.first[self.served])]
        states, begun_before = [], 0
        for number in range(replicas):
            mine = self.served[replica == number] if users or self.turns is not None else self.served[number::replicas]
            state = self.state(number, mine)
            if users:
                begun = mine if self.turns is None else mine[~self.turns.later[mine]]
                begin = min(users // replicas + (number < users % replicas), len(begun))
                state.ends[slot.NEXT_REQUEST] = int(begun[begin]) if begin < len(begun) else slot.NONE
                until, total = begun_before + begin, sends or len(self.served)
                state.count[slot.TURNS_AHEAD] = max(0, total * until // users - total * begun_before // users - begin)
                begun_before = until
                self.call(state, begun[:begin])
            elif self.turns is not None:
                self.call(state, begins[number::replicas])
            states.append(state)
        return states, replica, self.run(states)

    def one_by_one(self, replicas: int) -> tuple[list[State], Any, bool]:
        """Simulate routing of each request to a replica chosen at its arrival."""
        states, count = [self.state(number, self.served[:0]) for number in range(replicas)], len(self.served)
        states = states if self.form.lists else slot.side_by_side(states)
        ranks = np.zeros(count, np.int8) if self.ranks is None else np.asarray(self.ranks)[self.served].astype(np.int8)
        arrays = (self.served, ranks, np.full(count, -1, np.int32), *sending.board(replicas))
        requests, lanes, destinations, keys, best = (values.tolist() if self.form.lists else values for values in arrays)
        rules = self.form.rule_table(self.rules)
        where, size = self.form.hold(states), PLAIN_SEND_SLICE if self.form.lists else SEND_SLICE
        try:
            for first in range(0, count, size):
                ended = self.form.send(
                    where, replicas, rules, self.form.step, requests, lanes, destinations, keys, best, first, min(first + size, count), 0
                )
                tick(size)
                if ended == STUCK:
                    raise StuckLoop(STUCK_LINE)
        except KeyboardInterrupt:
            return states, np.asarray(destinations), False
        return states, np.asarray(destinations), self.run(states)

    @property
    def begins(self) -> Any:
        """Served requests that wait for no earlier answer."""
        return self.served if self.turns is None else self.served[~self.turns.later[self.served]]

    def run(self, states: list[State]) -> bool:
        """Run replicas in turn, a slice each, until no work is left; False if interrupted by the user."""
        where, active_replicas = self.form.hold(states), range(len(states))
        try:
            while active_replicas and self.shared:
                active_replicas = [] if self.all_idle(states, where) else active_replicas
            while active_replicas:
                active_replicas = [number for number in active_replicas if not self.idle(states, where, number)]
        except KeyboardInterrupt:
            return False
        return True

    def all_idle(self, states: list[State], where: Sequence[State]) -> bool:
        """Run replicas that share a tier for some turns; returns whether no work is left."""
        ended_before = sum(_ended(state) for state in states)
        most = PLAIN_TURNS if self.form.lists else TURNS
        no_requests = np.zeros(1, np.int32), np.zeros(1, np.int8), np.zeros(1, np.int32), *sending.board(1)
        ended = self.form.send(where, len(states), self.form.rule_table(self.rules), self.form.step, *no_requests, 0, 0, most)
        tick(sum(_ended(state) for state in states) - ended_before)
        if ended == STUCK:
            raise StuckLoop(STUCK_LINE)
        return ended == IDLE

    def idle(self, states: list[State], where: Sequence[State], number: int) -> bool:
        """Run one replica for a slice; returns whether no work is left."""
        ended_before = _ended(states[number])
        most = PLAIN_SLICE if self.form.lists else SLICE
        ended = self.form.run_one(where, number, self.form.rule_table(self.rules), self.form.step, np.inf, most)
        tick(_ended(states[number]) - ended_before)
        if ended == STUCK:
            raise StuckLoop(STUCK_LINE)
        return ended == IDLE


def _ended(state: State) -> int:
    """Number of completed and abandoned requests."""
    return int(state.count[slot.COMPLETED] + state.count[slot.ABANDONED])

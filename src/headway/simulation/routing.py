"""Routing of requests to replicas by load or prefix, and replicas that run in step because they share a tier.

By load, a request goes to the replica with the fewest requests in service. By prefix, it goes where its first token costs least, counted
in prompt tokens: its uncached tokens there, the tokens to prefill before it, and for each request in service the tokens of a mean answer,
since each takes one token's place in a step. So the router prefers the replica that holds the prefix until its queue costs more than the
prefix saves; if no replica holds any of it, load decides. All in the subset that numba compiles, like the loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from headway.simulation.blocks import due_tokens, saved_tokens
from headway.simulation.events import next_arrival
from headway.simulation.kv_pools import NOWHERE, Cells
from headway.simulation.loop import IDLE, PAUSED, STUCK, advance
from headway.simulation.state import ARRIVAL, COMPLETED, COMPLETED_BEFORE, KNOWN, LANE, NOW, PARTIAL, PROMPT, QUEUED, RUNNING, Rules, State
from headway.simulation.step_time import Step

AT_ONCE = 1 << 40  # iterations, no limit
AHEAD = 0.25  # seconds that a replica may run ahead of another that shares a tier, plus the rest of its step


def state_at(where: Sequence[State], number: int) -> State:
    """The state of one replica; the compiled form replaces this function."""
    return where[number]


def rules_at(rows: Sequence[Rules], number: int) -> Rules:
    """The rules of one replica; the compiled form replaces this function."""
    return rows[number]


def run_one(where: Sequence[State], number: int, rules: Sequence[Rules], step: Step, until: float, most: int) -> int:
    """Run one replica until a time or for `most` iterations."""
    return advance(state_at(where, number), rules_at(rules, 0), step, until, most)


def take_turns(where: Sequence[State], replicas: int, rules: Rules, step: Step, until: float, most: int) -> int:
    """Run replicas that share a tier until a time or for `most` turns, with clocks close together."""
    for _ in range(most):
        begin = inf
        for number in range(replicas):
            begin = min(begin, due(state_at(where, number), rules))
        if begin >= until:
            return IDLE if begin == inf else PAUSED
        for number in range(replicas):
            if advance(state_at(where, number), rules, step, min(until, begin + AHEAD), AT_ONCE) == STUCK:
                return STUCK
    return PAUSED


def due(state: State, rules: Rules) -> float:
    """Time of a replica's next work, inf without any."""
    if state.count[RUNNING] + state.count[PARTIAL] + state.count[QUEUED] > 0:
        return state.at[NOW]
    return max(state.at[NOW], next_arrival(state, rules))


def catch_up(where: Sequence[State], replicas: int, rules: Rules, step: Step, until: float) -> int:
    """Run every replica until a time."""
    if state_at(where, 0).cache.pools.shared != NOWHERE and take_turns(where, replicas, rules, step, until, AT_ONCE) == STUCK:
        return STUCK
    for number in range(replicas):
        if advance(state_at(where, number), rules, step, until, AT_ONCE) == STUCK:
            return STUCK
    return PAUSED


def send(
    where: Sequence[State], replicas: int, rules: Sequence[Rules], step: Step, served: Cells, ranks: Cells, replica: Cells, first: int,
    last: int, turns: int,
) -> int:  # fmt: skip
    """Send requests first..last - 1 of `served`, each to its best replica on arrival; then run replicas for `turns` turns.

    One function for both, since the loop is compiled once per function called from Python.
    """
    replica_rules = rules_at(rules, 0)
    for at in range(first, last):
        request = served[at]
        if catch_up(where, replicas, replica_rules, step, state_at(where, 0).times[4 * request + ARRIVAL]) == STUCK:
            return STUCK
        best = by_prefix(where, replicas, replica_rules, request) if replica_rules.answer > 0.0 else NOWHERE
        if best == NOWHERE:
            best = by_load(where, replicas, request)
        replica[at] = best
        state, lane = state_at(where, best), LANE * ranks[at]
        state.order[state.ends[lane + KNOWN]] = request
        state.ends[lane + KNOWN] += 1
    return take_turns(where, replicas, replica_rules, step, inf, turns)


def by_load(where: Sequence[State], replicas: int, request: int) -> int:
    """The replica with the fewest requests in service, the lowest number among equals."""
    best, least = 0, AT_ONCE
    for number in range(replicas):
        load = in_service(state_at(where, number), request)
        if load < least:
            best, least = number, load
    return best


def by_prefix(where: Sequence[State], replicas: int, rules: Rules, request: int) -> int:
    """The replica with the cheapest first token, then the fewest requests in service; NOWHERE if none holds any of the prefix."""
    best, least, fewest, known = NOWHERE, inf, AT_ONCE, False
    for number in range(replicas):
        state = state_at(where, number)
        load = in_service(state, request)
        saved = saved_tokens(state, rules, request, max(state.at[NOW], state.times[4 * request + ARRIVAL]))
        cost = due_tokens(state) - saved + rules.answer * load
        known = known or saved > 0.0
        if cost < least or (cost == least and load < fewest):
            best, least, fewest = number, cost, load
            state.cache.expected[request] = state.lengths[2 * request + PROMPT] - saved
    return best if known else NOWHERE


def in_service(state: State, request: int) -> int:
    """Requests in service at a replica when a request arrives."""
    load = state.count[QUEUED] + state.count[PARTIAL] + state.count[RUNNING]
    if state.at[NOW] > state.times[4 * request + ARRIVAL]:  # requests that end with the current step still count
        load += state.count[COMPLETED] - state.count[COMPLETED_BEFORE]
    return load

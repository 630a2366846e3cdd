"""Requests to replicas, and replicas that meet: in a tier that they share, or where a request goes by what they do when it comes.

By load a request goes where fewest are in service. By prefix it goes where its first token costs least, in prompt tokens: its own that
must be computed there, those to be computed before it, and for each request in service a mean answer's, each token of which takes one
token's place in a step. So a cached prefix is worth a detour until what waits before it outweighs it; where no replica has any of it,
load decides. All in the subset that numba compiles, as the loop.
"""

from __future__ import annotations

from math import inf
from typing import Any

from headway.sim.events import next_arrival
from headway.sim.flatten import Step
from headway.sim.kv_pools import NOWHERE
from headway.sim.loop import IDLE, PAUSED, STUCK, advance
from headway.sim.prefix_lookup import due_tokens, saved_tokens
from headway.sim.state import ARRIVAL, COMPLETED, COMPLETED_BEFORE, KNOWN, LANE, NOW, PARTIAL, PROMPT, QUEUED, RUNNING, Rules, State

AT_ONCE = 1 << 40  # iterations: all there are
AHEAD = 0.25  # seconds that a replica may be ahead of another with which it shares a tier, beside the rest of its step


def state_at(where: Any, number: int) -> State:
    """One of several replicas; stands here for what the compiled form puts in its place."""
    return where[number]


def rules_at(rows: Any, number: int) -> Rules:
    """The rules; stands here likewise."""
    return rows[number]


def run_one(where: Any, number: int, rules: Any, step: Step, until: float, most: int) -> int:
    """Run one replica until a time, or so many iterations."""
    return advance(state_at(where, number), rules_at(rules, 0), step, until, most)


def take_turns(where: Any, replicas: int, rules: Rules, step: Step, until: float, most: int) -> int:
    """Run replicas that share a tier until a time, or so many turns, so that none is far ahead of the others."""
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
    """When a replica has something to do next."""
    if state.count[RUNNING] + state.count[PARTIAL] + state.count[QUEUED] > 0:
        return state.at[NOW]
    return max(state.at[NOW], next_arrival(state, rules))


def catch_up(where: Any, replicas: int, rules: Rules, step: Step, until: float) -> int:
    """Run every replica until a time."""
    if state_at(where, 0).cache.pools.shared != NOWHERE and take_turns(where, replicas, rules, step, until, AT_ONCE) == STUCK:
        return STUCK
    for number in range(replicas):
        if advance(state_at(where, number), rules, step, until, AT_ONCE) == STUCK:
            return STUCK
    return PAUSED


def send(
    where: Any, replicas: int, rules: Any, step: Step, served: Any, ranks: Any, replica: Any, first: int, last: int, turns: int
) -> int:  # fmt: skip
    """Send requests first..last - 1 of those served, of their classes, each to the replica that is best for it when it comes; then turns.

    Both in one, since what is compiled is the loop once for each function that is called from outside.
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


def by_load(where: Any, replicas: int, request: int) -> int:
    """The replica with the fewest in service, the lowest of equals."""
    best, least = 0, AT_ONCE
    for number in range(replicas):
        load = in_service(state_at(where, number), request)
        if load < least:
            best, least = number, load
    return best


def by_prefix(where: Any, replicas: int, rules: Rules, request: int) -> int:
    """The replica where a first token costs least, of equals the one with fewest in service; NOWHERE where none has any of the prefix."""
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
    """Requests that a replica has when a new one comes."""
    load = state.count[QUEUED] + state.count[PARTIAL] + state.count[RUNNING]
    if state.at[NOW] > state.times[4 * request + ARRIVAL]:  # a step is under way: who ends with it is still there
        load += state.count[COMPLETED] - state.count[COMPLETED_BEFORE]
    return load

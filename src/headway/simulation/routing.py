"""Routing of requests to replicas by load or prefix, and replicas that run in step because they share a tier.

By load, a request goes to the replica with the fewest requests in service. A replica is run up to an arrival only where its load may have
changed by then, and the fewest are found by a tournament: a request takes about as long over many replicas as over few. By prefix, it
goes where its first token costs least, counted in prompt tokens: its uncached tokens there, the tokens to prefill before it, and for each
request in service the tokens of a mean answer, since each takes one token's place in a step. So the router prefers the replica that holds
the prefix until its queue costs more than the prefix saves; if no replica holds any of it, load decides. All in the subset that numba
compiles, like the loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

import numpy as np

from headway.simulation.blocks import due_tokens, saved_tokens
from headway.simulation.events import next_arrival, steps_left
from headway.simulation.kv_pools import NOWHERE, Cells
from headway.simulation.loop import IDLE, PAUSED, STUCK, advance
from headway.simulation.state import (
    ARRIVAL,
    ARRIVED,
    BACK,
    COMPLETED,
    COMPLETED_BEFORE,
    CONTEXT,
    LANE,
    NOW,
    OUTPUT,
    OUTPUT_SO_FAR,
    PARTIAL,
    PROMPT,
    QUEUED,
    REQUEST,
    RUNNING,
    SERVED,
    STEP,
    Rules,
    State,
    hear_of,
)
from headway.simulation.step_time import SHORTER, Step, step_at

AT_ONCE = 1 << 40  # iterations, no limit
NEXT, LEAST = 1.0 + 2.0**-52, 1e-300  # the next time after another
FEW = 16  # waiting requests that are looked at one by one
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
    where: Sequence[State], replicas: int, rules: Sequence[Rules], step: Step, served: Cells, ranks: Cells, replica: Cells, keys: Cells,
    best: Cells, first: int, last: int, turns: int,
) -> int:  # fmt: skip
    """Send requests first..last - 1 of `served`, each to its best replica on arrival; then run replicas for `turns` turns.

    `keys` and `best` are of `board`. One function for both, since the loop is compiled once per function called from Python.
    """
    replica_rules, size = rules_at(rules, 0), len(keys) // 4
    all_meet = replica_rules.answer > 0.0 or state_at(where, 0).cache.pools.shared != NOWHERE
    for at in range(first, last):
        request, number = served[at], NOWHERE
        time = state_at(where, 0).times[4 * request + ARRIVAL]
        if all_meet:
            if catch_up(where, replicas, replica_rules, step, time) == STUCK:
                return STUCK
            number = by_prefix(where, replicas, replica_rules, request) if replica_rules.answer > 0.0 else NOWHERE
            if number == NOWHERE:
                number = by_load(where, replicas, request)
        else:
            if wake(where, replica_rules, step, keys, best, size, time) == STUCK:
                return STUCK
            number = best[1]
            keys[number] += 1.0
            raise_best(keys, best, 0, size, number)
            state = state_at(where, number)
            due = max(max(state.at[NOW], time * NEXT + LEAST), time + least_s(state, replica_rules, request, 0))
            if keys[2 * size + number] > 0.0:
                keys[3 * size + number] = min(keys[3 * size + number], due)
            else:
                keys[size + number] = min(keys[size + number], due)
                raise_best(keys, best, size, size, number)
        replica[at] = number
        state = state_at(where, number)
        hear_of(state, LANE * ranks[at], request)
    return take_turns(where, replicas, replica_rules, step, inf, turns)


def board(replicas: int) -> tuple[Any, Any]:
    """For every replica its load and the time at which that may change next, and two tournaments, whose winner has the least.

    Returns `keys`: loads, times, requests that end with the step in progress at that time, and the time after it; and `best`: a tree of
    winners of loads, then one of times, each with its root at 1. Of equals the lowest number wins.
    """
    size = 1
    while size < replicas:
        size *= 2
    keys = np.full(4 * size, np.inf)
    keys[:replicas] = keys[2 * size : 3 * size] = 0.0
    tree = np.zeros(2 * size, np.int64)
    tree[size:] = np.arange(size)
    for at in range(size - 1, 0, -1):
        tree[at] = tree[2 * at]
    return keys, np.concatenate((tree, tree))


def raise_best(keys: Cells, best: Cells, which: int, size: int, number: int) -> None:
    """Make the winners of a tournament (`which`: 0 of loads, `size` of times) right again after the key of a replica changed."""
    root = 2 * which
    at = (size + number) // 2
    while at > 0:
        first, second = best[root + 2 * at], best[root + 2 * at + 1]
        winner = first if keys[which + first] <= keys[which + second] else second
        if winner == best[root + at] != number:
            break
        best[root + at] = winner
        at //= 2


def wake(where: Sequence[State], rules: Rules, step: Step, keys: Cells, best: Cells, size: int, time: float) -> int:
    """Run the replicas whose load may have changed by a time until then, so that every load is that of this time."""
    number = best[2 * size + 1]
    while keys[size + number] <= time:
        if keys[2 * size + number] > 0.0:
            keys[number] -= keys[2 * size + number]
            keys[2 * size + number] = 0.0
            keys[size + number] = keys[3 * size + number]
        else:
            state = state_at(where, number)
            if advance(state, rules, step, time, AT_ONCE) == STUCK:
                return STUCK
            keys[number] = float(in_service(state, time))
            keys[size + number] = max(changes(state, rules, step), time * NEXT + LEAST)
            if state.at[NOW] > time and state.count[COMPLETED] > state.count[COMPLETED_BEFORE]:
                keys[2 * size + number] = float(state.count[COMPLETED] - state.count[COMPLETED_BEFORE])
                keys[3 * size + number] = keys[size + number]
                keys[size + number] = state.at[NOW]
        raise_best(keys, best, 0, size, number)
        raise_best(keys, best, size, size, number)
        number = best[2 * size + 1]
    return PAUSED


def changes(state: State, rules: Rules, step: Step) -> float:
    """A time until which a replica has the same requests in service if nothing is sent to it; inf for ever.

    Until the next answer of the batch ends steps take at least the time of the present one, as no batch gets smaller but by preemption, and
    contexts grow: SHORTER leaves room for laws of steps that do not quite rise; under one that falls nothing is known ahead. Other requests
    have at least their own steps before them.
    """
    if state.count[QUEUED] + state.count[PARTIAL] + state.count[RUNNING] == 0:
        return inf
    if rules.leaving or rules.falling or state.count[QUEUED] > FEW:
        return state.at[NOW]
    rest = inf
    if state.count[RUNNING] > 0:
        steps = int(state.heap[0]) - state.count[STEP]
        rest = SHORTER * steps * step_at(state, rules, step, state.count[RUNNING], state.at[CONTEXT])
    for place in range(state.count[PARTIAL]):
        seat = state.partial[place]
        rest = min(rest, least_s(state, rules, state.seat[seat + REQUEST], state.seat[seat + OUTPUT_SO_FAR]))
    for lane in range(0, rules.lanes, LANE):
        if state.ends[lane + BACK] >= 0:
            return state.at[NOW]
        request = state.ends[lane + SERVED]
        while request != state.ends[lane + ARRIVED]:
            rest = min(rest, least_s(state, rules, request, 0))
            request = state.order[request]
    return state.at[NOW] + rest


def least_s(state: State, rules: Rules, request: int, output_so_far: int) -> float:
    """Least seconds of the steps of an answer after its next token: those of one request without context; 0 if not known ahead."""
    if rules.leaving or rules.falling:
        return 0.0
    return SHORTER * state.line[3] * steps_left(state.lengths[2 * request + OUTPUT] - output_so_far - 1, rules.accept)


def by_load(where: Sequence[State], replicas: int, request: int) -> int:
    """The replica with the fewest requests in service, the lowest number among equals."""
    best, least, time = 0, AT_ONCE, state_at(where, 0).times[4 * request + ARRIVAL]
    for number in range(replicas):
        load = in_service(state_at(where, number), time)
        if load < least:
            best, least = number, load
    return best


def by_prefix(where: Sequence[State], replicas: int, rules: Rules, request: int) -> int:
    """The replica with the cheapest first token, then the fewest requests in service; NOWHERE if none holds any of the prefix."""
    best, least, fewest, known = NOWHERE, inf, AT_ONCE, False
    for number in range(replicas):
        state = state_at(where, number)
        time = state.times[4 * request + ARRIVAL]
        load = in_service(state, time)
        saved = saved_tokens(state, rules, request, max(state.at[NOW], time))
        cost = due_tokens(state) - saved + rules.answer * load
        known = known or saved > 0.0
        if cost < least or (cost == least and load < fewest):
            best, least, fewest = number, cost, load
            state.cache.expected[request] = state.lengths[2 * request + PROMPT] - saved
    return best if known else NOWHERE


def in_service(state: State, time: float) -> int:
    """Requests in service at a replica at a time until which it has run."""
    load = state.count[QUEUED] + state.count[PARTIAL] + state.count[RUNNING]
    if state.at[NOW] > time:  # requests that end with the current step still count
        load += state.count[COMPLETED] - state.count[COMPLETED_BEFORE]
    return load

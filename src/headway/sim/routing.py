"""Requests to replicas: each goes where fewest are in service when it comes. In the subset that numba compiles, as the loop."""

from __future__ import annotations

from typing import Any

from headway.sim.flatten import Step
from headway.sim.loop import PAUSED, STUCK, advance
from headway.sim.state import ARRIVAL, DONE, KNOWN, LANE, NOW, PARTIAL, QUEUED, RUNNING, WERE_DONE, Rules, State

AT_ONCE = 1 << 40  # iterations: all there are


def state_at(where: Any, number: int) -> State:
    """One of several replicas; stands here for what the compiled form puts in its place."""
    return where[number]


def run_one(where: Any, number: int, r: Rules, step: Step, until: float, most: int) -> int:
    """Run one replica until a time, or so many iterations."""
    return advance(state_at(where, number), r, step, until, most)


def send(where: Any, many: int, r: Rules, step: Step, served: Any, ranks: Any, replica: Any, first: int, last: int) -> int:
    """Send requests first..last - 1 of those served, of their classes, each to the replica with the fewest, the lowest of equals."""
    for at in range(first, last):
        i = served[at]
        best, least = 0, AT_ONCE
        for number in range(many):
            s = state_at(where, number)
            comes = s.times[4 * i + ARRIVAL]
            ended = advance(s, r, step, comes, AT_ONCE)
            while ended == PAUSED and s.at[NOW] < comes:
                ended = advance(s, r, step, comes, AT_ONCE)
            if ended == STUCK:
                return STUCK
            load = s.count[QUEUED] + s.count[PARTIAL] + s.count[RUNNING]
            if s.at[NOW] > comes:  # a step is under way: who ends with it is still there
                load += s.count[DONE] - s.count[WERE_DONE]
            if load < least:
                best, least = number, load
        replica[at] = best
        s, lane = state_at(where, best), LANE * ranks[at]
        s.order[s.ends[lane + KNOWN]] = i
        s.ends[lane + KNOWN] += 1
    return PAUSED

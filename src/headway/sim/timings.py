"""Times that the loop keeps: the four of each request, the time by what was going on, and the time between tokens.

Until it is asked, a request that waits for an answer has its pause in place of its arrival. Until its first token, a request has there
minus the time at which its user gives up, or nothing; whose user gave up keeps that in place of its end.
"""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np

from headway.sim import state as slot
from headway.sim.blocks import block_limit
from headway.sim.state import (
    BIN_S,
    BINS,
    BUSY,
    CONTEXT,
    DECODED,
    FULL_S,
    GAP_LEAST,
    GAP_RATIO,
    GAPS,
    NOW,
    PARTIAL,
    PROMPT_BLOCKS,
    QUEUED,
    RUNNING,
    SERIES,
    STEPS,
    Rules,
    State,
)

SOON = 1e-9  # seconds: nobody gives up before anything has happened


def initial_times(arrival: Any, later: Any, pause: Any, patience: Any, overhead_s: float) -> Any:
    """Times by request, of which those `later` are asked `pause` after an answer; the engine's own work comes before the first token."""
    times = np.full((len(arrival), 4), np.nan)
    times[:, slot.ARRIVAL] = arrival
    if later is not None:
        times[later, slot.ARRIVAL] = (0.0 if pause is None else np.asarray(pause, float)[later]) + overhead_s
    if patience is not None:
        known = arrival if later is None else np.where(later, 0.0, arrival)
        times[:, slot.FIRST] = -np.maximum(known + patience - overhead_s, SOON)
    return times


def abandonments(times: Any, overhead_s: float) -> Any:
    """When the user gave up, nan where nobody did; `times` then has nothing but what happened to the request, as its user saw it."""
    gave_up = times[:, slot.FINISH] < 0.0
    when = np.where(gave_up, overhead_s - times[:, slot.FINISH], np.nan)
    times[gave_up, slot.FINISH] = np.nan
    times[times[:, slot.FIRST] < 0.0, slot.FIRST] = np.nan
    return when


PER_OCTAVE = 1.0 / log(GAP_RATIO)


def gap(state: State, time: float, tokens: float) -> None:
    """So many tokens came so long after the one before."""
    at = int(log(time / GAP_LEAST) * PER_OCTAVE) if time > GAP_LEAST else 0
    state.log[min(at, GAPS - 1)] += tokens


def elapse(state: State, rules: Rules, time: float, steps: int) -> None:
    """The clock moves on by steps of a constant batch; by none where everyone in service waits for a copy."""
    start, end = state.at[NOW], state.at[NOW] + time
    busy = 1.0 if steps > 0 else 0.0
    running, waiting = float(state.count[RUNNING] + state.count[PARTIAL]), float(state.count[QUEUED])
    blocks = (
        state.count[PROMPT_BLOCKS]
        + state.at[CONTEXT] / rules.block
        + 0.5 * state.count[RUNNING]
        - block_limit(state, rules)
        + rules.capacity
    )
    state.at[NOW] = end
    state.at[BUSY] += busy * time
    state.count[STEPS] += steps
    state.at[DECODED] += float(steps * state.count[RUNNING])
    if waiting > 0.0:
        state.at[FULL_S] += time
    while end >= BINS * state.at[BIN_S]:
        _join(state)
    width = state.at[BIN_S]
    at, last = int(start / width), int(end / width)
    while at < last:
        edge = (at + 1) * width
        _add(state, at, edge - start, running, waiting, blocks, busy)
        start, at = edge, at + 1
    _add(state, at, end - start, running, waiting, blocks, busy)


def waited(state: State, since: float, requests: float) -> None:
    """So many came while a step was under way, and have waited for its end; -1 has left meanwhile."""
    while state.at[NOW] >= BINS * state.at[BIN_S]:
        _join(state)
    width = state.at[BIN_S]
    at, last = int(since / width), int(state.at[NOW] / width)
    while at < last:
        edge = (at + 1) * width
        state.log[GAPS + at * SERIES + 1] += requests * (edge - since)
        since, at = edge, at + 1
    state.log[GAPS + at * SERIES + 1] += requests * (state.at[NOW] - since)


def _add(state: State, at: int, time: float, running: float, waiting: float, blocks: float, busy: float) -> None:
    place = GAPS + at * SERIES
    state.log[place] += running * time
    state.log[place + 1] += waiting * time
    state.log[place + 2] += blocks * time
    state.log[place + 3] += busy * time


def _join(state: State) -> None:
    """Neighbouring bins become one, so that as many hold twice the time."""
    for at in range(BINS // 2):
        for part in range(SERIES):
            place = GAPS + 2 * at * SERIES + part
            state.log[GAPS + at * SERIES + part] = state.log[place] + state.log[place + SERIES]
    for place in range(GAPS + BINS // 2 * SERIES, GAPS + BINS * SERIES):
        state.log[place] = 0.0
    state.at[BIN_S] *= 2.0

"""Times that the loop records: four times of each request, series over time, and inter-token times.

A request that waits for an answer holds its pause in ARRIVAL until it is sent. FIRST holds minus the abandonment time, or nan, until the
first token; an abandoned request keeps it in FINISH.
"""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np

from headway.simulation import state as slot
from headway.simulation.blocks import block_limit
from headway.simulation.state import (
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

SOON = 1e-9  # least seconds before a request is abandoned


def initial_times(arrival: Any, later: Any, pause: Any, patience: Any, overhead_s: float) -> Any:
    """Initial times by request; `later` requests are sent `pause` after an answer; engine overhead precedes the first token."""
    times = np.full((len(arrival), 4), np.nan)
    times[:, slot.ARRIVAL] = arrival
    if later is not None:
        times[later, slot.ARRIVAL] = (0.0 if pause is None else np.asarray(pause, float)[later]) + overhead_s
    if patience is not None:
        known = arrival if later is None else np.where(later, 0.0, arrival)
        times[:, slot.FIRST] = -np.maximum(known + patience - overhead_s, SOON)
    return times


def abandonments(times: Any, overhead_s: float) -> Any:
    """Abandonment time of each request, nan if none; clears these placeholders from `times`."""
    gave_up = times[:, slot.FINISH] < 0.0
    when = np.where(gave_up, overhead_s - times[:, slot.FINISH], np.nan)
    times[gave_up, slot.FINISH] = np.nan
    times[times[:, slot.FIRST] < 0.0, slot.FIRST] = np.nan
    return when


PER_OCTAVE = 1.0 / log(GAP_RATIO)


def gap(state: State, time: float, tokens: float) -> None:
    """Record `tokens` tokens with an inter-token time of `time` seconds."""
    at = int(log(time / GAP_LEAST) * PER_OCTAVE) if time > GAP_LEAST else 0
    state.log[min(at, GAPS - 1)] += tokens


def elapse(state: State, rules: Rules, time: float, steps: int) -> None:
    """Advance the clock by steps of a constant batch; by 0 steps while all requests in service wait for copies."""
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
    """Add the waiting time of requests that arrived during a step; -1 for a request that left during it."""
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
    """Merge neighbouring bins, so that the bins cover twice the time."""
    for at in range(BINS // 2):
        for part in range(SERIES):
            place = GAPS + 2 * at * SERIES + part
            state.log[GAPS + at * SERIES + part] = state.log[place] + state.log[place + SERIES]
    for place in range(GAPS + BINS // 2 * SERIES, GAPS + BINS * SERIES):
        state.log[place] = 0.0
    state.at[BIN_S] *= 2.0

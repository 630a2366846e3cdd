"""What is counted while the loop runs: time by what was going on, and the time between tokens."""

from __future__ import annotations

from math import log

from headway.sim.pins import able
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

PER_OCTAVE = 1.0 / log(GAP_RATIO)


def gap(s: State, time: float, tokens: float) -> None:
    """So many tokens came so long after the one before."""
    at = int(log(time / GAP_LEAST) * PER_OCTAVE) if time > GAP_LEAST else 0
    s.log[min(at, GAPS - 1)] += tokens


def elapse(s: State, r: Rules, time: float, steps: int) -> None:
    """The clock moves on by steps of a constant batch; by none where everyone in service waits for a copy."""
    start, end = s.at[NOW], s.at[NOW] + time
    busy = 1.0 if steps > 0 else 0.0
    running, waiting = float(s.count[RUNNING] + s.count[PARTIAL]), float(s.count[QUEUED])
    blocks = s.count[PROMPT_BLOCKS] + s.at[CONTEXT] / r.block + 0.5 * s.count[RUNNING] - able(s, r) + r.capacity
    s.at[NOW] = end
    s.at[BUSY] += busy * time
    s.count[STEPS] += steps
    s.at[DECODED] += float(steps * s.count[RUNNING])
    if waiting > 0.0:
        s.at[FULL_S] += time
    while end >= BINS * s.at[BIN_S]:
        _join(s)
    width = s.at[BIN_S]
    at, last = int(start / width), int(end / width)
    while at < last:
        edge = (at + 1) * width
        _add(s, at, edge - start, running, waiting, blocks, busy)
        start, at = edge, at + 1
    _add(s, at, end - start, running, waiting, blocks, busy)


def waited(s: State, since: float, requests: float) -> None:
    """So many came while a step was under way, and have waited for its end; -1 has left meanwhile."""
    while s.at[NOW] >= BINS * s.at[BIN_S]:
        _join(s)
    width = s.at[BIN_S]
    at, last = int(since / width), int(s.at[NOW] / width)
    while at < last:
        edge = (at + 1) * width
        s.log[GAPS + at * SERIES + 1] += requests * (edge - since)
        since, at = edge, at + 1
    s.log[GAPS + at * SERIES + 1] += requests * (s.at[NOW] - since)


def _add(s: State, at: int, time: float, running: float, waiting: float, blocks: float, busy: float) -> None:
    place = GAPS + at * SERIES
    s.log[place] += running * time
    s.log[place + 1] += waiting * time
    s.log[place + 2] += blocks * time
    s.log[place + 3] += busy * time


def _join(s: State) -> None:
    """Neighbouring bins become one, so that as many hold twice the time."""
    for at in range(BINS // 2):
        for part in range(SERIES):
            place = GAPS + 2 * at * SERIES + part
            s.log[GAPS + at * SERIES + part] = s.log[place] + s.log[place + SERIES]
    for place in range(GAPS + BINS // 2 * SERIES, GAPS + BINS * SERIES):
        s.log[place] = 0.0
    s.at[BIN_S] *= 2.0

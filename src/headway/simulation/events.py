"""Events of a request: arrival, admission, first token, decoding, end, abandonment; and the times that the loop records.

Recorded are four times of each request, series over time, and inter-token times. A request that waits for an answer holds its pause in
ARRIVAL until it is sent. FIRST holds minus the abandonment time, or nan, until the first token; an abandoned request keeps it in FINISH.
"""

from __future__ import annotations

from math import inf, log
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from headway.simulation import state as slot
from headway.simulation.blocks import block_limit, blocks_for, keep_answer, leave, let_go, offer, set_aside, take_up
from headway.simulation.state import (
    ABANDONED,
    AGAIN,
    ARRIVAL,
    ARRIVED,
    AWAY,
    BACK,
    BIN_S,
    BINS,
    BUSY,
    CHUNK,
    CLASS,
    COMING,
    COMPLETED,
    COMPUTED,
    CONTEXT,
    DECODING,
    DUE,
    EMITTED,
    FINISH,
    FIRST,
    FULL_S,
    GAP_LEAST,
    GAP_RATIO,
    GAPS,
    HEAPED,
    JOINED,
    LANE,
    LINK_AT,
    NEXT_REQUEST,
    NONE,
    NOW,
    OUTPUT,
    OUTPUT_SO_FAR,
    OWED,
    PACKED,
    PARTIAL,
    PASSED,
    PREFILL_BLOCKS,
    PROMPT,
    PROMPT_BLOCKS,
    QUEUED,
    REQUEST,
    RESERVED,
    RUNNING,
    SCHEDULED,
    SERIES,
    SERVED,
    STEP,
    STEP_FROM,
    STEPS,
    TALKING_USERS,
    TALKS,
    TURNS_AHEAD,
    USERS,
    WIDE,
    Rules,
    State,
    give_seat,
    hear_of,
    push,
    push_back,
    remove,
    remove_at,
    take_seat,
)
from headway.simulation.traffic.requests import Floats, Mask

NEVER = inf


def arrive(state: State, rules: Rules) -> None:
    """Queue the requests that have arrived by now, and drop queued requests past their patience."""
    now = state.at[NOW]
    while state.count[COMING] > 0 and state.coming[0] <= now:
        name = int(state.coming[1])
        lane = name % rules.lanes
        hear_of(state, lane, name // rules.lanes)
        remove_at(state.coming, state.count[COMING], 0)
        state.count[COMING] -= 1
    for lane in range(0, rules.lanes, LANE):
        request = state.ends[lane + ARRIVED]
        while request != NONE and state.times[4 * request + ARRIVAL] <= now:
            waited(state, state.times[4 * request + ARRIVAL], 1.0)
            if rules.caching:
                state.at[DUE] += state.cache.expected[request]
            request = state.order[request]
            state.count[QUEUED] += 1
        state.ends[lane + ARRIVED] = request
        if rules.leaving:
            thin(state, rules, lane)


def thin(state: State, rules: Rules, lane: int) -> None:
    """Drop requests past their patience from the front of a class's queue."""
    while state.ends[lane + SERVED] != state.ends[lane + ARRIVED] and overdue(state, state.ends[lane + SERVED]):
        request = state.ends[lane + SERVED]
        state.ends[lane + SERVED] = state.order[request]
        state.count[QUEUED] -= 1
        if state.times[4 * request + ARRIVAL] <= state.at[STEP_FROM]:
            state.count[PASSED] += 1
        waited(state, -state.times[4 * request + FIRST], -1.0)  # it was counted as waiting until now
        if rules.caching:
            state.at[DUE] -= state.cache.expected[request]
        lose(state, rules, request)


def overdue(state: State, request: int) -> bool:
    """Whether a request is past its patience without a first token."""
    by = -state.times[4 * request + FIRST]
    return 0.0 < by < state.at[NOW]


def lose(state: State, rules: Rules, request: int) -> None:
    """Record an abandoned request; its closed-loop user sends another, its conversation ends."""
    state.times[4 * request + FINISH] = state.times[4 * request + FIRST]
    state.count[ABANDONED] += 1
    if rules.closed == USERS or rules.closed == TALKING_USERS:
        ask_again(state, rules, request, 0, -state.times[4 * request + FIRST])


def give_up(state: State, rules: Rules, seat: int) -> None:
    """Abandon a request in prefill and free its seat and blocks."""
    state.count[PROMPT_BLOCKS] -= state.seat[seat + PREFILL_BLOCKS]
    lose(state, rules, state.seat[seat + REQUEST])
    vacate(state, rules, seat)


def vacate(state: State, rules: Rules, seat: int) -> None:
    """Free the seat and the cache of a request that does not decode."""
    state.count[RESERVED] -= set_aside(state, rules, state.seat[seat + REQUEST])
    let_go(state, rules, seat)
    give_seat(state, seat)


def next_arrival(state: State, rules: Rules) -> float:
    """Time of the next known arrival, NEVER without one."""
    comes = state.coming[0] if state.count[COMING] > 0 else NEVER
    for lane in range(0, rules.lanes, LANE):
        request = state.ends[lane + ARRIVED]
        if request != NONE:
            comes = min(comes, state.times[4 * request + ARRIVAL])
    return comes


def next_leaving(state: State, rules: Rules) -> float:
    """Earliest time at which a request at the front of a queue is abandoned, NEVER without one."""
    leaves = NEVER
    for lane in range(0, rules.lanes, LANE):
        request = state.ends[lane + SERVED]
        by = -state.times[4 * request + FIRST] if request != state.ends[lane + ARRIVED] else 0.0
        if 0.0 < by < leaves:
            leaves = by
    return leaves


def admit(state: State, rules: Rules, lane: int) -> int:
    """Admit the first request of a class's queue, preempted requests first; returns its seat."""
    seat = state.ends[lane + BACK]
    if seat >= 0:
        remove(state, lane + BACK, seat)
    else:
        seat = take_seat(state, state.ends[lane + SERVED], lane)
        state.ends[lane + SERVED] = state.order[state.ends[lane + SERVED]]
        state.times[4 * state.seat[seat + REQUEST] + SCHEDULED] = state.at[NOW]
        if state.times[4 * state.seat[seat + REQUEST] + ARRIVAL] <= state.at[STEP_FROM]:
            state.count[PASSED] += 1
    request, output_so_far = state.seat[seat + REQUEST], state.seat[seat + OUTPUT_SO_FAR]
    prompt = state.lengths[2 * request + PROMPT]
    state.count[QUEUED] -= 1
    state.seat[seat + COMPUTED], state.seat[seat + CHUNK] = 0, 0
    state.seat[seat + OWED] = 0 if rules.handed and output_so_far == 0 else prompt + output_so_far
    state.seat[seat + PREFILL_BLOCKS] = blocks_for(prompt + output_so_far + 1, rules.block)
    state.count[PROMPT_BLOCKS] += state.seat[seat + PREFILL_BLOCKS]
    state.count[RESERVED] += set_aside(state, rules, request)
    if state.seat[seat + AWAY] > 0:
        state.at[LINK_AT] = max(state.at[LINK_AT], state.at[NOW]) + state.seat[seat + AWAY] * rules.copy_s
        state.cache.ready[seat // WIDE] = state.at[LINK_AT]
    elif rules.caching:
        take_up(state, rules, seat)
    elif rules.hit > 0.0 and state.seat[seat + OWED] > 0:
        state.seat[seat + COMPUTED] = min(int(rules.hit * prompt), prompt - 1)
    state.partial[state.count[PARTIAL]] = seat
    state.count[PARTIAL] += 1
    return seat


def begin(state: State, rules: Rules, seat: int) -> None:
    """Finish a prompt: emit its first token, and decode from the next step on."""
    now, request, output_so_far = state.at[NOW], state.seat[seat + REQUEST], state.seat[seat + OUTPUT_SO_FAR] + 1
    if rules.caching:
        offer(state, rules, seat)
    state.seat[seat + OUTPUT_SO_FAR] = output_so_far
    state.at[EMITTED] += 1.0
    if state.seat[seat + AGAIN] == 0:
        state.times[4 * request + FIRST] = now
    else:
        gap(state, now - state.since[seat // WIDE], 1.0)
    state.since[seat // WIDE] = now
    if output_so_far < state.lengths[2 * request + OUTPUT]:
        decode(state, rules, seat)
        return
    state.count[PROMPT_BLOCKS] -= state.seat[seat + PREFILL_BLOCKS]
    vacate(state, rules, seat)
    end(state, rules, seat)


def decode(state: State, rules: Rules, seat: int) -> None:
    """Add a sequence to the decoding batch from the next step on."""
    request, step = state.seat[seat + REQUEST], state.count[STEP]
    context = state.lengths[2 * request + PROMPT] + state.seat[seat + OUTPUT_SO_FAR]
    state.count[PROMPT_BLOCKS] -= state.seat[seat + PREFILL_BLOCKS]
    state.seat[seat + JOINED] = step
    push(
        state.heap,
        state.count[HEAPED],
        step + steps_left(state.lengths[2 * request + OUTPUT] - state.seat[seat + OUTPUT_SO_FAR], rules.accept),
        seat,
    )
    state.count[HEAPED] += 1
    push_back(state, state.seat[seat + CLASS] + DECODING, seat)
    state.count[RUNNING] += 1
    state.at[CONTEXT] += context
    if rules.accept == 1.0:
        state.phase[(context - step) % rules.block] += 1


def steps_left(tokens: int, accept: float) -> int:
    """Decode steps that yield `tokens` tokens, with `accept` tokens per step."""
    if accept == 1.0:
        return tokens
    return int(-((-tokens / accept) // 1.0))


def end(state: State, rules: Rules, seat: int) -> None:
    """Complete a request whose seat is already free but not yet reused."""
    now, request = state.at[NOW], state.seat[seat + REQUEST]
    state.times[4 * request + FINISH] = now
    state.count[COMPLETED] += 1
    if rules.closed:
        ask_again(state, rules, request, state.seat[seat + CLASS], now)


def ask_again(state: State, rules: Rules, request: int, lane: int, now: float) -> None:
    """Schedule the user's or conversation's next request after its pause, which its arrival holds until then."""
    comes_next = NONE
    if rules.closed == TALKING_USERS:
        state.count[TURNS_AHEAD] -= 1
        if state.count[TURNS_AHEAD] < 0:
            return
    if rules.closed >= TALKS and state.times[4 * request + FINISH] >= 0.0:  # who gave up begins another conversation
        comes_next = state.after[request]
    if comes_next == NONE and rules.closed != TALKS and state.ends[NEXT_REQUEST] != NONE:
        comes_next = state.ends[NEXT_REQUEST]
        state.ends[NEXT_REQUEST] = state.order[comes_next]
    if comes_next == NONE:
        return
    comes = now + state.times[4 * comes_next + ARRIVAL]
    state.times[4 * comes_next + ARRIVAL] = comes
    state.times[4 * comes_next + FIRST] -= comes
    push(state.coming, state.count[COMING], comes, comes_next * rules.lanes + lane)
    state.count[COMING] += 1


def retire(state: State, rules: Rules) -> None:
    """End every sequence whose last decode step is over."""
    while state.count[RUNNING] > 0 and state.heap[0] <= state.count[STEP]:
        seat = int(state.heap[1])
        remove_at(state.heap, state.count[HEAPED], 0)
        state.count[HEAPED] -= 1
        state.at[EMITTED] += state.lengths[2 * state.seat[seat + REQUEST] + OUTPUT] - state.seat[seat + OUTPUT_SO_FAR]
        if rules.caching:
            keep_answer(state, rules, seat)
        leave(state, rules, seat)
        give_seat(state, seat)
        end(state, rules, seat)


SOON = 1e-9  # least seconds before a request is abandoned


def initial_times(arrival: Floats, later: Mask | None, pause: ArrayLike | None, patience: ArrayLike | None, overhead_s: float) -> Any:
    """Initial times by request; `later` requests are sent `pause` after an answer; engine overhead precedes the first token."""
    times = np.full((len(arrival), 4), np.nan)
    times[:, slot.ARRIVAL] = arrival
    if later is not None:
        times[later, slot.ARRIVAL] = (0.0 if pause is None else np.asarray(pause, float)[later]) + overhead_s
    if patience is not None:
        known = arrival if later is None else np.where(later, 0.0, arrival)
        times[:, slot.FIRST] = -np.maximum(known + np.asarray(patience) - overhead_s, SOON)
    return times


def abandonments(times: Floats, overhead_s: float) -> Any:
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
    state.at[NOW], state.at[STEP_FROM] = end, start
    state.at[BUSY] += busy * time
    state.count[STEPS] += steps
    if steps > 0:
        state.batches[state.count[PACKED] + (state.count[RUNNING] if rules.mixed or state.count[PACKED] == 0 else 0)] += float(steps)
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

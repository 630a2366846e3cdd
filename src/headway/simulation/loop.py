"""The loop of continuous batching: iteration by iteration around events, in one jump between them.

Each step's prompt chunks are chosen within token budget, seats and cache: prompts in progress first, then the queue.

Written in the subset that numba compiles; plain Python runs it too. `step(batch, context, prompt tokens, pairs, prompts)` is the flat form
of the step law.
"""

from __future__ import annotations

from math import inf

from headway.simulation.blocks import loading, make_room, next_loaded, room_beside_hits, room_for, set_aside, steps_of_room
from headway.simulation.events import NEVER, admit, arrive, begin, decode, elapse, gap, give_up, next_arrival, next_leaving, overdue, retire
from headway.simulation.state import (
    ARRIVED,
    AWAY,
    BACK,
    CHUNK,
    COMPLETED,
    COMPLETED_BEFORE,
    COMPUTED,
    CONTEXT,
    DECODED,
    DECODING,
    FOLLOWING,
    HOSTED,
    LANE,
    NOW,
    OUT_S,
    OUTPUT_SO_FAR,
    OWED,
    PACKED,
    PARTIAL,
    PREFILLED,
    QUEUED,
    REQUEST,
    RESERVED,
    RETURNED,
    RUNNING,
    SERVED,
    STEP,
    STEP_FROM,
    TOKEN_AT,
    WIDE,
    Rules,
    State,
)
from headway.simulation.step_time import Step, departed, step_at, steps_s, steps_until

IDLE, PAUSED, STUCK = 0, 1, 2  # no work left; reached the time or number of iterations; a request cannot be served


def advance(state: State, rules: Rules, step: Step, until: float, most: int) -> int:
    """Run until a time or for `most` iterations; a step that has begun is completed. Returns IDLE, PAUSED or STUCK."""
    for _ in range(most):
        arrive(state, rules)
        if state.count[RUNNING] == 0 and state.count[PARTIAL] == 0 and state.count[QUEUED] == 0:
            comes = next_arrival(state, rules)
            if comes == NEVER:
                return IDLE
            if comes > until:
                return PAUSED
            state.at[NOW], state.count[COMPLETED_BEFORE] = on_beat(rules, max(state.at[NOW], comes)), state.count[COMPLETED]
            continue
        if state.at[NOW] >= until:
            return PAUSED
        state.count[COMPLETED_BEFORE] = state.count[COMPLETED]
        make_room(state, rules)
        if state.at[OUT_S] > 0.0:
            stand_by(state, rules, on_beat(rules, state.at[NOW] + state.at[OUT_S]))
            state.at[OUT_S] = 0.0
            continue
        tokens = choose(state, rules)
        if state.count[PACKED] > 0:
            with_prompts(state, rules, step, tokens)
        elif state.count[RUNNING] > 0:
            jump(state, rules, step, min(until, next_loaded(state, rules)))
        elif next_loaded(state, rules) < inf:
            stand_by(state, rules, on_beat(rules, min(next_loaded(state, rules), next_arrival(state, rules))))
        elif state.count[QUEUED] > 0 or state.count[PARTIAL] > 0:
            return STUCK
    return PAUSED


def on_beat(rules: Rules, time: float) -> float:
    """The first multiple of the step period at or after a time."""
    if rules.departures > 0.0:
        return max(time, rules.departures * -((-time / rules.departures + 1e-9) // 1.0))  # after rounding: never before `time`
    return time


def stand_by(state: State, rules: Rules, until: float) -> None:
    """Advance the clock without a step, while all requests in service wait for copies."""
    elapse(state, rules, until - state.at[NOW], 0)
    state.at[NOW] = until


def with_prompts(state: State, rules: Rules, step: Step, tokens: int) -> None:
    """Run one step that computes prompt chunks, and with chunked prefill also decodes."""
    running = state.count[RUNNING] * rules.mixed
    context = state.at[CONTEXT] if running else 0.0
    time = departed(rules, step(float(running), context, float(tokens), pairs(state), float(max(state.count[PACKED], 1))))
    if running and late_tokens(state):
        late_gaps(state, rules, time)
    elif running:
        gap(state, time, float(running))
    elapse(state, rules, time, 1)
    if running:
        move_on(state, rules, 1)
    compute(state, rules)
    retire(state, rules)


def jump(state: State, rules: Rules, step: Step, until: float) -> None:
    """Run all decode steps until the next event: a sequence ends, a request that may be admitted arrives, or blocks run out."""
    steps = steps_of_room(state, rules, int(state.heap[0]) - state.count[STEP])
    if state.count[QUEUED] == 0:
        until = min(until, next_arrival(state, rules))
    elif rules.leaving:
        until = min(until, next_leaving(state, rules))
    steps = steps_until(state, rules, step, until - state.at[NOW], steps)
    time = steps_s(state, rules, step, steps)
    late = 0
    if late_tokens(state):
        late = 1
        late_gaps(state, rules, step_at(state, rules, step, state.count[RUNNING], state.at[CONTEXT]))
    spread_gaps(state, rules, step, late, steps)
    behind = state.count[QUEUED] > 0 and steps > 1  # else all that come do so during its last step
    elapse(state, rules, time, steps)
    move_on(state, rules, steps)
    if behind:
        last = state.at[CONTEXT] - state.count[RUNNING] * rules.accept
        state.at[STEP_FROM] = state.at[NOW] - step_at(state, rules, step, state.count[RUNNING], last)
    retire(state, rules)


def late_tokens(state: State) -> bool:
    """Whether decoding sequences have waited for more than the next step: for prefill-only steps or copies."""
    return state.at[TOKEN_AT] < state.at[NOW] or state.count[RETURNED] > 0


def late_gaps(state: State, rules: Rules, time: float) -> None:
    """Record the inter-token times of the decode step after such a wait, each since its sequence's last token."""
    for lane in range(0, rules.lanes, LANE):
        seat = state.ends[lane + DECODING]
        while seat >= 0:
            gap(
                state,
                state.at[NOW]
                + time
                - (state.since[seat // WIDE] if state.seat[seat + AWAY] else max(state.since[seat // WIDE], state.at[TOKEN_AT])),
                1.0,
            )
            state.seat[seat + AWAY] = 0
            seat = state.seat[seat + FOLLOWING]
    state.count[RETURNED] = 0


def spread_gaps(state: State, rules: Rules, step: Step, first: int, steps: int) -> None:
    """Record the inter-token times of decode steps from `first` to `steps`, all sequences, in up to eight parts."""
    running = state.count[RUNNING]
    parts, span = min(8, 1 + steps // 64), steps - first
    for part in range(parts):
        count = span * (part + 1) // parts - span * part // parts
        middle = state.at[CONTEXT] + running * rules.accept * (first + span * (part + 0.5) / parts)
        gap(state, step_at(state, rules, step, running, middle), float(running * count))


def move_on(state: State, rules: Rules, steps: int) -> None:
    """Advance the decoding sequences by `steps` steps."""
    state.count[STEP] += steps
    state.at[DECODED] += float(steps * state.count[RUNNING])
    state.at[TOKEN_AT] = state.at[NOW]
    state.at[CONTEXT] += state.count[RUNNING] * rules.accept * steps


def choose(state: State, rules: Rules) -> int:
    """Assign prompts their chunks of the next step; returns their total tokens."""
    state.count[PACKED] = 0
    if state.count[PARTIAL] == 0 and state.count[QUEUED] == 0:
        return 0
    if rules.swap > 0:
        come_back(state, rules)
    room = rules.budget - rules.mixed * int(state.count[RUNNING] * rules.accept)
    tokens = 0
    for place in range(state.count[PARTIAL]):
        tokens += _cut(state, rules, state.partial[place], room - tokens)
    while tokens < room and state.count[QUEUED] > 0:
        lane = first_lane(state)
        if state.count[RUNNING] + state.count[PARTIAL] >= rules.seats or not fits(state, rules, lane):
            break
        seat = admit(state, rules, lane)
        if state.seat[seat + OWED] == 0:  # the prefill pool computed its prompt
            state.count[PARTIAL] -= 1
            begin(state, rules, seat)
        else:
            tokens += _cut(state, rules, seat, room - tokens)
    if rules.swap > 0 and state.count[PACKED] == 0 and state.count[RUNNING] == 0:
        come_back(state, rules)  # copies without delay
    return tokens


def come_back(state: State, rules: Rules) -> None:
    """Resume decoding of sequences whose blocks are back from host memory."""
    partial_count = 0
    for place in range(state.count[PARTIAL]):
        seat = state.partial[place]
        if state.seat[seat + AWAY] > 0 and not loading(state, rules, seat):
            state.count[HOSTED] -= state.seat[seat + AWAY]
            state.seat[seat + AWAY] = -1
            state.count[RETURNED] += 1
            decode(state, rules, seat)
        else:
            state.partial[partial_count] = seat
            partial_count += 1
    state.count[PARTIAL] = partial_count


def first_lane(state: State) -> int:
    """The lane of the highest class with a waiting request."""
    lane = 0
    while state.ends[lane + BACK] < 0 and state.ends[lane + SERVED] == state.ends[lane + ARRIVED]:
        lane += LANE
    return lane


def fits(state: State, rules: Rules, lane: int) -> bool:
    """Whether the cache has room for the first request of a class's queue."""
    seat = state.ends[lane + BACK]
    request, output_so_far = (
        state.ends[lane + SERVED] if seat < 0 else state.seat[seat + REQUEST],
        0 if seat < 0 else state.seat[seat + OUTPUT_SO_FAR],
    )
    if rules.reserve > 0.0 and state.count[RESERVED] + set_aside(state, rules, request) > rules.capacity:
        return False
    beside = rules.caching != 0 and (seat < 0 or state.seat[seat + AWAY] == 0)  # swapped blocks come back whole
    return room_beside_hits(state, rules, request, output_so_far) if beside else room_for(state, rules, request, output_so_far)


def _cut(state: State, rules: Rules, seat: int, room: int) -> int:
    tokens = (
        0
        if state.seat[seat + AWAY] > 0 or loading(state, rules, seat)
        else max(0, min(state.seat[seat + OWED] - state.seat[seat + COMPUTED], min(room, rules.chunk)))
    )
    state.seat[seat + CHUNK] = tokens
    if tokens > 0:
        state.count[PACKED] += 1
    return tokens


def pairs(state: State) -> float:
    """(query, key) pairs of the step's prompt chunks."""
    total = 0.0
    for place in range(state.count[PARTIAL]):
        seat = state.partial[place]
        total += state.seat[seat + CHUNK] * (state.seat[seat + COMPUTED] + 0.5 * state.seat[seat + CHUNK])
    return total


def compute(state: State, rules: Rules) -> None:
    """Complete the step's prompt chunks; requests with a finished prompt begin to decode."""
    partial_count = 0
    for place in range(state.count[PARTIAL]):
        seat = state.partial[place]
        state.seat[seat + COMPUTED] += state.seat[seat + CHUNK]
        state.at[PREFILLED] += state.seat[seat + CHUNK]
        if rules.leaving and overdue(state, state.seat[seat + REQUEST]):
            give_up(state, rules, seat)
        elif state.seat[seat + COMPUTED] >= state.seat[seat + OWED]:
            begin(state, rules, seat)
        else:
            state.partial[partial_count] = seat
            partial_count += 1
    state.count[PARTIAL] = partial_count

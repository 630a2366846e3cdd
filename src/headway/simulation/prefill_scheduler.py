"""Choice of the prompt chunks of the next step: prompts in progress first, then the queue, within token budget, seats and cache."""

from __future__ import annotations

from headway.simulation.blocks import room_for, set_aside
from headway.simulation.events import admit, begin, decode, give_up, overdue
from headway.simulation.prefix_lookup import loading, room_beside_hits
from headway.simulation.state import (
    ARRIVED,
    AWAY,
    BACK,
    CHUNK,
    COMPUTED,
    HOSTED,
    LANE,
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
    Rules,
    State,
)


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
    while state.ends[lane + BACK] < 0 and state.ends[lane + SERVED] >= state.ends[lane + ARRIVED]:
        lane += LANE
    return lane


def fits(state: State, rules: Rules, lane: int) -> bool:
    """Whether the cache has room for the first request of a class's queue."""
    seat = state.ends[lane + BACK]
    request, output_so_far = (
        state.order[state.ends[lane + SERVED]] if seat < 0 else state.seat[seat + REQUEST],
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

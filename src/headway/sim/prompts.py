"""Which prompt tokens go into the next step: those in work first, then those who wait, as far as budget, seats and cache go."""

from __future__ import annotations

from headway.sim.blocks import room_for, set_aside
from headway.sim.caching import loading, room_beside_hits
from headway.sim.events import admit, begin, decode, give_up, overdue
from headway.sim.state import (
    ARRIVED,
    AWAY,
    BACK,
    CHUNK,
    COMPUTED,
    HOSTED,
    LANE,
    MADE,
    OWED,
    PACKED,
    PARTIAL,
    PREFILLED,
    QUEUED,
    RESERVED,
    RETURNED,
    RUNNING,
    SERVED,
    WHO,
    Rules,
    State,
)


def choose(s: State, r: Rules) -> int:
    """Give prompts their chunks of the next step; the tokens in all."""
    s.count[PACKED] = 0
    if s.count[PARTIAL] == 0 and s.count[QUEUED] == 0:
        return 0
    if r.swap > 0:
        come_back(s, r)
    room = r.budget - r.mixed * int(s.count[RUNNING] * r.accept)
    taken = 0
    for place in range(s.count[PARTIAL]):
        taken += _cut(s, r, s.partial[place], room - taken)
    while taken < room and s.count[QUEUED] > 0:
        lane = first_lane(s)
        if s.count[RUNNING] + s.count[PARTIAL] >= r.seats or not fits(s, r, lane):
            break
        j = admit(s, r, lane)
        if s.seat[j + OWED] == 0:  # its prompt was computed elsewhere
            s.count[PARTIAL] -= 1
            begin(s, r, j)
        else:
            taken += _cut(s, r, j, room - taken)
    if r.swap > 0 and s.count[PACKED] == 0 and s.count[RUNNING] == 0:
        come_back(s, r)  # copies that take no time
    return taken


def come_back(s: State, r: Rules) -> None:
    """Sequences whose blocks are back from the host's memory decode on."""
    kept = 0
    for place in range(s.count[PARTIAL]):
        j = s.partial[place]
        if s.seat[j + AWAY] > 0 and not loading(s, r, j):
            s.count[HOSTED] -= s.seat[j + AWAY]
            s.seat[j + AWAY] = -1
            s.count[RETURNED] += 1
            decode(s, r, j)
        else:
            s.partial[kept] = j
            kept += 1
    s.count[PARTIAL] = kept


def first_lane(s: State) -> int:
    """The highest class that anyone waits in."""
    lane = 0
    while s.ends[lane + BACK] < 0 and s.ends[lane + SERVED] >= s.ends[lane + ARRIVED]:
        lane += LANE
    return lane


def fits(s: State, r: Rules, lane: int) -> bool:
    """Whether the cache has room for the first of a class's queue."""
    j = s.ends[lane + BACK]
    i, made = s.order[s.ends[lane + SERVED]] if j < 0 else s.seat[j + WHO], 0 if j < 0 else s.seat[j + MADE]
    if r.reserve > 0.0 and s.count[RESERVED] + set_aside(s, r, i) > r.capacity:
        return False
    beside = r.caching != 0 and (j < 0 or s.seat[j + AWAY] == 0)  # what was copied out comes back whole
    return room_beside_hits(s, r, i, made) if beside else room_for(s, r, i, made)


def _cut(s: State, r: Rules, j: int, room: int) -> int:
    tokens = 0 if s.seat[j + AWAY] > 0 or loading(s, r, j) else max(0, min(s.seat[j + OWED] - s.seat[j + COMPUTED], min(room, r.chunk)))
    s.seat[j + CHUNK] = tokens
    if tokens > 0:
        s.count[PACKED] += 1
    return tokens


def pairs(s: State) -> float:
    """(query, key) pairs of the chunks that are in the step."""
    total = 0.0
    for place in range(s.count[PARTIAL]):
        j = s.partial[place]
        total += s.seat[j + CHUNK] * (s.seat[j + COMPUTED] + 0.5 * s.seat[j + CHUNK])
    return total


def compute(s: State, r: Rules) -> None:
    """The step is over: chunks are computed, and whose prompt is done begins to decode."""
    kept = 0
    for place in range(s.count[PARTIAL]):
        j = s.partial[place]
        s.seat[j + COMPUTED] += s.seat[j + CHUNK]
        s.at[PREFILLED] += s.seat[j + CHUNK]
        if r.leaving and overdue(s, s.seat[j + WHO]):
            give_up(s, r, j)
        elif s.seat[j + COMPUTED] >= s.seat[j + OWED]:
            begin(s, r, j)
        else:
            s.partial[kept] = j
            kept += 1
    s.count[PARTIAL] = kept

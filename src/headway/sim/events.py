"""What happens to one request: it arrives, is admitted, gets its first token, decodes, ends."""

from __future__ import annotations

from math import inf

from headway.sim.blocks import blocks_for, leave, set_aside
from headway.sim.caching import keep_answer, offer, take_up
from headway.sim.heap import push, remove_at
from headway.sim.lists import give_seat, push_back, remove, take_seat
from headway.sim.pins import let_go
from headway.sim.state import (
    AGAIN,
    ARRIVAL,
    ARRIVED,
    ASKED,
    AWAY,
    BACK,
    CHUNK,
    CLASS,
    COMING,
    COMPUTED,
    CONTEXT,
    DECODING,
    DONE,
    DUE,
    EMITTED,
    FINISH,
    FIRST,
    HEAPED,
    HELD,
    JOINED,
    KNOWN,
    LANE,
    LEFT,
    LINK_AT,
    MADE,
    NOW,
    OUTPUT,
    OWED,
    PARTIAL,
    PROMPT,
    PROMPT_BLOCKS,
    QUEUED,
    RESERVED,
    RUNNING,
    SCHEDULED,
    SERVED,
    STEP,
    TOTAL,
    WHO,
    WIDE,
    Rules,
    State,
)
from headway.sim.tally import gap, waited

NEVER = inf


def arrive(s: State, r: Rules) -> None:
    """Everyone who has come by now queues; who has waited too long leaves."""
    now = s.at[NOW]
    while s.count[COMING] > 0 and s.coming[0] <= now:
        name = int(s.coming[1])
        lane = name % r.lanes
        s.order[s.ends[lane + KNOWN]] = name // r.lanes
        s.ends[lane + KNOWN] += 1
        remove_at(s.coming, s.count[COMING], 0)
        s.count[COMING] -= 1
    for lane in range(0, r.lanes, LANE):
        at, known = s.ends[lane + ARRIVED], s.ends[lane + KNOWN]
        while at < known and s.times[4 * s.order[at] + ARRIVAL] <= now:
            waited(s, s.times[4 * s.order[at] + ARRIVAL], 1.0)
            if r.caching:
                s.at[DUE] += s.cache.expected[s.order[at]]
            at += 1
            s.count[QUEUED] += 1
        s.ends[lane + ARRIVED] = at
        if r.leaving:
            thin(s, r, lane)


def thin(s: State, r: Rules, lane: int) -> None:
    """Those at the front of a class's queue who have waited too long leave it."""
    while s.ends[lane + SERVED] < s.ends[lane + ARRIVED] and overdue(s, s.order[s.ends[lane + SERVED]]):
        i = s.order[s.ends[lane + SERVED]]
        s.ends[lane + SERVED] += 1
        s.count[QUEUED] -= 1
        waited(s, -s.times[4 * i + FIRST], -1.0)  # was counted until now
        if r.caching:
            s.at[DUE] -= s.cache.expected[i]
        lose(s, r, i)


def overdue(s: State, i: int) -> bool:
    """Whether a request's first token has not come in time."""
    by = -s.times[4 * i + FIRST]
    return 0.0 < by < s.at[NOW]


def lose(s: State, r: Rules, i: int) -> None:
    """A user has given up; one of a closed loop asks something else, a conversation is over."""
    s.times[4 * i + FINISH] = s.times[4 * i + FIRST]
    s.count[LEFT] += 1
    if r.closed == 1:
        ask_again(s, r, i, 0, -s.times[4 * i + FIRST])


def give_up(s: State, r: Rules, j: int) -> None:
    """A user has given up while the prompt was in work."""
    s.count[PROMPT_BLOCKS] -= s.seat[j + HELD]
    lose(s, r, s.seat[j + WHO])
    vacate(s, r, j)


def vacate(s: State, r: Rules, j: int) -> None:
    """A request that does not decode leaves its seat and its cache."""
    s.count[RESERVED] -= set_aside(s, r, s.seat[j + WHO])
    let_go(s, r, j)
    give_seat(s, j)


def next_arrival(s: State, r: Rules) -> float:
    """When the next request comes, as far as is known."""
    comes = s.coming[0] if s.count[COMING] > 0 else NEVER
    for lane in range(0, r.lanes, LANE):
        at = s.ends[lane + ARRIVED]
        if at < s.ends[lane + KNOWN]:
            comes = min(comes, s.times[4 * s.order[at] + ARRIVAL])
    return comes


def next_leaving(s: State, r: Rules) -> float:
    """When the first of those at the front of a queue gives up."""
    leaves = NEVER
    for lane in range(0, r.lanes, LANE):
        at = s.ends[lane + SERVED]
        by = -s.times[4 * s.order[at] + FIRST] if at < s.ends[lane + ARRIVED] else 0.0
        if 0.0 < by < leaves:
            leaves = by
    return leaves


def admit(s: State, r: Rules, lane: int) -> int:
    """The first of a class's queue, those sent back before others, out of the queue and into work; its seat."""
    j = s.ends[lane + BACK]
    if j >= 0:
        remove(s, lane + BACK, j)
    else:
        j = take_seat(s, s.order[s.ends[lane + SERVED]], lane)
        s.ends[lane + SERVED] += 1
        s.times[4 * s.seat[j + WHO] + SCHEDULED] = s.at[NOW]
    i, made = s.seat[j + WHO], s.seat[j + MADE]
    prompt = s.lengths[2 * i + PROMPT]
    s.count[QUEUED] -= 1
    s.seat[j + COMPUTED], s.seat[j + CHUNK] = 0, 0
    s.seat[j + OWED] = 0 if r.handed and made == 0 else prompt + made
    s.seat[j + HELD] = blocks_for(prompt + made + 1, r.block)
    s.count[PROMPT_BLOCKS] += s.seat[j + HELD]
    s.count[RESERVED] += set_aside(s, r, i)
    if s.seat[j + AWAY] > 0:
        s.at[LINK_AT] = max(s.at[LINK_AT], s.at[NOW]) + s.seat[j + AWAY] * r.copy_s
        s.cache.ready[j // WIDE] = s.at[LINK_AT]
    elif r.caching:
        take_up(s, r, j)
    s.partial[s.count[PARTIAL]] = j
    s.count[PARTIAL] += 1
    return j


def begin(s: State, r: Rules, j: int) -> None:
    """A prompt is done: its token comes with it, and the sequence decodes from the next step on."""
    now, i, made = s.at[NOW], s.seat[j + WHO], s.seat[j + MADE] + 1
    if r.caching:
        offer(s, r, j)
    s.seat[j + MADE] = made
    s.at[EMITTED] += 1.0
    if s.seat[j + AGAIN] == 0:
        s.times[4 * i + FIRST] = now
    else:
        gap(s, now - s.since[j // WIDE], 1.0)
    s.since[j // WIDE] = now
    if made < s.lengths[2 * i + OUTPUT]:
        decode(s, r, j)
        return
    s.count[PROMPT_BLOCKS] -= s.seat[j + HELD]
    vacate(s, r, j)
    end(s, r, j)


def decode(s: State, r: Rules, j: int) -> None:
    """A sequence decodes from the next step on."""
    i, step = s.seat[j + WHO], s.count[STEP]
    context = s.lengths[2 * i + PROMPT] + s.seat[j + MADE]
    s.count[PROMPT_BLOCKS] -= s.seat[j + HELD]
    s.seat[j + JOINED] = step
    push(s.heap, s.count[HEAPED], step + steps_left(s.lengths[2 * i + OUTPUT] - s.seat[j + MADE], r.accept), j)
    s.count[HEAPED] += 1
    push_back(s, s.seat[j + CLASS] + DECODING, j)
    s.count[RUNNING] += 1
    s.at[CONTEXT] += context
    if r.accept == 1.0:
        s.phase[(context - step) % r.block] += 1


def steps_left(tokens: int, accept: float) -> int:
    """Steps that yield so many tokens."""
    if accept == 1.0:
        return tokens
    return int(-((-tokens / accept) // 1.0))


def end(s: State, r: Rules, j: int) -> None:
    """The last token is out; the seat is free already, and nobody else has it yet."""
    now, i = s.at[NOW], s.seat[j + WHO]
    s.times[4 * i + FINISH] = now
    s.count[DONE] += 1
    if r.closed:
        ask_again(s, r, i, s.seat[j + CLASS], now)


def ask_again(s: State, r: Rules, i: int, lane: int, now: float) -> None:
    """Who has an answer sends the next request after the pause that stands for its arrival until now."""
    comes_next = s.after[i] if r.closed == 2 else -1
    if r.closed == 1 and s.ends[ASKED] < s.count[TOTAL]:
        comes_next = s.order[s.ends[ASKED]]
        s.ends[ASKED] += 1
    if comes_next < 0:
        return
    comes = now + s.times[4 * comes_next + ARRIVAL]
    s.times[4 * comes_next + ARRIVAL] = comes
    s.times[4 * comes_next + FIRST] -= comes
    push(s.coming, s.count[COMING], comes, comes_next * r.lanes + lane)
    s.count[COMING] += 1


def retire(s: State, r: Rules) -> None:
    """Every sequence whose last step is over leaves."""
    while s.count[RUNNING] > 0 and s.heap[0] <= s.count[STEP]:
        j = int(s.heap[1])
        remove_at(s.heap, s.count[HEAPED], 0)
        s.count[HEAPED] -= 1
        s.at[EMITTED] += s.lengths[2 * s.seat[j + WHO] + OUTPUT] - s.seat[j + MADE]
        if r.caching:
            keep_answer(s, r, j)
        leave(s, r, j)
        give_seat(s, j)
        end(s, r, j)

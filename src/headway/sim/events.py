"""What happens to one request: it arrives, is admitted, gets its first token, decodes, ends."""

from __future__ import annotations

from math import inf

from headway.sim.blocks import blocks_for, leave, set_aside
from headway.sim.caching import keep_answer, offer, take_up
from headway.sim.heap import pop, push
from headway.sim.lists import give_seat, push_back, remove, take_seat
from headway.sim.pins import let_go
from headway.sim.state import (
    AGAIN,
    ARRIVAL,
    ARRIVED,
    BACK,
    CHUNK,
    CLASS,
    COMPUTED,
    CONTEXT,
    DECODING,
    DONE,
    DUE,
    EMITTED,
    FINISH,
    FIRST,
    HELD,
    JOINED,
    KNOWN,
    LANE,
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
    """Everyone who has come by now queues."""
    now = s.at[NOW]
    for lane in range(0, r.lanes, LANE):
        at, known = s.ends[lane + ARRIVED], s.ends[lane + KNOWN]
        while at < known and s.times[4 * s.order[at] + ARRIVAL] <= now:
            waited(s, s.times[4 * s.order[at] + ARRIVAL])
            if r.caching:
                s.at[DUE] += s.cache.expected[s.order[at]]
            at += 1
            s.count[QUEUED] += 1
        s.ends[lane + ARRIVED] = at


def next_arrival(s: State, r: Rules) -> float:
    """When the next request comes, as far as is known."""
    comes = NEVER
    for lane in range(0, r.lanes, LANE):
        at = s.ends[lane + ARRIVED]
        if at < s.ends[lane + KNOWN]:
            comes = min(comes, s.times[4 * s.order[at] + ARRIVAL])
    return comes


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
    if r.caching:
        take_up(s, r, j)
    s.partial[s.count[PARTIAL]] = j
    s.count[PARTIAL] += 1
    return j


def begin(s: State, r: Rules, j: int) -> None:
    """A prompt is done: its token comes with it, and the sequence decodes from the next step on."""
    now, i, made = s.at[NOW], s.seat[j + WHO], s.seat[j + MADE] + 1
    if r.caching:
        offer(s, r, j)
    s.count[PROMPT_BLOCKS] -= s.seat[j + HELD]
    s.seat[j + MADE] = made
    s.at[EMITTED] += 1.0
    if s.seat[j + AGAIN] == 0:
        s.times[4 * i + FIRST] = now
    else:
        gap(s, now - s.since[j // WIDE], 1.0)
    s.since[j // WIDE] = now
    output = s.lengths[2 * i + OUTPUT]
    if made >= output:
        s.count[RESERVED] -= set_aside(s, r, i)
        let_go(s, r, j)
        end(s, r, j)
        return
    step = s.count[STEP]
    context = s.lengths[2 * i + PROMPT] + made
    s.seat[j + JOINED] = step
    push(s, step + steps_left(output - made, r.accept), j)
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
    """The last token is out."""
    now = s.at[NOW]
    s.times[4 * s.seat[j + WHO] + FINISH] = now
    s.count[DONE] += 1
    give_seat(s, j)
    if r.closed:
        ask_again(s, now)


def ask_again(s: State, now: float) -> None:
    """A user of a closed loop has an answer, and sends the next request after the pause that stands for its arrival until now."""
    at = s.ends[KNOWN]
    if at >= s.count[TOTAL]:
        return
    i = s.order[at]
    comes = now + s.times[4 * i + ARRIVAL]
    s.times[4 * i + ARRIVAL] = comes
    s.ends[KNOWN] = at + 1
    while at > s.ends[ARRIVED] and s.times[4 * s.order[at - 1] + ARRIVAL] > comes:
        s.order[at] = s.order[at - 1]
        at -= 1
    s.order[at] = i


def retire(s: State, r: Rules) -> None:
    """Every sequence whose last step is over leaves."""
    while s.count[RUNNING] > 0 and s.heap[0] <= s.count[STEP]:
        j = pop(s)
        s.at[EMITTED] += s.lengths[2 * s.seat[j + WHO] + OUTPUT] - s.seat[j + MADE]
        if r.caching:
            keep_answer(s, r, j)
        leave(s, r, j)
        end(s, r, j)

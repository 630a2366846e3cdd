"""Blocks of KV cache: what requests hold now, what they will hold, and who gives way when that is too much.

All decoding sequences grow by one token a step, so that (context - step) modulo the block never changes: counted by that, the growth
of the whole batch is known without looking at any sequence.
"""

from __future__ import annotations

from headway.sim.heap import place_of, remove_at
from headway.sim.lists import push_front, remove
from headway.sim.pins import able, let_go
from headway.sim.state import (
    AGAIN,
    AWAY,
    BACK,
    CLASS,
    CONTEXT,
    DECODING,
    EMITTED,
    HEAPED,
    HOSTED,
    JOINED,
    LANE,
    MADE,
    OUT_S,
    OUTPUT,
    PEAK_BLOCKS,
    PREEMPTED,
    PROMPT,
    PROMPT_BLOCKS,
    QUEUED,
    RESERVED,
    RUNNING,
    STEP,
    SWAPPED,
    TOKEN_AT,
    WHO,
    WIDE,
    Rules,
    State,
)


def blocks_for(tokens: float, block: int) -> int:
    """Blocks of so many tokens."""
    return int((tokens + block - 1) // block)


def most_held(s: State, r: Rules) -> int:
    """At least as many blocks as are held, without counting."""
    return int(s.count[PROMPT_BLOCKS] + s.at[CONTEXT] // r.block + s.count[RUNNING] + 1)


def decode_blocks(s: State, r: Rules) -> int:
    """Blocks that the next step's decoding sequences hold."""
    if r.accept != 1.0:  # contexts that are no whole numbers: a block each is taken to be half full
        return int(s.at[CONTEXT] // r.block + (s.count[RUNNING] + 1) // 2)
    step, total = s.count[STEP], 0
    for key in range(r.block):
        over = (key + step) % r.block
        if over:
            total += s.phase[key] * (r.block - over)
    return int((int(s.at[CONTEXT]) + total) // r.block)


def blocks_held(s: State, r: Rules) -> int:
    """Blocks that all requests in service hold in the next step."""
    return int(s.count[PROMPT_BLOCKS] + decode_blocks(s, r))


def room_for(s: State, r: Rules, i: int, made: int) -> bool:
    """Whether a request's prompt, and what it has made of its answer, fits now with what it sets aside."""
    need = blocks_for(s.lengths[2 * i + PROMPT] + made + 1, r.block)
    return most_held(s, r) + need <= able(s, r) or blocks_held(s, r) + need <= able(s, r)


def set_aside(s: State, r: Rules, i: int) -> int:
    """Blocks that are set aside for a request when it is admitted."""
    return blocks_for(s.lengths[2 * i + PROMPT] + r.reserve * s.lengths[2 * i + OUTPUT], r.block)


def steps_of_room(s: State, r: Rules, most: int) -> int:
    """Steps, at most so many, until the decoding sequences need more blocks than there are."""
    if s.count[PROMPT_BLOCKS] + (s.at[CONTEXT] + s.count[RUNNING] * r.accept * most) // r.block + s.count[RUNNING] + 1 <= able(s, r):
        return most
    if r.accept != 1.0:
        return 1
    held, running = blocks_held(s, r), s.count[RUNNING]
    rounds = max(0, (able(s, r) - held) // running)  # in as many steps as a block has tokens each sequence takes one block
    steps = rounds * r.block
    held += rounds * running
    while steps < most:
        held += s.phase[(-(s.count[STEP] + steps)) % r.block]  # whose context fills its blocks in this step
        steps += 1
        if held > able(s, r):
            break
    return max(1, min(steps, most))


def make_room(s: State, r: Rules) -> None:
    """Preempt those that came last, of the lowest class first, until the next step's blocks fit."""
    most = most_held(s, r)
    if most > able(s, r):
        most = blocks_held(s, r)
        while most > able(s, r) and s.count[RUNNING] > 0:
            preempt(s, r, _last(s, r))
            most = blocks_held(s, r)
    s.count[PEAK_BLOCKS] = max(s.count[PEAK_BLOCKS], most - able(s, r) + r.capacity)


def _last(s: State, r: Rules) -> int:
    lane = r.lanes - LANE
    while s.ends[lane + DECODING + 1] < 0:
        lane -= LANE
    return s.ends[lane + DECODING + 1]


def leave(s: State, r: Rules, j: int) -> None:
    """A sequence decodes no more, and its blocks are free."""
    i = s.seat[j + WHO]
    remove(s, s.seat[j + CLASS] + DECODING, j)
    let_go(s, r, j)
    steps = s.count[STEP] - s.seat[j + JOINED]
    context = s.lengths[2 * i + PROMPT] + s.seat[j + MADE] + steps * r.accept
    s.count[RUNNING] -= 1
    s.at[CONTEXT] = s.at[CONTEXT] - context if s.count[RUNNING] > 0 else 0.0
    if r.accept == 1.0:
        s.phase[int(context - s.count[STEP]) % r.block] -= 1
    s.count[RESERVED] -= set_aside(s, r, i)


def preempt(s: State, r: Rules, j: int) -> None:
    """Back to the front of the queue; what was computed goes to the host's memory where that has room, else it is computed again."""
    remove_at(s.heap, s.count[HEAPED], place_of(s.heap, j))
    s.count[HEAPED] -= 1
    made = int(s.seat[j + MADE] + (s.count[STEP] - s.seat[j + JOINED]) * r.accept)
    leave(s, r, j)
    s.at[EMITTED] += made - s.seat[j + MADE]
    s.seat[j + MADE] = made
    s.seat[j + AGAIN] += 1
    if s.seat[j + AWAY] == 0:
        s.since[j // WIDE] = max(s.since[j // WIDE], s.at[TOKEN_AT])
    away = blocks_for(s.lengths[2 * s.seat[j + WHO] + PROMPT] + made - 1, r.block)  # its last token has not been attended to
    if s.count[HOSTED] + away > r.swap:
        away = 0
    s.seat[j + AWAY] = away
    s.count[HOSTED] += away
    s.count[SWAPPED] += min(away, 1)
    s.at[OUT_S] += away * r.copy_s
    push_front(s, s.seat[j + CLASS] + BACK, j)
    s.count[PREEMPTED] += 1
    s.count[QUEUED] += 1

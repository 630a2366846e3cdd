"""The loop: continuous batching, iteration by iteration where something happens, in one jump where nothing does.

Written in the subset that numba compiles; plain Python runs the same lines. `step(batch, context, prompt tokens, pairs, ranks)` is the
flat form of the one step law.
"""

from __future__ import annotations

from math import inf

from headway.sim.blocks import make_room, steps_of_room
from headway.sim.caching import next_loaded
from headway.sim.events import NEVER, arrive, next_arrival, next_leaving, retire
from headway.sim.flatten import Step
from headway.sim.pace import departed, step_at, steps_s, steps_until
from headway.sim.prompts import choose, compute, pairs
from headway.sim.state import (
    AWAY,
    CONTEXT,
    DECODING,
    DONE,
    FOLLOWING,
    LANE,
    NOW,
    OUT_S,
    PACKED,
    PARTIAL,
    QUEUED,
    RETURNED,
    RUNNING,
    SPREAD,
    STEP,
    TOKEN_AT,
    WERE_DONE,
    WIDE,
    Rules,
    State,
)
from headway.sim.tally import elapse, gap

IDLE, PAUSED, STUCK = 0, 1, 2  # nothing left to do; at the time or the number of events asked for; a request that nothing can serve


def advance(s: State, r: Rules, step: Step, until: float, most: int) -> int:
    """Run until a time, or so many iterations; a step that has begun is seen through."""
    for _ in range(most):
        arrive(s, r)
        if s.count[RUNNING] == 0 and s.count[PARTIAL] == 0 and s.count[QUEUED] == 0:
            comes = next_arrival(s, r)
            if comes == NEVER:
                return IDLE
            if comes > until:
                return PAUSED
            s.at[NOW], s.count[WERE_DONE] = on_beat(r, max(s.at[NOW], comes)), s.count[DONE]
            continue
        if s.at[NOW] >= until:
            return PAUSED
        s.count[WERE_DONE] = s.count[DONE]
        make_room(s, r)
        if s.at[OUT_S] > 0.0:
            stand_by(s, r, on_beat(r, s.at[NOW] + s.at[OUT_S]))
            s.at[OUT_S] = 0.0
            continue
        tokens = choose(s, r)
        if s.count[PACKED] > 0:
            with_prompts(s, r, step, tokens)
        elif s.count[RUNNING] > 0:
            jump(s, r, step, min(until, next_loaded(s, r)))
        elif next_loaded(s, r) < inf:
            stand_by(s, r, on_beat(r, min(next_loaded(s, r), next_arrival(s, r))))
        elif s.count[QUEUED] > 0 or s.count[PARTIAL] > 0:
            return STUCK
    return PAUSED


def on_beat(r: Rules, time: float) -> float:
    """The first departure that is not before a time."""
    if r.departures > 0.0:
        return max(time, r.departures * -((-time / r.departures + 1e-9) // 1.0))  # a beat may be rounded to before who came on it
    return time


def stand_by(s: State, r: Rules, until: float) -> None:
    """No step until a time: everyone in service waits for a copy."""
    elapse(s, r, until - s.at[NOW], 0)
    s.at[NOW] = until


def with_prompts(s: State, r: Rules, step: Step, tokens: int) -> None:
    """One step that computes prompts, and in mixed steps decodes."""
    running = s.count[RUNNING] * r.mixed
    ranks = s.spread[min(s.count[PACKED], s.count[SPREAD])]
    context = s.at[CONTEXT] if running else 0.0
    time = departed(r, step(float(running), context, float(tokens), pairs(s), ranks))
    if running and late_tokens(s):
        late_gaps(s, r, time)
    elif running:
        gap(s, time, float(running))
    elapse(s, r, time, 1)
    if running:
        move_on(s, r, 1)
    compute(s, r)
    retire(s, r)


def jump(s: State, r: Rules, step: Step, until: float) -> None:
    """As many decode steps as pass without anything else: until one ends, someone comes who may be let in, or blocks run out."""
    steps = steps_of_room(s, r, int(s.heap[0]) - s.count[STEP])
    if s.count[QUEUED] == 0:
        until = min(until, next_arrival(s, r))
    elif r.leaving:
        until = min(until, next_leaving(s, r))
    steps = steps_until(s, r, step, until - s.at[NOW], steps)
    time = steps_s(s, r, step, steps)
    late = 0
    if late_tokens(s):
        late = 1
        late_gaps(s, r, step_at(s, r, step, s.count[RUNNING], s.at[CONTEXT]))
    spread_gaps(s, r, step, late, steps)
    elapse(s, r, time, steps)
    move_on(s, r, steps)
    retire(s, r)


def late_tokens(s: State) -> bool:
    """Whether those who decode have waited for more than the next step: for steps of prompts alone, or for copies."""
    return s.at[TOKEN_AT] < s.at[NOW] or s.count[RETURNED] > 0


def late_gaps(s: State, r: Rules, time: float) -> None:
    """The decode step after such a wait: each sequence has waited since its own last token."""
    for lane in range(0, r.lanes, LANE):
        j = s.ends[lane + DECODING]
        while j >= 0:
            gap(s, s.at[NOW] + time - (s.since[j // WIDE] if s.seat[j + AWAY] else max(s.since[j // WIDE], s.at[TOKEN_AT])), 1.0)
            s.seat[j + AWAY] = 0
            j = s.seat[j + FOLLOWING]
    s.count[RETURNED] = 0


def spread_gaps(s: State, r: Rules, step: Step, first: int, steps: int) -> None:
    """The time between tokens, of each sequence in each of so many steps from `first` on; long runs in up to eight parts."""
    running = s.count[RUNNING]
    parts, left = min(8, 1 + steps // 64), steps - first
    for part in range(parts):
        count = left * (part + 1) // parts - left * part // parts
        middle = s.at[CONTEXT] + running * r.accept * (first + left * (part + 0.5) / parts)
        gap(s, step_at(s, r, step, running, middle), float(running * count))


def move_on(s: State, r: Rules, steps: int) -> None:
    """The decoding sequences are so many steps further."""
    s.count[STEP] += steps
    s.at[TOKEN_AT] = s.at[NOW]
    s.at[CONTEXT] += s.count[RUNNING] * r.accept * steps

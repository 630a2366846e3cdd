"""The loop of continuous batching: iteration by iteration around events, in one jump between them.

Written in the subset that numba compiles; plain Python runs it too. `step(batch, context, prompt tokens, pairs, prompts)` is the flat form
of the step law.
"""

from __future__ import annotations

from math import inf

from headway.simulation.blocks import make_room, steps_of_room
from headway.simulation.events import NEVER, arrive, next_arrival, next_leaving, retire
from headway.simulation.flatten import Step
from headway.simulation.prefill_scheduler import choose, compute, pairs
from headway.simulation.prefix_lookup import next_loaded
from headway.simulation.state import (
    AWAY,
    COMPLETED,
    COMPLETED_BEFORE,
    CONTEXT,
    DECODING,
    FOLLOWING,
    LANE,
    NOW,
    OUT_S,
    PACKED,
    PARTIAL,
    QUEUED,
    RETURNED,
    RUNNING,
    STEP,
    TOKEN_AT,
    WIDE,
    Rules,
    State,
)
from headway.simulation.step_time import departed, step_at, steps_s, steps_until
from headway.simulation.timings import elapse, gap

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
    elapse(state, rules, time, steps)
    move_on(state, rules, steps)
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
    state.at[TOKEN_AT] = state.at[NOW]
    state.at[CONTEXT] += state.count[RUNNING] * rules.accept * steps

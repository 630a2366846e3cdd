"""How long steps last: one with prompts, and many without, summed without looking at each.

Between two events a batch is constant and its context grows by the same number of tokens each step. Where the step time is a straight
line in the context the sum is exact; elsewhere it is summed over pieces, each so short that a parabola says it all.
"""

from __future__ import annotations

from headway.sim.flatten import Step
from headway.sim.state import CONTEXT, RUNNING, Rules, State

CLOSE = 1e-9  # of a step's time: how far from a parabola a piece may be
FEW = 4  # steps that are added one by one


def step_at(state: State, rules: Rules, step: Step, running: int, context: float) -> float:
    """Time of a step in which nothing is prefilled."""
    at = 3 * running
    time = state.line[at] + state.line[at + 1] * context if state.line[at + 2] > 0.0 else step(float(running), context, 0.0, 0.0, 1.0)
    return departed(rules, time)


def departed(rules: Rules, time: float) -> float:
    """The time until the next departure, where steps begin on a beat."""
    if rules.departures > 0.0:
        return rules.departures * max(1.0, -((-time / rules.departures + 1e-9) // 1.0))
    return time


def steps_s(state: State, rules: Rules, step: Step, steps: int) -> float:
    """Time of so many decode steps from here on."""
    running, context = state.count[RUNNING], state.at[CONTEXT]
    grows = running * rules.accept
    if state.line[3 * running + 2] > 0.0 and rules.departures == 0.0:
        return steps * (state.line[3 * running] + state.line[3 * running + 1] * (context + grows * (steps - 1) * 0.5))
    offset, size, total = 0, steps, 0.0
    while offset < steps:
        size = min(size, steps - offset)
        if size <= FEW:
            for step_number in range(offset, offset + size):
                total += step_at(state, rules, step, running, context + grows * step_number)
            offset, size = offset + size, 2 * size
            continue
        piece = _piece_s(state, rules, step, context + grows * offset, grows * (size - 1), size)
        if piece >= 0.0:
            total, offset, size = total + piece, offset + size, 2 * size
        else:
            size //= 2
    return total


def _piece_s(state: State, rules: Rules, step: Step, start: float, width: float, steps: int) -> float:
    """So many steps as a parabola through the first, the middle and the last; -1 where the quarters do not lie on it."""
    running = state.count[RUNNING]
    first, last = step_at(state, rules, step, running, start), step_at(state, rules, step, running, start + width)
    middle, chord = step_at(state, rules, step, running, start + 0.5 * width), 0.5 * (first + last)
    bend = middle - chord
    near, far = step_at(state, rules, step, running, start + 0.25 * width), step_at(state, rules, step, running, start + 0.75 * width)
    if abs(near - (0.75 * first + 0.25 * last + 0.75 * bend)) > CLOSE * middle:
        return -1.0
    if abs(far - (0.25 * first + 0.75 * last + 0.75 * bend)) > CLOSE * middle:
        return -1.0
    return steps * (chord + bend * (2.0 / 3.0) * (steps - 2.0) / (steps - 1.0))


def steps_until(state: State, rules: Rules, step: Step, duration_s: float, most: int) -> int:
    """Fewest steps, at most so many, that take as long as wanted: the one in progress when something arrives is seen through."""
    if most <= 1 or steps_s(state, rules, step, most) <= duration_s:
        return most
    low, high = 0, most
    guess = max(1, min(most - 1, int(duration_s / step_at(state, rules, step, state.count[RUNNING], state.at[CONTEXT])) + 1))
    while high - low > 1:
        if steps_s(state, rules, step, guess) >= duration_s:
            high = guess
            guess = max(low + 1, guess - 1 - (guess - low) // 8)
        else:
            low = guess
            guess = min(high - 1, guess + 1 + (high - guess) // 8)
    return high

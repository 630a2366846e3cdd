"""The step time that the loop runs on: the one step law of a compiled layout, flat; one step with prompts, or many without at once.

Lines are the law's own values: where a pure decode step of a batch is straight in the context at every point looked at, two numbers say
all of it, and sums over many steps are exact.

Between two events a batch is constant and its context grows by the same number of tokens each step. Where the step time is a straight
line in the context the sum is exact; elsewhere it is summed over pieces, each so short that a parabola says it all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headway.laws.serving.request import prompt_ranks, speculative_s
from headway.laws.step.coefficients import StepCoefficients
from headway.laws.step.step import compute_s, step_floor_s, step_s
from headway.performance.assumptions import Assumptions
from headway.sim.flatten import Step, flattened, plain
from headway.sim.state import CONTEXT, RUNNING, Rules, State

NAMES = ("batch", "context", "tokens", "pairs", "ranks")
LOOKED_AT = (0.0, 1 / 256, 1 / 64, 1 / 16, 1 / 4, 1 / 2, 1.0)  # of the longest context
STRAIGHT = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class StepPace:
    """How long steps take: in full, and as lines for pure decode steps of each batch."""

    source: str  # of `step`, flat
    step: Step  # batch, context of all its sequences, prompt tokens, pairs, ranks that the prompts keep busy
    line: Any  # by batch: time without context, time per token of context, 1 where the two say all
    spread: Any  # prompts in a step -> ranks that they keep busy
    floor: Callable[..., Any] | None  # the same arguments: nothing is faster


def scaled(pace: StepPace, factor: float) -> StepPace:
    """Every step so many times as long, as where a machine was measured to be slower than its estimate."""
    source = pace.source.replace("    return ", f"    return {factor!r} * ")
    line = pace.line.reshape(-1, 3) * (factor, factor, 1.0)
    return replace(pace, source=source, step=plain(source), line=line.ravel())


def pace_of(coefficients: StepCoefficients, assumptions: Assumptions, seats: int, longest: float) -> StepPace:
    """The pace of a compiled layout, for batches up to `seats` and contexts up to `longest`."""

    def law(batch: Any, context: Any, tokens: Any, pairs: Any, ranks: Any) -> Any:
        at = replace(coefficients, prefill_ranks=ranks)
        step = step_s(at, batch, context, tokens, pairs)
        if assumptions.accept_length == 1 and not assumptions.draft_cost:
            return step
        decode = step_s(at, batch, context, 0.0, 0.0)
        drafted = assumptions.accept_length * speculative_s(
            decode, compute_s(at, batch, context), assumptions.accept_length, assumptions.draft_cost
        )
        return step + np.minimum(batch, 1) * (drafted - decode)  # prompts are not drafted: a step without decodes is as long as ever

    def floor(batch: Any, context: Any, tokens: Any, pairs: Any, ranks: Any) -> Any:
        return step_floor_s(replace(coefficients, prefill_ranks=ranks), batch, context, tokens, pairs)

    prompts = np.maximum(np.arange(int(coefficients.dp) * 8 + 2), 1)
    spread = prompt_ranks(prompts, coefficients.dp) if coefficients.dp > 1 else np.ones(2)
    source = flattened(law, NAMES)
    return StepPace(source=source, step=plain(source), line=_lines(law, seats, longest), spread=np.asarray(spread, float), floor=floor)


def pace_from(source: str, seats: int, longest: float) -> StepPace:
    """A pace of one's own, for what has known answers: the source of `def step(batch, context, tokens, pairs, ranks)` in arithmetic."""
    step = plain(source)
    law = np.vectorize(step, otypes=[float])
    return StepPace(source=source, step=step, line=_lines(law, seats, longest), spread=np.ones(2), floor=None)


def _lines(law: Callable[..., Any], seats: int, longest: float) -> Any:
    """Time without context and per token of context by batch, from the law at a few contexts."""
    batch = np.arange(1.0, seats + 2)
    times = [np.broadcast_to(np.asarray(law(batch, batch * longest * part, 0.0, 0.0, 1.0), float), batch.shape) for part in LOOKED_AT]
    slope = (times[-1] - times[0]) / (batch * longest)
    off = [np.abs(times[0] + slope * batch * longest * part - time) for part, time in zip(LOOKED_AT, times, strict=True)]
    straight = np.max(off, axis=0) <= STRAIGHT * times[0]
    return np.concatenate((np.zeros(3), np.stack((times[0], slope, straight), axis=1).ravel()))


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

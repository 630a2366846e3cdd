"""The step time that the loop runs on: the one step law of a compiled layout, flat, and its straight lines in the context.

Lines are the law's own values: where a pure decode step of a batch is straight in the context at every point looked at, two numbers say
all of it, and sums over many steps are exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headway.assumptions import Assumptions
from headway.laws.coefficients import StepCoefficients
from headway.laws.reuse import speculative_s
from headway.laws.serving import prompt_ranks
from headway.laws.step import compute_s, step_floor_s, step_s
from headway.sim.flatten import Step, flattened, plain

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

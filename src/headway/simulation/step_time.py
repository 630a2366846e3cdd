"""Step times for the loop, from the step law of a compiled layout: one step with prompts, or many decode steps at once.

The law runs once on symbols, at fixed coefficients: operations on symbols are written down, all others are evaluated. Nothing is derived
again: the flat function, cheap enough for a loop, does the law's own operations in the law's own order, as machine code or plain Python.

Lines are values of the law: if a batch's decode step time is linear in the context at every sampled point, two numbers define it, and
sums over many steps are exact.

Between two events a batch is constant and its context grows by a fixed number of tokens each step. If the step time is linear in the
context the sum is exact; else it is summed over pieces short enough for a parabola to fit within CLOSE.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headway.core.trace import operators
from headway.core.units import Number, Token
from headway.laws.queueing.closed_loop import with_prompts
from headway.laws.step.coefficients import StepCoefficients
from headway.laws.step.step import step_floor_s, step_s
from headway.simulation.state import CONTEXT, RUNNING, Rules, State

NAMES = ("batch", "context", "tokens", "pairs", "prompts")
LOOKED_AT = (0.0, 1 / 256, 1 / 64, 1 / 16, 1 / 4, 1 / 2, 1.0)  # sampled contexts, as shares of the longest
STRAIGHT = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class StepPace:
    """Step times of a layout: the full function, and lines for pure decode steps of each batch."""

    source: str  # source of the flat `step`
    step: Step  # batch, context of all its sequences, prompt tokens, pairs, prompts
    line: Any  # by batch: time at zero context, time per context token, 1 if this line is exact
    floor: Callable[..., Any] | None  # floor of the step time, for the arguments of `step`


SHORTER = 0.98  # of a step's time, what one that holds more takes at least, under a law that rises
SIZES = 24  # batches at which that is looked at


@functools.cache
def rises(source: str, seats: int, budget: int, longest: int) -> bool:
    """Whether steps that hold more take longer, or hardly less.

    >>> [rises(f"def step(n, context, tokens, pairs, prompts): return {law}", 64, 512, 1000) for law in ("1 + n", "1 + 40 / n")]
    [True, False]
    """
    step, sizes = plain(source), np.unique(np.geomspace(1, seats, SIZES).astype(int))
    full = np.array([0, *sizes[::4]])  # longest requests whose cache is read
    prompts = [(0.0, 1.0), (1.0, 1.0), (budget / 2, min(2.0, seats)), (float(budget), float(seats))]
    try:
        times = np.array([[[step(float(size), float(longest * requests), tokens, tokens**2 / 2, count) for tokens, count in prompts]
                           for requests in full] for size in sizes])  # fmt: skip
    except (ArithmeticError, ValueError):  # a law of the user's own, which has no value there
        return False
    times[full[None, :] > sizes[:, None]] = 0.0  # more than such a batch can have read
    most = times
    for axis in range(times.ndim):
        most = np.maximum.accumulate(most, axis)
    return bool((times[times > 0.0] >= SHORTER * most[times > 0.0]).all())


def scaled(pace: StepPace, factor: float) -> StepPace:
    """The pace with every step time multiplied by `factor`, for machines measured slower than estimated."""
    source = pace.source.replace("    return ", f"    return {factor!r} * ")
    line = pace.line.reshape(-1, 3) * (factor, factor, 1.0)
    return replace(pace, source=source, step=plain(source), line=line.ravel())


def pace_of(coefficients: StepCoefficients, seats: int, longest: float) -> StepPace:
    """Step times of a compiled layout, for batches up to `seats` and contexts up to `longest`."""

    def law(batch: Number, context: Token, tokens: Token, pairs: Token, prompts: Number) -> Any:
        return step_s(with_prompts(coefficients, prompts, batch), batch, context, tokens, pairs)

    def floor(batch: Number, context: Token, tokens: Token, pairs: Token, prompts: Number) -> Any:
        return step_floor_s(with_prompts(coefficients, prompts, batch), batch, context, tokens, pairs)

    source = flattened(law, NAMES)
    return StepPace(source=source, step=plain(source), line=lines_of(law, seats, longest), floor=floor)


def pace_from(source: str, seats: int, longest: float) -> StepPace:
    """Step times from the source of `def step(batch, context, tokens, pairs, prompts)`, for tests with known answers."""
    step = plain(source)
    law = np.vectorize(step, otypes=[float])
    return StepPace(source=source, step=step, line=lines_of(law, seats, longest), floor=None)


def lines_of(law: Callable[..., Any], seats: int, longest: float) -> Any:
    """By batch: time at zero context, time per context token and 1 if linear, from the law at a few contexts."""
    batch = np.arange(1.0, seats + 2)
    times = [np.broadcast_to(np.asarray(law(batch, batch * longest * part, 0.0, 0.0, 1.0), float), batch.shape) for part in LOOKED_AT]
    slope = (times[-1] - times[0]) / (batch * longest)
    off = [np.abs(times[0] + slope * batch * longest * part - time) for part, time in zip(LOOKED_AT, times, strict=True)]
    straight = np.max(off, axis=0) <= STRAIGHT * times[0]
    return np.concatenate((np.zeros(3), np.stack((times[0], slope, straight), axis=1).ravel()))


CLOSE = 1e-9  # largest relative deviation of a piece from a parabola
FEW = 4  # most steps summed one by one


def step_at(state: State, rules: Rules, step: Step, running: int, context: float) -> float:
    """Time of a pure decode step."""
    at = 3 * running
    time = state.line[at] + state.line[at + 1] * context if state.line[at + 2] > 0.0 else step(float(running), context, 0.0, 0.0, 1.0)
    return departed(rules, time)


def departed(rules: Rules, time: float) -> float:
    """A step time rounded up to the step period, if steps have one."""
    if rules.departures > 0.0:
        return rules.departures * max(1.0, -((-time / rules.departures + 1e-9) // 1.0))
    return time


def steps_s(state: State, rules: Rules, step: Step, steps: int) -> float:
    """Time of the next `steps` decode steps."""
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
    """Time of `steps` steps on a parabola through the first, middle and last step; -1 if the quarter points deviate from it."""
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
    """Fewest steps, at most `most`, that take at least `duration_s`; the step in progress at an arrival is completed."""
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


Step = Callable[[float, float, float, float, float], float]  # batch, context, prompt tokens, pairs, prompts
INFIX = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/"}
CALLS = {"sqrt": "sqrt({0})", "ceil": "float(ceil({0}))", "floor": "float(floor({0}))", "negative": "-{0}", "log": "log({0})",
         "exp": "exp({0})"}  # fmt: skip
CHOICES = {"maximum": "{0} if {0} > {1} else {1}", "minimum": "{0} if {0} < {1} else {1}"}
NEUTRAL = {("add", 0.0), ("subtract", 0.0), ("multiply", 1.0), ("divide", 1.0), ("minimum", math.inf), ("maximum", -math.inf)}
COMMUTES = ("add", "multiply", "minimum", "maximum")


class SourceLines:
    """The lines written so far; a repeated operation is written once."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.known: dict[str, str] = {}

    def name(self, text: str) -> Symbol:
        """The symbol of an expression, with a new line if the expression is new."""
        if text not in self.known:
            self.known[text] = f"t{len(self.lines)}"
            self.lines.append(f"{self.known[text]} = {text}")
        return Symbol(self, self.known[text])


@operators(lambda name, operands: applied(name, operands))
class Symbol:
    """A number unknown until the flat function runs."""

    __array_priority__ = 1000

    def __init__(self, sheet: SourceLines, text: str) -> None:
        self.sheet, self.text = sheet, text

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        if method != "__call__" or keywords:
            raise TypeError(f"cannot flatten numpy.{ufunc.__name__}.{method}")
        return applied(ufunc.__name__, inputs)

    def __array_function__(self, function: Any, types: Any, inputs: Any, keywords: Any) -> Any:
        if function is np.where and not isinstance(inputs[0], Symbol):
            return inputs[1] if inputs[0] else inputs[2]
        raise TypeError(f"cannot flatten numpy.{function.__name__}")

    def __bool__(self) -> bool:
        raise TypeError("a law that branches on a number that varies cannot be flattened")


def applied(name: str, inputs: tuple[Any, ...]) -> Any:
    """The result of an operation on symbols and numbers, written down unless it is an identity."""
    sheet = next(value.sheet for value in inputs if isinstance(value, Symbol))
    values: list[Any] = [value if isinstance(value, Symbol) else float(value) for value in inputs]
    if len(values) == 2:
        first, second = values
        if not isinstance(second, Symbol) and (name, second) in NEUTRAL:
            return first
        if not isinstance(first, Symbol) and name in COMMUTES and (name, first) in NEUTRAL:
            return second
        if name == "multiply" and 0.0 in [value for value in values if not isinstance(value, Symbol)]:
            return 0.0
        if not isinstance(first, Symbol) and name == "divide" and first == 0.0:
            return 0.0
    texts = [value.text if isinstance(value, Symbol) else _number(value) for value in values]
    if name in INFIX:
        return sheet.name(f"{texts[0]} {INFIX[name]} {texts[1]}")
    if name == "power":
        return sheet.name(_power(texts, values))
    pattern = CALLS.get(name) or CHOICES.get(name)
    if pattern is None:
        raise TypeError(f"cannot flatten numpy.{name}")
    return sheet.name(pattern.format(*texts))


def _power(texts: list[str], values: list[Any]) -> str:
    """The text of a power, with square roots and small powers as faster operations."""
    exponent = values[1]
    known = {0.5: "sqrt({0})", 1.5: "{0} * sqrt({0})", 2.0: "{0} * {0}"}
    if not isinstance(exponent, Symbol) and exponent in known:
        return known[exponent].format(*texts)
    return f"{texts[0]} ** {texts[1]}"


def _number(value: float) -> str:
    if math.isinf(value):
        return "inf" if value > 0 else "(-inf)"
    return repr(value) if value >= 0 else f"({value!r})"


def flattened(law: Callable[..., Any], names: tuple[str, ...]) -> str:
    """The source of `def step(names)`: the arithmetic of `law` on these numbers.

    >>> print(flattened(lambda x, y: np.maximum(2 * x, 3.0) + y * 0 + 1, ("x", "y")))
    def step(x, y):
        t0 = 2.0 * x
        t1 = t0 if t0 > 3.0 else 3.0
        t2 = t1 + 1.0
        return t2
    <BLANKLINE>
    """
    sheet = SourceLines()
    result = law(*(Symbol(sheet, name) for name in names))
    last = result.text if isinstance(result, Symbol) else _number(float(result))
    body = "".join(f"    {line}\n" for line in [*_needed_lines(sheet.lines, last), f"return {last}"])
    return f"def step({', '.join(names)}):\n{body}"


def _needed_lines(lines: list[str], last: str) -> list[str]:
    """The lines on which the result depends."""
    needed, needed_lines = {last}, []
    for line in reversed(lines):
        name, _, text = line.partition(" = ")
        if name in needed:
            needed |= set(re.findall(r"t\d+", text))
            needed_lines.append(line)
    return needed_lines[::-1]


GLOBALS = {"sqrt": math.sqrt, "ceil": math.ceil, "floor": math.floor, "log": math.log, "exp": math.exp, "inf": math.inf}


def plain(source: str) -> Callable[..., float]:
    """The flat function as plain Python."""
    space = dict(GLOBALS)
    exec(compile(source, "<flattened law>", "exec"), space)
    return space["step"]

"""A law's arithmetic at fixed coefficients as a flat function of its varying inputs, cheap enough for a loop.

The law runs once on symbols: operations on symbols are written down, all others are evaluated. Nothing is derived again: the flat
function does the law's own operations in the law's own order, as machine code or plain Python.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from headway.core.trace import operators

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

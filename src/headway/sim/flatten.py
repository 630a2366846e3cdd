"""A law's arithmetic at fixed coefficients as a flat function of the numbers that vary: what a loop can afford to call.

The law is run once on symbols; every operation that touches one is written down, all others are done. Nothing is derived again:
the flat function does the law's own operations in the law's own order, and is compiled as it stands or run as plain Python.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np

Step = Callable[[float, float, float, float, float], float]  # batch, context, prompt tokens, pairs, ranks that the prompts keep busy
INFIX = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "true_divide": "/"}
CALLS = {"sqrt": "sqrt({0})", "ceil": "float(ceil({0}))", "floor": "float(floor({0}))", "negative": "-{0}", "log": "log({0})",
         "exp": "exp({0})"}  # fmt: skip
CHOICES = {"maximum": "{0} if {0} > {1} else {1}", "minimum": "{0} if {0} < {1} else {1}"}
NEUTRAL = {("add", 0.0), ("subtract", 0.0), ("multiply", 1.0), ("divide", 1.0), ("minimum", math.inf), ("maximum", -math.inf)}
COMMUTES = ("add", "multiply", "minimum", "maximum")


class Sheet:
    """The lines written so far; an operation done before is not written again."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.known: dict[str, str] = {}

    def name(self, text: str) -> Symbol:
        """The symbol of an expression."""
        if text not in self.known:
            self.known[text] = f"t{len(self.lines)}"
            self.lines.append(f"{self.known[text]} = {text}")
        return Symbol(self, self.known[text])


class Symbol:
    """A number that is not known yet."""

    __array_priority__ = 1000

    def __init__(self, sheet: Sheet, text: str) -> None:
        self.sheet, self.text = sheet, text

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **others: Any) -> Any:
        if method != "__call__" or others:
            raise TypeError(f"cannot flatten numpy.{ufunc.__name__}.{method}")
        return applied(self.sheet, ufunc.__name__, inputs)

    def __array_function__(self, function: Any, types: Any, inputs: Any, others: Any) -> Any:
        if function is np.where and not isinstance(inputs[0], Symbol):
            return inputs[1] if inputs[0] else inputs[2]
        raise TypeError(f"cannot flatten numpy.{function.__name__}")

    def __bool__(self) -> bool:
        raise TypeError("a law that branches on a number that varies cannot be flattened")

    def __add__(self, other: Any) -> Any:
        return applied(self.sheet, "add", (self, other))

    def __radd__(self, other: Any) -> Any:
        return applied(self.sheet, "add", (other, self))

    def __sub__(self, other: Any) -> Any:
        return applied(self.sheet, "subtract", (self, other))

    def __rsub__(self, other: Any) -> Any:
        return applied(self.sheet, "subtract", (other, self))

    def __mul__(self, other: Any) -> Any:
        return applied(self.sheet, "multiply", (self, other))

    def __rmul__(self, other: Any) -> Any:
        return applied(self.sheet, "multiply", (other, self))

    def __truediv__(self, other: Any) -> Any:
        return applied(self.sheet, "divide", (self, other))

    def __rtruediv__(self, other: Any) -> Any:
        return applied(self.sheet, "divide", (other, self))

    def __pow__(self, other: Any) -> Any:
        return applied(self.sheet, "power", (self, other))

    def __rpow__(self, other: Any) -> Any:
        return applied(self.sheet, "power", (other, self))

    def __neg__(self) -> Any:
        return applied(self.sheet, "negative", (self,))


def applied(sheet: Sheet, name: str, inputs: tuple[Any, ...]) -> Any:
    """One operation on symbols and numbers, written down unless it changes nothing."""
    values = [one if isinstance(one, Symbol) else float(one) for one in inputs]
    if len(values) == 2:
        left, right = values
        if not isinstance(right, Symbol) and (name, right) in NEUTRAL:
            return left
        if not isinstance(left, Symbol) and name in COMMUTES and (name, left) in NEUTRAL:
            return right
        if name == "multiply" and 0.0 in [one for one in values if not isinstance(one, Symbol)]:
            return 0.0
        if not isinstance(left, Symbol) and name == "divide" and left == 0.0:
            return 0.0
    texts = [one.text if isinstance(one, Symbol) else _number(one) for one in values]
    if name in INFIX:
        return sheet.name(f"{texts[0]} {INFIX[name]} {texts[1]}")
    if name == "power":
        return sheet.name(_power(texts, values))
    pattern = CALLS.get(name) or CHOICES.get(name)
    if pattern is None:
        raise TypeError(f"cannot flatten numpy.{name}")
    return sheet.name(pattern.format(*texts))


def _power(texts: list[str], values: list[Any]) -> str:
    """Square roots and their like are much quicker than a general power."""
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
    """The source of `def step(names)`: what `law` does to so many numbers.

    >>> print(flattened(lambda x, y: np.maximum(2 * x, 3.0) + y * 0 + 1, ("x", "y")))
    def step(x, y):
        t0 = 2.0 * x
        t1 = t0 if t0 > 3.0 else 3.0
        t2 = t1 + 1.0
        return t2
    <BLANKLINE>
    """
    sheet = Sheet()
    result = law(*(Symbol(sheet, name) for name in names))
    last = result.text if isinstance(result, Symbol) else _number(float(result))
    body = "".join(f"    {line}\n" for line in [*_used(sheet.lines, last), f"return {last}"])
    return f"def step({', '.join(names)}):\n{body}"


def _used(lines: list[str], last: str) -> list[str]:
    """The lines that the result needs."""
    needed, kept = {last}, []
    for line in reversed(lines):
        name, _, text = line.partition(" = ")
        if name in needed:
            needed |= set(re.findall(r"t\d+", text))
            kept.append(line)
    return kept[::-1]


GLOBALS = {"sqrt": math.sqrt, "ceil": math.ceil, "floor": math.floor, "log": math.log, "exp": math.exp, "inf": math.inf}


def plain(source: str) -> Callable[..., float]:
    """The flat function as plain Python."""
    space = dict(GLOBALS)
    exec(compile(source, "<flattened law>", "exec"), space)
    return space["step"]

"""A step law of the user's own, such as `5ms + 0.1ms*n`: a time in terms of what a step holds. Parsed here, never evaluated as code.

Sums, products, powers, brackets, max, min, ceil, floor, sqrt, log, exp; every time has its unit, so that a term without one is found.
What it may divide by is a number, or what is at least 1 in every step, so that a legal law has a value in each.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from headway.core import units
from headway.core.errors import BadValue, check_known
from headway.core.units import Number, Second, Token
from headway.simulation.step_time import NAMES, StepPace, flattened, lines_of, plain

FLAG = "--step"
WANTS = "a time of a step, such as 5ms + 0.1ms*n"
MEANINGS = {
    "n": "requests in the step",
    "decodes": "those of them that decode",
    "prompts": "those whose prompt it computes",
    "tokens": "tokens that it computes, one of each decode",
    "prompt_tokens": "tokens of prompts among them",
    "context": "tokens of KV cache that its decodes read, of all of them together",
}
DIVISORS = ("n", "tokens")  # at least 1 in every step
CHOICES = {"max": np.maximum, "min": np.minimum}
FUNCTIONS = {"ceil": np.ceil, "floor": np.floor, "sqrt": np.sqrt, "log": np.log, "exp": np.exp}
_NUMBER = r"(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(?P<unit>[µa-zA-Z]*)"
_TOKEN = re.compile(rf"\s*(?:{_NUMBER}|(?P<word>[A-Za-z_]\w*)|(?P<mark>\*\*|[-+*/(),^]))")
DEEPEST, LONGEST = 50, 1000  # nested brackets; tokens


@dataclasses.dataclass(frozen=True, slots=True)
class Term:
    """A part of a law: its value, the power of seconds in it, and whether it is the same in every step."""

    value: Callable[[Mapping[str, Any]], Any]
    seconds: float
    is_constant: bool
    name: str = ""  # where it is nothing but a name


@dataclasses.dataclass(frozen=True, slots=True)
class StepLaw:
    """A parsed step law."""

    text: str
    part: Term

    def time_s(self, batch: Number, context: Token, tokens: Token, pairs: Token, prompts: Number) -> Second:
        """Seconds of a step, with the arguments of the loop's `step`."""
        computed = np.minimum(prompts, tokens)  # the loop counts one prompt of a step that computes none
        names = {"n": batch + computed, "decodes": batch, "prompts": computed, "context": context}
        return self.part.value(names | {"tokens": batch + tokens, "prompt_tokens": tokens})

    @np.errstate(all="ignore")  # what is no time is refused by name
    def pace(self, seats: int, budget: int, longest: float) -> StepPace:
        """Step times for the loop; BadValue where the law gives no time above 0 for a step of those that `_samples` draws."""
        source = flattened(lambda *values: self.time_s(*values), NAMES)
        step = plain(source)
        for batch, context, tokens, prompts in _samples(seats, budget, longest):
            try:
                time = step(float(batch), float(context), float(tokens), 0.0, float(max(prompts, 1)))
            except (ArithmeticError, ValueError):
                time = np.nan
            if not 0.0 < time < np.inf:
                result = f"{time:.4g} s" if np.isfinite(time) else "no number"
                held_words = f"{batch} decodes, {prompts} prompts of {tokens} tokens in all, {context:g} of context"
                raise BadValue(FLAG, self.text, f"a time above 0 of every step; of {held_words} it is {result}")
        return StepPace(source=source, step=step, line=lines_of(self.time_s, seats, longest), floor=None)

    def words(self, seats: int) -> str:
        """What it says, in the words of its names, and its value at both ends of the batch."""
        names = [f"{name}: {meaning}" for name, meaning in MEANINGS.items() if re.search(rf"(?<![A-Za-z_]){name}\b", self.text)]
        ends = " .. ".join(units.show(float(self.time_s(batch, 0.0, 0.0, 0.0, 1.0)), "s", 4) for batch in (1.0, float(seats)))
        sizes = f"of one decode .. of {seats} without context"
        return "; ".join((f"a step takes {self.text}: {ends} {sizes}", *names))


def _samples(seats: int, budget: int, longest: float) -> Any:
    """Steps in which a law must give a time: every batch of decodes, and prompts alone and beside decodes."""
    for batch in range(1, seats + 1):
        yield batch, batch, 0, 0
        yield batch, batch * longest, 0, 0
    for prompts in sorted({1, 2, seats // 2, seats}):
        if 1 <= prompts <= seats:
            for tokens in sorted({prompts, max(prompts, budget // 2), max(prompts, budget)}):
                yield 0, 0, tokens, prompts
                yield seats - prompts, (seats - prompts) * longest, tokens, prompts


def parse(text: str) -> StepLaw:
    """The law in `text`.

    >>> float(parse("5ms + 0.1ms * n").time_s(10.0, 0.0, 0.0, 0.0, 1.0))
    0.006
    >>> round(float(parse("max(2ms, 10us*tokens)").time_s(0.0, 0.0, 300.0, 0.0, 2.0)), 9)
    0.003
    """
    tokens: list[re.Match[str]] = []
    position, stripped = 0, text.strip()
    while position < len(stripped):
        match = _TOKEN.match(stripped, position)
        if not match or len(tokens) > LONGEST:
            raise BadValue(FLAG, stripped[position:][:40], WANTS)
        tokens.append(match)
        position = match.end()
    parser = _LawReader(tokens)
    part = parser.total()
    if parser.peek():
        raise BadValue(FLAG, parser.peek(), "a sign between two terms, such as 0.1ms * n")
    if part.seconds != 1:
        raise BadValue(FLAG, text, f"{WANTS}; this has no unit of time" if part.seconds == 0 else f"{WANTS}; this is no time")
    return StepLaw(stripped, part)


class _LawReader:
    """Recursive descent over the tokens: sum, product, power, atom."""

    def __init__(self, tokens: list[re.Match[str]]) -> None:
        self.tokens, self.at, self.depth = tokens, 0, 0

    def peek(self) -> str:
        return self.tokens[self.at].group().strip() if self.at < len(self.tokens) else ""

    def takes(self, *marks: str) -> str:
        """The next token if it is one of these, else nothing."""
        token = self.peek() if self.peek() in marks else ""
        self.at += bool(token)
        return token

    def total(self) -> Term:
        self.depth += 1
        if self.depth > DEEPEST:
            raise BadValue(FLAG, self.peek(), f"at most {DEEPEST} levels of brackets")
        part = self.product()
        while sign := self.takes("+", "-"):
            part = _joined(sign, part, self.product(), np.add if sign == "+" else np.subtract)
        self.depth -= 1
        return part

    def product(self) -> Term:
        part = self.signed()
        while sign := self.takes("*", "/"):
            factor = self.signed()
            if sign == "/" and not factor.is_constant and factor.name not in DIVISORS:
                raise BadValue(FLAG, "/", f"a division by a number, or by {' or '.join(DIVISORS)}, which no step is without")
            part = _times(part, factor, 1 if sign == "*" else -1)
        return part

    def signed(self) -> Term:
        negative = False
        while sign := self.takes("-", "+"):
            negative ^= sign == "-"
        part = self.power()
        return _mapped(part, lambda value: 0.0 - value) if negative else part

    def power(self) -> Term:
        part = self.atom()
        if not self.takes("**", "^"):
            return part
        exponent = self.signed()
        try:
            number = float(exponent.value({})) if exponent.is_constant and exponent.seconds == 0 else 0.0
        except OverflowError:
            raise BadValue(FLAG, "**", "a power that is a usual number, such as n**2") from None
        if number <= 0.0 or (part.seconds and part.is_constant is False):
            raise BadValue(FLAG, "**", "a power above 0 of a count, such as n**2")
        return dataclasses.replace(_mapped(part, lambda value: value**number), seconds=part.seconds * number)

    def atom(self) -> Term:
        if self.at >= len(self.tokens):
            raise BadValue(FLAG, "its end", WANTS)
        token = self.tokens[self.at]
        self.at += 1
        if token["number"]:
            return _number(token)
        if token["word"]:
            return self.called(token["word"]) if self.peek() == "(" else _variable(token["word"])
        if token["mark"] == "(":
            part = self.total()
            self.closed()
            return dataclasses.replace(part, name="")
        raise BadValue(FLAG, token.group().strip(), WANTS)

    def closed(self) -> None:
        if not self.takes(")"):
            raise BadValue(FLAG, self.peek() or "its end", "a closing bracket")

    def called(self, word: str) -> Term:
        check_known("function of a step law", word, (*CHOICES, *FUNCTIONS))
        self.takes("(")
        parts = [self.total()]
        while self.takes(","):
            parts.append(self.total())
        self.closed()
        if word in CHOICES:
            if len(parts) < 2:
                raise BadValue(FLAG, word, f"at least two values, such as {word}(2ms, 0.1ms*n)")
            part = parts[0]
            for term in parts[1:]:
                part = _joined(word, part, term, CHOICES[word])
            return part
        if len(parts) != 1 or parts[0].seconds:
            raise BadValue(FLAG, word, f"one count or number, such as {word}(n/8)")
        return _mapped(parts[0], FUNCTIONS[word])


def _number(token: re.Match[str]) -> Term:
    """A number; one with a unit is a time, but for the prefixes of counts, such as 2k."""
    text, unit = token["number"], token["unit"]
    if unit in MEANINGS:
        raise BadValue(FLAG, text + unit, f"a sign between a number and a name, such as {text}*{unit}")
    if unit in ("", "k", "M", "Ki"):
        value, seconds = float(units.parse(text + unit, "", FLAG)), 0.0
    else:
        value, seconds = float(units.parse(text + unit, "s", FLAG)), 1.0
    return Term(lambda _: value, seconds, True)


def _variable(word: str) -> Term:
    check_known(f"name in {FLAG}", word, MEANINGS)
    return Term(lambda names: names[word], 0.0, False, word)


def _joined(sign: str, first: Term, second: Term, join: Callable[[Any, Any], Any]) -> Term:
    if first.seconds != second.seconds:
        raise BadValue(FLAG, sign, "terms that are all times, or all numbers: one lacks its unit, as in 5ms + 0.1ms*n")
    return Term(lambda names: join(first.value(names), second.value(names)), first.seconds, first.is_constant and second.is_constant)


def _times(first: Term, second: Term, power: int) -> Term:
    def value(names: Mapping[str, Any]) -> Any:
        left_side, right_side = first.value(names), second.value(names)
        return left_side * right_side if power > 0 else left_side / right_side

    if power < 0 and second.is_constant and second.value({}) == 0.0:
        raise BadValue(FLAG, "/ 0", "a division by a number above 0")
    return Term(value, first.seconds + power * second.seconds, first.is_constant and second.is_constant)


def _mapped(part: Term, change: Callable[[Any], Any]) -> Term:
    return Term(lambda names: change(part.value(names)), part.seconds, part.is_constant)

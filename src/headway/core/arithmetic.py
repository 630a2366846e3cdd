"""Arithmetic in a value: `32*1.2TB/s`, `1/3`, `4*4096*4096`, `8*h100.hbm`, `(3+4)ms`. Parsed here, never evaluated as code.

    sum     = product {("+" | "-") product}
    product = signed {("*" | "/") signed | "/" unit}   from left to right, so that a rate suffix divides all of its product: 10/2/s is 5/s
    signed  = {"+" | "-"} power
    power   = atom [("**" | "^") signed]               of the whole quantity before it: 2k^2 is 4M
    atom    = ["$"] number [unit] | NAME.FACT | "(" sum ")" [unit]

A sum adds quantities of one unit. A minus between two characters of a name belongs to the name: `gb200-nvl72.chips - 8` has spaces. Lists
and ranges are read first (core/schema.py), so that in `a..b*k` the `k` is the factor of the range.
"""

from __future__ import annotations

import decimal
import functools
import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from headway.core import spellings
from headway.core.errors import BadValue

LONGEST, DEEPEST, MOST_POWER = 200, 20, 64  # characters; nested brackets; a power
HUGE = 1e100  # no number on the way may be beyond it, or below its inverse, but 0
EXACT = decimal.Context(prec=40, traps=[decimal.InvalidOperation, decimal.DivisionByZero, decimal.Overflow])  # of decimal numbers
FACT = r"(?=[\d._-]*[A-Za-z][\w.-]*\.[a-z])[A-Za-z0-9](?:[\w.-]*\w)?\.[a-z][a-z_0-9]*(?![\w.])"
NUMBER = r"\$?\s*(?:\d+(?:_\d+)*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
UNIT = r"m\^?2(?!\w)|[$]?[A-Za-zµ%]+[$]?"
_TOKEN = re.compile(
    rf"\s*(?:(?P<fact>{FACT})|(?P<number>{NUMBER})\s*(?P<unit>{UNIT})?|(?P<word>{UNIT})|(?P<mark>\*\*|[-+*/^()]))", re.ASCII
)
_FACT = re.compile(FACT, re.ASCII)
_MARK = re.compile(r"[-+*/^(]")
MULTIPLES = {"Mtok": ("token", 1e6), "ms": ("s", 1e-3)}  # units that are another one so many times
MISMATCH = 3


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number, and the powers of its units."""

    number: Any  # a Decimal, or a number with its origin
    powers: dict[str, int]


COUNT = Quantity(Decimal(1), {})  # what a number without a unit counts
Fact = Callable[[str], Quantity]
Leaf = Callable[[Decimal, str], Any]  # number in SI and unit -> the number as it is reckoned with


class Unread(Exception):
    """A text that is no arithmetic, or arithmetic without a value, with the reason where there is one to name."""


def is_arithmetic(text: str) -> bool:
    """Whether a text has an operation or names a fact, so that it is no plain quantity."""
    return bool(_MARK.search(text) or _FACT.search(text))


def names_fact(text: str, alone: bool = False) -> bool:
    """Whether a text names a fact, or is nothing else.

    >>> names_fact("8*h100.hbm"), names_fact("8*h100.hbm", alone=True), names_fact("1.5e3*2.k")
    (True, False, False)
    """
    return bool(_FACT.fullmatch(text.strip()) if alone else _FACT.search(text))


def multiple(unit: str) -> float:
    """How many times its SI unit a unit is."""
    scale = 1.0
    for part, power in spellings.powers(unit).items():
        scale *= MULTIPLES.get(part, ("", 1.0))[1] ** power
    return scale


def read(text: str, unit: str, field: str, fact: Fact, leaf: Leaf = lambda number, _: number) -> Quantity:
    """The quantity that a text makes, in SI, which must be one of `unit` (`*`: any) or a plain number.

    A word with two meanings has the one that makes `unit`: FLOPs is a count or a rate; B a byte, or of counts 1e9.
    """
    wants = spellings.sought(unit, text)
    try:
        with decimal.localcontext(EXACT):
            best = min(_meant(list(_tokens(text)), unit, fact, leaf), key=lambda quantity: _distance(quantity.powers, unit))
        if _distance(best.powers, unit) == MISMATCH:
            hint = ", and what is divided by a rate has that in brackets" if text.count("/") > 1 else ""
            raise Unread(f"this is in {spellings.of_powers(best.powers) or 'no unit'}{hint}")
        return best
    except Unread as error:
        raise BadValue(field, text, f"{wants}; {error}" if str(error) else wants) from None
    except ArithmeticError:
        raise BadValue(field, text, f"{wants}; this has no value") from None


def _meant(tokens: list[re.Match[str]], unit: str, fact: Fact, leaf: Leaf) -> list[Quantity]:
    """The quantity in each meaning of its words in which it has one."""
    meanings = {word: _meanings(word, unit) for token in tokens if (word := _unit_of(token))}
    quantities, failures = [], [Unread()]
    for choice in itertools.product(*meanings.values()):
        try:
            quantities.append(_Reader(tokens, dict(zip(meanings, choice, strict=True)), fact, leaf).expression())
        except Unread as error:
            failures.append(error)
    if not quantities:
        raise failures[-1]
    return quantities


def _distance(powers: dict[str, int], unit: str) -> int:
    """How far units are from those of `unit`: equal, without the word for tokens, without any, or others."""
    sought = {MULTIPLES.get(part, (part,))[0]: power for part, power in spellings.powers(unit).items()}
    without_tokens = {part: power for part, power in sought.items() if (part, power) != ("token", 1)}
    return 0 if unit == "*" or powers == sought else 1 if powers == without_tokens else 2 if not powers else MISMATCH


def _tokens(text: str) -> Iterator[re.Match[str]]:
    if len(text) > LONGEST:
        raise Unread(f"at most {LONGEST} characters")
    place, stripped = 0, text.rstrip()
    while place < len(stripped):
        token = _TOKEN.match(stripped, place)
        if not token:
            raise Unread
        yield token
        place = token.end()


def _unit_of(token: re.Match[str]) -> str:
    """The word of a unit in a token: of `$3`, the dollar."""
    is_price = (token["number"] or "").startswith("$")
    return ("$" if is_price else "") + (token["unit"] or token["word"] or "")


@functools.cache
def _words() -> dict[str, dict[str, Quantity]]:
    """Each word of a unit -> what it means, by unit; a prefix that means a count means nothing else."""
    words = dict[str, dict[str, Quantity]]()
    times = {**spellings.TIME, **spellings.PER, "month": spellings.MONTH}
    for unit, factors in {**spellings.SPELLINGS, "s": times, **spellings.AS_UNIT, "m": spellings.LENGTH}.items():
        for word, factor in factors.items() if unit != "ms" else ():
            number, known = Decimal(repr(factor)), words.get(word, {}).get("")
            if word and "/" not in word and (known is None or known.number != number):
                words.setdefault(word, {})[unit] = Quantity(number, spellings.powers(unit))
    return words


def _meanings(word: str, unit: str) -> tuple[Quantity, ...]:
    """What a word may mean in a quantity of `unit`."""
    if word not in _words():
        raise Unread
    of_counts = unit in ("", "*", "flop") or "token" in unit
    return tuple(meaning for of, meaning in _words()[word].items() if of or word != "B" or of_counts)


class _Reader:
    """Recursive descent over the tokens, with one meaning of each word."""

    def __init__(self, tokens: list[re.Match[str]], meanings: dict[str, Quantity], fact: Fact, leaf: Leaf) -> None:
        self.tokens, self.meanings, self.fact, self.leaf = tokens, meanings, fact, leaf
        self.place, self.depth = 0, 0

    def takes(self, *marks: str) -> str:
        """The next token if it is one of these marks, else nothing."""
        mark = self.tokens[self.place]["mark"] if self.place < len(self.tokens) else None
        self.place += mark in marks
        return mark if mark in marks else ""

    def takes_unit(self) -> Quantity | None:
        """The next token if it is a unit."""
        word = self.tokens[self.place]["word"] if self.place < len(self.tokens) else None
        self.place += bool(word)
        return self.quantity(Decimal(1), word) if word else None

    def quantity(self, number: Decimal, word: str) -> Quantity:
        """A number of a unit, which is one leaf."""
        meaning = self.meanings.get(word, COUNT)
        return _bounded(self.leaf(number * meaning.number, spellings.of_powers(meaning.powers)), meaning.powers)

    def expression(self) -> Quantity:
        quantity = self.sum()
        if self.place < len(self.tokens):
            raise Unread
        return quantity

    def sum(self) -> Quantity:
        self.depth += 1
        if self.depth > DEEPEST:
            raise Unread(f"at most {DEEPEST} levels of brackets")
        quantity = self.product()
        while sign := self.takes("+", "-"):
            term = self.product()
            if quantity.powers != term.powers:
                names = (spellings.of_powers(part.powers) or "a plain number" for part in (quantity, term))
                raise Unread(f"{' and '.join(names)} cannot be added")
            quantity = _bounded(quantity.number + term.number if sign == "+" else quantity.number - term.number, term.powers)
        self.depth -= 1
        return quantity

    def product(self) -> Quantity:
        quantity = self.signed()
        while sign := self.takes("*", "/"):
            quantity = _times(quantity, (self.takes_unit() if sign == "/" else None) or self.signed(), -1 if sign == "/" else 1)
        return quantity

    def signed(self) -> Quantity:
        is_negative = False
        while sign := self.takes("-", "+"):
            is_negative ^= sign == "-"
        quantity = self.power()
        return Quantity(-quantity.number, quantity.powers) if is_negative else quantity

    def power(self) -> Quantity:
        quantity = self.atom()
        if not self.takes("**", "^"):
            return quantity
        exponent = self.signed()
        power = float(exponent.number)
        powers = {part: times * power for part, times in quantity.powers.items() if power}
        if exponent.powers or abs(power) > MOST_POWER or any(times % 1 for times in powers.values()):
            raise Unread(f"a power is a plain number up to {MOST_POWER}")
        return _bounded(quantity.number**exponent.number, {part: int(times) for part, times in powers.items()})

    def atom(self) -> Quantity:
        if self.takes("("):
            quantity = self.sum()
            if not self.takes(")"):
                raise Unread("a bracket is open")
            unit = self.takes_unit()
            return quantity if unit is None else _times(quantity, unit, 1)
        token = self.tokens[self.place] if self.place < len(self.tokens) else None
        self.place += 1
        if token and token["fact"]:
            return self.fact(token["fact"])
        if token and token["number"]:
            return self.quantity(Decimal(token["number"].lstrip("$ ")), _unit_of(token))
        raise Unread


def _times(first: Quantity, second: Quantity, way: int) -> Quantity:
    """A product, or with `way` -1 a quotient."""
    number = first.number * second.number if way > 0 else first.number / second.number
    return _bounded(number, spellings.product(first.powers, second.powers, way))


def _bounded(number: Any, powers: dict[str, int]) -> Quantity:
    if isinstance(number, complex) or (number and not 1 / HUGE <= abs(float(number)) <= HUGE):
        raise Unread("no number on the way may be beyond 1e-100 .. 1e100")
    return Quantity(number, powers)

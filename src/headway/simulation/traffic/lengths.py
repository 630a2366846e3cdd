"""Length distributions of prompts and answers in whole tokens, and their text forms."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from headway.core import units
from headway.core.errors import BadValue
from headway.simulation.traffic.read import read_trace
from headway.simulation.traffic.requests import LONGEST, Ints

WANTS = "tokens such as 2k, lognormal:MEAN,SIGMA, uniform:LEAST,MOST or trace:FILE"
WIDEST = 5.0  # largest sigma of a lognormal; beyond, requests too rare for any run dominate the mean


class Lengths(Protocol):
    """A distribution of lengths in tokens."""

    def draw(self, rng: np.random.Generator, count: int) -> Ints:
        """`count` lengths in tokens, each at least 1."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """A constant length."""

    tokens: int

    def draw(self, rng: np.random.Generator, count: int) -> Ints:
        """`count` lengths in tokens, each at least 1."""
        return np.full(count, self.tokens, np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lognormal:
    """Log-normal lengths with mean `mean` (not median) and log standard deviation `sigma`; the median is mean * exp(-sigma^2 / 2)."""

    mean: float
    sigma: float

    def draw(self, rng: np.random.Generator, count: int) -> Ints:
        """`count` lengths, rounded to whole tokens, each at least 1."""
        samples = rng.lognormal(math.log(self.mean) - self.sigma**2 / 2, self.sigma, count)
        return np.clip(np.rint(samples, out=samples), 1, LONGEST, out=samples).astype(np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Uniform:
    """Uniform whole numbers from `least` to `most`, both included."""

    least: int
    most: int

    def draw(self, rng: np.random.Generator, count: int) -> Ints:
        """`count` lengths in tokens, each at least 1."""
        return rng.integers(self.least, self.most, count, endpoint=True)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Recorded:
    """Lengths drawn uniformly from a trace, with replacement."""

    source: str  # lengths of one source are drawn in pairs, since prompts and answers depend on each other
    tokens: Ints

    def draw(self, rng: np.random.Generator, count: int) -> Ints:
        """`count` lengths in tokens, each at least 1."""
        return self.tokens[rng.integers(0, len(self.tokens), count)]


def parse_lengths(text: str, field: str, answers: bool = False) -> Lengths:
    """The length distribution in a text; `answers` takes a trace's output lengths instead of its prompt lengths.

    >>> parse_lengths("lognormal:2k,1.2", "--prompt")
    Lognormal(mean=2000.0, sigma=1.2)
    """
    name, colon, rest = text.partition(":")
    name = name.strip().lower()
    if not colon:
        return Constant(tokens=_whole_tokens(text, field))
    if name == "trace":
        traffic = read_trace(rest.strip()).traffic
        return Recorded(source=rest.strip(), tokens=traffic.output if answers else traffic.prompt)
    numbers = rest.split(",")
    if name == "constant" and len(numbers) == 1:
        return Constant(tokens=_whole_tokens(rest, field))
    if name == "lognormal" and len(numbers) == 2:
        return Lognormal(mean=_mean(numbers[0], field), sigma=_sigma(numbers[1], field))
    if name == "uniform" and len(numbers) == 2:
        least, most = (_whole_tokens(number, field) for number in numbers)
        if least > most:
            raise BadValue(field, text, "the least first: uniform:LEAST,MOST")
        return Uniform(least=least, most=most)
    raise BadValue(field, text, WANTS)


def _whole_tokens(text: str, field: str) -> int:
    value = units.parse(text, "token", field)
    if value != math.floor(value) or not 1 <= value <= LONGEST:
        raise BadValue(field, text, f"whole tokens from 1 to {LONGEST}; or {WANTS}")
    return int(value)


def _mean(text: str, field: str) -> float:
    value = units.parse(text, "token", field)
    if not 1 <= value <= LONGEST:
        raise BadValue(field, text, f"a mean of 1 to {LONGEST} tokens")
    return value


def _sigma(text: str, field: str) -> float:
    value = units.parse(text, "", field)
    if not 0 <= value <= WIDEST:
        raise BadValue(field, text, f"a standard deviation of the logarithm from 0 to {WIDEST:g}")
    return value

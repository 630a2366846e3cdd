"""Distributions that traffic is drawn from, and their text forms: arrival processes with a mean rate, lengths in whole tokens."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from headway.core import units
from headway.core.errors import BadValue
from headway.simulation.traffic.read import read_trace
from headway.simulation.traffic.requests import LONGEST, Floats, Ints

SLOWEST, FASTEST = 1e-9, 1e12  # requests per second
DAY = 86400.0
LEAST_CV, MOST_CV = 0.01, 100.0


class Arrivals(Protocol):
    """An arrival process."""

    def draw(self, rng: np.random.Generator, count: int) -> Floats:
        """`count` arrival times in seconds, ascending."""
        ...

    def pieces(self, rng: np.random.Generator, sizes: Iterable[int]) -> Iterator[Floats]:
        """Arrival times in seconds, ascending, piece by piece of these sizes; the same however they are cut."""
        ...

    def of_rate(self, rate: float) -> Arrivals:
        """The process at another mean rate."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Poisson:
    """Poisson arrivals, as from many independent users."""

    rate: float

    def draw(self, rng: np.random.Generator, count: int) -> Floats:
        """`count` arrival times in seconds, ascending."""
        return next(self.pieces(rng, (count,)))

    def pieces(self, rng: np.random.Generator, sizes: Iterable[int]) -> Iterator[Floats]:
        """Arrival times in seconds, ascending, piece by piece of these sizes; the same however they are cut."""
        return _summed(rng.standard_exponential, self.rate, sizes)

    def of_rate(self, rate: float) -> Poisson:
        """The process at another mean rate."""
        return Poisson(rate=rate)


@dataclass(frozen=True, slots=True, kw_only=True)
class Even:
    """Arrivals at equal gaps."""

    rate: float

    def draw(self, rng: np.random.Generator, count: int) -> Floats:
        """`count` arrival times in seconds, ascending."""
        return next(self.pieces(rng, (count,)))

    def pieces(self, rng: np.random.Generator, sizes: Iterable[int]) -> Iterator[Floats]:
        """Arrival times in seconds, ascending, piece by piece of these sizes; the same however they are cut."""
        start = 0
        for size in sizes:
            yield np.arange(start, start + size) / self.rate
            start += size

    def of_rate(self, rate: float) -> Even:
        """The process at another mean rate."""
        return Even(rate=rate)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bursty:
    """Arrivals with gamma-distributed gaps of coefficient of variation `cv`: 1 is Poisson, above it bursty, below it more even."""

    rate: float
    cv: float

    def draw(self, rng: np.random.Generator, count: int) -> Floats:
        """`count` arrival times in seconds, ascending."""
        return next(self.pieces(rng, (count,)))

    def pieces(self, rng: np.random.Generator, sizes: Iterable[int]) -> Iterator[Floats]:
        """Arrival times in seconds, ascending, piece by piece of these sizes; the same however they are cut."""
        shape = self.cv**-2
        return _summed(lambda count: rng.standard_gamma(shape, count), self.rate * shape, sizes)

    def of_rate(self, rate: float) -> Bursty:
        """The process at another mean rate."""
        return Bursty(rate=rate, cv=self.cv)


@dataclass(frozen=True, slots=True, kw_only=True)
class Diurnal:
    """Poisson arrivals at a rate that follows `levels` over equal parts of a repeating period; `rate` is the mean."""

    rate: float
    period: float
    levels: tuple[float, ...]  # relative to one another

    def draw(self, rng: np.random.Generator, count: int) -> Floats:
        """`count` arrival times in seconds, ascending."""
        return next(self.pieces(rng, (count,)))

    def pieces(self, rng: np.random.Generator, sizes: Iterable[int]) -> Iterator[Floats]:
        """Arrival times in seconds, ascending, piece by piece of these sizes; the same however they are cut."""
        level = np.array(self.levels)
        expected_arrivals = np.concatenate([[0.0], np.cumsum(level / level.sum())]) * (
            self.rate * self.period
        )  # expected arrivals up to each edge
        edges = np.linspace(0.0, self.period, len(level) + 1)
        last = 0.0
        for sums in _summed(rng.standard_exponential, 1.0, sizes):
            cycles, within = np.divmod(sums, expected_arrivals[-1])
            times = np.maximum.accumulate(np.maximum(cycles * self.period + np.interp(within, expected_arrivals, edges), last))
            last = float(times[-1]) if len(times) else last
            yield times

    def of_rate(self, rate: float) -> Diurnal:
        """The process at another mean rate."""
        return Diurnal(rate=rate, period=self.period, levels=self.levels)


def parse_arrivals(text: str, rate: float, field: str = "--arrivals") -> Arrivals:
    """The arrival process in a text, at a mean rate in requests per second.

    >>> parse_arrivals("diurnal:24h,1,2,4,2", 40.0)
    Diurnal(rate=40.0, period=86400.0, levels=(1.0, 2.0, 4.0, 2.0))
    """
    if not SLOWEST <= rate <= FASTEST:
        raise BadValue("--rate", rate, f"{SLOWEST:g} to {FASTEST:g} requests per second")
    name, colon, rest = text.partition(":")
    name = name.strip().lower()
    if name in ("poisson", "even") and not colon:
        return (Poisson if name == "poisson" else Even)(rate=rate)
    if name == "bursty" and colon:
        cv = units.parse(rest, "", field)
        if not LEAST_CV <= cv <= MOST_CV:
            raise BadValue(field, text, f"a coefficient of variation from {LEAST_CV:g} to {MOST_CV:g}")
        return Bursty(rate=rate, cv=cv)
    if name == "diurnal" and colon:
        period, *levels = rest.split(",")
        period_s, shares = units.parse(period, "s", field), tuple(units.parse(level, "", field) for level in levels)
        if not (0 < period_s <= 1000 * DAY):
            raise BadValue(field, text, "a period such as 24h first: diurnal:PERIOD,LEVEL,LEVEL,...")
        if not shares or min(shares) < 0 or not 0 < math.fsum(shares) < math.inf:
            raise BadValue(field, text, "levels of 0 or more, not all 0: diurnal:PERIOD,LEVEL,LEVEL,...")
        return Diurnal(rate=rate, period=period_s, levels=shares)
    raise BadValue(field, text, "poisson, even, bursty:CV or diurnal:PERIOD,LEVEL,LEVEL,...")


def _summed(draw: Callable[[int], Floats], rate: float, sizes: Iterable[int]) -> Iterator[Floats]:
    """Arrival times at a rate from gaps of mean 1, piece by piece."""
    last = 0.0
    for size in sizes:
        gaps = draw(size)
        gaps /= rate
        gaps[:1] += last
        times = np.cumsum(gaps, out=gaps)
        last = float(times[-1]) if size else last
        yield times


LENGTHS = "tokens such as 2k, lognormal:MEAN,SIGMA, uniform:LEAST,MOST or trace:FILE"
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
        mean = units.parse(numbers[0], "token", field)
        if not 1 <= mean <= LONGEST:
            raise BadValue(field, numbers[0], f"a mean of 1 to {LONGEST} tokens")
        sigma = units.parse(numbers[1], "", field)
        if not 0 <= sigma <= WIDEST:
            raise BadValue(field, numbers[1], f"a standard deviation of the logarithm from 0 to {WIDEST:g}")
        return Lognormal(mean=mean, sigma=sigma)
    if name == "uniform" and len(numbers) == 2:
        least, most = (_whole_tokens(number, field) for number in numbers)
        if least > most:
            raise BadValue(field, text, "the least first: uniform:LEAST,MOST")
        return Uniform(least=least, most=most)
    raise BadValue(field, text, LENGTHS)


def _whole_tokens(text: str, field: str) -> int:
    value = units.parse(text, "token", field)
    if value != math.floor(value) or not 1 <= value <= LONGEST:
        raise BadValue(field, text, f"whole tokens from 1 to {LONGEST}; or {LENGTHS}")
    return int(value)

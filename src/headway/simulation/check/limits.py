"""Limits on latencies under a load: which latency, which statistic of it, and the most that it may be.

A request's own limit (goodput) is another thing: here a mean or a percentile over all requests is limited.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import permutations
from typing import Annotated, Any

from headway.core import schema
from headway.core.errors import BadValue, IllegalCombination
from headway.core.units import show

QUANTITIES = ("ttft", "tpot", "itl", "e2e")
MEAN = "mean"
STATISTICS = (MEAN, "p50", "p90", "p95", "p99")
NAMES = {
    "ttft": "time to first token",
    "tpot": "time per output token",
    "itl": "time between two tokens of a request",
    "e2e": "time from sending a request to its last token",
}
BETWEEN_TOKENS = ("tpot", "itl")  # latencies that an answer of one token has not
SLOWEST_TOKEN_S = 10.0  # a limit above it is a slip of the unit
LEAST_BEYOND = 5  # requests beyond a percentile, so that it is more than a largest value


def _most(quantity: str, statistic: str) -> schema.Field:
    """Declaration of one limit."""
    words = "mean" if statistic == MEAN else f"percentile {statistic[1:]}"
    return schema.Field("s", help=f"{NAMES[quantity]} at most: {words} over all requests at the load")


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyLimits:
    """Limits on means and percentiles of latencies under a load, s; None is no limit."""

    ttft: Annotated[Any, _most("ttft", MEAN)] = None
    ttft_p50: Annotated[Any, _most("ttft", "p50")] = None
    ttft_p90: Annotated[Any, _most("ttft", "p90")] = None
    ttft_p95: Annotated[Any, _most("ttft", "p95")] = None
    ttft_p99: Annotated[Any, _most("ttft", "p99")] = None
    tpot: Annotated[Any, _most("tpot", MEAN)] = None
    tpot_p50: Annotated[Any, _most("tpot", "p50")] = None
    tpot_p90: Annotated[Any, _most("tpot", "p90")] = None
    tpot_p95: Annotated[Any, _most("tpot", "p95")] = None
    tpot_p99: Annotated[Any, _most("tpot", "p99")] = None
    itl: Annotated[Any, _most("itl", MEAN)] = None
    itl_p50: Annotated[Any, _most("itl", "p50")] = None
    itl_p90: Annotated[Any, _most("itl", "p90")] = None
    itl_p95: Annotated[Any, _most("itl", "p95")] = None
    itl_p99: Annotated[Any, _most("itl", "p99")] = None
    e2e: Annotated[Any, _most("e2e", MEAN)] = None
    e2e_p50: Annotated[Any, _most("e2e", "p50")] = None
    e2e_p90: Annotated[Any, _most("e2e", "p90")] = None
    e2e_p95: Annotated[Any, _most("e2e", "p95")] = None
    e2e_p99: Annotated[Any, _most("e2e", "p99")] = None

    def __iter__(self) -> Any:
        """The limits that are set, each a LatencyLimit."""
        values = ((field.name, getattr(self, field.name)) for field in dataclasses.fields(self))
        return (limit_of(name, value) for name, value in values if value is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyLimit:
    """The most that one statistic of one latency may be."""

    quantity: str  # ttft, tpot, itl or e2e
    statistic: str  # mean, p50, p90, p95 or p99
    most_s: float

    @property
    def flag(self) -> str:
        """The limit's flag, such as --ttft-p95."""
        return schema.flag(field_name(self.quantity, self.statistic))

    @property
    def column(self) -> str:
        """The column of a simulation that it limits, such as p95_ttft_s."""
        return f"{self.statistic}_{self.quantity}_s"

    @property
    def words(self) -> str:
        """The statistic in words, such as `p95 TPOT` or `mean TTFT`."""
        return f"{self.statistic} {self.quantity.upper()}"

    @property
    def percent(self) -> float | None:
        """The percentile, None of a mean."""
        return None if self.statistic == MEAN else float(self.statistic[1:])


def field_name(quantity: str, statistic: str) -> str:
    """Name of the field of LatencyLimits that holds such a limit."""
    return quantity if statistic == MEAN else f"{quantity}_{statistic}"


def limit_of(name: str, value: Any) -> LatencyLimit:
    """The limit that a field of LatencyLimits holds; BadValue for a value that no latency limit has.

    >>> limit_of("ttft_p95", 1.5).column
    'p95_ttft_s'
    """
    quantity, _, statistic = name.partition("_")
    mark = schema.fields(LatencyLimits)[name][0]
    if isinstance(value, str):
        value = schema.scalar(value, mark, schema.flag(name))
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadValue(schema.flag(name), value, "one time, such as 40ms")
    most_s = float(value)
    if mark.illegal(most_s):
        raise BadValue(schema.flag(name), value, mark.illegal(most_s))
    if quantity in BETWEEN_TOKENS and most_s >= SLOWEST_TOKEN_S:
        raise BadValue(schema.flag(name), show(most_s, "s"), f"a time per token; did you mean {most_s:g}ms?")
    return LatencyLimit(quantity=quantity, statistic=statistic or MEAN, most_s=most_s)


def read_limits(namespace: Any) -> LatencyLimits:
    """The limits that the flags of a command line hold; a list of values is an error."""
    values = schema.read(namespace, LatencyLimits)
    for name, value in values.items():
        limit_of(name, value)
    return LatencyLimits(**values)


def check_limits(limits: Iterable[LatencyLimit], longest_output: int) -> tuple[LatencyLimit, ...]:
    """The limits in order, after refusing two of one statistic, and limits between tokens of answers that have one token."""
    limits = tuple(limits)
    for number, limit in enumerate(limits):
        twins = [earlier.most_s for earlier in limits[:number] if earlier.column == limit.column]
        if twins:
            texts = " and ".join(show(value, "s") for value in (*twins, limit.most_s))
            raise IllegalCombination(limit.flag, texts, f"one limit of {limit.words}")
        if limit.quantity in BETWEEN_TOKENS and longest_output <= 1:
            wants = "answers of at least 2 tokens: those of one token have no time between tokens; --ttft and --e2e apply"
            raise IllegalCombination(limit.flag, show(limit.most_s, "s"), wants)
    return limits


def idle_limits(limits: Iterable[LatencyLimit]) -> list[str]:
    """Notes on limits that another one makes idle: a slip, mostly.

    >>> idle_limits([limit_of("ttft_p95", 1.0), limit_of("ttft_p50", 2.0), limit_of("e2e", 9.0)])
    ['--ttft-p50 2 s never binds beside --ttft-p95 1 s']
    """
    pairs = [(loose, strict) for loose, strict in permutations(limits, 2) if _is_idle(loose, strict)]
    first = {loose.flag: (loose, strict) for loose, strict in reversed(pairs)}
    notes = []
    for loose, strict in reversed(first.values()):
        often = "never" if (loose.percent is None) == (strict.percent is None) else "hardly"
        notes.append(f"{loose.flag} {show(loose.most_s, 's')} {often} binds beside {strict.flag} {show(strict.most_s, 's')}")
    return notes


def _is_idle(loose: LatencyLimit, strict: LatencyLimit) -> bool:
    """Whether a load that keeps `strict` keeps `loose`; a mean is taken to be below the 90th percentile."""
    same = loose.quantity == strict.quantity or (loose.quantity, strict.quantity) == ("ttft", "e2e")
    if loose.percent is None or strict.percent is None:
        below = loose.percent is None and (strict.percent is None or strict.percent >= 90)
    else:
        below = loose.percent <= strict.percent
    return same and below and loose.most_s >= strict.most_s


def least_requests(limits: Iterable[LatencyLimit], warmup: float = 0.0) -> int:
    """Fewest requests of a play from which every limited percentile can be told.

    >>> least_requests([limit_of("ttft_p95", 1.0), limit_of("tpot_p99", 0.05)])
    500
    """
    tails = [1.0 - limit.percent / 100 for limit in limits if limit.percent is not None]
    return max((int(-(-LEAST_BEYOND // (tail * (1.0 - warmup) + 1e-12))) for tail in tails), default=1)


def check_requests(limits: Iterable[LatencyLimit], requests: int, warmup: float, flag: str = "--requests") -> None:
    """Refuse a number of requests of which too few lie beyond a limited percentile; `flag` says where the number comes from."""
    for limit in limits:
        least = least_requests((limit,), warmup)
        if requests < least:
            wants = f"at least {least:,} requests for {limit.words}, {LEAST_BEYOND} of them beyond it"
            raise IllegalCombination(flag, requests if flag == "--requests" else f"{requests:,} requests", wants)

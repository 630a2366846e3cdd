"""What a probe may spend of a server: requests, seconds, tokens in and out. Each request is reserved in full before it is sent."""

from __future__ import annotations

import time
from dataclasses import dataclass

from headway.core.question import FlagRecord, field
from headway.core.schema import Field, scalar


def _count(default: str, help: str) -> object:
    return field("token" if "token" in help else "", word="N", integer=True, low=1, open_low=False, high=1e9, help=help, default=default)


class ProbeBudget(FlagRecord):
    """The most that a probe takes, warm-up included; the first limit that is met ends it."""

    budget = field("s", help="most seconds of the whole probe (default 300s)", high=86400, default="300s")
    requests = _count("600", "most requests, those that failed included (default 600)")
    tokens_in = _count("300k", "most prompt tokens (default 300k)")
    tokens_out = _count("60k", "most output tokens (default 60k)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """A budget as numbers."""

    seconds: float
    requests: int
    tokens_in: int
    tokens_out: int


def limits(args: object) -> Limits:
    """The numbers of a question's budget."""
    from headway.core import schema

    def number(name: str) -> float:
        declared: Field = schema.fields(ProbeBudget)[name][0]
        return float(scalar(str(getattr(args, name)), declared, schema.flag(name)))

    return Limits(
        seconds=number("budget"), requests=int(number("requests")), tokens_in=int(number("tokens_in")), tokens_out=int(number("tokens_out"))
    )


class Spending:
    """What is spent and reserved of a budget; `deadline` is on the monotonic clock."""

    def __init__(self, most: Limits) -> None:
        self.most, self.start = most, time.monotonic()
        self.deadline = self.start + most.seconds
        self.requests = self.tokens_in = self.tokens_out = 0

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.start

    def lacks(self, tokens_in: int, tokens_out: int, count: int = 1) -> str:
        """Which limit so many requests more would break; "" where all are kept."""
        if time.monotonic() >= self.deadline:
            return "--budget"
        if self.requests + count > self.most.requests:
            return "--requests"
        if self.tokens_in + count * tokens_in > self.most.tokens_in:
            return "--tokens-in"
        return "--tokens-out" if self.tokens_out + count * tokens_out > self.most.tokens_out else ""

    def reserve(self, tokens_in: int, tokens_out: int) -> None:
        """Count a request at the most that it may take."""
        self.requests, self.tokens_in, self.tokens_out = self.requests + 1, self.tokens_in + tokens_in, self.tokens_out + tokens_out

    def settle(self, unused_in: int, unused_out: int) -> None:
        """Give back what a request that ended well did not take."""
        self.tokens_in, self.tokens_out = self.tokens_in - unused_in, self.tokens_out - unused_out

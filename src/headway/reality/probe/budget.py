"""What a probe may spend of a server: requests, seconds, tokens in and out. Each request is reserved in full before it is sent."""

from __future__ import annotations

import time
from dataclasses import dataclass

from headway.core.question import FlagRecord, field


class ProbeBudget(FlagRecord):
    """The most that a probe takes, warm-up included; the first limit that is met ends it."""

    budget = field("s", word="TIME", help="most seconds of the whole probe (default 300s)", high=86400, default="300s")
    requests = field(word="N", help="most requests, failed ones included (default 600)", integer=True, low=1, open_low=False, high=1e7,
                     default="600")  # fmt: skip
    tokens_in = field(
        "token", word="N", help="most prompt tokens (default 300k)", integer=True, low=1, open_low=False, high=1e10, default="300k"
    )
    tokens_out = field(
        "token", word="N", help="most output tokens (default 60k)", integer=True, low=1, open_low=False, high=1e10, default="60k"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """A budget as numbers."""

    seconds: float
    requests: int
    tokens_in: int
    tokens_out: int


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

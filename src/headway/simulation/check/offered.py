"""Traffic that a deployment is offered: requests at a rate, users of a closed loop, or a trace; whole, or the share of one replica.

Where requests go to replicas in turn (round-robin), replicas do not meet: each serves every R-th request by itself. The gaps between every
R-th of Poisson arrivals are gamma-distributed with coefficient of variation 1/sqrt(R), so the share of one replica is drawn directly,
and its latencies are those of the whole fleet (exact in distribution). Of users dealt to replicas in turn one replica gets the largest
share: exact where replicas divide the users, else slightly conservative. A trace, and requests routed by load or prefix, are played by
the whole fleet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from headway.core.errors import BadValue
from headway.simulation.run import LoadingPlan
from headway.simulation.traffic.distributions import LEAST_CV, Arrivals, Bursty, Even, Lengths, Poisson, parse_arrivals
from headway.simulation.traffic.generate import Think, generate, generate_loop
from headway.simulation.traffic.requests import Traffic

NO_THINK = Think(mean=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedTraffic:
    """Requests at a rate or of users, with lengths that are drawn, or the requests of a trace; exactly one of the three."""

    rate: float | None = None  # requests per second over all replicas; of a trace: scaled to this rate
    users: int = 0
    trace: Traffic | None = None
    prompt: Lengths | None = None
    output: Lengths | None = None
    arrivals: str = "poisson"  # as in sim --arrivals
    think: Think = NO_THINK

    def __post_init__(self) -> None:
        sources = {"a rate": self.rate is not None and self.trace is None, "users": self.users > 0, "a trace": self.trace is not None}
        names = [name for name, is_there in sources.items() if is_there]
        if len(names) != 1:
            raise BadValue("traffic", " and ".join(names) or "nothing", "one of --rate 12, --users 64 or --trace FILE")
        if self.trace is None and (self.prompt is None or self.output is None):
            raise BadValue("traffic", "no lengths", "--prompt and --output")

    @property
    def lasting(self) -> bool:
        """Whether the traffic samples an endless load."""
        return self.trace is None and not self.users

    def load(self, count: int, seed: int, replicas: int = 1) -> LoadingPlan:
        """`count` requests of one of `replicas` replicas; of all of them with 1. A trace is played whole, up to `count`."""
        if self.trace is not None:
            part = self.trace.head(count)
            return LoadingPlan(traffic=part if self.rate is None else part.at_rate(self.rate), rate=self.rate)
        if self.prompt is None or self.output is None:
            raise BadValue("traffic", "no lengths", "--prompt and --output")
        if self.users:
            users = -(-self.users // replicas)
            loop = generate_loop(users, self.think, self.prompt, self.output, max(count, users), seed)
            return LoadingPlan(traffic=loop.traffic, rate=None, users=loop.users, think=loop.think)
        rate = float(self.rate or 0.0)
        traffic = generate(replica_share(parse_arrivals(self.arrivals, rate), replicas), self.prompt, self.output, count, seed)
        return LoadingPlan(traffic=traffic, rate=rate / replicas)

    def with_population(self, load: LoadingPlan, count: int, seed: int) -> LoadingPlan:
        """A drawn load with `count` requests from which its capacity is sampled."""
        if self.rate is None or self.trace is not None or self.prompt is None or self.output is None or len(load.traffic) >= count:
            return load
        return replace(load, population=generate(Even(rate=1.0), self.prompt, self.output, count, seed))


@dataclass(frozen=True, slots=True, kw_only=True)
class Thinned:
    """Every R-th arrival of another process: what one of R replicas gets in turn."""

    process: Arrivals
    replicas: int

    def draw(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """`count` arrival times in seconds, ascending."""
        return next(self.pieces(rng, (count,)))

    def pieces(self, rng: np.random.Generator, sizes: Iterable[int]) -> Iterator[np.ndarray]:
        """Arrival times in seconds, ascending, piece by piece of these sizes; the same however they are cut."""
        for times in self.process.pieces(rng, (size * self.replicas for size in sizes)):
            yield times[:: self.replicas]

    def of_rate(self, rate: float) -> Thinned:
        """The process at another mean rate."""
        return replace(self, process=self.process.of_rate(rate * self.replicas))


def replica_share(arrivals: Arrivals, replicas: int) -> Arrivals:
    """Arrivals at one of `replicas` replicas that get requests in turn.

    >>> replica_share(Poisson(rate=12.0), 4)
    Bursty(rate=3.0, cv=0.5)
    """
    if replicas == 1:
        return arrivals
    if isinstance(arrivals, Even):
        return Even(rate=arrivals.rate / replicas)
    if isinstance(arrivals, Poisson | Bursty):
        cv = (arrivals.cv if isinstance(arrivals, Bursty) else 1.0) / replicas**0.5
        if cv >= LEAST_CV:
            return Bursty(rate=arrivals.rate / replicas, cv=cv)
    return Thinned(process=arrivals, replicas=replicas)

"""One fleet under one load: simulated, set against its capacity, and told as rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headway.errors import BadValue
from headway.sim import answer, find, report, saturation
from headway.sim.fleet import Fleet
from headway.sim.simulate import Run, simulate
from headway.sim.split import split
from headway.sim.state import LANE
from headway.sim.traffic.record import Traffic


@dataclass(frozen=True, slots=True, kw_only=True)
class Loading:
    """Traffic at one rate, or of so many users."""

    traffic: Traffic
    rate: float | None
    users: int = 0
    think: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """How a fleet is tried: the limits of goodput, the warm-up, the form of the loop, the share of requests that go first."""

    fleet: Fleet
    limits: Mapping[str, float]
    warmup: float
    lasting: bool  # the traffic stands for a load that goes on
    how: str
    routing: str
    fast: float  # share of requests in the first of two classes; 0: one class
    seed: int

    def capacity(self, traffic: Traffic) -> float | None:
        """Requests per second that the fleet carries of such traffic."""
        pace, rules, pools = self.fleet.pace, self.fleet.scheduler.rules._replace(lanes=LANE, caching=0), self.fleet.pools
        if pace is None:
            return None
        if pools is None:
            return saturation.capacity(traffic, pace, rules, self.fleet.replicas, self.how)
        prompts = replace(traffic, output=np.ones_like(traffic.output))
        first = saturation.capacity(prompts, pace, rules, pools.prefill, self.how)
        second = saturation.capacity(traffic, pace, rules._replace(handed=1), pools.decode, self.how)
        return min(first, second) if first and second else None

    def ranks(self, count: int) -> Any:
        """Class of each request, drawn; None where there is one class."""
        return np.where(np.random.default_rng([self.seed, 7]).random(count) < self.fast, 0, 1) if self.fast else None

    def run(self, load: Loading) -> Run:
        """Play one load."""
        pace, rules, overhead = self.fleet.pace, self.fleet.scheduler.rules, self.fleet.scheduler.overhead_s
        if pace is None:
            raise BadValue("layout", str(self.fleet.layout), "one that fits")
        if self.fleet.pools:
            if load.users or self.fast:
                raise BadValue("--policy", "disaggregated", "arrivals at a rate or of a trace, in one class")
            return split(load.traffic, pace, rules, self.fleet.pools, overhead_s=overhead, how=self.how, prefix=self.fleet.prefix)[0]
        return simulate(
            load.traffic, pace, rules, replicas=self.fleet.replicas, overhead_s=overhead, ranks=self.ranks(len(load.traffic)),
            think=load.think, users=load.users, how=self.how, routing=self.routing, prefix=self.fleet.prefix,
        )  # fmt: skip

    def rows(self, load: Loading, able: float | None) -> tuple[list[dict[str, Any]], Run]:
        """The row of a load, and one more for each class."""
        run = self.run(load)
        whole = {"rate": load.rate, **answer.row(self.fleet, run, able, self.limits, self.warmup, self.lasting)}
        ranks = self.ranks(len(load.traffic))
        found = [whole]
        for number, name in enumerate(("fast", "slow")) if ranks is not None else ():
            part = report.measured(run, self.warmup, ranks == number)
            told = report.latencies(run, part) | report.goodput(run, part, self.limits)
            told |= {key: None for key in told if "itl" in key or whole.get("mean_ttft_s") is None}
            named = {**self.fleet.named(), "kind": name, "stable": whole["stable"], "measured": int(part.counts.sum())}
            found.append({"rate": load.rate} | named | told)
        return found, run

    def highest(self, traffic: Traffic, so_that: Mapping[str, float]) -> list[dict[str, Any]]:
        """The row at the highest rate that keeps the limits, and at the lowest that was seen not to."""
        able = self.capacity(traffic)
        if able is None:
            return []

        def at(rate: float) -> dict[str, Any]:
            return self.rows(Loading(traffic=traffic.at_rate(rate), rate=rate), able)[0][0]

        good, bad = find.highest(at, able, so_that)
        found = [(good, "found"), (bad, "beyond")]
        return [{**row, "kind": kind} for row, kind in found if row is not None]

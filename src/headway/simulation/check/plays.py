"""Plays of a candidate under traffic, with every step longer or shorter by a factor.

Steps `factor` times as long, in time measured in units of `factor` seconds, are the steps as estimated under requests that arrive `factor`
times as fast, with every pause, patience, transfer and overhead shorter by it. So a play at any factor runs the same compiled step (equal
to rounding). Only loading from the tiers of a prefix cache depends on seconds elsewhere: there the step itself is scaled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from headway.core.errors import IllegalCombination
from headway.simulation import capacity, results
from headway.simulation.capacity import MeasuredCapacity
from headway.simulation.check.candidate import Candidate
from headway.simulation.check.effort import is_full
from headway.simulation.check.latencies import PlayedLatencies, latencies_of
from headway.simulation.check.limits import LatencyLimit
from headway.simulation.check.offered import OfferedTraffic
from headway.simulation.fleet import Fleet
from headway.simulation.run import LoadingPlan, Trial
from headway.simulation.simulate import SimulatedRun
from headway.simulation.step_time import scaled

WARMUP = 0.1  # share of the requests at a rate that are left out, as in `sim`
MOST_POPULATION = capacity.MOST
MOST_REPLICAS = 4_096  # played together, each with a state of its own
PLAIN_CAPACITY = 2_000  # most requests of a queue whose capacity plain Python simulates


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayResult:
    """What a play showed: latencies, and whether the queue is stable."""

    factor: float
    unit: float  # seconds in a unit of time of the runs
    latencies: PlayedLatencies
    stable: bool
    utilisation: float | None
    runs: tuple[SimulatedRun, ...]

    def excess(self, limit: LatencyLimit) -> float:
        """Logarithm of a limited statistic over its limit, above 0 where the limit is broken; inf without a value."""
        answers = self.stable and self.latencies.answers(limit)
        sampled = self.latencies.statistic(limit.quantity, limit.statistic, error=False) if answers else None
        return float(np.log(sampled.value / limit.most_s)) if sampled is not None else float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayableCandidate:
    """A compiled candidate with its loads (one for each seed), ready to be played at any factor."""

    trial: Trial
    loads: tuple[LoadingPlan, ...]
    shares: int  # replicas that each play stands for
    able: MeasuredCapacity | None  # of what is played, at the steps as estimated
    measured: bool  # whether `able` was looked for

    @property
    def fleet(self) -> Fleet:
        """The fleet that is played."""
        return self.trial.fleet

    @property
    def requests(self) -> int:
        """Requests of one play, all seeds together."""
        return sum(len(load.traffic) for load in self.loads)

    @property
    def highest_factor(self) -> float:
        """Factor at which the load equals the capacity; inf where that is not known, or hits of a prefix cache raise it."""
        rate = self.loads[0].rate
        if rate is None or self.able is None or self.fleet.prefix is not None or self.fleet.scheduler.rules.departures:
            return float("inf")
        return self.able.per_s / rate

    def play(self, factor: float = 1.0) -> PlayResult:
        """Play every seed with steps `factor` times as long."""
        unit = 1.0 if self.fleet.prefix is not None else factor
        trial = replace(self.trial, fleet=in_units(self.fleet, unit) if unit == factor else stretched(self.fleet, factor))
        able, runs, samples = self.able and self.able.scaled(unit / factor), [], []
        stands = []
        for load in self.loads:
            run = trial.run(hastened(load, unit))
            if run.interrupted:
                raise KeyboardInterrupt
            rate = load.rate * unit if load.rate is not None and self.trial.lasting else None
            stands.append(capacity.stand(run, able, rate=rate))
            runs.append(run)
            samples.append((run, results.measured(run, self.trial.warmup)))
        brief = not self.measured and any(is_full(trial.fleet, hastened(load, unit)) for load in self.loads)
        uses = [stand.utilisation for stand in stands if stand.utilisation is not None]
        return PlayResult(
            factor=factor, unit=unit, latencies=latencies_of(samples, unit), stable=all(stand.stable for stand in stands) and not brief,
            utilisation=float(np.mean(uses)) if uses else None, runs=tuple(runs),
        )  # fmt: skip


def in_units(fleet: Fleet, unit: float) -> Fleet:
    """The fleet with each time that is no step's in units of `unit` seconds."""
    if unit == 1.0:
        return fleet
    plan = fleet.scheduler
    rules = plan.rules._replace(departures=plan.rules.departures / unit, copy_s=plan.rules.copy_s / unit)
    patience = None if plan.patience_s is None else plan.patience_s / unit
    pools = fleet.pools and replace(fleet.pools, transfer_s=fleet.pools.transfer_s / unit)
    return replace(fleet, scheduler=replace(plan, rules=rules, overhead_s=plan.overhead_s / unit, patience_s=patience), pools=pools)


def stretched(fleet: Fleet, factor: float) -> Fleet:
    """The fleet with steps `factor` times as long."""
    return replace(fleet, pace=fleet.pace and scaled(fleet.pace, factor))


def hastened(load: LoadingPlan, unit: float) -> LoadingPlan:
    """A load with its times in units of `unit` seconds."""
    if unit == 1.0:
        return load
    traffic = load.traffic
    pause = None if traffic.pause is None else traffic.pause / unit
    rate = None if load.rate is None else load.rate * unit
    return replace(load, traffic=replace(traffic, arrival=traffic.arrival / unit, pause=pause), rate=rate,
                   think=None if load.think is None else np.asarray(load.think) / unit)  # fmt: skip


def is_shared_out(candidate: Candidate, offered: OfferedTraffic) -> bool:
    """Whether one replica at its share of the load stands for all: requests go to replicas in turn, and replicas share nothing."""
    policy = candidate.policy
    return offered.trace is None and policy.routing == "round-robin" and policy.policy != "disaggregated" and not candidate.tiers


def playable(
    candidate: Candidate, offered: OfferedTraffic, count: int, seeds: Sequence[int], how: str, with_capacity: bool = True
) -> PlayableCandidate:
    """A candidate made ready to play: compiled for `count` requests of each seed, with the capacity of what it plays."""
    replicas = int(candidate.layout.replicas) if is_shared_out(candidate, offered) else 1
    if candidate.layout.replicas > replicas * MOST_REPLICAS:
        wants = f"one for at most {MOST_REPLICAS:,}, which are played together, or --prompt and --output in place of a trace"
        raise IllegalCombination("--trace", f"a load for {int(candidate.layout.replicas):,} replicas", wants)
    loads = tuple(offered.load(count, seed, replicas) for seed in seeds)
    fleet = candidate.fleet(loads[0].traffic, offered.users > 0)
    if replicas > 1:
        fleet = replace(fleet, layout=replace(fleet.layout, replicas=1))
    share = WARMUP if offered.lasting else 0.0
    trial = Trial(
        fleet=fleet, limits={}, warmup=share, lasting=offered.lasting, how=how, routing=candidate.policy.routing, fast=0.0, seed=seeds[0]
    )
    able, measured = None, False
    if fleet.pace is not None and not offered.users and with_capacity:
        population = offered.with_population(loads[0], min(count, MOST_POPULATION) if how == "plain" else MOST_POPULATION, seeds[0])
        measured = how != "plain" or capacity.queue_length(population.requests, fleet.scheduler.rules) <= PLAIN_CAPACITY
        able = trial.capacity(population.requests) if measured else None
    return PlayableCandidate(trial=trial, loads=loads, shares=replicas, able=able, measured=measured)


def goodput(scene: PlayableCandidate, result: PlayResult, limits: Sequence[LatencyLimit]) -> tuple[float | None, float | None]:
    """Requests per second that keep every limit, over all replicas, and their share; of each latency the lowest limit counts."""
    lowest: dict[str, float] = {}
    for limit in limits:
        if limit.quantity != "itl":
            key = f"{limit.quantity}_s"
            lowest[key] = min(lowest.get(key, float("inf")), limit.most_s / result.unit)
    parts = [results.goodput(run, results.measured(run, scene.trial.warmup), lowest) for run in result.runs]
    rates = [part["goodput_req_per_s"] for part in parts if part["goodput_req_per_s"] is not None]
    shares = [part["good_share"] for part in parts if part["good_share"] is not None]
    rate = float(np.mean(rates)) / result.unit * scene.shares if rates else None
    return rate, float(np.mean(shares)) if shares else None

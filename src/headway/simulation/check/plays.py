"""Plays of a candidate under traffic, with every step longer or shorter by a factor.

Steps `factor` times as long, in time measured in units of `factor` seconds, are the steps as estimated under requests that arrive `factor`
times as fast, with every pause, patience, transfer and overhead shorter by it. So a play at any factor runs the same compiled step (equal
to rounding). Only loading from the tiers of a prefix cache depends on seconds elsewhere: there the step itself is scaled.

How many requests a play has follows from the percentile asked for, the requests in flight and a bound on time, its form from time alone.
Machine code simulates about a million requests a second and needs a second to load; plain Python a hundred times fewer. Both play the
same requests, so that no answer depends on what is installed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headway.core.errors import BadValue, IllegalCombination
from headway.hardware.system import System
from headway.models.model import Model
from headway.models.precision import Precision
from headway.performance.assumptions import Assumptions
from headway.performance.estimate import Deployment
from headway.performance.layout import Layout
from headway.serving.serve import checked_load, deployment
from headway.simulation import capacity, results
from headway.simulation.capacity import MeasuredCapacity
from headway.simulation.check.latencies import PlayedLatencies, latencies_of
from headway.simulation.check.limits import LatencyLimit, check_requests, least_requests
from headway.simulation.check.offered import OfferedTraffic
from headway.simulation.compiled import COMPILE_S, LOAD_S, STEP_S, available, is_ready
from headway.simulation.fleet import Fleet, fleet, stretched
from headway.simulation.prefix_tiers import SimulatedTier
from headway.simulation.questions import Policy
from headway.simulation.run import LoadingPlan, Trial
from headway.simulation.simulate import SimulatedRun
from headway.simulation.traffic.requests import Traffic

AS_STORED, ENGINE_DEFAULTS = Precision(), Policy()
STEP_INTERVALS = {"ttft": "prefill", "tpot": "tpot", "itl": "tpot", "e2e": "tpot"}  # fitted interval of the steps behind each latency


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """Model, machine and formats (in `query`), layout with replicas, scheduler, and tiers of a prefix cache."""

    query: Deployment
    layout: Layout
    prefill: Layout | None = None  # of the prefill replicas, where these are apart, with their number
    policy: Policy = ENGINE_DEFAULTS  # max_seqs: the most sequences of one attention rank, as the launch line has it
    tiers: Any = ()  # as sim.prefix_tiers.parse_tiers gives them

    def fleet(self, traffic: Traffic, closed: bool) -> Fleet:
        """The deployment compiled for such traffic."""
        if self.tiers and self.query.assumptions.hit_rate:
            raise IllegalCombination("--hit-rate", self.query.assumptions.hit_rate, "either a hit rate or a prefix cache, not both")
        policy = self.policy
        if self.prefill is not None:
            policy = replace(policy, policy="disaggregated", prefill_replicas=int(self.prefill.replicas))
        return fleet(self.query, self.layout, policy, traffic, closed=closed, tiers=self.tiers, prefill=self.prefill)

    def step_spread(self, quantity: str) -> float:
        """Half of the 90 % interval, as a factor, of the steps that make up a latency."""
        steps = STEP_INTERVALS[quantity]
        case = replace(self.query, layout=self.layout if self.prefill is None or steps != "prefill" else self.prefill)
        return float(case.steps_half(steps, case.compiled()))


def candidate(
    model: Model | str, system: System | str, layout: Layout, *, prompt: float, output: float, precision: Precision = AS_STORED,
    assumptions: Assumptions | None = None, policy: Policy = ENGINE_DEFAULTS, tiers: Sequence[SimulatedTier] = (),
) -> Candidate:  # fmt: skip
    """A candidate from names or records; `prompt` and `output` are mean tokens of a request."""
    request = deployment(model, system, layout, checked_load(prompt=prompt, output=output), precision, assumptions)
    return Candidate(query=request, layout=request.layout, policy=policy, tiers=tiers)


COMPILED, PLAIN, AUTO = "compiled", "plain", "auto"
BEYOND = 400  # requests beyond the highest limited percentile
LEAST, MOST = 8_000, 60_000  # requests of a play, whatever its form, so that the answer does not depend on it
LIFETIMES = 20  # mean times in service that a play lasts at least, so that filling and draining weigh little
CLOSE = 0.01  # width of the bracket around a confidence
FOLLOWING = 4  # candidates that a question checks one after another, about
PLAYS = 7  # plays of a candidate, about
PLAIN_REQUEST_S = 8e-5  # seconds of plain Python per request, about
FULL = 0.98  # share of what a replica holds from which it counts as full
ROUNDS = 30  # of the fixed point of requests in flight


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """Form of the loop, and requests of a play."""

    how: str
    close: float  # width of the bracket around a confidence
    requests: int  # 0: as many as percentiles and requests in flight need


def effort(
    limits: Sequence[LatencyLimit], how: str, requests: int | None, warmup: float, candidates: int = 1, meet: bool = False
) -> Effort:
    """The effort for plays of some candidates; `meet`: their replicas interact."""
    if how not in (AUTO, PLAIN, COMPILED):
        raise BadValue("--loop", how, f"{AUTO}, {PLAIN} or {COMPILED}")
    if requests is not None:
        check_requests(limits, requests, warmup)
    form = how
    if how == AUTO:
        takes_s = PLAYS * candidates * (requests or LEAST) * PLAIN_REQUEST_S
        ready = is_ready(meet)
        pays = takes_s > LOAD_S + STEP_S * candidates if ready else FOLLOWING * takes_s > COMPILE_S and available()
        form = COMPILED if pays else PLAIN
    if requests is not None:
        return Effort(how=form, close=CLOSE, requests=requests)
    tail = min((1.0 - limit.percent / 100 for limit in limits if limit.percent is not None), default=1.0)
    return Effort(how=form, close=CLOSE, requests=max(LEAST, min(MOST, round(BEYOND / tail)), least_requests(limits, warmup)))


def lifetimes(fleet: Fleet, load: LoadingPlan) -> int:
    """Requests that a play needs for LIFETIMES mean times in service, at most MOST; 0 where no rate is given.

    Of users on pools, who are all played at once, each asks so many times: one replica alone has few users, for whom any play is long.
    """
    if fleet.pace is None or (load.rate is None and fleet.pools is None):
        return 0
    return min(round(LIFETIMES * in_flight(fleet, load)), MOST)


def in_flight(fleet: Fleet, load: LoadingPlan) -> float:
    """Requests in service at a rate, by Little's law at mean lengths; at most `most_in_flight`, where the rate is above the capacity."""
    if load.rate is None or fleet.pace is None:
        return float(load.users)
    if fleet.pools is not None:
        return sum(in_flight(pool, part) * pool.replicas for pool, part in sides(fleet, load))
    running, prompt_tokens = _steady(fleet, load)
    return min(running + prompt_tokens / fleet.scheduler.rules.chunk, most_in_flight(fleet, load))


def sides(fleet: Fleet, load: LoadingPlan) -> list[tuple[Fleet, LoadingPlan]]:
    """The prefill replicas and the decode replicas of a fleet as fleets, each under one replica's share of a load."""
    pools, rate, traffic = fleet.pools, load.rate, load.traffic
    if pools is None or fleet.pace is None or rate is None:
        return [(fleet, load)]
    pace, rules = pools.prefill_side(fleet.pace, fleet.scheduler.rules)
    counts = (pools.prefill, pools.decode)
    of_side = (
        (pace, rules, replace(traffic, output=np.ones_like(traffic.output))),
        (fleet.pace, fleet.scheduler.rules._replace(hit=1.0), traffic),  # of which nothing is computed
    )
    return [
        (
            replace(fleet, pace=step, pools=None, scheduler=replace(fleet.scheduler, rules=limits),
                    layout=replace(fleet.layout, replicas=count)),
            replace(load, traffic=requests, rate=rate / count),
        )
        for count, (step, limits, requests) in zip(counts, of_side, strict=True)
    ]  # fmt: skip


def _steady(fleet: Fleet, load: LoadingPlan) -> tuple[float, float]:
    """Sequences that decode and prompt tokens due in each step, in a steady state at mean lengths."""
    rules, rate, most, pace = fleet.scheduler.rules, float(load.rate or 0.0), most_in_flight(fleet, load), fleet.pace
    prompt, output = float(load.traffic.prompt.mean()), float(load.traffic.output.mean())
    uncached, context = prompt * (1.0 - rules.hit), prompt + output / 2
    running, step = 1.0, 0.0
    for _ in range(ROUNDS):
        tokens = min(max(rate * step, 1.0) * uncached, float(rules.budget))  # of a step with prompts, which few steps are
        prefilling = min(rate * step * uncached / max(tokens, 1.0), 1.0)
        prompts = max(1.0, rate * step)
        if pace:
            with_prompts = pace.step(running, running * context, tokens, tokens * context / 2, prompts)
            step = prefilling * with_prompts + (1 - prefilling) * pace.step(running, running * context, 0.0, 0.0, 1.0)
        running = min(max(rate * output * step, 1.0), most)
    return running, rate * step * uncached


def most_in_flight(fleet: Fleet, load: LoadingPlan) -> float:
    """Requests of mean length that seats and KV cache of a replica hold."""
    rules, traffic = fleet.scheduler.rules, load.traffic
    return max(1.0, min(float(rules.seats), rules.capacity * rules.block / float((traffic.prompt + traffic.output / 2).mean())))


def is_full(fleet: Fleet, load: LoadingPlan) -> bool:
    """Whether the requests at a rate fill a replica or every step's prompt tokens, so that it is overloaded."""
    if load.rate is None:
        return False
    if fleet.pools is not None:
        return any(is_full(pool, part) for pool, part in sides(fleet, load))
    running, prompt_tokens = _steady(fleet, load)
    return running >= FULL * most_in_flight(fleet, load) or prompt_tokens >= FULL * fleet.scheduler.rules.budget


WARMUP = 0.1  # share of the requests at a rate that are left out, as in `sim`
MOST_POPULATION = capacity.MOST
MOST_REPLICAS = 4_096  # played together, each with a state of its own


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
            cached = self.fleet.prefix is not None
            stands.append(trial.judged(load, run, able).standing if cached else capacity.stand(run, able, rate=rate))
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
    pools = fleet.pools
    if pools is not None:
        first = pools.first
        if first is not None:
            first = replace(first, rules=first.rules._replace(departures=rules.departures, copy_s=first.rules.copy_s / unit))
        transfer = pools.transfer_s
        pools = replace(pools, transfer_s=lambda prompt: transfer(prompt) / unit, first=first)
    return replace(fleet, scheduler=replace(plan, rules=rules, overhead_s=plan.overhead_s / unit, patience_s=patience), pools=pools)


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
    apart = candidate.prefill is not None or policy.policy == "disaggregated"
    return offered.trace is None and policy.routing == "round-robin" and not apart and not candidate.tiers


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
    measured = fleet.pace is not None and not offered.users and with_capacity
    able = trial.capacity(offered.with_population(loads[0], MOST_POPULATION, seeds[0]).requests) if measured else None
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

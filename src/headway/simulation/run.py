"""One fleet under one load: simulated, compared with its capacity, and reported as rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headway.core.columns import PERCENTILES
from headway.core.errors import BadValue
from headway.simulation import capacity, results
from headway.simulation.capacity import MeasuredCapacity
from headway.simulation.fleet import Fleet, split, stretched
from headway.simulation.simulate import SimulatedRun, simulate, turns_of
from headway.simulation.state import BUSY, LANE, STEPS
from headway.simulation.streamed import simulate_stream
from headway.simulation.traffic.requests import Traffic
from headway.simulation.traffic.stream import DrawnTraffic
from headway.simulation.users_of_pools import play_users

BANDED = ("mean_ttft_s", "p99_ttft_s", "mean_tpot_s", "p99_tpot_s")
LOW, HIGH = "lo", "hi"  # suffixes for shorter steps and longer steps


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadingPlan:
    """Traffic at one rate, or of `users` closed-loop users."""

    traffic: Traffic
    rate: float | None
    users: int = 0
    think: Any = None
    stream: DrawnTraffic | None = None  # the load, drawn as it is played, of which `traffic` is a sample; None: the traffic is all
    population: Traffic | None = None  # more requests of the same endless load, whose capacity is that of the load; None: the traffic

    def __len__(self) -> int:
        return len(self.traffic if self.stream is None else self.stream)

    @property
    def requests(self) -> Traffic:
        """The requests whose capacity is that of the load."""
        return self.traffic if self.population is None else self.population


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A fleet and the settings of its simulation: goodput limits, warm-up, form of the loop, share of fast requests."""

    fleet: Fleet
    limits: Mapping[str, float]
    warmup: float
    lasting: bool  # the traffic samples an endless load
    how: str
    routing: str
    fast: float  # share of requests in the higher of two classes; 0: one class
    seed: int
    compile_s: float = 0.0  # seconds to make or load machine code, before any run
    band: float = 0.0  # relative change of step times for a band of latencies; 0: no band
    refit: Callable[[Traffic], Fleet] | None = None  # the fleet for other traffic
    percentiles: Sequence[float] = PERCENTILES  # of latencies and of the batch

    def suited(self, load: LoadingPlan, before: LoadingPlan) -> Trial:
        """The trial with its fleet made for this load, if its lengths differ from those of the load it was made for."""
        if self.refit is None or same_lengths(load.traffic, before.traffic):
            return self
        return replace(self, fleet=self.refit(load.traffic))

    def capacity(self, traffic: Traffic) -> MeasuredCapacity | None:
        """Capacity of the fleet for such traffic, None if it cannot run."""
        pace, rules, pools = self.fleet.pace, self.fleet.scheduler.rules._replace(lanes=LANE, caching=0), self.fleet.pools
        if pace is None:
            return None
        if pools is None:
            return capacity.capacity(traffic, pace, rules, self.fleet.replicas, self.how)
        prompts = replace(traffic, output=np.ones_like(traffic.output))
        first_pace, first_rules = pools.prefill_side(pace, rules)
        first = capacity.capacity(prompts, first_pace, first_rules, pools.prefill, self.how)
        second = capacity.capacity(traffic, pace, rules._replace(handed=1), pools.decode, self.how)
        return min(first, second, key=lambda pool: pool.per_s) if first and second else None

    def ranks(self, traffic: Traffic) -> Any:
        """Random class of each request, equal for all turns of a conversation; None with one class."""
        if not self.fast:
            return None
        draws = np.random.default_rng([self.seed, 7]).random(len(traffic))
        return np.where((draws if traffic.pause is None else draws[turns_of(traffic).first]) < self.fast, 0, 1)

    def run(self, load: LoadingPlan) -> SimulatedRun:
        """Simulate one load."""
        pace, rules, overhead = self.fleet.pace, self.fleet.scheduler.rules, self.fleet.scheduler.overhead_s
        if pace is None:
            raise BadValue("layout", str(self.fleet.layout), "one that fits")
        if load.users and self.fast:
            raise BadValue("--fast", self.fast, "arrivals at a rate or of a trace, not --users")
        pools = self.fleet.pools
        if pools and load.users:
            if self.fleet.scheduler.patience_s is not None:
                raise BadValue("--patience", self.fleet.scheduler.patience_s, "arrivals at a rate or of a trace where prefill is apart")
            run, before = play_users(load.traffic, load.users, load.think, pace, rules, pools, overhead_s=overhead, how=self.how)
            return replace(run, prefill=before, first_token_factor=self.fleet.first_token_factor)
        if pools:
            if self.fast:
                raise BadValue("--policy", "disaggregated", "requests in one class")
            run, before = split(
                load.traffic, pace, rules, pools, overhead_s=overhead, how=self.how, prefix=self.fleet.prefix,
                routing=self.routing, patience=self.fleet.scheduler.patience_s,
            )  # fmt: skip
            return replace(run, prefill=before, first_token_factor=self.fleet.first_token_factor)
        if load.stream is not None:
            return simulate_stream(
                load.stream, pace, rules, replicas=self.fleet.replicas, overhead_s=overhead, how=self.how, routing=self.routing,
                warmup=self.warmup, limits=self.limits, first_token_factor=self.fleet.first_token_factor,
            )  # fmt: skip
        run = simulate(
            load.traffic, pace, rules, replicas=self.fleet.replicas, overhead_s=overhead, ranks=self.ranks(load.traffic),
            think=load.think, users=load.users, how=self.how, routing=self.routing, prefix=self.fleet.prefix,
            patience=self.fleet.scheduler.patience_s,
        )  # fmt: skip
        return replace(run, first_token_factor=self.fleet.first_token_factor)

    def rows(self, load: LoadingPlan, able: MeasuredCapacity | None) -> tuple[list[dict[str, Any]], SimulatedRun]:
        """The row of a load, then a row for each class, with a band of latencies if `band` is set; and the run."""
        rows, run = self.run_rows(load, able)
        if not run.interrupted:
            rows[0] |= self.on_timetable(load, rows[0], run)
        if self.band and not run.interrupted:
            for end, factor in ((LOW, 1.0 - self.band), (HIGH, 1.0 + self.band)):
                for row, band_row in zip(rows, self.at_pace(load, able, factor), strict=True):
                    row |= {f"{key.removesuffix('_s')}_{end}_s": band_row[key] for key in BANDED}
        return rows, run

    def run_rows(self, load: LoadingPlan, able: MeasuredCapacity | None) -> tuple[list[dict[str, Any]], SimulatedRun]:
        """The row of a load and of each class without any variant of it; and the run."""
        run = self.run(load)
        try:
            return self._result_rows(load, run, able), run
        except KeyboardInterrupt:  # rows of millions of requests take seconds: finish them, then stop
            run = replace(run, interrupted=True)
            return self._result_rows(load, run, able), run

    def on_timetable(self, load: LoadingPlan, row: Mapping[str, Any], run: SimulatedRun) -> dict[str, Any]:
        """How often and how full steps leave on a timetable, and latencies at half the interval; nothing without a timetable."""
        scheduler = self.fleet.scheduler
        interval = scheduler.rules.departures
        if not interval or self.fleet.pace is None or self.fleet.pools is not None or row.get("decode_batch_mean") is None:
            return {}
        fill = row["decode_batch_mean"] / scheduler.rules.seats
        rules = scheduler.rules._replace(departures=interval / 2)
        half = replace(self, fleet=replace(self.fleet, scheduler=replace(scheduler, rules=rules)), band=0.0)
        half_run = half.run(load)
        if half_run.interrupted:
            raise KeyboardInterrupt
        (half_row,) = half._result_rows(load, half_run, None)[:1]
        known = {key: half_row.get(key) for key in ("mean_queue_s", "mean_ttft_s", "mean_tpot_s")}
        batch = half_row.get("decode_batch_mean")
        filled = None if batch is None else batch / rules.seats
        period = run.total(BUSY) / run.total_count(STEPS)
        return {"departures_s": interval, "train_period_s": period, "train_fill": fill} | {
            f"half_{key}": value for key, value in (known | {"train_fill": filled}).items()
        }

    def at_pace(self, load: LoadingPlan, able: MeasuredCapacity | None, factor: float) -> list[dict[str, Any]]:
        """The rows of a load with every step time multiplied by `factor`."""
        if self.fleet.pace is None:
            return []
        variant = replace(self, fleet=stretched(self.fleet, factor), band=0.0)
        on_beat = self.fleet.scheduler.rules.departures > 0.0  # then capacity does not scale with step time
        rows, run = variant.run_rows(load, variant.capacity(load.requests) if able and on_beat else able and able.scaled(1.0 / factor))
        if run.interrupted:
            raise KeyboardInterrupt
        return rows

    def _result_rows(self, load: LoadingPlan, run: SimulatedRun, able: MeasuredCapacity | None) -> list[dict[str, Any]]:
        rate = load.rate if self.lasting else None
        about = results.row(self.fleet, run, able, self.limits, self.warmup, self.lasting, rate, self.percentiles)
        totals = {"rate": load.rate, "users": load.users or None, **about, "compile_s": self.compile_s}
        ranks = self.ranks(load.traffic)
        rows = [totals]
        for number, name in enumerate(("fast", "slow")) if ranks is not None else ():
            part = results.measured(run, self.warmup, ranks == number)
            figures = results.latencies(run, part, self.percentiles) | results.goodput(run, part, self.limits)
            stable = totals["stable"] or capacity.stand(run, None, ranks == number).stable  # the fast class may be stable by itself
            figures |= {key: None for key in figures if "itl" in key or (self.lasting and not stable)}
            identity = {**self.fleet.identity(), "kind": name, "stable": stable, "measured": int(part.counts.sum())}
            rows.append({"rate": load.rate} | identity | figures)
        return rows

    def highest(
        self, at_rate: Callable[[float], LoadingPlan], so_that: Mapping[str, float], near: float | None = None
    ) -> tuple[list[dict[str, Any]], bool]:
        """Rows at the highest rate that keeps the limits and the lowest rate tried that does not; and whether the search finished.

        A rate is played as by itself: its traffic drawn, the fleet and its capacity made for it. `near` is a rate to begin around.
        """
        first = at_rate(near or 1.0)
        loaded_trial = LoadedTrial(trial=replace(self, band=0.0, fleet=self.refit(first.traffic) if self.refit else self.fleet), load=first)
        able, tried = loaded_trial.capacity, []
        if able is None:
            return [], True

        def at(rate: float) -> dict[str, Any]:
            loaded_trial.turn_to(at_rate(rate))
            rows, run = loaded_trial.rows()
            if run.interrupted:
                raise KeyboardInterrupt
            tried.append(rows[0])
            return rows[0]

        ended = True
        try:
            good, bad = capacity.highest(at, able.per_s, so_that, near)
            if good and self.band:
                loaded_trial.turn_to(at_rate(good["rate"]))
                good = replace(loaded_trial.trial, band=self.band).rows(loaded_trial.load, loaded_trial.capacity)[0][0]
        except KeyboardInterrupt:
            (good, bad), ended = capacity.between(tried, so_that), False
        tries = [(good, "found"), (bad, "beyond")]
        return [{**row, "kind": kind} for row, kind in tries if row is not None], ended

    def over_seeds(
        self, sources: Mapping[int, Callable[[float], LoadingPlan]], so_that: Mapping[str, float], near: float
    ) -> dict[str, Any]:
        """The lowest and the highest of the rates found with other seeds and of `near`, the rate found with this one."""
        rates = [near]
        for seed, at_rate in sources.items():
            rows, ended = replace(self, seed=seed, band=0.0).highest(at_rate, so_that, near)
            if not ended:
                raise KeyboardInterrupt
            rates.append(next((row["rate"] for row in rows if row["kind"] == "found"), 0.0))
        return {"rate_lo": min(rates), "rate_hi": max(rates), "seeds": len(rates)}


def same_lengths(first: Traffic, second: Traffic) -> bool:
    """Whether two traffics have the same lengths in the same order."""
    return first is second or (np.array_equal(first.prompt, second.prompt) and np.array_equal(first.output, second.output))


@dataclass(slots=True)
class LoadedTrial:
    """A trial under one load after another: its fleet and capacity are made again where the lengths change."""

    trial: Trial
    load: LoadingPlan
    known: tuple[MeasuredCapacity | None] | None = None

    @property
    def capacity(self) -> MeasuredCapacity | None:
        """Capacity of the load in play; none of a closed loop."""
        if self.known is None:
            self.known = (None if self.load.users else self.trial.capacity(self.load.requests),)
        return self.known[0]

    def turn_to(self, load: LoadingPlan) -> None:
        """Play another load from now on."""
        suited = self.trial.suited(load, self.load)
        if suited is not self.trial or not same_lengths(load.requests, self.load.requests) or bool(load.users) != bool(self.load.users):
            self.known = None
        self.trial, self.load = suited, load

    def rows(self) -> tuple[list[dict[str, Any]], SimulatedRun]:
        """Rows and run of the load in play."""
        return self.trial.rows(self.load, self.capacity)

"""One fleet under one load: simulated, compared with its capacity, and reported as rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

import numpy as np

from headway.core.columns import PERCENTILES
from headway.core.errors import BadValue
from headway.simulation import capacity, results, settled
from headway.simulation.capacity import MeasuredCapacity
from headway.simulation.fleet import Fleet, split, stretched
from headway.simulation.settled import Verdict
from headway.simulation.simulate import SimulatedRun, simulate, turns_of
from headway.simulation.state import BUSY, LANE, STEPS
from headway.simulation.streamed import simulate_stream
from headway.simulation.traffic.requests import Traffic
from headway.simulation.traffic.stream import DrawnTraffic
from headway.simulation.users_of_pools import play_users

BANDED = ("mean_ttft_s", "p99_ttft_s", "mean_tpot_s", "p99_tpot_s")
TALKS_EACH = 4  # conversations for each request of users from which on more of them are of no help: none of them can be served
LOW, HIGH = "lo", "hi"  # suffixes for shorter steps and longer steps


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadingPlan:
    """Traffic at one rate, or of `users` closed-loop users."""

    traffic: Traffic
    rate: float | None
    users: int = 0
    think: Any = None
    stream: DrawnTraffic | None = None  # the load, drawn as it is played, of which `traffic` is a sample; None: the traffic is all
    sends: int = 0  # requests of users whose traffic is conversations, of which there are more
    population: Traffic | None = None  # more requests of the same endless load, whose capacity is that of the load; None: the traffic
    longer: Callable[[int], LoadingPlan] | None = None  # the same load with so many requests, or to choose from; None: there are no more

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

    def capacity(self, traffic: Traffic, hits: float | None = None) -> MeasuredCapacity | None:
        """Capacity of the fleet for such traffic, None if it cannot run; `hits`: of a prefix cache, the share of prompt tokens found."""
        pace, rules, pools = self.fleet.pace, self.fleet.scheduler.rules._replace(lanes=LANE, caching=0), self.fleet.pools
        if pace is None:
            return None
        shares = {} if hits is None else {"hit": hits}
        if pools is None:
            return capacity.capacity(traffic, pace, rules._replace(**shares), self.fleet.replicas, self.how)
        prompts = replace(traffic, output=np.ones_like(traffic.output))
        first_pace, first_rules = pools.prefill_side(pace, rules)
        first = capacity.capacity(prompts, first_pace, first_rules._replace(caching=0, **shares), pools.prefill, self.how)
        if (traffic.output <= 1).all():  # nothing is left to decode
            return first
        second = capacity.capacity(traffic, pace, rules._replace(handed=1), pools.decode, self.how)
        return min(first, second, key=lambda pool: pool.per_s) if first and second else None

    def judged(self, load: LoadingPlan, run: SimulatedRun, able: MeasuredCapacity | None) -> Verdict:
        """Whether a load is stable, `able` being the capacity without hits; of a prefix cache with its hits once they have settled.

        Where they had not, longer runs of the same load show them, unless the load is easily carried without any.
        """
        rate, hits = load.rate if self.lasting else None, None if able is None or run.tally is not None else settled.late_hits(run)
        if run.tally is not None:
            return Verdict(standing=run.tally.stand(able, rate), hits=None, requests=len(load))
        if hits is None or able is None:
            return Verdict(standing=capacity.stand(run, able, rate=rate), hits=None, requests=len(run.traffic))
        most = min(settled.LONGEST * len(run.traffic), settled.PLAIN_MOST if self.how == "plain" else settled.MOST)
        easy = rate is not None and rate <= settled.AT_EASE * able.per_s
        while not (hits.settled or easy or run.interrupted or load.longer is None or len(run.traffic) >= most):
            load = load.longer(min(settled.TIMES_LONGER * len(run.traffic), most))
            run = self.run(load)
            if run.interrupted:  # the run that was asked for is whole: its answer is as one of an interrupt
                raise KeyboardInterrupt
            hits = settled.late_hits(run) or hits
        standing = capacity.stand(run, self.capacity(load.requests, hits.share), rate=rate)
        verdict = Verdict(standing=standing, hits=hits.share, requests=len(run.traffic), settled=hits.settled or not self.lasting)
        if rate is None or rate <= able.per_s or not standing.stable or run.interrupted:
            return verdict
        return replace(verdict, without_hits=able.per_s, recovers=self.recovers(load, run, able))

    def recovers(self, load: LoadingPlan, run: SimulatedRun, able: MeasuredCapacity) -> bool | None:
        """Whether a load that an empty cache does not carry is carried again after a stop of two minutes, or of a conversation if longer.

        The stop is shorter where that is more requests than are played. Who waits then comes at once, and while the queue lasts what a
        conversation left is dropped before its next turn: either hits come back before the queue grows, or never.
        """
        if load.longer is None or load.rate is None:
            return None
        talks = int((~turns_of(run.traffic).later).sum())
        pauses = 0.0 if run.traffic.pause is None else float(run.traffic.pause.sum())
        talk_s = (float(np.nansum(run.finish - run.arrival)) + pauses) / talks
        stop_s, count = settled.stop(talk_s, load.rate, self.how == "plain")
        load = load.longer(count)
        load = replace(load, traffic=settled.after_stop(load.traffic, stop_s), longer=None)
        again = self.run(load)
        if again.interrupted:
            raise KeyboardInterrupt
        return self.judged(load, again, able).standing.stable

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
        if pools and load.sends:
            raise BadValue("--turns", "with --users", "replicas that prefill and decode, not --policy disaggregated")
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
            think=load.think, users=load.users, sends=load.sends, how=self.how, routing=self.routing, prefix=self.fleet.prefix,
            patience=self.fleet.scheduler.patience_s,
        )  # fmt: skip
        talks_ended = load.longer is not None and not run.interrupted and int((~run.refused).sum()) < load.sends
        if load.longer and talks_ended and int((~turns_of(load.traffic).later).sum()) < TALKS_EACH * load.sends:
            return self.run(load.longer(2 * len(load.traffic)))  # for users who gave conversations up
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
        verdict = self.judged(load, run, able)
        about = results.row(self.fleet, run, verdict, self.limits, self.warmup, self.lasting, self.percentiles)
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
        self, at_rate: Callable[[float], LoadingPlan], so_that: Mapping[str, float], near: float | None = None, count: int = 0
    ) -> tuple[list[dict[str, Any]], bool]:
        """Rows at the highest rate that keeps the limits and the lowest rate tried that does not; and whether the search finished.

        A rate is played as by itself: its traffic drawn, the fleet and its capacity made for it. `near` is a rate to begin around. What is
        found is replayed with more requests, and looked for with so many where its latencies are not theirs; unless `count` says how many.
        """
        first = at_rate(near or 1.0)
        loaded_trial = LoadedTrial(trial=replace(self, band=0.0, fleet=self.refit(first.traffic) if self.refit else self.fleet), load=first)
        if loaded_trial.capacity is None:
            return [], True
        search, ended = RateSearch(loaded_trial=loaded_trial, at_rate=at_rate, so_that=so_that, count=count or len(first)), True
        try:
            good, bad = search.highest(near) if count else search.replayed(near)
            if good and self.band:
                loaded_trial.turn_to(search.load(good["rate"]))
                good |= replace(loaded_trial.trial, band=self.band).rows(loaded_trial.load, loaded_trial.capacity)[0][0]
        except KeyboardInterrupt:
            (good, bad), ended = capacity.between(search.tried, so_that), False
        tries = [(good, "found"), (bad, "beyond")]
        return [{**row, "kind": kind} for row, kind in tries if row is not None], ended

    def over_seeds(
        self, sources: Mapping[int, Callable[[float], LoadingPlan]], so_that: Mapping[str, float], near: float, count: int
    ) -> dict[str, Any]:
        """The lowest and the highest of the rates found with `count` requests of other seeds and of `near`, found with this one."""
        rates = [near]
        for seed, at_rate in sources.items():
            rows, ended = replace(self, seed=seed, band=0.0).highest(at_rate, so_that, near, count)
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


REPLAYS = 10  # times as many requests, with which a rate that was found is played again
SAME = 0.08  # relative difference of a limited latency up to which that replay shows the same
NEARLY = 0.25  # and up to which the latencies of a search with so many requests will be those of any longer run


@dataclass(slots=True)
class RateSearch:
    """The search for the highest rate within limits, with more requests where hits have not settled or a replay shows other latencies."""

    loaded_trial: LoadedTrial
    at_rate: Callable[[float], LoadingPlan]
    so_that: Mapping[str, float]
    count: int  # requests of each rate tried
    tried: list[dict[str, Any]] = field(default_factory=list)
    settled: bool = False  # whether there are as many requests as hits take to settle

    def load(self, rate: float, count: int = 0) -> LoadingPlan:
        """The load at a rate with as many requests as are played now, or `count`."""
        load, count = self.at_rate(rate), count or self.count
        return load if load.longer is None or len(load) == count else load.longer(count)

    def at(self, rate: float, count: int = 0) -> dict[str, Any]:
        """The row at a rate; from a rate on at which hits had not settled, every rate has as many requests as that needed."""
        self.loaded_trial.turn_to(self.load(rate, count))
        rows, run = self.loaded_trial.rows()
        if run.interrupted:
            raise KeyboardInterrupt
        if not (count or self.settled) and (rows[0].get("judged_requests") or 0) > self.count:
            self.count, self.settled = rows[0]["judged_requests"], True
            return self.at(rate)
        self.tried += [] if count else rows[:1]
        return rows[0]

    def highest(self, near: float | None) -> tuple[Any, Any]:
        """The rows at the highest rate that keeps the limits and at the lowest that does not."""
        able = self.loaded_trial.capacity
        return capacity.highest(self.at, able.per_s if able else 0.0, self.so_that, near)

    def replayed(self, near: float | None) -> tuple[Any, Any]:
        """The rows of a search whose answer a longer run shares."""
        most = settled.PLAIN_MOST if self.loaded_trial.trial.how == "plain" else settled.MOST_PLAYED
        while True:
            good, bad = self.highest(near)
            longer = min(REPLAYS * self.count, most)
            if good is None or longer <= self.count or self.at_rate(good["rate"]).longer is None:
                return good, bad
            apart = self.apart(good, self.at(good["rate"], longer))
            if apart <= SAME:
                return good | {"replay_requests": longer, "replay_difference": apart}, bad
            self.count, near = longer, good["rate"]
            self.tried.clear()
            if apart <= NEARLY:
                return self.highest(near)

    def apart(self, row: Mapping[str, Any], longer: Mapping[str, Any]) -> float:
        """The largest relative difference of the limited latencies of two rows; inf where one has no value."""
        pairs = [(row.get(key), longer.get(key)) for key in self.so_that]
        return max((abs(after / before - 1.0) if before and after is not None else inf for before, after in pairs), default=0.0)

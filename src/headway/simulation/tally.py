"""What is counted of a run whose requests are not kept: every figure of a row, from sums, and percentiles from sketches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from headway.simulation.capacity import PARTS, SURE, MeasuredCapacity, Saturation, chance_spread
from headway.simulation.results import BATCHES, SPANS, STUDENT, MeasuredTimes, gaps, latency_names
from headway.simulation.simulate import SimulatedRun
from headway.simulation.sketch import QuantileSketch
from headway.simulation.state import Rules, State
from headway.simulation.traffic.requests import Traffic
from headway.simulation.traffic.stream import SAMPLE


@dataclass(slots=True, kw_only=True)
class RunTally:
    """Sums over requests that have ended, of `count` in all that arrive between `first` and `last`."""

    count: int
    first: float
    last: float
    left_out: int  # first requests, whose latencies do not count
    limits: Mapping[str, float]
    first_token_factor: float
    sketches: dict[str, QuantileSketch] = field(default_factory=lambda: {key: QuantileSketch(batches=BATCHES) for key in SPANS})
    sent_count: int = 0
    refused: int = 0
    completed: int = 0
    measured: int = 0
    good: int = 0  # of the measured, those that keep every limit
    tokens: Any = field(default_factory=lambda: np.zeros(2))  # prompts and answers of the completed
    spent_s: float = 0.0  # from sending to the last token
    finish: float = 0.0  # of the last
    arrivals: Any = field(default_factory=lambda: np.zeros(PARTS + 1))  # by equal parts of the time
    lengths: Any = field(default_factory=lambda: np.zeros((2, 3)))  # count, sum and sum of squares of prompts and of answers
    queued: Any = field(default_factory=lambda: np.zeros(2))  # at half of the time and at its end
    sampled: list[Any] = field(default_factory=list)  # every so many-th request: number, times, lengths

    @classmethod
    def of(cls, count: int, span: tuple[float, float], warmup: float, limits: Mapping[str, float], first_token_factor: float) -> Self:
        """Nothing counted yet."""
        return cls(
            count=count, first=span[0], last=span[1], left_out=int(warmup * count), limits=limits, first_token_factor=first_token_factor
        )

    @property
    def marks(self) -> Any:
        """Half of the time, and its end."""
        return np.array([(self.first + self.last) / 2, self.last])

    def send(self, traffic: Traffic, fits: Any) -> None:
        """Count requests that are sent, those that `fits` to replicas."""
        arrival = traffic.arrival[fits]
        parts = PARTS / (self.last - self.first) if self.last > self.first else 0.0
        self.sent_count += len(traffic)
        self.refused += len(traffic) - len(arrival)
        self.arrivals += np.bincount(((arrival - self.first) * parts).astype(np.int64), minlength=PARTS + 1)
        self.queued += (arrival[:, None] <= self.marks).sum(axis=0)
        for sums, lengths in zip(self.lengths, (traffic.prompt[fits].astype(float), traffic.output[fits].astype(float)), strict=True):
            sums += len(lengths), lengths.sum(), lengths @ lengths

    def add(self, numbers: Any, times: Any, lengths: Any) -> None:
        """Count requests that have ended, by number: their times as users saw them, prompts and answers."""
        if not len(numbers):
            return
        arrival, scheduled, _, finish = times.T
        counts = numbers >= self.left_out
        sample = MeasuredTimes(run=ended_run(times, lengths, self.first_token_factor), counts=counts)
        batch = (numbers[counts] - self.left_out) * BATCHES // max(1, self.count - self.left_out)
        good = np.ones(len(batch), bool)
        for key, sketch in self.sketches.items():
            values = sample.values(key)
            known = ~np.isnan(values)
            sketch.add(values[known], batch[known])
            good &= ~(values > self.limits[key]) if key in self.limits else True
        self.measured += len(batch)
        self.good += int(good.sum())
        self.completed += len(numbers)
        self.tokens += lengths.sum(axis=0)
        self.spent_s += float((finish - arrival).sum())
        self.finish = max(self.finish, float(finish.max()))
        self.queued -= (scheduled[:, None] <= self.marks).sum(axis=0)
        rows = numbers % -(-self.count // SAMPLE) == 0
        self.sampled.append((numbers[rows], times[rows], lengths[rows]))

    def run(
        self, states: Sequence[State], rules: Rules, overhead_s: float, compile_s: float, interrupted: bool, wall_s: float
    ) -> SimulatedRun:
        """The run of the sampled requests, with this tally of all."""
        numbers, times, lengths = (np.concatenate(parts) for parts in zip(*self.sampled, strict=True)) if self.sampled else NOTHING
        order = np.argsort(numbers)
        return ended_run(
            times[order], lengths[order], self.first_token_factor, states=tuple(state._replace(lengths=(), order=()) for state in states),
            rules=rules, overhead_s=overhead_s, compile_s=compile_s, interrupted=interrupted, wall_s=wall_s, tally=self,
        )  # fmt: skip

    def stand(self, able: MeasuredCapacity | None, rate: float | None) -> Saturation:
        """Stability of the queue and utilisation of the replicas, as `capacity.stand` tells them of a run that is kept."""
        offered_count, span = self.sent_count - self.refused, self.last - self.first
        if offered_count < 2 or span <= 0.0:
            return Saturation(capacity=able, utilisation=None, growth=0.0, stable=True)
        offered = (offered_count - 1) / span if rate is None else rate * offered_count / self.sent_count
        growth = float(self.queued[1] - self.queued[0]) / (span / 2)
        counts = self.arrivals.copy()
        counts[-2] += counts[-1]
        grows = growth > SURE * chance_spread(counts[:-1], self.lengths, rate is not None) ** 0.5 / (span / 2)
        over = able is not None and offered > able.per_s
        if over and not grows and able is not None:
            growth = offered - able.per_s
        utilisation = offered / able.per_s if able else None
        return Saturation(capacity=able, utilisation=utilisation, growth=growth if grows or over else 0.0, stable=not (grows or over))

    def latencies(self, run: SimulatedRun, percentiles: Sequence[float]) -> dict[str, Any]:
        """Means, intervals, percentiles and the largest of every latency; the share that waits."""
        row: dict[str, Any] = {}
        for key, sketch in self.sketches.items():
            names = latency_names(key, percentiles)
            if key == "queue_s":
                row["wait_share"] = sketch.above_zero / sketch.count if sketch.count else None
            if not sketch.count:
                row |= dict.fromkeys(names)
                continue
            width = float(STUDENT * sketch.means.std(ddof=1) / np.sqrt(BATCHES)) if len(sketch.means) == BATCHES else None
            row |= dict(zip(names, (sketch.mean, width, *sketch.percentiles(percentiles), sketch.largest), strict=True))
        return row | gaps(run, percentiles)

    def goodput(self) -> dict[str, Any]:
        """Goodput in requests per second that keep every limit, and their share; None without limits."""
        if not self.limits:
            return {"goodput_req_per_s": None, "good_share": None}
        share, rate = self.good / self.measured if self.measured else None, self.rates()["req_per_s"]
        return {"goodput_req_per_s": share * rate if share is not None and rate else None, "good_share": share}

    def rates(self) -> dict[str, Any]:
        """Offered and completed rates, from the first request sent to the last token."""
        span, offered = self.finish - self.first, self.last - self.first
        prompt, output = map(float, self.tokens)
        return {
            "requests": self.count, "completed": self.completed, "rejected": self.refused,
            "cancelled": self.count - self.refused - self.completed, "duration_s": span,
            "offered_req_per_s": (self.count - 1) / offered if offered > 0 else None,
            "req_per_s": self.completed / span if span > 0 else None,
            "output_tok_per_s": output / span if span > 0 else None,
            "total_tok_per_s": (output + prompt) / span if span > 0 else None,
        }  # fmt: skip


NOTHING = (np.zeros(0, np.int64), np.zeros((0, 4)), np.zeros((0, 2), np.int64))


def ended_run(times: Any, lengths: Any, first_token_factor: float, **about: Any) -> SimulatedRun:
    """Requests that have ended as a run, of which `about` says more."""
    arrival, scheduled, first, finish = times.T
    count = len(times)
    usual = {"states": (), "rules": None, "overhead_s": 0.0, "interrupted": False, "compile_s": 0.0, "wall_s": 0.0}
    return SimulatedRun(
        traffic=Traffic.of(np.sort(arrival), *lengths.T), arrival=arrival, scheduled=scheduled, first=first, finish=finish,
        refused=np.zeros(count, bool), replica=np.zeros(count, np.int32), abandonment=None, first_token_factor=first_token_factor,
        **(usual | about),
    )  # fmt: skip

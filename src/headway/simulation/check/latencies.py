"""Statistics of simulated latencies with their sampling error, beside the limits.

The error of a percentile is that of the share of requests beyond it, from the spread of this share over batches of requests in order:
requests that follow one another are alike, and a binomial error would be too small. It is of one play; no error is known of the time
between tokens, which a play counts in a histogram.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.simulation import state as slot
from headway.simulation.check.limits import MEAN, QUANTITIES, STATISTICS, LatencyLimit
from headway.simulation.results import BATCHES, FEW, STUDENT, MeasuredTimes, half_width
from headway.simulation.simulate import SimulatedRun
from headway.simulation.traffic.requests import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledStatistic:
    """A mean or percentile of a sample and its 95 % confidence interval, None where it is not known."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyStatistics:
    """Every statistic of one latency, s."""

    quantity: str
    mean: SampledStatistic
    p50: SampledStatistic
    p90: SampledStatistic
    p95: SampledStatistic
    p99: SampledStatistic


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitStatus:
    """A limit beside what was simulated; `simulated` is None where no request had such a latency."""

    limit: LatencyLimit
    simulated: SampledStatistic | None
    is_met: bool
    within: float | None  # share of requests whose latency is at most the limit

    @property
    def is_close(self) -> bool:
        """Whether the limit lies within the sampling error, so that a longer simulation may say otherwise."""
        sampled = self.simulated
        if sampled is None or sampled.low is None or sampled.high is None:
            return False
        return sampled.low <= self.limit.most_s <= sampled.high


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedLatencies:
    """Latencies of one or several plays (of different seeds) with every step `factor` times as long."""

    values: tuple[tuple[str, Any], ...]  # quantity, s by request in order
    gap_tokens: Any  # tokens by bin of the time between tokens
    gap_s: Any  # middle of each bin, s
    rejected: float = 0.0  # share of requests that no replica can ever hold

    def answers(self, limit: LatencyLimit) -> bool:
        """Whether so many requests are answered that the limited statistic can exist; a mean needs all of them."""
        return self.rejected <= (0.0 if limit.percent is None else 1.0 - limit.percent / 100)

    def of(self, quantity: str) -> Any:
        """Latencies of all measured requests in order, s; not of the time between tokens."""
        return dict(self.values)[quantity]

    def statistic(self, quantity: str, statistic: str, error: bool = True) -> SampledStatistic | None:
        """One statistic of one latency, with its error if asked for; None without a value."""
        if quantity == "itl":
            return self._gap(statistic)
        values = self.of(quantity)
        if not len(values):
            return None
        if statistic == MEAN:
            mean, half = float(values.mean()), half_width(values) if error else None
            return SampledStatistic(value=mean) if half is None else SampledStatistic(value=mean, low=mean - half, high=mean + half)
        return percentile(values, float(statistic[1:]), error)

    def _gap(self, statistic: str) -> SampledStatistic | None:
        tokens = self.gap_tokens.sum()
        if not tokens:
            return None
        if statistic == MEAN:
            return SampledStatistic(value=float((self.gap_s * self.gap_tokens).sum() / tokens))
        at = np.searchsorted(np.cumsum(self.gap_tokens), tokens * float(statistic[1:]) / 100)
        return SampledStatistic(value=float(self.gap_s[at]))

    def within(self, quantity: str, most_s: float) -> float | None:
        """Share of requests (for the time between tokens, of tokens) whose latency is at most `most_s`."""
        if quantity == "itl":
            tokens = self.gap_tokens.sum()
            return float(self.gap_tokens[self.gap_s <= most_s].sum() / tokens) if tokens else None
        values = self.of(quantity)
        return float((values <= most_s).mean()) if len(values) else None

    def all(self) -> tuple[LatencyStatistics, ...]:
        """Every statistic of every latency that has a value."""
        rows = []
        for quantity in QUANTITIES:
            statistics = {statistic: self.statistic(quantity, statistic) for statistic in STATISTICS}
            if all(value is not None for value in statistics.values()):
                rows.append(LatencyStatistics(quantity=quantity, **statistics))  # type: ignore[arg-type]
        return tuple(rows)

    def statuses(self, limits: Sequence[LatencyLimit], stable: bool) -> tuple[LimitStatus, ...]:
        """Every limit beside its statistic; in an unstable queue no limit is met."""
        rows = []
        for limit in limits:
            simulated = self.statistic(limit.quantity, limit.statistic)
            is_met = stable and self.answers(limit) and simulated is not None and simulated.value <= limit.most_s
            rows.append(LimitStatus(limit=limit, simulated=simulated, is_met=is_met, within=self.within(limit.quantity, limit.most_s)))
        return tuple(rows)


def percentile(values: Floats, percent: float, error: bool = True) -> SampledStatistic:
    """A percentile of latencies in order of arrival, with a 95 % confidence interval for enough of them."""
    value = float(np.percentile(values, percent))
    if not error or len(values) < FEW:
        return SampledStatistic(value=value)
    usable = len(values) // BATCHES * BATCHES
    beyond = (values[:usable] > value).reshape(BATCHES, -1).mean(axis=1)
    half = 100 * STUDENT * float(beyond.std(ddof=1)) / BATCHES**0.5
    low, high = np.percentile(values, (max(0.0, percent - half), min(100.0, percent + half)))
    return SampledStatistic(value=value, low=float(low), high=float(high))


def latencies_of(runs: Sequence[tuple[SimulatedRun, MeasuredTimes]], factor: float) -> PlayedLatencies:
    """Latencies of plays whose times are in units of `factor` seconds."""
    values = tuple(
        (quantity, np.concatenate([sample.values(f"{quantity}_s", known=True) for _, sample in runs]) * factor)
        for quantity in QUANTITIES
        if quantity != "itl"
    )
    tokens = np.sum([np.asarray(state.log[: slot.GAPS]) for run, _ in runs for state in run.states], axis=0)
    middle = slot.GAP_LEAST * slot.GAP_RATIO ** (np.arange(slot.GAPS) + 0.5)
    rejected = float(np.mean([run.refused.mean() for run, _ in runs]))
    return PlayedLatencies(values=values, gap_tokens=tokens, gap_s=middle * factor, rejected=rejected)

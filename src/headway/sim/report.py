"""What a run says: latencies as vLLM's `bench serve` defines them, rates, occupancy, distance to saturation, cost.

TTFT: from sending a request to its first token. TPOT: (E2E - TTFT) / (output tokens - 1), of requests with more than one token. ITL: time
between two tokens of a request. E2E: to the last token. Goodput: requests per second that keep every limit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.sim import state as of
from headway.sim.simulate import SimulatedRun

SPANS = {"ttft_s": ("arrival", "first"), "tpot_s": ("first", "finish"), "e2e_s": ("arrival", "finish"), "queue_s": ("arrival", "scheduled")}
SLICE = 1 << 18  # requests looked at together
PERCENTILES = (50, 90, 95, 99)
BATCHES = 20  # of requests in order of arrival, whose means give a confidence interval
STUDENT = 2.093  # 97.5 % point of Student's t with 19 degrees of freedom
FEW = 2 * BATCHES  # requests that an interval needs


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredTimes:
    """Latencies of the requests that count: completed, and sent after the warm-up. Each is worked out where it is asked for."""

    run: SimulatedRun
    counts: Any  # which requests

    @property
    def ttft_s(self) -> Any:
        """From sending to the first token."""
        return self.values("ttft_s")

    @property
    def tpot_s(self) -> Any:
        """Between tokens, by request; nan for an answer of one token."""
        return self.values("tpot_s")

    def values(self, key: str, known: bool = False) -> Any:
        """One latency of every request that counts, or of those that have it; a slice at a time: ten million leave no room for copies."""
        start, end = (getattr(self.run, name) for name in SPANS[key])
        numbers, at = np.empty(int(self.counts.sum())), 0
        for rows in slices(len(self.counts)):
            keep = self.counts[rows]
            part = (end[rows] - start[rows])[keep]
            if key == "tpot_s":
                output = self.run.traffic.output[rows][keep]
                part = np.where(output > 1, part / np.maximum(output - 1, 1), np.nan)
            part = part[~np.isnan(part)] if known else part
            numbers[at : at + len(part)] = part
            at += len(part)
        return numbers[:at]


def slices(count: int) -> Iterator[slice]:
    """Rows in order, so many at a time."""
    return (slice(start, start + SLICE) for start in range(0, count, SLICE))


def measured(run: SimulatedRun, warmup: float, only: Any = None) -> MeasuredTimes:
    """The rule: the first `warmup` share of requests, by time of sending, is left out; `only` some requests where asked."""
    counts = run.completed
    left_out = int(warmup * run.is_sent.sum())
    if run.rules.closed:  # users ask in an order that depends on the answers
        counts[np.argsort(np.where(np.isfinite(run.arrival), run.arrival, np.inf), kind="stable")[:left_out]] = False
    elif run.interrupted:
        counts[np.flatnonzero(run.is_sent)[:left_out]] = False
    else:
        counts[:left_out] = False
    counts &= True if only is None else only
    return MeasuredTimes(run=run, counts=counts)


def latencies(run: SimulatedRun, sample: MeasuredTimes) -> dict[str, Any]:
    """Means, percentiles and, of means, the half width of the 95 % confidence interval."""
    row: dict[str, Any] = {}
    for key in SPANS:
        row |= latency_summary(key, sample.values(key, known=True))
    return row | gaps(run)


def latency_summary(key: str, values: Any) -> dict[str, Any]:
    """One latency's mean, interval and percentiles; the values lose their order."""
    names = (f"mean_{key}", f"mean_{key.removesuffix('_s')}_ci_s", *(f"p{percent}_{key}" for percent in PERCENTILES))
    if not len(values):
        return dict.fromkeys(names)
    mean, width = float(values.mean()), half_width(values)
    percentiles = np.percentile(values, PERCENTILES, overwrite_input=True)
    return dict(zip(names, (mean, width, *map(float, percentiles)), strict=True))


def half_width(values: Any) -> float | None:
    """Half of the 95 % confidence interval of a mean, by batch means; None for too few."""
    if len(values) < FEW:
        return None
    usable = len(values) // BATCHES * BATCHES
    means = values[:usable].reshape(BATCHES, -1).mean(axis=1)
    return float(STUDENT * means.std(ddof=1) / np.sqrt(BATCHES))


def gaps(run: SimulatedRun) -> dict[str, Any]:
    """Inter-token times of the whole run, from their histogram: a percentile is good to half a per cent."""
    tokens = np.sum([np.asarray(state.log[: of.GAPS]) for state in run.states], axis=0)
    total = tokens.sum()
    keys = ("mean_itl_s", *(f"p{percent}_itl_s" for percent in PERCENTILES))
    if not total:
        return dict.fromkeys(keys)
    middle = of.GAP_LEAST * of.GAP_RATIO ** (np.arange(of.GAPS) + 0.5)
    cumulative_tokens = np.cumsum(tokens)
    values = [float((middle * tokens).sum() / total)]
    values += [float(middle[np.searchsorted(cumulative_tokens, total * percent / 100)]) for percent in PERCENTILES]
    return dict(zip(keys, values, strict=True))


def rates(run: SimulatedRun) -> dict[str, Any]:
    """What was offered and what came out, from the first request sent to the last token."""
    completed, is_sent = run.completed, run.is_sent
    completions = int(completed.sum())
    start, last = run.sent_between(is_sent)
    end = float(np.fmax.reduce(run.finish)) if completions else run.end
    span, offered = end - start, last - start
    output, prompt = (float(values.sum(where=completed)) for values in (run.traffic.output, run.traffic.prompt))
    return {
        "requests": len(run.traffic), "completed": completions, "rejected": int(run.refused.sum()),
        "cancelled": int(run.cancelled.sum()), "duration_s": span,
        "offered_req_per_s": (int(is_sent.sum()) - 1) / offered if offered > 0 else None,
        "req_per_s": completions / span if span > 0 else None,
        "output_tok_per_s": output / span if span > 0 else None,
        "total_tok_per_s": (output + prompt) / span if span > 0 else None,
    }  # fmt: skip


def occupancy(run: SimulatedRun) -> dict[str, Any]:
    """How full the replicas were, over the time that each was simulated."""
    time = sum(float(state.at[of.NOW]) for state in run.states) or 1.0
    series = in_service(run)
    steps = sum(float(state.count[of.STEP]) for state in run.states)
    return {
        "busy_share": run.total(of.BUSY) / time,
        "waiting_share": run.total(of.FULL_S) / time,
        "running_mean": series[0] / time,
        "waiting_mean": series[1] / time,
        "decode_batch_mean": run.total(of.DECODED) / steps if steps else None,
        "kv_used_mean": series[2] / time / run.rules.capacity if run.rules.capacity else None,
        "kv_used_peak": max(state.count[of.PEAK_BLOCKS] for state in run.states) / run.rules.capacity if run.rules.capacity else None,
        "kv_tokens": run.rules.capacity * run.rules.block,
        "preemptions": run.total_count(of.PREEMPTED),
        "swaps": run.total_count(of.SWAPPED),
        "steps": run.total_count(of.STEPS),
    }


def in_service(run: SimulatedRun) -> Any:
    """Requests running and waiting, and blocks held, each times seconds, of all replicas; and seconds in steps."""
    return np.sum([np.asarray(state.log[of.GAPS :]).reshape(of.BINS, of.SERIES).sum(axis=0) for state in run.states], axis=0)


def goodput(run: SimulatedRun, sample: MeasuredTimes, limits: Mapping[str, float]) -> dict[str, Any]:
    """Requests per second that keep every limit, and their share; None without limits."""
    if not limits:
        return {"goodput_req_per_s": None, "good_share": None}
    good = np.ones(int(sample.counts.sum()), bool)
    for key, most in limits.items():
        good &= ~(sample.values(key) > most)
    share = float(good.mean()) if len(good) else None
    rate = rates(run)["req_per_s"]
    return {"goodput_req_per_s": share * rate if share is not None and rate else None, "good_share": share}

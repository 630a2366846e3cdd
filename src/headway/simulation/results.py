"""Results of a run: latencies as vLLM's `bench serve` defines them, rates, occupancy and cost, as a row and as trace events.

TTFT: from sending a request to its first token. TPOT: (E2E - TTFT) / (output tokens - 1), for requests with more than one token. ITL: time
between two tokens of a request. E2E: to the last token. Goodput: requests per second that keep every limit.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.core import files
from headway.core.columns import PERCENTILES, percentile_mark
from headway.simulation import state as slot
from headway.simulation.fleet import Fleet
from headway.simulation.prefix_tiers import hit_rates
from headway.simulation.settled import Verdict
from headway.simulation.simulate import SimulatedRun
from headway.simulation.traffic.requests import Floats, Ints, Mask

SPANS = {"ttft_s": ("arrival", "first"), "tpot_s": ("first", "finish"), "e2e_s": ("arrival", "finish"), "queue_s": ("arrival", "scheduled")}
FROM_ARRIVAL = ("ttft_s", "e2e_s")  # latencies that hold the time to the first token
SLICE = 1 << 18  # requests processed together
BATCHES = 20  # batches in order of arrival, whose means give a confidence interval
STUDENT = 2.093  # 97.5 % point of Student's t with 19 degrees of freedom
FEW = 2 * BATCHES  # least requests for an interval


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredTimes:
    """Latencies of completed requests sent after the warm-up, computed on demand."""

    run: SimulatedRun
    counts: Any  # mask of the measured requests

    @property
    def ttft_s(self) -> Any:
        """Seconds from sending to the first token, by request."""
        return self.values("ttft_s")

    @property
    def tpot_s(self) -> Any:
        """Mean seconds between tokens, by request; nan for an answer of one token."""
        return self.values("tpot_s")

    def values(self, key: str, known: bool = False) -> Any:
        """One latency of every measured request (`known`: without nan), in slices, since ten million leave no room for copies."""
        start, end = (getattr(self.run, name) for name in SPANS[key])
        numbers, at = np.empty(int(self.counts.sum())), 0
        for rows in slices(len(self.counts)):
            keep = self.counts[rows]
            part = (end[rows] - start[rows])[keep]
            if self.run.first_token_factor != 1 and key in FROM_ARRIVAL:
                part += (self.run.first_token_factor - 1) * (self.run.first[rows] - self.run.arrival[rows])[keep]
            if key == "tpot_s":
                output = self.run.traffic.output[rows][keep]
                part = np.where(output > 1, part / np.maximum(output - 1, 1), np.nan)
            part = part[~np.isnan(part)] if known else part
            numbers[at : at + len(part)] = part
            at += len(part)
        return numbers[:at]


def slices(count: int) -> Iterator[slice]:
    """Slices of rows in order, SLICE rows each."""
    return (slice(start, start + SLICE) for start in range(0, count, SLICE))


def measured(run: SimulatedRun, warmup: float, only: Mask | None = None) -> MeasuredTimes:
    """The measured requests: the first `warmup` share by send time is left out; `only` restricts them further."""
    counts = run.completed
    left_out = int(warmup * run.is_sent.sum())
    if run.rules.closed:  # closed-loop send order depends on the answers
        counts[np.argsort(np.where(np.isfinite(run.arrival), run.arrival, np.inf), kind="stable")[:left_out]] = False
    elif run.interrupted:
        counts[np.flatnonzero(run.is_sent)[:left_out]] = False
    else:
        counts[:left_out] = False
    counts &= True if only is None else only
    return MeasuredTimes(run=run, counts=counts)


def latencies(run: SimulatedRun, sample: MeasuredTimes, percentiles: Sequence[float] = PERCENTILES) -> dict[str, Any]:
    """Means with the half width of their 95 % confidence interval, percentiles and the largest of every latency; the share that waits."""
    row: dict[str, Any] = {}
    for key in SPANS:
        values = sample.values(key, known=True)
        if key == "queue_s":
            row["wait_share"] = float((values > 0.0).mean()) if len(values) else None
        row |= latency_summary(key, values, percentiles)
    return row | gaps(run, percentiles)


def latency_summary(key: str, values: Floats, percentiles: Sequence[float] = PERCENTILES) -> dict[str, Any]:
    """Mean, interval, percentiles and the largest of one latency; reorders `values`."""
    names = latency_names(key, percentiles)
    if not len(values):
        return dict.fromkeys(names)
    mean, width, largest = float(values.mean()), half_width(values), float(values.max())
    points = np.percentile(values, percentiles, overwrite_input=True)
    return dict(zip(names, (mean, width, *map(float, points), largest), strict=True))


def latency_names(key: str, percentiles: Sequence[float]) -> tuple[str, ...]:
    """The keys of one latency: mean, interval, percentiles, the largest."""
    return (f"mean_{key}", f"mean_{key.removesuffix('_s')}_ci_s", *percentile_keys(percentiles, key), f"max_{key}")


def percentile_keys(percentiles: Sequence[float], key: str) -> list[str]:
    """The keys of percentiles of one quantity."""
    return [f"p{percentile_mark(percent)}_{key}" for percent in percentiles]


def half_width(values: Floats) -> float | None:
    """Half width of the 95 % confidence interval of a mean, by batch means; None for too few values."""
    if len(values) < FEW:
        return None
    usable = len(values) // BATCHES * BATCHES
    means = values[:usable].reshape(BATCHES, -1).mean(axis=1)
    return float(STUDENT * means.std(ddof=1) / np.sqrt(BATCHES))


def gaps(run: SimulatedRun, percentiles: Sequence[float] = PERCENTILES) -> dict[str, Any]:
    """Mean, percentiles and the largest of inter-token times of the whole run, from a histogram accurate to half a per cent."""
    tokens = np.sum([np.asarray(state.log[: slot.GAPS]) for state in run.states], axis=0)
    total = tokens.sum()
    keys = ("mean_itl_s", *percentile_keys(percentiles, "itl_s"), "max_itl_s")
    if not total:
        return dict.fromkeys(keys)
    middle = slot.GAP_LEAST * slot.GAP_RATIO ** (np.arange(slot.GAPS) + 0.5)
    points = (middle[at] for at in places(tokens, (*percentiles, 100.0)))
    return dict(zip(keys, map(float, ((middle * tokens).sum() / total, *points)), strict=True))


def places(counts: Any, percentiles: Sequence[float]) -> list[int]:
    """The bins of a histogram in which its percentiles lie.

    >>> places(np.array([0.0, 90.0, 0.0, 10.0, 0.0]), (50.0, 90.0, 95.0, 100.0))
    [1, 1, 3, 3]
    """
    cumulative = np.cumsum(counts)
    return [int(np.searchsorted(cumulative, cumulative[-1] * percent / 100)) for percent in percentiles]


def batches(run: SimulatedRun, percentiles: Sequence[float] = PERCENTILES) -> dict[str, Any]:
    """Mean, spread, percentiles and the largest of the requests in a step, over the steps of all replicas."""
    keys = ("mean_batch", "std_batch", *percentile_keys(percentiles, "batch"), "max_batch")
    steps = np.sum([np.asarray(state.batches) for state in run.states], axis=0)
    if not steps.any():
        return dict.fromkeys(keys)
    sizes, shares = np.arange(len(steps)), steps / steps.sum()
    mean = float(shares @ sizes)
    points = places(steps, (*percentiles, 100.0))
    return dict(zip(keys, (mean, float(np.sqrt(shares @ (sizes - mean) ** 2)), *points), strict=True))


def run_rates(run: SimulatedRun) -> dict[str, Any]:
    """Offered and completed rates, from the first request sent to the last token."""
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
    """Mean occupancy of the replicas, over the simulated time of each."""
    time = sum(float(state.at[slot.NOW]) for state in run.states) or 1.0
    series = in_service(run)
    steps = sum(float(state.count[slot.STEP]) for state in run.states)
    return {
        "busy_share": run.total(slot.BUSY) / time,
        "waiting_share": run.total(slot.FULL_S) / time,
        "queued_share": queued_share(run),
        "running_mean": series[0] / time,
        "waiting_mean": series[1] / time,
        "decode_batch_mean": run.total(slot.DECODED) / steps if steps else None,
        "kv_used_mean": series[2] / time / run.rules.capacity if run.rules.capacity else None,
        "kv_used_peak": max(state.count[slot.PEAK_BLOCKS] for state in run.states) / run.rules.capacity if run.rules.capacity else None,
        "kv_tokens": run.rules.capacity * run.rules.block,
        "preemptions": run.total_count(slot.PREEMPTED),
        "swaps": run.total_count(slot.SWAPPED),
        "steps": run.total_count(slot.STEPS),
    }


def queued_share(run: SimulatedRun) -> float | None:
    """Share of requests that a step passed over: where seats are servers, Erlang's C."""
    entered = int((run.is_sent & ~run.refused).sum()) if run.tally is None else run.tally.sent_count - run.tally.refused
    return run.total_count(slot.PASSED) / entered if entered else None


def in_service(run: SimulatedRun) -> Any:
    """Running requests, waiting requests and blocks held, integrated over seconds and all replicas; and seconds in steps."""
    return np.sum([np.asarray(state.log[slot.GAPS :]).reshape(slot.BINS, slot.SERIES).sum(axis=0) for state in run.states], axis=0)


def goodput(run: SimulatedRun, sample: MeasuredTimes, limits: Mapping[str, float]) -> dict[str, Any]:
    """Goodput in requests per second that keep every limit, and their share; None without limits."""
    if not limits:
        return {"goodput_req_per_s": None, "good_share": None}
    good = np.ones(int(sample.counts.sum()), bool)
    for key, most in limits.items():
        good &= ~(sample.values(key) > most)
    share = float(good.mean()) if len(good) else None
    rate = run_rates(run)["req_per_s"]
    return {"goodput_req_per_s": share * rate if share is not None and rate else None, "good_share": share}


HIDDEN = ("ttft", "tpot", "e2e", "queue", "itl", "wait_share")  # latencies without a steady value if the queue grows forever


def row(
    fleet: Fleet, run: SimulatedRun, verdict: Verdict, limits: Mapping[str, float], warmup: float, lasting: bool,
    percentiles: Sequence[float] = PERCENTILES,
) -> dict[str, Any]:  # fmt: skip
    """Every figure of a run; `lasting`: the traffic samples an endless load, so an unstable run has no latencies."""
    load, able = verdict.standing, verdict.standing.capacity
    figures, count, rates = standing_figures(run, limits, warmup, percentiles)
    if lasting and not load.stable:
        figures = {key: None if any(part in key for part in HIDDEN) or "good" in key else value for key, value in figures.items()}
    standing = {
        "stable": load.stable, "capacity_req_per_s": able and able.per_s, "capacity_ci_req_per_s": able and able.half_width,
        "utilisation": load.utilisation,
        "queue_growth_per_s": load.growth if not load.stable else None, "measured": count,
    }  # fmt: skip
    full = occupancy(run) | batches(run, percentiles) | {"little": little(fleet, run)}
    if fleet.has_no_kv_limit:
        full |= dict.fromkeys(key for key in full if key.startswith("kv_"))
    if run.prefill is not None:
        before = occupancy(run.prefill)
        full |= {f"prefill_{key}": before[key] for key in ("busy_share", "running_mean", "waiting_mean", "kv_used_mean")}
        full["queued_share"] = before["queued_share"]  # of the queue that prompts wait in, as the share that waits
    if fleet.prefix is not None:  # of the replicas that prefill
        full |= hit_rates([state.cache for state in (run.prefill or run).states], fleet.prefix.names)
    if verdict.hits is not None:
        full |= {"hit_rate_settled": verdict.hits, "judged_requests": verdict.requests, "hit_rate_drifts": not verdict.settled}
        full |= {"capacity_without_hits_req_per_s": verdict.without_hits, "recovers": verdict.recovers}
    speed = {"wall_s": run.wall_s, "compile_s": run.compile_s}
    return fleet.identity() | standing | rates | figures | full | cost(fleet, run, rates) | speed


def standing_figures(
    run: SimulatedRun, limits: Mapping[str, float], warmup: float, percentiles: Sequence[float]
) -> tuple[dict[str, Any], int, dict[str, Any]]:  # fmt: skip
    """Latencies and goodput of a run, the requests behind them, and its rates."""
    tally = run.tally
    if tally is not None:
        return tally.latencies(run, percentiles) | tally.goodput(), tally.measured, tally.rates()
    sample = measured(run, warmup)
    figures = latencies(run, sample, percentiles) | goodput(run, sample, limits)
    return figures, int(sample.counts.sum()), run_rates(run)


def little(fleet: Fleet, run: SimulatedRun) -> float | None:
    """Counted requests in the replicas, integrated over time, over the times that requests spent there: 1 by Little's law."""
    completed, spent = (run.tally.completed, run.tally.spent_s) if run.tally is not None else (int(run.completed.sum()), None)
    if not completed or (run.interrupted if run.tally is not None else bool(run.cancelled.any())):
        return None
    counts = run.completed
    if spent is None:
        spent = float(np.sum(run.finish, where=counts) - np.sum(run.arrival, where=counts))
    spent -= completed * run.overhead_s
    if fleet.pools is not None:  # during KV transfer a request is in neither pool
        spent -= float(np.sum(fleet.pools.transfer_s(run.traffic.prompt), where=counts))
    pools = [run, run.prefill] if run.prefill is not None else [run]
    request_s = sum(in_service(pool)[part] for pool in pools for part in (0, 1))
    return float(request_s) / spent if spent > 0 else None


def cost(fleet: Fleet, run: SimulatedRun, rates: Mapping[str, Any]) -> dict[str, Any]:
    """Cost of the whole machine over the whole run, and energy of its busy chips at thermal design power."""
    if fleet.query is None or fleet.compiled is None:
        return {}
    price, chips = fleet.query.price, fleet.query.system.chips
    request_rate, tokens = rates["req_per_s"], rates["output_tok_per_s"]
    figures: dict[str, Any] = {"usd_per_request": None, "usd_per_mtok_out_and_prompt": None, "joule_per_token": None}
    if price is not None and request_rate:
        usd = float(price.value * chips / request_rate)
        figures |= {"usd_per_request": usd, "usd_per_mtok_out_and_prompt": usd * request_rate / tokens * 1e6}
    tdp = fleet.query.system.chip.tdp
    if tdp is not None and run.total(slot.EMITTED):
        busy = float(fleet.compiled.chips) * run.total(slot.BUSY)
        if run.prefill is not None and fleet.pools is not None:
            replica = fleet.compiled if fleet.pools.first is None else fleet.pools.first.compiled
            busy += float(replica.chips) * run.prefill.total(slot.BUSY)
        figures["joule_per_token"] = float(tdp) * busy / run.total(slot.EMITTED)
    return figures


def impossible(fleet: Fleet) -> dict[str, Any]:
    """The row of a layout that cannot run."""
    return fleet.identity() | {"fits": False, "why": fleet.why}


MOST_REQUESTS = 5_000
MICRO = 1e6
COUNTERS = ("running", "waiting", "kv_blocks")


def save(run: SimulatedRun, path: str) -> int:
    """Write the first MOST_REQUESTS requests and every replica's curves as trace events; returns the number of requests."""
    requests = np.flatnonzero(run.completed)[:MOST_REQUESTS]
    events = [*_curves(run), *_requests(run, requests)]
    files.save(path, json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}))
    return len(requests)


def curves(state: slot.State) -> dict[str, Any]:
    """Means over each bin of time: start, requests running and waiting, blocks held, busy share."""
    width = float(state.at[slot.BIN_S])
    bins = min(slot.BINS, int(state.at[slot.NOW] / width) + 1)
    sums = np.asarray(state.log[slot.GAPS :], float).reshape(slot.BINS, slot.SERIES)[:bins] / width
    series = dict(zip((*COUNTERS, "busy"), sums.T, strict=True))
    return {"time_s": np.arange(bins) * width} | series


def _curves(run: SimulatedRun) -> list[dict[str, Any]]:
    events = []
    for number, state in enumerate(run.states):
        events.append({"ph": "M", "pid": number, "name": "process_name", "args": {"name": f"replica {number}"}})
        series = curves(state)
        for at, time in enumerate(series["time_s"]):
            events += [
                {"ph": "C", "pid": number, "name": name, "ts": time * MICRO, "args": {name: round(float(series[name][at]), 3)}}
                for name in COUNTERS
            ]
    return events


def _requests(run: SimulatedRun, requests: Ints) -> list[dict[str, Any]]:
    """Trace events of requests, each on the first row of its replica that is free at its arrival."""
    free: dict[int, list[float]] = {}
    events = []
    for request in requests:
        rows = free.setdefault(int(run.replica[request]), [])
        row = next((at for at, until in enumerate(rows) if until <= run.arrival[request]), len(rows))
        rows[row : row + 1] = [float(run.finish[request])]
        marks = (run.arrival[request], run.scheduled[request], run.first[request], run.finish[request])
        parts = zip(("queue", "prompt", "answer"), marks, marks[1:], strict=False)
        details = {"request": int(request), "prompt": int(run.traffic.prompt[request]), "output": int(run.traffic.output[request])}
        place = {"ph": "X", "pid": int(run.replica[request]), "tid": row + 1, "args": details}
        events += [
            place | {"name": name, "ts": float(start) * MICRO, "dur": float(end - start) * MICRO}
            for name, start, end in parts
            if end > start
        ]
    return events

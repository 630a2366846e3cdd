"""Capacity of replicas, stability of their queue at a load, and the highest load that meets limits.

Capacity is simulated, not derived: requests like those of the whole traffic wait from the start, in an order of their own, and are counted
as they are let in. So the order in which a traffic brings its requests does not change the capacity.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.simulation.simulate import SimulatedRun, simulate, turns_of
from headway.simulation.state import TALKING_USERS, TALKS, USERS, Rules
from headway.simulation.step_time import StepPace
from headway.simulation.traffic.requests import Floats, Ints, Mask, Traffic

ROUNDS, FEWEST_ROUNDS = 20, 6  # requests per batch slot; fewer for very large batches
SETTLING = 0.3  # share of the requests that pass before counting begins
LEAST, MOST = 400, 20_000
BLOCKS = 10  # equal samples of the traffic, one after another, whose durations give the error
STUDENT = 2.262  # 97.5 % point of Student's t with 9 degrees of freedom
CLOSE_ENOUGH = 0.005  # relative half width beyond which a longer run is made
MOST_MEASURED = 200  # replicas whose capacity is kept
LOOKED_AT = 200_000  # requests of a longer traffic that the sample is drawn from
NORMAL_95 = 1.96  # 97.5 % point of the normal distribution
SURE = 3.0  # standard deviations of arrivals and lengths beyond which queue growth is not chance


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredCapacity:
    """Requests per second that replicas complete under a full queue."""

    per_s: float
    half_width: float  # of the 95 % confidence interval

    def scaled(self, factor: float) -> MeasuredCapacity:
        """Capacity of `factor` times as many replicas, or at steps shorter by it."""
        return MeasuredCapacity(per_s=self.per_s * factor, half_width=self.half_width * factor)


def capacity(traffic: Traffic, pace: StepPace, rules: Rules, replicas: int, how: str = "auto") -> MeasuredCapacity | None:
    """Capacity of replicas for requests like those of a traffic, whatever their order; None if no request can be served."""
    prompt, output = _served_lengths(traffic, rules)
    if not len(prompt):
        return None
    lengths = hashlib.sha256(prompt.astype(np.int64).tobytes() + output.astype(np.int64).tobytes()).digest()
    key = (lengths, pace.source, np.asarray(pace.line).tobytes(), rules, how)
    if key not in _measured:
        _measured[key] = _of_one(prompt, output, pace, rules, how)
        if len(_measured) > MOST_MEASURED:
            del _measured[next(iter(_measured))]
    return _measured[key].scaled(replicas)


_measured: dict[tuple[Any, ...], MeasuredCapacity] = {}  # of a replica, which is the same at every rate that is asked about


def _of_one(prompt: Ints, output: Ints, pace: StepPace, rules: Rules, how: str) -> MeasuredCapacity:
    places, count = _queue(prompt, output, rules)
    measured = _saturated(prompt, output, pace, rules, places, count, how)
    longer = min(MOST, max(len(prompt), count))
    if measured.half_width > CLOSE_ENOUGH * measured.per_s and longer > count:
        measured = _saturated(prompt, output, pace, rules, places, longer, how)
    return measured


def _queue(prompt: Ints, output: Ints, rules: Rules) -> tuple[int, int]:
    """Sequences that a replica holds at once, and the requests of a queue long enough for them."""
    places = min(rules.seats, max(1, int(rules.capacity / (float((prompt + output).mean()) / rules.block))))
    return places, int(np.clip(ROUNDS * places, LEAST, max(MOST, FEWEST_ROUNDS * places)))


def saturated_sample(traffic: Traffic, rules: Rules) -> tuple[int, float]:
    """Requests that the capacity of one replica is measured with, a longer run included, and their mean output: what it will cost."""
    prompt, output = _served_lengths(traffic, rules)
    if not len(prompt):
        return 0, 0.0
    places, count = _queue(prompt, output, rules)
    longer = min(MOST, max(len(prompt), count))
    return places + count + (places + longer if longer > count else 0), float(output.mean())


def _served_lengths(traffic: Traffic, rules: Rules) -> tuple[Any, Any]:
    """Prompts and outputs of the requests that the cache can hold, of a long traffic those of a sample spread over all of it."""
    prompt, output, count = traffic.prompt, traffic.output, len(traffic)
    if count > LOOKED_AT:
        rows = ((np.arange(LOOKED_AT) + np.random.default_rng(0).random(LOOKED_AT)) * (count / LOOKED_AT)).astype(np.int64)
        prompt, output = prompt[rows], output[rows]
    fits = (prompt + output + rules.block - 1) // rules.block <= rules.capacity
    return prompt[fits], output[fits]


def like_order(prompt: Ints, output: Ints, strata: int) -> Any:
    """Rows in an order in which neighbours are alike, the same for any order of the requests: by prompt, in strata of it by output."""
    by_prompt = np.lexsort((output, prompt))
    stratum = np.arange(len(prompt)) * strata // len(prompt)
    along = output[by_prompt] * np.where(stratum % 2, -1, 1)
    return by_prompt[np.lexsort((along, stratum))]


def _saturated(prompt: Ints, output: Ints, pace: StepPace, rules: Rules, places: int, count: int, how: str) -> MeasuredCapacity:
    """Capacity of one replica from a queue of about `count` requests.

    The queue begins with requests already under way, as a full batch holds them. Then follow BLOCKS samples of the lengths, each spread
    over all of them and shuffled; before the first stands the end of the last, so that what is in service at the end is like what was
    at the start.
    """
    settling, window = int(SETTLING * count), min(places, count // 6)
    size, draw = max(1, (count - settling - window) // BLOCKS), np.random.default_rng(0)
    order = like_order(prompt, output, max(1, round(size**0.5)))
    offsets = (np.arange(BLOCKS) + 0.5) / BLOCKS
    blocks = [order[((np.arange(size) + offset) * (len(prompt) / size)).astype(np.int64)] for offset in offsets]
    rows = np.concatenate([draw.permutation(block) for block in blocks])
    rows = np.concatenate((np.resize(rows[::-1], settling)[::-1], rows, rows[:window]))
    begun, done_tokens = _under_way(output, order, places, draw)
    prompts = np.concatenate((prompt[begun] + done_tokens, prompt[rows]))
    outputs = np.concatenate((output[begun] - done_tokens, output[rows]))
    run = simulate(Traffic.of(np.zeros(len(prompts)), prompts, outputs), pace, rules._replace(closed=0), how=how)
    if run.interrupted:
        raise KeyboardInterrupt
    return rate_of_admission(run.scheduled[places + settling :], size, window)


def _under_way(output: Ints, order: Ints, places: int, draw: np.random.Generator) -> tuple[Any, Any]:
    """Requests of a full batch and the tokens that each has: long answers stand in it as often as they are long, part done.

    Answers up to the mean begin, so that requests of one length go in waves, as they do in the long run.
    """
    tokens = np.cumsum(output[order], dtype=float)
    at = np.searchsorted(tokens, (np.arange(places) + 0.5) * (tokens[-1] / places))
    begun = draw.permutation(order[at])
    lengths = output[begun]
    return begun, np.where(lengths > output.mean(), (draw.random(places) * lengths).astype(np.int64), 0)


def rate_of_admission(scheduled: Floats, size: int, window: int) -> MeasuredCapacity:
    """Requests let in per second, over blocks of `size` requests.

    Requests of like length that are let in together end together. A mean over spans that begin at each of `window` requests makes the
    rate independent of where in such a wave a block begins.
    """
    marks = np.array([scheduled[block * size : block * size + window].mean() for block in range(BLOCKS + 1)])
    spans = np.diff(marks)
    per_s = BLOCKS * size / float(marks[-1] - marks[0])
    return MeasuredCapacity(per_s=per_s, half_width=per_s * STUDENT * float(spans.std(ddof=1) / spans.mean()) / BLOCKS**0.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Saturation:
    """Utilisation and stability of a run against the capacity of its replicas."""

    capacity: MeasuredCapacity | None  # of all replicas
    utilisation: float | None
    growth: float  # requests per second by which the queue grows
    stable: bool


def stand(run: SimulatedRun, able: MeasuredCapacity | None, only: Mask | bool = True, rate: float | None = None) -> Saturation:
    """Stability of the queue (of the `only` requests) and utilisation of the replicas; with abandonment every queue is stable.

    A load is unstable if its rate is above the capacity, or if the queue grew over the second half of the arrivals by more than chance:
    either is enough. `able` counts the hits of a prefix cache, if there is one. `rate` is the mean rate of an endless load; without it the
    rate is that of the arrivals.
    """
    is_offered = run.is_sent & ~run.refused & only
    count, (first, last) = int(is_offered.sum()), run.sent_between(is_offered)
    if count < 2 or last <= first or run.rules.closed in (USERS, TALKING_USERS):
        return Saturation(capacity=able, utilisation=None, growth=0.0, stable=True)
    span = last - first
    offered = (count - 1) / span if rate is None else rate * float(1.0 - run.refused.mean())
    if run.rules.leaving:
        return Saturation(capacity=able, utilisation=offered / able.per_s if able else None, growth=0.0, stable=True)
    begin_share, begins = 1.0, is_offered  # of the requests that wait for no answer
    if run.rules.closed == TALKS:  # once no conversation begins any more, the queue only falls
        begins = is_offered & ~turns_of(run.traffic).later
        last, begin_share = begins_end(run, is_offered), float(begins.sum()) / count
    last = max(last, first + span / PARTS)
    growth, chance = _growth(run, is_offered, begins, first, last, rate is not None)
    grows = growth > SURE * chance
    over = able is not None and offered > able.per_s
    if grows and not over and able is not None and run.caches:
        able = carried(run, is_offered, (first + last) / 2, last, offered) or able
    if over and not grows and able is not None:
        growth = (offered - able.per_s) * begin_share
    utilisation = offered / able.per_s if able else None
    return Saturation(capacity=able, utilisation=utilisation, growth=growth if grows or over else 0.0, stable=not (grows or over))


def begins_end(run: SimulatedRun, is_offered: Mask) -> float:
    """Send time of the last offered request that waits for no answer."""
    return run.sent_between(is_offered & ~turns_of(run.traffic).later if run.rules.closed == TALKS else is_offered)[1]


def carried(run: SimulatedRun, is_offered: Mask, start: float, end: float, offered: float) -> MeasuredCapacity | None:
    """What the replicas let in per second while their queue grew: less than hits alone say where a tier loads slowly; None if no less."""
    count = int((is_offered & (run.scheduled > start) & (run.scheduled <= end)).sum())
    per_s = count / (end - start)
    return MeasuredCapacity(per_s=per_s, half_width=NORMAL_95 * count**0.5 / (end - start)) if 0.0 < per_s < offered else None


SLICE = 1 << 18  # requests processed together
PARTS = 40  # equal times in which arrivals are counted


def _growth(run: SimulatedRun, is_offered: Mask, begins: Mask, first: float, last: float, endless: bool) -> tuple[float, float]:
    """Growth of the queue in requests per second over the second half of a time, and its standard deviation by chance.

    Chance is that of arrivals less services: the variance of the counts in equal times and that of the lengths, each at least Poisson's.
    Of conversations, each of which waits for one answer at a time, the chance is that of their begins and of how many pause: later turns
    follow answers, so that in a queue that grows they come ever more slowly. Of an endless load counts in longer times are looked at too,
    so that the swing of a day is no growth; a trace is what it is.
    """
    counts, sums = np.zeros(PARTS + 1), np.zeros((2, 3))
    for start in range(0, len(is_offered), SLICE):
        rows = slice(start, start + SLICE)
        keep = is_offered[rows] & (run.arrival[rows] <= last)
        first_turns = keep & begins[rows]
        counts += np.bincount(((run.arrival[rows][first_turns] - first) * (PARTS / (last - first))).astype(np.int64), minlength=PARTS + 1)
        for sum_of, tokens in zip(sums, (run.traffic.prompt[rows][keep], run.traffic.output[rows][keep]), strict=True):
            lengths = tokens.astype(float)
            sum_of += np.array([len(lengths), lengths.sum(), lengths @ lengths])
    counts[-2] += counts[-1]
    spread = chance_spread(counts[:-1], sums, endless) + 2 * _paused(run, is_offered, last - first)
    grown = queued_at(run, is_offered, last) - queued_at(run, is_offered, (first + last) / 2)
    return grown / ((last - first) / 2), spread**0.5 / ((last - first) / 2)


def chance_spread(counts: Any, sums: Any, endless: bool) -> float:
    """Variance by chance of the growth of a queue over half of a time: of arrivals, counted in equal parts of it, and of lengths."""
    together = (1, 2, 4, 8) if endless else (1,)
    dispersion = [sums_of.var(ddof=1) / sums_of.mean() for sums_of in (counts.reshape(-1, size).sum(axis=1) for size in together)]
    lengths_cv2 = [number * squares / total**2 - 1.0 for number, total, squares in sums]
    return float((max(1.0, *dispersion) + max(1.0, *lengths_cv2)) * counts.sum() / 2)


def _paused(run: SimulatedRun, is_offered: Mask, time: float) -> float:
    """Conversations between two turns, mean over a time; as many more or fewer as their root wait at its end by chance."""
    if run.rules.closed != TALKS or run.traffic.pause is None:
        return 0.0
    return float(np.sum(run.traffic.pause, where=is_offered)) / time


def queued_at(run: SimulatedRun, is_offered: Mask, time: float) -> int:
    """Requests sent by `time` that wait for their first admission."""
    return int((is_offered & (run.arrival <= time) & ~(run.scheduled <= time)).sum())


CLOSE = 0.005  # relative gap between a rate that meets the limits and a rate that does not
MOST_HALVINGS = 30
DOUBLINGS = 5
START = 1 / 64  # first rate tried, as a share of the capacity
NEAR = 0.03  # relative distance of the first rates tried around a rate found before
DIGITS = 3  # significant digits of a rate tried, those that are printed, so that the printed rate is the rate itself

Rows = Callable[[float], Mapping[str, Any]]


def printable(rate: float) -> float:
    """A rate that a few digits print in full.

    >>> printable(81.23456)
    81.2
    """
    return float(f"{rate:.{DIGITS}g}")


def meets_limits(row: Mapping[str, Any], limits: Mapping[str, float]) -> bool:
    """Whether a row is stable, at most at capacity, not to be lost at a stop, and meets every limit; a missing figure fails its limit."""
    above = (row.get("utilisation") or 0.0) > 1.0 or row.get("recovers") is False
    return bool(row["stable"]) and not above and all(row.get(key) is not None and row[key] <= most for key, most in limits.items())


def between(rows: Sequence[Mapping[str, Any]], limits: Mapping[str, float]) -> tuple[Any, Any]:
    """The tried rows at the highest rate that meets the limits and at the lowest that does not, None if there is none."""
    good = [row for row in rows if meets_limits(row, limits)]
    bad = [row for row in rows if not meets_limits(row, limits)]
    return max(good, key=lambda row: row["rate"], default=None), min(bad, key=lambda row: row["rate"], default=None)


def highest(at: Rows, capacity: float, limits: Mapping[str, float], near: float | None = None) -> tuple[Any, Any]:
    """The row at the highest rate that meets the limits and the row at the lowest rate tried that does not, None if there is none.

    `near` is a rate to begin around.
    """
    least = printable(capacity * START)
    low, high = (least, printable(capacity * 1.2)) if near is None else (printable(near * (1 - NEAR)), printable(near * (1 + NEAR)))
    good = at(low)
    while not meets_limits(good, limits):
        if low <= least:
            return None, good
        low = max(least, printable(0.8 * low))
        good = at(low)
    bad = at(high)
    for _ in range(DOUBLINGS):  # with prefix hits replicas may carry more than the capacity
        if not meets_limits(bad, limits):
            break
        good, low, high = bad, high, printable((2.0 if near is None else 1.25) * high)
        bad = at(high)
    if meets_limits(bad, limits):
        return bad, None
    return _halved(at, limits, (low, good), (high, bad))


def _halved(at: Rows, limits: Mapping[str, float], below: tuple[float, Any], above: tuple[float, Any]) -> tuple[Any, Any]:
    """The rows at both ends of a gap between rates, halved until it is close."""
    (low, good), (high, bad) = below, above
    for _ in range(MOST_HALVINGS):
        rate = printable((low + high) / 2)
        if high - low <= CLOSE * high or not low < rate < high:
            break
        row = at(rate)
        if meets_limits(row, limits):
            low, good = rate, row
        else:
            high, bad = rate, row
    return good, bad

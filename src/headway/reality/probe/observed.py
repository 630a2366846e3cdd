"""What the requests of a probe tell of a server: its step by batch and context, its batch limit, the interval of its departures.

A gap between two tokens of a request is a step; how many requests decoded meanwhile is counted from the requests themselves. Gaps free of
prefill are gone by where there are any: those in which no prompt waited, else those whose step began no request.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headway.reality.probe.run import ProbeRun, StageRun
from headway.reality.probe.schedule import LOAD, SPARSE

LEAST_GAPS = 8  # of one batch, for a point
JOINED, MOST_JOINED = 0.2, 0.2  # of a usual gap, below which two tokens came in one piece; share of such gaps, from which means are taken
TRIMMED = 0.05  # of the gaps at either end, left out of a mean
NORMAL_END = 1.645  # upper end of a 90 % interval, in standard deviations
MEDIAN_END = 1.253 * NORMAL_END  # the same of a median
REGULAR = 0.7  # coherence of first tokens, from which they follow a clock
LIKELY = 0.62  # the same of a clock of the pace of tokens, as of steps on a timetable
SPREAD = (0.65, 1.6)  # interval over 1.25 times the interdecile range of TTFT, between which it is looked for: waits are uniform on it
LEAST_WAIT = 0.002  # s of that spread, below which a clock is no different from noise
SAME_TRAIN = 0.3  # of an interval, within which tokens are of one train
REWEIGHTED = 12  # rounds of least squares in which late trains count less
LATE = 1.15  # times the interval, from which a step is longer than it and shows itself
ROOM = 1.25  # times the most that decoded at once, which must have asked, for a limit to show


@dataclass(frozen=True, slots=True, kw_only=True)
class StepPoint:
    """The mean step while so many requests with so many tokens of context, all together, decoded."""

    batch: float
    context: float
    seconds: float
    gaps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFit:
    """A step as `fixed_s + request_s * batch + token_s * context`, and half the 90 % interval of each; None: not told apart."""

    fixed_s: float
    request_s: float | None
    token_s: float | None
    fixed_half: float
    request_half: float | None
    token_half: float | None
    points: int


def points_of(run: StageRun) -> list[StepPoint]:
    """Mean steps of a stage, by the batch that decoded."""
    starts = np.sort([request.start for request in run.requests])
    firsts = np.sort([request.times[0] for request in run.requests])
    lasts = np.sort([request.times[-1] for request in run.requests])
    columns = []
    for request in run.requests:
        times, tokens = np.array(request.times), request.output_tokens / len(request.times)  # of one event
        if len(times) < 2:
            continue
        middle = (times[1:] + times[:-1]) / 2
        batch = np.searchsorted(firsts, middle, side="right") - np.searchsorted(lasts, middle)
        waiting = np.searchsorted(starts, middle, side="right") - np.searchsorted(firsts, middle, side="right")
        begun = np.searchsorted(firsts, 1.5 * times[1:] - 0.5 * times[:-1]) - np.searchsorted(firsts, middle)
        own_context = (request.prompt_tokens or run.stage.prompt) + tokens * np.arange(1, len(times))
        columns.append(np.stack([batch, batch * own_context, np.diff(times) / tokens, waiting > 0, begun > 0]))
    if not columns:
        return []
    batches, contexts, seconds, waits, begins = np.concatenate(columns, axis=1)
    points = []
    for clean in (True, False):  # a stage without a clean gap has its prompts in them
        for batch in np.unique(batches) if not points else ():
            among_all = batches == batch
            choices = (among_all & (waits == 0), among_all & (begins == 0)) if clean else (among_all,)
            among = next((choice for choice in choices if choice.sum() >= LEAST_GAPS), None)
            if among is not None:
                step = typical(seconds[among])
                points.append(StepPoint(batch=float(batch), context=float(np.mean(contexts[among])), seconds=step, gaps=int(among.sum())))
    return points


def typical(gaps: np.ndarray) -> float:
    """The gap of most steps: the median, or a mean without its ends where the network often joins two tokens, of which the second is free.

    >>> typical(np.array([0.01] * 9 + [0.5])), round(typical(np.array([0.02, 0.0] * 10)), 3)
    (0.01, 0.01)
    """
    middle = float(np.median(gaps))
    if np.mean(gaps < JOINED * np.max(gaps[gaps <= 2 * np.mean(gaps)])) < MOST_JOINED:
        return middle
    gaps = np.sort(gaps)
    cut = int(TRIMMED * len(gaps))
    return float(np.mean(gaps[cut : len(gaps) - cut]))


def fitted(points: Sequence[StepPoint]) -> StepFit | None:
    """Least squares of relative errors; a slope below zero, or without two values of its input, is left out.

    >>> law = [StepPoint(batch=b, context=b * c, seconds=0.01 + 0.001 * b + 1e-6 * b * c, gaps=50) for b in (1, 2, 4) for c in (100, 900)]
    >>> fit = fitted(law)
    >>> round(fit.fixed_s, 6), round(fit.request_s, 6), round(fit.token_s, 9)
    (0.01, 0.001, 1e-06)
    """
    if not points:
        return None
    inputs = np.array([[1.0, point.batch, point.context] for point in points])
    seconds = np.array([point.seconds for point in points])
    weights = np.sqrt([min(point.gaps, 200) for point in points]) / seconds
    keep = [True, len(np.unique(inputs[:, 1])) > 1, len(np.unique(np.round(inputs[:, 2] / inputs[:, 1], -1))) > 1]
    while True:
        columns = np.flatnonzero(keep)
        matrix = inputs[:, columns] * weights[:, None]
        scale = np.linalg.norm(matrix, axis=0)
        values, _, rank, _ = np.linalg.lstsq(matrix / scale, seconds * weights, rcond=None)
        values = values / scale
        flat = rank < len(columns)
        below = [place for place, value in zip(columns, values, strict=True) if value < 0 or (place and (value == 0 or flat))]
        if not below:
            break
        keep[below[-1]] = False
    left_over = seconds * weights - matrix @ values
    freedom = max(len(points) - len(columns), 1)
    variance = np.linalg.pinv((matrix / scale).T @ (matrix / scale)) * float(left_over @ left_over) / freedom
    halves = NORMAL_END * np.sqrt(np.diag(variance)) / scale
    value_of = dict(zip(columns.tolist(), values.tolist(), strict=True))
    half_of = dict(zip(columns.tolist(), halves.tolist(), strict=True))
    return StepFit(
        fixed_s=value_of.get(0, 0.0), request_s=value_of.get(1), token_s=value_of.get(2), fixed_half=half_of.get(0, 0.0),
        request_half=half_of.get(1), token_half=half_of.get(2), points=len(points),
    )  # fmt: skip


def decoding_at_once(run: StageRun) -> float:
    """Requests that decoded at once for most of a stage: the nineteenth twentieth of its time."""
    moments = sorted([(request.times[0], 1) for request in run.requests] + [(request.times[-1], -1) for request in run.requests])
    at = np.array([moment for moment, _ in moments])
    counts, times = np.cumsum([step for _, step in moments])[:-1], np.diff(at)
    if not times.sum():
        return float(len(run.requests))
    order = np.argsort(counts)
    return max(float(counts[order][np.searchsorted(np.cumsum(times[order]) / times.sum(), 0.95)]), 1.0)


def batch_limit(runs: Sequence[StageRun], prefill_s: float) -> tuple[float, bool]:
    """The most that decoded at once, and whether a limit of the server shows: more asked, and no prompts in progress explain it.

    `prefill_s` is the time to first token of a request alone: prompts read one after another keep as many from decoding at once.
    """
    most = max((decoding_at_once(run) for run in runs), default=0.0)
    for run in runs:
        seconds = float(np.mean([request.e2e_s - request.ttft_s for request in run.requests]))
        if run.stage.concurrency >= ROOM * most and most * prefill_s < seconds / 2 and len(run.requests) > run.stage.concurrency:
            return most, True
    return most, False


def departures(run: StageRun) -> float | None:
    """Interval of a clock that first tokens follow, in seconds; None where they follow the requests.

    Requests that come at any moment wait for the next departure, so that TTFT spreads over an interval, and their first tokens come at
    its multiples.
    """
    firsts = np.array([request.times[0] for request in run.requests])
    waits = np.array([request.ttft_s for request in run.requests])
    if len(firsts) < 8:
        return None
    spread = 1.25 * float(np.quantile(waits, 0.9) - np.quantile(waits, 0.1))
    if spread < LEAST_WAIT:
        return None
    pace = np.median([gap for request in run.requests for gap in np.diff(request.times)] or [0.0])
    likely = _clock(firsts, (0.95 * pace, 1.05 * pace)) if pace else (0.0, 0.0)
    if likely[0] >= LIKELY:
        return likely[1]
    coherence, interval = _clock(firsts, (SPREAD[0] * spread, SPREAD[1] * spread))
    return interval if coherence >= REGULAR else None


def _clock(moments: np.ndarray, between: tuple[float, float]) -> tuple[float, float]:
    """How well moments follow a clock, 0 to 1, and its interval, of those between two."""
    span = float(np.max(moments) - np.min(moments))
    frequencies = np.arange(1 / between[1], 1 / between[0], 0.05 / span)
    if not len(frequencies):
        return 0.0, 0.0
    coherence = np.abs(np.exp(2j * np.pi * np.outer(frequencies, moments - moments[0])).mean(axis=1))
    best = int(np.argmax(coherence))
    return float(coherence[best]), float(1 / frequencies[best])


def bursts(run: StageRun, interval: float) -> np.ndarray:
    """Trains of a stage: when the first token of each came, how many it brought, their context, and how many requests it began."""
    events = sorted(
        (time, place == 0, (request.prompt_tokens or run.stage.prompt) + place)
        for request in run.requests for place, time in enumerate(request.times)
    )  # fmt: skip
    rows: list[list[float]] = []
    for time, is_first, context in events:
        if rows and time - rows[-1][0] < interval * SAME_TRAIN:
            rows[-1][1:] = [rows[-1][1] + 1, rows[-1][2] + context, rows[-1][3] + is_first]
        else:
            rows.append([time, 1.0, context, float(is_first)])
    return np.array(rows).reshape(-1, 4)


def on_timetable(runs: Sequence[StageRun], interval: float) -> tuple[float, float | None, float | None, int]:
    """Interval, seconds that a request and a token of context add, and trains, of steps that are shorter than the interval.

    Departures are then on the timetable, and a token comes a step after them: the more ride, the later. Only stretches are used in which
    nobody boards, so that no prompt is read; each begins at a moment of its own.
    """
    stretches = []
    for run in runs:
        trains = bursts(run, interval)
        number = np.concatenate([[0.0], np.cumsum(np.round(np.diff(trains[:, 0]) / interval))])
        ends = np.flatnonzero(np.concatenate([trains[:, 3] > 0, [True]]))
        for begin, end in zip(np.concatenate([[-1], ends[:-1]]) + 1, ends, strict=True):
            stretch = np.column_stack([trains[begin:end, 0], number[begin:end], trains[begin:end, 1:3]])
            if len(stretch) > 3 and np.ptp(np.diff(stretch[:, 0])) < interval:  # a late train moves the timetable
                stretches.append(stretch)
    if not stretches:
        return interval, None, None, 0
    value_of = {0: interval}
    for keep in ([0, 1, 2], [0, 1], [0, 2]):  # requests and context grow together: where noise makes one negative, requests alone
        values = _common_slopes(stretches, keep)
        if (values[1:] > 0).all():
            value_of = dict(zip(keep, values.tolist(), strict=True))
            break
    return value_of.get(0, interval), value_of.get(1), value_of.get(2), sum(map(len, stretches))


def _common_slopes(stretches: Sequence[np.ndarray], keep: Sequence[int]) -> np.ndarray:
    """Slopes of the first column on others, which all stretches share while each has a level of its own.

    Least squares in which a row counts the less the further it is off: some trains are late for reasons of the machine.
    """
    rows, owner = np.concatenate(stretches), np.repeat(np.arange(len(stretches)), [len(stretch) for stretch in stretches])
    weights = np.ones(len(rows))
    values = np.zeros(len(keep))
    for _ in range(REWEIGHTED):
        sums = np.bincount(owner, weights)
        levels = np.column_stack([np.bincount(owner, weights * column) / sums for column in rows.T])
        apart = rows - levels[owner]
        inputs = apart[:, [place + 1 for place in keep]]
        scale = np.linalg.norm(inputs, axis=0)
        scale[scale == 0] = 1.0
        root = np.sqrt(weights)[:, None]
        values = np.linalg.lstsq(root * inputs / scale, root[:, 0] * apart[:, 0], rcond=None)[0] / scale
        off = apart[:, 0] - inputs @ values
        usual = 1.5 * np.median(np.abs(off)) or 1e-12
        weights = 1 / (1 + (off / usual) ** 2)
    return values


def is_told(value: float | None, half: float | None) -> bool:
    """Whether a part of a step is told apart from noise."""
    return value is not None and (half is None or half <= abs(value))


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFigures:
    """What a probe tells of a server."""

    step: StepFit | None
    alone: StepFit | None  # of one request alone: no slope by request
    most_decoding: float
    is_limited: bool
    interval_s: float | None
    prefill_tok_per_s: float | None
    unloaded_s: float | None  # time to first token of a request alone, its shortest prompt
    most_sent: int = 0  # at once

    @property
    def is_flat(self) -> bool:
        """Whether a step grows with no request that decodes: its pace may be that of a timetable."""
        step = self.step
        is_sloped = step is not None and is_told(step.request_s, step.request_half)
        return step is not None and step.fixed_s > LATE * (self.interval_s or 0.0) and self.most_decoding > 1 and not is_sloped


def figures(result: ProbeRun) -> ServerFigures:
    """Every figure of a probe."""
    runs, sparse = result.of_kind(LOAD), result.of_kind(SPARSE)
    alone = [(run.stage.prompt, _median([request.ttft_s for request in run.requests])) for run in runs if run.stage.concurrency == 1]
    lengths = {run.stage.prompt: _median([request.prompt_tokens or run.stage.prompt for request in run.requests]) for run in runs}
    spreads = [np.var([request.ttft_s for request in run.requests]) / len(run.requests) for run in runs if run.stage.concurrency == 1]
    slope = None
    if len(alone) > 1 and alone[-1][1] - alone[0][1] > MEDIAN_END * np.sqrt(spreads[0] + spreads[-1]):
        slope = (lengths[alone[-1][0]] - lengths[alone[0][0]]) / (alone[-1][1] - alone[0][1])
    interval = departures(sparse[0]) if sparse else None
    points = [point for run in runs for point in points_of(run)]
    step, alone_step = fitted(points), fitted([point for point in points if point.batch == 1])
    if interval is not None and runs:
        interval, step = _with_timetable(runs, sparse[0], interval)
    unloaded = min((seconds for _, seconds in alone), default=None)
    longest = max((seconds for _, seconds in alone), default=0.0)
    if sparse and unloaded is not None:  # less the wait for a departure, which the luckiest request did not have
        longest -= max(unloaded - min(request.ttft_s for request in sparse[0].requests), 0.0)
    most, limited = batch_limit(runs, longest)
    return ServerFigures(
        step=step, alone=alone_step, most_decoding=most, is_limited=limited, interval_s=interval, prefill_tok_per_s=slope,
        unloaded_s=unloaded, most_sent=max((run.stage.concurrency for run in runs), default=0),
    )  # fmt: skip


def _with_timetable(runs: Sequence[StageRun], sparse: StageRun, rough: float) -> tuple[float, StepFit | None]:
    """Interval and step of a server that departs on a clock: by steps longer than the interval where there are any, else by lateness."""
    late = [point for run in runs for point in points_of(run) if point.seconds > LATE * rough]
    if len({point.batch for point in late}) > 2:
        return rough, fitted(late)
    interval, request_s, token_s, trains = on_timetable(runs, rough)
    first = float(np.mean([request.ttft_s for request in sparse.requests])) - interval / 2 - (request_s or 0.0)
    half = NORMAL_END * interval / np.sqrt(12 * len(sparse.requests))
    step = StepFit(
        fixed_s=max(first, 0.0), request_s=request_s, token_s=token_s, fixed_half=float(half), request_half=None, token_half=None,
        points=trains,
    )  # fmt: skip
    return interval, step


def _median(values: Sequence[float]) -> float:
    return float(np.median(values))

"""A candidate checked by simulation: latencies beside the limits, stability, goodput, and the confidence that every limit holds.

checked = check(candidate, OfferedTraffic(rate=12.0, prompt=..., output=...), LatencyLimits(ttft_p95=1.5, tpot_p95=0.040))
checked.is_met, checked.confidence.probability, checked.utilisation

Confidence that every limit holds, given the error of the model, is the largest factor of step times at which they do, as a probability.
Assumptions. (1) The model errs by one lasting factor on every step of a deployment: steps are all longer or all shorter than estimated.
(2) The factor is lognormal with median 1; half of its 90 % interval is the fitted one: of TPOT under load for limits on TPOT, ITL and
E2E, of prefill for limits on TTFT (data/efficiency.toml, wider on chips not measured and with routed experts; the user's --spread
instead). It is the interval of steps, not of latencies: what queues make of longer steps is simulated. The fitted interval of TTFT
under load would count queues twice. (3) Errors of both kinds of steps go together, so that all limits hold where the tightest holds.
(4) Traffic, lengths and the engine's own work on a request are as stated; chips do not fail.

Percentiles and means rise with the factor, so a limit holds up to a largest factor, found by few plays of the same requests: at the factor
that a line through two plays gives (logarithm of latency against that of the factor), kept within the bracket.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import exp, inf, isfinite, log

import numpy as np

from headway.core.errors import BadValue
from headway.laws.serving.request import factor_of_probability, factor_probability
from headway.simulation.check.latencies import LatencyStatistics, LimitStatus
from headway.simulation.check.limits import LatencyLimit, check_limits, check_requests
from headway.simulation.check.offered import OfferedTraffic
from headway.simulation.check.plays import (
    AUTO,
    CLOSE,
    PLAIN,
    WARMUP,
    Candidate,
    Effort,
    PlayableCandidate,
    PlayResult,
    effort,
    goodput,
    is_shared_out,
    lifetimes,
    playable,
)
from headway.simulation.results import occupancy

DEFAULT = 0.8
MOST_PLAYS = 12
ROUNDING = 1e-12  # of a probability turned into a factor and back
SUREST = 0.995  # confidence beyond which nothing is looked for
LEAST_MOVE = 0.02  # least distance of a tried point from a plain end, as a share of the interval's logarithm
EDGE = 0.15  # least distance of a tried point from the ends of its bracket, as a share of the bracket

Excess = Callable[[float], Sequence[float]]  # factor -> logarithm of each limited statistic over its limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Confidence:
    """Probability that every limit holds, between `low` and `high`, and the largest factor of step times at which all do."""

    probability: float
    low: float
    high: float
    factor: float | None  # of the limit that breaks first; None where no factor was found at which it holds
    tightest: LatencyLimit | None  # the limit that breaks first
    plays: int

    def reaches(self, confidence: float) -> bool:
        """Whether the probability is at least `confidence`."""
        return self.probability >= confidence - ROUNDING


@dataclass(slots=True)
class LimitBracket:
    """Factors between which a limit breaks, as logarithms, with the excess at both ends."""

    limit: LatencyLimit
    spread: float  # half of the 90 % interval of the steps behind it
    holds: float = -inf
    breaks: float = inf
    below: float = -inf  # excess where it holds
    above: float = inf  # excess where it breaks

    def learn(self, at: float, excess: float) -> None:
        """Narrow the bracket by the excess at a factor's logarithm."""
        if excess <= 0.0 and at > self.holds:
            self.holds, self.below = at, excess
        elif excess > 0.0 and at < self.breaks:
            self.breaks, self.above = at, excess

    def probability(self, at: float) -> float:
        """Probability that the factor is at most e to the power `at`."""
        if not isfinite(at):
            return 0.0 if at < 0 else 1.0
        return float(factor_probability(exp(at), self.spread))

    def at_probability(self, probability: float) -> float:
        """Logarithm of the factor that is not exceeded with this probability."""
        return log(float(factor_of_probability(min(max(probability, 1.0 - SUREST), SUREST), self.spread)))

    @property
    def crossing(self) -> float:
        """Where the limit breaks, by a line between the ends; the middle without two finite ends."""
        if not (isfinite(self.holds) and isfinite(self.breaks)):
            return self.holds if isfinite(self.holds) else -inf
        if not (isfinite(self.below) and isfinite(self.above)):
            return (self.holds + self.breaks) / 2
        return self.holds - self.below * (self.breaks - self.holds) / (self.above - self.below)

    def next_point(self, most: float) -> float:
        """The factor's logarithm to try next; `most` is where another limit breaks already."""
        least_move = LEAST_MOVE * log(self.spread)
        if not isfinite(self.holds):  # latencies grow at least as steps do, so this is low enough, or nearly
            guess = self.breaks - (max(1.05 * self.above, least_move) if isfinite(self.above) else log(self.spread) / 2)
            return max(guess, self.at_probability(1.0 - SUREST))
        if not isfinite(self.breaks):
            return min(self.holds + max(-1.05 * self.below, least_move), most, self.at_probability(SUREST))
        width = self.breaks - self.holds
        guess = min(max(self.crossing, self.holds + EDGE * width), self.breaks - EDGE * width)
        return min(guess, most)


def confidence(
    excess: Excess, limits: Sequence[LatencyLimit], spreads: Sequence[float], *, highest: float = inf, needed: float | None = None,
    close: float = CLOSE, most_plays: int = MOST_PLAYS,
) -> Confidence | None:  # fmt: skip
    """Confidence that all limits hold; None without limits.

    `excess` plays a factor. From `highest` on the load exceeds the capacity. With `needed` the search ends once it is known whether that
    confidence is reached, mostly after one play beyond the expected one.
    """
    if not limits:
        return None
    brackets = [LimitBracket(limit=limit, spread=spread, breaks=log(highest)) for limit, spread in zip(limits, spreads, strict=True)]
    plays = 0

    def learn(at: float) -> None:
        nonlocal plays
        plays += 1
        for bracket, value in zip(brackets, excess(exp(at)), strict=True):
            bracket.learn(at, value)

    learn(0.0)
    if min(spreads) <= 1.0:  # the model is taken to be exact
        holds = all(bracket.holds == 0.0 for bracket in brackets)
        return Confidence(probability=float(holds), low=float(holds), high=float(holds), factor=1.0 if holds else None,
                          tightest=None, plays=plays)  # fmt: skip
    while plays < most_plays:
        low, high = _bounds(brackets)
        if high - low <= close or low >= SUREST or high <= 1.0 - SUREST or (needed is not None and not low < needed <= high):
            break
        tightest = min(brackets, key=lambda bracket: (bracket.probability(bracket.holds), -bracket.spread))
        at = tightest.next_point(tightest.at_probability(high)) if needed is None else tightest.at_probability(needed)
        if not tightest.holds < at < tightest.breaks:
            break
        learn(at)
    return _answer(brackets, plays)


def _bounds(brackets: Sequence[LimitBracket]) -> tuple[float, float]:
    """Probability that all limits hold at least and at most."""
    lows, highs = zip(*((bracket.probability(bracket.holds), bracket.probability(bracket.breaks)) for bracket in brackets), strict=True)
    return min(lows), min(highs)


def _answer(brackets: Sequence[LimitBracket], plays: int) -> Confidence:
    low, high = _bounds(brackets)
    # Where none of the plays broke a limit, the nearest to its limit is the tightest.
    tightest = min(brackets, key=lambda at: (at.probability(at.crossing), at.probability(at.breaks), -at.below))
    probability = min(max(tightest.probability(tightest.crossing), low), high)
    factor = exp(tightest.crossing) if isfinite(tightest.crossing) else None
    return Confidence(probability=probability, low=low, high=high, factor=factor, tightest=tightest.limit, plays=plays)


SCOUTS = 400  # requests of a first short play, before anything is compiled
FAR = log(1.5)  # excess over a limit, as a logarithm, that no sampling error explains
Progress = Callable[[int, int], None]  # candidates checked, candidates in all


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedCandidate:
    """What the simulator says of a candidate; with `why` it cannot run, and the rest is empty."""

    candidate: Candidate
    why: str = ""
    stable: bool = False
    statuses: tuple[LimitStatus, ...] = ()  # every limit beside its simulated statistic
    latencies: tuple[LatencyStatistics, ...] = ()
    confidence: Confidence | None = None  # None without limits
    utilisation: float | None = None  # offered rate over capacity; None for users
    capacity_req_per_s: float | None = None  # of all replicas
    goodput_req_per_s: float | None = None
    good_share: float | None = None  # requests that keep every limit
    in_service: float | None = None  # mean requests in service in all replicas
    rejected: float = 0.0  # share of requests longer than a replica's KV cache
    requests: int = 0  # of one play, all seeds together
    replicas_played: int = 0
    seeds: tuple[int, ...] = ()
    plays: int = 0
    is_short: bool = False  # few requests were played, as they broke a limit by far

    @property
    def is_met(self) -> bool:
        """Whether the queue is stable and every limit is met with steps as estimated."""
        return not self.why and self.stable and all(status.is_met for status in self.statuses)

    def holds(self, needed: float = DEFAULT) -> bool:
        """Whether every limit is met with at least this confidence; without limits, whether the queue is stable."""
        if self.confidence is None:
            return self.is_met
        return self.stable and self.confidence.reaches(needed)


def check(
    candidate: Candidate, offered: OfferedTraffic, limits: Iterable[LatencyLimit], *, needed: float = DEFAULT, exact: bool = True,
    requests: int | None = None, seeds: Sequence[int] = (0,), how: str = AUTO, close: float = 0.0,
) -> CheckedCandidate:  # fmt: skip
    """A candidate played under traffic, at expected steps and at longer and shorter ones.

    `exact` finds the confidence to a hundredth, or to `close` where that is wider; else the plays end once it is
    known whether `needed` is reached.
    """
    alone = (candidate,)
    return next(checks(alone, offered, limits, needed=needed, exact=exact, requests=requests, seeds=seeds, how=how, close=close))


def checks(
    candidates: Sequence[Candidate], offered: OfferedTraffic, limits: Iterable[LatencyLimit], *, needed: float = DEFAULT,
    exact: bool = True, requests: int | None = None, seeds: Sequence[int] = (0,), how: str = AUTO, progress: Progress | None = None,
    close: float = 0.0,
) -> Iterator[CheckedCandidate]:  # fmt: skip
    """Each candidate checked, in order; a caller that stops early pays for no more. All play the same requests."""
    if not 0.5 <= needed < 1.0:
        raise BadValue("--confidence", needed, "a probability from 0.5 to below 1, such as 0.8")
    if not seeds:
        raise BadValue("seeds", "none", "at least one seed")
    wanted_limits = check_limits(limits, int(offered.load(1_000, seeds[0]).traffic.output.max()))
    if offered.trace is not None:
        check_requests(wanted_limits, len(offered.trace), 0.0, "--trace")
    meet = not all(is_shared_out(candidate, offered) for candidate in candidates)
    work = effort(wanted_limits, how, requests, WARMUP if offered.lasting else 0.0, len(candidates), meet)
    work = replace(work, close=max(work.close, close))
    for number, candidate in enumerate(candidates):
        yield _checked(candidate, offered, wanted_limits, work, tuple(seeds), needed if not exact else None)
        if progress is not None:
            progress(number + 1, len(candidates))


def _checked(
    candidate: Candidate, offered: OfferedTraffic, limits: tuple[LatencyLimit, ...], work: Effort, seeds: tuple[int, ...],
    needed: float | None,
) -> CheckedCandidate:  # fmt: skip
    hopeless = scouted(candidate, offered, limits, work, seeds) if needed is not None and offered.lasting and limits else None
    if hopeless is not None:
        return hopeless
    scene = playable(candidate, offered, work.requests, seeds, work.how)
    if scene.fleet.pace is None:
        return CheckedCandidate(candidate=candidate, why=scene.fleet.why)
    scene = lengthened(scene, candidate, offered, seeds)
    results: dict[float, PlayResult] = {}

    def excess(factor: float) -> list[float]:
        results[factor] = scene.play(factor)
        return [results[factor].excess(limit) for limit in limits]

    spreads = [candidate.step_spread(limit.quantity) for limit in limits]
    sure = confidence(excess, limits, spreads, highest=scene.highest_factor, needed=needed, close=work.close)
    first = results.get(1.0) or scene.play(1.0)
    return reported(candidate, scene, first, limits, sure, seeds)


def scouted(
    candidate: Candidate, offered: OfferedTraffic, limits: tuple[LatencyLimit, ...], work: Effort, seeds: tuple[int, ...]
) -> CheckedCandidate | None:
    """The answer of a short play in plain Python that breaks a limit by far; None if it does not, and longer plays decide.

    A play begins with empty replicas, so that a short one of a lasting load shows latencies too low rather than too high.
    """
    if work.requests <= SCOUTS:
        return None
    scene = playable(candidate, offered, SCOUTS, seeds[:1], PLAIN, with_capacity=False)
    if scene.fleet.pace is None:
        return None
    first = scene.play()
    if max((first.excess(limit) for limit in limits), default=0.0) <= FAR or not first.stable:
        return None
    tightest = max(limits, key=first.excess)
    unsure = Confidence(probability=0.0, low=0.0, high=0.5, factor=None, tightest=tightest, plays=1)
    return replace(reported(candidate, scene, first, limits, unsure, seeds[:1]), is_short=True)


def lengthened(
    scene: PlayableCandidate, candidate: Candidate, offered: OfferedTraffic, seeds: Sequence[int]
) -> PlayableCandidate:
    """The candidate with more requests where a play would last too few times in service; the fleet and its capacity stay."""
    count = lifetimes(scene.fleet, scene.loads[0])
    if offered.trace is not None or count <= len(scene.loads[0].traffic):
        return scene
    return replace(scene, loads=tuple(offered.load(count, seed, scene.shares) for seed in seeds))


def reported(
    candidate: Candidate, scene: PlayableCandidate, first: PlayResult, limits: tuple[LatencyLimit, ...], sure: Confidence | None,
    seeds: tuple[int, ...],
) -> CheckedCandidate:  # fmt: skip
    """The answer from the play with steps as estimated, and the confidence."""
    rate, share = goodput(scene, first, limits) if first.stable else (None, None)
    return CheckedCandidate(
        candidate=candidate, stable=first.stable, statuses=first.latencies.statuses(limits, first.stable),
        latencies=first.latencies.all() if first.stable else (), confidence=sure, utilisation=first.utilisation,
        capacity_req_per_s=scene.able and scene.able.per_s * scene.shares, goodput_req_per_s=rate, good_share=share,
        in_service=float(np.mean([occupancy(run)["running_mean"] for run in first.runs])) * scene.shares,
        rejected=first.latencies.rejected, requests=scene.requests, replicas_played=scene.fleet.replicas, seeds=seeds,
        plays=1 if sure is None else sure.plays,
    )  # fmt: skip

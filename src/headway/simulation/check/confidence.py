"""Confidence that every limit holds, given the error of the model: the largest factor of step times at which they do, as a probability.

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

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp, inf, isfinite, log

from headway.laws.serving.confidence import factor_of_probability, factor_probability
from headway.simulation.check.limits import LatencyLimit

DEFAULT = 0.8
CLOSE = 0.01  # width of the bracket around the confidence at which the search ends
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

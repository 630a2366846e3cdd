"""Confidence that all limits hold: the search for the largest factor of step times, against factors and probabilities known beforehand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import exp, inf, log
from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.laws.serving.request import factor_of_probability, factor_probability
from headway.simulation.check.check import confidence
from headway.simulation.check.limits import LatencyLimit, limit_of
from headway.simulation.check.plays import CLOSE

TPOT, TTFT = limit_of("tpot_p95", 0.04), limit_of("ttft_p95", 1.5)
SPREAD = 1.358


def probability(factor: float, spread: float = SPREAD) -> float:
    """Of a lognormal whose 95 % point is the spread, written anew."""
    return NormalDist(0.0, log(spread) / NormalDist().inv_cdf(0.95)).cdf(log(factor))


def breaks_at(*factors: float, power: float = 1.0) -> Callable[[float], Sequence[float]]:
    """Latencies that grow as a power of the factor and meet their limits at these factors."""
    return lambda factor: [power * (log(factor) - log(at)) for at in factors]


def test_factor_probability__agrees_with_its_inverse() -> None:
    for share in (0.05, 0.5, 0.8, 0.95):
        assert factor_probability(factor_of_probability(share, SPREAD), SPREAD) == pytest.approx(share, abs=1e-12)


def test_confidence__limit_at_the_expected_value_is_even() -> None:
    even = confidence(breaks_at(1.0), [TPOT], [SPREAD])
    assert even is not None and even.probability == pytest.approx(0.5, abs=CLOSE)


@pytest.mark.parametrize("power", [1.0, 4.0])
@pytest.mark.parametrize("factor", [0.75, 0.95, 1.17, 1.358, 1.6])
def test_confidence__probability_of_the_factor_at_which_the_limit_breaks(factor: float, power: float) -> None:
    answer = confidence(breaks_at(factor, power=power), [TPOT], [SPREAD])
    assert answer is not None
    assert answer.probability == pytest.approx(probability(factor), abs=CLOSE)
    assert answer.low - 1e-9 <= probability(factor) <= answer.high + 1e-9
    assert answer.plays <= 7


def test_confidence__of_several_limits_is_that_of_the_tightest() -> None:
    """1.3 on steps known to 1.74 is less sure than 1.2 on steps known to 1.2."""
    answer = confidence(breaks_at(1.3, 1.2), [TTFT, TPOT], [1.74, 1.2])
    assert answer is not None and answer.tightest == TTFT
    assert answer.probability == pytest.approx(min(probability(1.3, 1.74), probability(1.2, 1.2)), abs=CLOSE)
    assert answer.factor == pytest.approx(1.3, rel=0.02)


def test_confidence__never_beyond_the_factor_at_which_the_capacity_is_met() -> None:
    answer = confidence(breaks_at(3.0), [TPOT], [SPREAD], highest=1.1)
    assert answer is not None and answer.probability <= probability(1.1) + 1e-9


@pytest.mark.parametrize("spread", [SPREAD, 1.0])
def test_confidence__latencies_without_a_value_at_every_factor_have_none(spread: float) -> None:
    answer = confidence(lambda factor: [inf], [TPOT], [spread], highest=0.2)
    assert answer is not None and answer.probability == pytest.approx(0.0, abs=CLOSE) and not answer.reaches(0.5)


def test_confidence__exact_model_is_sure_either_way() -> None:
    sure, not_sure = (confidence(breaks_at(at), [TPOT], [1.0]) for at in (1.01, 0.99))
    assert sure is not None and not_sure is not None
    assert (sure.probability, not_sure.probability) == (1.0, 0.0)


def test_confidence__without_limits_is_none() -> None:
    assert confidence(lambda factor: [], [], []) is None


@pytest.mark.parametrize(("factor", "is_reached"), [(1.18, True), (1.16, False), (0.9, False), (2.0, True)])
def test_confidence__a_needed_confidence_is_decided_by_two_plays(factor: float, is_reached: bool) -> None:
    """80 % is the factor 1.17."""
    answer = confidence(breaks_at(factor), [TPOT], [SPREAD], needed=0.8)
    assert answer is not None and answer.plays <= 2
    assert (answer.low >= 0.8 - 1e-9) == is_reached
    assert (answer.high < 0.8 + 1e-9) != is_reached


@given(
    steps=st.lists(st.tuples(st.floats(-0.7, 0.7), st.floats(0.001, 3.0)), min_size=1, max_size=5),
    start=st.floats(-1.5, 1.5),
    spread=st.floats(1.05, 3.0),
)
def test_confidence__any_rising_latency(steps: list[tuple[float, float]], start: float, spread: float) -> None:
    """Latencies with jumps: the answer is within the bracket of the true factor, whatever the shape."""

    def excess(factor: float) -> list[float]:
        return [start + log(factor) + sum(rise for at, rise in steps if log(factor) > at)]

    answer = confidence(excess, [TPOT], [spread], most_plays=60)
    assert answer is not None
    low, high = -5.0, 5.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(exp(middle))[0] <= 0 else (low, middle)
    assert answer.low - 1e-6 <= min(max(probability(exp(low), spread), 0.0), 1.0) <= answer.high + 1e-6
    assert answer.high - answer.low <= CLOSE + 1e-9 or answer.low >= 0.99 or answer.high <= 0.01


def test_limit__tightest_is_named() -> None:
    answer = confidence(breaks_at(1.5, 1.1), [TTFT, TPOT], [SPREAD, SPREAD])
    assert answer is not None and isinstance(answer.tightest, LatencyLimit) and answer.tightest.words == "p95 TPOT"

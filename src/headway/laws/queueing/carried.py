"""A rate of arrivals that a server is known to have carried says that its steps are fast enough: which steps remain likely.

The expected step is a log-normal estimate, with a half of its 90 % interval to either side. Steps so slow that the rate would be beyond the
capacity are ruled out, and those left over keep their proportions. Where all times of a server are f times as long, its times at a rate are
f times those of the same server at f times the rate: the interval at a load is computed by the laws, and not by a factor.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from headway.core.formula import formula
from headway.core.units import Number, PerSecond

NORMAL = NormalDist()
END = NORMAL.inv_cdf(0.95)  # of a 90 % interval, in standard deviations
FAR = -30.0  # standard deviations below which the normal distribution is no number
BELOW: Number = 1 - 1e-6  # of the capacity: at it, times mean nothing


@formula(source="a normal distribution in the logarithm, with a standard deviation for either side")
def step_deviations(ratio: Number, faster: Number, slower: Number) -> Number:
    """How many standard deviations a step that takes `ratio` times as long as expected is from the expected one.

    >>> round(float(step_deviations(1.5, 1.3, 1.5)), 3), round(float(step_deviations(1 / 1.3, 1.3, 1.5)), 3)
    (1.645, -1.645)
    """
    size = np.log(ratio)
    return size * END / np.log(np.where(size < 0, faster, slower))


@formula(source="quantile of a normal distribution cut off at the step that the rate allows", empirical="a quantile, found by number")
def carried_step(share: Number, rate: PerSecond, capacity: PerSecond, faster: Number, slower: Number) -> Number:
    """Times as long as expected that a step is at this quantile, of a server that carried `rate`; `capacity`: of the expected step.

    >>> round(float(carried_step(0.5, 1.0, 100.0, 1.3, 1.3)), 3), round(float(carried_step(0.5, 10.0, 10.0, 1.3, 1.3)), 3)
    (1.0, 0.898)
    >>> round(float(carried_step(0.95, 20.0, 10.0, 1.3, 1.3)), 3)  # a server that carries twice as much has steps of half the time
    0.499
    """
    slowest = capacity / rate
    deviation = _quantile(share, step_deviations(slowest, faster, slower))
    factor = np.where(deviation < 0, faster, slower) ** (deviation / END)
    return np.minimum(factor, slowest * BELOW)


def _quantile(share: Number, most: Number) -> Number:
    """Quantile of the standard normal distribution below `most`."""

    def at(part: float, end: float) -> float:
        return NORMAL.inv_cdf(part * math.erfc(-end / math.sqrt(2)) / 2) if end > FAR else end

    return np.vectorize(at, otypes=[float])(share, most)

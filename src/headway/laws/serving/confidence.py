"""Confidence in an estimate of known error: the factor between truth and estimate is lognormal, with 1 as its median."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np

from headway.core.formula import formula
from headway.core.units import Number

NORMAL = NormalDist()
END = NORMAL.inv_cdf(0.95)  # upper end of a 90 % interval, in standard deviations
LOGNORMAL = "lognormal factor whose 90 % interval is 1/spread to spread, as residuals left out of a fit are measured (docs/accuracy.md)"


@formula(source=LOGNORMAL)
def factor_probability(factor: Number, spread: Number) -> Number:
    """Probability that truth over estimate is at most `factor`.

    >>> float(factor_probability(1.0, 1.358)), round(float(factor_probability(1.358, 1.358)), 3)
    (0.5, 0.95)
    """
    return NORMAL.cdf(float(np.log(factor) / np.log(spread)) * END)


@formula(source=LOGNORMAL)
def factor_of_probability(probability: Number, spread: Number) -> Number:
    """Factor that truth over estimate does not exceed with this probability.

    >>> round(float(factor_of_probability(0.8, 1.358)), 3), round(float(factor_of_probability(0.95, 1.358)), 3)
    (1.17, 1.358)
    """
    return np.exp(np.log(spread) * NORMAL.inv_cdf(float(probability)) / END)

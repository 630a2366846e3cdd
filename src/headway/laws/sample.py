"""Figures of many chips, models or prices: the share of them within limits, a quantile, a spread, and growth by year."""

from __future__ import annotations

import numpy as np

from headway.core.formula import formula
from headway.core.units import Number, Same


@formula(source="definition: ends included")
def share_within(values: tuple[Same, ...], low: Same, high: Same) -> Number:
    """Share of values that lie between two limits (KV heads of four models, 1 to 8).

    >>> share_within((1, 8, 8, 32), 1, 8)
    0.75
    """
    return sum(bool(low <= value <= high) for value in values) / len(values)


@formula(source="definition: in order, with a straight line between neighbours")
def quantile(values: tuple[Same, ...], probability: Number) -> Same:
    """Value that this share of the values stays below: 0.5 is the median.

    >>> quantile((4096, 131072, 8192), 0.5), quantile((1, 2, 3, 4), 0.25)
    (8192, 1.75)
    """
    ordered = sorted(values)
    place = probability * (len(ordered) - 1)
    below = int(place)
    part, rest = place - below, ordered[below:]
    return rest[0] if part == 0 else rest[0] + (rest[1] - rest[0]) * part


@formula(source="normal distribution of the logarithm: exp(z s) above the middle over exp(-z s) below it")
def spread_ratio(spread: Number, deviations: Number) -> Number:
    """Upper over lower end of a range so many standard deviations of the logarithm around the middle.

    >>> round(float(spread_ratio(0.5, 1.0)), 3)
    2.718
    """
    return np.exp(2 * spread * deviations)


@formula(source="two binomial counts, each normal about its share")
def errors_between(share: Number, count: Number, other_share: Number, other_count: Number) -> Number:
    """How many standard errors lie between the shares of two samples of so many: 3 and more are no accident.

    >>> round(float(errors_between(0.9, 1000, 0.6, 2000)), 1)
    20.7
    """
    return (share - other_share) / np.sqrt(np.abs(share * (1 - share) / count + other_share * (1 - other_share) / other_count))


@formula(source="growth^(years) = factor, at the growth of a known span")
def years_of_growth(factor: Number, growth: Number, years: Number) -> Number:
    """Years until a quantity has grown by a factor, where `years` brought `growth`; infinite where it does not grow.

    >>> round(float(years_of_growth(500, 8 / 3.35, 2)), 1)  # as bandwidth grew from H100 to B200
    14.3
    >>> float(years_of_growth(500, 0.9, 2))
    inf
    """
    reaches = (growth > 1) | (factor <= 1)
    return np.where(reaches, years * np.log(factor) / np.log(np.where(growth > 1, growth, 2.0)), np.inf)

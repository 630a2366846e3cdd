"""What runs of one's own change: factors of which some are known, each run by how alike it is, how old, and how far off."""

from __future__ import annotations

from typing import Any

import numpy as np

from headway.core.formula import formula
from headway.core.units import Number, Same

NORMAL_END: Number = 1.645  # upper end of a 90 % interval, in standard deviations
STUDENT_END: Number = 2.353  # of a Student t of 3 degrees of freedom, in its scale
FROM_LOAD_TO_LOAD: Number = 1 / 3  # of half of an interval: what no factor of a deployment says
FREEDOM: Number = 3  # degrees of freedom of a run's scatter: one wild run in many is usual
STUDENT_VARIANCE: Number = FREEDOM / (FREEDOM - 2)  # of a Student t, over the square of its scale


@formula(source="definition: runs of one's own over what the laws and the world's runs say; docs/own_runs.md")
def by_own_runs(value: Same, factor: Number) -> Same:
    """A time or a share by the factor that runs of one's own put on it.

    >>> by_own_runs(0.020, 1.1)
    0.022000000000000002
    """
    return value * factor


@formula(source="Ornstein-Uhlenbeck process: what two months have in common halves with each half-life between them")
def age_correlation(apart: Number, half_life: Number) -> Number:
    """Correlation of the factors of one deployment at two times, in units of one kind.

    >>> age_correlation(0.0, 8.0), age_correlation(8.0, 8.0), round(age_correlation(-4.0, 8.0), 3)
    (1.0, 0.5, 0.707)
    """
    return 0.5 ** (abs(apart) / half_life)


@formula(source="Lange, Little and Taylor 1989, JASA 84, 881: weights of a Student t of 3 degrees of freedom, over that of a run as said")
def student_weight(deviation: Number) -> Number:
    """How much a run counts that is so many standard deviations of its noise from what all say together.

    >>> float(student_weight(0.0)), float(student_weight(1.0)), round(float(student_weight(10.0)), 3)
    (1.3333333333333333, 1.0, 0.039)
    """
    return (FREEDOM + 1) / (FREEDOM + deviation**2)


@formula(source="90 % interval of a sum: what runs leave open of the factors, normal, and the scatter of a run, a Student t")
def run_scatter(variance: Number, noise: Number) -> Number:
    """Half of the interval of a logarithm by runs of one's own: `variance` is that of the factors, `noise` what a run scatters.

    >>> round(float(run_scatter(0.0, 0.05)), 3), round(float(run_scatter(0.01, 0.05)), 3)
    (0.118, 0.202)
    """
    return np.sqrt(NORMAL_END**2 * variance + (STUDENT_END * noise) ** 2)


@formula(source="runs of one load tell little about what another adds: a third of the half that unknown deployments have; docs/own_runs.md")
def run_half(half: Number, scatter: Number) -> Number:
    """Half of an interval as a factor by runs of one's own that leave so much of the logarithm, and never wider than without them.

    >>> round(float(run_half(1.5, 0.12)), 3), float(run_half(1.5, 0.8))
    (1.198, 1.5)
    """
    return np.minimum(half, np.exp(np.sqrt(scatter**2 + (FROM_LOAD_TO_LOAD * np.log(half)) ** 2)))


@formula(source="definition: a difference over its standard deviation")
def contradiction(first: Number, second: Number, first_variance: Number, second_variance: Number) -> Number:
    """How far two estimates of one logarithm are apart, in standard deviations of their difference.

    >>> round(float(contradiction(0.3, 0.0, 0.0036, 0.0064)), 3)
    3.0
    """
    return abs(first - second) / np.sqrt(first_variance + second_variance)


def conditioned(prior: Any, cross: Any, spread: Any, excess: Any) -> tuple[Any, Any]:
    """Mean and covariance of quantities of zero mean and covariance `prior`, once `excess` was seen beside them.

    Gaussian conditioning (Rasmussen and Williams 2006, equation 2.19): `cross` is their covariance with what was seen, `spread` the
    covariance of what was seen, with its noise.

    >>> mean, covariance = conditioned(np.array([[1.0]]), np.array([[1.0]]), np.array([[2.0]]), np.array([0.4]))
    >>> float(mean[0]), float(covariance[0, 0])
    (0.2, 0.5)
    """
    known = np.linalg.solve(spread, cross.T)
    return excess @ known, prior - cross @ known

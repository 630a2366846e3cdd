"""Statistics that all fits share: rows that err together count once, robust losses, errors by source, classes that a fit has not seen.

Rows err together that are of one model on one chip with one software (a cluster).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.core.errors import MissingExtra

NORMAL_QUANTILE = 1.6448536269514722  # of 95 %, the upper end of a two-sided 90 % interval
SHARE = 0.9  # share of rows that the interval should hold


def cluster_sizes(names: np.ndarray) -> Any:
    """Rows of each row's cluster."""
    _, place, count = np.unique(names, return_inverse=True, return_counts=True)
    return count[place]


def cluster_weights(names: np.ndarray) -> Any:
    """Weight of each row such that all clusters count equally.

    >>> cluster_weights(["llama on h100", "llama on h100", "qwen on b200"]).tolist()
    [0.5, 0.5, 1.0]
    """
    return 1 / cluster_sizes(names)


def quantile(values: np.ndarray, weight: np.ndarray, share: float = SHARE) -> float:
    """Weighted quantile: the value that a `share` of the weight does not exceed."""
    order = np.argsort(values)
    below = np.cumsum(weight[order]) / weight.sum()
    return float(values[order][min(np.searchsorted(below, share), len(order) - 1)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Misses:
    """Error statistics of rows, each cluster weighted equally; `name` is the class that they are of."""

    name: str
    rows: int
    median: float  # of |predicted / measured - 1|
    p90: float
    bias: float  # median of ln(predicted / measured)
    coverage: float  # share within the 90 % interval


def misses(error: np.ndarray, names: np.ndarray, within: np.ndarray | None = None, name: str = "") -> Misses:
    """Statistics of errors ln(predicted / measured) of rows with the clusters `names`; of their coverage if `within` is given."""
    known = np.isfinite(error)
    error, weight = error[known], cluster_weights(names[known])
    size = np.abs(np.expm1(error))
    return Misses(
        name=name, rows=len(error), median=quantile(size, weight, 0.5), p90=quantile(size, weight), bias=quantile(error, weight, 0.5),
        coverage=np.nan if within is None else float(np.average(within[known], weights=weight)),
    )  # fmt: skip


def misses_by_class(labels: np.ndarray, error: np.ndarray, names: np.ndarray, within: np.ndarray, fewest: int) -> tuple[Misses, ...]:
    """The same of each class of at least `fewest` rows with an error."""
    row_labels = labels[np.isfinite(error)]
    classes = [name for name, count in zip(*np.unique(row_labels, return_counts=True), strict=True) if count >= fewest]
    return tuple(misses(error[labels == name], names[labels == name], within[labels == name], str(name)) for name in classes)


def t_factor(kinds: int) -> float:
    """Factor by which an interval is wider because few kinds were seen: Student's t over the normal quantile, 90 % two-sided.

    >>> round(t_factor(30), 3), round(t_factor(5), 3), round(t_factor(1), 2)
    (1.033, 1.296, 3.84)
    """
    freedom, low, high = max(kinds - 1, 1), 0.0, 10.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _student_within(middle, freedom) < SHARE else (low, middle)
    return low / NORMAL_QUANTILE


def _student_within(limit: float, freedom: int) -> float:
    """Chance that Student's t lies within +-`limit` (Abramowitz and Stegun 1964, 26.7.3 and 26.7.4)."""
    angle = np.arctan(limit / np.sqrt(freedom))
    cosine, odd = np.cos(angle), freedom % 2
    term = total = float(cosine if odd else 1.0) if freedom > 1 else 0.0
    for step in range(3 if odd else 2, freedom - 1, 2):
        term *= float(cosine**2) * (step - 1) / step
        total += term
    return float((angle + np.sin(angle) * total) * 2 / np.pi if odd else np.sin(angle) * total)


def softened(scaled: np.ndarray) -> Any:
    """Residuals under a robust loss: the square of a large residual grows linearly, so an outlier cannot dominate."""
    return np.sign(scaled) * np.sqrt(2 * (np.sqrt(1 + scaled * scaled) - 1))


def subdued(scaled: np.ndarray) -> Any:
    """Residuals under a loss whose square grows as the logarithm (Cauchy): no odd row or source decides a number that all share."""
    return np.sign(scaled) * np.sqrt(np.log1p(scaled * scaled))


def covariance_by_source(slopes: np.ndarray, now: np.ndarray, sources: np.ndarray) -> Any:
    """Covariance of the fitted parameters, robust to correlated errors within a source (sandwich estimator clustered by source).

    `slopes` and `now` hold the measurements, in the order of `sources`, followed by the priors.
    """
    inverse, count = np.linalg.inv(slopes.T @ slopes), len(sources)
    pulls = [inverse @ (slopes[:count][sources == source].T @ now[:count][sources == source]) for source in np.unique(sources)]
    return inverse + sum(np.outer(pull, pull) for pull in pulls)


def least_squares() -> Any:
    """SciPy's least_squares; raises MissingExtra if SciPy is not installed."""
    try:
        from scipy import optimize
    except ImportError as error:
        raise MissingExtra("fitting efficiencies", "fit") from error
    return optimize.least_squares


def slopes(residuals: Callable[[np.ndarray], Any], place: np.ndarray) -> Any:
    """Slope of each residual by each parameter, by the forward differences of least_squares, all at once: `residuals` takes many places.

    >>> slopes(lambda places: np.stack([places.sum(-1), places.prod(-1)], -1), np.array([2.0, 3.0])).round(6).tolist()
    [[1.0, 1.0], [3.0, 2.0]]
    """
    side = np.where(place >= 0, 1.0, -1.0)
    places = place + np.diag(np.sqrt(np.finfo(float).eps) * side * np.maximum(1.0, np.abs(place)))
    base, *stepped = residuals(np.vstack([place, places]))
    return np.array([(residual - base) / step for residual, step in zip(stepped, np.diag(places) - place, strict=True)]).T


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassFold:
    """Errors ln(predicted / measured) of rows whose class of one kind a fit has not seen; NaN where too little was left to fit to."""

    kind: str
    labels: Any
    error: Any
    hidden: Any = None  # the same where what the rows say of themselves beside numbers is removed


def unseen_halves(labels: np.ndarray, halves_without: Callable[[str], Any]) -> Any:
    """Half-width of each row's interval, in the logarithm, from the errors of the other classes."""
    half = np.zeros(len(labels))
    for name in np.unique(labels):
        half[labels == name] = halves_without(name)[labels == name]
    return half

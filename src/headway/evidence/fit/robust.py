"""Robust least squares that all fits share: softened residuals, and standard errors clustered by source."""

from __future__ import annotations

from typing import Any

import numpy as np

from headway.core.errors import MissingExtra


def softened(scaled: Any) -> Any:
    """Residuals under a robust loss: the square of a large residual grows linearly, so an outlier cannot dominate."""
    return np.sign(scaled) * np.sqrt(2 * (np.sqrt(1 + scaled * scaled) - 1))


def subdued(scaled: Any) -> Any:
    """Residuals under a loss whose square grows as the logarithm (Cauchy): no odd row or source decides a number that all share."""
    return np.sign(scaled) * np.sqrt(np.log1p(scaled * scaled))


def covariance_by_source(slopes: Any, now: Any, sources: Any) -> Any:
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

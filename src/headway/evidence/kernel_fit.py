"""A robust fit of a law to measured times: logarithms of positive parameters, errors that allow for shapes that err together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.errors import MissingExtra
from headway.evidence.kernel_rows import KernelRows

SHORT = 10e-6  # kernels well below this cost little, whatever they are predicted at
SCALE = 0.1  # of ln(predicted/measured), beyond which a row pulls less and less
Predict = Callable[..., Any]  # (parameters in order, work) -> seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelKey:
    """One parameter of a law: where a fit starts and what it may be."""

    name: str
    unit: str
    start: float
    low: float
    high: float
    meaning: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelEstimate:
    """Parameters of one fit in the order of their keys; `free` says which were fitted here."""

    values: tuple[float, ...]
    errors: tuple[float, ...]
    free: tuple[bool, ...]
    rows: int


def least_squares() -> Any:
    """The optimiser, or how to get it."""
    try:
        from scipy import optimize
    except ImportError as error:
        raise MissingExtra("fitting efficiencies", "fit") from error
    return optimize.least_squares


def fit(
    predict: Predict, rows: KernelRows, keys: tuple[KernelKey, ...], fixed: tuple[float | None, ...], weights: Any = None
) -> KernelEstimate:
    """The parameters that are not fixed, by least squares of log time with a soft-L1 loss."""
    free = [index for index, value in enumerate(fixed) if value is None]
    parameters = np.array([keys[index].start if value is None else value for index, value in enumerate(fixed)])
    root = np.sqrt(_weights(rows) if weights is None else weights * _weights(rows))
    target = np.log(rows.seconds)

    def misses(point: Any) -> Any:
        trial = parameters.copy()
        trial[free] = np.exp(point)
        return root * (np.log(predict(trial, rows.work)) - target)

    bounds = (np.log([keys[index].low for index in free]), np.log([keys[index].high for index in free]))
    solution = least_squares()(misses, np.log(parameters[free]), bounds=bounds, loss="soft_l1", f_scale=SCALE, max_nfev=200)
    parameters[free] = np.exp(solution.x)
    errors = np.zeros(len(parameters))
    errors[free] = parameters[free] * _log_errors(solution.jac, misses(solution.x), rows.shape)
    return KernelEstimate(
        values=tuple(map(float, parameters)), errors=tuple(map(float, errors)), free=tuple(value is None for value in fixed), rows=len(rows)
    )


def _weights(rows: KernelRows) -> Any:
    return rows.seconds / (rows.seconds + SHORT)


def _log_errors(jacobian: Any, misses: Any, shape: Any) -> Any:
    """Standard errors of the logarithms: the sandwich of White (1980) over clusters of one shape, for a soft-L1 loss.

    `jacobian` is as scipy leaves it, scaled by (1 + z)^(-3/4) with z the squared miss over SCALE squared.
    """
    z = (misses / SCALE) ** 2
    scores = jacobian * (misses * (1 + z) ** 0.25)[:, None]
    codes = np.unique(shape, return_inverse=True)[1]
    sums = np.stack([np.bincount(codes, weights=column) for column in scores.T], axis=1)
    inverse = np.linalg.pinv(jacobian.T @ jacobian)
    return np.sqrt(np.maximum(np.diag(inverse @ (sums.T @ sums) @ inverse), 0))


def log_misses(predict: Predict, rows: KernelRows, values: tuple[float, ...]) -> Any:
    """ln(predicted/measured) of each row."""
    return np.log(predict(np.array(values), rows.work) / rows.seconds)

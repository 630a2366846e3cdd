"""Root of an increasing function, element by element: each element stops by itself, so that a point and a grid give the same number."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

CLOSE = 1e-12  # width of the last bracket, of the first
SLOWER = 8  # more steps than a bisection at worst, for which it may follow the secant
SLACK = 0.2  # of ITP's truncation


def increasing_root(function: Callable[[Any], Any], low: Any, high: Any, at_low: Any, close: float = CLOSE) -> Any:
    """Where `function` crosses zero between `low` and `high`; `high` where it is negative up to there.

    `close` is the width of the last bracket, as a share of the first.

    ITP method (Oliveira and Takahashi 2021, ACM TOMS 47(1)): regula falsi pulled towards the middle, never slower than bisection.

    >>> round(float(increasing_root(lambda x: x * x - 2, 0.0, 2.0, -2.0)), 9)
    1.414213562
    """
    low, high = (np.array(end, dtype=float) for end in np.broadcast_arrays(low, high))
    span = high - low
    below = np.array(np.broadcast_to(at_low, low.shape), dtype=float)
    above = np.array(np.broadcast_to(function(high), low.shape), dtype=float)
    halvings, narrow = math.ceil(-math.log2(close)), close * np.maximum(span, np.finfo(float).tiny)
    active = (span > 0) & (above > 0)
    low = np.where(above > 0, low, high)
    for step in range(halvings + SLOWER + 1):
        if not active.any():
            break
        at = _next(low, high, below, above, span, narrow * 2.0 ** (halvings + SLOWER - step))
        value = np.broadcast_to(function(at), low.shape)
        over = value > 0
        high, above = np.where(active & over, at, high), np.where(active & over, value, above)
        low, below = np.where(active & ~over, at, low), np.where(active & ~over, value, below)
        active &= (high - low > narrow) & (value != 0)
    return (low + high) / 2


def _next(low: Any, high: Any, below: Any, above: Any, span: Any, tolerance: Any) -> Any:
    """The next point of the ITP method."""
    middle, width = (low + high) / 2, high - low
    with np.errstate(all="ignore"):
        falsi = (above * low - below * high) / (above - below)
    falsi = np.where(np.isfinite(falsi), falsi, middle)
    toward = np.sign(middle - falsi)
    shift = np.minimum(SLACK * width * width / np.maximum(span, np.finfo(float).tiny), np.abs(middle - falsi))
    shifted = falsi + toward * shift
    radius = np.maximum(tolerance - width / 2, 0)
    return np.where(np.abs(shifted - middle) <= radius, shifted, middle - toward * radius)

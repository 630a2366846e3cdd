"""Root of an increasing function, element by element: each element stops by itself, so that a point and a grid give the same number.

A few elements cost as much as one, so a few are looked for at many places at once; many elements are looked for at one place each.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

CLOSE = 1e-14  # width of the last bracket, of the first
SLOWER = 8  # more steps than a bisection at worst, for which it may follow the secant
SLACK = 0.2  # of ITP's truncation
FEW = 256  # elements
FIRST = (1e-3, 1e-2, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)  # places in the first bracket
RINGS = (0.3, 0.1, 1e-2, 1e-3, 1e-5, 1e-8, 1e-12)  # places around the secant's, as shares of the bracket


def increasing_root(function: Callable[[Any], Any], low: Any, high: Any, at_low: Any, close: float = CLOSE) -> Any:
    """Where `function` crosses zero between `low` and `high`; `high` where it is negative up to there.

    `close` is the width of the last bracket, as a share of the first. `function` takes arrays of the shape of the ends, and with one
    more axis in front.

    >>> round(float(increasing_root(lambda x: x * x - 2, 0.0, 2.0, -2.0)), 9)
    1.414213562
    """
    low, high = (np.array(end, dtype=float) for end in np.broadcast_arrays(low, high))
    below = np.array(np.broadcast_to(at_low, low.shape), dtype=float)
    return (_at_many_places if low.size <= FEW else _at_one_place)(function, low, high, below, close)


def _at_many_places(function: Callable[[Any], Any], low: Any, high: Any, below: Any, close: float) -> Any:
    """The secant's root with rings of places around it: of all places the two beside the first change of sign are kept."""
    span, above = high - low, np.zeros_like(low)
    narrow = close * np.maximum(span, np.finfo(float).tiny)
    places = low + span * np.reshape(FIRST, (-1,) + (1,) * low.ndim)
    rings = np.reshape([*RINGS, *(-ring for ring in RINGS), 0.0], (-1,) + (1,) * low.ndim)
    for _ in range(math.ceil(-math.log2(close))):
        values = np.broadcast_to(function(places), places.shape)
        places, values = np.concatenate(([low], places, [high])), np.concatenate(([below], values, [above]))
        over = values > 0
        over[-1] = True
        first = np.argmax(over, axis=0)[None]
        low, high = (np.take_along_axis(places, at, axis=0)[0] for at in (first - 1, first))
        below, above = (np.take_along_axis(values, at, axis=0)[0] for at in (first - 1, first))
        if not ((high - low > narrow) & (above > 0)).any():
            break
        middle, width = (low + high) / 2, high - low
        with np.errstate(all="ignore"):
            secant = low - below * width / (above - below)
        secant = np.where(np.isfinite(secant), secant, middle)
        places = np.sort(np.clip(np.concatenate((secant + width * rings, [middle])), low, high), axis=0)
    return np.where(above > 0, (low + high) / 2, high)


def _at_one_place(function: Callable[[Any], Any], low: Any, high: Any, below: Any, close: float) -> Any:
    """ITP (Oliveira and Takahashi 2021, ACM TOMS 47(1)): regula falsi pulled towards the middle, never slower than bisection."""
    span = high - low
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

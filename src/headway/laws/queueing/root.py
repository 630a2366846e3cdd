"""Root of an increasing function, element by element: each looks at places of its own, so that a point and a grid give the same number.

A step at many loads costs little more than one, so that every round looks at many places: around the secant's root, where the function
is smooth, and evenly spread, where it jumps.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from headway.core.units import Number

CLOSE = 1e-12  # width of the last bracket, of the first
MOST_AT_ONCE = 2**14  # numbers; with more elements the places are looked at one after the other
FIRST = (1e-3, 1e-2, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)  # places in the first bracket
RINGS = (1e-2, 1e-4, 1e-7, 1e-11)  # places around the secant's, as shares of the bracket
EVEN = tuple(place / 7 for place in range(1, 7))  # and of the bracket itself
MOST_ROUNDS = 60
SLOWER = 8  # more steps than a bisection at worst, for which ITP may follow the secant
SLACK = 0.2  # of ITP's truncation


def increasing_root(function: Callable[[Any], Any], low: Number, high: Number, at_low: Number, close: float = CLOSE) -> Any:
    """Where `function` crosses zero between `low` and `high`; `high` where it is negative up to there.

    `close` is the width of the last bracket, as a share of the first. `function` takes arrays of the shape of the ends, and with one
    more axis in front. Of all places of a round the two beside the first change of sign are kept.

    >>> round(float(increasing_root(lambda x: x * x - 2, 0.0, 2.0, -2.0)), 9)
    1.414213562
    """
    low, high = (np.array(end, dtype=float) for end in np.broadcast_arrays(low, high))
    below, above = np.array(np.broadcast_to(at_low, low.shape), dtype=float), np.zeros_like(low)
    narrow = close * np.maximum(high - low, np.finfo(float).tiny)
    rings, even = (np.reshape(shares, (-1,) + (1,) * low.ndim) for shares in ([*RINGS, *(-ring for ring in RINGS), 0.0], EVEN))
    places = low + (high - low) * np.reshape(FIRST, (-1,) + (1,) * low.ndim)
    active = np.ones(low.shape, dtype=bool)
    for _ in range(MOST_ROUNDS):
        bracket = _bracket(places, _values(function, places, active), low, high, below, above)
        low, high, below, above = (np.where(active, new, old) for new, old in zip(bracket, (low, high, below, above), strict=True))
        active &= (high - low > narrow) & (above > 0)
        if not active.any():
            break
        width = high - low
        with np.errstate(all="ignore"):
            secant = low - below * width / (above - below)
        secant = np.where(np.isfinite(secant), secant, low)
        places = np.sort(np.clip(np.concatenate((secant + width * rings, low + width * even)), low, high), axis=0)
    return np.where(above > 0, (low + high) / 2, high)


def _values(function: Callable[[Any], Any], places: Number, active: Number) -> Any:
    """Values at the places of a round; one after the other, those behind all active elements' sign changes are not computed."""
    if places.size <= MOST_AT_ONCE:
        return np.broadcast_to(function(places), places.shape)
    values, before = np.full(places.shape, np.inf), active
    for place, value in zip(places, values, strict=True):
        value[...] = function(place)
        before = before & ~(value > 0)
        if not before.any():
            break
    return values


def _bracket(places: Number, values: Number, low: Number, high: Number, below: Number, above: Number) -> tuple[Any, Any, Any, Any]:
    """The two neighbouring places between which the function first changes its sign, and its values there."""
    places, values = np.concatenate(([low], places, [high])), np.concatenate(([below], values, [above]))
    over = values > 0
    over[-1] = True
    first = np.argmax(over, axis=0)[None]
    ends = [np.take_along_axis(numbers, at, axis=0)[0] for numbers in (places, values) for at in (first - 1, first)]
    return ends[0], ends[1], ends[2], ends[3]


def screened_root(function: Callable[[Any], Any], low: Number, high: Number, at_low: Number, close: float) -> Any:
    """As `increasing_root`, with one place at a time: for many elements of which only the best are computed again.

    ITP (Oliveira and Takahashi 2021, ACM TOMS 47(1)): regula falsi pulled towards the middle, never slower than bisection.

    >>> round(float(screened_root(lambda x: x * x - 2, 0.0, 2.0, -2.0, 1e-9)), 6)
    1.414214
    """
    low, high = (np.array(end, dtype=float) for end in np.broadcast_arrays(low, high))
    below, span = np.array(np.broadcast_to(at_low, low.shape), dtype=float), high - low
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


def _next(low: Number, high: Number, below: Number, above: Number, span: Number, tolerance: Number) -> Any:
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

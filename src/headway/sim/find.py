"""The highest load that meets limits: halving between a rate that meets them and one that does not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

CLOSE = 0.005  # of the rate, between one that meets the limits and one that does not
MOST_HALVINGS = 30
DOUBLINGS = 5
START = 1 / 64  # of the capacity


def meets_limits(row: Mapping[str, Any], limits: Mapping[str, float]) -> bool:
    """Whether a row meets every limit; a figure that it does not have meets none."""
    return bool(row["stable"]) and all(row.get(key) is not None and row[key] <= most for key, most in limits.items())


def between(rows: Sequence[Mapping[str, Any]], limits: Mapping[str, float]) -> tuple[Any, Any]:
    """Of the rows tried: that at the highest rate that meets the limits, and at the lowest that does not; None where there is none."""
    good = [row for row in rows if meets_limits(row, limits)]
    bad = [row for row in rows if not meets_limits(row, limits)]
    return max(good, key=lambda row: row["rate"], default=None), min(bad, key=lambda row: row["rate"], default=None)


def highest(at: Callable[[float], Mapping[str, Any]], capacity: float, limits: Mapping[str, float]) -> tuple[Any, Any]:
    """The row at the highest rate that meets the limits, and the row at the lowest that was seen not to; None where there is none."""
    low, high = capacity * START, capacity * 1.2
    good = at(low)
    if not meets_limits(good, limits):
        return None, good
    bad = at(high)
    for _ in range(DOUBLINGS):  # prefixes that are found, or users who give up, may carry more than the capacity
        if not meets_limits(bad, limits):
            break
        good, low, high = bad, high, 2.0 * high
        bad = at(high)
    if meets_limits(bad, limits):
        return bad, None
    for _ in range(MOST_HALVINGS):
        if high - low <= CLOSE * high:
            break
        rate = (low + high) / 2
        row = at(rate)
        if meets_limits(row, limits):
            low, good = rate, row
        else:
            high, bad = rate, row
    return good, bad

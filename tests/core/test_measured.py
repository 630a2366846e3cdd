"""Ranges of measured cells: a slip of the unit is asked back with the likely one; strays of a clock are recognised."""

from __future__ import annotations

import math

import pytest

from headway.core import measured
from headway.core.measured import BadCell, cell, strays
from headway.core.schema import Field

FIELDS = {name: q for name, q in vars(measured).items() if isinstance(q, Field)}


@pytest.mark.parametrize("name", FIELDS)
def test_every_quantity__has_ends_and_refuses_what_is_no_number(name: str) -> None:
    q = FIELDS[name]
    assert math.isfinite(q.high) and q.low >= 0 and q.help
    for value in (math.nan, math.inf, -math.inf, -1, -1e-300, 1e300, 10**400, "nan", "inf", "x", "1_0", "", True, None, [1], {}, b"1"):
        with pytest.raises(BadCell, match=r"^key: "):
            cell(value, q, "key")


@pytest.mark.parametrize(
    ("value", "name", "scale", "says"),
    [
        (412, "TTFT", 1.0, "6.87 min: milliseconds?"), (0.412, "TTFT", 1e-3, "412 us: seconds?"), (23, "TPOT", 1.0, "23 s: milliseconds?"),
        (0.023, "TPOT", 1e-3, "23 us: seconds?"), (1.7e12, "INSTANT", 1.0, "milliseconds?"), (1.7e18, "INSTANT", 1.0, "nanoseconds?"),
    ],
)  # fmt: skip
def test_cell__likely_unit(value: float, name: str, scale: float, says: str) -> None:
    with pytest.raises(BadCell) as caught:
        cell(value, FIELDS[name], "key", scale)
    assert says in str(caught.value)


def test_cell__real_extremes_are_taken() -> None:
    """The longest mean TTFT and the fastest and slowest TPOT of published runs, and of the fastest machine sold."""
    for value, name, scale in ((368_967.2, "TTFT", 1e-3), (7.1, "TTFT", 1e-3), (0.33, "TPOT", 1e-3), (548, "TPOT", 1e-3)):
        assert cell(value, FIELDS[name], "key", scale) == value * scale


def test_strays__both_ends_and_none_without_cause() -> None:
    times = [float(at) for at in range(40)]
    assert strays([*times, 12_300.0]) == {40}
    assert strays([1e9, *[1.7e9 + at for at in times]]) == {0}
    assert strays([*times, 5e4, 5.1e4]) == {40, 41}
    assert strays([*times, 100.0]) == strays([*times[:5], 1e6]) == strays([0.0] * 40 + [5.0], least_s=2.0) == frozenset()
    assert strays([0.0] * 40 + [5e3], least_s=2.0) == {40}

"""Couplings: what is exact comes back exactly whatever f is; what rounds is off by its rounding and no more."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.laws.coupling import coupled, round_trip_bound, uncoupled
from headway.reality.coupling import FORMATS, ROUNDOFF, SUM, XOR, back, couple, forward, inversion_error, rounded

WORDS = st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=8)


@given(xs=WORDS, group=st.sampled_from((XOR, SUM)), layers=st.integers(0, 20))
def test_couplings__of_words_come_back_whatever_f(xs: list[int], group, layers: int) -> None:
    x = np.array(xs, dtype=np.uint32)
    y = x[::-1].copy()
    residuals = [lambda half: half * half, lambda half: half & np.uint32(0), lambda half: half >> np.uint32(7)] * layers  # none invertible
    after = forward(x, y, residuals, group)
    returned = back(*after, residuals, group)
    assert (returned[0] == x).all() and (returned[1] == y).all()


def test_couple__is_a_feistel_round_and_a_reversible_layer() -> None:
    x, y = np.array([0b1100], dtype=np.uint16), np.array([0b1010], dtype=np.uint16)
    assert couple(x, y, lambda half: half >> np.uint16(1), XOR) == (0b1010 ^ 0b0110, 0b1100)
    assert couple(x, y, lambda half: half >> np.uint16(1), SUM) == (0b1010 + 0b0110, 0b1100)


@pytest.mark.parametrize("form", [form for form in FORMATS if form != "fixed64"])
def test_inversion_error__grows_with_depth_and_follows_the_rounding(form: str) -> None:
    errors = [inversion_error(layers, form, 0) for layers in (4, 16, 64)]
    assert errors[0] < errors[1] < errors[2]
    assert 0.1 * 4 < errors[0] / ROUNDOFF[form] * 4 < 10 * 4  # a few roundings in a few layers


def test_inversion_error__whole_numbers_have_none() -> None:
    assert [inversion_error(layers, "fixed64", seed) for layers in (1, 16, 64) for seed in (0, 1)] == [0.0] * 6


@given(value=st.floats(-1e30, 1e30).filter(lambda value: abs(value) > 1e-30))
def test_rounded__bf16_keeps_eight_bits(value: float) -> None:
    result = float(rounded(np.array([value]), "bf16")[0])
    assert abs(result - value) <= ROUNDOFF["bf16"] * abs(value) * (1 + 2**-15)
    mantissa, _ = np.frexp(result)
    assert float(mantissa * 2**8).is_integer()


@given(changed=st.floats(0.1, 1e3), added=st.floats(-1e3, 1e3))
def test_round_trip_bound__holds_in_fp32(changed: float, added: float) -> None:
    half, residual = np.float32(changed), np.float32(added)
    returned = uncoupled(coupled(half, residual), residual)
    bound = round_trip_bound(float(half) + float(residual), float(half), 2.0**-24)
    assert abs(float(returned) - float(half)) <= (bound + 2.0**-24) * float(half) * (1 + 1e-6)

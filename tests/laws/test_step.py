"""The laws of single kernels, held against their limits and against numbers worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.laws.step.parts import decode_attention_s, matmul_s, prefill_attention_s, smooth_max_s

times = st.floats(1e-9, 1e2)
norms = st.floats(1.0, 40.0)
shares = st.floats(0.01, 1.0)


def test_smooth_max_s__sum_at_norm_1_and_maximum_at_infinity() -> None:
    assert smooth_max_s(3.0, 4.0, 1) == pytest.approx(7.0)
    assert smooth_max_s(3.0, 4.0, 2) == pytest.approx(5.0)
    assert smooth_max_s(3.0, 4.0, np.inf) == 4.0
    assert smooth_max_s(4.0, 4.0, np.inf) == 4.0
    assert smooth_max_s(0.0, 0.0, 3.0) == 0.0
    assert smooth_max_s(0.0, 2.0, 3.0) == 2.0


@given(times, times, norms)
def test_smooth_max_s__symmetric_and_bounded(a: float, b: float, norm: float) -> None:
    found = smooth_max_s(a, b, norm)
    assert found == smooth_max_s(b, a, norm)
    assert max(a, b) * (1 - 1e-12) <= found <= (a + b) * (1 + 1e-12)
    assert found <= smooth_max_s(a, b, 1.0) * (1 + 1e-12)


@given(times, norms)
def test_smooth_max_s__no_overflow_or_underflow(a: float, norm: float) -> None:
    for scale in (1e-30, 1e30):
        assert smooth_max_s(a * scale, a * scale, norm) == pytest.approx(a * scale * 2 ** (1 / norm))


@given(times, shares, norms)
def test_matmul_s__one_kind_of_work_alone(work: float, share: float, norm: float) -> None:
    assert matmul_s(work, 0.0, 0.0, share, 0.5, 0.5, norm) == pytest.approx(work / share)
    assert matmul_s(0.0, work, 0.0, 0.5, share, 0.5, norm) == pytest.approx(work / share)
    assert matmul_s(0.0, 0.0, work, 0.5, 0.5, share, norm) == pytest.approx(work / share)


@given(times, times, times, st.floats(0.0, 10.0), norms)
def test_matmul_s__more_work_never_takes_less_time(compute: float, weights: float, activations: float, more: float, norm: float) -> None:
    def time(c: float, w: float, a: float) -> float:
        return float(matmul_s(c, w, a, 0.7, 0.8, 0.5, norm)) * (1 + 1e-12)

    least = float(matmul_s(compute, weights, activations, 0.7, 0.8, 0.5, norm))
    assert least <= time(compute * (1 + more), weights, activations)
    assert least <= time(compute, weights * (1 + more), activations)
    assert least <= time(compute, weights, activations * (1 + more))
    assert least >= max(compute, weights) + activations  # nothing beats its roofline


def test_matmul_s__arrays_equal_scalars() -> None:
    grid = np.geomspace(1e-6, 1e-2, 7)
    whole = matmul_s(grid[:, None], grid[None, :], 1e-6, 0.7, 0.8, 0.5, 2.5)
    assert whole.shape == (7, 7)
    assert whole[2, 5] == pytest.approx(float(matmul_s(grid[2], grid[5], 1e-6, 0.7, 0.8, 0.5, 2.5)))


def test_decode_attention_s__by_hand() -> None:
    assert decode_attention_s(0.0, 8e-6, 0, 0.0, 0.5, 0.8, 1e-8) == pytest.approx(10e-6)  # streaming alone
    assert decode_attention_s(6e-6, 8e-6, 0, 0.0, 0.5, 0.8, 1e-8) == pytest.approx(12e-6)  # scores are the limit
    assert decode_attention_s(0.0, 0.0, 4096, 0.0, 0.5, 0.8, 1e-8) == pytest.approx(4096e-8)  # many short sequences
    assert decode_attention_s(0.0, 8e-6, 0, 3e-6, 0.5, 0.8, 1e-8) == pytest.approx(13e-6)  # few long ones


def test_prefill_attention_s__by_hand() -> None:
    assert prefill_attention_s(7e-6, 0.0, 0.7) == pytest.approx(10e-6)
    isl, pad, flop = 1000.0, 500.0, 1e-9  # a pad of half the prompt doubles the causal triangle
    assert prefill_attention_s(flop * isl * isl / 2, flop * isl * pad, 1.0) == pytest.approx(2 * flop * isl * isl / 2)

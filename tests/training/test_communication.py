"""When communication hides: the textbook's conditions from the laws, and what `train` says of a layout."""

from __future__ import annotations

import numpy as np
import pytest

import headway as hw
from headway.laws.roofline.balance import tensor_ways_paid
from headway.laws.training.communication import (
    best_fsdp_ways,
    context_tokens_to_hide,
    expert_width_to_hide,
    mixed_exchange_s,
    mixed_tokens_to_hide,
    tokens_to_hide,
)

C5P, AXIS5P = 459e12, 180e9  # TPU v5p: FLOP/s in 16 bits, both directions of one axis
H100, NVLINK, IB = 989e12, 450e9, 50e9


@pytest.mark.parametrize(("axes", "expected"), [(1, 2550), (2, 1275), (3, 850)])
def test_tokens_to_hide__fsdp_on_tpu_v5p(axes: int, expected: float) -> None:
    """How to Scale Your Model: B / X > 2550 / axes on TPU v5p."""
    assert tokens_to_hide(2, 2.0, C5P, axes * AXIS5P) == pytest.approx(expected)


def test_tokens_to_hide__fsdp_equals_data_parallelism() -> None:
    """Gathers forward and backward and a scatter beside 6 FLOPs, or a scatter and a gather beside 4, are one rule in 16 bits."""
    assert tokens_to_hide(6, 6.0, C5P, AXIS5P) == tokens_to_hide(4, 4.0, C5P, AXIS5P) == tokens_to_hide(2, 2.0, C5P, AXIS5P)


def test_tokens_to_hide__h100() -> None:
    assert tokens_to_hide(2, 2.0, H100, NVLINK) == pytest.approx(2200, rel=2e-3)
    assert tokens_to_hide(2, 2.0, H100, IB) == pytest.approx(19_800, rel=2e-3)


def test_tokens_to_hide__pods_over_the_data_centre_network() -> None:
    """B_pod > C_pod / W_dcn: the same tokens whether a pod or one of its chips is counted."""
    chips, egress = 8960, 6.25e9
    assert tokens_to_hide(2, 2.0, C5P * chips, egress * chips) == pytest.approx(tokens_to_hide(2, 2.0, C5P, egress)) == 73_440


@pytest.mark.parametrize(("axes", "expected"), [(1, 11.8), (2, 23.5)])
def test_tp_paid__by_axes(axes: int, expected: float) -> None:
    """Y < M_Y F / 2550, whatever the batch: 8 to 16 ways for F = 30,000."""
    assert tensor_ways_paid(30_000, axes * AXIS5P, C5P, 2.0) == pytest.approx(expected, abs=0.05)


def test_fsdp_degree__best_split_sends_least() -> None:
    """X_opt = sqrt(B / F * M_X / M_Y * N) against a scan of every split of 64 x 64 chips."""
    tokens, hidden, width, chips = 4_000_000, 8192, 32_768, 4096
    best = float(best_fsdp_ways(tokens, width, 2, 1, chips))
    assert best == pytest.approx((tokens / width * 2 * chips) ** 0.5)
    x = np.geomspace(1, chips, 20_001)
    sent = mixed_exchange_s(tokens, hidden, width, x, chips / x, 2 * AXIS5P, AXIS5P, 2)
    assert x[np.argmin(sent)] == pytest.approx(best, rel=1e-3)


def test_mixed_tokens_to_hide__compute_bound_exactly_beyond_the_edge() -> None:
    """Compute-bound exactly where B / N > 4 alpha^2 / (M_X M_Y F), at the best split."""
    hidden, width, chips, axes_x, axes_y = 8192, 32_768, 4096, 2, 1
    edge = float(mixed_tokens_to_hide(C5P / AXIS5P, axes_x, axes_y, width))
    assert edge == pytest.approx(4 * 2550**2 / (2 * 32_768))
    for per_chip, hides in ((1.01 * edge, True), (0.99 * edge, False)):
        tokens = per_chip * chips
        x = float(best_fsdp_ways(tokens, width, axes_x, axes_y, chips))
        sent = mixed_exchange_s(tokens, hidden, width, x, chips / x, axes_x * AXIS5P, axes_y * AXIS5P, 2)
        compute = 4 * tokens * hidden * width / (chips * C5P)
        assert (float(sent) < compute) is hides


def test_expert_width_to_hide__deepseek_v3_is_too_narrow() -> None:
    """f_e = 2048 where some 9,900 (dispatch in fp8) or 13,200 (in 16 bits) would: five and six times too narrow."""
    assert expert_width_to_hide(2.0, 2.0, H100, IB) == pytest.approx(0.67 * 19_780, rel=0.01)
    assert expert_width_to_hide(1.0, 2.0, H100, IB) / 2048 == pytest.approx(4.8, abs=0.05)


def test_context_tokens_to_hide__ring_attention() -> None:
    """s / c > (h_kv / h) (q / 2) C / W."""
    assert context_tokens_to_hide(8 / 64, 2, 2.0, H100, IB) == pytest.approx(8 / 64 * 19_780)


def test_train__columns_of_what_would_hide() -> None:
    row = next(iter(hw.train("llama-3.1-405b", "16384xh100-sxm", seq=8192, global_batch=2048 * 8192, tp=8, cp=1, pp=16, dp=128)))
    assert row["micro_tokens"] == 8192 * row["micro_batch"]
    assert row["tokens_to_hide"] == pytest.approx(6 / 4 * 989.4e12 / IB, rel=1e-3)  # gradients of four bytes, weights of two
    assert row["tp_paid"] == pytest.approx(22, abs=0.5) and row["expert_width_to_hide"] is None
    fsdp = next(iter(hw.train("llama-3.1-8b", "tpu-v5p-4x4x4", seq=8192, tp=1, cp=1, pp=1, zero=3, bytes_gradient_wire=2)))
    assert fsdp["tokens_to_hide"] == pytest.approx(C5P / 600e9)  # the catalogue has 200 GB/s an axis
    routed = next(iter(hw.train("deepseek-v3", "2048xh800", seq=4096, tp=1, pp=16, ep=64, dtype="fp8")))
    assert routed["expert_width_to_hide"] == pytest.approx(19_790, rel=1e-3)


def test_train__one_chip_sends_nothing() -> None:
    row = next(iter(hw.train("qwen2.5-0.5b", "1xh100-sxm", seq=4096)))
    assert row["tokens_to_hide"] is None and row["expert_width_to_hide"] is None and row["tp_paid"] is None
    assert row["fits"] and row["parameters_s"] == row["tp_s"] == row["ep_s"] == row["bubble_s"] == 0

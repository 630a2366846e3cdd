"""The balanced batch and its neighbours against what is true without them: crossings found by search, limits, counting."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.laws import rack
from headway.laws.collectives import expert_parallel
from headway.laws.economics import cost
from headway.laws.queueing import departures
from headway.laws.roofline import balance, batch_step

PARAMS = st.floats(1e8, 1e13)
PEAKS = st.floats(1e13, 1e18)
BANDWIDTHS = st.floats(1e11, 1e15)
SHARE = st.floats(0.01, 0.95)


def crossing(rises: float, offset: float, slope: float) -> float:
    """Where a line `rises * B` meets `offset + slope * B`, by bisection."""
    low, high = 0.0, 1.0
    while rises * high < offset + slope * high:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if rises * middle < offset + slope * middle else (low, middle)
    return high


@given(total=PARAMS, sparsity=st.floats(1.0, 100.0), peak=PEAKS, bandwidth=BANDWIDTHS, width=st.sampled_from((0.5, 1.0, 2.0)))
def test_balanced_batch__hardware_ratio_times_sparsity(total: float, sparsity: float, peak: float, bandwidth: float, width: float) -> None:
    active = total / sparsity
    found = balance.balanced_batch(balance.hardware_ratio(width, peak, bandwidth), total, active)
    assert found == pytest.approx(crossing(2 * active / peak, width * total / bandwidth, 0.0), rel=1e-9)


@given(total=PARAMS, peak=PEAKS, bandwidth=BANDWIDTHS, share=SHARE)
def test_balanced_batch_with_kv__compute_equals_weights_plus_kv(total: float, peak: float, bandwidth: float, share: float) -> None:
    weights, compute = total / bandwidth, 2 * total / peak
    found = float(balance.balanced_batch_with_kv(weights, compute, share * compute))
    assert found == pytest.approx(crossing(compute, weights, share * compute), rel=1e-9)
    assert found > weights / compute


def test_balanced_batch_with_kv__infinite_unless_kv_is_below_compute() -> None:
    found = balance.balanced_batch_with_kv(1e-3, 2e-7, np.array([0.0, 1e-7, 2e-7, 3e-7]))  # a warning would fail the test
    assert found.tolist() == pytest.approx([5000.0, 10000.0, math.inf, math.inf])


def test_board_ratio__equals_hardware_ratio_in_fp8_and_half_in_bf16() -> None:
    """H100 fp8: half as many multiplies as FLOP, one byte per weight; bf16 on the board's own terms would be off by 2."""
    assert batch_step.board_ratio(1978.9e12 / 2, 3.35e12) == pytest.approx(balance.hardware_ratio(1.0, 1978.9e12, 3.35e12), rel=1e-12)
    assert batch_step.board_ratio(989.4e12 / 2, 3.35e12) == pytest.approx(balance.hardware_ratio(2.0, 989.4e12, 3.35e12) / 2, rel=1e-12)


def test_mfu__compute_share_of_step_below_and_above_balance() -> None:
    batches = np.array([1.0, 500.0, 5000.0, 50000.0])
    compute, weights = batches * 2e-7, 1e-3
    by_times = balance.mfu(compute, batch_step.roofline_s(compute, weights))
    assert by_times == pytest.approx(balance.mfu_below_balance(batches, weights / 2e-7))
    assert by_times[-1] == 1.0


@given(compute=st.floats(0, 1), weights=st.floats(0, 1), kv=st.floats(0, 1))
def test_step_models__ordered_and_within_a_factor_of_two(compute: float, weights: float, kv: float) -> None:
    floor = batch_step.overlapped_step_s(compute, weights, kv)
    apart, serial = batch_step.kv_apart_step_s(compute, weights, kv), batch_step.serial_step_s(compute, weights, kv)
    assert floor <= apart * (1 + 1e-12) <= serial * (1 + 1e-11)
    assert serial <= 2 * floor * (1 + 1e-12)


def test_machine_s_per_token__falls_to_its_floor_with_batch() -> None:
    batches = np.geomspace(1, 1e9, 50)
    compute, kv = 2.28e-7, 5.0e-7
    spent = batch_step.machine_s_per_token(batch_step.overlapped_step_s(batches * compute, 1.16e-3, batches * kv), batches)
    floor = batch_step.machine_s_per_token_floor(compute, kv)
    assert np.all(np.diff(spent) < 0) and np.all(spent > floor)
    assert spent[-1] == pytest.approx(floor, rel=1e-5)


def test_distinct_experts__equals_enumeration() -> None:
    """All ways in which 3 tokens can each choose 2 of 5 experts, equally likely."""
    choices = list(itertools.combinations(range(5), 2))
    touched = [len(set().union(*draw)) for draw in itertools.product(choices, repeat=3)]
    assert expert_parallel.distinct_experts(5, 2, 3) == pytest.approx(sum(touched) / len(touched), rel=1e-12)


def test_distinct_experts__from_top_k_to_all_with_batch() -> None:
    assert expert_parallel.distinct_experts(256, 8, 1) == pytest.approx(8)
    assert expert_parallel.distinct_experts(256, 8, 1e5) == pytest.approx(256)
    assert expert_parallel.distinct_experts(64, 64, 1) == 64


@given(batch=st.floats(1, 1e5), context=st.floats(1, 1e6))
def test_capacity__batch_and_context_fill_the_memory_exactly(batch: float, context: float) -> None:
    """The batch that fits at a context, and the context that fits at that batch, fill the memory to the byte."""
    memory, weights, kv = 13.824e12, 671e9, 35136.0
    fitting = float(balance.capacity_batch(memory, weights, context, kv))
    assert weights + fitting * context * kv == pytest.approx(memory, rel=1e-12)
    assert float(balance.capacity_context(memory, weights, fitting, kv)) == pytest.approx(context, rel=1e-9)
    longest = float(balance.capacity_context(memory, weights, batch, kv))
    assert weights + batch * longest * kv == pytest.approx(memory, rel=1e-12)


def test_capacity__zero_where_weights_exceed_memory() -> None:
    assert balance.capacity_batch(640e9, 671e9, 8192, 35136.0) == 0
    assert balance.capacity_context(640e9, 671e9, 1, 35136.0) == 0


def test_balanced_batch_full_memory__compute_takes_the_drain_time() -> None:
    """At the balanced batch of a full memory, compute takes exactly the drain time."""
    weights, memory, bandwidth, peak, active = 671e9, 13.824e12, 576e12, 324e15, 37e9
    balanced = balance.balanced_batch(balance.hardware_ratio(1.0, peak, bandwidth), weights, active)
    needed = balanced * memory / weights
    assert batch_step.batch_compute_s(needed, active, peak) == pytest.approx(balance.drain_s(memory, bandwidth), rel=1e-12)


def test_attention_crossover_context__six_times_hidden() -> None:
    """12 D^2 weights a layer (SwiGLU-free) and D-wide attention: L = 6 D, whatever the depth and the heads."""
    for layers, heads, width in ((32, 32, 128), (80, 64, 128), (10, 16, 64)):
        hidden = heads * width
        found = balance.attention_crossover_context(12 * hidden**2 * layers, layers, heads, width, width)
        assert found == pytest.approx(6 * hidden)


def test_departures__littles_law() -> None:
    assert departures.tokens_in_flight(100_000, departures.user_tokens_per_s(0.02)) == pytest.approx(2000)
    assert departures.worst_latency_s(0.02) == 0.04


def test_bytes_read__short_step_reads_part_of_the_memory() -> None:
    assert balance.bytes_read(balance.drain_s(80e9, 3.35e12), 3.35e12) == pytest.approx(80e9)
    weights_alone = batch_step.latency_floor_s(671e9, 1.0, 576e12)
    assert weights_alone / balance.drain_s(13824000000000.0, 576000000000000.0) == pytest.approx(671 / 13_824)


@given(width=st.floats(256, 65536), link=st.floats(1e9, 1e13), peak=PEAKS, element=st.sampled_from([1.0, 2.0]))
def test_tensor_ways_paid__sending_takes_as_long_as_multiplying(width: float, link: float, peak: float, element: float) -> None:
    """Scaling Book: Y chips multiply B tokens by a D x F and an F x D matrix, gather B D activations before and scatter them after."""
    tokens, hidden = 512.0, 4096.0
    ways = balance.tensor_ways_paid(width, link, peak, element)
    multiply = 2 * (2 * tokens * hidden * width) / (ways * peak)
    assert multiply == pytest.approx(2 * element * tokens * hidden / link, rel=1e-12)


@pytest.mark.parametrize("ports", [16, 64, 72, 144])
def test_hops_through_switches__change_where_a_level_is_full(ports: int) -> None:
    two_levels = int(rack.clos_most_chips(ports))
    hops = [float(rack.hops_through_switches(chips, ports)) for chips in (ports, ports + 1, two_levels, two_levels + 1)]
    assert hops == [2, 4, 4, 6]


@given(
    batch=st.floats(1, 1e5), compute=st.floats(1e-9, 1e-6), weights=st.floats(1e-6, 1e-1), kv=st.floats(0, 1e-6),
    times=st.floats(1, 1e6),
)  # fmt: skip
def test_slow_tier_saving__upper_limit_of_larger_batches(batch: float, compute: float, weights: float, kv: float, times: float) -> None:
    def spent(sequences: float) -> float:
        return float(batch_step.machine_s_per_token(batch_step.overlapped_step_s(sequences * compute, weights, sequences * kv), sequences))

    most = float(batch_step.slow_tier_saving(spent(batch), batch_step.machine_s_per_token_floor(compute, kv)))
    assert 0 <= most < 1
    assert 1 - spent(batch * times) / spent(batch) <= most + 1e-9
    assert 1 - spent(batch * 1e12) / spent(batch) == pytest.approx(most, abs=1e-3)


@given(price=st.floats(1, 100), at_price=st.floats(1, 20), balanced=st.floats(100, 1e5))
def test_batch_ratio_identity__ratio_of_closed_standard_to_fast_batch(price: float, at_price: float, balanced: float) -> None:
    apart = (at_price * balanced) / (balanced / price)
    assert apart == pytest.approx(cost.batch_ratio_identity(price, at_price), rel=1e-12)

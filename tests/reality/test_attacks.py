"""Differentials against the published weights of SIMON32's first rounds; gradients against finite differences."""

from __future__ import annotations

import numpy as np
import pytest

from headway.reality import attacks as network
from headway.reality.attacks import best_differential, candidates
from headway.reality.ciphers.catalogue import cipher

KEY = 0x1918111009080100
PUBLISHED = {1: 0, 2: 2, 3: 4, 4: 6}  # weights of the optimal trails: Biryukov, Roy and Velichkov 2014, ePrint 2013/663
LONGER = {5: 8, 6: 12}  # several trails share a difference: a differential is likelier than its best trail


@pytest.mark.parametrize(("rounds", "weight"), PUBLISHED.items())
def test_differential__weight_as_published(rounds: int, weight: int) -> None:
    best = best_differential(cipher("simon32"), rounds, KEY, 2**15, 0)
    expected = best.pairs * 2.0**-weight
    assert abs(best.hits - expected) <= 4 * np.sqrt(expected * (1 - 2.0**-weight)) + 1e-9  # four standard deviations


@pytest.mark.parametrize(("rounds", "weight"), LONGER.items())
def test_differential__at_least_as_likely_as_its_best_trail(rounds: int, weight: int) -> None:
    best = best_differential(cipher("simon32"), rounds, KEY, 2**17, 0)
    assert 2.0**-weight * 0.7 < best.hits / best.pairs < 2.0 ** -(weight - 2)


def test_differential__pairs_do_have_the_difference() -> None:
    best = best_differential(cipher("simon32"), 4, KEY, 2**14, 5)
    plain = np.arange(2**16, dtype=np.uint64) * np.uint64(65521)
    simon = cipher("simon32")
    after = simon.encrypt(plain, KEY, 4) ^ simon.encrypt(plain ^ np.uint64(best.input_difference), KEY, 4)
    assert (after == np.uint64(best.output_difference)).mean() == pytest.approx(best.hits / best.pairs, rel=0.25)


def test_candidates__one_of_each_rotation() -> None:
    differences = list(candidates(32))
    assert len(set(differences)) == len(differences)
    assert sum(value.bit_count() == 1 for value in differences) == 2
    turned = {tuple(sorted(turn(value, places) for places in range(16))) for value in differences}
    assert len(turned) == len(differences)


def turn(value: int, places: int) -> int:
    low, high = value & 0xFFFF, value >> 16
    low, high = ((half << places | half >> (16 - places)) & 0xFFFF for half in (low, high))
    return high << 16 | low


# -- gradients ------------------------------------------------------------------------------------------------------------------


def loss(subject: network.ResidualNetwork, inputs: np.ndarray, labels: np.ndarray) -> float:
    return float(np.log1p(np.exp(-labels * (network.states(subject, inputs)[-1] @ subject.readout))).mean())


def test_gradients__as_finite_differences() -> None:
    rng = np.random.default_rng(0)
    subject = network.fresh(3, rng)
    inputs, labels = rng.standard_normal((5, network.WIDTH)), np.array([1.0, -1, 1, 1, -1])
    by_weights, by_inputs = network.gradients(subject, inputs, labels)
    for array, slopes in ((subject.into, by_weights.into), (subject.out, by_weights.out), (subject.readout, by_weights.readout),
                          (inputs, by_inputs)):  # fmt: skip
        for place in rng.choice(array.size, 5, replace=False):
            at = np.unravel_index(place, array.shape)
            value, ends = array[at], []
            for step in (1e-5, -1e-5):
                array[at] = value + step
                ends.append(loss(subject, inputs, labels))
            array[at] = value
            assert (ends[0] - ends[1]) / 2e-5 == pytest.approx(slopes[at], rel=1e-5, abs=1e-9)


def test_attack__gradient_beats_as_large_a_random_move() -> None:
    counts = network.attacked(2, 0.5, 0)
    assert counts.right >= 0.98 * counts.points and counts.right_random >= 0.95 * counts.points
    assert counts.right_gradient < 0.75 * counts.points


def test_attack__no_move_changes_nothing() -> None:
    counts = network.attacked(1, 1e-12, 0)
    assert counts.right == counts.right_random == counts.right_gradient


def test_relative_changes__a_residual_network_keeps_a_small_change_small() -> None:
    for blocks in (1, 8, 32):
        change_out, change_in = network.relative_changes(blocks, 0)
        assert 0.8 < change_out / change_in < 1.25

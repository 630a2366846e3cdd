"""Reversible layers: gradients against finite differences, bytes counted by hand, streams that come back, a cipher of the same couplings.

Torch's part was last run on 2026-11-27 with torch 2.14.1 (processor); it is skipped where torch is not installed.
"""

from __future__ import annotations

import dataclasses
import sys

import numpy as np
import pytest

from headway.core.trace import Traced
from headway.reality import coupling, threads
from headway.reality.lab import couplings, experiment, reversible
from headway.reality.lab.couplings import CHECKPOINTED, MODES, PLAIN, REVERSIBLE, NumpyStack, StackSize, half_squares, random_halves
from headway.reality.lab.reversible_setup import ReversibleSetup
from support.command import Cli

SIZE = StackSize(layers=3, width=8, tokens=5)
SETUP = ReversibleSetup(library="numpy")
CALIBRATION = {
    "forward_s": 0.02, "backward_s": 0.05, "peaks": dict.fromkeys(MODES, 5e7),
    "errors": {form: {"16": [1e-15, 2e-15], "64": [2e-15, 3e-15]} for form in ("fp64", "fp32")},
}  # fmt: skip


def flat(step: couplings.StackStep) -> np.ndarray:
    return np.concatenate([np.asarray(gradient).ravel() for gradient in step.gradients])


def test_gradients_are_those_of_finite_differences():
    """In 64 bits, with dropout, of a weight of every matrix and of a number of both streams; the loss knows nothing of a backward pass."""
    halves = random_halves(SIZE, 1, "float64")
    stack = NumpyStack(SIZE, 0, "float64")
    gradients = stack.step(REVERSIBLE, halves, half_squares, 7, "fp64").gradients
    draw = np.random.default_rng(2)
    for array, gradient in zip((*stack.weights, halves[0], halves[1]), gradients, strict=True):
        place = tuple(draw.integers(size) for size in array.shape)
        value, losses = array[place], []
        for shift in (1e-6, -1e-6):
            array[place] = value + shift
            losses.append(stack.step(PLAIN, halves, half_squares, 7, "fp64").loss)
        array[place] = value
        assert gradient[place] == pytest.approx((losses[0] - losses[1]) / 2e-6, rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("layers", [8, 16, 32, 64])
def test_every_way_has_the_same_gradients_and_holds_what_one_counts_by_hand(layers):
    size = StackSize(layers=layers, width=16, tokens=8)
    halves = random_halves(size, 0)
    steps = {mode: NumpyStack(size, 0).step(mode, halves, half_squares, 3) for mode in MODES}
    assert coupling.relative_error(flat(steps[CHECKPOINTED]), flat(steps[PLAIN])) == 0
    assert coupling.relative_error(flat(steps[REVERSIBLE]), flat(steps[PLAIN])) < 1e-5
    stream = 8 * 16 * 4  # tokens, width, bytes
    inside = 8 * (2 * 16 * 4 + 2 * 32 * 4 + 16 + 8)  # inputs of norm and matrix; two middles; a mask of bytes; a mean and a deviation
    assert {mode: step.activations for mode, step in steps.items()} == {
        PLAIN: layers * inside, CHECKPOINTED: layers * stream, REVERSIBLE: 2 * stream,
    }  # fmt: skip


def test_another_mask_would_give_other_gradients():
    halves = random_halves(SIZE, 0)
    first, again, other = (flat(NumpyStack(SIZE, 0).step(REVERSIBLE, halves, half_squares, seed)) for seed in (1, 1, 2))
    assert (first == again).all() and coupling.relative_error(other, first) > 0.01


def test_whole_numbers_come_back_and_floats_by_their_roundoff():
    size = StackSize(layers=16, width=32, tokens=8)
    halves, stack = random_halves(size, 0), NumpyStack(size, 0)
    drift = {form: stack.drift(halves, 0, form) for form in coupling.ROUNDOFF if form != "fp64"}
    assert drift["fixed64"] == 0
    assert drift["bf16"] / drift["fp16"] == pytest.approx(8, rel=0.3)  # three bits
    assert 0 < drift["fp32"] < 1e-5
    plain, again = (stack.step(mode, halves, half_squares, 0, "fixed64") for mode in (PLAIN, REVERSIBLE))
    assert (flat(again) == flat(plain)).all()


def test_a_rate_moves_weights_as_gradients_do():
    halves, moved, stack = random_halves(SIZE, 0), NumpyStack(SIZE, 0), NumpyStack(SIZE, 0)
    step = stack.step(PLAIN, halves, half_squares, 0)
    for mode in MODES:
        moved = NumpyStack(SIZE, 0)
        assert len(moved.step(mode, halves, half_squares, 0, rate=0.01).gradients) == 2
        for weight, start, gradient in zip(moved.weights, stack.weights, step.gradients, strict=False):
            assert weight == pytest.approx(start - 0.01 * gradient, abs=1e-6)


def test_the_couplings_encrypt_and_only_their_key_decrypts():
    plain = np.random.default_rng(0).integers(0, 2**16, (2, 16, 64), dtype=np.uint16)
    size = StackSize(layers=8, width=64, tokens=16)
    hidden = reversible.encrypted(plain, NumpyStack(size, 0))
    assert (reversible.encrypted(hidden, NumpyStack(size, 0), coupling.back) == plain).all()
    for other in (hidden, reversible.encrypted(hidden, NumpyStack(size, 1), coupling.back)):
        share = np.unpackbits((other ^ plain).view(np.uint8)).mean()
        assert share == pytest.approx(0.5, abs=0.03)


def test_predictions_are_narrow_know_their_laws_and_are_exact_where_bytes_are_counted():
    points = list(reversible.predict(SETUP, CALIBRATION))
    assert experiment.sharp(points) == points and len(points) > 25
    for point in points:
        assert point.low <= point.value <= point.high
        assert isinstance(point.value, Traced) or point.quantity in (reversible.LOSS, reversible.CIPHER)
    activations = {(point.quantity, point.at): point for point in points if point.quantity.startswith(reversible.ACTIVATIONS)}
    assert all(point.low == point.high for point in activations.values())
    flat_bytes = {float(point.value) for (name, _), point in activations.items() if name.endswith(REVERSIBLE)}
    assert flat_bytes == {2.0 * 2048 * 128 * 4}
    slower = [point for point in points if point.quantity == reversible.SLOWDOWN]
    assert all(point.value == pytest.approx(0.09 / 0.07) for point in slower)
    quick = list(reversible.predict(dataclasses.replace(SETUP, quick=True), CALIBRATION | {"peaks": {REVERSIBLE: None}}))
    assert len(quick) > 12 and not any(point.quantity.startswith(reversible.PEAK) for point in quick)


def test_a_small_task_is_learned_alike():
    facts: dict = {}
    [(_, _, ratio, _)] = reversible._training(SETUP, facts)
    first, plain, again = facts["losses"]
    assert plain < first / 3 and again == pytest.approx(plain, rel=1e-4) and ratio == pytest.approx(again / plain)


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory since a moment is what Linux tells")
def test_peak_memory_of_a_process_is_flat_in_depth():
    def peak(mode: str, layers: int) -> float:
        size = {"layers": layers, "width": 64, "tokens": 4096}
        return threads.in_child(reversible.MEMORY_CHILD, {"library": "numpy", "mode": mode, "seed": 0, "size": size}, 1)["peak"]

    few, many = peak(REVERSIBLE, 4), peak(REVERSIBLE, 16)
    assert many == pytest.approx(few, rel=0.1)
    assert peak(PLAIN, 16) - many > 0.9 * (16 * 4096 * (64 * 9 + 8 + 2 * 128 * 4) - few)


@pytest.mark.parametrize(("command", "word"), [
    (("batch", "--width", "512"), "reversible"), (("reversible", "--limit", "3"), "trains"), (("reversible", "--width", "8"), "--width"),
])  # fmt: skip
def test_flags_of_another_and_sizes_that_are_none_are_refused(cli: Cli, command, word):
    answer = cli("lab", *command)
    assert (answer.status, answer.err.count("\n")) == (2, 1) and word in answer.err


def test_torch_that_is_not_installed_is_refused_by_name(monkeypatch, cli: Cli):
    monkeypatch.setattr(reversible, "find_spec", lambda name: None)
    answer = cli("lab", "reversible", "--library", "torch")
    assert answer.status == 2 and "numpy" in answer.err
    assert reversible.fitted(ReversibleSetup()).library == "numpy"


# -- torch ----------------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def torch_stack():
    pytest.importorskip("torch", reason="the extra lab is not installed")
    from headway.reality.lab.couplings_torch import TorchStack

    return TorchStack


def test_torch_agrees_with_its_own_autograd_and_leaves_its_random_numbers_alone(torch_stack):
    import torch  # type: ignore[import-not-found]

    for layers in (8, 64):
        size = StackSize(layers=layers, width=64, tokens=32)
        halves, stack, state = random_halves(size, 0), torch_stack(size, 0), torch.get_rng_state()
        plain, checkpointed, again = (stack.step(mode, halves, half_squares, 3) for mode in MODES)
        assert (torch.get_rng_state() == state).all()
        assert coupling.relative_error(flat(again), flat(plain)) < 1e-5
        assert coupling.relative_error(flat(checkpointed), flat(plain)) < 1e-6
        stream = 32 * 64 * 4
        activations = [layers * 32 * (64 * 9 + 2 * 128 * 4 + 8), layers * stream, 2 * stream]
        assert [step.activations for step in (plain, checkpointed, again)] == activations


def test_torch_and_numpy_have_the_same_gradients_where_nothing_is_dropped(torch_stack, monkeypatch):
    from headway.reality.lab import couplings_torch

    for module in (couplings, couplings_torch):
        monkeypatch.setattr(module, "DROPOUT", 0.0)
    halves = random_halves(SIZE, 0)
    for mode in MODES:
        ours, theirs = (stack(SIZE, 0).step(mode, halves, half_squares, 0) for stack in (NumpyStack, torch_stack))
        assert ours.loss == pytest.approx(theirs.loss, rel=1e-5)
        assert coupling.relative_error(flat(ours), flat(theirs)) < 1e-5


def test_torch_holds_streams_in_fixed_point_exactly(torch_stack):
    size = StackSize(layers=16, width=32, tokens=8)
    halves, stack = random_halves(size, 0), torch_stack(size, 0)
    assert stack.drift(halves, 0, "fixed64") == 0 < stack.drift(halves, 0, "bf16") < 0.05
    plain, again = (stack.step(mode, halves, half_squares, 0, "fixed64") for mode in (PLAIN, REVERSIBLE))
    assert (flat(again) == flat(plain)).all()


def test_torch_moves_weights_as_gradients_do(torch_stack):
    halves, stack = random_halves(SIZE, 0), torch_stack(SIZE, 0)
    step = stack.step(PLAIN, halves, half_squares, 0)
    for mode in MODES:
        moved = torch_stack(SIZE, 0)
        assert len(moved.step(mode, halves, half_squares, 0, rate=0.01).gradients) == 2
        for weight, start, gradient in zip(moved.weights, stack.weights, step.gradients, strict=False):
            assert weight.detach().numpy() == pytest.approx((start - 0.01 * gradient).detach().numpy(), abs=1e-6)

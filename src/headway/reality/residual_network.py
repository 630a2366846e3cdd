"""A small residual network in numpy, trained here, and a gradient attack on it: differentiation over the reals, as of a cipher over GF(2).

The task is two clouds of points in 32 dimensions. The attack moves each input by epsilon in every coordinate, along the sign of the loss
gradient (Goodfellow et al. 2014, arXiv:1412.6572); its control moves it as far in random directions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

WIDTH = 32
HIDDEN = 32
DISTANCE = 3.0  # from the origin to the middle of a cloud, in standard deviations
POINTS = 240  # few enough that a product of matrices stays on one core
STEPS = 100
RATE = 0.2
NUDGE = 1e-4  # relative size of the change whose growth is measured


@dataclass(frozen=True, slots=True, kw_only=True)
class ResidualNetwork:
    """Blocks x + tanh(x A) B, and a readout; all blocks of one kind of matrix in one array, blocks first."""

    into: np.ndarray
    out: np.ndarray
    readout: np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackCounts:
    """Points that a network classifies rightly: as they are, moved at random, and moved along the gradient."""

    points: int
    right: int
    right_random: int
    right_gradient: int


def fresh(blocks: int, rng: np.random.Generator) -> ResidualNetwork:
    """A network with random weights, its residuals scaled so that their sum stays small at any depth."""
    return ResidualNetwork(
        into=rng.standard_normal((blocks, WIDTH, HIDDEN)) / WIDTH**0.5,
        out=rng.standard_normal((blocks, HIDDEN, WIDTH)) / (HIDDEN * blocks) ** 0.5,
        readout=rng.standard_normal(WIDTH) / WIDTH**0.5,
    )


def states(network: ResidualNetwork, inputs: np.ndarray) -> list[np.ndarray]:
    """Input and output of every block, in order."""
    layers = [inputs]
    for into, out in zip(network.into, network.out, strict=True):
        layers.append(layers[-1] + np.tanh(layers[-1] @ into) @ out)
    return layers


def gradients(network: ResidualNetwork, inputs: np.ndarray, labels: np.ndarray) -> tuple[ResidualNetwork, np.ndarray]:
    """Gradients of the mean logistic loss: by the weights, and by the inputs."""
    layers = states(network, inputs)
    margin = labels * (layers[-1] @ network.readout)
    slope = -labels / (1 + np.exp(margin)) / len(labels)
    behind = np.outer(slope, network.readout)
    into, out = np.empty_like(network.into), np.empty_like(network.out)
    for block in reversed(range(len(network.into))):
        inner = np.tanh(layers[block] @ network.into[block])
        out[block] = inner.T @ behind
        before = (behind @ network.out[block].T) * (1 - inner**2)
        into[block] = layers[block].T @ before
        behind = behind + before @ network.into[block].T
    return ResidualNetwork(into=into, out=out, readout=layers[-1].T @ slope), behind


def trained(blocks: int, seed: int) -> ResidualNetwork:
    """A network of `blocks` blocks after plain gradient descent on the two clouds."""
    rng = np.random.default_rng(seed)
    network = fresh(blocks, rng)
    inputs, labels = clouds(rng)
    for _ in range(STEPS):
        slopes, _ = gradients(network, inputs, labels)
        network = ResidualNetwork(
            into=network.into - RATE * slopes.into, out=network.out - RATE * slopes.out, readout=network.readout - RATE * slopes.readout
        )
    return network


def clouds(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Points of two clouds around opposite corners of a cube, and their labels -1 and 1."""
    labels = rng.choice([-1.0, 1.0], POINTS)
    return rng.standard_normal((POINTS, WIDTH)) + np.outer(labels, np.full(WIDTH, DISTANCE / WIDTH**0.5)), labels


def attacked(blocks: int, epsilon: float, seed: int) -> AttackCounts:
    """Counts on fresh points: untouched, and with every coordinate moved by `epsilon` at random or along the gradient."""
    network = trained(blocks, seed)
    rng = np.random.default_rng(seed + 1)
    inputs, labels = clouds(rng)
    _, slopes = gradients(network, inputs, labels)
    random_signs = rng.choice([-1.0, 1.0], inputs.shape)

    def right(points: np.ndarray) -> int:
        return int((labels * (states(network, points)[-1] @ network.readout) > 0).sum())

    return AttackCounts(
        points=POINTS, right=right(inputs), right_random=right(inputs + epsilon * random_signs),
        right_gradient=right(inputs + epsilon * np.sign(slopes)),
    )  # fmt: skip


def relative_changes(blocks: int, seed: int) -> tuple[float, float]:
    """A small random change of the input of a fresh network, and the change of its output, each relative to what changes."""
    rng = np.random.default_rng(seed)
    network = fresh(blocks, rng)
    inputs = rng.standard_normal((POINTS, WIDTH))
    neighbours = inputs + NUDGE * rng.standard_normal(inputs.shape)
    before, after = states(network, inputs)[-1], states(network, neighbours)[-1]
    change_out = np.linalg.norm(after - before) / np.linalg.norm(before)
    return float(change_out), float(np.linalg.norm(neighbours - inputs) / np.linalg.norm(inputs))

"""Attacks that are run here: a flipped bit of a cipher, likely differences of a reduced one, and a gradient attack on a small network.

Avalanche counts the output bits that change when one input bit flips, over random plaintexts. Differential cryptanalysis asks which
difference between two plaintexts most often gives one difference behind a reduced cipher: differentiation over GF(2), a derivative in a
direction, evaluated at random points. The residual network in numpy, trained here, is its companion over the reals: the attack moves each
input by epsilon in every coordinate, along the sign of the loss gradient (Goodfellow et al. 2014, arXiv:1412.6572), its control as far in
random directions; the task is two clouds of points in 32 dimensions.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from headway.core.progress import tick
from headway.reality.ciphers.catalogue import Cipher

MOST_BITS = 3  # of an input difference that is tried
SHORTLIST = 8  # differences counted again
SCREEN_SHARE = 16  # pairs of the final count over pairs of the first
WIDTH = 32
HIDDEN = 32
DISTANCE = 3.0  # from the origin to the middle of a cloud, in standard deviations
POINTS = 240  # few enough that a product of matrices stays on one core
STEPS = 100
RATE = 0.2
NUDGE = 1e-4  # relative size of the change whose growth is measured


# -- one flipped bit --------------------------------------------------------------------------------------------------------------


def random_blocks(rng: np.random.Generator, count: int, bits: int) -> np.ndarray:
    """Uniform random blocks of `bits` bits, as uint64."""
    return rng.integers(0, 2**bits, count, dtype=np.uint64) if bits < 64 else rng.integers(0, 2**64, count, dtype=np.uint64)


def bit_count(blocks: np.ndarray) -> int:
    """Bits that are set in all blocks together.

    >>> bit_count(np.array([5, 255], dtype=np.uint64))
    10
    """
    return int(np.unpackbits(blocks.view(np.uint8)).sum())


def changed_bits(cipher: Cipher, rounds: int, key: int, trials: int, seed: int) -> int:
    """Output bits changed in `trials` pairs of plaintexts that differ in one random bit, all pairs together."""
    rng = np.random.default_rng(seed)
    plain = random_blocks(rng, trials, cipher.block_bits)
    flips = np.uint64(1) << rng.integers(0, cipher.block_bits, trials, dtype=np.uint64)
    return bit_count(cipher.encrypt(plain, key, rounds) ^ cipher.encrypt(plain ^ flips, key, rounds))


# -- the likeliest difference: input differences of few bits are tried, and the best are counted again on fresh pairs -------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Differential:
    """The best differential of the first rounds: among `pairs` pairs with the input difference, `hits` had the output difference."""

    rounds: int
    input_difference: int
    output_difference: int
    hits: int
    pairs: int
    tried: int


def best_differential(cipher: Cipher, rounds: int, key: int, pairs: int, seed: int) -> Differential:
    """The likeliest differential of `rounds` rounds among input differences of at most three bits."""
    rng = np.random.default_rng(seed)
    screened = []
    plain = random_blocks(rng, max(1, pairs // SCREEN_SHARE), cipher.block_bits)
    after = cipher.encrypt(plain, key, rounds)
    for difference in candidates(cipher.block_bits):
        outputs, counts = np.unique(cipher.encrypt(plain ^ np.uint64(difference), key, rounds) ^ after, return_counts=True)
        place = int(counts.argmax())
        screened.append((int(counts[place]), difference, int(outputs[place])))
        tick(1)
    screened.sort(key=lambda entry: (-entry[0], entry[1]))
    plain = random_blocks(rng, pairs, cipher.block_bits)
    after = cipher.encrypt(plain, key, rounds)
    recounts = []
    for _, difference, output in screened[:SHORTLIST]:
        behind = cipher.encrypt(plain ^ np.uint64(difference), key, rounds) ^ after
        recounts.append((int((behind == np.uint64(output)).sum()), difference, output))
    hits, difference, output = max(recounts, key=lambda entry: (entry[0], -entry[1]))
    return Differential(rounds=rounds, input_difference=difference, output_difference=output, hits=hits, pairs=pairs, tried=len(screened))


def candidates(bits: int) -> Iterator[int]:
    """Differences of one to three bits, one of each set that rotations of both halves turn into each other (SIMON's symmetry).

    >>> len(list(candidates(32)))
    344
    """
    word = bits // 2
    classes: set[tuple[tuple[int, ...], ...]] = set()
    for count in range(1, MOST_BITS + 1):
        for places in itertools.combinations(range(bits), count):
            turns = [tuple(sorted((place + turn) % word + place // word * word for place in places)) for turn in range(word)]
            smallest = (min(turns),)
            if smallest not in classes:
                classes.add(smallest)
                yield sum(1 << place for place in places)


# -- a residual network -----------------------------------------------------------------------------------------------------------


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


@functools.cache
def relative_changes(blocks: int, seed: int) -> tuple[float, float]:
    """A small random change of the input of a fresh network, and the change of its output, each relative to what changes."""
    rng = np.random.default_rng(seed)
    network = fresh(blocks, rng)
    inputs = rng.standard_normal((POINTS, WIDTH))
    neighbours = inputs + NUDGE * rng.standard_normal(inputs.shape)
    before, after = states(network, inputs)[-1], states(network, neighbours)[-1]
    change_out = np.linalg.norm(after - before) / np.linalg.norm(before)
    return float(change_out), float(np.linalg.norm(neighbours - inputs) / np.linalg.norm(inputs))

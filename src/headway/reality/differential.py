"""Differential cryptanalysis of a reduced cipher: which difference between two plaintexts most often gives one difference behind it.

It is differentiation over GF(2): a derivative in a direction, evaluated at random points. Input differences of few bits are tried, the
most frequent output difference of each is counted, and the best are counted again on fresh pairs, so that luck of the first count is out.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from headway.core.progress import tick
from headway.reality.avalanche import random_blocks
from headway.reality.ciphers.catalogue import Cipher

MOST_BITS = 3  # of an input difference that is tried
SHORTLIST = 8  # differences counted again
SCREEN_SHARE = 16  # pairs of the final count over pairs of the first


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
        output, hits = _most_frequent(cipher.encrypt(plain ^ np.uint64(difference), key, rounds) ^ after)
        screened.append((hits, difference, output))
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


def _most_frequent(differences: np.ndarray) -> tuple[int, int]:
    values, counts = np.unique(differences, return_counts=True)
    place = int(counts.argmax())
    return int(values[place]), int(counts[place])

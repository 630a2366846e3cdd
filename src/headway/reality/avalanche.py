"""Avalanche: output bits that change when one input bit flips, counted over random plaintexts."""

from __future__ import annotations

import numpy as np

from headway.reality.ciphers.catalogue import Cipher


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

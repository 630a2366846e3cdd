"""TEA (Wheeler and Needham 1994): couplings by addition modulo 2^32; a cycle is two of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from headway.reality.coupling import SUM, Residual, back, forward

DELTA = 0x9E3779B9  # 2^32 over the golden ratio
WORD = np.uint64(32)
MASK = 0xFFFFFFFF


def _round(key_words: tuple[int, int], sum_of_deltas: int) -> Residual:
    """The round function of two key words and the running sum."""
    added, keys = np.uint32(sum_of_deltas & MASK), [np.uint32(word) for word in key_words]

    def residual(half: Any) -> Any:
        return ((half << np.uint32(4)) + keys[0]) ^ (half + added) ^ ((half >> np.uint32(5)) + keys[1])

    return residual


def round_functions(key: int, rounds: int) -> list[Residual]:
    """Round functions: two of each cycle, with the first and with the second half of the key."""
    words = [(key >> (32 * place)) & MASK for place in (3, 2, 1, 0)]
    pairs = ((words[0], words[1]), (words[2], words[3]))
    return [_round(pairs[step % 2], DELTA * (step // 2 + 1)) for step in range(rounds)]


def encrypt(blocks: np.ndarray, key: int, rounds: int) -> np.ndarray:
    """Blocks (uint64) after the first `rounds` couplings."""
    return _through(blocks, key, rounds, forward)


def decrypt(blocks: np.ndarray, key: int, rounds: int) -> np.ndarray:
    """Blocks (uint64) before the first `rounds` couplings."""
    return _through(blocks, key, rounds, back)


def _through(blocks: np.ndarray, key: int, rounds: int, direction: Any) -> np.ndarray:
    """The first word of a block is the one that the first coupling changes; after an odd number the halves have traded places."""
    low, high = blocks.astype(np.uint32), (blocks >> WORD).astype(np.uint32)
    x, y = (high, low) if direction is back and rounds % 2 else (low, high)
    x, y = direction(x, y, round_functions(key, rounds), SUM)
    low, high = (y, x) if direction is forward and rounds % 2 else (x, y)
    return (high.astype(np.uint64) << WORD) | low.astype(np.uint64)

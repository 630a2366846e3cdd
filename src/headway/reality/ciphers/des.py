"""DES (FIPS 46-3): 16 rounds of a Feistel cipher on bits; places count from 1 at the left, as the standard's tables do."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from headway.reality.coupling import XOR, Residual, forward

INITIAL = [start - 8 * step for start in (58, 60, 62, 64, 57, 59, 61, 63) for step in range(8)]
FINAL = [INITIAL.index(place) + 1 for place in range(1, 65)]
EXPANSION = [(4 * group + place - 1) % 32 + 1 for group in range(8) for place in range(6)]
PERMUTATION = [16, 7, 20, 21, 29, 12, 28, 17, 1, 15, 23, 26, 5, 18, 31, 10, 2, 8, 24, 14, 32, 27, 3, 9, 19, 13, 30, 6, 22, 11, 4, 25]
KEY_CHOICE = [
    *(57, 49, 41, 33, 25, 17, 9, 1, 58, 50, 42, 34, 26, 18, 10, 2, 59, 51, 43, 35, 27, 19, 11, 3, 60, 52, 44, 36),
    *(63, 55, 47, 39, 31, 23, 15, 7, 62, 54, 46, 38, 30, 22, 14, 6, 61, 53, 45, 37, 29, 21, 13, 5, 28, 20, 12, 4),
]
ROUND_CHOICE = [
    *(14, 17, 11, 24, 1, 5, 3, 28, 15, 6, 21, 10, 23, 19, 12, 4, 26, 8, 16, 7, 27, 20, 13, 2),
    *(41, 52, 31, 37, 47, 55, 30, 40, 51, 45, 33, 48, 44, 49, 39, 56, 34, 53, 46, 42, 50, 36, 29, 32),
]
SHIFTS = (1, 1, 2, 2, 2, 2, 2, 2, 1, 2, 2, 2, 2, 2, 2, 1)
ROUNDS = 16
BOXES = tuple(
    [[int(letter, 16) for letter in row] for row in box.split()]
    for box in (
        "e4d12fb83a6c5907 0f74e2d1a6cb9538 41e8d62bfc973a50 fc8249175b3ea06d",
        "f18e6b34972dc05a 3d47f28ec01a69b5 0e7ba4d158c6932f d8a13f42b67c05e9",
        "a09e63f51dc7b428 d709346a285ecbf1 d6498f30b12c5ae7 1ad069874fe3b52c",
        "7de3069a1285bc4f d8b56f03472c1ae9 a690cb7df13e5284 3f06a1d8945bc72e",
        "2c417ab6853fd0e9 eb2c47d150fa3986 421bad78f9c5630e b8c71e2d6f09a453",
        "c1af92680d34e75b af427c9561de0b38 9ef528c3704a1db6 432c95fabe17608d",
        "4b2ef08d3c975a61 d0b7491ae35c2f86 14bdc37eaf680592 6bd814a7950fe23c",
        "d2846fb1a93e50c7 1fd8a374c56b0e92 7b419ce206adf358 21e74a8dfc90356b",
    )
)


def bits_of(blocks: np.ndarray) -> np.ndarray:
    """Bits of uint64 blocks, the highest first: an array of 64 columns.

    >>> bits_of(np.array([5], dtype=np.uint64))[0, -4:]
    array([0, 1, 0, 1], dtype=uint8)
    """
    return np.unpackbits(blocks.astype(">u8").view(np.uint8).reshape(-1, 8), axis=1)


def blocks_of(bits: np.ndarray) -> np.ndarray:
    """The uint64 blocks of their bits."""
    return np.ascontiguousarray(np.packbits(bits, axis=1)).view(">u8").reshape(-1).astype(np.uint64)


def selected(bits: np.ndarray, places: list[int]) -> np.ndarray:
    """Columns of `bits` at the places of a table."""
    return bits[:, np.array(places) - 1]


@functools.cache
def _substitution() -> np.ndarray:
    """Output bits of the eight boxes: box x input x 4; row of a box by the outer bits of the input, column by the inner."""
    table = np.zeros((8, 64, 4), dtype=np.uint8)
    for box, rows in enumerate(BOXES):
        for value in range(64):
            entry = rows[(value >> 5) * 2 + (value & 1)][(value >> 1) & 15]
            table[box, value] = [(entry >> place) & 1 for place in (3, 2, 1, 0)]
    return table


def round_keys(key: int) -> list[np.ndarray]:
    """The 48 bits of each round's key; the parity bits of `key` are ignored."""
    parts = selected(bits_of(np.array([key], dtype=np.uint64)), KEY_CHOICE)[0]
    keys, turned = [], 0
    for shift in SHIFTS:
        turned += shift
        both = np.concatenate([np.roll(parts[:28], -turned), np.roll(parts[28:], -turned)])
        keys.append(selected(both[None], ROUND_CHOICE))
    return keys


def _round(key: np.ndarray) -> Residual:
    """The round function: expand, add the key, substitute six bits by four, permute."""

    def residual(half: Any) -> Any:
        sixes = (selected(half, EXPANSION) ^ key).reshape(-1, 8, 6)
        values = sixes @ np.array([32, 16, 8, 4, 2, 1], dtype=np.uint8)
        return selected(_substitution()[np.arange(8), values].reshape(-1, 32), PERMUTATION)

    return residual


def encrypt(blocks: np.ndarray, key: int, rounds: int) -> np.ndarray:
    """Blocks (uint64) after the first `rounds` rounds, between the initial and the final permutation."""
    return _through(blocks, [_round(part) for part in round_keys(key)[:rounds]])


def decrypt(blocks: np.ndarray, key: int, rounds: int) -> np.ndarray:
    """Blocks (uint64) before the first `rounds` rounds: the same walk with the round keys reversed."""
    return _through(blocks, [_round(part) for part in round_keys(key)[:rounds]][::-1])


def _through(blocks: np.ndarray, residuals: list[Residual]) -> np.ndarray:
    """The right half is the one that the round functions read; the halves trade places at the end."""
    bits = selected(bits_of(blocks), INITIAL)
    low, high = forward(bits[:, 32:], bits[:, :32], residuals, XOR)
    return blocks_of(selected(np.concatenate([low, high], axis=1), FINAL))

"""SIMON (Beaulieu et al. 2013, ePrint 2013/404): a Feistel cipher of AND, XOR and rotations; key words of the full schedule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.reality.coupling import XOR, Residual, back, forward


@dataclass(frozen=True, slots=True, kw_only=True)
class SimonSize:
    """A member of the family: word size in bits, words of the key, rounds, and the constant sequence of its key schedule."""

    word: int
    key_words: int
    rounds: int
    sequence: str

    @property
    def dtype(self) -> type[np.unsignedinteger[Any]]:
        """Machine word that holds a word of the cipher."""
        return {16: np.uint16, 32: np.uint32}[self.word]


SIMON32 = SimonSize(word=16, key_words=4, rounds=32, sequence="11111010001001010110000111001101111101000100101011000011100110")
SIMON64 = SimonSize(word=32, key_words=4, rounds=44, sequence="11011011101011000110010111100000010010001010011100110100001111")


def _rotated(value: int, places: int, word: int) -> int:
    """`value` rotated to the left by `places`, to the right where they are negative."""
    places %= word
    return ((value << places) | (value >> (word - places))) & ((1 << word) - 1)


def round_keys(key: int, size: SimonSize) -> list[int]:
    """Round keys of all rounds.

    >>> [f"{part:04x}" for part in round_keys(0x1918111009080100, SIMON32)[:5]]
    ['0100', '0908', '1110', '1918', '71c3']
    """
    mask = (1 << size.word) - 1
    keys = [(key >> (size.word * place)) & mask for place in range(size.key_words)]
    for step in range(size.rounds - size.key_words):
        mixed = _rotated(keys[-1], -3, size.word) ^ keys[-3]
        mixed ^= _rotated(mixed, -1, size.word)
        keys.append(keys[-size.key_words] ^ mixed ^ int(size.sequence[step % 62]) ^ (mask ^ 3))
    return keys


def _round(key: int, size: SimonSize) -> Residual:
    """The round function: (x <<< 1 and x <<< 8) xor x <<< 2 xor round key."""
    kind, word = size.dtype, size.word

    def rotated(half: Any, places: int) -> Any:
        return (half << kind(places)) | (half >> kind(word - places))

    return lambda half: (rotated(half, 1) & rotated(half, 8)) ^ rotated(half, 2) ^ kind(key)


def encrypt(blocks: np.ndarray, key: int, rounds: int, size: SimonSize) -> np.ndarray:
    """Blocks (uint64) after the first `rounds` rounds."""
    return _through(blocks, key, rounds, size, forward)


def decrypt(blocks: np.ndarray, key: int, rounds: int, size: SimonSize) -> np.ndarray:
    """Blocks (uint64) before the first `rounds` rounds."""
    return _through(blocks, key, rounds, size, back)


def _through(blocks: np.ndarray, key: int, rounds: int, size: SimonSize, direction: Any) -> np.ndarray:
    word = np.uint64(size.word)
    high, low = (blocks >> word).astype(size.dtype), (blocks & np.uint64((1 << size.word) - 1)).astype(size.dtype)
    x, y = direction(high, low, [_round(part, size) for part in round_keys(key, size)[:rounds]], XOR)
    return (x.astype(np.uint64) << word) | y.astype(np.uint64)

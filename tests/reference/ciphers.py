"""TEA and SIMON as their papers write them, in plain integers, one block at a time: written without the project's couplings."""

from __future__ import annotations

MASK = 0xFFFFFFFF


def tea(block: int, key: int, cycles: int = 32) -> int:
    """TEA's encryption routine, word by word."""
    first, second = block >> 32, block & MASK
    words = [(key >> shift) & MASK for shift in (96, 64, 32, 0)]
    total = 0
    for _ in range(cycles):
        total = (total + 0x9E3779B9) & MASK
        first = (first + (((second << 4) + words[0]) ^ (second + total) ^ ((second >> 5) + words[1]))) & MASK
        second = (second + (((first << 4) + words[2]) ^ (first + total) ^ ((first >> 5) + words[3]))) & MASK
    return first << 32 | second


U = "1111101000100101011000011100110"  # the 31-bit period of SIMON32/64's constant sequence


def simon32(block: int, key: int, rounds: int = 32) -> int:
    """SIMON32/64: constant 2^16 - 4 and the sequence's bit enter the key schedule; the sequence repeats after 31 bits."""

    def left(word: int, places: int) -> int:
        return (word << places | word >> (16 - places)) & 0xFFFF

    keys = [key >> shift & 0xFFFF for shift in (0, 16, 32, 48)]
    for step in range(4, rounds):
        mixed = left(keys[step - 1], 13) ^ keys[step - 3]
        keys.append(0xFFFC ^ int(U[(step - 4) % 31]) ^ keys[step - 4] ^ mixed ^ left(mixed, 15))
    x, y = block >> 16, block & 0xFFFF
    for round_key in keys[:rounds]:
        x, y = y ^ (left(x, 1) & left(x, 8)) ^ left(x, 2) ^ round_key, x
    return x << 16 | y

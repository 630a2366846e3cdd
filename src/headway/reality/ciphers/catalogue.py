"""The ciphers by name, and their published test vectors (data/ciphers.toml)."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.resources import files

import numpy as np

from headway.core.errors import UnknownName
from headway.reality.ciphers import des, simon, tea

Through = Callable[[np.ndarray, int, int], np.ndarray]  # blocks, key, rounds -> blocks


@dataclass(frozen=True, slots=True, kw_only=True)
class Cipher:
    """A block cipher whose first rounds can be run alone; blocks are uint64."""

    name: str
    title: str
    block_bits: int
    key_bits: int
    rounds: int
    encrypt: Through
    decrypt: Through


def _simon(name: str, title: str, size: simon.SimonSize) -> Cipher:
    return Cipher(
        name=name, title=title, block_bits=2 * size.word, key_bits=size.key_words * size.word, rounds=size.rounds,
        encrypt=partial(simon.encrypt, size=size), decrypt=partial(simon.decrypt, size=size),
    )  # fmt: skip


CIPHERS = {
    entry.name: entry
    for entry in (
        Cipher(name="des", title="DES", block_bits=64, key_bits=64, rounds=16, encrypt=des.encrypt, decrypt=des.decrypt),
        Cipher(name="tea", title="TEA", block_bits=64, key_bits=128, rounds=64, encrypt=tea.encrypt, decrypt=tea.decrypt),
        _simon("simon32", "SIMON32/64", simon.SIMON32),
        _simon("simon64", "SIMON64/128", simon.SIMON64),
    )
}


def cipher(name: str) -> Cipher:
    """A cipher by its name.

    >>> cipher("SIMON32").rounds
    32
    """
    key = name.strip().lower()
    if key not in CIPHERS:
        raise UnknownName("cipher", name, CIPHERS, "one of " + ", ".join(CIPHERS))
    return CIPHERS[key]


@dataclass(frozen=True, slots=True, kw_only=True)
class CipherVector:
    """A published pair of blocks under a key, as hexadecimal text."""

    cipher: str
    key: str
    plain: str
    encrypted: str
    source: str


@functools.cache
def published_vectors() -> tuple[CipherVector, ...]:
    """All published vectors, by cipher."""
    document = tomllib.loads((files("headway") / "data" / "ciphers.toml").read_text(encoding="utf-8"))
    return tuple(
        CipherVector(cipher=entry["cipher"], key=entry["key"], plain=entry["plain"], encrypted=entry["encrypted"],
                     source=document["sources"][entry["source"]])
        for entry in document["vectors"]
    )  # fmt: skip

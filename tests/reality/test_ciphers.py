"""Ciphers against published vectors, a maintained library, the papers' own routines, and symmetries that DES is known for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.core.errors import UnknownName
from headway.reality.attacks import changed_bits, random_blocks
from headway.reality.ciphers.catalogue import CIPHERS, Cipher, cipher, published_vectors
from headway.reality.ciphers.des import BOXES
from reference import ciphers as reference

KEY = 0x133457799BBCDFF1


def block(value: int) -> np.ndarray:
    return np.array([value], dtype=np.uint64)


def through(subject: Cipher, value: int, key: int) -> int:
    return int(subject.encrypt(block(value), key, subject.rounds)[0])


@pytest.mark.parametrize("vector", published_vectors(), ids=lambda vector: f"{vector.cipher}-{vector.plain}")
def test_vectors__encrypt_and_decrypt(vector) -> None:
    subject, key = cipher(vector.cipher), int(vector.key, 16)
    assert len(vector.key) == subject.key_bits // 4 and len(vector.plain) == len(vector.encrypted) == subject.block_bits // 4
    assert through(subject, int(vector.plain, 16), key) == int(vector.encrypted, 16)
    assert int(subject.decrypt(block(int(vector.encrypted, 16)), key, subject.rounds)[0]) == int(vector.plain, 16)


def test_vectors__every_cipher_has_one() -> None:
    assert {vector.cipher for vector in published_vectors()} == set(CIPHERS)


def test_des__as_a_maintained_library() -> None:
    library = pytest.importorskip("Crypto.Cipher.DES", reason="pycryptodome is not installed")
    rng = np.random.default_rng(7)
    for _ in range(50):
        key, plain = rng.bytes(8), rng.bytes(64)
        blocks = np.frombuffer(plain, dtype=">u8").astype(np.uint64)
        result = cipher("des").encrypt(blocks, int.from_bytes(key, "big"), 16).astype(">u8").tobytes()
        assert result == library.new(key, library.MODE_ECB).encrypt(plain)


@settings(max_examples=25, deadline=None)
@given(value=st.integers(0, 2**64 - 1), key=st.integers(0, 2**64 - 1))
def test_des__complement_of_block_and_key_gives_complement(value: int, key: int) -> None:
    ones, des = 2**64 - 1, cipher("des")
    assert through(des, value ^ ones, key ^ ones) == through(des, value, key) ^ ones


@pytest.mark.parametrize("key", [0x0101010101010101, 0xFEFEFEFEFEFEFEFE, 0xE0E0E0E0F1F1F1F1, 0x1F1F1F1F0E0E0E0E])
def test_des__weak_keys_undo_themselves(key: int) -> None:
    plain = random_blocks(np.random.default_rng(1), 20, 64)
    assert (cipher("des").encrypt(cipher("des").encrypt(plain, key, 16), key, 16) == plain).all()


def test_des_boxes__rows_are_permutations_and_one_bit_changes_two() -> None:
    """The two design rules that were published: each row is a permutation; inputs one bit apart give outputs at least two bits apart."""
    for box in BOXES:
        assert all(sorted(row) == list(range(16)) for row in box)
        output = [box[(value >> 5) * 2 + (value & 1)][(value >> 1) & 15] for value in range(64)]
        assert min((output[value] ^ output[value ^ 1 << place]).bit_count() for value in range(64) for place in range(6)) >= 2


@settings(max_examples=50, deadline=None)
@given(value=st.integers(0, 2**64 - 1), key=st.integers(0, 2**128 - 1))
def test_tea__as_its_paper_writes_it(value: int, key: int) -> None:
    assert through(cipher("tea"), value, key) == reference.tea(value, key)


@settings(max_examples=50, deadline=None)
@given(value=st.integers(0, 2**32 - 1), key=st.integers(0, 2**64 - 1), rounds=st.integers(1, 32))
def test_simon32__as_its_paper_writes_it(value: int, key: int, rounds: int) -> None:
    assert int(cipher("simon32").encrypt(block(value), key, rounds)[0]) == reference.simon32(value, key, rounds)


@pytest.mark.parametrize("name", CIPHERS)
def test_cipher__decrypts_after_any_number_of_rounds(name: str) -> None:
    subject = cipher(name)
    plain = random_blocks(np.random.default_rng(3), 16, subject.block_bits)
    for rounds in range(1, subject.rounds + 1):
        encrypted = subject.encrypt(plain, KEY, rounds)
        assert (subject.decrypt(encrypted, KEY, rounds) == plain).all(), rounds
        assert (encrypted != plain).any()


def test_cipher__unknown_name_offers_names() -> None:
    with pytest.raises(UnknownName, match="simon32"):
        cipher("simon23")


# -- avalanche ------------------------------------------------------------------------------------------------------------------


def test_avalanche__one_round_of_simon_by_counting() -> None:
    """A flipped bit of y changes one bit; of x itself, the place two to the left, and each of two ANDs half of the time: three."""
    assert changed_bits(cipher("simon32"), 1, KEY, 20_000, 0) / 20_000 == pytest.approx((1 + 3) / 2, rel=0.02)


@pytest.mark.parametrize("name", CIPHERS)
def test_avalanche__all_rounds_change_half_of_the_block(name: str) -> None:
    subject = cipher(name)
    shares = [changed_bits(subject, rounds, KEY, 2000, 1) / 2000 / subject.block_bits for rounds in (1, 2, subject.rounds)]
    assert shares[0] < shares[1] < 0.25 and shares[-1] == pytest.approx(0.5, rel=0.02)

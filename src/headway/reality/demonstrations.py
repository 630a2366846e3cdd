"""Rows of `headway feistel`: counts taken here, put through the laws of couplings, so that each figure can be explained."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.core.errors import BadValue
from headway.core.quantity import known
from headway.laws.coupling import differential_pairs, differential_weight, random_avalanche, random_differential
from headway.reality import attacks, coupling
from headway.reality.attacks import best_differential, changed_bits
from headway.reality.ciphers.catalogue import Cipher, cipher, published_vectors
from headway.reality.question import FeistelRun


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorRow:
    """A published vector beside what is computed here."""

    cipher: str
    rounds: Any
    key: str
    plain: str
    encrypted: str
    result: str
    agrees: bool
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AvalancheRow:
    """One flipped input bit behind some rounds, and a small change behind as many blocks of a residual network."""

    cipher: str
    rounds: Any
    block_bits: Any
    trials: Any
    changed_bits: Any
    changed_share: Any
    random_share: Any
    sensitivity: Any
    network_sensitivity: Any
    full_from: Any  # first round from which a flipped bit changes half of the output; None if no round is


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferentialRow:
    """The likeliest differential of some rounds, and a gradient attack on a network with as many blocks."""

    cipher: str
    rounds: Any
    input_difference: str
    output_difference: str
    pairs: Any
    hits: Any
    probability: Any
    weight_bits: Any
    random_probability: Any
    pairs_needed: Any
    epsilon: Any
    right_share: Any
    right_random_share: Any
    right_gradient_share: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class CouplingRow:
    """A stack of random couplings forward and back in one number format."""

    number_format: str
    layers: Any
    roundoff: Any
    inversion_error: Any


def _count(value: float, name: str, how: str) -> Any:
    return known(value, name, "", "measured", f"taken here: {how}")


def key_of(subject: Cipher, text: str | None) -> int:
    """A key from hexadecimal text; without one, the key of the cipher's first published vector."""
    if text is None:
        return int(next(vector.key for vector in published_vectors() if vector.cipher == subject.name), 16)
    try:
        key = int(text.strip().removeprefix("0x"), 16)
    except ValueError:
        key = -1
    if not 0 <= key < 2**subject.key_bits:
        raise BadValue("--cipher-key", text, f"at most {subject.key_bits // 4} hexadecimal digits for {subject.title}")
    return key


def vector_rows(names: Iterable[str]) -> list[VectorRow]:
    """Every published vector of these ciphers, encrypted and decrypted here."""
    rows = []
    for vector in published_vectors():
        if vector.cipher in names:
            subject = cipher(vector.cipher)
            key, block = int(vector.key, 16), np.array([int(vector.plain, 16)], dtype=np.uint64)
            after = subject.encrypt(block, key, subject.rounds)
            rounds = known(subject.rounds, "rounds", "", "constant", f"{subject.title}'s definition")
            result = f"{int(after[0]):0{subject.block_bits // 4}X}"
            restored = subject.decrypt(after, key, subject.rounds)
            rows.append(
                VectorRow(
                    cipher=subject.title, rounds=rounds, key=vector.key, plain=vector.plain, encrypted=vector.encrypted,
                    result=result, agrees=result == vector.encrypted and bool(restored[0] == block[0]), source=vector.source,
                )
            )  # fmt: skip
    return rows


def avalanche_rows(subject: Cipher, rounds: Iterable[Any], key: int, run: FeistelRun) -> Iterator[AvalancheRow]:
    """Avalanche by round."""
    full = full_round(subject, key, run)
    bits = known(subject.block_bits, "bits of a block", "", "constant", f"{subject.title}'s definition")
    for count in rounds:
        how = f"{subject.title}, {int(count)} rounds, {int(run.trials)} random plaintexts with one random bit flipped, seed {int(run.seed)}"
        changed = _count(changed_bits(subject, int(count), key, int(run.trials), int(run.seed)), "output bits changed", how)
        share = changed / (run.trials * bits)
        yield AvalancheRow(
            cipher=subject.title, rounds=count, block_bits=bits, trials=run.trials, changed_bits=changed / run.trials,
            changed_share=share, random_share=random_avalanche(bits), sensitivity=share / flipped_share(bits),
            network_sensitivity=network_sensitivity(int(count), int(run.seed)), full_from=full,
        )  # fmt: skip


FULL = 0.98  # of a random permutation's share


def full_round(subject: Cipher, key: int, run: FeistelRun) -> int | None:
    """First round from which one flipped bit changes half of the output, as behind a random permutation; None if no round is."""
    half = FULL * float(random_avalanche(subject.block_bits)) * subject.block_bits * int(run.trials)
    rounds = range(1, subject.rounds + 1)
    return next((count for count in rounds if changed_bits(subject, count, key, int(run.trials), int(run.seed)) >= half), None)


def flipped_share(bits: Any) -> Any:
    """Share of a block that one bit is."""
    return known(1, "flipped bits", "", "constant", "one input bit is flipped") / bits


def network_sensitivity(blocks: int, seed: int) -> Any:
    """Growth of a small change through a residual network with random weights."""
    change_out, change_in = attacks.relative_changes(blocks, seed)
    how = f"residual network of {blocks} blocks with random weights, seed {seed}"
    return _count(change_out, "relative change of the output", how) / _count(change_in, "relative change of the input", how)


def differential_rows(subject: Cipher, rounds: Iterable[Any], key: int, run: FeistelRun) -> Iterator[DifferentialRow]:
    """Best differential by round beside a gradient attack by depth."""
    for count in rounds:
        best = best_differential(subject, int(count), key, int(run.pairs), int(run.seed))
        how = f"{subject.title}, {int(count)} rounds, pairs with difference {best.input_difference:08x}, seed {int(run.seed)}"
        hits = _count(best.hits, "pairs with the output difference", how)
        probability = hits / run.pairs if best.hits else None
        attack = attacks.attacked(int(count), float(run.epsilon), int(run.seed))
        about = f"network of {int(count)} blocks trained on two clouds, seed {int(run.seed)}"
        points = _count(attack.points, "points", about)
        yield DifferentialRow(
            cipher=subject.title, rounds=count, input_difference=f"{best.input_difference:08x}",
            output_difference=f"{best.output_difference:08x}", pairs=run.pairs, hits=hits, probability=probability,
            weight_bits=None if probability is None else differential_weight(probability),
            random_probability=random_differential(known(subject.block_bits, "bits of a block", "", "constant", "SIMON's definition")),
            pairs_needed=None if probability is None else differential_pairs(probability), epsilon=run.epsilon,
            right_share=_count(attack.right, 'right as they are', about) / points,
            right_random_share=_count(attack.right_random, 'right after a random move', about) / points,
            right_gradient_share=_count(attack.right_gradient, 'right after a move along the gradient', about) / points,
        )  # fmt: skip


def coupling_rows(layers: Iterable[Any], seed: int) -> Iterator[CouplingRow]:
    """Error of the way back by number format and depth."""
    for form in coupling.FORMATS:
        for count in layers:
            error = coupling.inversion_error(int(count), form, seed)
            yield CouplingRow(
                number_format=form, layers=count,
                roundoff=known(coupling.ROUNDOFF[form], "rounding of a sum", "", "constant", f"half a unit in the last place of {form}"),
                inversion_error=_count(error, "relative error of the input", f"{int(count)} random couplings in {form}, seed {seed}"),
            )  # fmt: skip

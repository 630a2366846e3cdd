"""Couplings that undo themselves, and what a small change does behind many of them: in a cipher's bits, in a network's numbers.

One step of a Feistel cipher and one layer of a reversible network are x' = y + f(x), y' = x. Where the sum rounds, the way back is off by
the rounding. A cipher is good when a flipped bit changes half of the output and no difference is likely; a network when a small change
stays small.
"""

from __future__ import annotations

import math

from headway.core.formula import formula
from headway.core.units import Number, Same

GOMEZ = "Gomez et al. 2017, RevNet (arXiv:1707.04585), equations 6 and 7"
BIHAM = "Biham and Shamir 1991, Journal of Cryptology 4(1)"


@formula(source=GOMEZ + "; Feistel 1973, Scientific American 228(5)")
def coupled(changed: Same, added: Same) -> Same:
    """Half of the state that a coupling makes: the half that changes, plus f of the half that stays.

    >>> coupled(5.0, 3.0)  # RevNet's y1 = x1 + F(x2)
    8.0
    """
    return changed + added


@formula(source=GOMEZ + "; Feistel 1973, Scientific American 228(5)")
def uncoupled(coupled_half: Same, added: Same) -> Same:
    """Half of the state before a coupling: f of the half that stayed, taken away again; f itself is never inverted.

    >>> uncoupled(8.0, 3.0)  # RevNet's x1 = y1 - F(x2)
    5.0
    """
    return coupled_half - added


@formula(source="definition")
def magnitude(value: Same) -> Same:
    """Absolute value: an f without an inverse, since two inputs give one output.

    >>> magnitude(-3.0), magnitude(3.0)  # as ReLU and its mirror image, in any layer
    (3.0, 3.0)
    """
    return abs(value)


@formula(source="Higham 2002, Accuracy and Stability of Numerical Algorithms, section 2.2: a sum is off by half a unit in the last place")
def round_trip_bound(coupled_half: Same, changed: Same, roundoff: Number) -> Number:
    """Largest relative error of a half that was coupled and uncoupled in floats: one rounding of the sum, one of the difference.

    >>> round_trip_bound(8.0, 5.0, 2.0**-24) < 1e-6, round_trip_bound(8.0, 5.0, 0.0)  # fp32; integers
    (True, 0.0)
    """
    return roundoff * (abs(coupled_half) + abs(changed)) / abs(changed)


@formula(source="Higham 2002, Accuracy and Stability of Numerical Algorithms, section 1.5: first-order errors are linear in the roundoff")
def error_by_roundoff(error: Number, roundoff: Number, target: Number) -> Number:
    """Relative error of a calculation in one number format, from that in another: the same multiple of the roundoff.

    >>> error_by_roundoff(1e-15, 2.0**-53, 2.0**-24) < 1e-6, error_by_roundoff(1e-15, 2.0**-53, 0.0)  # fp32; fixed point
    (True, 0.0)
    """
    return error / roundoff * target


@formula(source="counting: of 2^n - 1 other outputs, 2^(n-1) differ in a given bit")
def random_avalanche(bits: Number) -> Number:
    """Share of the output bits that a random permutation of `bits` bits changes when one input bit flips.

    >>> random_avalanche(32) - 0.5 < 1e-9, round(random_avalanche(2), 4)  # SIMON32's block
    (True, 0.6667)
    """
    return 1 / (2 - 2 ** (1 - bits))


@formula(source="counting: each of the 2^n - 1 output differences is as likely as the next")
def random_differential(bits: Number) -> Number:
    """Probability of one output difference behind a random permutation of `bits` bits.

    >>> random_differential(32) * 2**32 - 1 < 1e-9  # SIMON32's block
    True
    """
    return 1 / (2**bits - 1)


@formula(source=BIHAM + ": probabilities of rounds multiply, so their weights add")
def differential_weight(probability: Number) -> Number:
    """Weight of a differential in bits: minus the binary logarithm of its probability.

    >>> differential_weight(0.25)  # two rounds of SIMON32
    2.0
    """
    return -math.log2(probability)


@formula(source=BIHAM + ": the pairs among which a differential shows about once")
def differential_pairs(probability: Number) -> Number:
    """Chosen plaintext pairs that show a differential once on average (DES's best of 15 rounds: 2^47).

    >>> differential_pairs(2.0**-8)  # five rounds of SIMON32
    256.0
    """
    return 1 / probability

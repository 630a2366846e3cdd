"""Time of a collective: each algorithm takes alpha + slope * tokens, and the fastest algorithm is used.

The algorithms themselves (ring, tree, torus, one-shot, in-switch), as rounds and shares of the bytes, are in topology.py.

A layout compiles to CollectiveTerms; a step's network time is the sum of their fastest lines. At alpha = 0 and full efficiency
that sum is the floor.
"""

from __future__ import annotations

import functools

import numpy as np

from headway.core.formula import formula
from headway.core.units import BytePerSecond, BytePerToken, Number, Same, Second, SecondPerToken, Token
from headway.laws.step.coefficients import CollectiveLine, CollectiveTerm

HOCKNEY = "alpha-beta model: Hockney 1994, Parallel Computing 20(3)"


# All-reduces of Llama-3.1-70B over 8 H100, one-shot and two-shot, rounded: the example of the doctests below.
LLAMA_70B_TP8 = CollectiveTerm(
    count=160, lines=(CollectiveLine(alpha=3e-6, slope=3.2e-7), CollectiveLine(alpha=6e-6, slope=8e-8)), floor=6.4e-8
)


@formula(source=HOCKNEY)
def line_alpha(phases: Number, rounds_up: Number, rounds_out: Number, alpha_up: Second, alpha_out: Second) -> Second:
    """Latency of a collective's successive rounds, each waiting for the slowest message of the one before (ring of 8: 14 rounds).

    >>> round(line_alpha(2, 7, 0, 3e-6, 10e-6) * 1e6, 3)
    42.0
    """
    return phases * (rounds_up * alpha_up + rounds_out * alpha_out)


@formula(source=HOCKNEY + "; a phase over scale-up waits for the one over scale-out and the other way round")
def line_slope(
    phases: Number, up: Number, out: Number, message: BytePerToken, up_bw: BytePerSecond, out_bw: BytePerSecond
) -> SecondPerToken:
    """Time per token when scale-up and scale-out take turns; `up` and `out` are bytes sent per phase over message bytes.

    >>> round(line_slope(2, 7 / 8, 0, 16384, 450e9, 50e9) * 1e9, 3)  # Llama-3.1-70B, 8 H100: reduce-scatter, all-gather
    63.716
    """
    return phases * (up * message / up_bw + out * message / out_bw)


@formula(source=HOCKNEY + "; both levels are busy at once, as when a message is cut into chunks (NCCL, DeepEP)")
def line_slope_together(
    phases: Number, up: Number, out: Number, message: BytePerToken, up_bw: BytePerSecond, out_bw: BytePerSecond
) -> SecondPerToken:
    """Time per token when scale-up and scale-out work at the same time.

    >>> round(float(line_slope_together(1, 0.4375, 0.5, 7168, 450e9, 50e9)) * 1e9, 3)  # all-to-all over two nodes of 8 H100
    71.68
    """
    return phases * np.maximum(up * message / up_bw, out * message / out_bw)


@formula(source="definition")
def least(values: tuple[Same, ...]) -> Same:
    """Smallest of several values, element by element.

    >>> float(least((2.5e-7, 6.4e-8)))
    6.4e-08
    """
    return functools.reduce(np.minimum, values)


@formula(source=HOCKNEY + "; the algorithm is chosen by size, as NCCL and vLLM do")
def collective_term_s(term: CollectiveTerm, tokens: Token) -> Second:
    """Time in a step of all collectives of one kind, by the fastest algorithm at this number of tokens.

    >>> [round(float(collective_term_s(LLAMA_70B_TP8, tokens)) * 1e3, 2) for tokens in (1, 256)]
    [0.53, 4.24]
    """
    return term.count * functools.reduce(np.minimum, (line.alpha + line.slope * tokens for line in term.lines))


@formula(source="sum over the collectives of a step, one after the other")
def collectives_s(terms: tuple[CollectiveTerm, ...], tokens: Token) -> Second:
    """Time of all collectives of a step, without overlap.

    >>> round(float(collectives_s((LLAMA_70B_TP8,), 64)) * 1e3, 3)
    1.779
    """
    return sum(collective_term_s(term, tokens) for term in terms)


@formula(source=HOCKNEY + " at alpha = 0: bytes at the peak of the links by the algorithm that sends fewest")
def collectives_floor_s(terms: tuple[CollectiveTerm, ...], tokens: Token) -> Second:
    """Lower bound of a step's link time: no algorithm considered sends fewer bytes.

    >>> round(float(collectives_floor_s((LLAMA_70B_TP8,), 64)) * 1e3, 3)
    0.655
    """
    return sum(term.count * (term.floor * tokens) for term in terms)


@formula(source="DeepSeek-AI, open-infra-index day 6 (2025-02-28): two micro-batches, one computes while the other communicates")
def two_batch_step_s(half_work: Second, half_network: Second, layers: Number) -> Second:
    """Time of a step split into two half batches: the slower of work and network, plus one layer's share of the faster, exposed.

    Each half batch reads the weights again, so `half_work` is the work of a step at half the batch, not half of a step's work.

    >>> round(float(two_batch_step_s(12e-3, 3e-3, 61)) * 1e3, 3)
    24.049
    """
    return 2 * np.maximum(half_work, half_network) + np.minimum(half_work, half_network) / layers

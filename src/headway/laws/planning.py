"""What a search over layouts adds to the laws of serving: how many replicas a machine holds, and what a change gains."""

from __future__ import annotations

import numpy as np

from headway.formula import formula
from headway.units import Number, Same, Second, Token

NEW_TOKEN: Token = 1.0


@formula(source="definition; a replica stays inside one scale-up domain or takes whole ones; the last domain may be partly filled")
def replicas_held(chips: Number, domain: Number, replica: Number) -> Number:
    """Replicas of so many chips that a system holds (16 H100 in two nodes of 8, 3 chips each: 2 + 2).

    >>> int(replicas_held(16, 8, 3)), int(replicas_held(72, 72, 64)), int(replicas_held(144, 8, 64))
    (4, 1, 2)
    """
    full_domains = np.floor(chips / domain)
    inside = full_domains * np.floor(domain / replica) + np.floor((chips - domain * full_domains) / replica)
    return np.where(replica > domain, np.floor(full_domains / np.ceil(replica / domain)), inside)


@formula(source="definition; a batch between two multiples of the ranks takes as long as the upper one, so only multiples can be best")
def full_batch(rank_sequences: Number, dp: Number, pp: Number) -> Number:
    """Sequences of a replica whose every rank and pipeline stage holds the same number.

    >>> full_batch(29, 18, 2)
    1044
    """
    return rank_sequences * dp * pp


@formula(source="steady state: between two of a user's tokens the replica also prefills its share of other users' prompts")
def interleaved_tpot_s(batch: Number, request: Second, output: Token) -> Second:
    """TPOT that a user sees when others' prompts interleave: the decode step and batch * prefill / output on top.

    >>> round(interleaved_tpot_s(64, 0.23625, 1000), 6)
    0.01512
    """
    return batch * request / (output / NEW_TOKEN)


@formula(source="definition")
def raised(value: Same, factor: Number) -> Same:
    """An input after the change that an elasticity asks about.

    >>> round(raised(8e12, 1.01) / 1e12, 2)
    8.08
    """
    return value * factor


@formula(source="definition; for what should be small: a cost, a time")
def gain_of_less(before: Same, after: Same) -> Number:
    """How many times better an objective is for which less is better.

    >>> gain_of_less(3.0, 1.5)
    2.0
    """
    return before / after


@formula(source="definition; for what should be large: a rate")
def gain_of_more(before: Same, after: Same) -> Number:
    """How many times better an objective is for which more is better.

    >>> gain_of_more(1.5, 3.0)
    2.0
    """
    return after / before


@formula(source="definition: d ln(objective) / d ln(input), by one finite step, the optimum searched again")
def elasticity(gain: Number, factor: Number) -> Number:
    """Per cent by which the best objective improves per cent of an input; positive helps.

    >>> round(float(elasticity(1.005, 1.01)), 3)
    0.501
    """
    return np.log(gain) / np.log(factor)

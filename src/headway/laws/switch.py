"""Collectives through a switch, one level or two: rounds, and bytes each chip sends over the message, by algorithm.

A group has n members, m in each of d scale-up domains. Every chip has a scale-out link of its own (rail-optimised). All-gather and
reduce-scatter mirror each other; an all-reduce is one of each, so it has two phases of the same shares.
"""

from __future__ import annotations

import numpy as np

from headway.formula import formula
from headway.units import Number

DIRECT = "every chip sends to every other; vLLM and TensorRT-LLM custom all-reduce"
RING = "Patarasuk, Yuan 2009, J. Parallel Distrib. Comput. 69(2); one ring per rail, as NCCL makes them"
TREE = "Sanders, Speck, Traeff 2009, Parallel Computing 35(12): two trees, full bandwidth; NCCL"
LEVELS = "Thakur, Rabenseifner, Gropp 2005, section 4, level by level: scatter inside, exchange along each rail, gather inside"


@formula(source="definition")
def one_round(members: Number) -> Number:
    """One round where there is somebody to talk to.

    >>> float(one_round(8)), float(one_round(1))
    (1.0, 0.0)
    """
    return np.where(members > 1, 1.0, 0.0)


@formula(source="definition: messages of both levels leave at once, and scale-out takes longer")
def direct_round_up(members: Number, domains: Number) -> Number:
    """Rounds over scale-up of an exchange in which every chip sends to every other: none to wait for when some go further.

    >>> float(direct_round_up(8, 1)), float(direct_round_up(16, 2))
    (1.0, 0.0)
    """
    return np.where((members > 1) & (domains <= 1), 1.0, 0.0)


@formula(source=DIRECT)
def one_shot_up(inside: Number) -> Number:
    """Each chip sends the whole message to each other chip of its domain, and adds up what it gets.

    >>> one_shot_up(8)
    7
    """
    return inside - 1


@formula(source=DIRECT)
def one_shot_out(members: Number, inside: Number) -> Number:
    """Each chip sends the whole message to each chip beyond its domain.

    >>> one_shot_out(16, 8)
    8
    """
    return members - inside


@formula(source=DIRECT)
def direct_up(members: Number, inside: Number) -> Number:
    """One share to each other chip of the domain: all-gather, reduce-scatter or all-to-all.

    >>> direct_up(8, 8)
    0.875
    """
    return (inside - 1) / members


@formula(source=DIRECT)
def direct_out(members: Number, inside: Number) -> Number:
    """One share to each chip beyond the domain (R domains: 1 - 1/R).

    >>> direct_out(16, 8)
    0.5
    """
    return (members - inside) / members


@formula(source=RING)
def ring_rounds_up(members: Number, domains: Number) -> Number:
    """Hops of a ring inside domains.

    >>> ring_rounds_up(16, 2), ring_rounds_up(8, 1)
    (14, 7)
    """
    return members - domains


@formula(source=RING)
def ring_rounds_out(domains: Number) -> Number:
    """Hops of a ring between domains.

    >>> ring_rounds_out(2)
    1
    """
    return domains - 1


@formula(source=RING)
def ring_up(members: Number, inside: Number, domains: Number) -> Number:
    """With a ring per rail a chip ends one ring and passes the others on inside its domain.

    >>> float(ring_up(8, 8, 1)), round(float(ring_up(16, 8, 2)), 4)
    (0.875, 0.8203)
    """
    return (members - 1) / members * np.where(domains > 1, 1 - 1 / inside, 1.0)


@formula(source=RING)
def ring_out(members: Number, inside: Number, domains: Number) -> Number:
    """Each chip carries one of its domain's rings over its rail.

    >>> round(float(ring_out(16, 8, 2)), 4)
    0.1172
    """
    return (members - 1) / members * np.where(domains > 1, 1 / inside, 0.0)


@formula(source=TREE)
def tree_rounds(members: Number) -> Number:
    """Depth of a binary tree.

    >>> float(tree_rounds(72)), float(tree_rounds(1))
    (7.0, 0.0)
    """
    return np.ceil(np.log2(members))


@formula(source=TREE)
def tree_out(inside: Number, domains: Number) -> Number:
    """One message per phase and domain, spread over its rails.

    >>> float(tree_out(8, 4))
    0.125
    """
    return np.where(domains > 1, 1 / inside, 0.0)


@formula(source=LEVELS)
def levels_up(inside: Number) -> Number:
    """Scatter or gather inside the domain.

    >>> levels_up(8)
    0.875
    """
    return (inside - 1) / inside


@formula(source=LEVELS)
def levels_out(members: Number, domains: Number) -> Number:
    """Scatter or gather along a rail what one chip of each domain holds.

    >>> levels_out(16, 2)
    0.0625
    """
    return (domains - 1) / members


@formula(source="definition: the two levels work at once on different chunks of a message; two chunks are the fewest")
def chunked_rounds(rounds: Number) -> Number:
    """Rounds of a message cut in two.

    >>> chunked_rounds(1.0)
    2.0
    """
    return 2 * rounds


@formula(source="NVIDIA NVLink SHARP (NVSwitch 3, 2022): the switch adds; a chip sends the message once, receives the sum")
def in_switch_up(inside: Number) -> Number:
    """Half an all-reduce's bytes over scale-up when the switch adds and copies, in each of two phases.

    >>> float(in_switch_up(8)), float(in_switch_up(1))
    (0.5, 0.0)
    """
    return np.where(inside > 1, 0.5, 0.0)

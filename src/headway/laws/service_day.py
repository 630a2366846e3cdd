"""A day of a service from what it publishes: nodes behind its rates, what they cost, what its tokens bring."""

from __future__ import annotations

from headway.formula import formula
from headway.laws.money import MILLION
from headway.units import Number, Second, Token, TokenPerSecond, Usd, UsdPerMtok, UsdPerSecond


@formula(source="definition")
def fleet_usd(nodes: Number, node: Number, price: UsdPerSecond, time: Second) -> Usd:
    """What so many nodes cost for a time, idle or not.

    >>> round(fleet_usd(226.75, 8, 2 / 3600, 86400), 6)  # DeepSeek's day of 2025-02-27
    87072.0
    """
    return nodes * node * price * time


@formula(source="operational law: tokens over time over what one node does")
def nodes_behind(tokens: Token, time: Second, rate: TokenPerSecond) -> Number:
    """The nodes that a day's tokens need at a published rate per node.

    >>> round(nodes_behind(608e9, 86400, 73700), 2), round(nodes_behind(168e9, 86400, 14800), 2)  # DeepSeek: prefill, decode
    (95.48, 131.38)
    """
    return tokens / (time * rate)


@formula(source="definition")
def usd_per_mtok_of(cost: Usd, tokens: Token) -> UsdPerMtok:
    """What a million of the tokens cost that so much money made.

    >>> round(usd_per_mtok_of(50450, 168e9), 4)  # DeepSeek's decode nodes
    0.3003
    """
    return cost / tokens * MILLION

"""Requests that arrive at a rate: how many replicas and chips carry them, how loaded those are, what a request then costs."""

from __future__ import annotations

import numpy as np

from headway.formula import formula
from headway.units import Number, PerSecond, Second, Token, TokenPerSecond, Usd, UsdPerSecond


@formula(source="operational law: busy servers = rate * service time")
def replicas_needed(rate: PerSecond, request: Second) -> Number:
    """Fewest replicas whose capacity is not below a rate.

    >>> int(replicas_needed(40.0, 0.23625))
    10
    """
    return np.maximum(np.ceil(rate * request), 1)


@formula(source="definition; replicas fill one domain after the other, the last paid for as far as it is used, or take whole ones")
def chips_needed(replicas: Number, domain: Number, replica: Number) -> Number:
    """Chips of so many replicas with what full domains leave idle (10 replicas of 3 chips in nodes of 8: 4 full nodes and 2 replicas).

    >>> int(chips_needed(10, 8, 3)), int(chips_needed(10, 8, 4)), int(chips_needed(3, 8, 16))
    (38, 40, 48)
    """
    inside = np.maximum(np.floor(domain / replica), 1)
    before = np.floor((replicas - 1) / inside)
    filled = before * domain + (replicas - before * inside) * replica
    return np.where(replica > domain, replicas * np.ceil(replica / domain) * domain, filled)


@formula(source="definition")
def per_replica(request: Second, replicas: Number) -> Second:
    """Time between two requests that all replicas finish.

    >>> per_replica(0.24, 10)
    0.024
    """
    return request / replicas


@formula(source="definition")
def utilisation(rate: PerSecond, capacity: PerSecond) -> Number:
    """Share of the capacity that a rate takes; at 1 the queue grows without end.

    >>> utilisation(40.0, 50.0)
    0.8
    """
    return rate / capacity


@formula(source="definition; what is idle is paid for")
def usd_per_request_at(price: UsdPerSecond, chips: Number, rate: PerSecond) -> Usd:
    """Cost of a request when so many chips serve that rate, loaded or not.

    >>> round(usd_per_request_at(2 / 3600, 40, 40.0), 6)
    0.000556
    """
    return price * chips / rate


@formula(source="unit of the objective when no price is known")
def chip_seconds_per_request_at(chips: Number, rate: PerSecond) -> Second:
    """Chip time of a request when so many chips serve that rate.

    >>> chip_seconds_per_request_at(40, 40.0)
    1.0
    """
    return chips / rate


@formula(source="definition")
def offered_tok_per_s(rate: PerSecond, output: Token) -> TokenPerSecond:
    """Output tokens that a rate of requests asks for.

    >>> offered_tok_per_s(40.0, 1000)
    40000.0
    """
    return rate * output

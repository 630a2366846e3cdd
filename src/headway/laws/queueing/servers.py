"""Queues of textbooks: equal servers behind one line, each with one customer at a time, random or less random arrivals and services."""

from __future__ import annotations

from typing import Any

import numpy as np

from headway.core.formula import formula
from headway.core.units import Number, Second

HALF: Number = 0.5
NEEDS = "servers >= 1, servers <= 1e6, servers % 1 == 0, load > 0"


@formula(source="Erlang 1917: M/M/c/c, the recursion of the blocked share by servers", empirical="a recursion over servers", needs=NEEDS)
def erlang_b(servers: Number, load: Number) -> Number:
    """Share of random arrivals that find every one of so many servers busy, where nobody waits; `load` is rate times service.

    >>> round(float(erlang_b(10, 8)), 4), float(erlang_b(1, 1))
    (0.1217, 0.5)
    """
    return _blocked(np.asarray(servers, dtype=float), np.asarray(load, dtype=float))


def _blocked(servers: Any, load: Any) -> Any:
    blocked = np.ones(np.broadcast_shapes(servers.shape, load.shape))
    for place in range(1, int(np.max(servers)) + 1):
        blocked = np.where(place <= servers, load * blocked / (place + load * blocked), blocked)
    return blocked


@formula(source="Erlang 1917: M/M/c, chance to wait, from the share that M/M/c/c blocks", needs=NEEDS)
def erlang_c(servers: Number, load: Number) -> Number:
    """Share of customers who have to wait, of random arrivals at so many servers; 1 where the load is no less than the servers.

    >>> round(float(erlang_c(10, 8)), 3), float(erlang_c(1, 0.5)), float(erlang_c(2, 3))
    (0.409, 0.5, 1.0)
    """
    return erlang_b(servers, load) / (1 - np.minimum(load / servers, 1.0) * (1 - erlang_b(servers, load)))


@formula(source="Erlang 1917: M/M/c, share that waits times the mean wait of those who do", needs=NEEDS)
def servers_wait_s(servers: Number, load: Number, service: Second) -> Second:
    """Mean wait for one of so many servers, over all customers, whose services are as random as their arrivals: M/M/1 with one server.

    Without end where the load is no less than the servers.

    >>> round(float(servers_wait_s(10, 8, 5.0)), 3), float(servers_wait_s(2, 2, 1.0))
    (1.023, inf)
    >>> float(servers_wait_s(1, 0.5, 2.0))  # load over 1 - load, times the service
    2.0
    """
    return erlang_c(servers, load) * service * turns_per_service(servers, load)


@formula(source="definition", needs=NEEDS)
def turns_per_service(servers: Number, load: Number) -> Number:
    """Services that pass before one who waits is next, on the mean: one over the servers that are free.

    >>> float(turns_per_service(10, 8)), float(turns_per_service(2, 2))
    (0.5, inf)
    """
    free = np.where(load < servers, servers - load, 1.0)
    return np.where(load < servers, 1 / free, np.inf)


@formula(source="Kingman 1961, The single server queue in heavy traffic; exact for M/G/1 (Pollaczek and Khinchine)")
def kingman_wait_s(busy: Number, arrival_variation: Number, service_variation: Number, service: Second) -> Second:
    """Mean wait at one server that is busy this share of the time; variations are squared: variance over squared mean, 1 for random.

    >>> round(kingman_wait_s(0.8, 1.0, 1.0, 0.5), 9)  # random arrivals and services: M/M/1
    2.0
    >>> round(kingman_wait_s(0.8, 1.0, 0.0, 0.5), 9)  # services all alike: half of it
    1.0
    """
    return busy / (1 - busy) * (arrival_variation + service_variation) * HALF * service

"""Queues with one answer: single servers, several servers, losses, batches of arrivals, and Little's law on all of them.

`load` is the share of its capacity that is asked of a queue; from 1 on it has no steady state and its wait is infinite.
"""

from __future__ import annotations

import numpy as np

from headway.core.formula import formula
from headway.core.units import Number, PerSecond, Second, Token
from headway.laws.queueing import servers as laws

NEW_TOKEN: Token = 1.0
POLLACZEK = "Pollaczek 1930, Khinchine 1932"
ERLANG = "Erlang 1917"


@formula(source="definition: arrivals per second, times the service of one, over those served at once")
def offered_load(rate: PerSecond, service: Second, servers: Number) -> Number:
    """Share of the servers' time that arrivals ask for.

    >>> offered_load(40.0, 0.1, 5)
    0.8
    """
    return rate * service / servers


@formula(source="geometric series of those who wait behind those who wait")
def congestion(load: Number) -> Number:
    """Load over what is left of the capacity: every wait in a steady queue grows with it, and from full load on without end.

    >>> round(float(congestion(0.8)), 12), float(congestion(1.0))
    (4.0, inf)
    """
    return load * share_left_inverse(load)


@formula(source="definition")
def share_left_inverse(load: Number) -> Number:
    """One over the capacity that is left, infinite where none is.

    >>> round(float(share_left_inverse(0.8)), 12), float(share_left_inverse(1.2))
    (5.0, inf)
    """
    steady = load < 1
    return np.where(steady, 1 / np.where(steady, 1 - load, 1), np.inf)


@formula(source=POLLACZEK + ": M/D/1, rho D / (2 (1 - rho))")
def md1_wait_s(rate: PerSecond, service: Second) -> Second:
    """Mean wait for a server that takes the same time for each, when arrivals are random.

    >>> round(float(md1_wait_s(40.0, 0.020)) * 1e3, 9)  # 80 % load of a 20 ms prefill
    40.0
    """
    return congestion(offered_load(rate, service, 1)) * service / 2


@formula(source=POLLACZEK + ": M/G/1, lambda E[S^2] / (2 (1 - rho)), E[S^2] = S^2 (1 + cv^2)")
def mg1_wait_s(rate: PerSecond, service: Second, cv: Number) -> Second:
    """Mean wait for a server whose services vary: `cv` is their standard deviation over their mean (0 is M/D/1, 1 is M/M/1).

    >>> round(float(mg1_wait_s(40.0, 0.020, 1.0)) * 1e3, 9)  # prompts of exponential length
    80.0
    """
    return congestion(offered_load(rate, service, 1)) * service * (1 + cv * cv) / 2


def erlang_b(rate: PerSecond, service: Second, servers: Number) -> Number:
    """Share of arrivals turned away by servers that keep no queue, whatever the spread of the services.

    >>> round(float(erlang_b(40.0, 0.2, 10)), 6)  # 8 Erlang offered to 10 seats
    0.121661
    """
    return laws.erlang_b(servers, offered_load(rate, service, 1))


def erlang_c(rate: PerSecond, service: Second, servers: Number) -> Number:
    """Share of arrivals that wait at M/M/c, all of them when the load is 1 or more.

    >>> round(float(erlang_c(40.0, 0.2, 10)), 6)  # 8 Erlang on 10 replicas
    0.40918
    """
    return laws.erlang_c(servers, offered_load(rate, service, 1))


@formula(source=ERLANG + ": M/M/c, C S / (c (1 - rho))")
def mmc_wait_s(rate: PerSecond, service: Second, servers: Number) -> Second:
    """Mean wait at several servers with one queue and exponential services.

    >>> round(float(mmc_wait_s(40.0, 0.2, 10)) * 1e3, 3)  # 8 Erlang on 10 replicas
    40.918
    """
    load = offered_load(rate, service, servers)
    return erlang_c(rate, service, servers) * share_left_inverse(load) * service / servers


@formula(source="Burke 1975, Delays in single-server queues with batch input: M^[k]/D/1, (rho + k - 1) D / (2 (1 - rho))")
def batch_arrival_wait_s(rate: PerSecond, service: Second, together: Number) -> Second:
    """Mean wait of requests that come `together` at a time, at `rate` requests per second in all, to a server that takes them one by one.

    >>> round(float(batch_arrival_wait_s(40.0, 0.020, 4)) * 1e3, 9)
    190.0
    """
    load = offered_load(rate, service, 1)
    return (load + together - 1) * share_left_inverse(load) * service / 2


@formula(source="Little 1961: L = lambda W")
def present(rate: PerSecond, time: Second) -> Number:
    """Requests in any part of a system, from their rate through it and their mean time in it.

    >>> present(40.0, 2.5)
    100.0
    """
    return rate * time


@formula(source="M/G/infinity: Takács 1962, Introduction to the theory of queues: Poisson, so that the mean is the variance too")
def seats_taken(rate: PerSecond, output: Token, step: Second) -> Number:
    """Mean, and variance, of the batch where seats never run out and a step takes the same time whatever its batch.

    >>> seats_taken(5.0, 400, 0.020)
    40.0
    """
    return rate * (output / NEW_TOKEN) * step


@formula(source="conservation: what is not served stays")
def growth_per_s(rate: PerSecond, capacity: PerSecond) -> PerSecond:
    """How fast the queue of an overloaded system grows: not a latency, for that has no mean.

    >>> float(growth_per_s(50.0, 40.0)), float(growth_per_s(30.0, 40.0))
    (10.0, 0.0)
    """
    return np.maximum(rate - capacity, 0 * rate)


@formula(source="Barrer 1957, Queuing with impatient customers; M/M/c+D by the offered wait (Baccelli, Hebuterne 1981)")
def impatient_share(rate: PerSecond, service: Second, servers: Number, patience: Second) -> Number:
    """Share of requests that leave a queue in which nobody waits longer than so long (Erlang B where nobody waits, overloaded or not).

    >>> round(float(impatient_share(4.0, 0.2, 1, 0.0)), 4), round(float(impatient_share(4.0, 0.2, 1, 0.5)), 4)
    (0.4444, 0.1586)
    """
    load, alone = offered_load(rate, service, servers), erlang_b(rate, service, np.maximum(servers - 1, 0))
    drift = (servers / service - rate) * patience
    gone = np.where(drift == 0, 1.0, -np.expm1(-drift) / np.where(drift == 0, 1.0, drift))
    tail = load * np.exp(-drift)
    return tail / (1 / alone + rate * patience * gone + tail)

"""Batches that depart on a clock, as trains do: waits, rates and shares of traffic.

A request waits for a departure and then rides. `left_behind` and `empty_share` are of one chain, X' = max(X - seats, 0) + Poisson(rate *
period), which both kinds of departure share; both come from the roots z of z^seats = exp(rate * period * (z - 1)) inside the unit circle.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from headway.core.formula import formula
from headway.core.units import ONE_TOKEN, Number, PerSecond, Second, Token, TokenPerSecond

RUNS_WAITED: Number = 1.0  # just missed: one whole period until the next departure


@formula(source="Reiner Pope, blackboard lecture, 2026-04-29: wait one beat, ride one beat")
def worst_latency_s(step_s: Second) -> Second:
    """Worst latency of a request that just missed a departure: one period of waiting, one of riding, while no batch is full.

    >>> worst_latency_s(20e-3)
    0.04
    """
    return step_s * RUNS_WAITED + step_s


@formula(source="one token per step")
def user_tokens_per_s(step_s: Second) -> TokenPerSecond:
    """Tokens per second of each user: one token per step.

    >>> user_tokens_per_s(20e-3)
    50.0
    """
    return ONE_TOKEN / step_s


@formula(source="rate times beat: Little's law")
def tokens_in_flight(tokens_per_s: TokenPerSecond, tokens_per_s_user: TokenPerSecond) -> Token:
    """Sequences decoding at once, from the token rates of the domain and of one user.

    >>> round(tokens_in_flight(266.4e3, 21.0))  # a decode unit of DeepSeek, 18 nodes
    12686
    """
    return tokens_per_s / tokens_per_s_user * ONE_TOKEN


DESCENTS, NEWTONS = 10, 15  # contraction steps, then Newton steps to a root; 5 and 12 reach 1e-15 up to a load of 1 - 1e-10
TIMETABLE = "Bailey 1954, On queueing processes with bulk service"
TRIGGERED = "Neuts 1967, A general class of bulk queues: M/D^[1,b]/1"


@formula(source="uniform on one period: arrivals are independent of the clock")
def beat_wait_s(period: Second) -> Second:
    """Mean wait for a train with a free seat, departing once a period.

    >>> beat_wait_s(20e-3)
    0.01
    """
    return period / 2


@formula(source="uniform on one period: arrivals are independent of the clock")
def beat_wait_quantile_s(period: Second, quantile: Number) -> Second:
    """Wait that a share `quantile` of requests stays below, with a free seat in every train.

    >>> beat_wait_quantile_s(20e-3, 0.99)
    0.0198
    """
    return period * quantile


@formula(source="mean wait T/2, and a ride of T")
def beat_response_s(period: Second) -> Second:
    """Mean time from arrival to the end of the ride, with a free seat in every train.

    >>> beat_response_s(20e-3)
    0.03
    """
    return beat_wait_s(period) + period


@formula(source=TIMETABLE + ": rho = rate T / b")
def train_load(rate: PerSecond, period: Second, seats: Number) -> Number:
    """Requests per departure over its seats: the load, above 1 more than all seats.

    >>> train_load(160.0, 20e-3, 4)
    0.8
    """
    return rate * period / seats


@formula(source="train_load solved for the rate")
def train_rate(load: Number, period: Second, seats: Number) -> PerSecond:
    """Requests per second at a load of the seats.

    >>> train_rate(0.8, 20e-3, 4)
    160.0
    """
    return load * seats / period


@formula(source="each waits for those of its train that come later: the mean over all of a train")
def filling_wait_s(rate: PerSecond, seats: Number) -> Second:
    """Mean wait for a train that departs only when full, excluding the wait for earlier trains.

    >>> filling_wait_s(10000.0, 2000)  # 2,000 seats, of which a clock of 20 ms would fill a tenth
    0.09995
    """
    return (seats - 1) / rate / 2


@formula(source=TIMETABLE + ": sum 1/(1 - z_j) - (b (b-1) - m^2) / (2 (b - m)), m = rate T")
def left_behind(rate: PerSecond, period: Second, seats: Number) -> Number:
    """Mean requests that a departing train has no seat for, infinite from full load on.

    >>> round(float(left_behind(160.0, 20e-3, 4)), 4)  # 3.2 come for 4 seats
    1.2355
    """
    come, steady = rate * period, rate * period < seats
    spare = np.where(steady, seats - come, 1)
    roots, real = _roots(come, seats)
    total = np.sum(np.where(real, 1 / (1 - roots), 0), axis=-1).real
    return np.where(steady, np.maximum(total - (seats * (seats - 1) - come * come) / (2 * spare), 0), np.inf)


@formula(source=TIMETABLE + ": (b - m) prod z_j / (z_j - 1), m = rate T")
def empty_share(rate: PerSecond, period: Second, seats: Number) -> Number:
    """Share of periods that end without a waiting request, 0 from full load on.

    >>> round(float(empty_share(100.0, 20e-3, 4)), 4)  # 2 come for 4 seats
    0.1265
    """
    come, steady = rate * period, rate * period < seats
    roots, real = _roots(come, seats)
    none = np.prod(np.where(real, roots / (roots - 1), 1), axis=-1).real
    return np.where(steady, (seats - come) * none, 0)


def _roots(come: Number, seats: Number) -> tuple[Any, Any]:
    """The seats - 1 roots inside the unit circle on a last axis (of the widest train), and a mask of the roots of this train."""
    come, seats = (np.expand_dims(value, -1) for value in (come + 0 * seats, seats + 0 * come))
    index = np.arange(1, max(int(np.max(seats)), 1))
    real = index < seats
    rho = np.where(come < seats, come / seats, 0)
    turn = np.exp(2j * np.pi * index / seats)
    z = 0 * turn
    for _ in range(DESCENTS):
        z = turn * np.exp(rho * (z - 1))
    for _ in range(NEWTONS):
        image = turn * np.exp(rho * (z - 1))
        z = z - (z - image) / (1 - rho * image)
    return np.where(real, z, 0.5), real


@formula(source=TIMETABLE + ": T/2 + E[Q] / rate")
def timetable_wait_s(rate: PerSecond, period: Second, seats: Number) -> Second:
    """Mean wait for a seat in trains that depart on the clock, full or not.

    >>> [round(float(timetable_wait_s(load * b / 0.02, 0.02, b)) * 1e3, 3) for b, load in ((1, 0.8), (4, 0.8), (32, 0.9))]
    [50.0, 17.722, 11.524]
    """
    return beat_wait_s(period) + left_behind(rate, period, seats) / rate


@formula(source=TIMETABLE + ": E[Q] / (rate T)")
def trains_missed(rate: PerSecond, period: Second, seats: Number) -> Number:
    """Mean full trains that depart without a waiting request: 0 where two periods are the longest response.

    >>> round(float(trains_missed(1440.0, 20e-3, 32)), 4)  # 90 % of 32 seats
    0.0762
    """
    return left_behind(rate, period, seats) / (rate * period)


@formula(source=TIMETABLE + ": the wait, and a ride of T")
def timetable_response_s(rate: PerSecond, period: Second, seats: Number) -> Second:
    """Mean time from arrival to the end of the ride, in trains that depart on the clock.

    >>> round(float(timetable_response_s(160.0, 0.02, 4)) * 1e3, 3)
    37.722
    """
    return timetable_wait_s(rate, period, seats) + period


@formula(source=TRIGGERED + ", Lq = (E[left] D + rate D^2 / 2) / E[cycle], E[cycle] = D + P(empty) / rate; W = Lq / rate")
def triggered_wait_s(rate: PerSecond, ride: Second, seats: Number) -> Second:
    """Mean wait for a train that departs once it is back and a request waits, with all waiting requests up to its seats.

    >>> round(float(triggered_wait_s(100.0, 0.02, 4)) * 1e3, 3)  # half full
    10.339
    """
    come = rate * ride
    waited = left_behind(rate, ride, seats) + come / 2
    return ride * waited / (come + empty_share(rate, ride, seats))

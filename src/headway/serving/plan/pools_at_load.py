"""How many prefill and decode replicas of a pair carry a load: so many that neither pool's queue takes the limit on the first token.

Pools that are just able are no answer: prompts that come at random wait for a worker, and what was prefilled waits for a seat to decode.
Both waits are those of the row (serving/pools.py); replicas are added where the wait is longer until the first token is in time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.core.units import Number, PerSecond, Second
from headway.laws.queueing.closed_loop import open_seat_wait_s
from headway.laws.queueing.handed import prompt_wait_s
from headway.laws.serving.replicas import replicas_needed

BUSIEST = 0.95  # of a pool's capacity that a load may take
ROUNDS = 60  # in which replicas are added to a pool
GROWTH = 0.02  # of a pool's replicas that are added at once, at least one
SINGLE = 1
FULLEST = 0.999  # of a capacity, up to which a closed loop is looked at


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What a request asks of a replica of each pool, and what a replica has, as arrays over pairs."""

    prefill: Any  # replica time of a prompt, s
    lanes: Any  # prompts at once in a prefill replica
    decode: Any  # replica time of an answer, s
    batch: Any  # answers at once, at which this is so
    seats: Any  # and as many as there may be
    first: Any  # time to the first token without waits, s
    most: Any  # and its limit, s
    users: Any = 0  # who begin at once, times the share of their requests that does


def waits_s(demand: Demand, rate: PerSecond, p: Number, q: Number) -> tuple[Second, Second]:
    """Waits of a prompt for a worker of `p` prefill replicas, and of an answer for a seat of `q` decode replicas."""
    prompts = prompt_wait_s(rate, demand.prefill, demand.lanes, p)
    prompts = prompts + demand.users * demand.prefill / p / 2
    return prompts, open_seat_wait_s(rate * demand.decode * demand.batch, q * demand.seats, rate, SINGLE)


def replicas_at(rate: PerSecond, demand: Demand) -> tuple[Any, Any, Any]:
    """Replicas of both pools for a rate, and whether the first token comes in time.

    >>> each = dict(prefill=0.15, lanes=1.0, decode=0.05, batch=64.0, seats=64.0, first=0.2, most=0.5)
    >>> found = replicas_at(10.0, Demand(**{name: np.array([value]) for name, value in each.items()}))
    >>> [int(count[0]) for count in found]
    [2, 1, 1]
    """
    p, q = (np.asarray(replicas_needed(rate / BUSIEST, time), dtype=float) for time in (demand.prefill, demand.decode))
    on_time = np.full(np.shape(p), False)
    for _ in range(ROUNDS):
        prompts, seats = waits_s(demand, rate, p, q)
        on_time = demand.first + prompts + seats <= demand.most
        late = ~on_time & (demand.first < demand.most)
        if not late.any():
            break
        p = p + np.where(late & (prompts >= seats), np.maximum(np.ceil(GROWTH * p), 1), 0)
        q = q + np.where(late & (prompts < seats), np.maximum(np.ceil(GROWTH * q), 1), 0)
    return p, q, on_time


PLACES = 33  # rates at which the users of a closed loop are counted, twice: in all, and between the two beside them


def rate_of_users(users: Number, times: Callable[[Number], Mapping[str, Any]], able: PerSecond) -> float:
    """Requests per second of users who wait for their answers, by Little's law; `times`: columns at rates, `able`: the capacity.

    >>> round(rate_of_users(30, lambda rate: {"e2e_s": 2.0 + 0.1 * rate}, 40.0), 3)
    10.0
    """
    low, high = 0.0, float(able) * FULLEST
    rate = high
    for _ in range(2):
        places = np.linspace(low, high, PLACES)[1:]
        there = places * np.broadcast_to(times(places)["e2e_s"], places.shape)
        beyond = np.flatnonzero(there >= users)
        if not beyond.size:
            return high
        at = int(beyond[0])
        low, high = (low if at == 0 else float(places[at - 1])), float(places[at])
        before = low * float(np.ravel(times(np.array([low]))["e2e_s"])[0]) if low else 0.0
        rate = low + (high - low) * (float(users) - before) / (float(there[at]) - before)
    return rate

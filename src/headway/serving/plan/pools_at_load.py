"""How many prefill and decode replicas of a pair carry a load: so many that neither pool's queue takes the limit on the first token.

And without a load what replicas carry with the first token in time, of users who wait for their answers: by these one pool is judged too.

Pools that are just able are no answer: prompts that come at random wait for a worker, and what was prefilled waits for a seat to decode.
Both waits are those of the row (serving/pools.py); replicas are added where the wait is longer until the first token is in time.
"""

from __future__ import annotations

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
LEAST = 1e-30
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
    answer: Any = 0  # time from the first token to the last, s
    beginning: Any = 0  # share of a user's requests that begin with those of all others

    @property
    def starting(self) -> Any:
        """Prefill replica time of a prompt, s, or what it is worth where users who all begin at once wait as long as they may."""
        waiting = self.beginning * self.prefill * (self.first + self.answer) / 2
        alone = self.beginning * np.maximum(self.first - self.lanes * self.prefill / 2, 0)  # the first of them waits no longer than alone
        return np.maximum(self.prefill, waiting / np.maximum(self.most - self.first + alone, LEAST))


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


HALVINGS = 10  # of the rates between which the most that is carried lies


def rate_in_time(demand: Demand, p: Number, q: Number, able: PerSecond) -> PerSecond:
    """The most requests per second of users who wait for their answers, with the first token in time; 0 where one user waits too long.

    There are at most as many users as both pools have places, `able` is the capacity. More would only wait.

    >>> each = dict(prefill=0.15, lanes=1.0, decode=0.05, batch=64.0, seats=64.0, first=0.2, most=0.5, answer=3.0)
    >>> demand = Demand(**{name: np.array([value]) for name, value in each.items()})
    >>> [round(float(rate_in_time(demand, replicas, 1, 1 / np.maximum(0.15 / replicas, 0.05))[0]), 2) for replicas in (1, 2, 3)]
    [5.65, 12.23, 18.34]
    """
    places = q * demand.batch + p * demand.lanes
    low, high = (np.zeros(np.shape(able * demand.first)) + share * able for share in (0.0, FULLEST))
    for _ in range(HALVINGS):
        rate = (low + high) / 2
        met = 1 / np.maximum(rate * (demand.first + demand.answer), 1)  # a user meets the others, not itself
        prompts, seats = waits_s(demand, np.maximum(rate * (1 - met), LEAST), p, q)
        users = rate * (demand.first + prompts + seats + demand.answer)
        burst = demand.beginning * np.maximum((users / p + demand.lanes) / 2 * demand.prefill - demand.first, 0)
        good = (users <= places) & (demand.first + prompts + seats + burst <= demand.most)
        low, high = np.where(good, rate, low), np.where(good, high, rate)
    return low

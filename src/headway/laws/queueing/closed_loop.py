"""Requests on one replica at a load: a closed loop of N users, or Poisson arrivals (an open loop), as a fixed point.

A saturated batch is a loop with one user per slot. laws/queueing/handed_loop.py has separate pools for prefill and decode.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from headway.core.formula import formula
from headway.core.units import ONE_TOKEN, Number, PerSecond, Second, Token
from headway.laws.queueing.loop import Loop, LoopTimes, StepTime, TokenTime, poisson, random_arrivals, step_yields_token
from headway.laws.queueing.request_times import request_times
from headway.laws.queueing.root import increasing_root

NOTHING: Number = 1e-12  # makes 0 / 0 a zero
FULLEST: Number = 1 - 1e-9
SETTLED = 3
CAPACITY_CLOSE = 1e-8  # of a capacity: far below its error
LEAST_SERVED = 1e-9  # requests in service of a load of almost nothing


@formula(source="definition; an engine admits sequences as far as the KV that they will hold on average fits")
def replica_seats(rank_sequences: Number, limit: Number, dp: Number) -> Number:
    """Seats: sequences in service at once in a replica of `dp` ranks, at least one; `limit` is the engine's, per rank (max_num_seqs).

    >>> float(replica_seats(250.5, 256, 1)), float(replica_seats(5000.0, 256, 8)), float(replica_seats(0.3, 256, 1))
    (250.5, 2048.0, 1.0)
    """
    return np.maximum(np.minimum(rank_sequences, limit) * dp, 1)


@formula(source="Little's law on the decoding sequences")
def decoded_per_s(decoding: Number, output: Token, tpot: Second) -> PerSecond:
    """Requests per second that `decoding` sequences complete.

    >>> float(decoded_per_s(100, 1001, 0.020))
    5.0
    """
    return decoding / (np.maximum(output / ONE_TOKEN - 1, NOTHING) * tpot)


@formula(source="Little's law on the requests in service")
def loop_rate(sequences: Number, ttft: Second, tpot: Second, output: Token) -> PerSecond:
    """Requests per second of a closed loop.

    >>> loop_rate(128, 2.0, 0.010, 1001)
    10.666666666666666
    """
    return sequences / (ttft + (output / ONE_TOKEN - 1) * tpot)


@formula(source="Little's law on the requests that wait for a seat")
def seat_wait_s(users: Number, seats: Number, rate: PerSecond) -> Second:
    """Wait for KV room or a slot in the batch.

    >>> float(seat_wait_s(256, 128, 10.0)), float(seat_wait_s(64, 128, 10.0))
    (12.8, 0.0)
    """
    return np.maximum(users - seats, 0) / rate


@formula(source="Sakasegawa 1977, Ann. Inst. Stat. Math. 29(1), equation 3: mean wait of M/D/c, half of M/M/c's")
def open_seat_wait_s(served: Number, seats: Number, rate: PerSecond, in_turn: Number) -> Second:
    """Wait for a seat of Poisson arrivals, dealt in turn to `in_turn` replicas: nearly none until almost all seats are taken.

    >>> float(open_seat_wait_s(64.0, 128, 10.0, 1)) < 1e-5, round(float(open_seat_wait_s(126.0, 128, 10.0, 1)), 2)
    (True, 2.48)
    """
    load = np.minimum(served / seats, FULLEST)
    return load ** np.sqrt(2 * (seats + 1)) / (1 - load) / 2 / rate / in_turn


def closed_loop(step: StepTime, loop: Loop, token: TokenTime = step_yields_token) -> LoopTimes:
    """Times of a closed loop on one replica."""
    served = np.minimum(loop.users, loop.seats) + 0.0 * loop.prompt + 0.0 * loop.output
    return loop_times(step, loop, served, decoding_of(step, loop, served, token), token)


def decoding_of(step: StepTime, loop: Loop, served: Any, token: TokenTime = step_yields_token) -> Any:
    """Decoding sequences of a closed loop: with them, decoding and prefilling fill the service."""

    def excess(decoding: Any) -> Any:
        ttft, tpot, *_ = request_times(step, loop, served, decoding, token)
        return decoding + decoded_per_s(decoding, loop.output, tpot) * ttft - served

    return increasing_root(excess, 0 * served, served, -served)


def loop_times(step: StepTime, loop: Loop, served: Any, decoding: Any, token: TokenTime = step_yields_token) -> LoopTimes:
    """Times of a closed loop with `served` requests in service, of which `decoding` decode."""
    ttft, tpot, decode, prompt = request_times(step, loop, served, decoding, token, whole_answer=True)
    rate = loop_rate(served, ttft, tpot, loop.output)
    wait = seat_wait_s(loop.users, loop.seats, rate)
    waited = ttft + wait
    return LoopTimes(ttft=waited, tpot=tpot, decode=decode, rate=rate, decoding=decoding, in_service=served, seat_wait=wait, prompt=prompt)


def open_decoding(step: StepTime, loop: Loop, rate: Any, token: TokenTime = step_yields_token) -> Any:
    """Sequences that decode at once when Poisson arrivals come at `rate`; all seats decode from saturation on."""
    full = loop.seats + 0.0 * loop.prompt + 0.0 * loop.output + 0.0 * rate

    def excess(decoding: Any) -> Any:
        return decoded_per_s(decoding, loop.output, _served_at(step, loop, rate, decoding, token)[1]) - rate

    return increasing_root(excess, 0 * full, full, -rate + 0 * full)


def open_served(step: StepTime, loop: Loop, rate: Any, decoding: Any, token: TokenTime = step_yields_token) -> Any:
    """Requests in service when Poisson arrivals come at `rate` and `decoding` sequences decode."""
    return np.minimum(_served_at(step, loop, rate, decoding, token)[0], loop.seats)


def _served_at(step: StepTime, loop: Loop, rate: Any, decoding: Any, token: TokenTime) -> tuple[Any, Any]:
    """Requests in service beside `decoding` sequences, seats ignored, and their TPOT."""
    random, served, tpot = poisson(loop, rate), decoding + LEAST_SERVED, None
    for _ in range(SETTLED):  # TTFT hardly depends on the requests in service
        ttft, tpot, *_ = request_times(step, random, served, decoding, token)
        served = np.maximum(decoding + rate * ttft, LEAST_SERVED)
    return served, tpot


def open_loop(step: StepTime, loop: Loop, rate: Any, token: TokenTime = step_yields_token) -> LoopTimes:
    """Times of Poisson arrivals at `rate` on one replica; `loop.users` is not used, and times beyond the capacity mean nothing."""
    decoding = open_decoding(step, loop, rate, token)
    served = open_served(step, loop, rate, decoding, token)
    return open_times(step, poisson(loop, rate), rate, served, decoding, token)


def open_times(step: StepTime, loop: Loop, rate: Any, served: Any, decoding: Any, token: TokenTime = step_yields_token) -> LoopTimes:
    """Times of Poisson arrivals at `rate` with `served` requests in service, of which `decoding` decode."""
    ttft, tpot, decode, prompt = request_times(step, loop, served, decoding, token, whole_answer=True)
    wait = open_seat_wait_s(served, loop.seats, rate, loop.in_turn)
    waited = ttft + wait
    return LoopTimes(ttft=waited, tpot=tpot, decode=decode, rate=rate, decoding=decoding, in_service=served, seat_wait=wait, prompt=prompt)


def capacity(step: StepTime, loop: Loop, token: TokenTime = step_yields_token) -> Any:
    """Requests per second of one replica with every seat taken: the highest rate at which `open_loop` is steady."""
    spread = closed_loop(step, replace(random_arrivals(loop), users=loop.seats), token).rate

    def excess(rate: Any) -> Any:
        return rate - closed_loop(step, replace(poisson(loop, rate), users=loop.seats + 0.0 * rate), token).rate

    return increasing_root(excess, 0 * spread, 2 * spread, -spread, CAPACITY_CLOSE)

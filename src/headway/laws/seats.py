"""Seats: how many sequences an engine serves at once, and Little's law on those who sit, decode and wait."""

from __future__ import annotations

import numpy as np

from headway.formula import formula
from headway.units import Number, PerSecond, Second, Token

NEW_TOKEN: Token = 1.0
NOTHING: Number = 1e-12  # keeps 0 / 0 a zero


@formula(source="definition; an engine admits sequences as far as the KV that they will hold on average fits")
def seats_held(kv_room: Token, prompt: Token, output: Token, reserve: Number, limit: Number) -> Number:
    """Sequences in service at once: `reserve` is the part of an answer that counts (1 reserves all of it, 1/2 is the mean over its growth).

    >>> float(seats_held(500_000, 1000, 1000, 1.0, 256)), float(seats_held(5_000_000, 1000, 1000, 1.0, 256))
    (250.0, 256.0)
    """
    return np.maximum(np.minimum(kv_room / (prompt + reserve * output), limit), 1)


@formula(source="Little's law on the decoding sequences")
def decoded_per_s(decoding: Number, output: Token, tpot: Second) -> PerSecond:
    """Requests per second that so many decoding sequences finish.

    >>> float(decoded_per_s(100, 1001, 0.020))
    5.0
    """
    return decoding / (np.maximum(output / NEW_TOKEN - 1, NOTHING) * tpot)


@formula(source="Little's law on the requests in service")
def loop_rate(sequences: Number, ttft: Second, tpot: Second, output: Token) -> PerSecond:
    """Requests per second of a closed loop.

    >>> loop_rate(128, 2.0, 0.010, 1001)
    10.666666666666666
    """
    return sequences / (ttft + (output / NEW_TOKEN - 1) * tpot)


@formula(source="Little's law on the requests that wait for a seat")
def seat_wait_s(users: Number, seats: Number, rate: PerSecond) -> Second:
    """Wait for KV room or a place in the batch.

    >>> float(seat_wait_s(256, 128, 10.0)), float(seat_wait_s(64, 128, 10.0))
    (12.8, 0.0)
    """
    return np.maximum(users - seats, 0) / rate

"""What a measured cell may hold: each quantity's unit and range, declared once, and the check that every reader of measured files uses.

The ranges are wide: no server, run or price known lies outside them. What does is a slip, most often of the unit, so the message asks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from headway.core import units
from headway.core.errors import HeadwayError, clip
from headway.core.schema import TINY, Field

DAY_S = 86400.0
TTFT = Field("s", "time to first token", low=1e-3, high=3600, open_low=False, bare_most=300)  # measured means reach 369 s
TPOT = Field("s", "time per output token, or between tokens", low=1e-4, high=5, open_low=False)
REQUEST_TIME = Field("s", "a whole request", low=1e-3, high=DAY_S, open_low=False)
INSTANT = Field("s", "a point in time, by the file's clock or since 1970", high=4.2e9, open_low=False)  # the year 2103
RUN_TIME = Field("s", "duration of a run", low=1e-3, high=366 * DAY_S, open_low=False)
LENGTH = Field("token", "tokens of a prompt or an answer", high=1e8, open_low=False)
TOKENS = Field("token", "tokens of a run", high=1e15, open_low=False)
REQUESTS = Field("", "requests of a run", high=1e10, open_low=False)
RUN_REQUESTS = Field("", "requests of a run that took place", low=1, high=1e10, open_low=False, integer=True)
USERS = Field("", "requests served at a time", high=1e7)
REQUEST_RATE = Field("1/s", "requests per second", high=1e7)
TOKEN_RATE = Field("token/s", "tokens per second of all chips", high=1e11)
USER_TOKEN_RATE = Field("token/s", "tokens per second of a user, or of a card alone", low=1e-2, high=1e7)
CHIP_TOKEN_RATE = Field("token/s", "tokens per second of a chip", high=1e7)
DEGREE = Field("", "chips, or ways that they share work", low=1, high=10_000_000, open_low=False, integer=True)
TURNS = Field("", "turns of a conversation", high=1e6, open_low=False)
DRAFTS = Field("", "drafts of a sequence in a step", low=1, high=64, open_low=False, integer=True)
SCATTER = Field("", "standard deviation of lengths over their mean", high=10, open_low=False)
ACCEPTED = Field("", "mean tokens of a step with speculation", low=1, high=65, open_low=False)

PARAMS = Field("", "parameters of a model", low=1e5, high=1e16, open_low=False)
PARAMS_B = Field("", "parameters of a model in billions", low=1e-3, high=1e6, open_low=False)
SHAPE = Field("", "layers, heads or a width of a model", low=1, high=1e7, open_low=False, integer=True)
SEQUENCES = Field("", "sequences of a batch", low=1, high=1e9, open_low=False, integer=True)
SEQUENCE = Field("token", "tokens of a sequence", low=1, high=1e9, open_low=False, integer=True)
LAYERS = Field("", "layers of a model", high=1e5, open_low=False)
TFLOPS = Field("", "TFLOP/s of a chip", low=1e-2, high=1e6, open_low=False)
MFU = Field("", "per cent of a chip's peak", low=0.1, high=100, open_low=False)
STEP_TIME = Field("s", "time of an optimiser step", low=1e-4, high=DAY_S, open_low=False)
MEMORY_GB = Field("", "GB of memory of a chip", low=1e-2, high=1e5, open_low=False)
USD_PER_MTOK = Field("", "USD per million tokens", low=1e-4, high=1e5, open_low=False)

SECONDS = {"": 1.0, "_s": 1.0, "_ms": 1e-3, "_us": 1e-6, "_ns": 1e-9}  # ends of the names of columns of times
UNIT_NAMES = {1.0: "seconds", 1e-3: "milliseconds", 1e-6: "microseconds", 1e-9: "nanoseconds"}


class BadCell(HeadwayError, ValueError):
    """A cell of a measured file that its column cannot hold; the text is the reason."""


def cell(value: Any, q: Field, name: str, scale: float = 1.0) -> float:
    """The number in a cell, in SI (`scale` SI units each); BadCell for what is no number or no such quantity.

    >>> cell("250", TTFT, "ttft_ms", 1e-3), cell(8, DEGREE, "tp")
    (0.25, 8.0)
    >>> cell("412", TTFT, "ttft_s")
    Traceback (most recent call last):
    headway.core.measured.BadCell: ttft_s: got '412', which is 6.87 min: milliseconds?
    """
    try:
        if type(value) not in (str, int, float) or (type(value) is str and "_" in value):  # a bool is an int to isinstance
            raise ValueError
        amount = float(value)
    except (ValueError, OverflowError):
        raise BadCell(f"{name}: got {clip(value)!r}; wants {described(q)}") from None
    size = amount * scale
    if q.low < size <= q.high and TINY < size < q.bare_most and (not q.integer or size % 1 == 0):
        return size
    wants = q.illegal(size)
    is_slip = scale == 1.0 and size >= q.bare_most
    if not wants and not is_slip:
        return size
    if q.unit == "s" and math.isfinite(size) and size > 0:
        likely = next((word for unit, word in UNIT_NAMES.items() if _is_usual(amount * unit, q) and unit != scale), "")
        if likely:
            raise BadCell(f"{name}: got {clip(value)!r}, which is {units.show(size, 's')}: {likely}?")
    raise BadCell(f"{name}: got {clip(value)!r}; wants {described(q) if math.isfinite(size) else 'a finite number'}")


def _is_usual(size: float, q: Field) -> bool:
    """Whether a quantity has a usual size."""
    return not q.illegal(size) and size < q.bare_most


def reason(value: Any, q: Field, name: str, scale: float = 1.0) -> str:
    """Why a cell is no such quantity; "" if it is one."""
    try:
        cell(value, q, name, scale)
    except BadCell as error:
        return str(error)
    return ""


def described(q: Field) -> str:
    """What a cell of a quantity holds, in words.

    >>> described(DEGREE), described(LENGTH)
    ('a whole number at least 1 and at most 10M', 'a number of tokens at least 0 and at most 100M')
    """
    what = "a whole number" if q.integer else "a number of tokens" if q.unit == "token" else "a number"
    return f"{what} {q.range()}".rstrip()


STRAY_GAP = 20.0  # times the span of all other points in time that lies between them and a stray one
STRAY_SHARE, STRAY_MOST, STRAY_LEAST = 0.05, 30, 20  # most of the points that may be strays, and the fewest points that have any


def strays(times: Sequence[float], least_s: float = 0.0) -> frozenset[int]:
    """Indices of points in time that lie far from nearly all others: they are in another unit, or of another clock.

    `least_s` is the least time that the others are taken to span.

    >>> strays([*range(30), 12300.0]), strays(range(30))
    (frozenset({30}), frozenset())
    """
    order = sorted(range(len(times)), key=times.__getitem__)
    most = min(STRAY_MOST, int(len(times) * STRAY_SHARE)) if len(times) >= STRAY_LEAST else 0
    for count in range(1, most + 1):
        for low in range(count + 1):
            inner = order[low : len(order) - (count - low)]
            span = max(times[inner[-1]] - times[inner[0]], least_s)
            below = low == 0 or times[inner[0]] - times[order[low - 1]] > STRAY_GAP * span
            above = low == count or times[order[len(order) - (count - low)]] - times[inner[-1]] > STRAY_GAP * span
            if span > 0 and below and above:
                return frozenset(order) - frozenset(inner)
    return frozenset()

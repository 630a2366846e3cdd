"""What an engine's log of its start says of a deployment: its room for KV cache, its share of the card, its most sequences.

Such a log is exact, so it is no factor of the posterior: the newest one of the same deployment holds, and one of another says nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields

from headway.core.quantity import known
from headway.core.units import Number
from headway.performance.calibration.key import TRAINING, RunKey
from headway.performance.calibration.observation import Observation

ROOM, SHARE, SEATS = "room", "share", "seats"  # quantities of its observations: KV bytes, share of the card, most sequences of a rank
QUANTITIES = (ROOM, SHARE, SEATS)
PARTS = tuple(field.name for field in fields(RunKey) if field.name != "mode")  # a start serves whatever load


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedStart:
    """A start of a deployment over what the engine's defaults and the laws say of it."""

    run: str  # PROFILE:ID
    month: str
    room: Number  # KV room over that of the laws at its share of the card
    share: Number = 1  # of the card, over the usual one
    seats: Number = 1  # most sequences of a rank, over the engine's default


def logged_start(observations: Iterable[Observation], key: RunKey) -> LoggedStart | None:
    """The newest start of a deployment that logs tell; None without one."""
    starts = [log for log in observations if log.quantity in QUANTITIES and is_same(log.key, key)]
    if not starts:
        return None
    newest = max(starts, key=lambda log: log.month)
    factors = {log.quantity: _factor(log) for log in starts if log.run == newest.run}
    return LoggedStart(run=newest.run, month=newest.month, **factors)


def _factor(log: Observation) -> Number:
    name = {ROOM: "KV room over the laws'", SHARE: "share of the card over the usual one", SEATS: "sequences over the default"}
    return known(math.exp(log.excess), name[log.quantity], "", "measured", f"log of its start ({log.run})", log.month or "undated")


def is_same(first: RunKey, second: RunKey) -> bool:
    """Whether two keys are of one deployment, as far as both say."""
    pairs = [{getattr(first, name), getattr(second, name)} for name in PARTS]
    return TRAINING not in (first.mode, second.mode) and all(len(pair) == 1 or "" in pair for pair in pairs)

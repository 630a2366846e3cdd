"""What an engine's log of its start says of a deployment: its room for KV cache, its share of the card, its most sequences.

Such a log is exact, so it is no factor of the posterior: the newest one of the same deployment holds, and one of another says nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from headway.core.quantity import known
from headway.core.units import Number
from headway.laws.serving.room import kv_bytes_beyond, left_beside, share_of_start, with_bytes_beyond
from headway.performance.assumptions import UTILIZATION
from headway.performance.calibration.in_force import ROOM, Calibrations
from headway.performance.calibration.key import TRAINING, RunKey, layout_texts
from headway.performance.calibration.observation import Observation
from headway.performance.layout import Layout
from headway.performance.room import Room

SHARE, SEATS = "share", "seats"  # quantities of its observations beside the room: share of the card, most sequences of a rank
NAMES = {ROOM: "KV room over the laws'", SHARE: "share of the card over the usual one", SEATS: "sequences over the engine's default"}
PARTS = tuple(field.name for field in fields(RunKey) if field.name not in ("chips", "mode"))  # of any replicas, which serve any load


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedStart:
    """A start of a deployment over what the laws and the engine's defaults say of it; arrays over layouts, 1 for those without a log."""

    runs: tuple[str, ...]  # PROFILE:ID
    room: Any = 1  # KV room over that of the laws at its share of the card
    share: Any = 1  # of the card, over the usual one
    seats: Any = 1  # most sequences of a rank, over the engine's default


def logged_start(observations: Iterable[Observation], key: RunKey) -> LoggedStart | None:
    """The newest start of a deployment that logs tell; None without one."""
    starts = [log for log in observations if log.quantity in NAMES and is_same(log.key, key)]
    if not starts:
        return None
    newest = max(starts, key=lambda log: log.month)
    return LoggedStart(runs=(newest.run,), **{log.quantity: _factor(log) for log in starts if log.run == newest.run})


def _factor(log: Observation) -> Number:
    return known(math.exp(log.excess), NAMES[log.quantity], "", "measured", f"log of its start ({log.run})", log.month or "undated")


def is_same(first: RunKey, second: RunKey) -> bool:
    """Whether two keys are of one deployment, as far as both say."""
    pairs = [{getattr(first, name), getattr(second, name)} for name in PARTS]
    return TRAINING not in (first.mode, second.mode) and all(len(pair) == 1 or "" in pair for pair in pairs)


def logged_starts(observations: Iterable[Observation], key: RunKey, layout: Layout) -> LoggedStart | None:
    """The newest start of a deployment in a layout, or in each of an array; None where no log tells of any."""
    logs = [observation for observation in observations if observation.quantity in NAMES]
    if not logs:
        return None
    texts = layout_texts(layout)
    by_text = {text: logged_start(logs, replace(key, layout=text)) for text in dict.fromkeys(texts.ravel().tolist())}
    starts = [start for start in by_text.values() if start is not None]
    if not starts or not texts.ndim:
        return starts[0] if starts else None
    factors = {
        name: np.reshape([1 if (start := by_text[text]) is None else getattr(start, name) for text in texts.ravel().tolist()], texts.shape)
        for name in NAMES
    }  # fmt: skip
    return LoggedStart(runs=tuple(dict.fromkeys(run for start in starts for run in start.runs)), **factors)


def start_in_force(force: Calibrations | None, key: RunKey, layout: Layout) -> LoggedStart | None:
    """What logs in force say of a deployment, which the answer tells; None where they say nothing."""
    start = None if force is None else logged_starts(force.observations, key, layout)
    if force is not None and start is not None:
        force.tell(start.runs, ROOM, half=start.room, usual=1)
    return start


def started_share(start: LoggedStart | None, utilization: Any) -> Any:
    """Share of the card of a deployment: as the user says, else as its engine was started."""
    is_usual = getattr(utilization, "kind", "") == "default"
    return share_of_start(UTILIZATION, start.share) if start is not None and is_usual else utilization


def started_room(room_at: Callable[[Any], Room], start: LoggedStart | None, utilization: Any) -> Room:
    """The room of a deployment at a share of the card; as the log of its engine's start has it, where there is one.

    What the engine set aside beyond the laws at its share of the card it sets aside at any other.
    """
    share = started_share(start, utilization)
    room = room_at(share)
    if start is None:
        return room
    logged = share_of_start(UTILIZATION, start.share)
    beyond = kv_bytes_beyond(room_at(logged).kv, start.room)
    return replace(
        room, kv=with_bytes_beyond(room.kv, beyond), usable=with_bytes_beyond(room.usable, beyond), beyond=left_beside(room.beyond, beyond)
    )

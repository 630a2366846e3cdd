"""A measurement of this machine, from the outside: the device, its threads, the memory that it may take, and the process that does it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from headway.core.errors import BadValue
from headway.core.units import show
from headway.reality import here, threads
from headway.reality.measure.record import MachineRecord, of_dict

PROCESSOR, CARD = "processor", "card"
DEVICES = (PROCESSOR, CARD)
COPIES = 2.5  # times the largest buffer that a measurement takes: a copy's two ends, and what is drawn
LEAST_RING = 64 * 10**6  # bytes: two of a usual processor's last caches
CHILD = "headway.reality.measure.child"

Child = Callable[[str, Mapping[str, Any], int], dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureRequest:
    """What is measured, and what it may take."""

    device: str = PROCESSOR
    threads: int
    cores: int
    quick: bool = False
    limit_memory: float | None = None  # bytes


def measured(request: MeasureRequest, computer: here.Host, child: Child = threads.in_child) -> MachineRecord:
    """The machine, measured in a process with so many threads."""
    limit = request.limit_memory or computer.memory / 4 or 1e9
    ring = int(limit / COPIES)
    if ring < LEAST_RING:
        raise BadValue("--limit-memory", show(limit, "byte"), f"at least {show(LEAST_RING * COPIES, 'byte')}, to lie past the caches")
    asked_for = {"device": request.device, "threads": request.threads, "quick": request.quick, "ring_bytes": ring}
    times = child(CHILD, asked_for, request.threads)
    facts = {"device": computer.processor or "processor", "memory": computer.memory, "date": time.strftime("%Y-%m-%d")}
    return of_dict({**facts, "cores": request.cores, "threads": request.threads, **times})

"""Links between workers: a message is copied into memory that both see, and a bell says so; between racks a throttle makes it slower."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from headway.core.units import BytePerSecond, Second
from headway.reality.lab.clock import REAL
from headway.reality.lab.decoder import Array
from headway.reality.lab.workers import WorkerDesk

FORM = np.float64  # of numbers that are sent
WORD = np.dtype(FORM).itemsize


class Letter(NamedTuple):
    """What one worker is to get: rows of an array, and the expert of each."""

    target: int
    rows: Array
    experts: Array | None = None


class Burst(NamedTuple):
    """Messages that a worker sent at once over links of one kind."""

    across: bool  # to another rack
    bytes: int
    seconds: Second  # of the sender's processor; across racks until the throttle let all of them go


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkPlan:
    """Which workers are joined, in their order, and how much memory their messages have."""

    ranks: tuple[int, ...]
    per_rack: int
    slots: int  # messages in each direction between two of them
    rows: int  # of the longest message
    row: int  # numbers of a row
    rate: BytePerSecond  # of the throttle between racks
    chain: bool = False  # each sends to the next alone

    @property
    def message_bytes(self) -> int:
        """Memory of one message."""
        return self.rows * self.row * WORD

    @property
    def bytes(self) -> int:
        """Memory of all links."""
        return len(self.ranks) ** (1 if self.chain else 2) * self.slots * self.message_bytes


@dataclass(slots=True, kw_only=True)
class Links:
    """A worker's links to those that it is joined with, who are counted in the plan's order, during one run."""

    plan: LinkPlan
    desk: WorkerDesk
    place: int  # of this worker among them
    bursts: list[Burst] = field(default_factory=list)
    clear: dict[int, Second] = field(default_factory=dict)  # when each link is, on the workers' own clocks

    def _slot(self, source: int, target: int, slot: int) -> Array:
        plan = self.plan
        link = source if plan.chain else source * len(plan.ranks) + target
        return np.ndarray((plan.rows, plan.row), FORM, self.desk.memory, (link * plan.slots + slot) * plan.message_bytes)

    def _is_across(self, target: int) -> bool:
        return self.plan.ranks[self.place] // self.plan.per_rack != self.plan.ranks[target] // self.plan.per_rack

    def send(self, x: Array, letters: Sequence[Letter], slot: int = 0, clock: Second = 0.0) -> None:
        """Send rows of x, inside the rack first, when the sender's own clock says so much."""
        for across in (False, True):
            bundle = [letter for letter in letters if self._is_across(letter.target) == across]
            volume, spent, begin = 0, 0.0, time.perf_counter()
            for target, rows, experts in bundle:
                memory, processor = self._slot(self.place, target, slot), time.thread_time()
                np.take(x, rows, 0, memory[: len(rows)], mode="clip")  # other modes copy twice
                seconds, volume = time.thread_time() - processor, volume + len(rows) * self.plan.row * WORD
                if across:  # a sleep that ended late is made good by the next
                    REAL.sleep_until(begin + volume / self.plan.rate)
                    seconds = time.perf_counter() - begin - spent
                spent += seconds
                self.clear[target] = max(self.clear.get(target, 0.0), clock) + seconds
                self.desk.bells[self.plan.ranks[target]].send((len(rows), experts, self.clear[target]))
            if volume:
                self.bursts.append(Burst(across, volume, spent))

    def receive(self, source: int, slot: int = 0) -> tuple[Array, Array, Second]:
        """The next message from a worker: its rows, in the memory of their slot, the expert of each, and when it arrived."""
        count, experts, arrival = self.desk.bells[self.plan.ranks[source]].recv()
        return self._slot(source, self.place, slot)[:count], experts, arrival

    def meet(self) -> None:
        """Wait until all are here: then none still reads what was sent before."""
        workers, step = len(self.plan.ranks), 1
        while step < workers:
            self.desk.bells[self.plan.ranks[(self.place + step) % workers]].send(None)
            self.desk.bells[self.plan.ranks[(self.place - step) % workers]].recv()
            step *= 2

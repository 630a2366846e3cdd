"""Bytes that a simulation takes, about: of the program, of requests that are kept, and of replicas.

The bytes of a request by itself and of a conversation were measured as the growth of whole commands with their requests
(bench/bench_sim_memory.py); the base, a user's request and the factor of plain lists are guesses above what was seen.
A queue that grows without end takes more, and a prefix cache what its blocks in use take, about 30 bytes each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

BASE, REPLICA = 3.0e8, 2.5e5  # bytes of the program with machine code, and of a replica's seats and histograms
STREAM = 2.0e8  # bytes of the pieces of a run whose requests are not kept, and of its sample
REQUEST, TURN, USER = 110.0, 180.0, 150.0  # bytes of a request that is kept: by itself, of a conversation, of a closed loop
TRAFFIC = 24.0  # bytes of a request of each further load
PLAIN_FACTOR = 5.0  # times as much in plain Python's lists


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryNeed:
    """What decides about the memory of a simulation."""

    requests: Sequence[int]  # of each load
    replicas: int
    streamed: bool = False
    turns: bool = False
    users: bool = False
    plain: bool = False

    @property
    def total(self) -> float:
        """Bytes of the whole command.

        >>> f"{MemoryNeed(requests=[10**7], replicas=1).total:.2g}, {MemoryNeed(requests=[10**8], replicas=200, streamed=True).total:.2g}"
        '1.4e+09, 5.5e+08'
        """
        fixed = BASE + REPLICA * self.replicas
        if self.streamed:
            return fixed + STREAM
        request_bytes = max(TURN if self.turns else 0.0, USER if self.users else 0.0, REQUEST)
        form = PLAIN_FACTOR if self.plain else 1.0
        return fixed + request_bytes * form * max(self.requests) + TRAFFIC * (sum(self.requests) - max(self.requests))

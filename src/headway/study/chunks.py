"""What a sweep takes, from a few questions that are timed, and how large its chunks are. Rows do not depend on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

CHUNK_S = 4.0  # short enough to lose little, long enough that handing it on costs nothing
LEAST_S, PER_WORKER = 0.5, 8  # chunks that each worker should get, so that all end together
MOST_ROWS = 200_000  # of one chunk, which a client holds whole
SAMPLES = 3  # groups of a block that are timed, after one that warms up
MOST_TIMED = 40  # blocks that are timed; the others go by those of their verb


@dataclass(frozen=True, slots=True)
class SweepCost:
    """Estimates of a whole sweep."""

    seconds: float  # of one worker
    rows: float
    bytes: float


@dataclass(frozen=True, slots=True)
class GroupCost:
    """Estimates of one group of a block."""

    seconds: float
    rows: float
    bytes: float


def sampled(groups: int) -> list[int]:
    """Groups that are timed: the first twice, since it warms up, and some in between."""
    spread = [groups * place // SAMPLES + groups // (2 * SAMPLES) for place in range(SAMPLES)]
    return [0, *dict.fromkeys(min(group, groups - 1) for group in spread)]


def total(costs: Sequence[GroupCost], groups: Sequence[int]) -> SweepCost:
    """The cost of all blocks."""
    pairs = list(zip(costs, groups, strict=True))
    return SweepCost(*(sum(getattr(cost, name) * count for cost, count in pairs) for name in ("seconds", "rows", "bytes")))


def steps(costs: Sequence[GroupCost], groups: Sequence[int], workers: int, chunk_s: float | None) -> list[int]:
    """Groups a chunk, of each block: as many as take the time of a chunk, fewer where workers would idle or rows be too many.

    >>> steps([GroupCost(0.01, 1, 100), GroupCost(2.0, 30_000, 1e6)], [10_000, 50], 2, None)
    [400, 2]
    >>> steps([GroupCost(0.01, 1, 100)], [100], 2, None)
    [50]
    """
    usual = max(LEAST_S, min(CHUNK_S, total(costs, groups).seconds / (PER_WORKER * workers)))
    target = usual if chunk_s is None else chunk_s
    return [max(1, int(min(target / max(cost.seconds, 1e-9) + 1e-9, MOST_ROWS / max(cost.rows, 1)))) for cost in costs]

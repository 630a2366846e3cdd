"""Hit rates of every capacity and every TTL from one pass over a trace: how many other blocks, and how much time, lie between two uses.

An LRU pool of C blocks that forgets what was idle for longer than T holds exactly the blocks that were used within T and are among the
C used last (Mattson et al. 1970: what a small pool holds, a larger one holds too). So a block is found if its distance is at most C and
its age at most T, and is a hit if that holds for all blocks before it in the prompt as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.sim import compiled
from headway.sim.kvcache_arrays import dense_ids
from headway.sim.kvcache_replay import requests

NEVER = np.iinfo(np.int64).max
COMPILE_ABOVE = 1_000_000  # blocks


@dataclass(frozen=True, slots=True, kw_only=True)
class Reuse:
    """For each block of each prompt, the least that a cache must have for it to be a hit."""

    distance: Any  # blocks of an LRU pool; NEVER where the block or one before it is new
    age: Any  # seconds that an unused block is kept; inf likewise

    def share(self, capacity_blocks: Any, ttl_s: Any) -> Any:
        """Hits over all blocks: one number for each pair of capacity and TTL, which are broadcast."""
        capacity, ttl = np.broadcast_arrays(capacity_blocks, ttl_s)
        is_reused = self.distance < NEVER
        distance, age = self.distance[is_reused], self.age[is_reused]
        hits = [np.count_nonzero((distance <= room) & (age <= limit_s)) for room, limit_s in zip(capacity.flat, ttl.flat, strict=True)]
        return np.reshape(hits, capacity.shape) / max(1, len(self.distance))


def reuse(blocks: Any, offsets: Any, times: Any = None, *, leaf_first: bool = False, compile: bool | None = None) -> Reuse:
    """Distances and ages of a trace; arguments as `replay_hits` takes them."""
    dense, count = dense_ids(blocks)
    starts, clock = requests(offsets, times, len(dense))
    fast = compiled.available() and len(dense) > COMPILE_ABOVE if compile is None else compile
    arrays = (np.full(count, -1), np.zeros(count), np.zeros(len(dense) + 1, np.int64), np.zeros(len(dense), np.int64), np.zeros(len(dense)))
    if fast:
        compiled.compiled(distances)(dense, starts, clock, leaf_first, *arrays)
        return Reuse(distance=arrays[3], age=arrays[4])
    lists = [array.tolist() for array in arrays]  # plain Python is faster with lists
    distances(dense.tolist(), starts.tolist(), clock.tolist(), leaf_first, *lists)
    return Reuse(distance=np.array(lists[3], np.int64), age=np.array(lists[4], float))


def distances(blocks: Any, starts: Any, clock: Any, leaf_first: bool, last_use: Any, when: Any, tree: Any, distance: Any, age: Any) -> None:
    """Distance and age of each block as its request finds it, the largest of the prompt so far; numba-safe.

    `tree` sums over uses in order (Fenwick 1994), each block counted at its last use `last_use`, `when` in time.
    """
    uses = 0
    for request in range(len(starts) - 1):
        start, end = starts[request], starts[request + 1]
        most, longest, stored = 0, 0.0, total(tree, uses)
        for index in range(start, end):
            block = blocks[index]
            if last_use[block] < 0:
                most, longest = NEVER, np.inf
            elif most < NEVER:
                most = max(most, stored - total(tree, last_use[block]))
                longest = max(longest, clock[request] - when[block])
            distance[index], age[index] = most, longest
        for step in range(end - start):
            block = blocks[end - 1 - step if leaf_first else start + step]
            if last_use[block] >= 0:
                add(tree, last_use[block], -1)
            add(tree, uses, 1)
            last_use[block], when[block] = uses, clock[request]
            uses += 1


def add(tree: Any, place: int, change: int) -> None:
    """Change one member of the summed row."""
    place += 1
    while place < len(tree):
        tree[place] += change
        place += place & -place


def total(tree: Any, count: int) -> int:
    """Sum of the first `count` members."""
    subtotal = 0
    while count > 0:
        subtotal += tree[count]
        count -= count & -count
    return subtotal

"""Blocks of prompts that several requests share: what sharing saves, and how a request lets go of them."""

from __future__ import annotations

from headway.sim.kvcache import leave as unpin
from headway.sim.kvcache_arrays import PAGES, PINNED, POOL
from headway.sim.state import NOW, OWN, PUBLISHED, SHARED, WHO, Rules, State


def able(s: State, r: Rules) -> int:
    """Blocks that requests may hold, each counted by itself: what they share is there once."""
    if r.caching == 0:
        return r.capacity
    return r.capacity + s.count[SHARED] - s.cache.pools.pool[PAGES] * s.cache.pools.pool[s.count[OWN] * POOL + PINNED]


def let_go(s: State, r: Rules, j: int) -> None:
    """A request needs its prompt's blocks no more; they stay cached until something else needs the room."""
    if r.caching == 0 or s.seat[j + PUBLISHED] == 0:
        return
    start = s.cache.start[s.seat[j + WHO]]
    unpin(s.cache.pools, s.count[OWN], s.cache.blocks, start, start + s.seat[j + PUBLISHED], s.at[NOW])
    s.count[SHARED] -= s.cache.pools.pool[PAGES] * s.seat[j + PUBLISHED]
    s.seat[j + PUBLISHED] = 0

"""Blocks of prompts that several requests share: what sharing saves, and how a request lets go of them."""

from __future__ import annotations

from headway.sim.kvcache import leave as unpin
from headway.sim.kvcache_arrays import PAGES, PINNED, POOL
from headway.sim.state import FIRST_POOL, NOW, PUBLISHED, REQUEST, SHARED, Rules, State


def block_limit(state: State, rules: Rules) -> int:
    """Blocks that requests may hold, each counted by itself: what they share is there once."""
    if rules.caching == 0:
        return rules.capacity
    return (
        rules.capacity
        + state.count[SHARED]
        - state.cache.pools.pool[PAGES] * state.cache.pools.pool[state.count[FIRST_POOL] * POOL + PINNED]
    )


def let_go(state: State, rules: Rules, seat: int) -> None:
    """A request needs its prompt's blocks no more; they stay cached until something else needs the room."""
    if rules.caching == 0 or state.seat[seat + PUBLISHED] == 0:
        return
    start = state.cache.start[state.seat[seat + REQUEST]]
    unpin(state.cache.pools, state.count[FIRST_POOL], state.cache.blocks, start, start + state.seat[seat + PUBLISHED], state.at[NOW])
    state.count[SHARED] -= state.cache.pools.pool[PAGES] * state.seat[seat + PUBLISHED]
    state.seat[seat + PUBLISHED] = 0

"""Which block a pool lets go, and where it goes: the least recently used of those that no running request uses, to the pool below.

All in the numba-safe subset. A pool's ring of unpinned slots is in order of last use, so that the oldest is both the next to be evicted
and the first to expire. Whoever puts a sequence's blocks back at one time puts its last block first: then no block outlives the blocks
before it, without which it is useless.
"""

from __future__ import annotations

from headway.sim.kvcache_arrays import (
    BELOW,
    BLOCK,
    CAPACITY,
    EMPTY,
    EVICTED,
    EXPIRED,
    NEWER,
    NODE,
    NOWHERE,
    OLDER,
    PAGES,
    PINNED,
    POOL,
    PRIVATE,
    STORED,
    WRITES,
    CachePools,
)


def free_pages(pools: CachePools, pool_id: int) -> int:
    """Pages of a pool that hold nothing."""
    pool = pools.pool
    return pool[pool_id * POOL + CAPACITY] - pool[pool_id * POOL + PRIVATE] - pool[pool_id * POOL + PAGES] * pool[pool_id * POOL + STORED]


def claimable_pages(pools: CachePools, pool_id: int) -> int:
    """Pages of a pool that running requests do not use: free, or of blocks that can be let go."""
    pool = pools.pool
    return pool[pool_id * POOL + CAPACITY] - pool[pool_id * POOL + PRIVATE] - pool[pool_id * POOL + PAGES] * pool[pool_id * POOL + PINNED]


def ring_end(pools: CachePools, pool_id: int) -> int:
    """The row of `node` that closes a pool's ring: after it comes the oldest, before it the newest."""
    return pools.slots + pool_id


def oldest(pools: CachePools, pool_id: int) -> int:
    """The slot of the block used longest ago that no running request uses, NOWHERE when there is none."""
    end = ring_end(pools, pool_id)
    slot = pools.node[end * NODE + NEWER]
    return NOWHERE if slot == end else slot


def link(pools: CachePools, pool_id: int, slot: int) -> None:
    """Put a slot at the ring's newest end."""
    node, end = pools.node, ring_end(pools, pool_id)
    newest = node[end * NODE + OLDER]
    node[slot * NODE + OLDER] = newest
    node[slot * NODE + NEWER] = end
    node[newest * NODE + NEWER] = slot
    node[end * NODE + OLDER] = slot


def unlink(pools: CachePools, slot: int) -> None:
    """Take a slot out of its ring."""
    node = pools.node
    newer, older = node[slot * NODE + NEWER], node[slot * NODE + OLDER]
    node[older * NODE + NEWER] = newer
    node[newer * NODE + OLDER] = older


def put(pools: CachePools, pool_id: int, block: int, last: float) -> int:
    """Store a block in an empty slot, in no ring yet; the caller has made room."""
    node, pool = pools.node, pools.pool
    slot = pool[pool_id * POOL + EMPTY]
    pool[pool_id * POOL + EMPTY] = node[slot * NODE + NEWER]
    pool[pool_id * POOL + STORED] += 1
    pool[pool_id * POOL + WRITES] += 1
    node[slot * NODE + BLOCK] = block
    pools.slot[pool_id * pools.ids + block] = slot
    pools.last[slot] = last
    return slot


def drop(pools: CachePools, pool_id: int, slot: int) -> None:
    """Forget the block in an unpinned slot."""
    unlink(pools, slot)
    node, pool = pools.node, pools.pool
    pools.slot[pool_id * pools.ids + node[slot * NODE + BLOCK]] = NOWHERE
    node[slot * NODE + BLOCK] = NOWHERE
    node[slot * NODE + NEWER] = pool[pool_id * POOL + EMPTY]
    pool[pool_id * POOL + EMPTY] = slot
    pool[pool_id * POOL + STORED] -= 1


def let_go(pools: CachePools, pool_id: int, slot: int, now: float) -> None:
    """Move an unpinned block to the pool below, whose own oldest makes room and goes further down in its turn."""
    block, last, lower_id = pools.node[slot * NODE + BLOCK], pools.last[slot], pools.pool[pool_id * POOL + BELOW]
    drop(pools, pool_id, slot)
    while lower_id != NOWHERE:
        lower_slot = pools.slot[lower_id * pools.ids + block]
        if lower_slot != NOWHERE:  # from another replica, in a pool that both share
            renew(pools, lower_id, lower_slot, max(last, pools.last[lower_slot]))
            return
        if now - last <= pools.ttl[lower_id] and pools.pool[lower_id * POOL + CAPACITY] >= pools.pool[lower_id * POOL + PAGES]:
            if free_pages(pools, lower_id) >= pools.pool[lower_id * POOL + PAGES]:
                link(pools, lower_id, put(pools, lower_id, block, last))
                return
            victim = oldest(pools, lower_id)
            next_block, next_last = pools.node[victim * NODE + BLOCK], pools.last[victim]
            pools.pool[lower_id * POOL + EVICTED] += 1
            drop(pools, lower_id, victim)
            link(pools, lower_id, put(pools, lower_id, block, last))
            block, last = next_block, next_last
        lower_id = pools.pool[lower_id * POOL + BELOW]


def renew(pools: CachePools, pool_id: int, slot: int, last: float) -> None:
    """Make an unpinned slot its pool's newest."""
    unlink(pools, slot)
    link(pools, pool_id, slot)
    pools.last[slot] = last


def expire(pools: CachePools, pool_id: int, now: float) -> None:
    """Let go of what was idle for longer than its pool keeps it, in this pool and those below."""
    while pool_id != NOWHERE:
        slot = oldest(pools, pool_id)
        while slot != NOWHERE and now - pools.last[slot] > pools.ttl[pool_id]:
            pools.pool[pool_id * POOL + EXPIRED] += 1
            let_go(pools, pool_id, slot, now)
            slot = oldest(pools, pool_id)
        pool_id = pools.pool[pool_id * POOL + BELOW]


def evict(pools: CachePools, pool_id: int, now: float) -> int:
    """Let a pool's oldest unpinned block go; which block it was, NOWHERE when there is none."""
    slot = oldest(pools, pool_id)
    if slot == NOWHERE:
        return NOWHERE
    block = pools.node[slot * NODE + BLOCK]
    pools.pool[pool_id * POOL + EVICTED] += 1
    let_go(pools, pool_id, slot, now)
    return block


def make_room(pools: CachePools, pool_id: int, pages: int, now: float) -> bool:
    """Evict until so many pages are free; False, with nothing evicted, when running requests use the rest."""
    if claimable_pages(pools, pool_id) < pages:
        return False
    while free_pages(pools, pool_id) < pages:
        evict(pools, pool_id, now)
    return True

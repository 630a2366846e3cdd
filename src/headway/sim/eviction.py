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
    HELD,
    NEWER,
    NODE,
    NOWHERE,
    OLDER,
    PAGES,
    PINNED,
    POOL,
    STORED,
    WRITTEN,
    Pools,
)


def free_pages(pools: Pools, p: int) -> int:
    """Pages of a pool that hold nothing."""
    pool = pools.pool
    return pool[p * POOL + CAPACITY] - pool[p * POOL + HELD] - pool[p * POOL + PAGES] * pool[p * POOL + STORED]


def claimable_pages(pools: Pools, p: int) -> int:
    """Pages of a pool that running requests do not use: free, or of blocks that can be let go."""
    pool = pools.pool
    return pool[p * POOL + CAPACITY] - pool[p * POOL + HELD] - pool[p * POOL + PAGES] * pool[p * POOL + PINNED]


def ring_end(pools: Pools, p: int) -> int:
    """The row of `node` that closes a pool's ring: after it comes the oldest, before it the newest."""
    return pools.slots + p


def oldest(pools: Pools, p: int) -> int:
    """The slot of the block used longest ago that no running request uses, NOWHERE when there is none."""
    end = ring_end(pools, p)
    slot = pools.node[end * NODE + NEWER]
    return NOWHERE if slot == end else slot


def link(pools: Pools, p: int, slot: int) -> None:
    """Put a slot at the ring's newest end."""
    node, end = pools.node, ring_end(pools, p)
    newest = node[end * NODE + OLDER]
    node[slot * NODE + OLDER] = newest
    node[slot * NODE + NEWER] = end
    node[newest * NODE + NEWER] = slot
    node[end * NODE + OLDER] = slot


def unlink(pools: Pools, slot: int) -> None:
    """Take a slot out of its ring."""
    node = pools.node
    newer, older = node[slot * NODE + NEWER], node[slot * NODE + OLDER]
    node[older * NODE + NEWER] = newer
    node[newer * NODE + OLDER] = older


def put(pools: Pools, p: int, block: int, last: float) -> int:
    """Store a block in an empty slot, in no ring yet; the caller has made room."""
    node, pool = pools.node, pools.pool
    slot = pool[p * POOL + EMPTY]
    pool[p * POOL + EMPTY] = node[slot * NODE + NEWER]
    pool[p * POOL + STORED] += 1
    pool[p * POOL + WRITTEN] += 1
    node[slot * NODE + BLOCK] = block
    pools.slot[p * pools.ids + block] = slot
    pools.last[slot] = last
    return slot


def drop(pools: Pools, p: int, slot: int) -> None:
    """Forget the block in an unpinned slot."""
    unlink(pools, slot)
    node, pool = pools.node, pools.pool
    pools.slot[p * pools.ids + node[slot * NODE + BLOCK]] = NOWHERE
    node[slot * NODE + BLOCK] = NOWHERE
    node[slot * NODE + NEWER] = pool[p * POOL + EMPTY]
    pool[p * POOL + EMPTY] = slot
    pool[p * POOL + STORED] -= 1


def let_go(pools: Pools, p: int, slot: int, now: float) -> None:
    """Move an unpinned block to the pool below, whose own oldest makes room and goes further down in its turn."""
    block, last, q = pools.node[slot * NODE + BLOCK], pools.last[slot], pools.pool[p * POOL + BELOW]
    drop(pools, p, slot)
    while q != NOWHERE:
        there = pools.slot[q * pools.ids + block]
        if there != NOWHERE:  # from another replica, in a pool that both share
            renew(pools, q, there, max(last, pools.last[there]))
            return
        if now - last <= pools.ttl[q] and pools.pool[q * POOL + CAPACITY] >= pools.pool[q * POOL + PAGES]:
            if free_pages(pools, q) >= pools.pool[q * POOL + PAGES]:
                link(pools, q, put(pools, q, block, last))
                return
            victim = oldest(pools, q)
            next_block, next_last = pools.node[victim * NODE + BLOCK], pools.last[victim]
            pools.pool[q * POOL + EVICTED] += 1
            drop(pools, q, victim)
            link(pools, q, put(pools, q, block, last))
            block, last = next_block, next_last
        q = pools.pool[q * POOL + BELOW]


def renew(pools: Pools, p: int, slot: int, last: float) -> None:
    """Make an unpinned slot its pool's newest."""
    unlink(pools, slot)
    link(pools, p, slot)
    pools.last[slot] = last


def expire(pools: Pools, p: int, now: float) -> None:
    """Let go of what was idle for longer than its pool keeps it, in this pool and those below."""
    while p != NOWHERE:
        slot = oldest(pools, p)
        while slot != NOWHERE and now - pools.last[slot] > pools.ttl[p]:
            pools.pool[p * POOL + EXPIRED] += 1
            let_go(pools, p, slot, now)
            slot = oldest(pools, p)
        p = pools.pool[p * POOL + BELOW]


def evict(pools: Pools, p: int, now: float) -> int:
    """Let a pool's oldest unpinned block go; which block it was, NOWHERE when there is none."""
    slot = oldest(pools, p)
    if slot == NOWHERE:
        return NOWHERE
    block = pools.node[slot * NODE + BLOCK]
    pools.pool[p * POOL + EVICTED] += 1
    let_go(pools, p, slot, now)
    return block


def make_room(pools: Pools, p: int, pages: int, now: float) -> bool:
    """Evict until so many pages are free; False, with nothing evicted, when running requests use the rest."""
    if claimable_pages(pools, p) < pages:
        return False
    while free_pages(pools, p) < pages:
        evict(pools, p, now)
    return True

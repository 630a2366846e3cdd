"""KV cache pools as flat arrays, for functions that run as plain Python and compiled; eviction and demotion of blocks.

A pool is one tier of one replica: pool 0 may be its HBM, pool 1 the host memory below it. Each pool names the pool below it, so that
replicas may have tiers of their own and share the lowest, from pool `shared` on. A block has a dense id, which stands for the block and
its whole prefix.

All in the numba-safe subset. A pool's ring of unpinned slots is in order of last use, so that the oldest slot is both the next to be
evicted and the first to expire. A caller that returns a sequence's blocks at one time returns the last block first, so that no block
outlives the blocks before it, without which it is useless.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from headway.core.errors import BadValue

NOWHERE = -1
# `node` has NODE entries for each slot: entry BLOCK of a slot is `node[slot * NODE + BLOCK]`. Slots of all pools are numbered through;
# then comes one row per pool, which closes the pool's ring.
NODE = 4
BLOCK = 0  # the block in the slot, NOWHERE if empty
NEWER = 1  # the next more recently used slot, the ring's end after the newest; for an empty slot the next empty slot
OLDER = 2  # the next less recently used slot, the ring's end before the oldest
PINS = 3  # running requests that use the block: a pinned slot is in no ring
# `pool` has POOL entries for each pool.
POOL = 12
CAPACITY = 0  # capacity in pages
PAGES = 1  # pages of a block with an id
STORED = 2  # blocks in the pool
PINNED = 3  # stored blocks that running requests use
PRIVATE = 4  # pages of running requests without an id: a partly filled block, an answer
EMPTY = 5  # the first empty slot, NOWHERE if none
BELOW = 6  # the pool that takes evicted blocks, NOWHERE if none
WRITES = 7  # blocks put into the pool so far
READS = 8  # blocks moved to the pool above
EVICTED = 9  # blocks evicted to make room
EXPIRED = 10  # blocks expired after the pool's time to live
REMOVED = 11  # blocks removed because a pool above computed them again
ARRAYS = ("slot", "node", "last", "pool", "ttl")


class CachePools(NamedTuple):
    """Every pool of a simulation, as flat arrays of concatenated rows; plain Python is several times faster with lists."""

    slot: Any  # int32[pools * ids]: slot of a block in each pool, NOWHERE if absent
    node: Any  # int32[(slots + pools) * NODE]
    last: Any  # float64[slots + pools]: time of last use
    pool: Any  # int64[pools * POOL]
    ttl: Any  # float64[pools]: seconds that an unused block is kept, inf for no limit
    ids: int  # number of block ids
    slots: int  # slots of all pools together
    tiers: int  # tiers of a replica, shared tiers included: the length of `depth_hits`
    shared: int  # the first pool shared by all replicas, NOWHERE if none


def make_pools(
    ids: int, capacity: Sequence[int], *, pages: int = 1, ttl_s: Sequence[float] | None = None, below: Sequence[int] | None = None,
    shared: int = NOWHERE,
) -> CachePools:  # fmt: skip
    """Empty pools for blocks 0..ids-1.

    `capacity` is in pages, of which a block with an id takes `pages` (blocks of 512 tokens on an engine with pages of 16: 32). By default
    each pool evicts to the next and the last pool drops blocks; `below` overrides this. All replicas share the pools from `shared` on.
    """
    count = len(capacity)
    _check(ids, capacity, pages)
    under = [*range(1, count), NOWHERE] if below is None else list(below)
    keeps = [np.inf] * count if ttl_s is None else [float(seconds) for seconds in ttl_s]
    if (
        len(under) != count
        or len(keeps) != count
        or any(not pool_id < lower_id < count and lower_id != NOWHERE for pool_id, lower_id in enumerate(under))
    ):
        raise BadValue("pools", f"below {under}, ttl {keeps}", f"one of each for the {count} pools, and below each pool a later one")
    if any(not seconds > 0 for seconds in keeps):
        raise BadValue("ttl", keeps, "times above 0 s")
    sizes = [min(room // pages, ids) for room in capacity]
    slots = sum(sizes)
    if slots + count > np.iinfo(np.int32).max:
        raise BadValue("kv cache", capacity, "fewer than 2**31 blocks")
    node = np.full((slots + count, NODE), NOWHERE, np.int32)
    node[:, NEWER] = node[:, OLDER] = np.arange(slots + count)
    node[:, PINS] = 0
    pool = np.zeros((count, POOL), np.int64)
    pool[:, CAPACITY], pool[:, PAGES], pool[:, EMPTY], pool[:, BELOW] = capacity, pages, NOWHERE, under
    first = 0
    for pool_id, size in enumerate(sizes):
        if size:
            node[first : first + size, NEWER] = np.append(np.arange(first + 1, first + size), NOWHERE)
            pool[pool_id, EMPTY] = first
        first += size
    slot, last, tiers = np.full(count * ids, NOWHERE, np.int32), np.zeros(slots + count), _depth(under)
    return CachePools(
        slot=slot, node=node.ravel(), last=last, pool=pool.ravel(), ttl=np.array(keeps), ids=ids, slots=slots, tiers=tiers, shared=shared,
    )  # fmt: skip


def _depth(below: list[int]) -> int:
    deepest = 0
    for first in range(len(below)):
        depth, pool_id = 0, first
        while pool_id != NOWHERE:
            depth, pool_id = depth + 1, below[pool_id]
        deepest = max(deepest, depth)
    return deepest


def as_lists(pools: CachePools) -> CachePools:
    """The pools as lists, for plain Python."""
    return pools._replace(**{name: getattr(pools, name).tolist() for name in ARRAYS})


def into_arrays(pools: CachePools, lists: CachePools) -> None:
    """Copy the state of lists back into the arrays."""
    for name in ARRAYS:
        getattr(pools, name)[:] = getattr(lists, name)


def _check(ids: int, capacity: Sequence[int], pages: int) -> None:
    if ids < 0 or pages < 1:
        raise BadValue("kv cache", f"{ids} blocks of {pages} pages", "a number of blocks, each of at least one page")
    if not len(capacity) or any(room < 0 for room in capacity):
        raise BadValue("kv cache", list(capacity), "pools of at least 0 pages, at least one of them")


def dense_ids(ids: Any) -> tuple[Any, int]:
    """Integers mapped to 0..n-1, equal for equal, and n.

    >>> dense_ids([7, 10**12, 7])
    (array([0, 1, 0], dtype=int32), 2)
    """
    unique_ids, dense = np.unique(np.asarray(ids), return_inverse=True)
    return dense.astype(np.int32), len(unique_ids)


def free_pages(pools: CachePools, pool_id: int) -> int:
    """Free pages of a pool."""
    pool = pools.pool
    return pool[pool_id * POOL + CAPACITY] - pool[pool_id * POOL + PRIVATE] - pool[pool_id * POOL + PAGES] * pool[pool_id * POOL + STORED]


def claimable_pages(pools: CachePools, pool_id: int) -> int:
    """Pages of a pool that running requests do not use: free, or in blocks that can be evicted."""
    pool = pools.pool
    return pool[pool_id * POOL + CAPACITY] - pool[pool_id * POOL + PRIVATE] - pool[pool_id * POOL + PAGES] * pool[pool_id * POOL + PINNED]


def ring_end(pools: CachePools, pool_id: int) -> int:
    """The row of `node` that closes a pool's ring, between the newest slot and the oldest."""
    return pools.slots + pool_id


def oldest(pools: CachePools, pool_id: int) -> int:
    """The slot of the least recently used unpinned block, NOWHERE if none."""
    end = ring_end(pools, pool_id)
    slot = pools.node[end * NODE + NEWER]
    return NOWHERE if slot == end else slot


def link(pools: CachePools, pool_id: int, slot: int) -> None:
    """Insert a slot at the newest end of its pool's ring."""
    node, end = pools.node, ring_end(pools, pool_id)
    newest = node[end * NODE + OLDER]
    node[slot * NODE + OLDER] = newest
    node[slot * NODE + NEWER] = end
    node[newest * NODE + NEWER] = slot
    node[end * NODE + OLDER] = slot


def unlink(pools: CachePools, slot: int) -> None:
    """Remove a slot from its ring."""
    node = pools.node
    newer, older = node[slot * NODE + NEWER], node[slot * NODE + OLDER]
    node[older * NODE + NEWER] = newer
    node[newer * NODE + OLDER] = older


def put(pools: CachePools, pool_id: int, block: int, last: float) -> int:
    """Store a block in an empty slot outside the ring and return the slot; the caller has made room."""
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
    """Drop the block in an unpinned slot."""
    unlink(pools, slot)
    node, pool = pools.node, pools.pool
    pools.slot[pool_id * pools.ids + node[slot * NODE + BLOCK]] = NOWHERE
    node[slot * NODE + BLOCK] = NOWHERE
    node[slot * NODE + NEWER] = pool[pool_id * POOL + EMPTY]
    pool[pool_id * POOL + EMPTY] = slot
    pool[pool_id * POOL + STORED] -= 1


def let_go(pools: CachePools, pool_id: int, slot: int, now: float) -> None:
    """Move an unpinned block to the pool below, whose oldest block makes room by moving further down."""
    block, last, lower_id = pools.node[slot * NODE + BLOCK], pools.last[slot], pools.pool[pool_id * POOL + BELOW]
    drop(pools, pool_id, slot)
    while lower_id != NOWHERE:
        lower_slot = pools.slot[lower_id * pools.ids + block]
        if lower_slot != NOWHERE:  # another replica stored it in a shared pool
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
    """Make an unpinned slot the newest of its pool."""
    unlink(pools, slot)
    link(pools, pool_id, slot)
    pools.last[slot] = last


def expire(pools: CachePools, pool_id: int, now: float) -> None:
    """Evict blocks idle for longer than their pool's time to live, in this pool and the pools below."""
    while pool_id != NOWHERE:
        slot = oldest(pools, pool_id)
        while slot != NOWHERE and now - pools.last[slot] > pools.ttl[pool_id]:
            pools.pool[pool_id * POOL + EXPIRED] += 1
            let_go(pools, pool_id, slot, now)
            slot = oldest(pools, pool_id)
        pool_id = pools.pool[pool_id * POOL + BELOW]


def evict(pools: CachePools, pool_id: int, now: float) -> int:
    """Evict a pool's oldest unpinned block and return it, NOWHERE if none."""
    slot = oldest(pools, pool_id)
    if slot == NOWHERE:
        return NOWHERE
    block = pools.node[slot * NODE + BLOCK]
    pools.pool[pool_id * POOL + EVICTED] += 1
    let_go(pools, pool_id, slot, now)
    return block


def make_room(pools: CachePools, pool_id: int, pages: int, now: float) -> bool:
    """Evict until `pages` pages are free; False, with nothing evicted, if running requests use too many."""
    if claimable_pages(pools, pool_id) < pages:
        return False
    while free_pages(pools, pool_id) < pages:
        evict(pools, pool_id, now)
    return True

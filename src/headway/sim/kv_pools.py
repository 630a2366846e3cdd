"""KV cache pools as flat arrays, so that the same functions run plain and compiled; which block a pool lets go, and where it goes.

A pool is one tier of one replica: pool 0 may be its HBM, pool 1 the host memory below it. Each pool names the one below it, so that
replicas may have tiers of their own and share the lowest, from pool `shared` on. A block is known by a dense id, which stands for itself
and all before it.

All in the numba-safe subset. A pool's ring of unpinned slots is in order of last use, so that the oldest is both the next to be evicted
and the first to expire. Whoever puts a sequence's blocks back at one time puts its last block first: then no block outlives the blocks
before it, without which it is useless.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from headway.core.errors import BadValue

NOWHERE = -1
# `node` has NODE entries for each slot: entry BLOCK of a slot is `node[slot * NODE + BLOCK]`. Slots of all pools are numbered through;
# after them comes one for each pool, which closes its ring.
NODE = 4
BLOCK = 0  # the block in the slot, NOWHERE when it is empty
NEWER = 1  # the slot used next after this one, the ring's end after the newest; in an empty slot the next empty one
OLDER = 2  # the slot used next before this one, the ring's end before the oldest
PINS = 3  # running requests that use the block: a pinned slot is in no ring
# `pool` has POOL entries for each pool.
POOL = 12
CAPACITY = 0  # room, in pages
PAGES = 1  # pages that one block with an id takes
STORED = 2  # blocks in the pool
PINNED = 3  # of them, those that running requests use
PRIVATE = 4  # pages of running requests that have no id: a part-filled block, an answer
EMPTY = 5  # the first empty slot, NOWHERE when there is none
BELOW = 6  # the pool that takes what this one lets go, NOWHERE when nobody does
WRITES = 7  # blocks put into the pool so far
READS = 8  # blocks taken up from it to the pool above
EVICTED = 9  # blocks that made room
EXPIRED = 10  # blocks idle for longer than the pool keeps them
REMOVED = 11  # blocks that left because they were computed again in a pool above
ARRAYS = ("slot", "node", "last", "pool", "ttl")


class CachePools(NamedTuple):
    """Every pool of a simulation. Rows follow one another in flat arrays: plain Python is several times faster with lists of them."""

    slot: Any  # int32[pools * ids]: where a block is in each pool, NOWHERE when it is not there
    node: Any  # int32[(slots + pools) * NODE]
    last: Any  # float64[slots + pools]: time of last use
    pool: Any  # int64[pools * POOL]
    ttl: Any  # float64[pools]: seconds that an unused block is kept, inf for ever
    ids: int  # blocks that there can be
    slots: int  # of all pools together
    tiers: int  # pools on the way from the first to the last below it: the length of what is found
    shared: int  # the first that all replicas reach, NOWHERE when none is


def make_pools(
    ids: int, capacity: Sequence[int], *, pages: int = 1, ttl_s: Sequence[float] | None = None, below: Sequence[int] | None = None,
    shared: int = NOWHERE,
) -> CachePools:  # fmt: skip
    """Empty pools for blocks 0..ids-1.

    `capacity` is in pages, of which a block with an id takes `pages` (blocks of 512 tokens on an engine with pages of 16: 32). Each pool
    lets go to the next, the last to nobody, unless `below` says otherwise. Pools from `shared` on are those of all replicas.
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
    """The same state in lists, for plain Python."""
    return pools._replace(**{name: getattr(pools, name).tolist() for name in ARRAYS})


def into_arrays(pools: CachePools, lists: CachePools) -> None:
    """Write the state of lists back to the arrays that it came from."""
    for name in ARRAYS:
        getattr(pools, name)[:] = getattr(lists, name)


def _check(ids: int, capacity: Sequence[int], pages: int) -> None:
    if ids < 0 or pages < 1:
        raise BadValue("kv cache", f"{ids} blocks of {pages} pages", "a number of blocks, each of at least one page")
    if not len(capacity) or any(room < 0 for room in capacity):
        raise BadValue("kv cache", list(capacity), "pools of at least 0 pages, at least one of them")


def dense_ids(ids: Any) -> tuple[Any, int]:
    """Any integers as 0..n-1, the same for the same, and n.

    >>> dense_ids([7, 10**12, 7])
    (array([0, 1, 0], dtype=int32), 2)
    """
    unique_ids, dense = np.unique(np.asarray(ids), return_inverse=True)
    return dense.astype(np.int32), len(unique_ids)


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

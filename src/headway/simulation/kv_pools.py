"""KV cache pools as flat arrays, for functions that run as plain Python and compiled; eviction and demotion of blocks.

A pool is one tier of one replica: pool 0 may be its HBM, pool 1 the host memory below it. Each pool names the pool below it, so that
replicas may have tiers of their own and share the lowest, from pool `shared` on. A block has an id, which stands for the block and its
whole prefix.

All in the numba-safe subset. A pool's ring of unpinned slots is in order of last use, so that the oldest slot is both the next to be
evicted and the first to expire. A caller that returns a sequence's blocks at one time returns the last block first, so that no block
outlives the blocks before it, without which it is useless.

The prefix cache of running requests: lookup of prompts, pinning of blocks, and storage of computed blocks. A request's blocks are
`blocks[start:end]`, in the order of its prompt. The order of calls for a request whose prompt runs on pool `pool_id`:

    expire(pools, pool_id, now)                                what was idle too long goes
    hits = match(pools, pool_id, blocks, start, end, now, least, depth_hits)
    if not admits(pools, pool_id, blocks, start, hits, pages): wait  pages: what the request needs beside the hits
    take(pools, pool_id, blocks, start, start + hits, now); hold(pools, pool_id, pages, now)
    publish(pools, pool_id, blocks, start, end, now)           each time that such blocks have been computed: held pages get their ids
    release(pools, pool_id, pages); leave(pools, pool_id, blocks, start, published, now)    at its end, or when it is preempted

Shared pools get a copy of a block as soon as it is published, and keep it after a read, since other replicas may need it.

A preempted request finds the blocks that it left behind. That saves work but is no prefix hit, so `count_lookups` counts it apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from headway.core.errors import BadValue

NOWHERE = -1
# `node` has NODE entries for each slot: entry BLOCK of a slot is `node[slot * NODE + BLOCK]`. Slots of all pools are numbered through;
# then comes one row per pool, which closes the pool's ring.
NODE = 5
BLOCK = 0  # the block in the slot, NOWHERE if empty
NEWER = 1  # the next more recently used slot, the ring's end after the newest; for an empty slot the next empty slot
OLDER = 2  # the next less recently used slot, the ring's end before the oldest
PINS = 3  # running requests that use the block: a pinned slot is in no ring
NEXT = 4  # the next slot whose block has the same place in `head`, NOWHERE after the last
# `pool` has POOL entries for each pool.
POOL = 15
CAPACITY = 0  # capacity in pages
PAGES = 1  # pages of a block with an id
STORED = 2  # blocks in the pool
PINNED = 3  # stored blocks that running requests use
PRIVATE = 4  # pages of running requests without an id: a partly filled block, an answer
EMPTY = 5  # the first slot that was emptied, NOWHERE if none
BELOW = 6  # the pool that takes evicted blocks, NOWHERE if none
WRITES = 7  # blocks put into the pool so far
READS = 8  # blocks moved to the pool above
EVICTED = 9  # blocks evicted to make room
EXPIRED = 10  # blocks expired after the pool's time to live
REMOVED = 11  # blocks removed because a pool above computed them again
UNUSED = 12  # the first slot that was never used, whose memory nothing has touched
PLACES = 13  # the pool's first place in `head`, and the number of its places less 1
MOST_PLACE = 14
ARRAYS = ("head", "node", "last", "pool", "ttl")


class Cells(Protocol):
    """Flat numbers: a list in plain Python, an array in machine code."""

    def __len__(self) -> int: ...

    def __getitem__(self, place: int, /) -> Any: ...

    def __setitem__(self, place: int, value: Any, /) -> None: ...


class CachePools(NamedTuple):
    """Every pool of a simulation, as flat arrays of concatenated rows; plain Python is several times faster with lists."""

    head: Any  # int32, some places for each pool: 1 + the first slot whose block has this place, 0 without one
    node: Any  # int32[(slots + pools) * NODE]
    last: Any  # float64[slots + pools]: time of last use
    pool: Any  # int64[pools * POOL]
    ttl: Any  # float64[pools]: seconds that an unused block is kept, inf for no limit
    slots: int  # slots of all pools together
    tiers: int  # tiers of a replica, shared tiers included: the length of `depth_hits`
    shared: int  # the first pool shared by all replicas, NOWHERE if none


def make_pools(
    ids: int, capacity: Sequence[int], *, pages: int = 1, ttl_s: Sequence[float] | None = None, below: Sequence[int] | None = None,
    shared: int = NOWHERE,
) -> CachePools:  # fmt: skip
    """Empty pools for at most `ids` blocks, whose ids are whole numbers from 0 on; memory grows with the blocks that are in a pool at once.

    `capacity` is in pages, of which a block with an id takes `pages` (blocks of 512 tokens on an engine with pages of 16: 32). By default
    each pool evicts to the next and the last pool drops blocks; `below` overrides this. All replicas share the pools from `shared` on.
    """
    count = len(capacity)
    if ids < 0 or pages < 1:
        raise BadValue("kv cache", f"{ids} blocks of {pages} pages", "a number of blocks, each of at least one page")
    if not count or any(room < 0 for room in capacity):
        raise BadValue("kv cache", list(capacity), "pools of at least 0 pages, at least one of them")
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
    node = np.zeros((slots + count, NODE), np.int32)
    node[slots:, NEWER] = node[slots:, OLDER] = np.arange(slots, slots + count)
    places = [2 << (size - 1).bit_length() if size else 1 for size in sizes]
    pool = np.zeros((count, POOL), np.int64)
    pool[:, CAPACITY], pool[:, PAGES], pool[:, EMPTY], pool[:, BELOW] = capacity, pages, NOWHERE, under
    pool[:, UNUSED], pool[:, PLACES], pool[:, MOST_PLACE] = np.cumsum(sizes) - sizes, np.cumsum(places) - places, np.array(places) - 1
    head, last, tiers = np.zeros(sum(places), np.int32), np.zeros(slots + count), _depth(under)
    return CachePools(
        head=head, node=node.ravel(), last=last, pool=pool.ravel(), ttl=np.array(keeps), slots=slots, tiers=tiers, shared=shared,
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


def dense_ids(ids: ArrayLike) -> tuple[Any, int]:
    """Integers mapped to 0..n-1, equal for equal, and n.

    >>> dense_ids([7, 10**12, 7])
    (array([0, 1, 0], dtype=int32), 2)
    """
    unique_ids, dense = np.unique(np.asarray(ids), return_inverse=True)
    return dense.astype(np.int32), len(unique_ids)


def place_of(pools: CachePools, pool_id: int, block: int) -> int:
    """The place of a block in `head`: ids that follow one another, as those of a prompt do, have places of their own."""
    return pools.pool[pool_id * POOL + PLACES] + (block & pools.pool[pool_id * POOL + MOST_PLACE])


def find(pools: CachePools, pool_id: int, block: int) -> int:
    """The slot of a block in a pool, NOWHERE if absent."""
    slot = pools.head[place_of(pools, pool_id, block)] - 1
    while slot != NOWHERE and pools.node[slot * NODE + BLOCK] != block:
        slot = pools.node[slot * NODE + NEXT]
    return slot


def unname(pools: CachePools, pool_id: int, slot: int) -> None:
    """Make the block of a slot absent."""
    node, place = pools.node, place_of(pools, pool_id, pools.node[slot * NODE + BLOCK])
    before = pools.head[place] - 1
    if before == slot:
        pools.head[place] = node[slot * NODE + NEXT] + 1
        return
    while node[before * NODE + NEXT] != slot:
        before = node[before * NODE + NEXT]
    node[before * NODE + NEXT] = node[slot * NODE + NEXT]


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
    if slot != NOWHERE:
        pool[pool_id * POOL + EMPTY] = node[slot * NODE + NEWER]
    else:
        slot = pool[pool_id * POOL + UNUSED]
        pool[pool_id * POOL + UNUSED] += 1
    node[slot * NODE + PINS] = 0
    pool[pool_id * POOL + STORED] += 1
    pool[pool_id * POOL + WRITES] += 1
    node[slot * NODE + BLOCK] = block
    place = place_of(pools, pool_id, block)
    node[slot * NODE + NEXT] = pools.head[place] - 1
    pools.head[place] = slot + 1
    pools.last[slot] = last
    return slot


def drop(pools: CachePools, pool_id: int, slot: int) -> None:
    """Drop the block in an unpinned slot."""
    unlink(pools, slot)
    node, pool = pools.node, pools.pool
    unname(pools, pool_id, slot)
    node[slot * NODE + BLOCK] = NOWHERE
    node[slot * NODE + NEWER] = pool[pool_id * POOL + EMPTY]
    pool[pool_id * POOL + EMPTY] = slot
    pool[pool_id * POOL + STORED] -= 1


def let_go(pools: CachePools, pool_id: int, slot: int, now: float) -> None:
    """Move an unpinned block to the pool below, whose oldest block makes room by moving further down."""
    block, last, lower_id = pools.node[slot * NODE + BLOCK], pools.last[slot], pools.pool[pool_id * POOL + BELOW]
    drop(pools, pool_id, slot)
    while lower_id != NOWHERE:
        lower_slot = find(pools, lower_id, block)
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


# Entries of a tally: prompt blocks looked up by new requests, blocks looked up by returning preempted requests, their hits; then hits by
# depth; then, in the loop, prompt tokens of new requests and cached tokens among them.
LOOKUPS, RETURN_LOOKUPS, RETURN_HITS, HITS = 0, 1, 2, 3


def match(pools: CachePools, pool_id: int, blocks: Cells, start: int, end: int, now: float, least: Cells, depth_hits: Cells) -> int:
    """Number of leading blocks of a prompt cached in a pool or below it; `depth_hits` gets the number at each depth.

    `least[depth]` is the fewest blocks worth loading from a depth; a prefix with fewer ends before them.
    """
    last = prefix_end(pools, pool_id, blocks, start, end, now, depth_hits)
    for depth in range(pools.tiers - 1, 0, -1):
        if 0 < depth_hits[depth] < least[depth]:
            last = first_at(pools, pool_id, blocks, start, last, depth)
            last = prefix_end(pools, pool_id, blocks, start, last, now, depth_hits)
    return last - start


def prefix_end(pools: CachePools, pool_id: int, blocks: Cells, start: int, end: int, now: float, depth_hits: Cells) -> int:
    """The index after the last block of the longest cached prefix; `depth_hits` gets its blocks at each depth."""
    for depth in range(pools.tiers):
        depth_hits[depth] = 0
    for index in range(start, end):
        tier_id, depth = pool_id, 0
        while tier_id != NOWHERE:
            slot = find(pools, tier_id, blocks[index])
            if slot != NOWHERE and (pools.node[slot * NODE + PINS] > 0 or now - pools.last[slot] <= pools.ttl[tier_id]):
                break
            tier_id = pools.pool[tier_id * POOL + BELOW]
            depth += 1
        if tier_id == NOWHERE:
            return index
        depth_hits[depth] += 1
    return end


def first_at(pools: CachePools, pool_id: int, blocks: Cells, start: int, end: int, depth: int) -> int:
    """The index of the first block found `depth` pools below this pool, `end` if none."""
    tier_id = pool_id
    for _ in range(depth):
        tier_id = pools.pool[tier_id * POOL + BELOW]
    for index in range(start, end):
        if find(pools, tier_id, blocks[index]) != NOWHERE and find(pools, pool_id, blocks[index]) == NOWHERE:
            return index
    return end


def admits(pools: CachePools, pool_id: int, blocks: Cells, start: int, hits: int, pages: int) -> bool:
    """Whether a request's hits and `pages` more pages fit after eviction of all unpinned blocks."""
    needed = pages
    for index in range(start, start + hits):
        slot = find(pools, pool_id, blocks[index])
        if slot == NOWHERE or pools.node[slot * NODE + PINS] == 0:
            needed += pools.pool[pool_id * POOL + PAGES]
    return needed <= claimable_pages(pools, pool_id)


def take(pools: CachePools, pool_id: int, blocks: Cells, start: int, end: int, now: float) -> None:
    """Pin the blocks of a cached prefix, moved up from lower pools if needed; the caller has checked `admits`."""
    for index in range(start, end):
        block = blocks[index]
        slot = find(pools, pool_id, block)
        if slot != NOWHERE:
            pin(pools, pool_id, slot, now)
        else:
            withdraw(pools, pool_id, block, True, now)
    for index in range(start, end):
        if find(pools, pool_id, blocks[index]) == NOWHERE:
            make_room(pools, pool_id, pools.pool[pool_id * POOL + PAGES], now)
            store_pinned(pools, pool_id, blocks[index], now)


def pin(pools: CachePools, pool_id: int, slot: int, now: float) -> None:
    """Pin a stored block for one more running request."""
    if pools.node[slot * NODE + PINS] == 0:
        unlink(pools, slot)
        pools.pool[pool_id * POOL + PINNED] += 1
    pools.node[slot * NODE + PINS] += 1
    pools.last[slot] = now


def store_pinned(pools: CachePools, pool_id: int, block: int, now: float) -> None:
    """Store a block pinned by one running request; the caller has made room."""
    pools.node[put(pools, pool_id, block, now) * NODE + PINS] = 1
    pools.pool[pool_id * POOL + PINNED] += 1


def withdraw(pools: CachePools, pool_id: int, block: int, read: bool, now: float) -> None:
    """Remove a block, about to be stored here anew, from the replica's lower pools; at most one of them has it."""
    lower_id = pools.pool[pool_id * POOL + BELOW]
    while lower_id != NOWHERE:
        slot = find(pools, lower_id, block)
        is_shared = pools.shared != NOWHERE and lower_id >= pools.shared
        if slot != NOWHERE and is_shared:
            pools.pool[lower_id * POOL + READS] += 1 if read else 0
            renew(pools, lower_id, slot, max(now, pools.last[slot]))
            return
        if slot != NOWHERE:
            pools.pool[lower_id * POOL + (READS if read else REMOVED)] += 1
            drop(pools, lower_id, slot)
            return
        lower_id = pools.pool[lower_id * POOL + BELOW]


def hold(pools: CachePools, pool_id: int, pages: int, now: float) -> bool:
    """Give a running request `pages` pages without ids, with evictions; False, with nothing changed, if they do not fit."""
    if not make_room(pools, pool_id, pages, now):
        return False
    pools.pool[pool_id * POOL + PRIVATE] += pages
    return True


def hold_just(pools: CachePools, pool_id: int, pages: int, now: float) -> bool:
    """Set the pages without ids of running requests, as counted by a loop that jumps ahead; False if they do not fit."""
    pools.pool[pool_id * POOL + PRIVATE] = pages
    return make_room(pools, pool_id, 0, now)


def release(pools: CachePools, pool_id: int, pages: int) -> None:
    """Free pages without ids."""
    pools.pool[pool_id * POOL + PRIVATE] -= pages


def publish(pools: CachePools, pool_id: int, blocks: Cells, start: int, end: int, now: float) -> None:
    """Give ids to blocks that a request computed in its pages, so that other requests find them."""
    for index in range(start, end):
        block = blocks[index]
        slot = find(pools, pool_id, block)
        pools.pool[pool_id * POOL + PRIVATE] -= pools.pool[pool_id * POOL + PAGES]
        if slot != NOWHERE:  # another request computed this block meanwhile: keep one copy
            pin(pools, pool_id, slot, now)
        else:
            withdraw(pools, pool_id, block, False, now)
            store_pinned(pools, pool_id, block, now)
        share(pools, block, now)


def share(pools: CachePools, block: int, now: float) -> None:
    """Write a computed block to the first shared pool, or renew it there."""
    shared_id = pools.shared
    if shared_id == NOWHERE or pools.pool[shared_id * POOL + CAPACITY] < pools.pool[shared_id * POOL + PAGES]:
        return
    slot = find(pools, shared_id, block)
    if slot != NOWHERE:
        renew(pools, shared_id, slot, max(now, pools.last[slot]))
        return
    below = pools.pool[shared_id * POOL + BELOW]
    while below != NOWHERE:
        slot = find(pools, below, block)
        if slot != NOWHERE:
            pools.pool[below * POOL + REMOVED] += 1
            drop(pools, below, slot)
        below = pools.pool[below * POOL + BELOW]
    make_room(pools, shared_id, pools.pool[shared_id * POOL + PAGES], now)
    link(pools, shared_id, put(pools, shared_id, block, now))


def leave(pools: CachePools, pool_id: int, blocks: Cells, start: int, end: int, now: float) -> None:
    """Unpin a request's blocks, last block first; unpinned blocks stay until eviction."""
    for index in range(end - 1, start - 1, -1):
        slot = find(pools, pool_id, blocks[index])
        pools.node[slot * NODE + PINS] -= 1
        pools.last[slot] = now
        if pools.node[slot * NODE + PINS] == 0:
            pools.pool[pool_id * POOL + PINNED] -= 1
            link(pools, pool_id, slot)


def count_lookups(pools: CachePools, tally: Cells, depth_hits: Cells, lookups: int, again: bool) -> None:
    """Count the hits of a prompt of `lookups` blocks; hits of a returning preempted request (`again`) are not prefix hits."""
    if again:
        tally[RETURN_LOOKUPS] += lookups
        for depth in range(pools.tiers):
            tally[RETURN_HITS] += depth_hits[depth]
        return
    tally[LOOKUPS] += lookups
    for depth in range(pools.tiers):
        tally[HITS + depth] += depth_hits[depth]


def cached_tokens(hits: int, block_tokens: int, prompt: int) -> int:
    """Prompt tokens that need no prefill; the last token always does, for its logits."""
    return min(hits * block_tokens, prompt - 1)


def use(
    pools: CachePools, pool_id: int, blocks: Cells, start: int, end: int, now: float, least: Cells, depth_hits: Cells, leaf_first: bool
) -> int:
    """Look up and use all blocks of a request in one instant; returns the hits.

    With `leaf_first` the request's last block counts as the oldest and is evicted first, as in serving engines; without, blocks count as
    used in prompt order, as in the literature's replays over one LRU pool.
    """
    expire(pools, pool_id, now)
    hits = match(pools, pool_id, blocks, start, end, now, least, depth_hits)
    if pools.pool[pool_id * POOL + BELOW] != NOWHERE:  # renew cached blocks before new blocks evict them
        for step in range(end - start):
            index = end - 1 - step if leaf_first else start + step
            slot = find(pools, pool_id, blocks[index])
            if slot != NOWHERE:
                renew(pools, pool_id, slot, now)
            else:
                withdraw(pools, pool_id, blocks[index], index < start + hits, now)
    for step in range(end - start):
        index = end - 1 - step if leaf_first else start + step
        touch(pools, pool_id, blocks[index], now)
        share(pools, blocks[index], now)
    return hits


def touch(pools: CachePools, pool_id: int, block: int, now: float) -> None:
    """Make a block the newest of a pool, stored first if absent; a pool smaller than a block stays empty."""
    slot = find(pools, pool_id, block)
    if slot != NOWHERE:
        renew(pools, pool_id, slot, now)
    elif make_room(pools, pool_id, pools.pool[pool_id * POOL + PAGES], now):
        link(pools, pool_id, put(pools, pool_id, block, now))

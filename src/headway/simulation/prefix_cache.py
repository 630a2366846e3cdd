"""The prefix cache of running requests: lookup of prompts, pinning of blocks, and storage of computed blocks.

Eviction, demotion to the pool below and expiry are in kv_pools.py.

All in the numba-safe subset, over the arrays of `CachePools`. A request's blocks are `blocks[start:end]`, in the order of its prompt. The
order of calls for a request whose prompt runs on pool `pool_id`:

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

from typing import Any

from headway.simulation.kv_pools import (
    BELOW,
    CAPACITY,
    NODE,
    NOWHERE,
    PAGES,
    PINNED,
    PINS,
    POOL,
    PRIVATE,
    READS,
    REMOVED,
    CachePools,
    claimable_pages,
    drop,
    expire,
    link,
    make_room,
    put,
    renew,
    unlink,
)

# Entries of a tally: prompt blocks looked up by new requests, blocks looked up by returning preempted requests, their hits; then hits by
# depth; then, in the loop, prompt tokens of new requests and cached tokens among them.
LOOKUPS, RETURN_LOOKUPS, RETURN_HITS, HITS = 0, 1, 2, 3


def match(pools: CachePools, pool_id: int, blocks: Any, start: int, end: int, now: float, least: Any, depth_hits: Any) -> int:
    """Number of leading blocks of a prompt cached in a pool or below it; `depth_hits` gets the number at each depth.

    `least[depth]` is the fewest blocks worth loading from a depth; a prefix with fewer ends before them.
    """
    last = prefix_end(pools, pool_id, blocks, start, end, now, depth_hits)
    for depth in range(pools.tiers - 1, 0, -1):
        if 0 < depth_hits[depth] < least[depth]:
            last = first_at(pools, pool_id, blocks, start, last, depth)
            last = prefix_end(pools, pool_id, blocks, start, last, now, depth_hits)
    return last - start


def prefix_end(pools: CachePools, pool_id: int, blocks: Any, start: int, end: int, now: float, depth_hits: Any) -> int:
    """The index after the last block of the longest cached prefix; `depth_hits` gets its blocks at each depth."""
    for depth in range(pools.tiers):
        depth_hits[depth] = 0
    for index in range(start, end):
        tier_id, depth = pool_id, 0
        while tier_id != NOWHERE:
            slot = pools.slot[tier_id * pools.ids + blocks[index]]
            if slot != NOWHERE and (pools.node[slot * NODE + PINS] > 0 or now - pools.last[slot] <= pools.ttl[tier_id]):
                break
            tier_id = pools.pool[tier_id * POOL + BELOW]
            depth += 1
        if tier_id == NOWHERE:
            return index
        depth_hits[depth] += 1
    return end


def first_at(pools: CachePools, pool_id: int, blocks: Any, start: int, end: int, depth: int) -> int:
    """The index of the first block found `depth` pools below this pool, `end` if none."""
    tier_id = pool_id
    for _ in range(depth):
        tier_id = pools.pool[tier_id * POOL + BELOW]
    for index in range(start, end):
        if pools.slot[tier_id * pools.ids + blocks[index]] != NOWHERE and pools.slot[pool_id * pools.ids + blocks[index]] == NOWHERE:
            return index
    return end


def admits(pools: CachePools, pool_id: int, blocks: Any, start: int, hits: int, pages: int) -> bool:
    """Whether a request's hits and `pages` more pages fit after eviction of all unpinned blocks."""
    needed = pages
    for index in range(start, start + hits):
        slot = pools.slot[pool_id * pools.ids + blocks[index]]
        if slot == NOWHERE or pools.node[slot * NODE + PINS] == 0:
            needed += pools.pool[pool_id * POOL + PAGES]
    return needed <= claimable_pages(pools, pool_id)


def take(pools: CachePools, pool_id: int, blocks: Any, start: int, end: int, now: float) -> None:
    """Pin the blocks of a cached prefix, moved up from lower pools if needed; the caller has checked `admits`."""
    for index in range(start, end):
        block = blocks[index]
        slot = pools.slot[pool_id * pools.ids + block]
        if slot != NOWHERE:
            pin(pools, pool_id, slot, now)
        else:
            withdraw(pools, pool_id, block, True, now)
    for index in range(start, end):
        if pools.slot[pool_id * pools.ids + blocks[index]] == NOWHERE:
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
        slot = pools.slot[lower_id * pools.ids + block]
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


def publish(pools: CachePools, pool_id: int, blocks: Any, start: int, end: int, now: float) -> None:
    """Give ids to blocks that a request computed in its pages, so that other requests find them."""
    for index in range(start, end):
        block = blocks[index]
        slot = pools.slot[pool_id * pools.ids + block]
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
    slot = pools.slot[shared_id * pools.ids + block]
    if slot != NOWHERE:
        renew(pools, shared_id, slot, max(now, pools.last[slot]))
        return
    below = pools.pool[shared_id * POOL + BELOW]
    while below != NOWHERE:
        slot = pools.slot[below * pools.ids + block]
        if slot != NOWHERE:
            pools.pool[below * POOL + REMOVED] += 1
            drop(pools, below, slot)
        below = pools.pool[below * POOL + BELOW]
    make_room(pools, shared_id, pools.pool[shared_id * POOL + PAGES], now)
    link(pools, shared_id, put(pools, shared_id, block, now))


def leave(pools: CachePools, pool_id: int, blocks: Any, start: int, end: int, now: float) -> None:
    """Unpin a request's blocks, last block first; unpinned blocks stay until eviction."""
    for index in range(end - 1, start - 1, -1):
        slot = pools.slot[pool_id * pools.ids + blocks[index]]
        pools.node[slot * NODE + PINS] -= 1
        pools.last[slot] = now
        if pools.node[slot * NODE + PINS] == 0:
            pools.pool[pool_id * POOL + PINNED] -= 1
            link(pools, pool_id, slot)


def count_lookups(pools: CachePools, tally: Any, depth_hits: Any, lookups: int, again: bool) -> None:
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
    pools: CachePools, pool_id: int, blocks: Any, start: int, end: int, now: float, least: Any, depth_hits: Any, leaf_first: bool
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
            slot = pools.slot[pool_id * pools.ids + blocks[index]]
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
    slot = pools.slot[pool_id * pools.ids + block]
    if slot != NOWHERE:
        renew(pools, pool_id, slot, now)
    elif make_room(pools, pool_id, pools.pool[pool_id * POOL + PAGES], now):
        link(pools, pool_id, put(pools, pool_id, block, now))

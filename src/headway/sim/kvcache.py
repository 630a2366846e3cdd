"""The prefix cache of running requests: what a prompt finds, what it pins, what it leaves behind.

All in the numba-safe subset, over the arrays of `Pools`. A request's blocks are `blocks[start:end]`, in the order of its prompt. The
order of calls for a request whose prompt runs on pool p:

    expire(pools, p, now)                                      what was idle too long goes
    hits = match(pools, p, blocks, start, end, now, least, found)
    if not admits(pools, p, blocks, start, hits, pages): wait  pages: what the request needs beside the hits
    take(pools, p, blocks, start, start + hits, now); hold(pools, p, pages, now)
    publish(pools, p, blocks, i, j, now)                       each time that blocks i..j have been computed: held pages get their ids
    release(pools, p, pages); leave(pools, p, blocks, start, published, now)      at its end, or when it is preempted

Pools that replicas share get a copy of a block as soon as it is published, and keep it when it is read: others may want it too.

A preempted request finds the blocks it left behind. That saves work, but it is no prefix hit: `count_asked` counts it apart.
"""

from __future__ import annotations

from typing import Any

from headway.sim.eviction import claimable_pages, drop, expire, link, make_room, put, renew, unlink
from headway.sim.kvcache_arrays import BELOW, CAPACITY, HELD, NODE, NOWHERE, PAGES, PINNED, PINS, POOL, READ, REMOVED, Pools

# Entries of a tally: prompt blocks looked up by new requests, by preempted ones that return, what the latter found; then hits by depth, and
# in the loop after those: prompt tokens of new requests, and of them those that need no computing.
ASKED, ASKED_AGAIN, FOUND_AGAIN, HITS = 0, 1, 2, 3


def match(pools: Pools, p: int, blocks: Any, start: int, end: int, now: float, least: Any, found: Any) -> int:
    """Leading blocks of a prompt that are cached in pool p or below it; `found` gets how many at each depth.

    `least[depth]` is the fewest blocks that are worth taking up from a depth: where there are fewer, the prefix ends before them.
    """
    last = count_found(pools, p, blocks, start, end, now, found)
    for depth in range(pools.tiers - 1, 0, -1):
        if 0 < found[depth] < least[depth]:
            last = first_at(pools, p, blocks, start, last, depth)
            last = count_found(pools, p, blocks, start, last, now, found)
    return last - start


def count_found(pools: Pools, p: int, blocks: Any, start: int, end: int, now: float, found: Any) -> int:
    """The index after the last block of the longest cached prefix; `found` gets its blocks at each depth."""
    for depth in range(pools.tiers):
        found[depth] = 0
    for index in range(start, end):
        q, depth = p, 0
        while q != NOWHERE:
            slot = pools.slot[q * pools.ids + blocks[index]]
            if slot != NOWHERE and (pools.node[slot * NODE + PINS] > 0 or now - pools.last[slot] <= pools.ttl[q]):
                break
            q = pools.pool[q * POOL + BELOW]
            depth += 1
        if q == NOWHERE:
            return index
        found[depth] += 1
    return end


def first_at(pools: Pools, p: int, blocks: Any, start: int, end: int, depth: int) -> int:
    """The index of the first block that is so many pools below p."""
    q = p
    for _ in range(depth):
        q = pools.pool[q * POOL + BELOW]
    for index in range(start, end):
        if pools.slot[q * pools.ids + blocks[index]] != NOWHERE and pools.slot[p * pools.ids + blocks[index]] == NOWHERE:
            return index
    return end


def admits(pools: Pools, p: int, blocks: Any, start: int, hits: int, pages: int) -> bool:
    """Whether a request fits: its hits and so many pages more, with everything evicted that nobody uses."""
    needed = pages
    for index in range(start, start + hits):
        slot = pools.slot[p * pools.ids + blocks[index]]
        if slot == NOWHERE or pools.node[slot * NODE + PINS] == 0:
            needed += pools.pool[p * POOL + PAGES]
    return needed <= claimable_pages(pools, p)


def take(pools: Pools, p: int, blocks: Any, start: int, end: int, now: float) -> None:
    """Pin the blocks of a found prefix, those of lower pools after moving them up; the caller has asked `admits`."""
    for index in range(start, end):
        block = blocks[index]
        slot = pools.slot[p * pools.ids + block]
        if slot != NOWHERE:
            pin(pools, p, slot, now)
        else:
            withdraw(pools, p, block, True, now)
    for index in range(start, end):
        if pools.slot[p * pools.ids + blocks[index]] == NOWHERE:
            make_room(pools, p, pools.pool[p * POOL + PAGES], now)
            store_pinned(pools, p, blocks[index], now)


def pin(pools: Pools, p: int, slot: int, now: float) -> None:
    """Count one more running request that uses a stored block."""
    if pools.node[slot * NODE + PINS] == 0:
        unlink(pools, slot)
        pools.pool[p * POOL + PINNED] += 1
    pools.node[slot * NODE + PINS] += 1
    pools.last[slot] = now


def store_pinned(pools: Pools, p: int, block: int, now: float) -> None:
    """Store a block that one running request uses; the caller has made room."""
    pools.node[put(pools, p, block, now) * NODE + PINS] = 1
    pools.pool[p * POOL + PINNED] += 1


def withdraw(pools: Pools, p: int, block: int, read: bool, now: float) -> None:
    """Remove a block from the replica's own pools below p, where it is about to be stored anew: it is in one of them at most."""
    q = pools.pool[p * POOL + BELOW]
    while q != NOWHERE:
        slot = pools.slot[q * pools.ids + block]
        kept = pools.shared != NOWHERE and q >= pools.shared
        if slot != NOWHERE and kept:
            pools.pool[q * POOL + READ] += 1 if read else 0
            renew(pools, q, slot, max(now, pools.last[slot]))
            return
        if slot != NOWHERE:
            pools.pool[q * POOL + (READ if read else REMOVED)] += 1
            drop(pools, q, slot)
            return
        q = pools.pool[q * POOL + BELOW]


def hold(pools: Pools, p: int, pages: int, now: float) -> bool:
    """Give a running request so many pages without ids, evicting for them; False, and nothing given, when others use the rest."""
    if not make_room(pools, p, pages, now):
        return False
    pools.pool[p * POOL + HELD] += pages
    return True


def hold_just(pools: Pools, p: int, pages: int, now: float) -> bool:
    """Running requests have so many pages without ids by now, which a loop that jumps ahead counts itself; False when they do not fit."""
    pools.pool[p * POOL + HELD] = pages
    return make_room(pools, p, 0, now)


def release(pools: Pools, p: int, pages: int) -> None:
    """Take pages without ids back."""
    pools.pool[p * POOL + HELD] -= pages


def publish(pools: Pools, p: int, blocks: Any, start: int, end: int, now: float) -> None:
    """Blocks that a request has computed in its held pages get their ids: from now on others find them."""
    for index in range(start, end):
        block = blocks[index]
        slot = pools.slot[p * pools.ids + block]
        pools.pool[p * POOL + HELD] -= pools.pool[p * POOL + PAGES]
        if slot != NOWHERE:  # another request has computed the same meanwhile: one copy is enough
            pin(pools, p, slot, now)
        else:
            withdraw(pools, p, block, False, now)
            store_pinned(pools, p, block, now)
        share(pools, block, now)


def share(pools: Pools, block: int, now: float) -> None:
    """Write a block that was computed to the first of the pools that replicas share, or find it there used anew."""
    q = pools.shared
    if q == NOWHERE or pools.pool[q * POOL + CAPACITY] < pools.pool[q * POOL + PAGES]:
        return
    slot = pools.slot[q * pools.ids + block]
    if slot != NOWHERE:
        renew(pools, q, slot, max(now, pools.last[slot]))
        return
    below = pools.pool[q * POOL + BELOW]
    while below != NOWHERE:
        slot = pools.slot[below * pools.ids + block]
        if slot != NOWHERE:
            pools.pool[below * POOL + REMOVED] += 1
            drop(pools, below, slot)
        below = pools.pool[below * POOL + BELOW]
    make_room(pools, q, pools.pool[q * POOL + PAGES], now)
    link(pools, q, put(pools, q, block, now))


def leave(pools: Pools, p: int, blocks: Any, start: int, end: int, now: float) -> None:
    """Unpin a request's blocks, the last of its prompt first: what nobody else uses stays until it is evicted."""
    for index in range(end - 1, start - 1, -1):
        slot = pools.slot[p * pools.ids + blocks[index]]
        pools.node[slot * NODE + PINS] -= 1
        pools.last[slot] = now
        if pools.node[slot * NODE + PINS] == 0:
            pools.pool[p * POOL + PINNED] -= 1
            link(pools, p, slot)


def count_asked(pools: Pools, counted: Any, found: Any, asked: int, again: bool) -> None:
    """Count what a prompt of `asked` blocks found; a preempted request that comes back (`again`) finds its own blocks: no prefix hits."""
    if again:
        counted[ASKED_AGAIN] += asked
        for depth in range(pools.tiers):
            counted[FOUND_AGAIN] += found[depth]
        return
    counted[ASKED] += asked
    for depth in range(pools.tiers):
        counted[HITS + depth] += found[depth]


def cached_tokens(hits: int, block_tokens: int, prompt: int) -> int:
    """Prompt tokens that need no computing: the last token always does, since its logits are wanted."""
    return min(hits * block_tokens, prompt - 1)


def use(pools: Pools, p: int, blocks: Any, start: int, end: int, now: float, least: Any, found: Any, leaf_first: bool) -> int:
    """A whole request in one instant: what its prompt finds, and all its blocks used now. Returns the hits.

    With `leaf_first` the last block is the oldest of the request and goes first, as in serving engines; without, each block counts as
    used in the order of the prompt, as traces are replayed over one LRU pool in the literature.
    """
    expire(pools, p, now)
    hits = match(pools, p, blocks, start, end, now, least, found)
    if pools.pool[p * POOL + BELOW] != NOWHERE:  # first save what is there from being evicted by what is not
        for step in range(end - start):
            index = end - 1 - step if leaf_first else start + step
            slot = pools.slot[p * pools.ids + blocks[index]]
            if slot != NOWHERE:
                renew(pools, p, slot, now)
            else:
                withdraw(pools, p, blocks[index], index < start + hits, now)
    for step in range(end - start):
        index = end - 1 - step if leaf_first else start + step
        touch(pools, p, blocks[index], now)
        share(pools, blocks[index], now)
    return hits


def touch(pools: Pools, p: int, block: int, now: float) -> None:
    """Make a block the newest of a pool, storing it when it is not there; a pool smaller than a block stays empty."""
    slot = pools.slot[p * pools.ids + block]
    if slot != NOWHERE:
        renew(pools, p, slot, now)
    elif make_room(pools, p, pools.pool[p * POOL + PAGES], now):
        link(pools, p, put(pools, p, block, now))

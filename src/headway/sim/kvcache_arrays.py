"""The state of KV cache pools as flat arrays, so that the same functions run as plain Python and compiled.

A pool is one tier of one replica: pool 0 may be its HBM, pool 1 the host memory below it. Each pool names the one below it, so that
replicas may have tiers of their own and share the lowest, from pool `shared` on. A block is known by a dense id, which stands for itself
and all before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from headway.errors import BadValue

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

"""Prefix hits of a trace over cache pools, every request served in the instant it arrives: what a cache could do, apart from any engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headway.errors import BadValue
from headway.sim import compiled
from headway.sim.kvcache import use
from headway.sim.kvcache_arrays import CachePools, as_lists, dense_ids, into_arrays, make_pools

COMPILE_ABOVE = 1_000_000  # blocks: plain Python takes longer over them than the compiler does


def replay_hits(
    blocks: Any,
    offsets: Any,
    times: Any = None,
    *,
    capacity_blocks: int | Sequence[int] | None = None,
    ttl_s: float | Sequence[float] = np.inf,
    leaf_first: bool = False,
    compile: bool | None = None,
) -> Any:
    """Blocks that each request finds in the cache, in the order given: those of its leading blocks that are still held.

    Blocks of request i are `blocks[offsets[i]:offsets[i + 1]]`; any integers do. `capacity_blocks` is one LRU pool's room (None: no
    limit), or those of several tiers, the fastest first: then the answer has a column for each. A block unused for longer than `ttl_s`
    is gone; each use begins the time anew. Without `times` nothing expires.
    """
    tiers = isinstance(capacity_blocks, Sequence)
    dense, count = dense_ids(blocks)
    room = list(capacity_blocks) if isinstance(capacity_blocks, Sequence) else [count if capacity_blocks is None else capacity_blocks]
    keeps = list(ttl_s) if isinstance(ttl_s, Sequence) else [ttl_s] * len(room)
    starts, clock = requests(offsets, times, len(dense))
    pools = make_pools(count, room, ttl_s=keeps)
    hits = replayed(pools, dense, starts, clock, leaf_first=leaf_first, compile=compile)
    return hits if tiers else hits[:, 0]


def replayed(pools: CachePools, dense: Any, starts: Any, clock: Any, *, leaf_first: bool = True, compile: bool | None = None) -> Any:
    """Hits of each request at each depth below pool 0; the pools are left as the last request leaves them."""
    hits, least = np.zeros((len(starts) - 1, pools.tiers), np.int64), np.zeros(pools.tiers, np.int64)
    fast = compiled.available() and len(dense) > COMPILE_ABOVE if compile is None else compile
    if fast:
        compiled.compiled(replay)(pools, dense, starts, clock, least, leaf_first, hits)
        return hits
    lists, hit_rows = as_lists(pools), hits.tolist()
    replay(lists, dense.tolist(), starts.tolist(), clock.tolist(), least.tolist(), leaf_first, hit_rows)
    into_arrays(pools, lists)
    return np.array(hit_rows, np.int64).reshape(hits.shape)


def replay(pools: CachePools, blocks: Any, starts: Any, clock: Any, least: Any, leaf_first: bool, hits: Any) -> None:
    """Every request in turn; numba-safe."""
    for request in range(len(starts) - 1):
        use(pools, 0, blocks, starts[request], starts[request + 1], clock[request], least, hits[request], leaf_first)


def hit_share(hits: Any, offsets: Any) -> float:
    """Hits over all blocks asked for; of no blocks, 0."""
    lookups = int(offsets[-1]) - int(offsets[0])
    return float(np.sum(hits)) / lookups if lookups else 0.0


def hit_token_share(hits: Any, prompts: Any, block_tokens: int) -> float:
    """Cached tokens over all prompt tokens: a request's last block may be part full, so that its hits are not more than its prompt."""
    prompt_tokens = float(np.sum(prompts))
    return float(np.sum(np.minimum(np.asarray(hits) * block_tokens, prompts))) / prompt_tokens if prompt_tokens else 0.0


def requests(offsets: Any, times: Any, blocks: int) -> tuple[Any, Any]:
    """Offsets and times as arrays, refused where they do not fit."""
    starts = np.ascontiguousarray(offsets, np.int64)
    if not len(starts) or starts[0] != 0 or starts[-1] != blocks or np.any(np.diff(starts) < 0):
        raise BadValue("offsets", starts.tolist()[:5], f"never falling, from 0 to the {blocks} blocks")
    clock = np.zeros(len(starts) - 1) if times is None else np.ascontiguousarray(times, np.float64)
    if len(clock) != len(starts) - 1 or not np.all(np.isfinite(clock)) or np.any(np.diff(clock) < 0):
        raise BadValue("times", clock.tolist()[:5], f"never falling, one for each of the {len(starts) - 1} requests")
    return starts, clock

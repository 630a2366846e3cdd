"""The prefix cache in the loop: what a prompt finds when it is admitted, when that has been loaded, what it leaves for others."""

from __future__ import annotations

from math import inf

from headway.sim.blocks import blocks_for, blocks_held
from headway.sim.eviction import expire
from headway.sim.kvcache import admits, cached_tokens, count_asked, hold_just, match, publish, take
from headway.sim.kvcache_arrays import PAGES, PINNED
from headway.sim.reload import fetched_s
from headway.sim.state import AGAIN, COMPUTED, FOUND, NOW, PARTIAL, PROMPT, PUBLISHED, SHARED, WHO, WIDE, Rules, State


def known_blocks(s: State, r: Rules, i: int) -> int:
    """Whole blocks of a prompt that have ids."""
    return min(s.cache.start[i + 1] - s.cache.start[i], s.lengths[2 * i + PROMPT] // r.block_tokens)


def room_beside_hits(s: State, r: Rules, i: int, made: int) -> bool:
    """Whether a request fits with what it finds; how much that is stays in FOUND for `take_up`."""
    c, now, start = s.cache, s.at[NOW], s.cache.start[i]
    settle(s, r)
    expire(c.pools, 0, now)
    hits = match(c.pools, 0, c.blocks, start, start + known_blocks(s, r, i), now, c.least, c.found)
    s.count[FOUND] = hits
    need = blocks_for(s.lengths[2 * i + PROMPT] + made + 1, r.block) - hits * c.pools.pool[PAGES]
    return admits(c.pools, 0, c.blocks, start, hits, need)


def settle(s: State, r: Rules) -> None:
    """What answers have grown by since has taken the place of what nobody uses; where it is too much, all of it goes."""
    pools = s.cache.pools
    most = r.capacity - pools.pool[PAGES] * pools.pool[PINNED]
    hold_just(pools, 0, min(int(blocks_held(s, r) - s.count[SHARED]), most), s.at[NOW])


def take_up(s: State, r: Rules, j: int) -> None:
    """An admitted request uses what it found; where that comes from a lower tier, it waits until it is loaded."""
    c, now, i, hits = s.cache, s.at[NOW], s.seat[j + WHO], s.count[FOUND]
    start = c.start[i]
    count_asked(c.pools, c.counted, c.found, known_blocks(s, r, i), s.seat[j + AGAIN] > 0)
    c.ready[j // WIDE] = fetched_s(c.paths, c.pools, 0, c.found, r.block_bytes, now)
    take(c.pools, 0, c.blocks, start, start + hits, now)
    s.seat[j + PUBLISHED] = hits
    s.seat[j + COMPUTED] = cached_tokens(hits, r.block_tokens, s.lengths[2 * i + PROMPT])
    s.count[SHARED] += hits * c.pools.pool[PAGES]


def offer(s: State, r: Rules, j: int) -> None:
    """A prompt is computed: from now on others find its blocks."""
    c, i, now = s.cache, s.seat[j + WHO], s.at[NOW]
    start, whole, had = c.start[i], known_blocks(s, r, i), s.seat[j + PUBLISHED]
    if whole > had:
        settle(s, r)
        publish(c.pools, 0, c.blocks, start + had, start + whole, now)
        s.seat[j + PUBLISHED] = whole
        s.count[SHARED] += (whole - had) * c.pools.pool[PAGES]


def loading(s: State, r: Rules, j: int) -> bool:
    """Whether a request still waits for what it found."""
    return r.caching != 0 and s.cache.ready[j // WIDE] > s.at[NOW]


def next_loaded(s: State, r: Rules) -> float:
    """When the next of the prompts in work is loaded; never where none loads."""
    comes = inf
    if r.caching:
        for place in range(s.count[PARTIAL]):
            if loading(s, r, s.partial[place]):
                comes = min(comes, s.cache.ready[s.partial[place] // WIDE])
    return comes

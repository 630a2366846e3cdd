"""The prefix cache in the loop: what a prompt finds when it is admitted, when that has been loaded, what it leaves for others."""

from __future__ import annotations

from math import inf

from headway.sim.blocks import blocks_for, blocks_held
from headway.sim.eviction import expire
from headway.sim.kvcache import HITS, admits, cached_tokens, count_asked, hold_just, leave, match, publish, take
from headway.sim.kvcache_arrays import HELD, PAGES, PINNED, POOL
from headway.sim.reload import fetched_s
from headway.sim.state import (
    AGAIN,
    COMPUTED,
    DUE,
    FOUND,
    NOW,
    OUTPUT,
    OWED,
    OWN,
    PARTIAL,
    PROMPT,
    PUBLISHED,
    SHARED,
    WHO,
    WIDE,
    Rules,
    State,
)


def known_blocks(s: State, r: Rules, i: int) -> int:
    """Whole blocks of a prompt that have ids: engines share no part of a block."""
    return min(s.cache.start[i + 1] - s.cache.start[i], s.lengths[2 * i + PROMPT] // r.block_tokens)


def room_beside_hits(s: State, r: Rules, i: int, made: int) -> bool:
    """Whether a request fits with what it finds; how much that is stays in FOUND for `take_up`."""
    c, own, now, start = s.cache, s.count[OWN], s.at[NOW], s.cache.start[i]
    settle(s, r)
    expire(c.pools, own, now)
    hits = match(c.pools, own, c.blocks, start, start + known_blocks(s, r, i), now, c.least, c.found)
    s.count[FOUND] = hits
    need = blocks_for(s.lengths[2 * i + PROMPT] + made + 1, r.block) - hits * c.pools.pool[PAGES]
    return admits(c.pools, own, c.blocks, start, hits, need)


def settle(s: State, r: Rules) -> None:
    """What answers have grown by since has taken the place of what nobody uses; where it is too much, all of it goes."""
    pools, own = s.cache.pools, s.count[OWN]
    most = r.capacity - pools.pool[PAGES] * pools.pool[own * POOL + PINNED]
    hold_just(pools, own, min(int(blocks_held(s, r) - s.count[SHARED]), most), s.at[NOW])


def take_up(s: State, r: Rules, j: int) -> None:
    """An admitted request uses what it found; where that comes from a lower tier, it waits until it is loaded."""
    c, own, now, i, hits = s.cache, s.count[OWN], s.at[NOW], s.seat[j + WHO], s.count[FOUND]
    start, prompt = c.start[i], s.lengths[2 * i + PROMPT]
    count_asked(c.pools, c.counted, c.found, c.start[i + 1] - start, s.seat[j + AGAIN] > 0)
    c.ready[j // WIDE] = fetched_s(c.paths, c.pools, own, c.found, r.block_bytes, now)
    take(c.pools, own, c.blocks, start, start + hits, now)
    s.seat[j + PUBLISHED] = hits
    s.seat[j + COMPUTED] = cached_tokens(hits, r.block_tokens, prompt)
    if s.seat[j + AGAIN] == 0:
        s.at[DUE] -= c.expected[i]
        c.counted[HITS + c.pools.tiers] += prompt
        c.counted[HITS + c.pools.tiers + 1] += s.seat[j + COMPUTED]
    s.count[SHARED] += hits * c.pools.pool[PAGES]


def offer(s: State, r: Rules, j: int) -> None:
    """A prompt is computed: from now on others find its blocks."""
    c, i, now = s.cache, s.seat[j + WHO], s.at[NOW]
    start, whole, had = c.start[i], known_blocks(s, r, i), s.seat[j + PUBLISHED]
    if whole > had:
        settle(s, r)
        publish(c.pools, s.count[OWN], c.blocks, start + had, start + whole, now)
        s.seat[j + PUBLISHED] = whole
        s.count[SHARED] += (whole - had) * c.pools.pool[PAGES]


def keep_answer(s: State, r: Rules, j: int) -> None:
    """An answer is out: blocks that it filled get their ids, so that the next turn finds them. Its last token was never computed with."""
    c, i, own = s.cache, s.seat[j + WHO], s.count[OWN]
    start, prompt = c.answer_start[i], s.lengths[2 * i + PROMPT]
    filled = (prompt + s.lengths[2 * i + OUTPUT] - 1) // r.block_tokens - prompt // r.block_tokens
    filled = min(c.answer_start[i + 1] - start, filled)
    if filled > 0:
        settle(s, r)
        filled = min(filled, c.pools.pool[own * POOL + HELD] // c.pools.pool[PAGES])
        publish(c.pools, own, c.answers, start, start + filled, s.at[NOW])
        leave(c.pools, own, c.answers, start, start + filled, s.at[NOW])


def saved_tokens(s: State, r: Rules, i: int, now: float) -> float:
    """Prompt tokens that a request would not have to compute here, those that must be loaded at what that saves."""
    c, start, saved = s.cache, s.cache.start[i], 0.0
    match(c.pools, s.count[OWN], c.blocks, start, start + known_blocks(s, r, i), now, c.least, c.found)
    for depth in range(c.pools.tiers):
        saved += c.found[depth] * c.worth[depth] * r.block_tokens
    return min(saved, s.lengths[2 * i + PROMPT] - 1.0)


def due_tokens(s: State) -> float:
    """Prompt tokens to be computed before those of a request that comes now."""
    due = s.at[DUE]
    for place in range(s.count[PARTIAL]):
        due += s.seat[s.partial[place] + OWED] - s.seat[s.partial[place] + COMPUTED]
    return due


def loading(s: State, r: Rules, j: int) -> bool:
    """Whether a request still waits for what it found, or for its own blocks to come back."""
    return r.caching + r.swap > 0 and s.cache.ready[j // WIDE] > s.at[NOW]


def next_loaded(s: State, r: Rules) -> float:
    """When the next of the prompts in work is loaded; never where none loads."""
    comes = inf
    if r.caching + r.swap > 0:
        for place in range(s.count[PARTIAL]):
            if loading(s, r, s.partial[place]):
                comes = min(comes, s.cache.ready[s.partial[place] // WIDE])
    return comes

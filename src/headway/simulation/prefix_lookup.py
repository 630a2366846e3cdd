"""The prefix cache in the loop: a prompt's hits at admission, their loading time, and the blocks published for other requests."""

from __future__ import annotations

from math import inf

from headway.simulation.blocks import blocks_for, blocks_held
from headway.simulation.kv_pools import PAGES, PINNED, POOL, PRIVATE, expire
from headway.simulation.prefix_cache import HITS, admits, cached_tokens, count_lookups, hold_just, leave, match, publish, take
from headway.simulation.prefix_tiers import fetched_s
from headway.simulation.state import (
    AGAIN,
    COMPUTED,
    DUE,
    FIRST_POOL,
    HIT_BLOCKS,
    NOW,
    OUTPUT,
    OWED,
    PARTIAL,
    PROMPT,
    PUBLISHED,
    REQUEST,
    SHARED,
    WIDE,
    Rules,
    State,
)


def known_blocks(state: State, rules: Rules, request: int) -> int:
    """Whole blocks of a prompt with ids; engines do not share partial blocks."""
    return min(state.cache.start[request + 1] - state.cache.start[request], state.lengths[2 * request + PROMPT] // rules.block_tokens)


def room_beside_hits(state: State, rules: Rules, request: int, output_so_far: int) -> bool:
    """Whether a request fits with its cache hits, which are stored in HIT_BLOCKS for `take_up`."""
    cache, first_pool, now, start = state.cache, state.count[FIRST_POOL], state.at[NOW], state.cache.start[request]
    settle(state, rules)
    expire(cache.pools, first_pool, now)
    end = start + known_blocks(state, rules, request)
    hits = match(cache.pools, first_pool, cache.blocks, start, end, now, cache.least, cache.depth_hits)
    state.count[HIT_BLOCKS] = hits
    need = blocks_for(state.lengths[2 * request + PROMPT] + output_so_far + 1, rules.block) - hits * cache.pools.pool[PAGES]
    return admits(cache.pools, first_pool, cache.blocks, start, hits, need)


def settle(state: State, rules: Rules) -> None:
    """Evict unpinned blocks for the growth of answers since the last call; all of them if the growth needs more."""
    pools, first_pool = state.cache.pools, state.count[FIRST_POOL]
    most = rules.capacity - pools.pool[PAGES] * pools.pool[first_pool * POOL + PINNED]
    hold_just(pools, first_pool, min(int(blocks_held(state, rules) - state.count[SHARED]), most), state.at[NOW])


def take_up(state: State, rules: Rules, seat: int) -> None:
    """Pin an admitted request's cache hits; hits in a lower tier delay it until they are loaded."""
    cache, first_pool, now, request, hits = (
        state.cache,
        state.count[FIRST_POOL],
        state.at[NOW],
        state.seat[seat + REQUEST],
        state.count[HIT_BLOCKS],
    )
    start, prompt = cache.start[request], state.lengths[2 * request + PROMPT]
    count_lookups(cache.pools, cache.tally, cache.depth_hits, cache.start[request + 1] - start, state.seat[seat + AGAIN] > 0)
    cache.ready[seat // WIDE] = fetched_s(cache.paths, cache.pools, first_pool, cache.depth_hits, rules.block_bytes, now)
    take(cache.pools, first_pool, cache.blocks, start, start + hits, now)
    state.seat[seat + PUBLISHED] = hits
    state.seat[seat + COMPUTED] = cached_tokens(hits, rules.block_tokens, prompt)
    if state.seat[seat + AGAIN] == 0:
        state.at[DUE] -= cache.expected[request]
        cache.tally[HITS + cache.pools.tiers] += prompt
        cache.tally[HITS + cache.pools.tiers + 1] += state.seat[seat + COMPUTED]
    state.count[SHARED] += hits * cache.pools.pool[PAGES]


def offer(state: State, rules: Rules, seat: int) -> None:
    """Publish a computed prompt's blocks, so that other requests find them."""
    cache, request, now = state.cache, state.seat[seat + REQUEST], state.at[NOW]
    start, blocks, published_blocks = cache.start[request], known_blocks(state, rules, request), state.seat[seat + PUBLISHED]
    if blocks > published_blocks:
        settle(state, rules)
        publish(cache.pools, state.count[FIRST_POOL], cache.blocks, start + published_blocks, start + blocks, now)
        state.seat[seat + PUBLISHED] = blocks
        state.count[SHARED] += (blocks - published_blocks) * cache.pools.pool[PAGES]


def keep_answer(state: State, rules: Rules, seat: int) -> None:
    """Publish the blocks that a finished answer filled, so that the next turn finds them; its last token has no KV."""
    cache, request, first_pool = state.cache, state.seat[seat + REQUEST], state.count[FIRST_POOL]
    start, prompt = cache.answer_start[request], state.lengths[2 * request + PROMPT]
    filled = (prompt + state.lengths[2 * request + OUTPUT] - 1) // rules.block_tokens - prompt // rules.block_tokens
    filled = min(cache.answer_start[request + 1] - start, filled)
    if filled > 0:
        settle(state, rules)
        filled = min(filled, cache.pools.pool[first_pool * POOL + PRIVATE] // cache.pools.pool[PAGES])
        publish(cache.pools, first_pool, cache.answers, start, start + filled, state.at[NOW])
        leave(cache.pools, first_pool, cache.answers, start, start + filled, state.at[NOW])


def saved_tokens(state: State, rules: Rules, request: int, now: float) -> float:
    """Prompt tokens of prefill that a request would save on this replica; tokens to load count by the share saved."""
    cache, start, saved = state.cache, state.cache.start[request], 0.0
    match(
        cache.pools,
        state.count[FIRST_POOL],
        cache.blocks,
        start,
        start + known_blocks(state, rules, request),
        now,
        cache.least,
        cache.depth_hits,
    )
    for depth in range(cache.pools.tiers):
        saved += cache.depth_hits[depth] * cache.saved_shares[depth] * rules.block_tokens
    return min(saved, state.lengths[2 * request + PROMPT] - 1.0)


def due_tokens(state: State) -> float:
    """Prompt tokens to compute before those of a request that arrives now."""
    due = state.at[DUE]
    for place in range(state.count[PARTIAL]):
        due += state.seat[state.partial[place] + OWED] - state.seat[state.partial[place] + COMPUTED]
    return due


def loading(state: State, rules: Rules, seat: int) -> bool:
    """Whether a request still waits for its cache hits to load or for its swapped blocks."""
    return rules.caching + rules.swap > 0 and state.cache.ready[seat // WIDE] > state.at[NOW]


def next_loaded(state: State, rules: Rules) -> float:
    """Time at which the next prompt in progress is loaded, inf if none is loading."""
    comes = inf
    if rules.caching + rules.swap > 0:
        for place in range(state.count[PARTIAL]):
            if loading(state, rules, state.partial[place]):
                comes = min(comes, state.cache.ready[state.partial[place] // WIDE])
    return comes

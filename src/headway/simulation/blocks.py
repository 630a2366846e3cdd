"""Blocks of KV cache: blocks that requests hold now and will hold, blocks they share, and preemption when memory runs out.

Of the prefix cache: a prompt's hits at admission, their loading time, and the blocks published for other requests.

All decoding sequences grow by one token a step, so (context - step) modulo the block size never changes. Counts by this remainder give
the growth of the whole batch without visiting any sequence.
"""

from __future__ import annotations

from math import inf

from headway.simulation.kv_pools import (
    HITS,
    PAGES,
    PINNED,
    POOL,
    PRIVATE,
    admits,
    cached_tokens,
    count_lookups,
    expire,
    hold_just,
    match,
    publish,
    take,
)
from headway.simulation.kv_pools import leave as unpin
from headway.simulation.prefix_tiers import fetched_s
from headway.simulation.state import (
    AGAIN,
    AWAY,
    BACK,
    CLASS,
    COMPUTED,
    CONTEXT,
    DECODING,
    DUE,
    EMITTED,
    FIRST_POOL,
    HEAPED,
    HIT_BLOCKS,
    HOSTED,
    JOINED,
    LANE,
    NONE,
    NOW,
    OUT_S,
    OUTPUT,
    OUTPUT_SO_FAR,
    OWED,
    PARTIAL,
    PEAK_BLOCKS,
    PREEMPTED,
    PROMPT,
    PROMPT_BLOCKS,
    PUBLISHED,
    QUEUED,
    REQUEST,
    RESERVED,
    RUNNING,
    SHARED,
    STEP,
    SWAPPED,
    TOKEN_AT,
    WIDE,
    Rules,
    State,
    place_of,
    push_front,
    remove,
    remove_at,
)


def block_limit(state: State, rules: Rules) -> int:
    """Blocks that requests may hold when shared blocks are counted once per request, though stored once."""
    if rules.caching == 0:
        return rules.capacity
    return (
        rules.capacity
        + state.count[SHARED]
        - state.cache.pools.pool[PAGES] * state.cache.pools.pool[state.count[FIRST_POOL] * POOL + PINNED]
    )


def let_go(state: State, rules: Rules, seat: int) -> None:
    """Release a request's prompt blocks, which stay cached until eviction."""
    if rules.caching == 0 or state.seat[seat + PUBLISHED] == 0:
        return
    start = spelled(state, rules, state.seat[seat + REQUEST], state.seat[seat + PUBLISHED])
    unpin(state.cache.pools, state.count[FIRST_POOL], state.cache.blocks, start, start + state.seat[seat + PUBLISHED], state.at[NOW])
    state.count[SHARED] -= state.cache.pools.pool[PAGES] * state.seat[seat + PUBLISHED]
    state.seat[seat + PUBLISHED] = 0


def blocks_for(tokens: float, block: int) -> int:
    """Blocks that hold `tokens` tokens."""
    return int((tokens + block - 1) // block)


def held_blocks_bound(state: State, rules: Rules) -> int:
    """An upper bound on the blocks held, without counting."""
    return int(state.count[PROMPT_BLOCKS] + state.at[CONTEXT] // rules.block + state.count[RUNNING] + 1)


def decode_blocks(state: State, rules: Rules) -> int:
    """Blocks that decoding sequences hold in the next step."""
    if rules.accept != 1.0:  # fractional contexts: assume each sequence's last block is half full
        return int(state.at[CONTEXT] // rules.block + (state.count[RUNNING] + 1) // 2)
    step, total = state.count[STEP], 0
    for key in range(rules.block):
        over = (key + step) % rules.block
        if over:
            total += state.phase[key] * (rules.block - over)
    return int((int(state.at[CONTEXT]) + total) // rules.block)


def blocks_held(state: State, rules: Rules) -> int:
    """Blocks that all requests in service hold in the next step."""
    return int(state.count[PROMPT_BLOCKS] + decode_blocks(state, rules))


def room_for(state: State, rules: Rules, request: int, output_so_far: int) -> bool:
    """Whether the blocks of a request's prompt and output so far fit now."""
    need = blocks_for(state.lengths[2 * request + PROMPT] + output_so_far + 1, rules.block)
    return held_blocks_bound(state, rules) + need <= block_limit(state, rules) or blocks_held(state, rules) + need <= block_limit(
        state, rules
    )


def set_aside(state: State, rules: Rules, request: int) -> int:
    """Blocks reserved for a request at admission."""
    return blocks_for(state.lengths[2 * request + PROMPT] + rules.reserve * state.lengths[2 * request + OUTPUT], rules.block)


def steps_of_room(state: State, rules: Rules, most: int) -> int:
    """Decode steps, at most `most`, until the sequences need more blocks than there are."""
    if state.count[PROMPT_BLOCKS] + (state.at[CONTEXT] + state.count[RUNNING] * rules.accept * most) // rules.block + state.count[
        RUNNING
    ] + 1 <= block_limit(state, rules):
        return most
    if rules.accept != 1.0:
        return 1
    blocks, running = blocks_held(state, rules), state.count[RUNNING]
    rounds = max(0, (block_limit(state, rules) - blocks) // running)  # in `block` steps each sequence takes one block
    steps = rounds * rules.block
    blocks += rounds * running
    while steps < most:
        blocks += state.phase[(-(state.count[STEP] + steps)) % rules.block]  # sequences that need a new block in this step
        steps += 1
        if blocks > block_limit(state, rules):
            break
    return max(1, min(steps, most))


def make_room(state: State, rules: Rules) -> None:
    """Preempt the newest requests, lowest class first, until the next step's blocks fit."""
    most = held_blocks_bound(state, rules)
    if most > block_limit(state, rules):
        most = blocks_held(state, rules)
        while most > block_limit(state, rules) and state.count[RUNNING] > 0:
            lane = rules.lanes - LANE
            while state.ends[lane + DECODING + 1] < 0:
                lane -= LANE
            preempt(state, rules, state.ends[lane + DECODING + 1])
            most = blocks_held(state, rules)
    state.count[PEAK_BLOCKS] = max(state.count[PEAK_BLOCKS], most - block_limit(state, rules) + rules.capacity)


def leave(state: State, rules: Rules, seat: int) -> None:
    """Take a sequence out of the decoding batch and free its blocks."""
    request = state.seat[seat + REQUEST]
    remove(state, state.seat[seat + CLASS] + DECODING, seat)
    let_go(state, rules, seat)
    steps = state.count[STEP] - state.seat[seat + JOINED]
    context = state.lengths[2 * request + PROMPT] + state.seat[seat + OUTPUT_SO_FAR] + steps * rules.accept
    state.count[RUNNING] -= 1
    state.at[CONTEXT] = state.at[CONTEXT] - context if state.count[RUNNING] > 0 else 0.0
    if rules.accept == 1.0:
        state.phase[int(context - state.count[STEP]) % rules.block] -= 1
    state.count[RESERVED] -= set_aside(state, rules, request)


def preempt(state: State, rules: Rules, seat: int) -> None:
    """Preempt a sequence to the front of its queue; its KV moves to host memory if there is room, else it is recomputed."""
    remove_at(state.heap, state.count[HEAPED], place_of(state.heap, state.count[HEAPED], seat))
    state.count[HEAPED] -= 1
    output_so_far = int(state.seat[seat + OUTPUT_SO_FAR] + (state.count[STEP] - state.seat[seat + JOINED]) * rules.accept)
    leave(state, rules, seat)
    state.at[EMITTED] += output_so_far - state.seat[seat + OUTPUT_SO_FAR]
    state.seat[seat + OUTPUT_SO_FAR] = output_so_far
    state.seat[seat + AGAIN] += 1
    if state.seat[seat + AWAY] == 0:
        state.since[seat // WIDE] = max(state.since[seat // WIDE], state.at[TOKEN_AT])
    away = blocks_for(
        state.lengths[2 * state.seat[seat + REQUEST] + PROMPT] + output_so_far - 1, rules.block
    )  # the last token has no KV yet
    if state.count[HOSTED] + away > rules.swap:
        away = 0
    state.seat[seat + AWAY] = away
    state.count[HOSTED] += away
    state.count[SWAPPED] += min(away, 1)
    state.at[OUT_S] += away * rules.copy_s
    push_front(state, state.seat[seat + CLASS] + BACK, seat)
    state.count[PREEMPTED] += 1
    state.count[QUEUED] += 1


def known_blocks(state: State, rules: Rules, request: int) -> int:
    """Whole blocks of a prompt with ids; engines do not share partial blocks."""
    return min(asked_blocks(state, rules, request), state.lengths[2 * request + PROMPT] // rules.block_tokens)


def asked_blocks(state: State, rules: Rules, request: int) -> int:
    """Blocks of a prompt, a partly filled one included."""
    if state.cache.common == NONE:
        return state.cache.start[request + 1] - state.cache.start[request]
    return blocks_for(state.lengths[2 * request + PROMPT], rules.block_tokens)


def spelled(state: State, rules: Rules, request: int, count: int) -> int:
    """Where in `blocks` the ids of a prompt's first `count` blocks begin; ids in order are written there first."""
    cache = state.cache
    if cache.common == NONE:
        return cache.start[request]
    shared = min(count, cache.common)
    for at in range(shared):
        cache.blocks[at] = at
    before = cache.first_own[request] - cache.common
    for at in range(shared, count):
        cache.blocks[at] = before + at
    return 0


def room_beside_hits(state: State, rules: Rules, request: int, output_so_far: int) -> bool:
    """Whether a request fits with its cache hits, which are stored in HIT_BLOCKS for `take_up`."""
    cache, first_pool, now, blocks = state.cache, state.count[FIRST_POOL], state.at[NOW], known_blocks(state, rules, request)
    settle(state, rules)
    expire(cache.pools, first_pool, now)
    start = spelled(state, rules, request, blocks)
    end = start + blocks
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
    start, prompt = spelled(state, rules, request, hits), state.lengths[2 * request + PROMPT]
    count_lookups(cache.pools, cache.tally, cache.depth_hits, asked_blocks(state, rules, request), state.seat[seat + AGAIN] > 0)
    cache.ready[seat // WIDE] = fetched_s(cache.paths, cache.pools, first_pool, cache.depth_hits, rules.block_bytes, now)
    take(cache.pools, first_pool, cache.blocks, start, start + hits, now)
    state.seat[seat + PUBLISHED] = hits
    state.seat[seat + COMPUTED] = cached_tokens(hits, rules.block_tokens, prompt)
    if state.seat[seat + AGAIN] == 0:
        state.at[DUE] -= cache.expected[request]
        cache.expected[request] = prompt - state.seat[seat + COMPUTED]
        cache.tally[HITS + cache.pools.tiers] += prompt
        cache.tally[HITS + cache.pools.tiers + 1] += state.seat[seat + COMPUTED]
    state.count[SHARED] += hits * cache.pools.pool[PAGES]


def offer(state: State, rules: Rules, seat: int) -> None:
    """Publish a computed prompt's blocks, so that other requests find them."""
    cache, request, now = state.cache, state.seat[seat + REQUEST], state.at[NOW]
    blocks, published_blocks = known_blocks(state, rules, request), state.seat[seat + PUBLISHED]
    if blocks > published_blocks:
        start = spelled(state, rules, request, blocks)
        settle(state, rules)
        publish(cache.pools, state.count[FIRST_POOL], cache.blocks, start + published_blocks, start + blocks, now)
        state.seat[seat + PUBLISHED] = blocks
        state.count[SHARED] += (blocks - published_blocks) * cache.pools.pool[PAGES]


def keep_answer(state: State, rules: Rules, seat: int) -> None:
    """Publish the blocks that a finished answer filled, so that the next turn finds them; its last token has no KV."""
    cache, request, first_pool = state.cache, state.seat[seat + REQUEST], state.count[FIRST_POOL]
    prompt = state.lengths[2 * request + PROMPT]
    before, start = prompt // rules.block_tokens, 0
    filled = (prompt + state.lengths[2 * request + OUTPUT] - 1) // rules.block_tokens - before
    if cache.common == NONE:
        start = cache.answer_start[request]
        filled = min(cache.answer_start[request + 1] - start, filled)
    elif filled > 0:
        start = before + spelled(state, rules, request, before + filled)
    if filled > 0:
        settle(state, rules)
        filled = min(filled, cache.pools.pool[first_pool * POOL + PRIVATE] // cache.pools.pool[PAGES])
        publish(cache.pools, first_pool, cache.answers, start, start + filled, state.at[NOW])
        unpin(cache.pools, first_pool, cache.answers, start, start + filled, state.at[NOW])


def saved_tokens(state: State, rules: Rules, request: int, now: float) -> float:
    """Prompt tokens of prefill that a request would save on this replica; tokens to load count by the share saved."""
    cache, blocks, saved = state.cache, known_blocks(state, rules, request), 0.0
    start = spelled(state, rules, request, blocks)
    match(cache.pools, state.count[FIRST_POOL], cache.blocks, start, start + blocks, now, cache.least, cache.depth_hits)
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

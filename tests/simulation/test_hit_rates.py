"""The KV cache: hits against brute force and against a published trace's figures, what stays and what goes, who may count."""

from __future__ import annotations

import gzip
import json
from collections import OrderedDict
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.core.errors import BadValue, MissingExtra
from headway.simulation import compiled, kv_pools
from headway.simulation.hit_rates import hit_share, hit_token_share, replay_hits, replayed, reuse
from headway.simulation.kv_pools import (
    BLOCK,
    CAPACITY,
    EVICTED,
    EXPIRED,
    MOST_PLACE,
    NEWER,
    NEXT,
    NODE,
    NOWHERE,
    PAGES,
    PINNED,
    PINS,
    PLACES,
    POOL,
    PRIVATE,
    READS,
    REMOVED,
    STORED,
    WRITES,
    CachePools,
    dense_ids,
    make_pools,
)
from support.conversations import CONVERSATION, PUBLISHED, TRACE, WHOLE

needs_numba = pytest.mark.skipif(not compiled.available(), reason="numba is not installed")


def rows(path: Path) -> tuple[list[list[int]], np.ndarray, np.ndarray]:
    """Ids, times and prompt lengths of a trace in Mooncake's format, read without the project."""
    raw = path.read_bytes()
    found = [json.loads(line) for line in (gzip.decompress(raw) if path.suffix == ".gz" else raw).splitlines()]
    times = np.array([row["timestamp"] / 1000 for row in found])
    return [row["hash_ids"] for row in found], times, np.array([row["input_length"] for row in found])


def flat(prompts: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    ids = np.array([block for prompt in prompts for block in prompt], np.int64)
    return ids, np.concatenate(([0], np.cumsum([len(prompt) for prompt in prompts]))).astype(np.int64)


def brute(prompts: list[list[int]], times: Any, capacity: float, ttl: float, leaf_first: bool = False) -> list[int]:
    """Hits of an LRU pool, written the slow and plain way."""
    cache: OrderedDict[int, float] = OrderedDict()
    hits = []
    for prompt, now in zip(prompts, times, strict=True):
        for block in [block for block, last in cache.items() if now - last > ttl]:
            del cache[block]
        found = 0
        while found < len(prompt) and prompt[found] in cache:
            found += 1
        hits.append(found)
        for block in reversed(prompt) if leaf_first else prompt:
            cache[block] = now
            cache.move_to_end(block)
            if len(cache) > capacity:
                cache.popitem(last=False)
    return hits


PROMPTS, TIMES, LENGTHS = rows(TRACE)
IDS, OFFSETS = flat(PROMPTS)


# -- hit counts -----------------------------------------------------------------------------------------------------------------

# Blocks and tokens, counted once by a program of ten lines that shares nothing with the project.
COUNTED = [(None, np.inf, 1086, 556032), (20, np.inf, 238, 121856), (50, np.inf, 415, 212480), (100, np.inf, 725, 371200),
           (200, np.inf, 962, 492544), (400, np.inf, 1079, 552448), (None, 60.0, 404, 206848), (None, 300.0, 859, 439808),
           (None, 900.0, 1078, 551936)]  # fmt: skip


@pytest.mark.parametrize(("capacity", "ttl", "blocks", "tokens"), COUNTED)
def test_replay_hits__counts_on_a_small_trace(capacity: int | None, ttl: float, blocks: int, tokens: int) -> None:
    hits = replay_hits(IDS, OFFSETS, TIMES, capacity_blocks=capacity, ttl_s=ttl)
    assert hits.sum() == blocks
    assert hit_share(hits, OFFSETS) == pytest.approx(blocks / 1828)
    assert hit_token_share(hits, LENGTHS, 512) == pytest.approx(tokens / 906314)


# Hit ratios of blocks in file order, computed independently of the project.


@pytest.mark.skipif(not Path(WHOLE).is_file(), reason=f"{CONVERSATION} names no file")
def test_replay_hits__published_values_of_the_mooncake_trace() -> None:
    prompts, times, lengths = rows(Path(WHOLE))
    ids, offsets = flat(prompts)
    for capacity, share in PUBLISHED.items():
        hits = replay_hits(ids, offsets, capacity_blocks=capacity)
        assert hit_share(hits, offsets) == pytest.approx(share, abs=1e-4), capacity
        if capacity is None:
            assert hit_token_share(hits, lengths, 512) == pytest.approx(0.3736, abs=1e-4)
    found = reuse(ids, offsets, times)
    shares = found.share(np.array([capacity or np.inf for capacity in PUBLISHED]), np.inf)
    assert shares == pytest.approx(list(PUBLISHED.values()), abs=1e-4)
    assert replay_hits(ids, offsets, capacity_blocks=5000).tolist() == brute(prompts, times, 5000, np.inf)


def a_trace(seed: int, requests: int, roots: int = 3) -> tuple[list[list[int]], np.ndarray]:
    """Conversations over a few shared beginnings, at bursty times with ties."""
    rng = np.random.default_rng(seed)
    fresh, talks, prompts = iter(range(10**6)), [], []
    beginnings = [[next(fresh) for _ in range(rng.integers(0, 4))] for _ in range(roots)]
    for _ in range(requests):
        if not talks or rng.random() < 0.4:
            talks.append(list(beginnings[rng.integers(roots)]))
        talk = talks[rng.integers(max(0, len(talks) - 6), len(talks))]
        talk += [next(fresh) for _ in range(rng.integers(0, 4))]
        prompts.append(list(talk))
    return prompts, np.cumsum(rng.choice([0.0, 0.5, 3.0, 20.0], requests))


SEEDS, FEW = st.integers(0, 10_000), st.integers(0, 60)


@settings(max_examples=40)
@given(SEEDS, FEW, st.sampled_from([1.0, 7.0, 40.0, np.inf]), st.booleans())
def test_replay_hits__equals_brute_force_lru_with_ttl(seed: int, capacity: int, ttl: float, leaf_first: bool) -> None:
    prompts, times = a_trace(seed, 40)
    ids, offsets = flat(prompts)
    truth = brute(prompts, times, capacity, ttl, leaf_first)
    assert replay_hits(ids, offsets, times, capacity_blocks=capacity, ttl_s=ttl, leaf_first=leaf_first).tolist() == truth
    found = reuse(ids, offsets, times, leaf_first=leaf_first)
    assert found.share(capacity, ttl) * len(ids) == pytest.approx(sum(truth))


@settings(max_examples=40)
@given(SEEDS, st.sampled_from([5.0, 30.0, np.inf]), st.booleans())
def test_replay_hits__monotone_in_capacity_and_ttl(seed: int, ttl: float, leaf_first: bool) -> None:
    prompts, times = a_trace(seed, 40)
    ids, offsets = flat(prompts)
    best = replay_hits(ids, offsets)
    sized = [replay_hits(ids, offsets, times, capacity_blocks=size, ttl_s=ttl, leaf_first=leaf_first) for size in (1, 4, 9, 20, 50, 500)]
    timed = [replay_hits(ids, offsets, times, capacity_blocks=20, ttl_s=keep, leaf_first=leaf_first) for keep in (0.4, 3, 30, 1e9, np.inf)]
    for hits in (sized, timed):
        assert all(np.all(less <= more) for less, more in pairwise([*hits, best]))
    assert np.array_equal(timed[-1], timed[-2])


@settings(max_examples=40)
@given(SEEDS, st.lists(st.integers(1, 25), min_size=2, max_size=3), st.sampled_from([10.0, np.inf]))
def test_tiers__exclusive_copies_hit_as_one_pool_of_their_total_size(seed: int, room: list[int], ttl: float) -> None:
    """What the upper tier lets go is what the lower one takes: together they are one LRU stack, cut in pieces."""
    prompts, times = a_trace(seed, 40)
    prompts = [prompt[: room[0]] for prompt in prompts]  # a prompt that the first tier cannot hold has to go around it
    ids, offsets = flat(prompts)
    by_tier = replay_hits(ids, offsets, times, capacity_blocks=room, ttl_s=[ttl] * len(room), leaf_first=True)
    whole = replay_hits(ids, offsets, times, capacity_blocks=sum(room), ttl_s=ttl, leaf_first=True)
    assert by_tier.sum(axis=1).tolist() == whole.tolist()
    first = replay_hits(ids, offsets, times, capacity_blocks=room[0], ttl_s=ttl, leaf_first=True)
    assert by_tier[:, 0].tolist() == first.tolist()


@pytest.mark.slow
@needs_numba
@settings(max_examples=10)
@given(SEEDS, st.booleans())
def test_replay_hits__compiled_equals_plain(seed: int, leaf_first: bool) -> None:
    prompts, times = a_trace(seed, 60)
    ids, offsets = flat(prompts)
    plain, fast = (replay_hits(ids, offsets, times, capacity_blocks=[6, 9, 30], ttl_s=[20.0, 30.0, np.inf], leaf_first=leaf_first,
                               compile=compile) for compile in (False, True))  # fmt: skip
    assert np.array_equal(plain, fast)
    one, two = (reuse(ids, offsets, times, leaf_first=leaf_first, compile=compile) for compile in (False, True))
    assert np.array_equal(one.distance, two.distance) and np.array_equal(one.age, two.age)


def test_compiled__missing_numba_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "available", lambda: False)
    assert replay_hits(IDS, OFFSETS).sum() == 1086
    with pytest.raises(MissingExtra, match="fast"):
        compiled.compiled(test_compiled__missing_numba_error_names_the_extra)


def test_eviction__leaf_first_keeps_the_prefix() -> None:
    """Two prompts of four blocks in a pool of six: leaf first keeps what the first prompt begins with, block by block loses it."""
    prompts = [[0, 1, 2, 3], [4, 5, 6, 7], [0, 1, 2, 3]]
    ids, offsets = flat(prompts)
    assert replay_hits(ids, offsets, capacity_blocks=6, leaf_first=True).tolist() == [0, 0, 2]
    assert replay_hits(ids, offsets, capacity_blocks=6).tolist() == [0, 0, 0]


# -- step by step ---------------------------------------------------------------------------------------------------------------


def grid(flat: Any, columns: int) -> Any:
    """Rows of a flat array."""
    return np.reshape(flat, (-1, columns))


def stored(pools: CachePools, p: int) -> set[int]:
    return set(slots_of(pools, p))


def slots_of(pools: CachePools, p: int) -> dict[int, int]:
    """Slot of each block in a pool, by a look at every place."""
    row, found = grid(pools.pool, POOL)[p], {}
    for head in pools.head[row[PLACES] : row[PLACES] + row[MOST_PLACE] + 1]:
        slot = int(head) - 1
        while slot != NOWHERE:
            assert int(pools.node[slot * NODE + BLOCK]) not in found
            found[int(pools.node[slot * NODE + BLOCK])] = slot
            slot = int(pools.node[slot * NODE + NEXT])
    return found


def sound(pools: CachePools) -> None:
    """What must always hold of the arrays."""
    ends, node, table = pools.slots, grid(pools.node, NODE), grid(pools.pool, POOL)
    for p, row in enumerate(table):
        slots = slots_of(pools, p)
        blocks = set(slots)
        pinned = {block for block in blocks if node[slots[block], PINS] > 0}
        ring, slot = [], node[ends + p, NEWER]
        while slot != ends + p:
            ring.append(int(node[slot, BLOCK]))
            slot = node[slot, NEWER]
        assert len(ring) == len(set(ring)) and set(ring) == blocks - pinned
        assert row[STORED] == len(blocks) and row[PINNED] == len(pinned)
        assert row[PRIVATE] >= 0 and row[PRIVATE] + row[PAGES] * row[STORED] <= row[CAPACITY]
        assert row[WRITES] == row[STORED] + row[READS] + row[EVICTED] + row[EXPIRED] + row[REMOVED], "blocks are conserved"
        lasts = [pools.last[slots[block]] for block in ring]
        assert lasts == sorted(lasts)
    counts = np.bincount([block for p in range(len(pools.ttl)) for block in stored(pools, p)], minlength=1)
    if pools.tiers == len(pools.ttl):
        assert counts.max() <= 1, "a block is in one tier of a stack of tiers"


def find(pools: CachePools, prompt: list[int], now: float, p: int = 0, least: tuple[int, ...] = ()) -> tuple[int, list[int]]:
    found = np.zeros(pools.tiers, np.int64)
    few = np.array([*least, *[0] * (pools.tiers - len(least))])
    hits = kv_pools.match(pools, p, np.array(prompt), 0, len(prompt), now, few, found)
    return hits, found.tolist()


def serve(pools: CachePools, prompt: list[int], now: float, done: float, p: int = 0) -> int:
    """One request from admission to its end, a page beside its prompt for the answer."""
    blocks = np.array(prompt)
    kv_pools.expire(pools, p, now)
    hits, _ = find(pools, prompt, now, p)
    pages = int(pools.pool[p * POOL + PAGES]) * (len(prompt) - hits) + 1
    assert kv_pools.admits(pools, p, blocks, 0, hits, pages)
    kv_pools.take(pools, p, blocks, 0, hits, now)
    assert kv_pools.hold(pools, p, pages, now)
    sound(pools)
    kv_pools.publish(pools, p, blocks, hits, len(prompt), now)
    kv_pools.release(pools, p, 1)
    sound(pools)
    kv_pools.leave(pools, p, blocks, 0, len(prompt), done)
    sound(pools)
    return hits


@settings(max_examples=40)
@given(SEEDS, st.lists(st.integers(40, 80), min_size=1, max_size=3), st.sampled_from([1, 4]), st.sampled_from([10.0, np.inf]))
def test_prefix_cache__requests_without_overlap_equal_replay(seed: int, room: list[int], pages: int, ttl: float) -> None:
    prompts, times = a_trace(seed, 30)
    prompts = [prompt[: room[0] - 1] for prompt in prompts]
    ids, offsets = flat(prompts)
    dense, count = dense_ids(ids)
    sizes = [room[0] * pages + 1, *(size * pages for size in room[1:])]  # with a page for the answer
    pools = make_pools(count, sizes, pages=pages, ttl_s=[ttl] * len(room))
    one_by_one = [serve(pools, dense[a:b].tolist(), now, now) for a, b, now in zip(offsets, offsets[1:], times, strict=False)]
    truth = replay_hits(ids, offsets, times, capacity_blocks=room, ttl_s=[ttl] * len(room), leaf_first=True)
    assert one_by_one == truth.sum(axis=1).tolist()


@settings(max_examples=40)
@given(st.data())
def test_prefix_cache__overlapping_requests_keep_prefixes_whole(data: st.DataObject) -> None:
    prompts, _ = a_trace(data.draw(SEEDS), 30)
    prompts = [prompt[:12] for prompt in prompts if prompt]
    ids, offsets = flat(prompts)
    dense, count = dense_ids(ids)
    pools = make_pools(count, data.draw(st.sampled_from([[30], [30, 20], [25, 10, 40]])), ttl_s=None)
    running: list[tuple[np.ndarray, int]] = []
    now = 0.0
    for a, b in pairwise(offsets):
        prompt = dense[a:b]
        now += 1.0
        while running and data.draw(st.booleans()):
            blocks, published = running.pop(data.draw(st.integers(0, len(running) - 1)))
            kv_pools.release(pools, 0, len(blocks) - published)
            kv_pools.leave(pools, 0, blocks, 0, published, now)
            sound(pools)
        hits, _ = find(pools, prompt.tolist(), now)
        before = pools.pool.copy()
        if kv_pools.admits(pools, 0, prompt, 0, hits, len(prompt) - hits):
            kv_pools.take(pools, 0, prompt, 0, hits, now)
            assert kv_pools.hold(pools, 0, len(prompt) - hits, now)
            published = data.draw(st.integers(hits, len(prompt)))  # preempted before the rest was computed
            kv_pools.publish(pools, 0, prompt, hits, published, now)
            running.append((prompt, published))
        else:
            assert np.array_equal(before, pools.pool), "a question changes nothing"
        sound(pools)
        parents = {int(block): int(before) for a, b in pairwise(offsets) for before, block in pairwise(dense[a:b])}
        everywhere = set().union(*(stored(pools, p) for p in range(len(pools.ttl))))
        assert all(parents[block] in everywhere for block in everywhere if block in parents)
    for blocks, published in running:
        kv_pools.release(pools, 0, len(blocks) - published)
        kv_pools.leave(pools, 0, blocks, 0, published, now)
    sound(pools)
    assert pools.pool[PRIVATE] == pools.pool[PINNED] == 0


def test_prefix_cache__block_is_a_hit_only_once_computed() -> None:
    pools, prompt = make_pools(4, [10]), np.arange(4)
    assert kv_pools.hold(pools, 0, 4, 0.0)
    assert find(pools, [0, 1, 2, 3], 0.0) == (0, [0])
    kv_pools.publish(pools, 0, prompt, 0, 3, 1.0)
    assert find(pools, [0, 1, 2, 3], 1.0) == (3, [3])


def test_prefix_cache__equal_blocks_of_two_requests_share_one_copy() -> None:
    pools, prompt = make_pools(4, [10]), np.arange(4)
    for _ in range(2):
        assert kv_pools.hold(pools, 0, 4, 0.0)
    assert kv_pools.free_pages(pools, 0) == 2
    for _ in range(2):
        kv_pools.publish(pools, 0, prompt, 0, 4, 1.0)
    assert kv_pools.free_pages(pools, 0) == 6
    kv_pools.leave(pools, 0, prompt, 0, 4, 2.0)
    assert kv_pools.oldest(pools, 0) == NOWHERE, "the second still uses them"
    kv_pools.leave(pools, 0, prompt, 0, 4, 3.0)
    sound(pools)
    assert [kv_pools.evict(pools, 0, 4.0) for _ in range(5)] == [3, 2, 1, 0, NOWHERE]


def test_eviction__blocks_in_use_stay_and_do_not_expire() -> None:
    pools = make_pools(6, [4], ttl_s=[5.0])
    assert kv_pools.hold(pools, 0, 3, 0.0)
    kv_pools.publish(pools, 0, np.arange(3), 0, 3, 0.0)
    kv_pools.expire(pools, 0, 100.0)
    assert stored(pools, 0) == {0, 1, 2}
    assert find(pools, [0, 1, 2], 100.0)[0] == 3
    assert not kv_pools.hold(pools, 0, 2, 100.0)
    assert pools.pool[PRIVATE] == 0
    assert not kv_pools.admits(pools, 0, np.arange(3), 0, 3, 2)
    assert kv_pools.admits(pools, 0, np.arange(3), 0, 3, 1)
    kv_pools.leave(pools, 0, np.arange(3), 0, 3, 100.0)
    kv_pools.expire(pools, 0, 105.0)
    assert stored(pools, 0) == {0, 1, 2}
    kv_pools.expire(pools, 0, 105.1)
    assert stored(pools, 0) == set()


def test_preemption__return_hits_are_not_prefix_hits() -> None:
    pools, prompt, counted, found = make_pools(8, [10]), np.arange(4), np.zeros(4, np.int64), np.zeros(1, np.int64)
    least = np.zeros(1, np.int64)
    kv_pools.count_lookups(pools, counted, found, 4, False)  # the first admission: nothing is there
    assert kv_pools.hold(pools, 0, 5, 0.0)
    kv_pools.publish(pools, 0, prompt, 0, 4, 1.0)
    kv_pools.release(pools, 0, 1)  # preempted: the answer's page is lost, the prompt's blocks stay until somebody needs the room
    kv_pools.leave(pools, 0, prompt, 0, 4, 2.0)
    hits = kv_pools.match(pools, 0, prompt, 0, 4, 3.0, least, found)
    kv_pools.count_lookups(pools, counted, found, 4, True)
    assert hits == 4
    assert counted.tolist() == [4, 4, 4, 0]
    kv_pools.match(pools, 0, prompt, 0, 4, 4.0, least, found)
    kv_pools.count_lookups(pools, counted, found, 4, False)  # another request with the same prompt
    assert counted.tolist() == [8, 4, 4, 4]


def test_eviction__private_pages_push_cached_blocks_out() -> None:
    pools = make_pools(6, [6])
    for prompt in ([0, 1, 2], [3, 4]):
        serve(pools, prompt, 0.0, 0.0)
    assert kv_pools.hold_just(pools, 0, 3, 1.0)
    assert stored(pools, 0) == {0, 3, 4}
    assert kv_pools.hold_just(pools, 0, 6, 1.0)
    assert stored(pools, 0) == set()
    assert not kv_pools.hold_just(pools, 0, 7, 1.0)


def test_tiers__evicted_blocks_move_down_and_hits_move_up() -> None:
    pools = make_pools(9, [4, 3, 2])
    serve(pools, [0, 1, 2], 0.0, 0.0)
    serve(pools, [3, 4, 5], 1.0, 1.0)
    assert [stored(pools, p) for p in range(3)] == [{3, 4, 5}, {0, 1, 2}, set()]
    serve(pools, [6, 7, 8], 2.0, 2.0)
    assert [stored(pools, p) for p in range(3)] == [{6, 7, 8}, {3, 4, 5}, {0, 1}]
    assert find(pools, [0, 1, 2], 3.0) == (2, [0, 0, 2])
    assert find(pools, [0, 1, 2], 3.0, least=(0, 0, 3)) == (0, [0, 0, 0]), "too few to be worth taking up"
    assert serve(pools, [0, 1], 3.0, 3.0) == 2
    assert pools.pool[2 * POOL + READS] == 2
    assert stored(pools, 0) >= {0, 1}


def test_tiers__recomputed_blocks_leave_the_lower_tier() -> None:
    """A prefix that is not worth loading is computed again: its old copy goes, and was not read."""
    pools, prompt = make_pools(6, [3, 9]), np.arange(3)
    serve(pools, [0, 1], 0.0, 0.0)
    serve(pools, [3, 4], 1.0, 1.0)
    assert stored(pools, 1) == {0, 1}
    assert find(pools, [0, 1, 2], 2.0, least=(0, 3)) == (0, [0, 0])
    assert kv_pools.hold(pools, 0, 3, 2.0)
    kv_pools.publish(pools, 0, prompt, 0, 3, 2.0)
    sound(pools)
    assert stored(pools, 0) == {0, 1, 2}
    assert stored(pools, 1) == {3, 4}
    assert (pools.pool[POOL + READS], pools.pool[POOL + REMOVED]) == (0, 2)


def test_ttl__each_tier_expires_by_its_own() -> None:
    pools = make_pools(2, [4, 4], ttl_s=[5.0, 60.0])
    serve(pools, [0, 1], 0.0, 0.0)
    kv_pools.expire(pools, 0, 6.0)
    assert [stored(pools, p) for p in range(2)] == [set(), {0, 1}]
    assert find(pools, [0, 1], 60.0) == (2, [0, 2])
    kv_pools.expire(pools, 0, 61.0)
    assert [stored(pools, p) for p in range(2)] == [set(), set()]


def test_ttl__expired_blocks_are_written_to_no_tier() -> None:
    pools = make_pools(2, [4, 4], ttl_s=[5.0, 5.0])
    serve(pools, [0, 1], 0.0, 0.0)
    kv_pools.expire(pools, 0, 6.0)
    assert [stored(pools, p) for p in range(2)] == [set(), set()]
    assert pools.pool[POOL + WRITES] == 0


def test_admits__blocks_pinned_by_hits_leave_no_room() -> None:
    pools = make_pools(3, [6])
    serve(pools, [0, 1, 2], 0.0, 0.0)
    assert kv_pools.admits(pools, 0, np.arange(3), 0, 3, 3)
    assert not kv_pools.admits(pools, 0, np.arange(3), 0, 3, 4)


def test_tiers__replicas_share_the_lowest() -> None:
    pools = make_pools(6, [3, 3, 10], below=[2, 2, NOWHERE])
    serve(pools, [0, 1], 0.0, 0.0, p=0)
    assert find(pools, [0, 1], 1.0, p=1)[0] == 0
    serve(pools, [2, 3], 2.0, 2.0, p=0)
    assert find(pools, [0, 1], 3.0, p=1) == (2, [0, 2])
    assert serve(pools, [0, 1], 3.0, 3.0, p=1) == 2
    assert stored(pools, 1) == {0, 1}


def test_cached_tokens__last_token_is_always_computed() -> None:
    assert kv_pools.cached_tokens(2, 512, 1024) == 1023
    assert kv_pools.cached_tokens(2, 512, 1025) == 1024


def test_replayed__pools_carry_over_to_the_next_replay() -> None:
    dense, count = dense_ids(IDS)
    pools = make_pools(count, [200])
    half = len(OFFSETS) // 2
    first = replayed(pools, dense, OFFSETS[: half + 1], TIMES[:half], leaf_first=False)
    second = replayed(pools, dense, OFFSETS[half:], TIMES[half:], leaf_first=False)
    assert first.sum() + second.sum() == 962
    sound(pools)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: replay_hits([1, 2], [0, 1]), "offsets"),
        (lambda: replay_hits([1, 2], [0, 2, 1]), "offsets"),
        (lambda: replay_hits([1, 2], []), "offsets"),
        (lambda: replay_hits([1, 2], [0, 1, 2], [1.0, 0.5]), "times"),
        (lambda: replay_hits([1, 2], [0, 1, 2], [1.0]), "times"),
        (lambda: replay_hits([1, 2], [0, 1, 2], [0.0, np.nan]), "times"),
        (lambda: replay_hits([1, 2], [0, 2], capacity_blocks=-1), "at least 0 pages"),
        (lambda: replay_hits([1, 2], [0, 2], ttl_s=0.0), "ttl"),
        (lambda: replay_hits([1, 2], [0, 2], ttl_s=np.nan), "ttl"),
        (lambda: make_pools(3, [4, 4], below=[0, NOWHERE]), "below"),
        (lambda: make_pools(3, [4, 4], ttl_s=[1.0]), "ttl"),
        (lambda: make_pools(3, []), "at least one"),
        (lambda: make_pools(3, [4], pages=0), "page"),
    ],
)
def test_replay_hits__bad_input_is_a_one_line_error(call: Any, says: str) -> None:
    with pytest.raises(BadValue, match=says) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_replay_hits__empty_requests_have_none() -> None:
    assert replay_hits([], [0]).tolist() == []
    assert replay_hits([], [0, 0, 0]).tolist() == [0, 0]
    assert hit_share(np.zeros(2), np.zeros(3)) == 0.0
    assert reuse([], [0, 0]).share(10, np.inf) == 0.0
    assert replay_hits([5, 6], [0, 2], capacity_blocks=0).tolist() == [0]

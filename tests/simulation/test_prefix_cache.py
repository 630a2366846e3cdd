"""The prefix cache in the loop: what is found need not be computed, nothing leaks, and a preempted request is no hit."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from headway.core.errors import MissingFact
from headway.hardware.memory_tier import MemoryTier
from headway.simulation import state as of
from headway.simulation.hit_rates import replay_hits
from headway.simulation.kv_pools import (
    CAPACITY,
    EVICTED,
    EXPIRED,
    HITS,
    LOOKUPS,
    PAGES,
    PINNED,
    POOL,
    RETURN_HITS,
    STORED,
    WRITES,
    evict,
    expire,
    find,
    link,
    make_pools,
    make_room,
    match,
    put,
)
from headway.simulation.prefix_tiers import NEVER, Prefix, hit_rates, parse_tiers, prefix_of
from headway.simulation.simulate import SimulatedRun, simulate
from headway.simulation.state import LANE
from headway.simulation.traffic.requests import Traffic
from support.simulated import RULES, pace

HBM = Prefix(below=(), ttl=np.inf, names=("hbm",))
TIERED = Prefix(below=parse_tiers("ddr:40MB@1GB/s,flash:1GB@0.5GB/s"), ttl=0.5, names=("hbm", "ddr", "flash"))
LAW = "0.01 + 1e-4 * batch + 1e-3 * tokens"


def talks(arrival: Any, ids: list[list[int]], output: Any = 4, block: int = 4, extra: int = 0) -> Traffic:
    """Requests whose prompts are whole blocks of these ids and so many tokens more."""
    start = np.concatenate(([0], np.cumsum([len(one) for one in ids])))
    prompt = [len(one) * block + extra for one in ids]
    return Traffic.of(arrival, prompt, output, blocks=np.concatenate(ids), block_start=start, block_tokens=block)


def play(traffic: Traffic, prefix: Prefix = HBM, how: str = "plain", **changes: Any) -> SimulatedRun:
    rules = RULES._replace(caching=1, block_tokens=traffic.block_tokens, block_bytes=1e6, **{"block": 2, **changes})
    return simulate(traffic, pace(LAW), rules, prefix=prefix, how=how)


def test_prefix_cache__hit_tokens_are_not_prefilled() -> None:
    run = play(talks([0.0, 10.0, 20.0], [[1, 2, 3], [1, 2, 3, 4], [9, 2]], extra=1))
    assert run.first - run.arrival == pytest.approx([0.023, 0.015, 0.019])  # 13 tokens; 5 of 17; all 9
    assert run.total(of.PREFILLED) == 13 + 5 + 9
    [cache] = [state.cache for state in run.states]
    assert cache.tally[LOOKUPS] == 9
    assert cache.tally[HITS] == 3
    assert hit_rates([cache], ("hbm",))["hit_rate"] == pytest.approx(3 / 9)


def test_prefix_cache__fully_cached_prompt_computes_its_last_token() -> None:
    run = play(talks([0.0, 10.0], [[1, 2], [1, 2]]))
    assert run.first - run.arrival == pytest.approx([0.018, 0.011])


def test_eviction__least_recently_used_first() -> None:
    run = play(talks([0.0, 10.0, 20.0, 30.0], [[1, 2], [3, 4], [3, 4], [1, 2]], output=2), capacity=8)
    counted = run.states[0].cache.tally
    assert counted[HITS] == 2 + 1  # the third finds both, the fourth its first: the second had made room


@pytest.mark.parametrize(("idle", "hits"), [(4.0, 1), (5.0, 1), (6.0, 0)])
def test_ttl__block_is_a_hit_until_its_last_instant(idle: float, hits: int) -> None:
    """Kept for 5 s after its last use: at 5 s it is still there."""
    assert replay_hits([1, 1], [0, 1, 2], [0.0, idle], ttl_s=5.0).tolist() == [0, hits]
    pools = make_pools(1, [4], ttl_s=[5.0])
    link(pools, 0, put(pools, 0, 0, 0.0))
    assert match(pools, 0, [0], 0, 1, idle, [0], [0]) == hits  # found or not even before anything expires
    expire(pools, 0, idle)
    assert (int(pools.pool[STORED]), int(pools.pool[EXPIRED])) == (hits, 1 - hits)


@pytest.mark.parametrize(("idle", "hits"), [(4.0, 1), (5.0, 1), (6.0, 0)])
def test_ttl__evicted_block_moves_down_until_its_last_instant(idle: float, hits: int) -> None:
    """A second block takes the only room of the upper tier; the first moves to the tier below, which keeps 5 s as well."""
    replayed = replay_hits([1, 2, 1], [0, 1, 2, 3], [0.0, idle, idle], capacity_blocks=[1, 4], ttl_s=[5.0, 5.0])
    assert replayed.tolist() == [[0, 0], [0, 0], [0, hits]]
    pools = make_pools(2, [1, 4], ttl_s=[np.inf, 5.0])
    link(pools, 0, put(pools, 0, 0, 0.0))
    assert make_room(pools, 0, 1, idle)
    below = pools.pool[POOL:]
    assert (int(below[STORED]), int(below[WRITES]), int(pools.pool[EVICTED])) == (hits, hits, 1)


def test_tiers__displaced_block_moves_further_down_with_its_own_age() -> None:
    """One block each; at 6 s the second block displaces the first, last used at 0 s: too old for the third tier's 5 s."""
    pools = make_pools(2, [1, 1, 1], ttl_s=[np.inf, np.inf, 5.0])
    link(pools, 0, put(pools, 0, 0, 0.0))
    assert evict(pools, 0, 1.0) == 0
    assert pools.pool[POOL + STORED :: POOL].tolist() == [1, 0]  # it fits exactly, so nothing makes room for it
    assert pools.pool[POOL + EVICTED] == 0
    link(pools, 0, put(pools, 0, 1, 4.0))
    assert evict(pools, 0, 6.0) == 1
    assert pools.pool[STORED::POOL].tolist() == [0, 1, 0]
    assert (int(pools.pool[POOL + EVICTED]), pools.last[find(pools, 1, 1)]) == (1, 4.0)


@pytest.mark.parametrize(("above", "below"), [(1.0, 3.0), (3.0, 1.0)])
def test_tiers__evicted_copy_leaves_the_later_use_of_a_shared_block(above: float, below: float) -> None:
    pools = make_pools(1, [1, 1])
    for pool_id, last in enumerate((above, below)):
        link(pools, pool_id, put(pools, pool_id, 0, last))
    evict(pools, 0, 4.0)
    assert (pools.last[find(pools, 1, 0)], int(pools.pool[POOL + STORED])) == (3.0, 1)


def test_tiers__blocks_load_from_a_lower_tier_when_faster() -> None:
    tiers = parse_tiers("ddr:1GB@1GB/s")
    prefix = Prefix(below=tiers, ttl=np.inf, names=("hbm", "ddr"))
    run = play(talks([0.0, 10.0, 20.0], [[1, 2, 3, 4], [5, 6, 7, 8], [1, 2, 3, 4]], output=2), prefix, capacity=10)
    counted = run.states[0].cache.tally
    assert counted[HITS + 1] > 0
    loaded = counted[HITS + 1] * 1e6 / 1e9 + float(tiers[0].latency)
    again = (run.first - run.arrival)[2]
    assert again == pytest.approx(loaded + 0.01 + 1e-3 * (16 - 4 * (counted[HITS] + counted[HITS + 1]) or 1))


@pytest.mark.parametrize(("usd_per_s", "loads"), [(None, False), (1e-2, True), (1e-9, False)])
def test_tiers__loading_is_decided_by_cost_when_priced(usd_per_s: float | None, loads: bool) -> None:
    """A block takes some 5 ms to compute and 10 ms to load, which takes a terabyte of memory that costs 0.14 mUSD a second."""
    prefix = Prefix(below=parse_tiers("ddr:1TB@0.1GB/s"), ttl=np.inf, names=("hbm", "ddr"), usd_per_s=usd_per_s)
    traffic = talks([0.0, 10.0, 20.0], [[1, 2, 3, 4], [5, 6, 7, 8], [1, 2, 3, 4]], output=2)
    run = play(traffic, prefix, capacity=10)
    assert (run.states[0].cache.tally[HITS + 1] > 0) == loads


def test_tiers__break_even_price_of_loading() -> None:
    """Loading takes the tier's devices for bytes over bandwidth, computing the chips for a block's time: prices in inverse ratio."""
    [tier] = parse_tiers("ddr:1TB@1GB/s")
    year, block_s, block_bytes = 365.25 * 86400.0, 0.004, 1e6
    devices = 15e-9 * 1.2 / (4 * year) * 1e12
    even = devices * block_bytes / 1e9 / block_s
    for usd_per_s, loads in ((even * 1.01, True), (even * 0.99, False)):
        prefix = Prefix(below=(tier,), ttl=np.inf, names=("hbm", "ddr"), usd_per_s=usd_per_s)
        assert (prefix.least(block_bytes, block_s)[0] < NEVER) == loads


def test_tiers__missing_price_is_an_error() -> None:
    unknown = replace(parse_tiers("ddr:1TB")[0], device=MemoryTier(name="mine", memory="ddr"))
    with pytest.raises(MissingFact, match="price"):
        prefix_of([unknown], 1.0)
    assert prefix_of([unknown])[0].usd_per_s is None


def test_preemption__return_counts_no_prefix_hit() -> None:
    traffic = talks([0.0, 0.0], [[1, 2], [3, 4]], output=16)
    run = play(traffic, capacity=18)
    counted = run.states[0].cache.tally
    assert run.total_count(of.PREEMPTED) > 0
    assert counted[HITS] == 0
    assert counted[RETURN_HITS] > 0


@some.composite
def shared(draw: Any) -> tuple[Traffic, dict[str, Any]]:
    rng = np.random.default_rng(draw(some.integers(0, 10**6)))
    count, trees = draw(some.integers(1, 50)), draw(some.integers(1, 6))
    ids = []
    for _ in range(count):
        tree, depth = int(rng.integers(0, trees)), int(rng.integers(1, 9))
        ids.append([100 * tree + level for level in range(depth)])
    gaps = rng.exponential(draw(some.sampled_from((0.001, 0.02, 0.2))), count)
    traffic = talks(np.cumsum(gaps), ids, rng.integers(1, 30, count), 4, draw(some.integers(0, 3)))
    rules = {"capacity": draw(some.integers(36, 120)), "seats": draw(some.integers(1, 12)), "budget": draw(some.integers(1, 60)),
             "mixed": draw(some.integers(0, 1)), "lanes": LANE}  # fmt: skip
    return traffic, rules


def sound(run: SimulatedRun) -> None:
    assert (run.completed ^ run.refused).all()
    assert run.total(of.EMITTED) == run.traffic.output[run.completed].sum()
    for state in run.states:
        pool = state.cache.pools.pool
        assert pool[PINNED] == 0
        assert pool[PAGES] * pool[STORED] <= pool[CAPACITY]
        assert state.count[of.SHARED] == 0
        assert state.count[of.PROMPT_BLOCKS] == 0
        assert state.count[of.PEAK_BLOCKS] <= run.rules.capacity
        assert state.cache.tally[HITS] <= state.cache.tally[LOOKUPS]


@settings(max_examples=150)
@given(shared(), some.sampled_from((HBM, TIERED)))
def test_prefix_cache__leaks_no_blocks(drawn: tuple[Traffic, dict[str, Any]], prefix: Prefix) -> None:
    traffic, rules = drawn
    sound(play(traffic, prefix, chunk=rules["budget"], **rules))


@pytest.mark.slow
@pytest.mark.skipif(not importlib.util.find_spec("numba"), reason="needs numba (extra fast)")
def test_compiled_loop__same_prefix_hits_as_plain() -> None:
    rng = np.random.default_rng(8)
    ids = [[100 * int(rng.integers(0, 20)) + level for level in range(int(rng.integers(1, 30)))] for _ in range(1000)]
    traffic = talks(np.cumsum(rng.exponential(0.05, 1000)), ids, rng.integers(1, 60, 1000))
    prefix = Prefix(below=parse_tiers("ddr:100MB@1GB/s"), ttl=5.0, names=("hbm", "ddr"))
    rules = RULES._replace(caching=1, block_tokens=4, block_bytes=1e6, block=2)
    asked: dict[str, Any] = {"prefix": prefix, "replicas": 3, "routing": "least-loaded"}
    sent = [simulate(traffic, pace(LAW), rules, how=how, **asked) for how in ("plain", "compiled")]
    assert sent[0].replica.tolist() == sent[1].replica.tolist()
    assert sent[1].finish == pytest.approx(sent[0].finish, rel=1e-9)
    plain, fast = (play(traffic, prefix, how, capacity=300) for how in ("plain", "compiled"))
    assert plain.total_count(of.PREEMPTED) > 0
    assert list(plain.states[0].cache.tally) == list(fast.states[0].cache.tally)
    assert fast.finish == pytest.approx(plain.finish, rel=1e-9)

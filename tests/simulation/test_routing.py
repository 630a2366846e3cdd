"""Replicas that meet: requests that follow their prefix, tiers in common, answers that the next turn finds; each against a known limit."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from headway.core.errors import BadValue
from headway.simulation import routing
from headway.simulation import state as of
from headway.simulation.hit_rates import replay_hits
from headway.simulation.kv_pools import CAPACITY, PAGES, POOL, STORED
from headway.simulation.prefix_tiers import Prefix, hit_rates, parse_tiers
from headway.simulation.simulate import SimulatedRun, simulate
from headway.simulation.traffic.distributions import parse_arrivals, parse_lengths
from headway.simulation.traffic.generate import ConversationTurns, generate, generate_conversations
from headway.simulation.traffic.requests import Traffic
from support.simulated import RULES, pace

pytestmark = pytest.mark.slow

LAW = "0.01 + 1e-4 * batch + 2e-5 * tokens + 1e-8 * context"
BLOCK = 64
ROOM = 4000  # blocks of 16 tokens
COMPILED = importlib.util.find_spec("numba") is not None


def prefix(tiers: str = "") -> Prefix:
    below = parse_tiers(tiers) if tiers else ()
    return Prefix(below=below, ttl=np.inf, names=("hbm", *(one.name for one in below)))


def talks(count: int = 1500, rate: float = 4.0, shared: int = 0, gap: float = 20.0) -> Traffic:
    arrivals, prompt, output = parse_arrivals("poisson", rate), parse_lengths("uniform:50,400", "prompt"), parse_lengths("100", "output")
    drawn = generate_conversations(
        arrivals, rate, prompt, output, ConversationTurns(mean=6.0, gap=gap, shared=shared, block=BLOCK), count, 3
    )
    return replace(drawn, pause=None)  # each turn by itself, to whichever replica


def play(
    traffic: Traffic, replicas: int, way: str, cache: Prefix | None, how: str = "plain", law: str = LAW, **changes: Any
) -> SimulatedRun:  # fmt: skip
    asked = {"capacity": ROOM, "seats": 64, "caching": int(cache is not None), "block_tokens": BLOCK, "block_bytes": 1e6, **changes}
    return simulate(traffic, pace(law, 64), RULES._replace(**asked), replicas=replicas, routing=way, prefix=cache, how=how)


def rate_of(run: SimulatedRun, cache: Prefix) -> float:
    return hit_rates([state.cache for state in run.states], cache.names)["hit_rate"]


# -- routing by prefix -------------------------------------------------------------------------------------------------------------


def test_prefix_aware__four_pools_hit_nearly_as_one() -> None:
    traffic, cache = talks(), prefix()
    one = rate_of(play(traffic, 1, "round-robin", cache, capacity=4 * ROOM, seats=256), cache)
    by_prefix, in_turn, by_load = (rate_of(play(traffic, 4, way, cache), cache) for way in ("prefix-aware", "round-robin", "least-loaded"))
    assert by_prefix == pytest.approx(one, rel=0.05)
    assert in_turn < 0.5 * one
    assert by_load < 0.7 * one


def test_prefix_aware__overloaded_replicas_stay_balanced() -> None:
    run = play(talks(rate=60.0, shared=500), 4, "prefix-aware", prefix())
    assert np.bincount(run.replica).min() > 0.8 * len(run.traffic) / 4


def test_prefix_aware__no_shared_prefix_equals_least_loaded() -> None:
    rng = np.random.default_rng(1)
    arrival, blocks = np.cumsum(rng.exponential(0.1, 600)), rng.integers(1, 20, 600)
    start = np.concatenate(([0], np.cumsum(blocks)))
    traffic = Traffic.of(arrival, blocks * BLOCK, 60, blocks=np.arange(start[-1]), block_start=start, block_tokens=BLOCK)
    by_prefix, by_load = (play(traffic, 3, way, prefix()) for way in ("prefix-aware", "least-loaded"))
    assert by_prefix.replica.tolist() == by_load.replica.tolist()
    assert by_prefix.finish == pytest.approx(by_load.finish, rel=1e-12)  # by load replicas stop less often, and sums round otherwise


@pytest.mark.parametrize(("before", "stays"), [(9, True), (11, False)])
def test_prefix_aware__leaves_a_prefix_behind_a_longer_queue(before: int, stays: bool) -> None:
    ids = [list(range(10)), list(range(100, 100 + before)), [*range(10), 999]]
    start = np.concatenate(([0], np.cumsum([len(one) for one in ids])))
    traffic = Traffic.of([0.0, 9.0, 9.0], np.diff(start) * BLOCK, 5, blocks=np.concatenate(ids), block_start=start, block_tokens=BLOCK)
    run = play(traffic, 2, "prefix-aware", prefix())
    assert run.replica.tolist() == [0, 0, 0 if stays else 1]


def test_prefix_aware__requires_a_prefix_cache() -> None:
    with pytest.raises(BadValue, match="--prefix-cache"):
        play(talks(10), 2, "prefix-aware", None)


@pytest.mark.parametrize("how", ["plain", pytest.param("compiled", marks=pytest.mark.skipif(not COMPILED, reason="numba"))])
@pytest.mark.parametrize("way", ["round-robin", "prefix-aware"])
def test_ids_in_order__are_found_as_if_listed(way: str, how: str) -> None:
    traffic, cache = talks(800, shared=200), prefix("ddr:40GB@1GB/s")
    runs = [play(one, 3, way, cache, how) for one in (traffic, traffic.with_listed_blocks())]
    assert runs[0].finish.tolist() == runs[1].finish.tolist()
    assert [list(state.cache.tally) for state in runs[0].states] == [list(state.cache.tally) for state in runs[1].states]


# -- routing by load ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arrivals", "changes"),
    [
        ("poisson", {}), ("bursty:3", {"capacity": 1500}), ("poisson", {"accept": 2.5}),
        ("poisson", {"law": "1e-3 + 0.04 / (batch + prompts)"}),
    ],
)  # fmt: skip
def test_least_loaded__chooses_the_fewest_in_service(arrivals: str, changes: dict[str, Any]) -> None:
    prompt, output = parse_lengths("lognormal:300,1", "prompt"), parse_lengths("lognormal:60,1", "output")
    run = play(generate(parse_arrivals(arrivals, 40.0), prompt, output, 1500, 2), 5, "least-loaded", None, **changes)
    for at in range(len(run.traffic)):
        here = run.replica[:at][run.finish[:at] > run.arrival[at]]
        assert run.replica[at] == np.argmin(np.bincount(here, minlength=5))


# -- tiers in common ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["round-robin", "least-loaded"])
def test_shared_tier__every_replica_hits_blocks_of_any_other(way: str) -> None:
    traffic, cache = talks(1000, rate=1.0).with_listed_blocks(), prefix("ddr:1TB@100GB/s:shared")
    whole = traffic.prompt // BLOCK
    best = np.minimum(replay_hits(traffic.blocks, traffic.block_start), whole).sum() / len(traffic.blocks)
    run = play(traffic, 4, way, cache)
    assert rate_of(run, cache) >= best
    alone = prefix("ddr:1TB@100GB/s")
    assert rate_of(play(traffic, 4, way, alone), alone) < 0.85 * best


def test_shared_tier__bandwidth_is_divided_among_replicas() -> None:
    """Four requests on four replicas, each with the same 20 blocks to load over 1 GB/s: 20 ms one after the other."""
    ids = list(range(20))
    prompts = [ids] * 5
    traffic = Traffic.of([0.0, 9.0, 9.0, 9.0, 9.0], 20 * BLOCK + 1, 3, blocks=np.concatenate(prompts), block_start=np.arange(6) * 20,
                         block_tokens=BLOCK)  # fmt: skip
    cache = prefix("ddr:1TB@1GB/s:shared")
    run = play(traffic, 5, "round-robin", cache)
    ready = run.first[1:] - 9.0
    assert np.diff(np.sort(ready)) == pytest.approx([0.02] * 3, rel=1e-6)
    assert run.states[0].cache.paths is run.states[1].cache.paths


def test_routing__interleaving_of_replicas_leaves_results_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    traffic, cache = talks(1200, rate=6.0), prefix("ddr:1.5GB@10GB/s:shared")
    found = []
    for ahead in (routing.AHEAD, 1e-3):
        monkeypatch.setattr(routing, "AHEAD", ahead)
        run = play(traffic, 4, "round-robin", cache, capacity=1200)
        found.append((rate_of(run, cache), float(np.mean(run.first - run.arrival))))
    assert found[0][0] == pytest.approx(found[1][0], abs=2e-3)
    assert found[0][1] == pytest.approx(found[1][1], rel=0.01)


def test_shared_tier__pools_never_exceed_their_capacity() -> None:
    cache = prefix("ddr:300MB@10GB/s,flash:500MB@1GB/s:shared")
    run = play(talks(800, rate=6.0), 3, "prefix-aware", cache, capacity=800)
    pool = np.asarray(run.states[0].cache.pools.pool).reshape(-1, POOL)
    assert len(pool) == 3 * 2 + 1
    assert (pool[:, PAGES] * pool[:, STORED] <= pool[:, CAPACITY]).all()
    assert run.states[0].cache.pools is run.states[1].cache.pools
    assert run.completed.all()


@pytest.mark.skipif(not COMPILED, reason="needs numba (extra fast)")
@pytest.mark.parametrize("way", ["round-robin", "prefix-aware"])
def test_compiled_loop__shared_tiers_same_as_plain(way: str) -> None:
    traffic, cache = talks(800, rate=6.0, shared=300), prefix("ddr:300MB@10GB/s,flash:1GB@1GB/s:shared")
    plain, fast = (play(traffic, 3, way, cache, how, capacity=900) for how in ("plain", "compiled"))
    assert plain.replica.tolist() == fast.replica.tolist()
    assert [list(one.cache.tally) for one in plain.states] == [list(one.cache.tally) for one in fast.states]
    assert fast.finish == pytest.approx(plain.finish, rel=1e-9)


# -- answers -----------------------------------------------------------------------------------------------------------------------


def test_turns__next_turn_hits_the_blocks_of_the_answer() -> None:
    """Two turns of 640 tokens and an answer of 321, the last of which no step computed with: 15 whole blocks."""
    count, answer = 2, 321
    context = np.array([640, 640 + answer + 100])
    blocks = np.concatenate((np.arange(10), np.arange(16), [99]))
    traffic = Traffic.of([0.0, 60.0], context, answer, blocks=blocks, block_start=[0, 10, 27], block_tokens=BLOCK,
                         answers=[*range(10, 15), *range(16, 21)], answer_start=[0, 5, 10])  # fmt: skip
    run = play(traffic, 1, "round-robin", prefix())
    assert run.total(of.PREFILLED) == context[0] + context[1] - 15 * BLOCK
    assert run.completed.sum() == count


def test_conversation__block_ids_cover_prompt_and_answer() -> None:
    traffic = talks(300, shared=100).with_listed_blocks()
    for turn in range(len(traffic)):
        later = np.flatnonzero((traffic.conversation == traffic.conversation[turn]) & (np.arange(len(traffic)) > turn))
        whole = traffic.prompt[turn] // BLOCK
        own = traffic.blocks[traffic.block_start[turn] :][:whole]
        left = np.concatenate((own, traffic.answers[traffic.answer_start[turn] : traffic.answer_start[turn + 1]]))
        assert len(left) == (traffic.prompt[turn] + traffic.output[turn] - 1) // BLOCK
        if len(later):
            assert traffic.blocks[traffic.block_start[later[0]] :][: len(left)].tolist() == left.tolist()


def test_prefill__only_new_tokens_when_the_cache_is_unlimited() -> None:
    traffic, cache = talks(500, rate=0.5, gap=100.0), prefix()
    run = play(traffic, 1, "round-robin", cache, capacity=10**6)
    before = np.array([np.flatnonzero(traffic.conversation[:at] == traffic.conversation[at]).max(initial=-1) for at in range(len(traffic))])
    known = np.where(before < 0, 0, (traffic.prompt + traffic.output - 1)[before] // BLOCK * BLOCK)
    done = before < 0
    done |= run.finish[before] <= run.scheduled
    assert done.mean() > 0.95
    least, most = (traffic.prompt - known).sum(), (traffic.prompt - np.where(done, known, 0)).sum()
    assert least <= run.total(of.PREFILLED) <= most

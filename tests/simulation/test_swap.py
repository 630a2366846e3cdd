"""Caches that go to the host's memory and come back: by hand, at the limits of the link and of the memory, beside a prefix cache."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from headway.core.errors import BadValue
from headway.performance.layout import Layout
from headway.simulation import state as of
from headway.simulation.kv_pools import HITS, LOOKUPS, RETURN_HITS
from headway.simulation.prefix_tiers import Prefix
from headway.simulation.questions import Policy
from headway.simulation.simulate import SimulatedRun, simulate
from headway.simulation.traffic.requests import Traffic
from support.simulated import RULES, pace, play, real

LAW = "0.004 + 1e-5 * tokens + 1e-4 * batch"


def crowd(count: int = 300, seed: int = 1) -> Traffic:
    rng = np.random.default_rng(seed)
    return Traffic.of(np.cumsum(rng.exponential(0.05, count)), rng.integers(1, 300, count), rng.integers(2, 60, count))


def crowded(traffic: Traffic | None = None, **changes: Any) -> SimulatedRun:
    return play(traffic or crowd(), LAW, **{"capacity": 60, "seats": 16, **changes})


def test_swap__cache_copied_out_and_back_by_hand() -> None:
    """Blocks of 2: after 7 tokens each has 10 tokens of cache, the next step wants 6 blocks of each of the 10 that there are."""
    run = play(Traffic.of([0.0, 0.0], 4, 8), "1.0", capacity=10, block=2, swap=100, copy_s=0.5)
    assert run.total_count(of.PREEMPTED) == run.total_count(of.SWAPPED) == 1
    assert run.finish[0] == 7.0 + 5 * 0.5 + 1.0  # the step that wants the room waits until five blocks are out
    assert run.finish[1] == run.finish[0] + 5 * 0.5 + 1.0  # they are back, and the last token follows
    assert run.total(of.PREFILLED) == 8.0
    assert run.total(of.BUSY) == 9.0
    assert run.total_count(of.HOSTED) == 0


def test_swap__instant_copies_delay_nothing() -> None:
    """Everyone's cache is out at once, and no time passes until the first is back."""
    run = play(Traffic.of([0.0, 0.0, 0.0], 1, [4, 3, 4]), "1.0", budget=1, chunk=1, seats=2, capacity=5, block=1, mixed=0, swap=12)
    assert run.total_count(of.SWAPPED) == 1
    assert run.finish.tolist() == [5.0, 6.0, 10.0]


def test_swap__other_requests_decode_during_swap_in() -> None:
    """A third request, small enough to stay, takes its steps meanwhile."""
    law = {"capacity": 12, "block": 2, "swap": 100, "copy_s": 1.0}
    run = play(Traffic.of([0.0, 0.0, 0.5], [4, 4, 1], [8, 8, 12]), "1.0", **law)
    assert run.total_count(of.SWAPPED) >= 1
    assert run.completed.all()
    assert run.total(of.EMITTED) == 28.0
    assert run.total(of.PREFILLED) == 9.0


@pytest.mark.parametrize("mixed", [1, 0])
def test_swap__no_host_memory_falls_back_to_recompute(mixed: int) -> None:
    with_none, without = crowded(mixed=mixed, swap=0, copy_s=0.1), crowded(mixed=mixed)
    assert with_none.total_count(of.PREEMPTED) == without.total_count(of.PREEMPTED) > 0
    assert with_none.total_count(of.SWAPPED) == 0
    for key in ("scheduled", "first", "finish"):
        assert np.array_equal(getattr(with_none, key), getattr(without, key))


@pytest.mark.parametrize("changes", [{}, {"mixed": 0}, {"reserve": 0.5}, {"departures": 0.02}, {"lanes": 2 * of.LANE}])
def test_swap__infinite_link_loses_no_work(changes: dict[str, Any]) -> None:
    """Nothing is computed twice, and no time passes but in steps and without work."""
    traffic = crowd()
    ranks = np.arange(len(traffic)) % 2 if "lanes" in changes else None
    run = crowded(traffic, swap=10**6, copy_s=0.0, ranks=ranks, **changes)
    assert run.total_count(of.SWAPPED) == run.total_count(of.PREEMPTED) > 0
    assert run.total(of.PREFILLED) == traffic.prompt.sum()
    assert run.total(of.EMITTED) == traffic.output.sum()
    if not changes:
        again = crowded(traffic)
        assert run.total(of.BUSY) < again.total(of.BUSY)


@pytest.mark.parametrize("mixed", [1, 0])
@pytest.mark.parametrize("copy_s", [0.0, 0.001, 0.02])
def test_itl__sums_to_decode_time_with_swap(copy_s: float, mixed: int) -> None:
    run = crowded(swap=5, copy_s=copy_s, mixed=mixed)
    assert run.total_count(of.PREEMPTED) > run.total_count(of.SWAPPED) > 0  # both ways of being sent back
    tokens = np.sum([np.asarray(state.log[: of.GAPS]) for state in run.states], axis=0)
    middle = of.GAP_LEAST * of.GAP_RATIO ** (np.arange(of.GAPS) + 0.5)
    assert tokens.sum() == (run.traffic.output - 1).sum()
    assert (tokens * middle).sum() == pytest.approx((run.finish - run.first).sum(), rel=0.005)  # bins of 1 %


def test_swap__slower_link_lengthens_e2e() -> None:
    runs = [crowded(swap=10**6, copy_s=copy_s) for copy_s in (0.0, 0.01, 0.1)]
    taken = [float((run.finish - run.arrival).mean()) for run in runs]
    assert taken[0] < taken[1] < taken[2]


def test_swap__swapped_blocks_are_not_prefix_hits() -> None:
    """Requests that share nothing find nothing, however often they come back; what is computed again does find its own blocks."""
    count, each = 60, 8
    ids = np.arange(count * each)
    traffic = Traffic.of(np.arange(count) * 0.02, 4 * each, 60, blocks=ids, block_start=np.arange(count + 1) * each, block_tokens=4)
    rules = RULES._replace(capacity=120, block=2, seats=16, caching=1, block_tokens=4, block_bytes=1e6)
    prefix = Prefix(below=(), ttl=np.inf, names=("hbm",))
    for swap in (0, 10**6):
        run = simulate(traffic, pace(LAW), rules._replace(swap=swap, copy_s=1e-4), prefix=prefix, how="plain")
        counted = np.asarray(run.states[0].cache.tally)
        assert run.total_count(of.PREEMPTED) > 0
        assert counted[LOOKUPS] == len(ids)
        assert counted[HITS] == 0
        assert (counted[RETURN_HITS] == 0) == (swap > 0)
        assert run.total(of.EMITTED) == traffic.output.sum()
        assert run.total_count(of.SHARED) == 0


def test_swap__copy_time_is_kv_bytes_over_host_link_bandwidth() -> None:
    """Llama-3.1-70B in bf16 over 8 H100: 40,960 bytes a token and chip, 64 GB/s to the host."""
    made = real("llama-3.1-70b", "8xh100-sxm", Layout(tp=8), crowd(), Policy(preemption="swap"))
    link = float(made.query.system.chip.host_link_bw)
    assert made.scheduler.rules.copy_s == pytest.approx(40_960 * 16 / link)
    assert made.scheduler.rules.swap == (4 * 2**30 // (40_960 * 16))
    assert real("llama-3.1-70b", "8xh100-sxm", Layout(tp=8), crowd()).scheduler.rules.swap == 0


def test_swap__chip_without_a_host_link_is_an_error() -> None:
    with pytest.raises(BadValue, match="link to its host"):
        real("qwen2.5-0.5b", "apple-m2", Layout(), crowd(), Policy(preemption="swap"))

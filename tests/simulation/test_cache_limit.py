"""One request at a time, the loop finds what a replay of its cache finds, and that is what was published of a real trace."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headway.simulation.hit_rates import replay_hits
from headway.simulation.kv_pools import HITS
from headway.simulation.prefix_tiers import Prefix, hit_rates
from headway.simulation.simulate import SimulatedRun, simulate
from headway.simulation.traffic.read import read_trace
from headway.simulation.traffic.requests import Traffic
from support.conversations import CONVERSATION, PUBLISHED, TRACE, WHOLE
from support.simulated import RULES, pace

HBM = Prefix(below=(), ttl=np.inf, names=("hbm",))
BLOCK, PAGE = 512, 16
LATER = 1e3  # seconds between requests, each of which is over in one


def alone(traffic: Traffic, blocks: int | None = None, replicas: int = 1, **asked: Any) -> SimulatedRun:
    """Each request when the one before it is over, in the order of the file; room for so many blocks and the token that is made."""
    room = len(traffic.blocks) + 1 if blocks is None else blocks
    one = replace(traffic, arrival=np.arange(len(traffic)) * LATER, output=np.ones_like(traffic.output))
    rules = RULES._replace(budget=10**6, chunk=10**6, capacity=room * BLOCK // PAGE + 1, caching=1, block_tokens=BLOCK, block_bytes=1e6)
    return simulate(one, pace("0.1"), rules, prefix=HBM, how="plain", replicas=replicas, **asked)


def whole_blocks(traffic: Traffic) -> Traffic:
    """Prompts filled up to their last block's end, as references count them: an engine shares no block that is part full."""
    return replace(traffic, prompt=np.diff(traffic.block_start) * BLOCK)


def found(run: SimulatedRun) -> int:
    return sum(int(state.cache.tally[HITS]) for state in run.states)


@pytest.mark.parametrize("room", [40, 60, 100, 200, 400, None])
def test_prefix_cache__sequential_requests_hit_as_in_replay(room: int | None) -> None:
    traffic = whole_blocks(read_trace(TRACE).traffic)
    asked = {"capacity_blocks": room, "leaf_first": True}
    assert found(alone(traffic, room)) == replay_hits(traffic.blocks, traffic.block_start, **asked).sum()


def test_hit_rate__partial_blocks_count_as_lookups_and_never_hit() -> None:
    traffic = read_trace(TRACE).traffic
    run = alone(traffic)
    hits = np.minimum(replay_hits(traffic.blocks, traffic.block_start), traffic.prompt // BLOCK)
    rates = hit_rates([run.states[0].cache], ("hbm",))
    assert rates["hit_rate"] == pytest.approx(hits.sum() / len(traffic.blocks))
    cached = np.minimum(hits * BLOCK, traffic.prompt - 1)
    assert rates["hit_rate_tokens"] == pytest.approx(cached.sum() / traffic.prompt.sum())


def test_prefix_aware__four_idle_replicas_hit_as_one_cache() -> None:
    """Where nobody waits a prefix always wins: with room enough each conversation stays where it began."""
    traffic = whole_blocks(read_trace(TRACE).traffic)
    best = replay_hits(traffic.blocks, traffic.block_start).sum()
    assert found(alone(traffic, replicas=4, routing="prefix-aware")) == best
    assert found(alone(traffic, replicas=4, routing="round-robin")) < 0.8 * best


@pytest.mark.skipif(not Path(WHOLE).is_file(), reason=f"{CONVERSATION} names no file")
@pytest.mark.parametrize("room", PUBLISHED)
def test_hit_rate__published_values_of_the_mooncake_trace_through_the_loop(room: int | None) -> None:
    """The loop lets a prompt's last block go first, the published counts its first: of 5,000 blocks that is worth 0.0015."""
    traffic = read_trace(WHOLE).traffic
    hits = found(alone(whole_blocks(traffic), room))
    assert hits / len(traffic.blocks) == pytest.approx(PUBLISHED[room], abs=1.5e-3 if room == 5000 else 1e-3)
    if room is not None:
        assert hits == replay_hits(traffic.blocks, traffic.block_start, capacity_blocks=room, leaf_first=True).sum()
        return
    rates = hit_rates([alone(traffic).states[0].cache], ("hbm",))
    assert rates["hit_rate"] == pytest.approx(0.3664, abs=1e-3)
    assert rates["hit_rate_tokens"] == pytest.approx(0.3736, abs=1e-3)

"""A prefix cache for replicas: its tiers as pools, what a block weighs, from how many blocks on loading pays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.errors import BadValue
from headway.sim.kvcache import HITS
from headway.sim.kvcache_arrays import dense_ids, make_pools
from headway.sim.pacing import Pace
from headway.sim.reload import least_by_time, paths_of
from headway.sim.state import Cache, Rules
from headway.sim.tiers import CacheTier
from headway.sim.traffic.record import Traffic

FAST = (math.inf, 0.0, 0.0)  # the path of what is read in place


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefix:
    """What every replica gets one of: tiers of its own, the first the HBM that running requests use."""

    below: tuple[CacheTier, ...]  # tiers below the HBM
    ttl: float  # of the HBM's blocks
    names: tuple[str, ...]

    def rules(self, rules: Rules, traffic: Traffic, token_bytes: float, hbm: float) -> Rules:
        """The rules with blocks that divide the traffic's, and no more HBM than asked for."""
        if not len(traffic.blocks):
            raise BadValue("--prefix-cache", "traffic without blocks", "a trace with hash_ids, or --turns")
        block = math.gcd(rules.block, traffic.block_tokens)
        tokens = min(rules.capacity * rules.block, hbm / token_bytes if token_bytes else math.inf)
        return rules._replace(
            block=block, capacity=int(tokens // block), caching=1, block_tokens=traffic.block_tokens,
            block_bytes=token_bytes * traffic.block_tokens,
        )  # fmt: skip

    def cache(self, rules: Rules, traffic: Traffic, pace: Pace) -> Cache:
        """Empty pools."""
        ids, count = dense_ids(traffic.blocks)
        pages = rules.block_tokens // rules.block
        rooms = [rules.capacity, *(int(one.capacity // (rules.block_bytes / pages)) for one in self.below)]
        pools = make_pools(count, rooms, pages=pages, ttl_s=[self.ttl, *(one.ttl for one in self.below)])
        prompt = float(traffic.prompt.mean())
        block_s = pace.step(0.0, 0.0, prompt, prompt * prompt / 2, 1.0) * rules.block_tokens / prompt
        least = least_by_time(self.below, block_bytes=rules.block_bytes, block_s=block_s) if self.below else []
        paths = paths_of(self.below) if self.below else []
        depth = len(rooms)
        return Cache(
            pools=pools, blocks=np.asarray(ids, np.int64), start=traffic.block_start, found=np.zeros(depth, np.int64),
            least=np.concatenate(([0], least)).astype(np.int64), paths=np.concatenate((FAST, paths)),
            counted=np.zeros(HITS + depth, np.int64), ready=np.zeros(1),
        )  # fmt: skip


def prefix_of(tiers: Sequence[CacheTier]) -> tuple[Prefix, float]:
    """Tiers as typed, and the bytes of HBM among them (all there is where none is named)."""
    first = tiers[0]
    named = first.in_place
    below = tuple(tiers[1:] if named else tiers)
    if any(one.in_place for one in below):
        raise BadValue("--prefix-cache", first.name, "HBM first, and once")
    names = tuple(one.name for one in tiers) if named else ("hbm", *(one.name for one in tiers))
    return Prefix(below=below, ttl=first.ttl if named else math.inf, names=names), float(first.capacity) if named else math.inf


def hit_rates(caches: Sequence[Any], names: Sequence[str]) -> dict[str, Any]:
    """Share of prompt blocks that were found, over all replicas, and by tier; those of preempted requests that return are left out."""
    counted = np.sum([np.asarray(one.counted) for one in caches], axis=0)
    asked = counted[0]
    hits = counted[HITS:]
    if not asked:
        return {"hit_rate": None, "hit_rate_by_tier": None}
    by_tier = {name: float(hit / asked) for name, hit in zip(names, hits, strict=True)}
    return {"hit_rate": float(hits.sum() / asked), "hit_rate_by_tier": by_tier}

"""A prefix cache for replicas: its tiers as pools, what a block weighs, from how many blocks on loading pays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.errors import BadValue
from headway.laws.reload import load_gain_s
from headway.sim.kvcache import HITS, LOOKUPS
from headway.sim.kvcache_arrays import CachePools, as_lists, dense_ids
from headway.sim.pacing import StepPace
from headway.sim.reload import NEVER, least_by_cost, least_by_time, paths_of
from headway.sim.state import CacheState, Rules
from headway.sim.tiers import SimulatedTier, chained
from headway.sim.traffic.record import Traffic
from headway.tier_cost import holding_of

FAST = (math.inf, 0.0, 0.0, 0.0)  # the path of what is read in place


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefix:
    """The prefix cache of all replicas: the HBM that running requests use, the tiers below it, and when those are worth loading from."""

    below: tuple[SimulatedTier, ...]  # tiers below the HBM, those that replicas share last
    ttl: float  # of the HBM's blocks
    names: tuple[str, ...]
    usd_per_s: float | None = None  # a replica's chips, where loading is set against their price; None: against their time

    @property
    def replica_tiers(self) -> int:
        """Tiers that each replica has of its own."""
        return 1 + sum(not tier.shared for tier in self.below)

    @property
    def shared(self) -> bool:
        """Whether replicas share a tier."""
        return self.replica_tiers <= len(self.below)

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

    def block_s(self, traffic: Traffic, pace: StepPace) -> float:
        """Time to compute a block again, as part of the mean prompt."""
        prompt = float(traffic.prompt.mean())
        return pace.step(0.0, 0.0, prompt, prompt * prompt / 2, 1.0) * traffic.block_tokens / prompt

    def least(self, block_bytes: float, block_s: float) -> Any:
        """By tier below the HBM: the fewest blocks that are worth loading."""
        if self.usd_per_s is None:
            return least_by_time(self.below, block_bytes=block_bytes, block_s=block_s)
        return least_by_cost(self.below, block_bytes=block_bytes, block_s=block_s, usd_per_s=self.usd_per_s, waiting=0.0)

    def notes(self, rules: Rules, traffic: Traffic, pace: StepPace) -> tuple[str, ...]:
        """From what length on a prefix is loaded, of each tier below the HBM."""
        better = "sooner" if self.usd_per_s is None else "cheaper"
        sentences = []
        for tier, least in zip(self.below, self.least(rules.block_bytes, self.block_s(traffic, pace)).tolist(), strict=True):
            where = f"{tier.name}, of all replicas together" if tier.shared else f"{tier.name} of each replica"
            if least < NEVER:
                sentences.append(
                    f"prefix cache: {least * rules.block_tokens} tokens and more are loaded from {where}: {better} than computing"
                )
            else:
                sentences.append(f"prefix cache: nothing is loaded from {where}: computing is {better}")
        return tuple(sentences)

    def saved_shares(self, block_bytes: float, block_s: float) -> Any:
        """By tier, the HBM included: the share of computing a block that is saved where it is found."""
        gains = [load_gain_s(1.0, block_s, block_bytes / float(tier.read_bw), 0.0) / block_s for tier in self.below]
        return np.maximum([1.0, *gains], 0.0)

    def caches(self, rules: Rules, traffic: Traffic, pace: StepPace, replicas: int, lists: bool) -> list[tuple[CacheState, int]]:
        """Empty caches, one for each replica, and the number of its first pool; in lists for plain Python."""

        def form(values: Any, kind: Any = np.int64) -> Any:
            values = np.ascontiguousarray(values, kind)
            return values.tolist() if lists else values

        depth, block_s, size = 1 + len(self.below), self.block_s(traffic, pace), len(traffic.blocks)
        ids, count = dense_ids(np.concatenate((traffic.blocks, traffic.answers)))
        common = {
            "blocks": form(ids[:size]), "start": form(traffic.block_start), "answers": form(np.append(ids[size:], 0)),
            "answer_start": form(traffic.answer_start), "least": form([0, *self.least(rules.block_bytes, block_s)]),
            "saved_shares": form(self.saved_shares(rules.block_bytes, block_s), float),
            "expected": form(np.zeros(len(traffic)), float), "ready": (),
        }  # fmt: skip
        together = replicas if self.shared else 1  # replicas whose pools are numbered through
        replica_caches: list[tuple[CacheState, int]] = []
        for _ in range(replicas // together):
            pools = self._pools(rules, count, together)
            both = {"pools": as_lists(pools) if lists else pools, "paths": form(self._paths(together), float)}
            for number in range(together):
                scratch = {"depth_hits": form(np.zeros(depth)), "tally": form(np.zeros(HITS + depth + 2))}
                replica_caches.append((CacheState(**common, **both, **scratch), number * self.replica_tiers))
        return replica_caches

    def _pools(self, rules: Rules, ids: int, replicas: int) -> CachePools:
        pages = rules.block_tokens // rules.block
        rooms = [rules.capacity, *(int(tier.capacity // (rules.block_bytes / pages)) for tier in self.below)]
        return chained(ids, rooms, [self.ttl, *(tier.ttl for tier in self.below)], self.replica_tiers, replicas, pages)

    def _paths(self, replicas: int) -> Any:
        replica_paths = paths_of([tier for tier in self.below if not tier.shared])
        return np.concatenate([*[FAST, replica_paths] * replicas, paths_of([tier for tier in self.below if tier.shared])])


def prefix_of(tiers: Sequence[SimulatedTier], usd_per_s: float | None = None) -> tuple[Prefix, float]:
    """Tiers as typed, and the bytes of HBM among them (all there is where none is named)."""
    first = tiers[0]
    has_hbm = first.in_place
    below = tuple(tiers[1:] if has_hbm else tiers)
    if any(tier.in_place for tier in below):
        raise BadValue("--prefix-cache", first.name, "HBM first, and once")
    if usd_per_s is not None:
        for tier in below:
            if holding_of(tier.device) is None:
                tier.device.need("price")
    names = tuple(tier.name for tier in tiers) if has_hbm else ("hbm", *(tier.name for tier in tiers))
    ttl, hbm = (first.ttl, float(first.capacity)) if has_hbm else (math.inf, math.inf)
    return Prefix(below=below, ttl=ttl, names=names, usd_per_s=usd_per_s), hbm


def hit_rates(caches: Sequence[Any], names: Sequence[str]) -> dict[str, Any]:
    """Share of prompt blocks that were found, over all replicas, and by tier; those of preempted requests that return are left out."""
    tally = np.sum([np.asarray(cache.tally) for cache in caches], axis=0)
    lookups, hits, (prompt, cached) = tally[LOOKUPS], tally[HITS:-2], tally[-2:]
    if not lookups:
        return {"hit_rate": None, "hit_rate_tokens": None, "hit_rate_by_tier": None}
    by_tier = {name: float(hit / lookups) for name, hit in zip(names, hits, strict=True)}
    return {"hit_rate": float(hits.sum() / lookups), "hit_rate_tokens": float(cached / prompt), "hit_rate_by_tier": by_tier}

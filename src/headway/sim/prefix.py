"""A prefix cache for replicas: its tiers as pools, what a block weighs, from how many blocks on loading pays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.errors import BadValue
from headway.laws.reload import load_gain_s
from headway.sim.kvcache import ASKED, HITS
from headway.sim.kvcache_arrays import Pools, as_lists, dense_ids
from headway.sim.pacing import Pace
from headway.sim.reload import NEVER, least_by_cost, least_by_time, paths_of
from headway.sim.state import Cache, Rules
from headway.sim.tiers import CacheTier, chained
from headway.sim.traffic.record import Traffic
from headway.tier_cost import holding_of

FAST = (math.inf, 0.0, 0.0, 0.0)  # the path of what is read in place


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefix:
    """The prefix cache of all replicas: the HBM that running requests use, the tiers below it, and when those are worth loading from."""

    below: tuple[CacheTier, ...]  # tiers below the HBM, those that replicas share last
    ttl: float  # of the HBM's blocks
    names: tuple[str, ...]
    usd_per_s: float | None = None  # a replica's chips, where loading is set against their price; None: against their time

    @property
    def own(self) -> int:
        """Tiers that each replica has of its own."""
        return 1 + sum(not one.shared for one in self.below)

    @property
    def shared(self) -> bool:
        """Whether replicas share a tier."""
        return self.own <= len(self.below)

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

    def block_s(self, traffic: Traffic, pace: Pace) -> float:
        """Time to compute a block again, as part of the mean prompt."""
        prompt = float(traffic.prompt.mean())
        return pace.step(0.0, 0.0, prompt, prompt * prompt / 2, 1.0) * traffic.block_tokens / prompt

    def least(self, block_bytes: float, block_s: float) -> Any:
        """By tier below the HBM: the fewest blocks that are worth loading."""
        if self.usd_per_s is None:
            return least_by_time(self.below, block_bytes=block_bytes, block_s=block_s)
        return least_by_cost(self.below, block_bytes=block_bytes, block_s=block_s, usd_per_s=self.usd_per_s, waiting=0.0)

    def notes(self, rules: Rules, traffic: Traffic, pace: Pace) -> tuple[str, ...]:
        """From what length on a prefix is loaded, of each tier below the HBM."""
        better = "sooner" if self.usd_per_s is None else "cheaper"
        found = []
        for one, least in zip(self.below, self.least(rules.block_bytes, self.block_s(traffic, pace)).tolist(), strict=True):
            where = f"{one.name}, of all replicas together" if one.shared else f"{one.name} of each replica"
            if least < NEVER:
                found.append(f"prefix cache: {least * rules.block_tokens} tokens and more are loaded from {where}: {better} than computing")
            else:
                found.append(f"prefix cache: nothing is loaded from {where}: computing is {better}")
        return tuple(found)

    def worth(self, block_bytes: float, block_s: float) -> Any:
        """By tier, the HBM included: the share of computing a block that is saved where it is found."""
        gains = [load_gain_s(1.0, block_s, block_bytes / float(one.read_bw), 0.0) / block_s for one in self.below]
        return np.maximum([1.0, *gains], 0.0)

    def caches(self, rules: Rules, traffic: Traffic, pace: Pace, replicas: int, lists: bool) -> list[tuple[Cache, int]]:
        """Empty caches, one for each replica, and the number of its first pool; in lists for plain Python."""

        def form(values: Any, kind: Any = np.int64) -> Any:
            values = np.ascontiguousarray(values, kind)
            return values.tolist() if lists else values

        depth, block_s, size = 1 + len(self.below), self.block_s(traffic, pace), len(traffic.blocks)
        ids, count = dense_ids(np.concatenate((traffic.blocks, traffic.answers)))
        common = {
            "blocks": form(ids[:size]), "start": form(traffic.block_start), "answers": form(np.append(ids[size:], 0)),
            "answer_start": form(traffic.answer_start), "least": form([0, *self.least(rules.block_bytes, block_s)]),
            "worth": form(self.worth(rules.block_bytes, block_s), float), "expected": form(np.zeros(len(traffic)), float), "ready": (),
        }  # fmt: skip
        together = replicas if self.shared else 1  # replicas whose pools are numbered through
        found: list[tuple[Cache, int]] = []
        for _ in range(replicas // together):
            pools = self._pools(rules, count, together)
            both = {"pools": as_lists(pools) if lists else pools, "paths": form(self._paths(together), float)}
            for number in range(together):
                scratch = {"found": form(np.zeros(depth)), "counted": form(np.zeros(HITS + depth + 2))}
                found.append((Cache(**common, **both, **scratch), number * self.own))
        return found

    def _pools(self, rules: Rules, ids: int, replicas: int) -> Pools:
        pages = rules.block_tokens // rules.block
        rooms = [rules.capacity, *(int(one.capacity // (rules.block_bytes / pages)) for one in self.below)]
        return chained(ids, rooms, [self.ttl, *(one.ttl for one in self.below)], self.own, replicas, pages)

    def _paths(self, replicas: int) -> Any:
        own = paths_of([one for one in self.below if not one.shared])
        return np.concatenate([*[FAST, own] * replicas, paths_of([one for one in self.below if one.shared])])


def prefix_of(tiers: Sequence[CacheTier], usd_per_s: float | None = None) -> tuple[Prefix, float]:
    """Tiers as typed, and the bytes of HBM among them (all there is where none is named)."""
    first = tiers[0]
    named = first.in_place
    below = tuple(tiers[1:] if named else tiers)
    if any(one.in_place for one in below):
        raise BadValue("--prefix-cache", first.name, "HBM first, and once")
    if usd_per_s is not None:
        for one in below:
            if holding_of(one.device) is None:
                one.device.need("price")
    names = tuple(one.name for one in tiers) if named else ("hbm", *(one.name for one in tiers))
    ttl, hbm = (first.ttl, float(first.capacity)) if named else (math.inf, math.inf)
    return Prefix(below=below, ttl=ttl, names=names, usd_per_s=usd_per_s), hbm


def hit_rates(caches: Sequence[Any], names: Sequence[str]) -> dict[str, Any]:
    """Share of prompt blocks that were found, over all replicas, and by tier; those of preempted requests that return are left out."""
    counted = np.sum([np.asarray(one.counted) for one in caches], axis=0)
    asked, hits, (prompt, cached) = counted[ASKED], counted[HITS:-2], counted[-2:]
    if not asked:
        return {"hit_rate": None, "hit_rate_tokens": None, "hit_rate_by_tier": None}
    by_tier = {name: float(hit / asked) for name, hit in zip(names, hits, strict=True)}
    return {"hit_rate": float(hits.sum() / asked), "hit_rate_tokens": float(cached / prompt), "hit_rate_by_tier": by_tier}

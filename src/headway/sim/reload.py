"""What is found in a lower tier: whether taking it up is worth it, and when it has arrived."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from headway.laws.reload import fetch_s, load_weight, path_usd
from headway.sim.kvcache_arrays import BELOW, NOWHERE, POOL, Pools
from headway.sim.tiers import CacheTier, own_tiers
from headway.tier_cost import holding_of

NEVER = np.iinfo(np.int64).max
PATH = 4  # entries of one pool in what `paths_of` makes


def least_by_time(tiers: Sequence[CacheTier], *, block_bytes: float, block_s: float) -> Any:
    """Fewest blocks of each tier that load faster than they are computed again, `block_s` each; what `match` takes as `least`."""
    return np.array([_least(one, block_bytes, block_s, 1.0) for one in tiers], np.int64)


def least_by_cost(tiers: Sequence[CacheTier], *, block_bytes: float, block_s: float, usd_per_s: float, waiting: float = 1.0) -> Any:
    """Fewest blocks of each tier that are cheaper to load than to compute again.

    Computing costs `usd_per_s`, what the replica's chips cost. Loading costs the share of it that they wait, and the tier's devices.
    """
    return np.array([_least(one, block_bytes, block_s, _weight(one, usd_per_s, waiting)) for one in tiers], np.int64)


def _weight(tier: CacheTier, usd_per_s: float, waiting: float) -> float:
    holding = holding_of(tier.device)
    devices = path_usd(holding, tier.capacity) if holding is not None else 0.0
    return float(load_weight(waiting, devices, usd_per_s))


def _least(tier: CacheTier, block_bytes: float, block_s: float, weight: float) -> int:
    """n blocks take latency + n * bytes / bandwidth, against n * block_s."""
    if tier.in_place:
        return 0
    gain = block_s - weight * block_bytes / tier.read_bw
    return max(1, math.ceil(weight * tier.latency / gain)) if gain > 0 else NEVER


def paths_of(tiers: Sequence[CacheTier], replicas: int = 1) -> Any:
    """Flat, for each pool: bytes a second, seconds to the first byte, when its last load ends and was asked for; what `fetched_s` takes."""
    own = own_tiers(tiers)
    every = [*list(tiers[:own]) * replicas, *tiers[own:]]
    return np.array([[np.inf if one.in_place else one.read_bw, 0.0 if one.in_place else one.latency, 0.0, 0.0] for one in every]).ravel()


def fetched_s(paths: Any, pools: Pools, p: int, found: Any, block_bytes: float, now: float) -> float:
    """Time at which a found prefix has arrived in pool p: each tier sends one load after the other, tiers send at once; numba-safe.

    A replica that is behind another waits for what is to be sent before its own, not for the clock of the other.
    """
    ready, q = now, pools.pool[p * POOL + BELOW]
    depth = 1
    while q != NOWHERE:
        if found[depth] > 0:
            asked = max(now, paths[q * PATH + 3])
            ahead = max(0.0, paths[q * PATH + 2] - asked)
            start = now + ahead
            paths[q * PATH + 2] = asked + ahead + found[depth] * block_bytes / paths[q * PATH]
            paths[q * PATH + 3] = asked
            ready = max(ready, start + fetch_s(found[depth] * block_bytes, paths[q * PATH], paths[q * PATH + 1]))
        q = pools.pool[q * POOL + BELOW]
        depth += 1
    return ready

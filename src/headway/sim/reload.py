"""What is found in a lower tier: whether taking it up is worth it, and when it has arrived."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from headway.laws.reload import fetch_s, load_weight, path_usd
from headway.sim.kvcache_arrays import BELOW, NOWHERE, POOL, CachePools
from headway.sim.tiers import SimulatedTier, own_tiers
from headway.tier_cost import holding_of

NEVER = np.iinfo(np.int64).max
PATH = 4  # entries of one pool in what `paths_of` makes


def least_by_time(tiers: Sequence[SimulatedTier], *, block_bytes: float, block_s: float) -> Any:
    """Fewest blocks of each tier that load faster than they are computed again, `block_s` each; what `match` takes as `least`."""
    return np.array([_least(tier, block_bytes, block_s, 1.0) for tier in tiers], np.int64)


def least_by_cost(tiers: Sequence[SimulatedTier], *, block_bytes: float, block_s: float, usd_per_s: float, waiting: float = 1.0) -> Any:
    """Fewest blocks of each tier that are cheaper to load than to compute again.

    Computing costs `usd_per_s`, what the replica's chips cost. Loading costs the share of it that they wait, and the tier's devices.
    """
    return np.array([_least(tier, block_bytes, block_s, _weight(tier, usd_per_s, waiting)) for tier in tiers], np.int64)


def _weight(tier: SimulatedTier, usd_per_s: float, waiting: float) -> float:
    holding = holding_of(tier.device)
    devices = path_usd(holding, tier.capacity) if holding is not None else 0.0
    return float(load_weight(waiting, devices, usd_per_s))


def _least(tier: SimulatedTier, block_bytes: float, block_s: float, weight: float) -> int:
    """n blocks take latency + n * bytes / bandwidth, against n * block_s."""
    if tier.in_place:
        return 0
    gain = block_s - weight * block_bytes / tier.read_bw
    return max(1, math.ceil(weight * tier.latency / gain)) if gain > 0 else NEVER


def paths_of(tiers: Sequence[SimulatedTier], replicas: int = 1) -> Any:
    """Flat, for each pool: bytes a second, seconds to the first byte, when its last load ends and was asked for; what `fetched_s` takes."""
    replica_tiers = own_tiers(tiers)
    pool_tiers = [*list(tiers[:replica_tiers]) * replicas, *tiers[replica_tiers:]]
    return np.array(
        [[np.inf if tier.in_place else tier.read_bw, 0.0 if tier.in_place else tier.latency, 0.0, 0.0] for tier in pool_tiers]
    ).ravel()


def fetched_s(paths: Any, pools: CachePools, pool_id: int, depth_hits: Any, block_bytes: float, now: float) -> float:
    """Time at which a found prefix has arrived in a pool: each tier sends one load after the other, tiers send at once; numba-safe.

    A replica that is behind another waits for what is to be sent before its own, not for the clock of the other.
    """
    ready, lower_id = now, pools.pool[pool_id * POOL + BELOW]
    depth = 1
    while lower_id != NOWHERE:
        if depth_hits[depth] > 0:
            request_time = max(now, paths[lower_id * PATH + 3])
            ahead = max(0.0, paths[lower_id * PATH + 2] - request_time)
            start = now + ahead
            paths[lower_id * PATH + 2] = request_time + ahead + depth_hits[depth] * block_bytes / paths[lower_id * PATH]
            paths[lower_id * PATH + 3] = request_time
            ready = max(ready, start + fetch_s(depth_hits[depth] * block_bytes, paths[lower_id * PATH], paths[lower_id * PATH + 1]))
        lower_id = pools.pool[lower_id * POOL + BELOW]
        depth += 1
    return ready

"""The tiers of a prefix cache as a user writes them, `hbm:60GB,ddr:1TB,flash:30TB:shared` for `5min,1h`, with what their devices can do."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from headway import units
from headway.catalog import Catalog, default_catalog
from headway.errors import BadValue
from headway.quantity import user_input
from headway.sim.kvcache_arrays import NOWHERE, CachePools, make_pools
from headway.tier import MemoryTier
from headway.tier import tier as device_of

FLAG, TTL_FLAG = "--prefix-cache", "--ttl"
EXAMPLE = "tiers with sizes, the fastest first, such as hbm:60GB,ddr:1TB@200GB/s,flash:30TB:shared (own bandwidth; one of all replicas)"
SHARED = ("remote", "store")  # memories that all replicas reach
FOR_ALL = "shared"  # what a user writes behind one that they reach all the same
FOR_EVER = ("inf", "none", "never")


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedTier:
    """One tier of a cache: so much of a kind of device. Of HBM, where running requests read their cache in place, nothing is loaded."""

    name: str  # as the user wrote it
    device: MemoryTier
    capacity: Any  # bytes
    devices: int  # as many as the capacity takes, each whole: bandwidth and wear are those of all of them
    read_bw: Any  # byte/s
    write_bw: Any
    latency: Any  # s, to the first byte
    ttl: float = math.inf  # s that an unused block stays
    shared: bool = False  # one of all replicas, its bandwidth theirs together; so is what lies below

    @property
    def in_place(self) -> bool:
        """Whether what is found here needs no loading."""
        return self.device.memory == "hbm"


def parse_tiers(text: str, ttl: str = "", catalog: Catalog | None = None) -> tuple[SimulatedTier, ...]:
    """The tiers of a text, the fastest first.

    >>> [(tier.name, tier.capacity, tier.read_bw, tier.ttl) for tier in parse_tiers("ddr:1TB,flash:60TB", "5min,1h")]
    [('ddr', 1000000000000.0, 440000000000.0, 300.0), ('flash', 60000000000000.0, 28000000000.0, 3600.0)]
    """
    parts = [part.strip() for part in text.split(",")]
    keeps = parse_ttls(ttl, len(parts)) if ttl else (math.inf,) * len(parts)
    tiers = tuple(_parsed(part, text, keep, catalog) for part, keep in zip(parts, keeps, strict=True))
    tiers = tuple(replace(tier, shared=any(above.shared for above in tiers[: depth + 1])) for depth, tier in enumerate(tiers))
    if tiers[0].in_place and tiers[0].shared:
        raise BadValue(FLAG, text, "HBM of each replica; what can be shared lies below it")
    for above, below in pairwise(tiers):
        if below.in_place:
            raise BadValue(FLAG, text, f"HBM first; {EXAMPLE}")
        if not above.in_place and below.read_bw > above.read_bw:
            raise BadValue(FLAG, text, f"the fastest first; {below.name} reads faster than {above.name}")
        if above.name == below.name:
            raise BadValue(FLAG, text, f"each tier once; {below.name} stands twice")
    return tiers


def _parsed(part: str, text: str, ttl: float, catalog: Catalog | None) -> SimulatedTier:
    name, colon, rest = part.partition(":")
    rest, suffix, whose = rest.partition(":")
    size, at, speed = rest.partition("@")
    if suffix and whose.strip() != FOR_ALL:
        raise BadValue(FLAG, text, EXAMPLE)
    if not colon or not name.strip() or not size.strip() or (at and not speed.strip()):
        raise BadValue(FLAG, text, EXAMPLE)
    capacity = units.parse(size, "byte", f"{FLAG} {name.strip()}")
    bandwidth = units.parse(speed, "byte/s", f"{FLAG} {name.strip()}") if at else None
    if not capacity > 0 or (bandwidth is not None and not bandwidth > 0):
        raise BadValue(FLAG, part, f"a size and a bandwidth above 0; {EXAMPLE}")
    device = device_of(name, catalog or default_catalog())
    tier = cache_tier(device, user_input(capacity, "capacity", "byte"), name=name.strip(), bandwidth=bandwidth, ttl=ttl)
    return replace(tier, shared=tier.shared or bool(suffix))


def cache_tier(
    device: MemoryTier, capacity: Any, *, name: str = "", bandwidth: float | None = None, ttl: float = math.inf
) -> SimulatedTier:
    """A tier of so many bytes on a kind of device; `bandwidth` replaces that of all its devices, in both directions."""
    count = max(1, math.ceil(capacity / device.capacity)) if device.capacity is not None else 1
    if bandwidth is None:
        bandwidths = {"read_bw": count * device.need("read_bw"), "write_bw": count * device.need("write_bw")}
    else:
        bandwidths = dict.fromkeys(("read_bw", "write_bw"), user_input(bandwidth, "bandwidth", "byte/s"))
    latency = device.need("latency_high")
    return SimulatedTier(
        name=name or device.name, device=device, capacity=capacity, devices=count, latency=latency, ttl=ttl,
        shared=device.memory in SHARED, **bandwidths,
    )  # fmt: skip


def parse_ttls(text: str, tiers: int) -> tuple[float, ...]:
    """How long each tier keeps what nobody uses, from `5min` (all of them), one time for each, or one for each but the last.

    >>> parse_ttls("5min", 2), parse_ttls("5min,1h", 3), parse_ttls("5min, never", 2)
    ((300.0, 300.0), (300.0, 3600.0, inf), (300.0, inf))
    """
    ttls = tuple(math.inf if part.strip().lower() in FOR_EVER else units.parse(part, "s", TTL_FLAG) for part in text.split(","))
    if any(not ttl > 0 for ttl in ttls) or any(after < before for before, after in pairwise(ttls)):
        raise BadValue(TTL_FLAG, text, "times above 0 s, none shorter than that of the tier above, such as 5min,1h or 5min,never")
    if len(ttls) == 1:
        return ttls * tiers
    if len(ttls) not in (tiers, tiers - 1):
        raise BadValue(TTL_FLAG, text, f"one time, or one for each of the {tiers} tiers; the last may be left out and keeps for ever")
    return ttls + (math.inf,) * (tiers - len(ttls))


def pools_of(tiers: Sequence[SimulatedTier], ids: int, block_bytes: float, *, replicas: int = 1, pages: int = 1) -> CachePools:
    """Empty pools for blocks of so many bytes: tiers of its own for each replica, and those that all share.

    The fastest pool of replica r is number `r * own_tiers(tiers)`. A block takes `pages` pages in each.
    """
    if not block_bytes > 0 or replicas < 1:
        raise BadValue("kv cache", f"{block_bytes} bytes a block, {replicas} replicas", "both above 0")
    replica_tiers = own_tiers(tiers)
    if not replica_tiers:
        raise BadValue("kv cache", [tier.name for tier in tiers], "a tier of each replica's own above those that all share")
    rooms = [math.floor(tier.capacity / (block_bytes / pages)) for tier in tiers]
    return chained(ids, rooms, [tier.ttl for tier in tiers], replica_tiers, replicas, pages)


def chained(ids: int, rooms: Sequence[int], ttls: Sequence[float], replica_tiers: int, replicas: int, pages: int) -> CachePools:
    """Empty pools of so many pages by tier: the first `replica_tiers` tiers for each replica, and one chain of those below for all."""
    shared = replica_tiers * replicas if len(rooms) > replica_tiers else NOWHERE
    below = [shared if index % replica_tiers == replica_tiers - 1 else index + 1 for index in range(replica_tiers * replicas)]
    below += (
        [*range(replica_tiers * replicas + 1, replica_tiers * replicas + len(rooms) - replica_tiers), NOWHERE]
        if len(rooms) > replica_tiers
        else []
    )
    room, ttl = ([*list(values[:replica_tiers]) * replicas, *values[replica_tiers:]] for values in (rooms, ttls))
    return make_pools(ids, room, pages=pages, ttl_s=ttl, below=below, shared=shared)


def own_tiers(tiers: Sequence[SimulatedTier]) -> int:
    """How many tiers each replica has of its own."""
    return next((depth for depth, tier in enumerate(tiers) if tier.shared), len(tiers))

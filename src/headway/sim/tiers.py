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
from headway.quantity import given
from headway.sim.kvcache_arrays import NOWHERE, Pools, make_pools
from headway.tier import Tier
from headway.tier import tier as device_of

FLAG, TTL_FLAG = "--prefix-cache", "--ttl"
EXAMPLE = "tiers with sizes, the fastest first, such as hbm:60GB,ddr:1TB@200GB/s,flash:30TB:shared (own bandwidth; one of all replicas)"
SHARED = ("remote", "store")  # memories that all replicas reach
FOR_ALL = "shared"  # what a user writes behind one that they reach all the same
FOR_EVER = ("inf", "none", "never")


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheTier:
    """One tier of a cache: so much of a kind of device. Of HBM, where running requests read their cache in place, nothing is loaded."""

    name: str  # as the user wrote it
    device: Tier
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


def parse_tiers(text: str, ttl: str = "", catalog: Catalog | None = None) -> tuple[CacheTier, ...]:
    """The tiers of a text, the fastest first.

    >>> [(one.name, one.capacity, one.read_bw, one.ttl) for one in parse_tiers("ddr:1TB,flash:60TB", "5min,1h")]
    [('ddr', 1000000000000.0, 440000000000.0, 300.0), ('flash', 60000000000000.0, 28000000000.0, 3600.0)]
    """
    parts = [part.strip() for part in text.split(",")]
    keeps = parse_ttls(ttl, len(parts)) if ttl else (math.inf,) * len(parts)
    found = tuple(_parsed(part, text, keep, catalog) for part, keep in zip(parts, keeps, strict=True))
    found = tuple(replace(one, shared=any(above.shared for above in found[: depth + 1])) for depth, one in enumerate(found))
    if found[0].in_place and found[0].shared:
        raise BadValue(FLAG, text, "HBM of each replica; what can be shared lies below it")
    for above, below in pairwise(found):
        if below.in_place:
            raise BadValue(FLAG, text, f"HBM first; {EXAMPLE}")
        if not above.in_place and below.read_bw > above.read_bw:
            raise BadValue(FLAG, text, f"the fastest first; {below.name} reads faster than {above.name}")
        if above.name == below.name:
            raise BadValue(FLAG, text, f"each tier once; {below.name} stands twice")
    return found


def _parsed(part: str, text: str, ttl: float, catalog: Catalog | None) -> CacheTier:
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
    found = cache_tier(device, given(capacity, "capacity", "byte"), name=name.strip(), bandwidth=bandwidth, ttl=ttl)
    return replace(found, shared=found.shared or bool(suffix))


def cache_tier(device: Tier, capacity: Any, *, name: str = "", bandwidth: float | None = None, ttl: float = math.inf) -> CacheTier:
    """A tier of so many bytes on a kind of device; `bandwidth` replaces that of all its devices, in both directions."""
    count = max(1, math.ceil(capacity / device.capacity)) if device.capacity is not None else 1
    if bandwidth is None:
        bandwidths = {"read_bw": count * device.need("read_bw"), "write_bw": count * device.need("write_bw")}
    else:
        bandwidths = dict.fromkeys(("read_bw", "write_bw"), given(bandwidth, "bandwidth", "byte/s"))
    latency = device.need("latency_high")
    return CacheTier(
        name=name or device.name, device=device, capacity=capacity, devices=count, latency=latency, ttl=ttl,
        shared=device.memory in SHARED, **bandwidths,
    )  # fmt: skip


def parse_ttls(text: str, tiers: int) -> tuple[float, ...]:
    """How long each tier keeps what nobody uses, from `5min` (all of them), one time for each, or one for each but the last.

    >>> parse_ttls("5min", 2), parse_ttls("5min,1h", 3), parse_ttls("5min, never", 2)
    ((300.0, 300.0), (300.0, 3600.0, inf), (300.0, inf))
    """
    found = tuple(math.inf if part.strip().lower() in FOR_EVER else units.parse(part, "s", TTL_FLAG) for part in text.split(","))
    if any(not one > 0 for one in found) or any(after < before for before, after in pairwise(found)):
        raise BadValue(TTL_FLAG, text, "times above 0 s, none shorter than that of the tier above, such as 5min,1h or 5min,never")
    if len(found) == 1:
        return found * tiers
    if len(found) not in (tiers, tiers - 1):
        raise BadValue(TTL_FLAG, text, f"one time, or one for each of the {tiers} tiers; the last may be left out and keeps for ever")
    return found + (math.inf,) * (tiers - len(found))


def pools_of(tiers: Sequence[CacheTier], ids: int, block_bytes: float, *, replicas: int = 1, pages: int = 1) -> Pools:
    """Empty pools for blocks of so many bytes: tiers of its own for each replica, and those that all share.

    The fastest pool of replica r is number `r * own_tiers(tiers)`. A block takes `pages` pages in each.
    """
    if not block_bytes > 0 or replicas < 1:
        raise BadValue("kv cache", f"{block_bytes} bytes a block, {replicas} replicas", "both above 0")
    own = own_tiers(tiers)
    if not own:
        raise BadValue("kv cache", [one.name for one in tiers], "a tier of each replica's own above those that all share")
    rooms = [math.floor(one.capacity / (block_bytes / pages)) for one in tiers]
    return chained(ids, rooms, [one.ttl for one in tiers], own, replicas, pages)


def chained(ids: int, rooms: Sequence[int], ttls: Sequence[float], own: int, replicas: int, pages: int) -> Pools:
    """Empty pools of so many pages by tier: the first `own` tiers for each replica, and one chain of those below for all."""
    shared = own * replicas if len(rooms) > own else NOWHERE
    below = [shared if index % own == own - 1 else index + 1 for index in range(own * replicas)]
    below += [*range(own * replicas + 1, own * replicas + len(rooms) - own), NOWHERE] if len(rooms) > own else []
    room, ttl = ([*list(each[:own]) * replicas, *each[own:]] for each in (rooms, ttls))
    return make_pools(ids, room, pages=pages, ttl_s=ttl, below=below, shared=shared)


def own_tiers(tiers: Sequence[CacheTier]) -> int:
    """How many tiers each replica has of its own."""
    return next((depth for depth, one in enumerate(tiers) if one.shared), len(tiers))

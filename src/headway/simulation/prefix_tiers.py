"""Tiers of a prefix cache: parsed from text, as pools of a replica, and the gain and arrival time of loads from lower tiers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from headway.core import units
from headway.core.catalog import Catalog, default_catalog
from headway.core.errors import BadValue
from headway.core.quantity import user_input
from headway.hardware.memory_tier import MemoryTier, holding_of
from headway.hardware.memory_tier import tier as device_of
from headway.laws.tiers import fetch_s, load_gain_s
from headway.simulation.kv_pools import BELOW, HITS, LOOKUPS, NOWHERE, POOL, CachePools, Cells, as_lists, dense_ids, make_pools
from headway.simulation.state import NONE, CacheState, Rules
from headway.simulation.step_time import StepPace
from headway.simulation.traffic.requests import Traffic

FLAG, TTL_FLAG = "--prefix-cache", "--ttl"
EXAMPLE = "tiers with sizes, the fastest first, such as hbm:60GB,ddr:1TB@200GB/s,flash:30TB:shared (own bandwidth; one of all replicas)"
SHARED = ("remote", "store")  # memories shared by all replicas
FOR_ALL = "shared"  # suffix typed for another memory that they share
FOR_EVER = ("inf", "none", "never")


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedTier:
    """One tier of a cache: a capacity on a kind of device. Running requests read HBM in place, without loading."""

    name: str  # name as typed by the user
    device: MemoryTier
    capacity: Any  # bytes
    devices: int  # whole devices that the capacity needs; bandwidth and wear count all devices
    read_bw: Any  # byte/s
    write_bw: Any
    latency: Any  # s, to the first byte
    ttl: float = math.inf  # seconds that an unused block stays
    shared: bool = False  # shared by all replicas, bandwidth included, as are all tiers below it

    @property
    def in_place(self) -> bool:
        """Whether hits in this tier need no loading."""
        return self.device.memory == "hbm"


def parse_tiers(text: str, ttl: str = "", catalog: Catalog | None = None) -> tuple[SimulatedTier, ...]:
    """The tiers in a text, fastest first.

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
    """A tier of `capacity` bytes on a kind of device; `bandwidth` replaces its devices' total in both directions."""
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
    """Seconds that each tier keeps unused blocks, from `5min` (all tiers), a time per tier, or a time for each tier but the last.

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
    """Empty pools for blocks of `block_bytes` bytes: separate tiers for each replica, then the shared tiers.

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
    """Empty pools with `rooms` pages by tier: the first `replica_tiers` tiers for each replica, and a shared chain of the tiers below."""
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
    """Number of tiers that replicas do not share."""
    return next((depth for depth, tier in enumerate(tiers) if tier.shared), len(tiers))


NEVER = np.iinfo(np.int64).max
PATH = 4  # entries per pool in the result of `paths_of`


def least_by_time(tiers: Sequence[SimulatedTier], *, block_bytes: float, block_s: float) -> Any:
    """Fewest blocks of each tier that load faster than recomputation at `block_s` per block; `match` takes it as `least`."""
    return np.array([_least(tier, block_bytes, block_s, 1.0) for tier in tiers], np.int64)


def least_by_cost(tiers: Sequence[SimulatedTier], *, block_bytes: float, block_s: float, usd_per_s: float, waiting: float = 1.0) -> Any:
    """Fewest blocks of each tier that are cheaper to load than to recompute.

    Computing costs `usd_per_s`, the price of the replica's chips. Loading costs the share `waiting` of it, and the tier's devices.
    """
    return np.array([_least(tier, block_bytes, block_s, _weight(tier, usd_per_s, waiting)) for tier in tiers], np.int64)


def _weight(tier: SimulatedTier, usd_per_s: float, waiting: float) -> float:
    holding = holding_of(tier.device)
    devices = holding * tier.capacity if holding is not None else 0.0
    return float(waiting + devices / usd_per_s)


def _least(tier: SimulatedTier, block_bytes: float, block_s: float, weight: float) -> int:
    """Fewest blocks n for which latency + n * bytes / bandwidth, weighted, is below n * block_s."""
    if tier.in_place:
        return 0
    gain = block_s - weight * block_bytes / tier.read_bw
    return max(1, math.ceil(weight * tier.latency / gain)) if gain > 0 else NEVER


def paths_of(tiers: Sequence[SimulatedTier], replicas: int = 1) -> Any:
    """Flat paths for `fetched_s`, per pool: bytes per second, latency in s, end time and request time of the last load."""
    replica_tiers = own_tiers(tiers)
    pool_tiers = [*list(tiers[:replica_tiers]) * replicas, *tiers[replica_tiers:]]
    return np.array(
        [[np.inf if tier.in_place else tier.read_bw, 0.0 if tier.in_place else tier.latency, 0.0, 0.0] for tier in pool_tiers]
    ).ravel()


def fetched_s(paths: Cells, pools: CachePools, pool_id: int, depth_hits: Cells, block_bytes: float, now: float) -> float:
    """Time at which a cached prefix has arrived in a pool; loads of one tier queue, tiers load in parallel; numba-safe.

    A replica whose clock is behind waits for earlier loads to finish, not for the other replica's clock.
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


FAST = (math.inf, 0.0, 0.0, 0.0)  # path of a tier read in place


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefix:
    """The prefix cache of all replicas: HBM of the running requests, the tiers below, and the criterion for loading from them."""

    below: tuple[SimulatedTier, ...]  # tiers below the HBM, shared tiers last
    ttl: float  # time to live of unused HBM blocks, s
    names: tuple[str, ...]
    usd_per_s: float | None = None  # price of a replica's chips, to judge loading by cost; None: by time

    @property
    def replica_tiers(self) -> int:
        """Number of tiers below the HBM that replicas do not share."""
        return 1 + sum(not tier.shared for tier in self.below)

    @property
    def shared(self) -> bool:
        """Whether replicas share a tier."""
        return self.replica_tiers <= len(self.below)

    def rules(self, rules: Rules, traffic: Traffic, token_bytes: float, hbm: float) -> Rules:
        """The rules with KV blocks that divide the traffic's blocks, and at most `hbm` bytes of HBM."""
        if not traffic.has_blocks:
            raise BadValue("--prefix-cache", "traffic without blocks", "a trace with hash_ids, or --turns")
        block = math.gcd(rules.block, traffic.block_tokens)
        tokens = min(rules.capacity * rules.block, hbm / token_bytes if token_bytes else math.inf)
        return rules._replace(
            block=block, capacity=int(tokens // block), caching=1, block_tokens=traffic.block_tokens,
            block_bytes=token_bytes * traffic.block_tokens,
        )  # fmt: skip

    def room_notes(self, before: Rules, rules: Rules, hbm: float) -> tuple[str, ...]:
        """Note on the KV memory that a stated size of HBM leaves, for requests in service and found prefixes together."""
        if not math.isfinite(hbm):
            return ()
        hbm_tokens, free_tokens = (scheduling.capacity * scheduling.block for scheduling in (rules, before))
        if hbm_tokens <= 0 < free_tokens:
            raise BadValue("--prefix-cache", f"hbm:{hbm:g} bytes", f"room for a block of {rules.block} tokens at least")
        if hbm_tokens < free_tokens - before.block:
            note = (
                f"its {hbm_tokens:,} tokens are the whole KV cache of a replica, requests in service included, in place of {free_tokens:,}"
            )
            return (f"prefix cache: {note}; without a tier hbm all of them are used",)
        if hbm > rules.block_bytes / rules.block_tokens * (free_tokens + before.block):
            size = f"the KV cache of {free_tokens:,} tokens is {rules.block_bytes / rules.block_tokens * free_tokens / 1e9:.3g} GB"
            return (f"prefix cache: hbm is more than there is: {size}",)
        return ()

    def block_s(self, traffic: Traffic, pace: StepPace) -> float:
        """Seconds to recompute a block, as part of the mean prompt."""
        prompt = float(traffic.prompt.mean())
        return pace.step(0.0, 0.0, prompt, prompt * prompt / 2, 1.0) * traffic.block_tokens / prompt

    def least(self, block_bytes: float, block_s: float) -> Any:
        """Fewest blocks worth loading, by tier below the HBM."""
        if self.usd_per_s is None:
            return least_by_time(self.below, block_bytes=block_bytes, block_s=block_s)
        return least_by_cost(self.below, block_bytes=block_bytes, block_s=block_s, usd_per_s=self.usd_per_s, waiting=0.0)

    def notes(self, rules: Rules, traffic: Traffic, pace: StepPace) -> tuple[str, ...]:
        """Notes on the shortest prefix that each tier below the HBM loads."""
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
        """Share of a block's prefill time that a hit saves, by tier, HBM included."""
        gains = [load_gain_s(1.0, block_s, block_bytes / float(tier.read_bw), 0.0) / block_s for tier in self.below]
        return np.maximum([1.0, *gains], 0.0)

    def caches(self, rules: Rules, traffic: Traffic, pace: StepPace, replicas: int, lists: bool) -> list[tuple[CacheState, int]]:
        """An empty cache and the number of its first pool for each replica; `lists` for plain Python."""

        def form(values: ArrayLike, kind: type = np.int64) -> Any:
            values = np.ascontiguousarray(values, kind)
            return values.tolist() if lists else values

        depth, block_s = 1 + len(self.below), self.block_s(traffic, pace)
        fields, count = ids_of(traffic)
        formed = {name: form(values) for name, values in fields.items()}
        formed["answers"] = formed["blocks"] if traffic.first_own is not None else formed["answers"]  # one room for both
        common = {
            **formed, "common": NONE if traffic.first_own is None else traffic.common,
            "least": form([0, *self.least(rules.block_bytes, block_s)]),
            "saved_shares": form(self.saved_shares(rules.block_bytes, block_s), float),
            "expected": form(np.zeros(len(traffic)), float), "ready": (),
        }  # fmt: skip
        together = replicas if self.shared else 1  # replicas with one numbering of pools
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


def ids_of(traffic: Traffic) -> tuple[dict[str, Any], int]:
    """The fields of a cache that hold the ids of blocks, and how many ids there are: one by one, or room to spell those of one request."""
    nothing = np.zeros(1, np.int64)
    if traffic.first_own is not None:
        filled = (traffic.prompt + traffic.output) // traffic.block_tokens
        room = np.zeros(int(filled.max(initial=0)) + 1, np.int64)
        fields = {"blocks": room, "start": nothing, "answers": room, "answer_start": nothing, "first_own": traffic.first_own}
        return fields, int((traffic.first_own + filled).max(initial=0))
    size = len(traffic.blocks)
    ids, count = dense_ids(np.concatenate((traffic.blocks, traffic.answers)))
    fields = {"blocks": ids[:size], "start": traffic.block_start, "answers": np.append(ids[size:], 0), "answer_start": traffic.answer_start}
    return fields | {"first_own": nothing}, count


def prefix_of(tiers: Sequence[SimulatedTier], usd_per_s: float | None = None) -> tuple[Prefix, float]:
    """The prefix cache of tiers as typed, and the bytes of HBM among them (inf if not given)."""
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
    """Hit rate of prompt blocks over all replicas, and by tier; lookups of returning preempted requests are left out."""
    tally = np.sum([np.asarray(cache.tally) for cache in caches], axis=0)
    lookups, hits, (prompt, cached) = tally[LOOKUPS], tally[HITS:-2], tally[-2:]
    if not lookups:
        return {"hit_rate": None, "hit_rate_tokens": None, "hit_rate_by_tier": None}
    by_tier = {name: float(hit / lookups) for name, hit in zip(names, hits, strict=True)}
    return {"hit_rate": float(hits.sum() / lookups), "hit_rate_tokens": float(cached / prompt), "hit_rate_by_tier": by_tier}

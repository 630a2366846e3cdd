"""How much of each tier a service's cache takes: by the room that a time to live asks for, and by what hits and new tokens move."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headway.cache_ask import CacheService
from headway.cache_place import CacheTier
from headway.cache_rows import SizingRow
from headway.laws import reuse, sums, wear
from headway.laws import tiers as laws


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenFlow:
    """Tokens a second, found and made."""

    hits: Any
    new: Any


def flow_of(service: CacheService, prompt: Any, output: Any) -> TokenFlow:
    """The rates of a service, or what its requests amount to."""
    if service.rate is None:
        return TokenFlow(hits=service.hit_tokens, new=service.new_tokens)
    hit, misses = reuse.hit_tokens(prompt, service.hit_rate), reuse.missed_tokens(prompt, service.hit_rate)
    return TokenFlow(hits=laws.hit_token_rate(service.rate, hit), new=laws.new_token_rate(service.rate, misses, output))


def sized(place: CacheTier, hold: Any, flow: TokenFlow, kv: Any) -> SizingRow:
    """One tier for one time to live."""
    read, write_traffic = laws.cache_traffic(flow.hits, kv), laws.cache_traffic(flow.new, kv)
    size = laws.cache_size(write_traffic, hold)
    known = {"hold": hold, "hit_tokens": flow.hits, "new_tokens": flow.new, "kv_bytes": kv, "tier": place.name, "device": place.device}
    known |= {"cache_read": read, "cache_written": write_traffic, "cache_bytes": size}
    if place.capacity is None or place.read_bw is None:
        return SizingRow(**known)
    traffic = sums.total((read, write_traffic))
    room, moving = laws.devices_by_capacity(size, place.capacity), laws.devices_by_bandwidth(traffic, place.read_bw)
    known |= {"devices_by_capacity": room, "devices_by_bandwidth": moving, "bound_by": "capacity" if room >= moving else "bandwidth"}
    count = laws.devices_for(size, traffic, place.capacity, place.read_bw)
    uses = laws.uses_per_hold(traffic, write_traffic)
    known |= {"devices": count, "balanced_hold_s": laws.balanced_hold_s(place.capacity, place.read_bw, uses)}
    if place.write_bw is not None:
        known["devices_by_turns"] = laws.devices_by_turns(read, write_traffic, place.read_bw, place.write_bw)
    if place.rated_bw is not None:
        known["devices_by_rating"] = laws.devices_by_bandwidth(traffic, laws.sustained_bandwidth(place.read_bw, place.rated_bw))
    for end, key in (("value", "devices_usd"), ("low", "devices_usd_lo"), ("high", "devices_usd_hi")):
        price = getattr(place.price, end)
        known[key] = None if price is None else laws.devices_usd(count, place.capacity, price)
    return SizingRow(**known, worn_out_s=_worn_out_s(place, write_traffic, count))


def _worn_out_s(place: CacheTier, write_traffic: Any, count: Any) -> Any:
    """How long flash lasts, all of its devices written to alike."""
    if place.drive_writes is None or place.rated_life is None:
        return None
    endurance_bytes = wear.endurance(laws.held_by(count, place.capacity), place.drive_writes, place.rated_life)
    return wear.worn_out_s(endurance_bytes, write_traffic)

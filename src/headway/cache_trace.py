"""The bill of a prefix cache over a trace: holding and wear in a tier, loading what is found, computing what is not. Glue over laws/."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from headway.cache import FREE, Subject
from headway.cache_place import Place
from headway.cache_rows import Kept
from headway.laws import cache_bill as laws
from headway.laws.money import cached_token_s
from headway.laws.reload import load_usd, token_bytes_usd, token_time_usd
from headway.laws.service_day import usd_per_mtok_of
from headway.laws.tiers import cache_traffic, devices_for, held_by, sustained_bandwidth
from headway.price_sheet import Rates
from headway.quantity import known

PAID = known(0.0, "devices paid already", "USD/s", "constant", "their bandwidth is bought with their room")


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """What one pass over a trace counted for one time to live and room."""

    trace: str
    ttl: Any  # s; None: for ever
    room: Any  # bytes; None: without a limit
    requests: Any
    asked: Any  # tokens
    found: Any  # tokens
    held_s: Any  # tokens held x time, without a limit on room
    peak: Any  # tokens, likewise
    span: Any  # s


def kept(counted: Counted, kv: Any = None) -> Kept:
    """Hits and what is held; in bytes where the model is known."""
    mean = laws.mean_held_tokens(counted.held_s, counted.span)
    row = Kept(
        trace=counted.trace, ttl=counted.ttl, room=counted.room, requests=counted.requests, asked_tokens=counted.asked,
        found_tokens=counted.found, hit_share=laws.hit_share_of(counted.found, counted.asked), held_tokens_mean=mean,
        held_tokens_peak=counted.peak,
    )  # fmt: skip
    if kv is None:
        return row
    return replace(row, held_bytes_mean=laws.held_bytes(mean, kv), held_bytes_peak=laws.held_bytes(counted.peak, kv))


def billed(counted: Counted, place: Place, waiting: Any, subject: Subject) -> Kept:
    """The same with the bill in one tier; what a tier has no fact for leaves the bill open."""
    row = replace(kept(counted, subject.kv), tier=place.name, device=place.device)
    again = token_time_usd(subject.chip_time.value, subject.price.value)
    load, room = _waited(place, waiting, subject), _paid_room(counted, row, place, subject)
    if load is None or room is None or place.wear.value is None:
        return row
    left = laws.tokens_left(counted.asked, counted.found)
    parts = {
        "usd_held": laws.room_usd(room, counted.span, place.holding.value),
        "usd_worn": laws.tokens_usd(left, token_bytes_usd(subject.kv, place.wear.value)),
        "usd_loaded": laws.tokens_usd(counted.found, load),
        "usd_computed": laws.tokens_usd(left, again),
    }
    whole = laws.cache_usd(*parts.values())
    return replace(
        row, **parts, paid_room=room, usd_prompts=whole, usd_per_mtok_prompt=usd_per_mtok_of(whole, counted.asked),
        usd_per_request_prompt=laws.usd_each(whole, counted.requests),
        saved_share=laws.saved_share(whole, laws.tokens_usd(counted.asked, again)),
    )  # fmt: skip


def _paid_room(counted: Counted, row: Kept, place: Place, subject: Subject) -> Any:
    """Bytes of devices that are paid for: the room, or more where what is found and what is written want their bandwidth."""
    room = counted.room if counted.room is not None else row.held_bytes_mean
    if place.in_place:
        return room
    if place.capacity is None or place.read_bw is None:
        return None
    traffic = cache_traffic(laws.token_rate(counted.asked, counted.span), subject.kv)
    bandwidth = place.read_bw if place.rated_bw is None else sustained_bandwidth(place.read_bw, place.rated_bw)
    return held_by(devices_for(room, traffic, place.capacity, bandwidth), place.capacity)


def _waited(place: Place, waiting: Any, subject: Subject) -> Any:
    """What loading a token costs beside the devices: the chips while they wait."""
    if place.in_place:
        return FREE
    if place.read_bw is None:
        return None
    return load_usd(cached_token_s(subject.kv, place.read_bw), PAID, waiting, subject.price.value)


def listed(row: Kept, counted: Counted, rates: Rates) -> Kept:
    """The row with what a price sheet asks for this time to live; unchanged where it sells no such one."""
    write = next((one.rate for one in rates.cache_writes if one.ttl_s == counted.ttl), None)
    if write is None or rates.cache_read is None:
        return row
    whole = laws.listed_usd(laws.tokens_left(counted.asked, counted.found), write, counted.found, rates.cache_read)
    plain = laws.tokens_usd(counted.asked, rates.input)
    each = usd_per_mtok_of(whole, counted.asked)
    return replace(row, sheet_usd_per_mtok=each, sheet_saved_share=laws.saved_share(whole, plain))

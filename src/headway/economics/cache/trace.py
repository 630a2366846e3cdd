"""Bill of a prefix cache over a trace: holding and wear in a tier, loading hits, computing misses. The arithmetic is in laws/."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from headway.core.quantity import known
from headway.core.units import BytePerToken, Number
from headway.economics.cache.placement import FREE, CacheSubject
from headway.economics.cache.records import TraceRow
from headway.economics.cache.tiers import CacheTier
from headway.economics.sheets.sheet import Rates
from headway.laws.economics.cost import cached_token_s, saved_share, usd_per_mtok_of

PREPAID_RATE = known(0.0, "devices paid already", "USD/s", "constant", "their bandwidth is bought with their room")


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceCounts:
    """Counts of one pass over a trace, for one time to live and capacity."""

    trace: str
    ttl: Any  # s; None: forever
    room: Any  # bytes; None: unlimited
    requests: Any
    prompt_tokens: Any  # tokens
    hit_tokens: Any  # tokens
    held_s: Any  # token-seconds held, unlimited capacity
    peak: Any  # most tokens held, unlimited capacity
    span: Any  # s


def usage_row(counts: TraceCounts, kv: BytePerToken = None) -> TraceRow:
    """The row of hits and held tokens; also in bytes if `kv` is given."""
    mean = counts.held_s / counts.span
    row = TraceRow(
        trace=counts.trace, ttl=counts.ttl, room=counts.room, requests=counts.requests, asked_tokens=counts.prompt_tokens,
        found_tokens=counts.hit_tokens, hit_share=counts.hit_tokens / counts.prompt_tokens, held_tokens_mean=mean,
        held_tokens_peak=counts.peak,
    )  # fmt: skip
    if kv is None:
        return row
    return replace(row, held_bytes_mean=mean * kv, held_bytes_peak=counts.peak * kv)


def billed(counts: TraceCounts, place: CacheTier, waiting: Number, subject: CacheSubject) -> TraceRow:
    """The row of hits and held bytes with the bill in one tier; no bill if a fact of the tier is missing."""
    row = replace(usage_row(counts, subject.kv), tier=place.name, device=place.device)
    again = subject.chip_time.value * subject.price.value
    load, room = _waited(place, waiting, subject), _paid_room(counts, row, place, subject)
    if load is None or room is None or place.wear.value is None:
        return row
    misses = counts.prompt_tokens - counts.hit_tokens
    parts = {
        "usd_held": room * counts.span * place.holding.value,
        "usd_worn": misses * (subject.kv * place.wear.value),
        "usd_loaded": counts.hit_tokens * load,
        "usd_computed": misses * again,
    }
    total_usd = sum(parts.values())
    return replace(
        row, **parts, paid_room=room, usd_prompts=total_usd, usd_per_mtok_prompt=usd_per_mtok_of(total_usd, counts.prompt_tokens),
        usd_per_request_prompt=total_usd / counts.requests,
        saved_share=saved_share(total_usd, counts.prompt_tokens * again),
    )  # fmt: skip


def _paid_room(counts: TraceCounts, row: TraceRow, place: CacheTier, subject: CacheSubject) -> Any:
    """Bytes of devices to pay for: the capacity, or more if hits and writes need the bandwidth."""
    room = counts.room if counts.room is not None else row.held_bytes_mean
    if place.in_place:
        return room
    if place.capacity is None or place.read_bw is None:
        return None
    traffic = counts.prompt_tokens / counts.span * subject.kv
    return max(room / place.capacity, traffic / place.sustained_bw) * place.capacity


def _waited(place: CacheTier, waiting: Number, subject: CacheSubject) -> Any:
    """Cost of loading a token besides the devices, in USD: chips that wait."""
    if place.in_place:
        return FREE
    if place.read_bw is None:
        return None
    return cached_token_s(subject.kv, place.read_bw) * (PREPAID_RATE + waiting * subject.price.value)


def with_list_price(row: TraceRow, counts: TraceCounts, rates: Rates) -> TraceRow:
    """The row with a price sheet's bill for its time to live; unchanged if the sheet does not sell that time."""
    write = next((cache_write.rate for cache_write in rates.cache_writes if cache_write.ttl_s == counts.ttl), None)
    if write is None or rates.cache_read is None:
        return row
    bill_usd = (counts.prompt_tokens - counts.hit_tokens) * write + counts.hit_tokens * rates.cache_read
    plain = counts.prompt_tokens * rates.input
    usd_per_mtok = usd_per_mtok_of(bill_usd, counts.prompt_tokens)
    return replace(row, sheet_usd_per_mtok=usd_per_mtok, sheet_saved_share=saved_share(bill_usd, plain))

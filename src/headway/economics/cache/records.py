"""Records of cache questions and answers: the meaning and unit of each field."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any

from headway.core.schema import Field
from headway.performance.assumptions import HIT_RATE
from headway.performance.workload import MOST

COUNT = Field("token", integer=True, low=1, open_low=False, high=MOST)


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheHold:
    """How long a prefix is held, and how often it is used."""

    hold: Annotated[Any, Field("s", high=1e12, help="time for which a prefix is held: 5min,1h,24h")]
    reuse: Annotated[Any, Field(open_low=False, high=1, help="probability that the prefix is used within the hold")] = 1
    uses: Annotated[Any, Field(high=1e9, help="reads and writes of the bytes held, within one hold")] = 1
    waiting: Annotated[Any, Field(open_low=False, high=1, help="share of the loading time in which the chip waits (0: hidden)")] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheService:
    """Cache traffic of a service: token rates of hits and writes, or a request rate with a hit rate."""

    hit_tokens: Annotated[Any, Field("token/s", high=1e18, help="prompt tokens found in the cache, over all: 342G/d")] = None
    new_tokens: Annotated[Any, Field("token/s", high=1e18, help="tokens whose KV is made and stored: missed prompt tokens and answers")] = (
        None
    )
    rate: Annotated[Any, Field("1/s", high=MOST, help="requests per second, with --prompt, --output and --hit-rate instead of the two")] = (
        None
    )
    hit_rate: Annotated[Any, Field(open_low=False, high=1, spellings=HIT_RATE, help="share of prompt tokens found in the cache")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefillCost:
    """Inputs that replace the estimated cost of prefill: MFU, measured rate or active parameters."""

    prompt: Annotated[Any, replace(COUNT, help="prompt tokens of a request, for the estimate of prefill (default 8k)")] = None
    output: Annotated[Any, replace(COUNT, help="output tokens of a request (default 1k)")] = None
    mfu: Annotated[Any, Field(high=1, help="computing again reaches this share of the peak, instead of the estimate")] = None
    fresh: Annotated[Any, Field("token/s", high=1e12, help="prompt tokens that one chip was measured to compute, instead")] = None
    kv_bytes: Annotated[Any, Field("byte", high=1e12, help="KV bytes per token, instead of the model's")] = None
    active: Annotated[Any, Field(high=1e15, help="active parameters, instead of the model's (for --mfu)")] = None


PRICES = "at the low end of the price", "at the high end of the price"


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldRow:
    """One tier for one hold, by every criterion; None for numbers without a fact."""

    model: Annotated[str, Field(help="model, by its catalogue name or file")]
    system: Annotated[str, Field(help="machine")]
    hold: Annotated[Any, Field("s", "time for which a prefix is held")]
    reuse: Annotated[Any, Field(help="probability that the prefix is used within the hold")]
    uses: Annotated[Any, Field(help="reads and writes of the bytes held, within one hold")]
    waiting: Annotated[Any, Field(help="share of the loading time in which the chip waits")]
    tier: Annotated[str, Field(help="tier of memory, as it was asked for")]
    device: Annotated[str, Field(help="the device that stands for it")]
    memory: Annotated[str, Field(help="kind of memory")]
    kv_bytes: Annotated[Any, Field("byte/token", "KV cache of one token, index keys included")]
    capacity: Annotated[Any, Field("byte", "what the device holds")] = None
    read_bw: Annotated[Any, Field("byte/s", "sequential reading")] = None
    drain_s: Annotated[Any, Field("s", "time to read all of the device once")] = None
    balanced_hold_s: Annotated[Any, Field("s", "hold at which the device is full and busy at once: drain time x uses")] = None
    share_mismatch: Annotated[Any, Field(help="how far the hold is from that, either way; the drain criterion takes the least")] = None
    price_per_byte: Annotated[Any, Field("USD/byte", "price of a byte of the device")] = None
    price_per_byte_lo: Annotated[Any, Field("USD/byte", "its low end")] = None
    price_per_byte_hi: Annotated[Any, Field("USD/byte", "its high end")] = None
    price_date: Annotated[str, Field(help="when that was the price")] = ""
    devices_per_full: Annotated[Any, Field(help="devices bought over those that the bytes fill: more than 1 for the sake of bandwidth")] = (
        None
    )
    device_usd_per_byte: Annotated[Any, Field("USD/byte", "money in devices for a byte held; the least-cost criterion takes the least")] = (
        None
    )
    device_usd_per_byte_lo: Annotated[Any, Field("USD/byte", f"the same {PRICES[0]}")] = None
    device_usd_per_byte_hi: Annotated[Any, Field("USD/byte", f"the same {PRICES[1]}")] = None
    over_rated: Annotated[Any, Field(help="writes over those the device is rated for, when all of it is written once in each hold")] = None
    usd_per_mtok_held: Annotated[
        Any, Field("USD/Mtok", "one hold: holding, devices for bandwidth, wear of writing, chips that wait; the answer goes by it")
    ] = None
    usd_per_mtok_held_lo: Annotated[Any, Field("USD/Mtok", f"the same {PRICES[0]}")] = None
    usd_per_mtok_held_hi: Annotated[Any, Field("USD/Mtok", f"the same {PRICES[1]}")] = None
    usd_per_mtok_recompute: Annotated[Any, Field("USD/Mtok", "R: computing the tokens again")] = None
    usd_per_mtok_recompute_lo: Annotated[Any, Field("USD/Mtok", "its low end: the estimate's 90 % interval, at the stated chip price")] = (
        None
    )
    usd_per_mtok_recompute_hi: Annotated[Any, Field("USD/Mtok", "its high end, likewise")] = None
    usd_per_mtok_load: Annotated[Any, Field("USD/Mtok", "L: chip time that waits for loading them; the devices' time is in b T h")] = None
    usd_per_mtok_write: Annotated[Any, Field("USD/Mtok", "W: wear of writing them")] = None
    usd_per_mtok_room: Annotated[Any, Field("USD/Mtok", "b T h: holding them so long, with the devices that the bandwidth takes")] = None
    usd_per_mtok_gain: Annotated[
        Any, Field("USD/Mtok", "what storing gains over computing again: p R less usd_per_mtok_held, which is p (R - L) - W - b T h")
    ] = None
    break_even_hold_s: Annotated[Any, Field("s", "longest hold for which storing pays: (p (R - L) - W) / (b h); null where none does")] = (
        None
    )
    break_even_hold_lo_s: Annotated[Any, Field("s", "the same at the high end of prices and the low end of R")] = None
    break_even_hold_hi_s: Annotated[Any, Field("s", "the same at the low end of prices and the high end of R")] = None
    hold_bound_s: Annotated[Any, Field("s", "the same if every hold were used once, and loading and writing cost nothing")] = None
    break_even_bw: Annotated[Any, Field("byte/s", "bandwidth per chip above which loading takes less time than computing again")] = None
    chosen_by: Annotated[str, Field(help="criteria whose answer this tier is for this hold")] = ""
    contends: Annotated[str, Field(help="cost criteria whose answer it may be within the ranges of prices")] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SizingRow:
    """Size, devices and cost of one tier for a service's cache with one time to live."""

    hold: Annotated[Any, Field("s", "time for which a prefix is held")]
    hit_tokens: Annotated[Any, Field("token/s", "prompt tokens found in the cache, over all")]
    new_tokens: Annotated[Any, Field("token/s", "tokens whose KV is made and stored")]
    kv_bytes: Annotated[Any, Field("byte/token", "KV cache of one token, index keys included")]
    tier: Annotated[str, Field(help="tier of memory, as it was asked for")]
    device: Annotated[str, Field(help="the device that stands for it")]
    cache_read: Annotated[Any, Field("byte/s", "what hits read")]
    cache_written: Annotated[Any, Field("byte/s", "what new tokens write")]
    cache_bytes: Annotated[Any, Field("byte", "room for all that is written within the hold")]
    devices_by_capacity: Annotated[Any, Field(help="devices that hold so much")] = None
    devices_by_bandwidth: Annotated[Any, Field(help="devices that read and write so much at their read bandwidth")] = None
    devices_by_turns: Annotated[Any, Field(help="the same with writes at the write bandwidth")] = None
    devices_by_rating: Annotated[Any, Field(help="the same at what the maker allows on average over years")] = None
    devices: Annotated[Any, Field(help="the larger of devices_by_capacity and devices_by_bandwidth")] = None
    bound_by: Annotated[str, Field(help="which of the two")] = ""
    balanced_hold_s: Annotated[Any, Field("s", "hold at which both are equal")] = None
    devices_usd: Annotated[Any, Field("USD", "money in the devices")] = None
    devices_usd_lo: Annotated[Any, Field("USD", f"the same {PRICES[0]}")] = None
    devices_usd_hi: Annotated[Any, Field("USD", f"the same {PRICES[1]}")] = None
    worn_out_s: Annotated[Any, Field("s", "until flash so written is worn out")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FeeRow:
    """One cache fee of a provider against the cost of holding in one tier."""

    fee_of: Annotated[str, Field(help="what is charged: a cache write, the step to a longer one, storage")]
    hold: Annotated[Any, Field("s", "time for which a prefix is held")]
    usd_per_mtok_fee: Annotated[Any, Field("USD/Mtok", "the fee for one hold, the plain input rate taken off")]
    kv_bytes: Annotated[Any, Field("byte/token", "KV cache of one token, index keys included")]
    tier: Annotated[str, Field(help="tier of memory, as it was asked for")]
    device: Annotated[str, Field(help="the device that stands for it")]
    usd_per_mtok_room: Annotated[Any, Field("USD/Mtok", "b T h: holding them so long, with the devices that the bandwidth takes")] = None
    paid_bytes: Annotated[Any, Field("byte/token", "KV bytes per token that the fee would pay for at cost")] = None
    paid_bytes_lo: Annotated[Any, Field("byte/token", f"the same {PRICES[1]}")] = None
    paid_bytes_hi: Annotated[Any, Field("byte/token", f"the same {PRICES[0]}")] = None
    markup: Annotated[Any, Field(help="the fee over the cost of holding the model's own KV bytes")] = None
    markup_lo: Annotated[Any, Field(help=f"the same {PRICES[1]}")] = None
    markup_hi: Annotated[Any, Field(help=f"the same {PRICES[0]}")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceRow:
    """A trace's cache with one time to live and capacity, and its bill in one tier."""

    trace: Annotated[str, Field(help="the trace")]
    ttl: Annotated[Any, Field("s", "time that a block is kept after its last use; null for ever")]
    room: Annotated[Any, Field("byte", "room of the cache, least recently used first out; null without a limit")]
    requests: Annotated[Any, Field(help="requests sent")]
    asked_tokens: Annotated[Any, Field("token", "prompt tokens of all requests")]
    found_tokens: Annotated[Any, Field("token", "of them, found in the cache")]
    hit_share: Annotated[Any, Field(help="share of prompt tokens found in the cache")]
    held_tokens_mean: Annotated[Any, Field("token", "tokens held without a limit on room, mean over the trace")] = None
    held_tokens_peak: Annotated[Any, Field("token", "the most held at any time, likewise")] = None
    held_bytes_mean: Annotated[Any, Field("byte", "the same in bytes")] = None
    held_bytes_peak: Annotated[Any, Field("byte", "the same in bytes")] = None
    tier: Annotated[str, Field(help="tier of memory, as it was asked for")] = ""
    device: Annotated[str, Field(help="the device that stands for it")] = ""
    paid_room: Annotated[
        Any,
        Field("byte", "what is paid for: the room given, else what is held, mean over the trace; more where bandwidth wants more devices"),
    ] = None
    usd_held: Annotated[Any, Field("USD", "holding that for the length of the trace")] = None
    usd_worn: Annotated[Any, Field("USD", "wear of writing what was not found")] = None
    usd_loaded: Annotated[Any, Field("USD", "chips that wait while what was found is loaded")] = None
    usd_computed: Annotated[Any, Field("USD", "computing what was not found")] = None
    usd_prompts: Annotated[Any, Field("USD", "all four: what the prompts cost")] = None
    usd_per_mtok_prompt: Annotated[Any, Field("USD/Mtok", "the same per million prompt tokens")] = None
    usd_per_request_prompt: Annotated[Any, Field("USD", "the same per request")] = None
    saved_share: Annotated[Any, Field(help="share saved of what computing every prompt costs; below 0 where the cache costs more")] = None
    sheet_usd_per_mtok: Annotated[Any, Field("USD/Mtok", "prompts by the price sheet: writes where not found, reads where found")] = None
    sheet_saved_share: Annotated[Any, Field(help="share saved of the sheet's plain input rate")] = None
    best: Annotated[Any, Field("bool", "the least cost of all rows")] = None


CACHE = (HoldRow, SizingRow, FeeRow, TraceRow)

"""Money of the experiment `tiers`: the verb `cache` asked with the lab's numbers, and the prices that recover what a run cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headway.core.quantity import known
from headway.core.units import BytePerToken, Second, SecondPerToken, UsdPerMtok, UsdPerSecond
from headway.economics.cache.placement import CacheSubject, cheapest_tier, hold_row
from headway.economics.cache.records import CacheHold, HoldRow
from headway.economics.cache.tiers import CacheTier, NumberRange, device_named, place_of
from headway.hardware.chip_price import PriceQuote
from headway.laws.economics.cost import usd_per_mtok_of

DEVICES = ("ddr", "flash", "disk")  # of the catalogue, whose prices memory, file and slow file have
WAITS = known(1.0, "waiting", "", "constant", "the lab's machine does nothing else while it loads")
ONCE = known(1.0, "uses", "", "constant", "a hold that is used once")


def places() -> list[CacheTier]:
    """The devices."""
    return [place_of(device_named(name, {}), name) for name in DEVICES]


def subject(kv: BytePerToken, again: SecondPerToken, price: UsdPerSecond) -> CacheSubject:
    """The lab's cache, its time to make a token again, and what its machine costs."""
    quote = PriceQuote(value=price, low=price, high=price, metric="stated", note="")
    return CacheSubject(
        model="lab-decoder", system="this machine", kv=kv, chip_time=NumberRange(value=again, low=again, high=again), price=quote
    )


def hold_in(place: CacheTier, hold: Second, about: CacheSubject) -> HoldRow:
    """One hold in one device, as `headway cache` has it."""
    seconds = known(float(hold), "hold", "s", "input", "the experiment")
    return hold_row(place, CacheHold(hold=seconds, reuse=ONCE, uses=ONCE, waiting=WAITS), about)


@dataclass(frozen=True, slots=True, kw_only=True)
class TierPrice:
    """What one tier would ask, USD per million tokens."""

    live: Second  # time to live that ends here
    write: UsdPerMtok  # over computing, to live so long: this tier's part and those above it
    hit: UsdPerMtok  # None where nothing was found there
    cache_write: UsdPerMtok  # by `headway cache`, for a hold in this tier's device alone, to the very end
    cache_hit: UsdPerMtok
    cheapest: str  # device in which it would hold so long


def sheet(lives: Sequence[Second], facts: Mapping[str, Any], kv: BytePerToken, price: UsdPerSecond) -> list[TierPrice]:
    """Prices by tier that recover what holding, writing and loading cost in a run."""
    about, devices, prices, write = subject(kv, facts["again_s"], price), places(), list[TierPrice](), 0.0
    for live, place, use in zip(lives, devices, facts["tiers"], strict=True):
        cost = use["held_byte_s"] * place.holding.value + use["written_bytes"] * place.wear.value
        write += float(usd_per_mtok_of(cost, facts["computed_tokens"]))
        hit = float(usd_per_mtok_of(use["load_s"] * price, use["loaded_tokens"])) if use["hits"] else None
        rows = [hold_in(device, live, about) for device in devices]
        alone = rows[devices.index(place)]
        prices.append(TierPrice(live=live, write=write, hit=hit, cache_write=float(alone.usd_per_mtok_room + alone.usd_per_mtok_write),
                                cache_hit=float(alone.usd_per_mtok_load), cheapest=cheapest_tier(rows)))  # fmt: skip
    return prices


def command(lives: Sequence[Second], again: SecondPerToken, kv: BytePerToken, price: UsdPerSecond) -> str:
    """The same question to `headway cache`, of a machine whose alone memory takes no part."""
    machine = "(name=lab hbm=1GB hbm_bw=1GB/s peak_bf16=1T)"
    holds = ",".join(f"{live:g}s" for live in lives)
    return (
        f"headway cache --kv-bytes {float(kv):g} --on '{machine}' --set 'chip.price=${float(price) * 3600:g}/h' --fresh {1 / again:.6g}/s "
        f"--tier {','.join(DEVICES)} --waiting 1 --hold {holds}"
    )

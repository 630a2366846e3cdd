"""Cache fees of a provider against cost: the KV bytes that they pay for in each tier, and their ratio to cost for a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from headway.core.quantity import Sourced, known, user_input
from headway.economics.cache.records import FeeRow
from headway.economics.cache.tiers import CacheTier
from headway.economics.sheets.sheet import Rates
from headway.laws import tiers
from headway.laws.tiers import per_mtok

NO_WEAR = known(0.0, "wear left out", "USD/byte", "constant", "a fee is set against holding alone")
ALL = known(1.0, "bought by capacity", "", "constant", "a fee is set against holding alone")


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheFee:
    """A fee for holding one token's cache for a time."""

    name: str
    fee: Any  # USD/token for one hold
    hold: Any  # s


def charges(rates: Rates, holds: Sequence[Any] = ()) -> list[CacheFee]:
    """Cache fees of a price sheet: each write beyond the input rate, each longer time to live, and storage for each of `holds`."""
    writes = [(_lasting(row.ttl_s, row.rate), row.rate - rates.input) for row in rates.cache_writes if row.ttl_s]
    fee_rows = [CacheFee(name="cache write", fee=fee, hold=ttl) for ttl, fee in writes]
    for (short, less), (long, more) in pairwise(writes):
        fee_rows.append(CacheFee(name="longer cache write", fee=more - less, hold=long - short))
    if rates.storage is not None:
        fee_rows += [CacheFee(name="storage", fee=rates.storage * hold, hold=hold) for hold in holds]
    return fee_rows


def _lasting(ttl: float, rate: Any) -> Any:
    """A time to live in seconds with the origin of its rate."""
    if isinstance(rate, Sourced):
        return known(float(ttl), f"{rate.name}.ttl", "s", rate.kind, rate.source, rate.date)
    return user_input(float(ttl), "ttl", "s")


def read_fee(place: CacheTier, share: Any, chip_time: Any, kv: Any) -> FeeRow | None:
    """Cache-read rate over input rate if both were at cost; None for a tier without loading."""
    if place.in_place or place.read_bw is None:
        return None
    paid_bytes = share * chip_time * place.read_bw
    return FeeRow(
        fee_of="cache read", hold=None, usd_per_mtok_fee=None, kv_bytes=kv, tier=place.name, device=place.device, paid_bytes=paid_bytes,
        markup=paid_bytes / kv,
    )  # fmt: skip


def read_share(rates: Rates) -> Any:
    """Cache-read rate over input rate; None without a cache-read rate."""
    return None if rates.cache_read is None else rates.cache_read / rates.input


def fee(place: CacheTier, charge: CacheFee, kv: Any) -> FeeRow:
    """One fee against the cost of one tier: the KV bytes that it pays for, fewer in an expensive tier."""
    paid_bytes = {end: charge.fee / (charge.hold * getattr(place.holding, end)) for end in ("value", "high", "low")}
    room = kv * tiers.hold_usd_per_byte(place.holding.value, ALL, charge.hold, NO_WEAR)
    markup = {end: size / kv for end, size in paid_bytes.items()}
    return FeeRow(
        fee_of=charge.name, hold=charge.hold, usd_per_mtok_fee=per_mtok(charge.fee), kv_bytes=kv, tier=place.name,
        device=place.device, usd_per_mtok_room=per_mtok(room), paid_bytes=paid_bytes["value"], paid_bytes_lo=paid_bytes["high"],
        paid_bytes_hi=paid_bytes["low"], markup=markup["value"], markup_lo=markup["high"], markup_hi=markup["low"],
    )  # fmt: skip

"""Placement of a KV cache by drain time, device cost, wear and recomputation; and the devices of each tier that a service needs.

Also the tier of least cost for each hold time and chance of reuse, and the KV bytes that a provider's cache fees pay for in each tier.

The criteria answer different questions and often choose different tiers, so each answer names its criterion. The arithmetic is in laws/.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from headway.core.quantity import Sourced, default, known, user_input
from headway.core.units import BytePerSecond, BytePerToken, Number, Second, SecondPerToken, Token
from headway.economics.cache.records import CacheHold, CacheService, FeeRow, HoldRow, SizingRow
from headway.economics.cache.tiers import CacheTier, NumberRange
from headway.economics.sheets.sheet import Rates
from headway.hardware.chip_price import PriceQuote
from headway.laws import tiers as laws
from headway.laws.economics.cost import cached_token_s
from headway.laws.roofline.balance import drain_s
from headway.laws.serving import request
from headway.laws.tiers import per_mtok

DRAIN, MONEY, WEAR, STORE = "drain time", "least cost", "cost with wear", "store-or-recompute"
CRITERIA = (DRAIN, MONEY, WEAR, STORE)
RECOMPUTE = "recompute"  # answer of the last criterion if no tier pays
FREE = known(0.0, "nothing to load", "USD/token", "constant", "what lies in HBM is read in place")
NO_LOAD = known(0.0, "loading free", "USD/token", "constant", "of the bound: loading costs nothing")
NO_WRITE = known(0.0, "writing free", "USD/token", "constant", "of the bound: writing costs nothing")
NO_WORN = known(0.0, "wear counted apart", "USD/byte", "constant", "W is a term of its own")
FULL = known(1.0, "bought by capacity", "", "constant", "of b T h, and of what is rented: room alone")
SURE = known(1.0, "every hold used", "", "constant", "of the bound: every hold is used once")


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheSubject:
    """The KV cache to hold, and the cost of recomputing it."""

    model: str
    system: str
    kv: Any  # byte/token
    chip_time: NumberRange  # chip time of a prompt token, s/token
    price: PriceQuote  # price of a chip


def hold_row(place: CacheTier, request: CacheHold, subject: CacheSubject) -> HoldRow:
    """The row of one tier and one hold, with the numbers of every criterion but no choice."""
    facts = {"model": subject.model, "system": subject.system, "tier": place.name, "device": place.device, "memory": place.memory}
    facts |= {"capacity": place.capacity, "read_bw": place.read_bw, "price_date": place.dated, "kv_bytes": subject.kv}
    facts |= {"hold": request.hold, "reuse": request.reuse, "uses": request.uses, "waiting": request.waiting}
    facts |= dict(zip(_ends("price_per_byte"), (place.price.value, place.price.low, place.price.high), strict=True))
    by_devices = _by_devices(place, request, subject)
    return HoldRow(**facts, **by_devices, **_by_recompute(place, request, subject))


def _lasting(place: CacheTier, request: CacheHold) -> Any:
    """Devices over those that the bytes fill, at the bandwidth that they are rated to sustain; FULL where only room is rented."""
    if place.capacity is None or place.read_bw is None:
        return FULL
    return laws.devices_per_full(laws.balanced_hold_s(place.capacity, place.sustained_bw, request.uses), request.hold)


def _ends(key: str) -> tuple[str, str, str]:
    return key, f"{key}_lo", f"{key}_hi"


def _by_devices(place: CacheTier, request: CacheHold, subject: CacheSubject) -> dict[str, Any]:
    """Drain time, device cost, and cost of a hold with write wear."""
    row: dict[str, Any] = {}
    factor, lasting, load = None, _lasting(place, request), load_cost(place, request, subject)
    if place.capacity is not None and place.read_bw is not None:
        balanced = laws.balanced_hold_s(place.capacity, place.read_bw, request.uses)
        row |= {"drain_s": drain_s(place.capacity, place.read_bw), "balanced_hold_s": balanced}
        row["share_mismatch"] = laws.share_mismatch(request.hold, balanced)
        row["devices_per_full"] = factor = laws.devices_per_full(balanced, request.hold)
    if place.drive_writes is not None:
        row["over_rated"] = laws.rewrites_over_rated(laws.rewrites(request.hold), place.drive_writes)
    for end, money, hold_key in zip(("value", "low", "high"), _ends("device_usd_per_byte"), _ends("usd_per_mtok_held"), strict=True):
        price, holding, worn = (getattr(span, end) for span in (place.price, place.holding, place.wear))
        if price is not None and factor is not None:
            row[money] = laws.device_usd_per_byte(price, factor)
        if worn is not None:
            hold_usd = subject.kv * laws.hold_usd_per_byte(holding, lasting, request.hold, worn)
            row[hold_key] = per_mtok(hold_usd if load is None else laws.hold_and_wait_usd(hold_usd, request.reuse, load))
    return row


def _by_recompute(place: CacheTier, request: CacheHold, subject: CacheSubject) -> dict[str, Any]:
    """Gain of storing over recomputation, and the break-even hold."""
    again = {end: getattr(subject.chip_time, end) * subject.price.value for end in ("value", "low", "high")}
    row = dict(zip(_ends("usd_per_mtok_recompute"), map(per_mtok, again.values()), strict=True))
    row["break_even_bw"] = subject.kv / subject.chip_time.value
    bound = laws.break_even_hold_s(SURE, again["value"], NO_LOAD, NO_WRITE, subject.kv, place.holding.value)
    row["hold_bound_s"] = bound
    load, write_wear = load_cost(place, request, subject), place.wear
    if load is None or write_wear.value is None:
        return row
    write = {end: subject.kv * getattr(write_wear, end) for end in ("value", "low", "high")}
    room = subject.kv * laws.hold_usd_per_byte(place.holding.value, _lasting(place, request), request.hold, NO_WORN)
    row |= {"usd_per_mtok_load": per_mtok(load), "usd_per_mtok_write": per_mtok(write["value"])}
    row["usd_per_mtok_room"] = per_mtok(room)
    row["usd_per_mtok_gain"] = per_mtok(laws.storing_gain_usd(request.reuse, again["value"], load, write["value"], room))
    worst, best = ("low", "high", "high"), ("high", "low", "low")
    busy = None if place.in_place else laws.balanced_hold_s(place.capacity, place.sustained_bw, request.uses)
    ends = {"break_even_hold_s": ("value",) * 3, "break_even_hold_lo_s": worst, "break_even_hold_hi_s": best}
    for key, (computed, worn, holding) in ends.items():
        rent = place.holding.value if place.in_place else getattr(place.holding, holding)  # HBM rent is that of the chip that recomputes
        rest = (load, write[worn], subject.kv, rent)
        longest = laws.break_even_hold_s(request.reuse, again[computed], *rest)
        # a shorter hold costs no less than one that keeps the devices busy
        row[key] = longest if longest > 0 and (busy is None or longest >= busy) else None
    return row


def load_cost(place: CacheTier, request: CacheHold, subject: CacheSubject) -> Any:
    """Cost of loading a token in USD: the chip time that waits; the time of the devices is in what holding costs. None if unknown."""
    if place.in_place:
        return FREE
    if place.capacity is None or place.read_bw is None:
        return None
    return cached_token_s(subject.kv, place.read_bw) * (request.waiting * subject.price.value)


# -- the choice -------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class TierChoice:
    """The tier that one criterion chooses for one hold; "" if it cannot decide, `recompute` if no tier pays."""

    criterion: str
    tier: str
    contends: tuple[str, ...] = ()  # other tiers that could win within the ranges of prices


def choices(rows: Sequence[HoldRow]) -> tuple[TierChoice, ...]:
    """The choice of every criterion among the tiers of one hold."""
    priced = [(MONEY, "device_usd_per_byte"), (WEAR, "usd_per_mtok_held")]
    answers = [
        TierChoice(criterion=DRAIN, tier=_least(rows, "share_mismatch")),
        *(_cheapest(rows, *criterion_key) for criterion_key in priced),
    ]
    pays = [row for row in rows if row.break_even_hold_s is not None and row.break_even_hold_s >= row.hold]
    fastest = max(pays, key=lambda row: row.read_bw or 0, default=None)
    return (*answers, TierChoice(criterion=STORE, tier=fastest.tier if fastest else RECOMPUTE))


def cheapest_tier(rows: Sequence[HoldRow]) -> str:
    """The tier of the answer: where one hold costs least, wear included; by the money in devices where no wear is known."""
    return _least(rows, "usd_per_mtok_held") or _least(rows, "device_usd_per_byte")


def _least(rows: Sequence[HoldRow], key: str) -> str:
    able = [row for row in rows if row.read_bw is not None and getattr(row, key) is not None]  # stores have uncounted request fees
    return min(able, key=lambda row: getattr(row, key)).tier if able else ""


def _cheapest(rows: Sequence[HoldRow], criterion: str, key: str) -> TierChoice:
    """The cheapest tier at the stated prices, and the tiers whose low end is at most its high end."""
    name = _least(rows, key)
    _, low, high = _ends(key)
    best = next((row for row in rows if row.tier == name), None)
    able = [row for row in rows if best is not None and row is not best and row.read_bw and getattr(row, low) is not None]
    contenders = tuple(row.tier for row in able if getattr(row, low) <= getattr(best, high))
    return TierChoice(criterion=criterion, tier=name, contends=contenders)


def with_choices(rows: Sequence[HoldRow]) -> list[HoldRow]:
    """The rows of one hold, each with the criteria that choose it and the criteria for which it contends."""
    answers = choices(rows)
    return [
        replace(
            row, chosen_by=", ".join(choice.criterion for choice in answers if choice.tier == row.tier),
            contends=", ".join(choice.criterion for choice in answers if row.tier in choice.contends),
        )
        for row in rows
    ]  # fmt: skip


# -- where one tier gives way to the next -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class TierInterval:
    """The best tier for holds from the previous interval's end up to `until`."""

    tier: str
    until: Any  # s; None: for ever


def money_bands(places: Sequence[CacheTier], uses: Number) -> list[TierInterval]:
    """Best tier by hold, judged by device cost."""
    able = [place for place in places if place.price.value is not None and place.capacity is not None and place.read_bw is not None]
    full = {place.name: laws.balanced_hold_s(place.capacity, place.read_bw, uses) for place in able}

    def cost(place: CacheTier, hold: float) -> float:
        return laws.device_usd_per_byte(place.price.value, laws.devices_per_full(full[place.name], hold))

    pairs = [(above, below) for above in able for below in able if above.price.value > below.price.value]
    ends = [below.price.value * full[below.name] / above.price.value for above, below in pairs]
    return bands(able, cost, ends)


def wear_bands(places: Sequence[CacheTier], uses: Number) -> list[TierInterval]:
    """Best tier by hold, judged by cost with wear at the sustained bandwidth."""
    able = [place for place in places if place.wear.value is not None and place.capacity is not None and place.read_bw is not None]
    full = {place.name: laws.balanced_hold_s(place.capacity, place.sustained_bw, uses) for place in able}

    def cost(place: CacheTier, hold: float) -> float:
        return laws.hold_usd_per_byte(place.holding.value, laws.devices_per_full(full[place.name], hold), hold, place.wear.value)

    ends = []
    for above in able:
        for below in able:
            if above.holding.value > below.holding.value:
                more = below.wear.value - above.wear.value
                ends.append(laws.wear_earned_s(more, above.holding.value, below.holding.value))
                ends.append(laws.wear_earned_busy_s(more, above.holding.value, below.holding.value, full[below.name]))
    return bands(able, cost, ends)


def bands(places: Sequence[CacheTier], cost: Callable[[CacheTier, float], float], ends: Sequence[Any]) -> list[TierInterval]:
    """The cheapest tier by hold; `ends` are the holds at which two tiers may cost equally much."""
    if not places:
        return []
    cuts = sorted(end for end in ends if end > 0)
    inner = [math.sqrt(low * high) for low, high in pairwise(cuts)]
    probes = [cuts[0] / 2, *inner, cuts[-1] * 4] if cuts else [1.0]
    merged_bands: list[TierInterval] = []
    for probe, until in zip(probes, [*cuts, None], strict=True):
        best = min(places, key=lambda place: cost(place, probe)).name
        if merged_bands and merged_bands[-1].tier == best:
            merged_bands.pop()
        merged_bands.append(TierInterval(tier=best, until=until))
    return merged_bands


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenFlow:
    """Token rates of a cache in token/s: hits, and new tokens written."""

    hits: Any
    new: Any


def flow_of(service: CacheService, prompt: Token, output: Token) -> TokenFlow:
    """The token rates of a service, as given or from its request rate, hit rate and lengths."""
    if service.rate is None:
        return TokenFlow(hits=service.hit_tokens, new=service.new_tokens)
    hit, misses = prompt * service.hit_rate, request.missed_tokens(prompt, service.hit_rate)
    return TokenFlow(hits=service.rate * hit, new=service.rate * (misses + output))


def sized(place: CacheTier, hold: Second, flow: TokenFlow, kv: BytePerToken) -> SizingRow:
    """Devices and cost of one tier for a cache with one time to live."""
    read, write_traffic = flow.hits * kv, flow.new * kv
    size = write_traffic * hold
    known = {"hold": hold, "hit_tokens": flow.hits, "new_tokens": flow.new, "kv_bytes": kv, "tier": place.name, "device": place.device}
    known |= {"cache_read": read, "cache_written": write_traffic, "cache_bytes": size}
    if place.capacity is None or place.read_bw is None:
        return SizingRow(**known)
    traffic = read + write_traffic
    room, moving = size / place.capacity, traffic / place.read_bw
    known |= {"devices_by_capacity": room, "devices_by_bandwidth": moving, "bound_by": "capacity" if room >= moving else "bandwidth"}
    count = max(room, moving)
    uses = traffic / write_traffic
    known |= {"devices": count, "balanced_hold_s": laws.balanced_hold_s(place.capacity, place.read_bw, uses)}
    if place.write_bw is not None:
        known["devices_by_turns"] = laws.devices_by_turns(read, write_traffic, place.read_bw, place.write_bw)
    if place.rated_bw is not None:
        known["devices_by_rating"] = traffic / place.sustained_bw
    for end, key in (("value", "devices_usd"), ("low", "devices_usd_lo"), ("high", "devices_usd_hi")):
        price = getattr(place.price, end)
        known[key] = None if price is None else count * place.capacity * price
    return SizingRow(**known, worn_out_s=_worn_out_s(place, write_traffic, count))


def _worn_out_s(place: CacheTier, write_traffic: BytePerSecond, count: Number) -> Any:
    """Seconds until flash is worn out, with writes spread evenly over its devices."""
    if place.drive_writes is None or place.rated_life is None:
        return None
    endurance_bytes = laws.endurance(count * place.capacity, place.drive_writes, place.rated_life)
    return laws.worn_out_s(endurance_bytes, write_traffic)


HOLDS = (1.0, 30 * 86400.0, 44)  # s: first, last, number, evenly on a log scale
REUSES = (0.01, 1.0, 15)
WHY = "a point of the map"


@dataclass(frozen=True, slots=True, kw_only=True)
class MapCell:
    """One field of the map: ends of its hold times (s) and of its chances of reuse, and the tier that wins there."""

    hold: float
    hold_end: float
    reuse: float
    reuse_end: float
    tier: str


def tier_map(places: Sequence[CacheTier], subject: CacheSubject, uses: Number, waiting: Number) -> list[MapCell]:
    """Fields of the map, hold by hold; each is judged at its middle."""
    holds, reuses = _steps(*HOLDS), _steps(*REUSES)
    cells = []
    for hold, hold_end in pairwise(holds):
        for reuse, reuse_end in pairwise(reuses):
            middle = {"hold": default((hold * hold_end) ** 0.5, "hold", "s", WHY),
                      "reuse": default((reuse * reuse_end) ** 0.5, "reuse", "", WHY)}  # fmt: skip
            request = CacheHold(**middle, uses=uses, waiting=waiting)
            tier = _best(places, request, subject)
            cells.append(MapCell(hold=hold, hold_end=hold_end, reuse=reuse, reuse_end=reuse_end, tier=tier))
    return cells


def _steps(first: float, last: float, count: int) -> list[float]:
    return [first * (last / first) ** (place / (count - 1)) for place in range(count)]


def _best(places: Sequence[CacheTier], request: CacheHold, subject: CacheSubject) -> str:
    """The tier in which a hold costs least, if keeping there pays at this chance of reuse."""
    rows = [hold_row(place, request, subject) for place in places]
    tier = cheapest_tier(rows)
    gain = next((row.usd_per_mtok_gain for row in rows if row.tier == tier), None)
    return tier if gain is not None and gain > 0 else RECOMPUTE


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
    writes = []
    for row in rates.cache_writes:
        if row.ttl_s:
            rate: Any = row.rate  # whose origin the time to live has too
            ttl = float(row.ttl_s)
            sourced = isinstance(rate, Sourced)
            hold = known(ttl, f"{rate.name}.ttl", "s", rate.kind, rate.source, rate.date) if sourced else user_input(ttl, "ttl", "s")
            writes.append((hold, rate - rates.input))
    fee_rows = [CacheFee(name="cache write", fee=fee, hold=ttl) for ttl, fee in writes]
    for (short, less), (long, more) in pairwise(writes):
        fee_rows.append(CacheFee(name="longer cache write", fee=more - less, hold=long - short))
    if rates.storage is not None:
        fee_rows += [CacheFee(name="storage", fee=rates.storage * hold, hold=hold) for hold in holds]
    return fee_rows


def read_fee(place: CacheTier, share: Number, chip_time: SecondPerToken, kv: BytePerToken) -> FeeRow | None:
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


def fee(place: CacheTier, charge: CacheFee, kv: BytePerToken) -> FeeRow:
    """One fee against the cost of one tier: the KV bytes that it pays for, fewer in an expensive tier."""
    paid_bytes = {end: charge.fee / (charge.hold * getattr(place.holding, end)) for end in ("value", "high", "low")}
    room = kv * laws.hold_usd_per_byte(place.holding.value, ALL, charge.hold, NO_WEAR)
    markup = {end: size / kv for end, size in paid_bytes.items()}
    return FeeRow(
        fee_of=charge.name, hold=charge.hold, usd_per_mtok_fee=per_mtok(charge.fee), kv_bytes=kv, tier=place.name,
        device=place.device, usd_per_mtok_room=per_mtok(room), paid_bytes=paid_bytes["value"], paid_bytes_lo=paid_bytes["high"],
        paid_bytes_hi=paid_bytes["low"], markup=markup["value"], markup_lo=markup["high"], markup_hi=markup["low"],
    )  # fmt: skip

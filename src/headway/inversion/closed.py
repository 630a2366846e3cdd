"""What a sheet says of KV and of the batch in closed form, each with its label: bounds, the lecture's equality; never an estimate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from headway.inversion.features import Features, Ladder, faster, rising, rungs
from headway.inversion.priors import Machine
from headway.laws import inversion as laws
from headway.laws.balance import compute_s_per_token
from headway.laws.cache_fees import kv_bytes_paid_for, kv_bytes_read_for, storage_fee, write_premium
from headway.laws.compare import relative
from headway.laws.margin import log_even_quantile
from headway.laws.speed import batch_ratio_identity
from headway.laws.tiers import chip_holding_usd
from headway.price_sheet import PriceSheet
from headway.quantity import Known, known

HALF = known(0.5, "middle", "", "constant", "the value in the middle of an interval")
HOUR = known(3600, "hour", "s", "constant", "definition")
LOWER, UPPER, EQUALITY = "lower bound", "upper bound", "equality"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """One closed form, at the middle and the ends of what it is taken at."""

    name: str
    label: str
    value: Any
    lo: Any
    hi: Any
    about: str
    unit: str = "byte/token"


def fact(value: Any, name: str, unit: str, sheet: PriceSheet) -> Any:
    """A number of a sheet, with the sheet as its origin."""
    if isinstance(value, Known):
        return value
    return known(value, f"{sheet.model}.{name}", unit, "datasheet", sheet.source, sheet.as_of)


def bounds(sheet: PriceSheet, found: Features, on: Machine, active: Any) -> Iterator[Bound]:
    """Every closed form that the sheet's features allow, on one machine and for so many active parameters."""
    yield from _of_ladder(sheet, found, on, active)
    yield from _of_cache(sheet, on, active)
    yield from _of_modes(sheet)


def slope(sheet: PriceSheet, ladder: Ladder) -> Any:
    """A ladder's slope with the sheet behind its numbers."""
    one, two = ladder.lower, ladder.upper
    at = [
        laws.within_tier(fact(rung.above, "tier", "token", sheet), fact(rung.to, "tier end", "token", sheet), HALF) for rung in (one, two)
    ]
    rates = [fact(rung.rates.output, "output", "USD/token", sheet) for rung in (one, two)]
    return laws.rate_slope(rates[0], rates[1], at[0], at[1])


def middle_price(on: Machine) -> Any:
    """The middle of what a chip may cost."""
    return log_even_quantile(on.price.low, on.price.high, HALF) if on.price.wide else on.price.low


def _of_ladder(sheet: PriceSheet, found: Features, on: Machine, active: Any) -> Iterator[Bound]:
    if found.ladder is None:
        return
    one, two = rising(rungs(sheet))[0]  # the first step is what would be the knee
    rise, bandwidth = slope(sheet, found.ladder), on.chip.hbm_bw
    prices = (on.price.high, middle_price(on), on.price.low)
    lo, value, hi = (laws.kv_slope_bound(rise, bandwidth, price) for price in prices)
    said = f"the slope of the output price, all of it KV read at full bandwidth, at cost, on {on.chip.name} at each end of its price"
    yield Bound(name="kv_slope", label=UPPER, value=value, lo=lo, hi=hi, about=said)
    compute = compute_s_per_token(active, on.peak)
    start, end = fact(two.above, "tier", "token", sheet), fact(two.to, "tier end", "token", sheet)
    knee, late = (laws.kv_at_knee(compute, bandwidth, context) for context in (start, end))
    said = "the price step as the context where reading KV takes as long as computing at the full peak, as the lecture has it"
    yield Bound(name="kv_knee", label=LOWER, value=knee, lo=late, hi=knee, about=f"{said}; lower end: at the tier's end")
    step = relative(fact(two.rates.output, "output", "USD/token", sheet), fact(one.rates.output, "output", "USD/token", sheet))
    ratio = relative(fact(sheet.rates.output, "output", "USD/token", sheet), fact(sheet.rates.input, "input", "USD/token", sheet))
    if ratio > 1:
        early, last = (laws.kv_joint(each, step, ratio) for each in (knee, late))
        said = (
            "step and output/input ratio together: decode bound by memory as the ratio says, dearer by the step at the tier's start or end"
        )
        yield Bound(name="kv_joint", label=EQUALITY, value=early, lo=last, hi=early, about=said)


def _of_cache(sheet: PriceSheet, on: Machine, active: Any) -> Iterator[Bound]:
    rates, price = sheet.rates, middle_price(on)
    holding = chip_holding_usd(price, on.chip.hbm)
    plain = fact(rates.input, "input", "USD/token", sheet)
    told = "so the markup alone decides between memory and disk"
    if rates.storage:
        paid = kv_bytes_paid_for(storage_fee(fact(rates.storage, "storage", "USD/token/s", sheet), HOUR), HOUR, holding)
        said = f"the storage fee as the cost of holding in the memory of {on.chip.name}; {told}"
        yield Bound(name="kv_storage", label=UPPER, value=paid, lo=paid, hi=paid, about=said)
    for write in rates.cache_writes:
        if write.ttl_s and write.rate > rates.input:
            premium = write_premium(fact(write.rate, "cache_write", "USD/token", sheet), plain)
            paid = kv_bytes_paid_for(premium, fact(write.ttl_s, "ttl", "s", sheet), holding)
            said = f"the write premium as the cost of holding for {write.ttl_s / 60:g} min in the memory of {on.chip.name}; {told}"
            yield Bound(name=f"kv_write_{write.ttl_s:g}s", label=UPPER, value=paid, lo=paid, hi=paid, about=said)
    if rates.cache_read and on.chip.host_link_bw is not None:
        share = relative(fact(rates.cache_read, "cache_read", "USD/token", sheet), plain)
        paid = kv_bytes_read_for(share, compute_s_per_token(active, on.peak), on.chip.host_link_bw)
        said = f"the cache-read rate as the cost of loading over the host link of {on.chip.name}, beside computing at the full peak"
        yield Bound(name="kv_cache_read", label=UPPER, value=paid, lo=paid, hi=paid, about=said)


def _of_modes(sheet: PriceSheet) -> Iterator[Bound]:
    plain = fact(sheet.rates.output, "output", "USD/token", sheet)
    for mode in faster(sheet):
        price = relative(fact(mode.rates.output, f"{mode.name} output", "USD/token", sheet), plain)
        least = batch_ratio_identity(price, fact(mode.speed_ratio, f"{mode.name} speed", "", sheet))
        said = f"price in proportion to a token's chip time: the {mode.name} mode decodes at least one where the standard one decodes these"
        yield Bound(name=f"batch_{mode.name}", label=LOWER, value=least, lo=least, hi=least, about=said, unit="")


# -- what does not fit together -------------------------------------------------------------------------------------------------

MANY = 5.0  # times one bound over another that should be near it
FAR = 2.0  # standard deviations


def contradictions(sheet: PriceSheet, found: Features, closed: list[Bound], surprise: float) -> Iterator[str]:
    """Features that no one machine explains together, in words."""
    by = {one.name: one for one in closed}
    ratio = found.output / found.input
    if found.ladder is not None:
        one, two = rising(rungs(sheet))[0]
        step = two.rates.output / one.rates.output
        if "kv_joint" in by:
            joint = by["kv_joint"]
            yield (
                f"step and ratio: a knee at {two.above / 1e3:g}k has decode bound by compute below it, output/input of {ratio:.3g} "
                f"that memory takes {ratio:.3g} times as long; together they ask for {joint.lo:,.0f} to {joint.hi:,.0f} B/token, the knee "
                f"alone for {by['kv_knee'].value:,.0f}"
            )
        if by["kv_slope"].value > MANY * by["kv_knee"].value:
            times = by["kv_slope"].value / by["kv_knee"].value
            yield f"slope and knee: what the longer tier adds pays for {times:,.0f} times the KV of the knee: the step is not a knee"
        rise = two.rates.input / one.rates.input if one.rates.input else 0.0
        if rise > step * 1.01:
            yield f"input, output steps: input x{rise:.3g}, output x{step:.3g}, but reading KV makes no prompt dearer: attention or policy"
        if step > (two.above + two.to) / (one.above + one.to) * 1.01:
            yield f"the ladder rises faster (x{step:.3g}) than the context it is for: no cost in proportion to context does"
    if abs(surprise) > FAR:
        side = "more" if surprise > 0 else "less"
        yield f"output/input of {ratio:.3g} is {abs(surprise):.1f} spreads {side} than the cost laws and open models' prices have it"
    if sheet.rates.cache_read is not None and sheet.rates.cache_read > sheet.rates.input:
        yield "reading a cached token costs more than computing it"
    longest = rungs(sheet)[-1]
    if longest.rates.output < sheet.rates.output:
        yield "the longest tier costs less than the shortest: no cost falls with context"

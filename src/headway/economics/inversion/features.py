"""Features of a price sheet as numbers: price levels and slopes by context, and closed-form bounds on KV and batch."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from headway.core.quantity import Sourced, default, known
from headway.economics.inversion.priors import CandidateChip
from headway.economics.sheets.sheet import ContextTier, Mode, PriceSheet, Rates
from headway.laws.economics import inversion as laws
from headway.laws.economics.cost import batch_ratio_identity, log_even_quantile
from headway.laws.roofline.balance import compute_s_per_token

# Assumed positions of requests within a context tier: middle and ends.
WITHIN = (0.25, 0.5, 0.75)
MIDDLE = default(0.5, "within the tier", "", "requests lie in the middle of a context tier, a quarter to three quarters of it are tried")
DIGITS = 2  # decimals of a spread, so that equally uncertain sheets share weights
OPEN_ENDED = default(2.0, "open tier", "", "the last tier ends at twice its start where the sheet names no longest context")


@dataclass(frozen=True, slots=True, kw_only=True)
class SheetTier:
    """One context tier: rates of requests whose prompt is above `above` and up to `to` tokens."""

    above: Any
    to: Any
    rates: Rates


@dataclass(frozen=True, slots=True, kw_only=True)
class SheetTiers:
    """Slope of output rates over context: the median secant between neighbouring context tiers."""

    slope: Any  # USD/token^2
    spread: float  # half range of the slope's logarithm over positions of requests in a tier
    lower: SheetTier
    upper: SheetTier


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """The features of one sheet; None for a feature it lacks."""

    input: float  # USD/token
    output: float
    ladder: SheetTiers | None = None
    least_batch: float | None = None
    fast_mode: str = ""


def features(sheet: PriceSheet) -> Features | None:
    """The features of a sheet; None for a sheet with free tokens."""
    rates = sheet.rates
    if not (rates.input > 0 and rates.output > 0):
        return None
    batch, mode = _least_batch(sheet)
    return Features(input=rates.input, output=rates.output, ladder=ladder(rungs(sheet)), least_batch=batch, fast_mode=mode)


def rungs(sheet: PriceSheet) -> tuple[SheetTier, ...]:
    """The context tiers with their ends, shortest first; tiers that start beyond the longest context are dropped."""
    tiers = [tier for tier in sheet.tiers if sheet.context_limit is None or tier.above < sheet.context_limit]
    starts = [0.0, *(tier.above for tier in tiers)]
    last = sheet.context_limit if sheet.context_limit is not None else OPEN_ENDED * starts[-1]
    ends = [*starts[1:], last]
    return tuple(_rung(start, end, rates) for start, end, rates in zip(starts, ends, _rates(sheet, tiers), strict=True))


def _rates(sheet: PriceSheet, tiers: list[ContextTier]) -> list[Rates]:
    return [sheet.rates, *(tier.rates for tier in tiers)]


def _rung(start: float, end: float, rates: Rates) -> SheetTier:
    return SheetTier(above=start, to=end, rates=rates)


def ladder(tiers: tuple[SheetTier, ...]) -> SheetTiers | None:
    """The slope of output rates over context tiers; None if they do not rise."""
    pairs = rising(tiers)
    if not pairs:
        return None
    slopes = sorted((secant(below, above, 0.5), number) for number, (below, above) in enumerate(pairs))
    lower, upper = pairs[slopes[(len(slopes) - 1) // 2][1]]
    tried = [secant(lower, upper, share) for share in WITHIN]
    spread = round(0.5 * math.log(max(tried) / min(tried)), DIGITS)
    return SheetTiers(slope=secant(lower, upper, MIDDLE), spread=spread, lower=lower, upper=upper)


def rising(tiers: tuple[SheetTier, ...]) -> list[tuple[SheetTier, SheetTier]]:
    """Pairs of neighbouring tiers with a rising output rate."""
    return [(below, above) for below, above in pairwise(tiers) if above.rates.output > below.rates.output > 0]


def secant(lower: SheetTier, upper: SheetTier, share: Any) -> Any:
    """The slope in USD/token^2 between two tiers with requests at `share` of each tier."""
    return laws.rate_slope(lower.rates.output, upper.rates.output, at(lower, share), at(upper, share))


def at(rung: SheetTier, share: Any) -> Any:
    """The context in tokens at `share` of a tier."""
    return laws.within_tier(rung.above, rung.to, share)


def faster(sheet: PriceSheet) -> list[Mode]:
    """The modes with a higher price and a known higher speed."""
    dearer = [mode for mode in sheet.modes if mode.rates.output > sheet.rates.output > 0]
    return [mode for mode in dearer if mode.speed_ratio is not None and mode.speed_ratio > 1]


def _least_batch(sheet: PriceSheet) -> tuple[float | None, str]:
    """Largest lower bound on the standard batch (price x speed of a faster mode), and that mode's name; (None, "") without faster modes."""
    candidates = [(batch_ratio_identity(mode.rates.output / sheet.rates.output, mode.speed_ratio), mode.name) for mode in faster(sheet)]
    return max(candidates, default=(None, ""))


HOUR = known(3600, "hour", "s", "constant", "definition")
LOWER, UPPER, EQUALITY = "lower bound", "upper bound", "equality"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedBound:
    """One closed-form bound, at the middle and the ends of its assumptions."""

    name: str
    label: str
    value: Any
    lo: Any
    hi: Any
    about: str
    unit: str = "byte/token"


def fact(value: Any, name: str, unit: str, sheet: PriceSheet) -> Any:
    """A number of a sheet, with the sheet as its origin."""
    if isinstance(value, Sourced):
        return value
    return known(value, f"{sheet.model}.{name}", unit, "datasheet", sheet.source, sheet.as_of)


def bounds(sheet: PriceSheet, features: Features, on: CandidateChip, active: Any) -> Iterator[ClosedBound]:
    """Every closed-form bound that the sheet's features allow, on one chip and for `active` parameters."""
    yield from _of_ladder(sheet, features, on, active)
    yield from _of_cache(sheet, on, active)
    yield from _of_modes(sheet)


def slope(sheet: PriceSheet, ladder: SheetTiers) -> Any:
    """The slope of context tiers, its numbers with the sheet as origin."""
    lower, upper = ladder.lower, ladder.upper
    at = [
        laws.within_tier(fact(rung.above, "tier", "token", sheet), fact(rung.to, "tier end", "token", sheet), 0.5)
        for rung in (lower, upper)
    ]
    rates = [fact(rung.rates.output, "output", "USD/token", sheet) for rung in (lower, upper)]
    return laws.rate_slope(rates[0], rates[1], at[0], at[1])


def middle_price(on: CandidateChip) -> Any:
    """The middle of a chip's price range."""
    return log_even_quantile(on.price.low, on.price.high, 0.5) if on.price.wide else on.price.low


def _of_ladder(sheet: PriceSheet, features: Features, on: CandidateChip, active: Any) -> Iterator[ClosedBound]:
    if features.ladder is None:
        return
    lower, upper = rising(rungs(sheet))[0]  # a knee would be at the first step
    rise, bandwidth = slope(sheet, features.ladder), on.chip.hbm_bw
    prices = (on.price.high, middle_price(on), on.price.low)
    lo, value, hi = (laws.kv_slope_bound(rise, bandwidth, price) for price in prices)
    text = f"the slope of the output price, all of it KV read at full bandwidth, at cost, on {on.chip.name} at each end of its price"
    yield ClosedBound(name="kv_slope", label=UPPER, value=value, lo=lo, hi=hi, about=text)
    compute = compute_s_per_token(active, on.peak)
    start, end = fact(upper.above, "tier", "token", sheet), fact(upper.to, "tier end", "token", sheet)
    knee, late = (laws.kv_at_knee(compute, bandwidth, context) for context in (start, end))
    text = "the price step as the context where reading KV takes as long as computing at the full peak, as the lecture has it"
    yield ClosedBound(name="kv_knee", label=LOWER, value=knee, lo=late, hi=knee, about=f"{text}; lower end: at the tier's end")
    step = fact(upper.rates.output, "output", "USD/token", sheet) / fact(lower.rates.output, "output", "USD/token", sheet)
    ratio = fact(sheet.rates.output, "output", "USD/token", sheet) / fact(sheet.rates.input, "input", "USD/token", sheet)
    if ratio > 1:
        early, last = (laws.kv_joint(kv_bytes, step, ratio) for kv_bytes in (knee, late))
        text = (
            "step and output/input ratio together: decode bound by memory as the ratio says, dearer by the step at the tier's start or end"
        )
        yield ClosedBound(name="kv_joint", label=EQUALITY, value=early, lo=last, hi=early, about=text)


def _of_cache(sheet: PriceSheet, on: CandidateChip, active: Any) -> Iterator[ClosedBound]:
    rates, price = sheet.rates, middle_price(on)
    holding = price / on.chip.hbm
    plain = fact(rates.input, "input", "USD/token", sheet)
    caveat = "so the markup alone decides between memory and disk"
    if rates.storage:
        kv_bytes = fact(rates.storage, "storage", "USD/token/s", sheet) * HOUR / (HOUR * holding)
        text = f"the storage fee as the cost of holding in the memory of {on.chip.name}; {caveat}"
        yield ClosedBound(name="kv_storage", label=UPPER, value=kv_bytes, lo=kv_bytes, hi=kv_bytes, about=text)
    for write in rates.cache_writes:
        if write.ttl_s and write.rate > rates.input:
            premium = fact(write.rate, "cache_write", "USD/token", sheet) - plain
            kv_bytes = premium / (fact(write.ttl_s, "ttl", "s", sheet) * holding)
            text = f"the write premium as the cost of holding for {write.ttl_s / 60:g} min in the memory of {on.chip.name}; {caveat}"
            yield ClosedBound(name=f"kv_write_{write.ttl_s:g}s", label=UPPER, value=kv_bytes, lo=kv_bytes, hi=kv_bytes, about=text)
    if rates.cache_read and on.chip.host_link_bw is not None:
        share = fact(rates.cache_read, "cache_read", "USD/token", sheet) / plain
        kv_bytes = share * compute_s_per_token(active, on.peak) * on.chip.host_link_bw
        text = f"the cache-read rate as the cost of loading over the host link of {on.chip.name}, beside computing at the full peak"
        yield ClosedBound(name="kv_cache_read", label=UPPER, value=kv_bytes, lo=kv_bytes, hi=kv_bytes, about=text)


def _of_modes(sheet: PriceSheet) -> Iterator[ClosedBound]:
    plain = fact(sheet.rates.output, "output", "USD/token", sheet)
    for mode in faster(sheet):
        price = fact(mode.rates.output, f"{mode.name} output", "USD/token", sheet) / plain
        least = batch_ratio_identity(price, fact(mode.speed_ratio, f"{mode.name} speed", "", sheet))
        text = f"price in proportion to a token's chip time: the {mode.name} mode decodes at least one where the standard one decodes these"
        yield ClosedBound(name=f"batch_{mode.name}", label=LOWER, value=least, lo=least, hi=least, about=text, unit="")


# -- contradictions -------------------------------------------------------------------------------------------------------------

DISAGREEMENT_FACTOR = 5.0  # ratio of two bounds that should be close
FAR = 2.0  # standard deviations


def contradictions(sheet: PriceSheet, features: Features, closed: list[ClosedBound], surprise: float) -> Iterator[str]:
    """Contradictions in words: features that no single machine explains."""
    by = {bound.name: bound for bound in closed}
    ratio = features.output / features.input
    if features.ladder is not None:
        lower, upper = rising(rungs(sheet))[0]
        step = upper.rates.output / lower.rates.output
        if "kv_joint" in by:
            joint = by["kv_joint"]
            yield (
                f"step and ratio: a knee at {upper.above / 1e3:g}k has decode bound by compute below it, output/input of {ratio:.3g} "
                f"that memory takes {ratio:.3g} times as long; together they ask for {joint.lo:,.0f} to {joint.hi:,.0f} B/token, the knee "
                f"alone for {by['kv_knee'].value:,.0f}"
            )
        if by["kv_slope"].value > DISAGREEMENT_FACTOR * by["kv_knee"].value:
            times = by["kv_slope"].value / by["kv_knee"].value
            yield f"slope and knee: what the longer tier adds pays for {times:,.0f} times the KV of the knee: the step is not a knee"
        rise = upper.rates.input / lower.rates.input if lower.rates.input else 0.0
        if rise > step * 1.01:
            yield f"input, output steps: input x{rise:.3g}, output x{step:.3g}, but reading KV makes no prompt dearer: attention or policy"
        if step > (upper.above + upper.to) / (lower.above + lower.to) * 1.01:
            yield f"the ladder rises faster (x{step:.3g}) than the context it is for: no cost in proportion to context does"
    if abs(surprise) > FAR:
        side = "more" if surprise > 0 else "less"
        yield f"output/input of {ratio:.3g} is {abs(surprise):.1f} spreads {side} than the cost laws and open models' prices have it"
    if sheet.rates.cache_read is not None and sheet.rates.cache_read > sheet.rates.input:
        yield "reading a cached token costs more than computing it"
    longest = rungs(sheet)[-1]
    if longest.rates.output < sheet.rates.output:
        yield "the longest tier costs less than the shortest: no cost falls with context"

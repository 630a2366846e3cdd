"""What a price sheet says, as numbers that the cost laws can be held against: levels, the slope of a ladder, the least batch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from headway.laws import inversion as laws
from headway.laws.speed import batch_ratio_identity
from headway.price_sheet import ContextTier, Mode, PriceSheet, Rates
from headway.quantity import default

# Where in a tier its requests lie: the middle, and the ends of what is tried.
WITHIN = (0.25, 0.5, 0.75)
MIDDLE = default(0.5, "within the tier", "", "requests lie in the middle of a context tier, a quarter to three quarters of it are tried")
DIGITS = 2  # of a spread: ladders that are as uncertain are weighed together
OPEN_ENDED = default(2.0, "open tier", "", "the last tier ends at twice its start where the sheet names no longest context")


@dataclass(frozen=True, slots=True, kw_only=True)
class SheetTier:
    """One tier of a ladder: prompts above `above` and up to `to` tokens, and the rates of all of such a request."""

    above: Any
    to: Any
    rates: Rates


@dataclass(frozen=True, slots=True, kw_only=True)
class SheetTiers:
    """What the output rates of context tiers rise by: the middle one of the secants between neighbouring tiers."""

    slope: Any  # USD/token^2
    spread: float  # of its logarithm, by where in the tiers requests lie
    lower: SheetTier
    upper: SheetTier


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """The features of one sheet; None where it has no such feature."""

    input: float  # USD/token
    output: float
    ladder: SheetTiers | None = None
    least_batch: float | None = None
    fast_mode: str = ""


def features(sheet: PriceSheet) -> Features | None:
    """What a sheet says; None for one that gives tokens away, of which no law says anything."""
    rates = sheet.rates
    if not (rates.input > 0 and rates.output > 0):
        return None
    batch, mode = _least_batch(sheet)
    return Features(input=rates.input, output=rates.output, ladder=ladder(rungs(sheet)), least_batch=batch, fast_mode=mode)


def rungs(sheet: PriceSheet) -> tuple[SheetTier, ...]:
    """The context tiers with their ends, the shortest first; only those whose start is within the longest context."""
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
    """The slope of a ladder's output rates; None where they do not rise."""
    pairs = rising(tiers)
    if not pairs:
        return None
    slopes = sorted((secant(below, above, 0.5), number) for number, (below, above) in enumerate(pairs))
    lower, upper = pairs[slopes[(len(slopes) - 1) // 2][1]]
    tried = [secant(lower, upper, share) for share in WITHIN]
    spread = round(0.5 * math.log(max(tried) / min(tried)), DIGITS)
    return SheetTiers(slope=secant(lower, upper, MIDDLE), spread=spread, lower=lower, upper=upper)


def rising(tiers: tuple[SheetTier, ...]) -> list[tuple[SheetTier, SheetTier]]:
    """Neighbouring tiers whose output rate rises from the one to the other."""
    return [(below, above) for below, above in pairwise(tiers) if above.rates.output > below.rates.output > 0]


def secant(lower: SheetTier, upper: SheetTier, share: Any) -> Any:
    """The slope between two tiers whose requests lie at `share` of each."""
    return laws.rate_slope(lower.rates.output, upper.rates.output, at(lower, share), at(upper, share))


def at(rung: SheetTier, share: Any) -> Any:
    """The context at `share` of a tier."""
    return laws.within_tier(rung.above, rung.to, share)


def faster(sheet: PriceSheet) -> list[Mode]:
    """The modes that are dearer and of known greater speed."""
    dearer = [mode for mode in sheet.modes if mode.rates.output > sheet.rates.output > 0]
    return [mode for mode in dearer if mode.speed_ratio is not None and mode.speed_ratio > 1]


def _least_batch(sheet: PriceSheet) -> tuple[float | None, str]:
    """The most that price x speed of any faster mode asks of the standard batch, and which mode."""
    candidates = [(batch_ratio_identity(mode.rates.output / sheet.rates.output, mode.speed_ratio), mode.name) for mode in faster(sheet)]
    return max(candidates, default=(None, ""))

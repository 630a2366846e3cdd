"""What is odd about a price sheet: it is accepted, and said."""

from __future__ import annotations

from collections.abc import Iterator

from headway import units
from headway.price_sheet import PriceSheet, Rates

MTOK = 1e6
TINY = 1e-4  # USD per Mtok: below what anyone charges


def oddities(sheet: PriceSheet) -> tuple[str, ...]:
    """Each odd thing in words."""
    return tuple(dict.fromkeys(_oddities(sheet)))


def _oddities(sheet: PriceSheet) -> Iterator[str]:
    for what, rates in parts(sheet):
        yield from (f"{what}{line}" for line in _of_rates(rates))
    for below, tier in zip((sheet.rates, *(context_tier.rates for context_tier in sheet.tiers)), sheet.tiers, strict=False):
        if tier.rates.input < below.input or tier.rates.output < below.output:
            yield f"above {units.show(tier.above, 'token')} tokens: costs less than the tier below"
    stepless = [mode.name for mode in sheet.modes if not mode.tiers] + ["time_of_day" for period in sheet.hours if not period.tiers]
    if sheet.tiers and stepless:
        yield f"{', '.join(dict.fromkeys(stepless))}: states no context tiers as the usual rates do: taken to cost the same at every length"
    for tier in sheet.tiers:
        if sheet.context_limit is not None and tier.above >= sheet.context_limit:
            longest = units.show(sheet.context_limit, "token")
            yield f"above {units.show(tier.above, 'token')} tokens: no prompt is so long, the context is {longest}"


def parts(sheet: PriceSheet) -> Iterator[tuple[str, Rates]]:
    """All rates of a sheet, with the words that say which: those of the shortest prompts without any."""
    yield "", sheet.rates
    yield from ((f"above {units.show(tier.above, 'token')} tokens: ", tier.rates) for tier in sheet.tiers)
    yield from ((f"{mode.name}: ", mode.rates) for mode in sheet.modes)
    yield from ((f"{hours.start_s / 3600:g} to {hours.end_s / 3600:g} h UTC: ", hours.rates) for hours in sheet.hours)


def _of_rates(rates: Rates) -> Iterator[str]:
    if rates.cache_read is not None and rates.cache_read > rates.input:
        yield f"cached input ({_format_rate(rates.cache_read)}) costs more than input ({_format_rate(rates.input)})"
    if rates.output < rates.input:
        yield f"output ({_format_rate(rates.output)}) costs less than input ({_format_rate(rates.input)})"
    for write in rates.cache_writes:
        if rates.cache_read is not None and write.rate < rates.cache_read:
            yield f"writing to the cache ({_format_rate(write.rate)}) costs less than reading from it ({_format_rate(rates.cache_read)})"
    if not rates.input and not rates.output:
        yield "costs nothing"
    elif 0 < max(rates.input, rates.output) * MTOK < TINY:
        yield f"input at {_format_rate(rates.input)}: is the file in USD per token, not per million tokens?"


def _format_rate(rate: float) -> str:
    return f"${rate * MTOK:.4g}/Mtok"

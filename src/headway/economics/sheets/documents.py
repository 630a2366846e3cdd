"""Price sheets as documents of the schema and as lines of TOML, and what differs between two of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from headway.economics.sheets.schema import MTOK, oddities
from headway.economics.sheets.sheet import ContextTier, Hours, PriceSheet, Rates

SAME = 1e-9  # relative difference below which rates are equal
CACHE_FACTS = ("min_prefix", "cache_block")
TTLS = {None: "default", 300.0: "5min", 3600.0: "1h", 43200.0: "12h", 86400.0: "24h"}


def near(first: float, second: float) -> bool:
    """Whether two rates are equal."""
    return abs(first - second) <= SAME * max(abs(first), abs(second))


def document_of(sheet: PriceSheet, of_modes: Mapping[str, str]) -> dict[str, Any]:
    """A sheet as a document of the schema; `of_modes` are the sources of modes that another package states."""
    document: dict[str, Any] = {"provider": sheet.provider, "model": sheet.model, "as_of": sheet.as_of, "source": sheet.source}
    document |= {key: value for key in ("context_limit", *CACHE_FACTS) if (value := getattr(sheet, key)) is not None}
    document |= {"rates": rates_in(sheet.rates)} | steps_in(sheet.tiers)
    document["modes"] = {
        mode.name: {"rates": rates_in(mode.rates)}
        | steps_in(mode.tiers)
        | ({"source": of_modes[mode.name]} if mode.name in of_modes else {})
        for mode in sheet.modes
    }
    document["time_of_day"] = [{"utc": window(hours), "rates": rates_in(hours.rates)} | steps_in(hours.tiers) for hours in sheet.hours]
    odd = oddities(sheet)
    document["notes"] = [flag for flag in sheet.flags if flag not in odd and "does not say since when" not in flag]
    return filled(document)


def filled(document: Mapping[str, Any]) -> dict[str, Any]:
    """A document without its empty entries."""
    return {key: value for key, value in document.items() if value not in ({}, [])}


def rates_in(rates: Rates) -> dict[str, Any]:
    """Rates in USD per million tokens."""
    single = {"input": rates.input, "output": rates.output, "cache_read": rates.cache_read}
    by_key: dict[str, Any] = {key: in_mtok(value) for key, value in single.items() if value is not None}
    writes = {TTLS[write.ttl_s]: in_mtok(write.rate) for write in rates.cache_writes}
    return by_key | ({"cache_write": writes} if writes else {})


def in_mtok(rate: float) -> float:
    """USD per million tokens of a rate, without what binary fractions add."""
    return float(f"{float(rate) * MTOK:.10g}")


def steps_in(tiers: Sequence[ContextTier]) -> dict[str, Any]:
    """Context tiers, if any."""
    return {"tiers": [{"above_tokens": tier.above} | rates_in(tier.rates) for tier in tiers]} if tiers else {}


def window(hours: Hours) -> str:
    """Hours of the day in UTC."""
    return "-".join(f"{int(end // 3600):02}:{int(end % 3600 // 60):02}" for end in (hours.start_s, hours.end_s))


def lines_of(document: Mapping[str, Any]) -> Iterator[str]:
    """The lines of a sheet in TOML: one for each mode and each context tier, so that a change of prices is a change of few lines."""
    for key, value in document.items():
        if key == "modes":
            yield from (f"modes.{name} = {toml(mode)}" for name, mode in value.items())
        elif isinstance(value, list) and len(value) > 1 and isinstance(value[0], Mapping):
            yield from (f"{key} = [", *(f"  {toml(item)}," for item in value), "]")
        else:
            yield f"{key} = {toml(value)}"


def toml(value: Any) -> str:
    """A value in TOML."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return f"{int(value):_}" if float(value).is_integer() else f"{value:.10g}"


# -- what differs ---------------------------------------------------------------------------------------------------------------


def rates_by_place(sheet: PriceSheet) -> dict[str, float]:
    """Every rate of a sheet in USD per million tokens, of each mode and hour at each length at which a price changes."""
    parts = [("", sheet.rates, sheet.tiers), *((f"{mode.name} ", mode.rates, mode.tiers) for mode in sheet.modes)]
    parts += [(f"{window(hours)} ", hours.rates, hours.tiers) for hours in sheet.hours]
    starts = sorted({0.0, *(tier.above for _, _, tiers in parts for tier in tiers)})
    places: dict[str, float] = {}
    for name, base, tiers in parts:
        for start in starts:
            rates = next((tier.rates for tier in reversed(tiers) if tier.above <= start), base)
            for key, value in rates_in(rates).items():
                of_key = {f"{key} {ttl}": rate for ttl, rate in value.items()} if isinstance(value, dict) else {key: value}
                places |= {f"{name}{part}{f' above {start:g}' if start else ''}": rate for part, rate in of_key.items()}
    return places


def differences(ours: PriceSheet, theirs: PriceSheet) -> list[str]:
    """Rates of a package's sheet that ours has not, or has otherwise."""
    has, wants = rates_by_place(ours), rates_by_place(theirs)
    return [f"{place}: {wants[place]:g}, not {has.get(place, 'stated')}" for place in wants if not near(has.get(place, -1.0), wants[place])]


def changes(old: Sequence[PriceSheet], new: Sequence[PriceSheet]) -> Iterator[str]:
    """What a new file changes, sheet by sheet."""
    before, after = ({f"{sheet.provider}/{sheet.model}@{sheet.as_of}": sheet for sheet in sheets} for sheets in (old, new))
    for name in [*before, *(name for name in after if name not in before)]:
        if name not in after or name not in before:
            yield f"{name}: {'goes' if name in before else 'is new'}"
        elif lines := [*differences(before[name], after[name]), *(f"gone: {line}" for line in differences(after[name], before[name]))]:
            yield f"{name}: {'; '.join(lines)}"

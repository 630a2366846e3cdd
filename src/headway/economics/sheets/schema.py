"""A price sheet in the project's own schema, from a document (TOML, JSON) or from the rows of a table; oddities become flags.

    currency = "USD"                                # required; another needs usd_per_unit
    provider = "anthropic"
    model = "claude-opus-4.6"
    as_of = "2026-02"                               # required; "undated" where nobody says
    source = "price page"
    context_limit = "1M"
    min_prefix = 1024                               # a shorter prefix is not cached
    cache_block = 128                               # a cached prefix is counted in whole blocks of so many tokens
    rates = { input = 5, output = 25, cache_read = "0.1x", cache_write = { 5min = 6.25, 1h = "2x" }, storage_per_mtok_h = 1 }
    tiers = [{ above_tokens = "200k", input = 10, output = 37.5 }]    # the whole request; or multiplier = 2
    modes.fast = { ratio = 6, speed_ratio = 2.5, sla_tok_s = 80 }     # or rates = { ... }, tiers = [...]; source = "..." of its own
    time_of_day = [{ utc = "16:30-00:30", ratio = 0.5 }]              # or rates = { ... }

Rates are in USD per million tokens; "0.1x" is a multiple of the input rate. A tier, mode or hour inherits the rates that it omits; its
cache rates keep their multiple of the input rate. A mode or hours given by a ratio have the sheet's tiers, given by rates their own.
`[[sheets]]` holds several sheets, each with the keys above them in the file as defaults.

A `SheetEntry` is one table of such a file with its position, so that errors name the key. Readers of the price files of others write
documents in this schema: `tiers_of` rates by threshold, and `read_all` counts what is left out.
"""

from __future__ import annotations

import datetime
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from headway.core import units
from headway.core.errors import BadFile, BadValue, clip, nearest
from headway.core.quantity import KINDS, known
from headway.economics.sheets.sheet import CacheWrite, ContextTier, Hours, Mode, PriceSheet, Rates


@dataclass(frozen=True, slots=True, kw_only=True)
class SheetMatches:
    """The readable sheets of a file, and notes."""

    sheets: tuple[PriceSheet, ...]
    notes: tuple[str, ...] = ()


MOST_RATE = 1e5  # USD per Mtok; more than ten cents per token is a unit error


@dataclass(frozen=True, slots=True, kw_only=True)
class SheetEntry:
    """A table of a price file, with its file and position."""

    values: Mapping[str, Any]
    path: Any
    where: str = ""

    def wrong(self, key: str, why: str) -> BadFile:
        """The error for a key, with the reason."""
        return BadFile(self.path, f"{self.where}{key}: {why}")

    def only(self, keys: Iterable[str]) -> None:
        """Refuse unknown keys, since a misspelt key would be lost silently."""
        known = list(keys)
        for key in self.values:
            if key not in known:
                near = nearest(str(key), known)
                offer = f"did you mean {' or '.join(near)}?" if near else f"wants {', '.join(known)}"
                raise self.wrong(clip(key), f"no such entry; {offer}")

    def text(self, key: str, default: str) -> str:
        """The text under a key, or the default."""
        value = self.values.get(key, default)
        if not isinstance(value, str) or not value.strip():
            raise self.wrong(key, f"got {clip(value)!r}; wants text in quotes")
        return " ".join(value.split())

    def number(self, key: str, most: float = math.inf, above: float | None = None) -> float | None:
        """The finite number of 0 or more under a key, or None."""
        value = self.values.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise self.wrong(key, f"got {clip(value)!r}; wants a finite number")
        if value < 0 or (above is not None and value <= above):
            raise self.wrong(key, f"got {value:g}; wants a number {'of 0 or more' if above is None else f'above {above:g}'}")
        if value > most:
            raise self.wrong(key, f"got {value:g}; wants at most {most:g}: rates are in USD per million tokens")
        return float(value)

    def tokens(self, key: str) -> float | None:
        """The count of tokens under a key, given as a number or as 200k."""
        value = self.values.get(key)
        if isinstance(value, str):
            try:
                value = units.parse(value, "token", key)
            except BadValue as error:
                raise BadFile(self.path, f"{self.where}{error}") from None
        count = SheetEntry(values={key: value}, path=self.path, where=self.where).number(key, most=1e12, above=0)
        if count is not None and not count.is_integer():
            raise self.wrong(key, f"got {count:g}; wants whole tokens")
        return count

    def part(self, key: str) -> SheetEntry:
        """The table under a key, empty if absent."""
        value = self.values.get(key, {})
        if not isinstance(value, Mapping):
            raise self.wrong(key, f"got {clip(value)!r}; wants a table")
        return SheetEntry(values=value, path=self.path, where=f"{self.where}{key}.")

    def parts(self, key: str) -> Iterator[SheetEntry]:
        """The tables in the list under a key."""
        value = self.values.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
            raise self.wrong(key, f"got {clip(value)!r}; wants a list of tables")
        for number, table in enumerate(value, 1):
            yield SheetEntry(values=table, path=self.path, where=f"{self.where}{key}[{number}].")

    def present_keys(self, keys: Iterable[str]) -> list[str]:
        """The keys that the table has."""
        return [key for key in keys if self.values.get(key) is not None]


TINY = 1e-4  # USD per Mtok, lower than any real rate


def oddities(sheet: PriceSheet) -> tuple[str, ...]:
    """Oddities of a sheet, in words."""
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
    """All rates of a sheet, each with a label; "" for the base rates."""
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


RATES = ("input", "output", "cache_read", "cache_write", "storage_per_mtok_h")
ABOUT = ("provider", "model", "as_of", "source", "kind", "currency", "usd_per_unit", "context_limit", "min_prefix", "cache_block", "notes")
TABLE = ("name", "packages", "read")  # what is of a whole file: the packages it was made of, and the day
SHEET = (*ABOUT, "rates", *RATES, "tiers", "modes", "time_of_day", "rule")
MODES = ("batch", "flex", "balanced", "standard", "priority", "fast", "ultra", "ultrafast", "peak")
MTOK, HOUR, DAY = 1e6, 3600.0, 86400.0
MOST_RATIO = 1e4
WINDOW = re.compile(r"(\d\d):(\d\d)\s*-\s*(\d\d):(\d\d)")
MULTIPLE = re.compile(r"\s*(\d+\.?\d*|\.\d+)\s*x\s*")
DATE = re.compile(r"\d{4}(-\d\d){0,2}")


def sheets_of(document: Mapping[str, Any], path: Any, kind: str = "input") -> tuple[PriceSheet, ...]:
    """Every sheet of a document."""
    if "sheets" not in document:
        return (sheet_of(SheetEntry(values=document, path=path), kind),)
    above = {key: value for key, value in document.items() if key != "sheets"}
    SheetEntry(values=above, path=path).only((*TABLE, *SHEET))
    above = {key: value for key, value in above.items() if key not in TABLE}
    sheets = tuple(
        sheet_of(replace(part, values={**above, **part.values}), kind) for part in SheetEntry(values=document, path=path).parts("sheets")
    )
    if not sheets:
        raise BadFile(path, "sheets: holds none")
    return sheets


def sheet_of(entry: SheetEntry, kind: str = "input") -> PriceSheet:
    """The sheet of one document."""
    entry.only(SHEET)
    if entry.values.get("rule", "cliff") != "cliff":
        raise entry.wrong("rule", f"got {clip(entry.values['rule'])!r}; wants cliff: beyond a threshold the whole request is re-priced")
    unit = _Unit(entry, kind)
    rates = _rates(unit, _rates_entry(entry), None)
    limit = entry.tokens("context_limit")
    sheet = PriceSheet(
        provider=entry.text("provider", "own"),
        model=entry.text("model", getattr(entry.path, "stem", "own")),
        as_of=unit.as_of,
        source=unit.source,
        rates=rates,
        tiers=_tiers(unit, entry, rates),
        context_limit=limit,
        min_prefix=entry.tokens("min_prefix"),
        cache_block=entry.tokens("cache_block"),
        flags=_notes(entry),
    )
    sheet = replace(sheet, modes=_modes(unit, entry, sheet), hours=_hours(unit, entry, sheet))
    return replace(sheet, flags=(*sheet.flags, *oddities(sheet)))


class _Unit:
    """Converter of one sheet's numbers to SI with their origin."""

    def __init__(self, entry: SheetEntry, kind: str) -> None:
        self.as_of, self.source = _date(entry), entry.text("source", f"file {getattr(entry.path, 'name', entry.path)}")
        self.kind = entry.text("kind", kind)
        if self.kind not in KINDS:
            raise entry.wrong("kind", f"got {self.kind!r}; wants one of {', '.join(KINDS)}")
        self.name, self.usd = entry.text("model", getattr(entry.path, "stem", "own")), _usd(entry)

    def from_source(self, source: str) -> _Unit:
        """The same converter for a part of the sheet that another source states."""
        part = copy(self)
        part.source = source
        return part

    def rate(self, entry: SheetEntry, key: str, base: float | None, input_rate: float | None, name: str = "") -> Any:
        """A rate in USD/token: given, a multiple of the input rate, or inherited from the base."""
        value = entry.values.get(key)
        if value is None:
            return base
        multiple = MULTIPLE.fullmatch(value) if isinstance(value, str) else None
        if multiple and input_rate is not None:
            return self.known(float(multiple[1]) * input_rate, name or key, "derived")
        return self.known((entry.number(key, MOST_RATE) or 0.0) * self.usd / MTOK, name or key, self.kind)

    def known(self, value: float, name: str, kind: str, unit: str = "USD/token") -> Any:
        """A number with its sheet as origin."""
        return known(value, f"{self.name}.{name}", unit, kind, self.source, self.as_of)


def _usd(entry: SheetEntry) -> float:
    """US dollars per unit of the sheet's currency."""
    if entry.values.get("currency") is None:
        raise entry.wrong("currency", 'missing; wants currency = "USD"')
    currency, usd = entry.text("currency", ""), entry.number("usd_per_unit", most=1e6, above=0)
    if currency.upper() == "USD":
        if usd not in (None, 1.0):
            raise entry.wrong("usd_per_unit", f"got {usd:g}; a dollar is worth one")
        return 1.0
    if usd is None:
        raise entry.wrong(
            "currency", f"got {clip(currency)!r}; wants USD, or usd_per_unit = the dollars that one {clip(currency, 12)} is worth"
        )
    return usd


def _date(entry: SheetEntry) -> str:
    """The date of a sheet as ISO text (year, month or day), or "undated"."""
    value = entry.values.get("as_of")
    if value is None:
        raise entry.wrong("as_of", 'missing; wants the date of the prices, such as as_of = "2026-11-12" (or "undated")')
    text = value.isoformat()[:10] if isinstance(value, datetime.date) else value
    if text == "undated":
        return text
    if isinstance(text, str) and DATE.fullmatch(text):
        try:
            datetime.date.fromisoformat((text + "-01-01")[:10])
        except ValueError:
            pass
        else:
            return text
    raise entry.wrong("as_of", f"got {clip(value)!r}; wants a date such as 2026-11-12, 2026-11 or undated")


def _notes(entry: SheetEntry) -> tuple[str, ...]:
    value = entry.values.get("notes", [])
    lines = [value] if isinstance(value, str) else value
    if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
        raise entry.wrong("notes", "wants text, or a list of texts")
    return tuple(lines)


def _rates_entry(entry: SheetEntry) -> SheetEntry:
    """The table with an entry's rates: under `rates`, or the entry itself."""
    beside = entry.present_keys(RATES)
    if "rates" in entry.values and beside:
        raise entry.wrong(beside[0], "stands beside rates and within; wants one of the two")
    if "rates" in entry.values:
        rates = entry.part("rates")
        rates.only(RATES)
        return rates
    return SheetEntry(values={key: entry.values[key] for key in beside}, path=entry.path, where=entry.where)


def _rates(unit: _Unit, entry: SheetEntry, base: Rates | None) -> Rates:
    """The rates of an entry; omitted rates come from the base, cache rates in proportion to the input rate."""
    if base is None and len(entry.present_keys(("input", "output"))) < 2:
        key = "output" if "input" in entry.values else "input"
        raise entry.wrong(key, "missing; wants USD per million tokens")
    first = unit.rate(entry, "input", base.input if base else None, None)
    scaled_base = _scaled(unit, base, first / base.input) if base and base.input else base
    storage = entry.number("storage_per_mtok_h", MOST_RATE)
    return Rates(
        input=first,
        output=unit.rate(entry, "output", base.output if base else None, first),
        cache_read=unit.rate(entry, "cache_read", scaled_base.cache_read if scaled_base else None, first),
        cache_writes=_joined(_writes(unit, entry, first), scaled_base.cache_writes if scaled_base else ()),
        storage=(base.storage if base else None)
        if storage is None
        else unit.known(storage * unit.usd / MTOK / HOUR, "storage", unit.kind, "USD/token/s"),
    )


def _writes(unit: _Unit, entry: SheetEntry, input_rate: float) -> tuple[CacheWrite, ...]:
    """Cache writes by ascending time to live; a bare number is for the provider's default time."""
    value = entry.values.get("cache_write")
    if value is None:
        return ()
    if not isinstance(value, Mapping):
        return (CacheWrite(ttl_s=None, rate=unit.rate(entry, "cache_write", None, input_rate)),)
    table, writes = entry.part("cache_write"), []
    for key in table.values:
        rate = unit.rate(table, key, None, input_rate, f"cache_write_{key}")
        writes.append(CacheWrite(ttl_s=None if key == "default" else _ttl(table, key), rate=rate))
    writes.sort(key=lambda write: write.ttl_s or 0.0)
    if len({write.ttl_s for write in writes}) < len(writes):
        raise entry.wrong("cache_write", "states one time to live twice")
    return tuple(writes)


def _joined(writes: tuple[CacheWrite, ...], below: tuple[CacheWrite, ...]) -> tuple[CacheWrite, ...]:
    """The given cache writes, with the writes below for other times to live."""
    ttls = {write.ttl_s for write in writes}
    return tuple(sorted((*writes, *(write for write in below if write.ttl_s not in ttls)), key=lambda write: write.ttl_s or 0.0))


def _ttl(table: SheetEntry, key: str) -> float:
    try:
        seconds = units.parse(key, "s", key)
    except BadValue:
        seconds = 0.0
    if not 0 < seconds <= 1000 * DAY or key.strip().isdigit():
        raise table.wrong(key, "is no time to live; wants 5min, 1h or default")
    return seconds


def _scaled(unit: _Unit, base: Rates, ratio: float) -> Rates:
    """All token rates times one ratio; the storage fee does not change."""

    def times(rate: float | None, name: str) -> Any:
        return None if rate is None else unit.known(rate * ratio, name, "derived")

    return Rates(
        input=times(base.input, "input"),
        output=times(base.output, "output"),
        cache_read=times(base.cache_read, "cache_read"),
        cache_writes=tuple(CacheWrite(ttl_s=write.ttl_s, rate=times(write.rate, "cache_write")) for write in base.cache_writes),
        storage=base.storage,
    )


def _changed(unit: _Unit, entry: SheetEntry, base: Rates, ratio_key: str) -> tuple[Rates, float | None]:
    """The rates of a tier, mode or hour, and its ratio, None if given by rates."""
    ratio = entry.number(ratio_key, most=MOST_RATIO)
    rates = _rates_entry(entry)
    if ratio is None and not rates.values:
        raise entry.wrong(ratio_key, "missing; wants a ratio to the usual rates, or rates")
    if ratio is not None and rates.values:
        raise entry.wrong(ratio_key, "stands beside rates; wants one of the two")
    return (_rates(unit, rates, base), None) if ratio is None else (_scaled(unit, base, ratio), ratio)


def _tiers(unit: _Unit, entry: SheetEntry, base: Rates) -> tuple[ContextTier, ...]:
    tiers: list[ContextTier] = []
    for tier in entry.parts("tiers"):
        tier.only(("above_tokens", "multiplier", "rates", *RATES))
        above = tier.tokens("above_tokens")
        if above is None:
            raise tier.wrong("above_tokens", "missing; wants the longest prompt of the tier below, such as 200k")
        if tiers and above <= tiers[-1].above:
            raise tier.wrong("above_tokens", f"got {above:g} after {tiers[-1].above:g}; wants tiers in rising order")
        tiers.append(ContextTier(above=above, rates=_changed(unit, tier, base, "multiplier")[0]))
    return tuple(tiers)


def _modes(unit: _Unit, entry: SheetEntry, sheet: PriceSheet) -> tuple[Mode, ...]:
    """The modes of a sheet; a mode given by a ratio scales the sheet's tiers, a mode given by rates has its own tiers."""
    table, modes = entry.part("modes"), []
    for name in table.values:
        if name not in MODES:
            SheetEntry(values={name: 0}, path=table.path, where=table.where).only(MODES)
        mode = table.part(name)
        mode.only(("ratio", "rates", *RATES, "tiers", "speed_ratio", "sla_tok_s", "source"))
        of_mode = unit.from_source(mode.text("source", unit.source))
        rates, ratio = _changed(of_mode, mode, sheet.rates, "ratio")
        modes.append(
            Mode(
                name=name,
                rates=rates,
                speed_ratio=mode.number("speed_ratio", most=MOST_RATIO, above=0),
                tokens_per_s=mode.number("sla_tok_s", most=1e6, above=0),
                tiers=_scaled_tiers(of_mode, sheet.tiers, ratio) or _tiers(of_mode, mode, rates),
            )
        )
    return tuple(modes)


def _scaled_tiers(unit: _Unit, tiers: tuple[ContextTier, ...], ratio: float | None) -> tuple[ContextTier, ...]:
    return () if ratio is None else tuple(ContextTier(above=tier.above, rates=_scaled(unit, tier.rates, ratio)) for tier in tiers)


def _hours(unit: _Unit, entry: SheetEntry, sheet: PriceSheet) -> tuple[Hours, ...]:
    periods: list[Hours] = []
    for period in entry.parts("time_of_day"):
        period.only(("utc", "ratio", "rates", *RATES, "tiers"))
        start, end = _window(period)
        rates, ratio = _changed(unit, period, sheet.rates, "ratio")
        tiers = _scaled_tiers(unit, sheet.tiers, ratio) or _tiers(unit, period, rates)
        hours = Hours(start_s=start, end_s=end, rates=rates, tiers=tiers)
        if any(_inside(start, earlier) or _inside(earlier.start_s, hours) for earlier in periods):
            raise period.wrong("utc", f"got {clip(period.values['utc'])!r}, which overlaps hours above it")
        periods.append(hours)
    return tuple(periods)


def _window(entry: SheetEntry) -> tuple[float, float]:
    match = WINDOW.fullmatch(str(entry.values.get("utc", "")).strip())
    parts = [int(part) for part in match.groups()] if match else []
    if parts and parts[0] < 24 and parts[2] <= 24 and max(parts[1], parts[3]) < 60 and (parts[2] < 24 or parts[3] == 0):
        start, end = (60.0 * (60 * hour + minute) for hour, minute in (parts[:2], parts[2:]))
        if start != end % DAY:
            return start, end % DAY
    raise entry.wrong("utc", f"got {clip(entry.values.get('utc'))!r}; wants hours of the day in UTC, such as 16:30-00:30")


def _inside(second: float, hours: Hours) -> bool:
    if hours.start_s < hours.end_s:
        return hours.start_s <= second < hours.end_s
    return second >= hours.start_s or second < hours.end_s


Steps = Mapping[float, Mapping[str, Any]]  # threshold in tokens (0: base rates) -> rates in USD per Mtok


def tiers_of(steps: Steps) -> list[dict[str, Any]]:
    """The tiers above 0 tokens in the schema; a threshold inherits rates that it does not restate."""
    tiers, rates = [], dict(steps[0])
    for above in sorted(steps):
        rates = {**rates, **steps[above]}
        if above:
            tiers.append({"above_tokens": above, "rates": dict(rates)})
    return tiers


def read_all(documents: Sequence[Mapping[str, Any]], path: Path, left_out: Counter[str]) -> SheetMatches:
    """Sheets of documents in the schema; an illegal document is dropped and counted in `left_out` by its first reason."""
    sheets: list[PriceSheet] = []
    wrong: list[str] = []
    for document in documents:
        where = f"{document['provider']}/{document['model']}: "
        try:
            sheets.append(sheet_of(SheetEntry(values=document, path=path, where=where), "datasheet"))
        except BadFile as error:
            wrong.append(str(error).removeprefix(f"{path}: "))
    if not sheets:
        raise BadFile(path, f"holds no price sheet that can be read{' (' + wrong[0] + ')' if wrong else ''}")
    without = ", ".join(f"{count} {why}" for why, count in left_out.items())
    notes = [f"{path}: {len(sheets)} sheets; left out: {without}"] if left_out else []
    notes += [f"{path}: {len(wrong)} entries are not legal and left out, the first: {wrong[0]}"] if wrong else []
    return SheetMatches(sheets=tuple(sheets), notes=tuple(notes))

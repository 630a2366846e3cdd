"""A price sheet: one provider's rates for one model on one date. SI inside: USD per token, seconds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheWrite:
    """The rate per token for writing a prefix with a time to live, instead of the input rate."""

    ttl_s: float | None  # None: the provider's default, not stated
    rate: float  # USD/token


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """The rates of one request; None for a rate that the provider does not have."""

    input: float  # USD/token
    output: float  # USD/token
    cache_read: float | None = None  # USD/token
    cache_writes: tuple[CacheWrite, ...] = ()  # by ascending time to live
    storage: float | None = None  # USD/token/s, a fee for holding a cached prefix


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextTier:
    """The rates of a request whose prompt is longer than `above` tokens: the whole request is re-priced (the cliff rule)."""

    above: float  # tokens
    rates: Rates


@dataclass(frozen=True, slots=True, kw_only=True)
class Mode:
    """A mode of a model at other rates: batch, flex, priority, fast, ultrafast. Its rates apply at all hours."""

    name: str
    rates: Rates
    speed_ratio: float | None = None  # output speed of one user over the standard mode's, as advertised
    tokens_per_s: float | None = None  # promised output speed of one user
    tiers: tuple[ContextTier, ...] = ()  # tiers of this mode; without tiers its rates apply to every length


@dataclass(frozen=True, slots=True, kw_only=True)
class Hours:
    """Other rates within a part of the day, UTC; `end_s` below `start_s` wraps over midnight."""

    start_s: float
    end_s: float
    rates: Rates
    tiers: tuple[ContextTier, ...] = ()  # tiers within these hours


@dataclass(frozen=True, slots=True, kw_only=True)
class SheetTable:
    """The file of the catalogue that a sheet stands in."""

    name: str
    packages: str  # with their versions; "" of a table by hand
    read: str  # the day on which they were read; "" of a table by hand
    ships: bool  # with the package, or is the user's
    at_home: bool  # in the folder that `headway update` writes and --shipped leaves out


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceSheet:
    """One dated sheet. `rates` are those of the standard mode, the shortest context tier and the usual hours."""

    provider: str
    model: str
    as_of: str  # ISO date, month or year; "undated" if the source has none
    source: str
    rates: Rates
    tiers: tuple[ContextTier, ...] = ()  # by ascending threshold
    modes: tuple[Mode, ...] = ()
    hours: tuple[Hours, ...] = ()
    context_limit: float | None = None  # tokens
    flags: tuple[str, ...] = ()  # oddities in words, accepted and printed
    min_prefix: float | None = None  # tokens; a shorter prefix is not cached
    cache_block: float | None = None  # tokens; a cached prefix is counted in whole blocks of so many
    table: SheetTable | None = None  # None of a sheet from a file that the question names

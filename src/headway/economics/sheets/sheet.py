"""A price sheet: what one provider charges for one model's tokens on one date. SI inside: USD per token, seconds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheWrite:
    """What writing a prefix for a time to live costs, per token, instead of the input rate."""

    ttl_s: float | None  # None: the provider's default, not stated
    rate: float  # USD/token


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """The rates of one request; a rate that the provider does not have is None."""

    input: float  # USD/token
    output: float  # USD/token
    cache_read: float | None = None  # USD/token
    cache_writes: tuple[CacheWrite, ...] = ()  # by rising time to live
    storage: float | None = None  # USD/token/s, a fee for holding a cached prefix


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextTier:
    """The rates of a request whose prompt is longer than `above` tokens: the whole request is re-priced (the cliff rule)."""

    above: float  # tokens
    rates: Rates


@dataclass(frozen=True, slots=True, kw_only=True)
class Mode:
    """A way to buy the same weights at other rates: batch, flex, priority, fast, ultrafast. It has these rates at all hours."""

    name: str
    rates: Rates
    speed_ratio: float | None = None  # output speed of one user over the standard mode's, as advertised
    tokens_per_s: float | None = None  # promised to one user
    tiers: tuple[ContextTier, ...] = ()  # of this mode; without them its rates hold for every length


@dataclass(frozen=True, slots=True, kw_only=True)
class Hours:
    """Other rates within a part of the day, UTC; `end_s` below `start_s` wraps over midnight."""

    start_s: float
    end_s: float
    rates: Rates
    tiers: tuple[ContextTier, ...] = ()  # within these hours


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceSheet:
    """One dated sheet. `rates` are those of the standard mode, the shortest context tier and the usual hours."""

    provider: str
    model: str
    as_of: str  # ISO date or the start of one; "undated" where the source has none
    source: str
    rates: Rates
    tiers: tuple[ContextTier, ...] = ()  # by rising threshold
    modes: tuple[Mode, ...] = ()
    hours: tuple[Hours, ...] = ()
    context_limit: float | None = None  # tokens
    flags: tuple[str, ...] = ()  # what is odd about it, in words: accepted, and said
    min_prefix: float | None = None  # tokens: a shorter prefix is not cached

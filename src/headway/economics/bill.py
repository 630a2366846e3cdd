"""Cost of requests under price sheets, by mode, time to live of the cache and layout of the prompt; cheapest first.

A prompt longer than a tier's threshold is re-priced as a whole (the cliff rule). Cached tokens pay the read rate, tokens written to the
cache pay the write rate, all others the input rate. A sheet with a read rate but no write rate caches automatically: tokens that miss
pay the input rate.

Of the requests, prefixes that prompts share follow from a trace's block ids, or from its conversations and the tokens with which all
prompts begin. A provider's cache is limited by time alone: each use restarts a prefix's time to live. A request finds whatever earlier
requests cached, however recent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from headway.core.errors import BadValue
from headway.core.quantity import known
from headway.economics.sheets.catalogue import sheet
from headway.economics.sheets.sheet import ContextTier, Hours, PriceSheet, Rates
from headway.laws.economics import cost
from headway.simulation.hit_rates import idle_after, idle_before, leading
from headway.simulation.traffic.requests import NO_CONVERSATION, Ints, Traffic

DAY = 86400.0
STANDARD = "standard"
NOT_STATED_TTL = 300.0  # assumed seconds for a provider that states no time to live: the shortest sold
OFF, PRICED, AUTOMATIC = "off", "priced", "automatic"
KINDS = ("prompt tokens at the input rate", "tokens read from the cache", "tokens written to the cache", "output tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class BillingOption:
    """One way to buy: a sheet's mode, a time to live in seconds (None: no cache), and a layout of prompts."""

    sheet: PriceSheet
    mode: str
    ttl_s: float | None
    caching: str
    layout: str
    unrated: bool = False  # a cache is wanted and the sheet states no rate for what it holds


@dataclass(frozen=True, slots=True, kw_only=True)
class BilledOption:
    """Cost of the requests under one billing option; dollars are totals over all requests."""

    way: BillingOption
    requests: int | None
    prompt_tokens: Any
    cached_tokens: Any  # tokens read from the cache
    written_tokens: Any  # tokens written to the cache
    output_tokens: Any
    cached_share: Any
    usd_input: Any
    usd_cached: Any
    usd_written: Any
    usd_output: Any
    usd_storage: Any
    usd: Any
    usd_each: Any  # USD per request; None if only totals are known
    break_even_reads: Any  # reads within the time to live that pay for a write; None if a write costs no extra
    reads_per_write: Any
    speed_ratio: Any
    too_long: int  # requests beyond the sheet's context
    ranked: bool  # False where the sheet states no rate for tokens that a cache would hold: what it costs is then at most this


@dataclass(slots=True)
class BillCalculator:
    """Bills of one set of requests; cache hits are computed once for all sheets."""

    requests: BilledRequests
    start_s: float = 0.0  # time of day (UTC) of the first request
    _cached_tokens: dict[tuple[float, str, float, int], Any] = field(default_factory=dict)
    _summed: dict[tuple[Any, ...], Any] = field(default_factory=dict)
    _token_seconds: dict[tuple[float, str], float] = field(default_factory=dict)

    def bill(self, way: BillingOption) -> BilledOption:
        """The bill of the requests under one billing option."""
        pieces = list(self._pieces(way))
        tokens = [self._known(sum(piece[kind] for _, piece in pieces), name) for kind, name in enumerate(KINDS)]
        fresh, cached, written_tokens, output = tokens
        usd_input, usd_cached, usd_written, usd_output = (
            sum(self._known(piece[kind], name) * rates[kind] for rates, piece in pieces) for kind, name in enumerate(KINDS)
        )
        storage = self._storage(way)
        token_fees = usd_input + usd_cached + usd_written + usd_output
        usd = token_fees if storage is None else token_fees + storage
        count, prompt = len(self.requests.prompt) if self.requests.lengths else None, fresh + cached + written_tokens
        return BilledOption(
            way=way, requests=count, prompt_tokens=prompt, cached_tokens=cached, written_tokens=written_tokens, output_tokens=output,
            cached_share=cached / prompt, usd_input=usd_input, usd_cached=usd_cached, usd_written=usd_written,
            usd_output=usd_output, usd_storage=storage, usd=usd,
            usd_each=usd / known(count, 'requests', '', 'input', self.requests.source) if count else None,
            break_even_reads=_break_even(way), reads_per_write=cached / written_tokens if written_tokens else None,
            speed_ratio=next((mode.speed_ratio for mode in way.sheet.modes if mode.name == way.mode), None),
            too_long=self._too_long(way.sheet), ranked=not (way.unrated and self.requests.reuses),
        )  # fmt: skip

    def _pieces(self, way: BillingOption) -> Iterator[tuple[tuple[Any, ...], tuple[float, ...]]]:
        """Rates and counts of uncached, cached, written and output tokens, by context tier and hours."""
        usual, tiers, hours = rates_of(way.sheet, way.mode)
        rest = self._by_tier(way, tiers, None)
        for period in hours:
            rest = rest - self._by_tier(way, tiers, period)
            yield from _priced(self._by_tier(way, period.tiers, period), period.rates, period.tiers, way)
        yield from _priced(rest, usual, tiers, way)

    def _by_tier(self, way: BillingOption, tiers: Sequence[ContextTier], hours: Hours | None) -> Any:
        """Tokens of each kind by context tier, of all requests or of requests that arrive within `hours`."""
        above = tuple(tier.above for tier in tiers) if self.requests.lengths else ()
        window = (hours.start_s, hours.end_s) if hours else None
        key = (way.ttl_s, way.layout, _granularity(way.sheet), way.caching == AUTOMATIC, above, window)
        if key not in self._summed:
            self._summed[key] = self._sums(way, above, window)
        return self._summed[key]

    def _sums(self, way: BillingOption, above: tuple[float, ...], window: tuple[float, float] | None) -> Any:
        r = self.requests
        hits, writes = self._cached(way)
        writes = np.zeros_like(writes) if way.caching == AUTOMATIC else writes
        kinds = (r.prompt - hits - writes, hits, writes, r.output)
        if window:  # of times of day; an end before the start is on the next day
            second = np.mod(self.start_s + r.arrival, DAY)
            late, early = second >= window[0], second < window[1]
            within = late & early if window[0] < window[1] else late | early
            kinds = tuple(tokens * within for tokens in kinds)
        cuts = [0, *np.searchsorted(r.prompt, above, side="right").tolist(), len(r.prompt)]
        return np.array([[tokens[begin:end].sum() for tokens in kinds] for begin, end in pairwise(cuts)])

    def _cached(self, way: BillingOption) -> tuple[Any, Any]:
        """Tokens read and tokens written of each prompt; zeros without a cache."""
        if way.ttl_s is None:
            none = np.zeros(len(self.requests.prompt), np.int64)
            return none, none
        key = (way.ttl_s, way.layout, *_granularity(way.sheet))
        if key not in self._cached_tokens:
            self._cached_tokens[key] = self.requests.cached(*key)
        return self._cached_tokens[key]

    def _storage(self, way: BillingOption) -> Any:
        """The provider's storage fee in USD; None without such a fee."""
        fee = rates_of(way.sheet, way.mode)[0].storage
        if way.ttl_s is None or fee is None:
            return None
        key = (way.ttl_s, way.layout)
        if key not in self._token_seconds:
            self._token_seconds[key] = self.requests.sharing.token_seconds(*key)
        return known(self._token_seconds[key], "tokens held", "token*s", "input", self.requests.source) * fee

    def _too_long(self, sheet: PriceSheet) -> int:
        if sheet.context_limit is None or not self.requests.lengths:
            return 0
        return int(np.count_nonzero(self.requests.prompt + self.requests.output > sheet.context_limit))

    def _known(self, count: float, name: str) -> Any:
        return known(float(count), name, "token", "input", self.requests.source)


def _granularity(sheet: PriceSheet) -> tuple[float, int]:
    """Tokens of the shortest prefix that a provider caches, and of a block of its cache."""
    return sheet.min_prefix or 0.0, int(sheet.cache_block or 1)


def rates_of(sheet: PriceSheet, mode: str) -> tuple[Rates, Sequence[ContextTier], Sequence[Hours]]:
    """The rates, context tiers and hours of a mode; only the standard mode has hours."""
    if mode == STANDARD:
        return sheet.rates, sheet.tiers, sheet.hours
    priced_mode = next(candidate for candidate in sheet.modes if candidate.name == mode)
    return priced_mode.rates, priced_mode.tiers, ()


def _priced(
    counts: Any, rates: Rates, tiers: Sequence[ContextTier], way: BillingOption
) -> Iterator[tuple[tuple[Any, ...], tuple[float, ...]]]:
    """Token rates and token counts of each context tier with tokens."""
    for tier, tokens in zip((rates, *(context_tier.rates for context_tier in tiers)), counts.tolist(), strict=False):
        if any(tokens):
            read = tier.input if tier.cache_read is None else tier.cache_read  # a missing cache rate is the input rate
            yield (tier.input, read, _write(tier, way.ttl_s, tier.input), tier.output), tuple(tokens)


def _write(rates: Rates, ttl_s: float | None, default: Any) -> Any:
    write_rates = {write.ttl_s: write.rate for write in rates.cache_writes}
    return write_rates.get(ttl_s, write_rates.get(None, default) if ttl_s == NOT_STATED_TTL else default)


def _break_even(way: BillingOption) -> Any:
    """Reads that pay for a write (claim AP-17); None unless a write costs more than input and a read less."""
    rates = rates_of(way.sheet, way.mode)[0]
    write = _write(rates, way.ttl_s, None)
    if way.caching != PRICED or write is None or rates.cache_read is None or not rates.cache_read < rates.input < write:
        return None
    return cost.break_even_reads(write / rates.input, rates.cache_read / rates.input)


# -- billing options ------------------------------------------------------------------------------------------------------------


def modes_of(sheet: PriceSheet) -> tuple[str, ...]:
    """The modes that a sheet sells."""
    return (STANDARD, *(mode.name for mode in sheet.modes if mode.name != STANDARD))


def ttls_of(rates: Rates) -> tuple[float, ...]:
    """The times to live on sale in seconds; an unstated time counts as NOT_STATED_TTL."""
    if rates.cache_read is None:
        return ()
    return tuple(dict.fromkeys(NOT_STATED_TTL if write.ttl_s is None else write.ttl_s for write in rates.cache_writes)) or (NOT_STATED_TTL,)


def ways_of(sheet: PriceSheet, modes: Sequence[str], ttls: Sequence[float | None], layouts: Sequence[str]) -> Iterator[BillingOption]:
    """The requested billing options that a sheet sells; without `ttls`, every time to live on sale and no cache.

    A sheet without a rate for cached tokens is billed without a cache whatever time to live is requested.
    """
    for mode in modes_of(sheet):
        if modes and mode not in modes:
            continue
        rates = rates_of(sheet, mode)[0]
        sold = ttls_of(rates)
        automatic = bool(sold) and not rates.cache_writes
        unrated = not sold and any(ttl is not None for ttl in ttls or (NOT_STATED_TTL,))
        for ttl in (None,) if unrated else ttls or (None, *sold):
            if ttl is None:
                yield BillingOption(sheet=sheet, mode=mode, ttl_s=None, caching=OFF, layout=ANY, unrated=unrated)
            elif automatic or ttl in sold:
                caching = AUTOMATIC if automatic else PRICED
                yield from (BillingOption(sheet=sheet, mode=mode, ttl_s=ttl, caching=caching, layout=layout) for layout in layouts)


# -- comparison -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class BillComparison:
    """A bill compared with the cheapest bill, and with its mode without a cache."""

    bill: BilledOption
    over_cheapest: Any
    saved_share: Any  # share saved against the mode without a cache; None if that was not billed


def compare(bills: Sequence[BilledOption]) -> list[BillComparison]:
    """Bills with comparisons, cheapest first; those that lack a rate or do not serve every request come last and are never the cheapest."""
    order = sorted(bills, key=lambda row: (row.too_long > 0, not row.ranked, float(row.usd), row.way.ttl_s is not None))
    if not order:
        return []
    return [compared(row, order[0], bill_without_cache(row, order)) for row in order]


def compared(row: BilledOption, cheapest: BilledOption, plain: BilledOption | None) -> BillComparison:
    """One bill compared with the cheapest bill and with the bill without a cache."""
    able = cheapest.usd and not cheapest.too_long and cheapest.ranked and row.ranked
    saved = cost.saved_share(row.usd, plain.usd) if plain and plain.usd and row.way.ttl_s is not None else None
    return BillComparison(bill=row, over_cheapest=row.usd / cheapest.usd if able else None, saved_share=saved)


def bill_without_cache(row: BilledOption, bills: Sequence[BilledOption]) -> BilledOption | None:
    """The bill of a row's sheet and mode without a cache, or None."""
    plain = (peer for peer in bills if peer.way.ttl_s is None and peer.way.mode == row.way.mode and peer.way.sheet is row.way.sheet)
    return next(plain, None)


def bill(
    sheets: Sequence[PriceSheet | str],
    traffic: Traffic,
    *,
    modes: Sequence[str] = (),
    ttls: Sequence[float | None] = (),
    shared: int = 0,
    start_s: float = 0.0,
) -> list[BillComparison]:
    """Bills of the traffic's tokens under every billing option, cheapest first; `modes` and `ttls` default to all on sale.

    >>> talk = Traffic.of([0, 60, 120], [8000, 9000, 10000], 500, conversation=[0, 0, 0])
    >>> [(one.bill.way.ttl_s, round(one.bill.usd, 4)) for one in bill(["claude-opus-4.6"], talk, modes=["standard"])]
    [(300.0, 0.1085), (3600.0, 0.146), (None, 0.1725)]
    """
    requests = requests_of(traffic, "given by the user", shared)
    biller = BillCalculator(requests=requests, start_s=start_s)
    resolved_sheets = [sheet(name_or_sheet) if isinstance(name_or_sheet, str) else name_or_sheet for name_or_sheet in sheets]
    return compare([biller.bill(way) for entry in resolved_sheets for way in ways_of(entry, modes, ttls, requests.sharing.layouts)])


FIRST, LAST, RECORDED, ANY = "shared first", "shared last", "as recorded", "any"  # place of the tokens that all prompts share


class PrefixReuse(Protocol):
    """Prefix reuse between prompts, by request in order of arrival."""

    @property
    def layouts(self) -> tuple[str, ...]: ...
    def marked(self, layout: str) -> Any:
        """Leading tokens of each prompt that the sender marks for caching."""
        ...

    def hit_tokens(self, ttl_s: float, layout: str) -> Any:
        """Leading tokens of each prompt that the cache holds on arrival."""
        ...

    def token_seconds(self, ttl_s: float, layout: str) -> float:
        """Cached tokens integrated over time, in token-seconds."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class BilledRequests:
    """Requests sorted by prompt length, so that each context tier is a contiguous slice."""

    source: str
    prompt: Any  # tokens, ascending
    output: Any  # tokens
    arrival: Any  # seconds from the first request
    order: Any  # index of each request in order of arrival
    sharing: PrefixReuse
    lengths: bool = True  # False if only totals are known, so that context tiers do not apply

    @property
    def reuses(self) -> bool:
        """Whether a cache of a day would hold tokens of these requests."""
        return any(self.sharing.hit_tokens(DAY, layout).any() for layout in self.sharing.layouts)

    def cached(self, ttl_s: float, layout: str, least: float, block: int) -> tuple[Any, Any]:
        """Tokens read and tokens written of each prompt: whole blocks; a prefix below `least` tokens is not cached."""
        marked, hits = (tokens - tokens % block for tokens in (self.sharing.marked(layout), self.sharing.hit_tokens(ttl_s, layout)))
        marked = np.where(marked < least, 0, marked)
        hits = np.minimum(np.where(hits < least, 0, hits), marked)
        return hits[self.order], (marked - hits)[self.order]


def requests_of(traffic: Traffic, source: str, shared: int = 0) -> BilledRequests:
    """Requests of traffic; without block ids, every prompt begins with `shared` common tokens."""
    if not len(traffic):
        raise BadValue("--requests", source, "at least one request")
    if len(traffic.blocks) and shared:
        raise BadValue("--shared", shared, "requests without block ids, which say themselves what is shared")
    if shared > traffic.prompt.max():
        raise BadValue("--shared", shared, f"at most the longest prompt's {traffic.prompt.max()} tokens, of which it is a part")
    sharing: PrefixReuse = BlockPrefixes(traffic) if len(traffic.blocks) else ConversationPrefixes(traffic, shared)
    order = np.argsort(traffic.prompt, kind="stable")
    return BilledRequests(
        source=source, prompt=traffic.prompt[order], output=traffic.output[order],
        arrival=traffic.arrival[order], order=order, sharing=sharing,
    )  # fmt: skip


class BlockPrefixes:
    """Prefix reuse in a trace whose prompts are lists of block ids."""

    layouts = (RECORDED,)

    def __init__(self, traffic: Traffic) -> None:
        self.traffic = traffic
        self.request = np.repeat(np.arange(len(traffic)), np.diff(traffic.block_start))

    @cached_property
    def before(self) -> Any:
        """Seconds since the last use of each block; inf at its first use."""
        return idle_before(self.traffic.blocks, self.request, self.traffic.arrival)

    @cached_property
    def after(self) -> Any:
        """Seconds until the next use of each block; inf at its last use."""
        return idle_after(self.traffic.blocks, self.request, self.traffic.arrival)

    def marked(self, layout: str) -> Any:
        return self._tokens(np.diff(self.traffic.block_start))

    def hit_tokens(self, ttl_s: float, layout: str) -> Any:
        return self._tokens(leading(self.before <= ttl_s, self.traffic.block_start))

    def token_seconds(self, ttl_s: float, layout: str) -> float:
        return float(np.minimum(self.after, ttl_s).sum()) * self.traffic.block_tokens

    def _tokens(self, blocks: Ints) -> Any:
        """Tokens in leading blocks of each prompt; its last block may be partly filled."""
        return np.minimum(blocks * self.traffic.block_tokens, self.traffic.prompt)


class ConversationPrefixes:
    """Prefix reuse of prompts that begin with tokens shared by all, or with their conversation's last prompt."""

    def __init__(self, traffic: Traffic, shared: int) -> None:
        self.prompt, self.arrival = traffic.prompt, traffic.arrival
        self.shared = np.minimum(shared, self.prompt)
        self.talks = traffic.conversation != NO_CONVERSATION
        order = np.lexsort((np.arange(len(traffic)), traffic.conversation))
        later, earlier = order[1:], order[:-1]
        turn = (traffic.conversation[later] == traffic.conversation[earlier]) & self.talks[later]
        later, earlier = later[turn], earlier[turn]
        self.last = np.zeros(len(traffic), np.int64)  # prompt tokens of the previous turn
        self.last[later] = self.prompt[earlier]
        self.before, self.after = (np.full(len(traffic), np.inf) for _ in range(2))  # seconds to the previous and next turn
        self.before[later] = self.after[earlier] = self.arrival[later] - self.arrival[earlier]
        gaps = np.diff(self.arrival)
        self.before_any, self.after_any = np.append(np.inf, gaps), np.append(gaps, np.inf)

    @property
    def layouts(self) -> tuple[str, ...]:
        return (FIRST, LAST) if self.shared.any() and self.talks.any() else (FIRST,)

    def marked(self, layout: str) -> Any:
        """Tokens to cache: the whole prompt in a conversation, since its next turn begins with it, else the shared tokens."""
        if layout == LAST:
            return np.where(self.talks, self.prompt - self.shared, 0)
        return np.where(self.talks, self.prompt, self.shared)

    def hit_tokens(self, ttl_s: float, layout: str) -> Any:
        """Tokens read: the longer of the last turn's prompt and the shared tokens, if their time has not run out."""
        if layout == LAST:  # shared tokens ended the last turn's prompt, so they are not in this prefix
            return np.where(self.before <= ttl_s, np.minimum(np.maximum(self.last - self.shared, 0), self.prompt), 0)
        previous_turn = np.where(self.before <= ttl_s, np.minimum(self.last, self.prompt), 0)
        return np.maximum(previous_turn, np.where(self.before_any <= ttl_s, self.shared, 0))

    def token_seconds(self, ttl_s: float, layout: str) -> float:
        """Token-seconds: the shared tokens once, and for each conversation its further tokens."""
        per_conversation = np.where(self.talks, self.prompt - self.shared, 0) * np.minimum(self.after, ttl_s)
        common = 0.0 if layout == LAST else self.shared * np.minimum(self.after_any, ttl_s)
        return float(np.sum(per_conversation + common))


class KnownHits:
    """Prefix reuse of prompts with a known number of hits; one without hits is not marked for caching."""

    layouts = (RECORDED,)

    def __init__(self, prompt: Ints, hits: Ints) -> None:
        self.prompt, self.hits = prompt, hits

    def marked(self, layout: str) -> Any:
        return np.where(self.hits > 0, self.prompt, 0)

    def hit_tokens(self, ttl_s: float, layout: str) -> Any:
        return self.hits

    def token_seconds(self, ttl_s: float, layout: str) -> float:
        return 0.0


def requests_of_totals(prompt: float, hits: float, output: float, source: str) -> BilledRequests:
    """Totals as a single request: prompt tokens, cached tokens among them, and output tokens."""
    if not 0 <= hits <= prompt:
        raise BadValue("--tokens", f"cached={hits:g}", f"cached tokens among the input's {prompt:g}")
    zero, prompts = np.zeros(1, np.int64), np.array([int(prompt)])
    return BilledRequests(
        source=source, prompt=prompts, output=np.array([int(output)]), arrival=zero.astype(float), order=zero,
        sharing=KnownHits(prompts, np.array([int(hits)])), lengths=False,
    )  # fmt: skip


def requests_over_a_day(prompt: Ints, output: Ints, hit_rate: float, source: str) -> BilledRequests:
    """Requests evenly over a day, so that prices by the hour count as they last; a cache has this share of each prompt."""
    order = np.argsort(prompt, kind="stable")
    arrival = np.arange(len(prompt)) * (DAY / len(prompt))
    return BilledRequests(
        source=source, prompt=prompt[order], output=output[order], arrival=arrival[order], order=order,
        sharing=KnownHits(prompt, np.rint(hit_rate * prompt).astype(np.int64)),
    )  # fmt: skip

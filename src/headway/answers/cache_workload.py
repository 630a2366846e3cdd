"""`headway cache --workload FILE --ttl 5min,1h [--capacity 10GB..1TB*2]`: hit rate of a trace by TTL and capacity, and the bill."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headway.answers import arguments, cache_subject
from headway.answers.bill import blocked_trace
from headway.core import schema
from headway.core.errors import BadValue
from headway.core.listing import Listing, cell, clean, remade
from headway.core.notes import note
from headway.core.quantity import known
from headway.core.schema import Field
from headway.core.units import show
from headway.economics.cache.records import CacheHold, TraceRow
from headway.economics.cache.trace import TraceCounts, billed, usage_row, with_list_price
from headway.economics.questions import TTLS, Cache
from headway.economics.sheets.catalogue import read
from headway.economics.sheets.tables import table_notes
from headway.report import cache, output
from headway.report.words import sentence
from headway.simulation.hit_rates import curve

if TYPE_CHECKING:
    from headway.core.listing import Rows

FOR_EVER = ("never", "inf", "none")
LEAST_SPAN = 2  # least duration of a trace in TTLs, for a typical cache occupancy
MOST_ROWS = 5000
VIEW = ("model", "ttl", "room", "tier", "hit_share", "held_bytes_mean", "held_bytes_peak", "paid_room", "usd_held", "usd_worn",
        "usd_loaded", "usd_computed", "usd_per_mtok_prompt", "usd_per_request_prompt", "saved_share", "sheet_usd_per_mtok",
        "sheet_saved_share", "best")  # fmt: skip
PLAIN = ("ttl", "hit_share", "held_tokens_mean", "held_tokens_peak")


def check_unused(args: Cache) -> None:
    """Raise an error for flags that need --workload."""
    for key in ("ttl", "capacity", "requests", "trace_block"):
        if getattr(args, key) is not None:
            raise BadValue(schema.flag(key), getattr(args, key), "--workload FILE beside it (the time a prefix is held: --hold)")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _WorkloadPoint:
    """Inputs of a row, enough to recompute it."""

    counts: Any
    variant: Any = None
    tier: int | None = None
    rates: Any = None
    waiting: Any = None

    @property
    def case(self) -> Any:
        """Cache problem; None if no model and no machine is given."""
        return None if self.variant is None else self.variant.case

    def identity(self) -> dict[str, Any]:
        """What tells its problem from others."""
        return {} if self.case is None else {"model": self.case.name, "system": self.case.machine, **self.variant.extra}

    def row(self, traced: bool = False) -> Any:
        """Row of this point; `traced` records its formulas (within `record()`)."""
        if self.case is None:
            trace_row = usage_row(self.counts)
        elif self.tier is None:
            trace_row = usage_row(self.counts, self.case.token_bytes())
        else:
            trace_row = billed(self.counts, self.case.places()[self.tier], self.waiting, self.case.subject(traced))
        return trace_row if self.rates is None else with_list_price(trace_row, self.counts, self.rates)


def _waiting(args: Cache) -> Any:
    waiting = schema.read(args, CacheHold).get("waiting")
    if isinstance(waiting, tuple):
        raise BadValue("--waiting", args.waiting, "one value beside --workload")
    return schema.defaults(CacheHold, {"hold": None} | ({} if waiting is None else {"waiting": waiting})).waiting


def run(args: Cache) -> output.Answer:
    """Answer with a row per TTL, capacity and tier."""
    _check(args)
    ttls, traffic = _ttls(args), _traffic(args)
    hits = curve(traffic)
    if not hits.span > 0:
        raise BadValue("--workload", args.workload, "a trace whose requests do not all arrive at once")
    has_case = args.model or args.kv_bytes or args.on
    cases = cache_subject.cases(args) if has_case else ()
    points = _points(args, hits, ttls, [_with_lengths(args, entry, hits) for entry in cases] or [None])
    rows = [clean(point.identity() | dataclasses.asdict(point.row())) for point in points]
    if not any(row["tier"] for row in rows):
        rows = [{key: value for key, value in row.items() if key not in ("tier", "device", "best")} for row in rows]
    priced = [row for row in rows if row["usd_prompts"] is not None]
    least = min(priced, key=lambda row: row["usd_prompts"], default=None)
    for row in priced:
        row["best"] = row is least
    listing = remade(rows, lambda place: points[place].row(traced=True), _notes(args, hits, ttls, points))
    pictures = cache.trace_pictures(hits, points[0].case)
    return output.Answer(listing, describe=_describe, pictures=pictures, columns=cache.own_columns(TraceRow), most=200)


def _check(args: Cache) -> None:
    for key in ("hold", "reuse", "uses", "hit_tokens", "new_tokens", "rate", "hit_rate", "fee", "storage"):
        if getattr(args, key) is not None:
            wants = "--ttl for how long it is kept" if key == "hold" else "a trace without it, which says so itself"
            raise BadValue(schema.flag(key), getattr(args, key), wants)
    if args.spread:
        raise BadValue("--spread", args.spread, "no --workload beside it: what a trace costs has no interval")


def _ttls(args: Cache) -> list[Any]:
    """TTLs in rising order (None: no expiry)."""
    parts = [part.strip() for part in (args.ttl or TTLS).split(",")]
    timed = [part for part in parts if part.lower() not in FOR_EVER]
    seconds, notes = schema.axis(",".join(timed), Field("s", high=1e12), "--ttl") if timed else ((), ())
    values = sorted(schema.several(seconds))
    note(*([] if args.ttl else [f"by default --ttl {TTLS}"]), *notes)
    return [*values, *([None] if len(timed) < len(parts) else [])]


def _traffic(args: Cache) -> Any:
    trace = blocked_trace(args.workload, args.trace_block)
    count = schema.scalar(args.requests, Field(integer=True, low=1, open_low=False), "--requests") if args.requests else None
    note(*trace.notes())
    if count is None:
        return trace.traffic
    if count >= len(trace.traffic):
        note(f"no effect: --requests {args.requests} is all of the trace")
    return trace.traffic.head(count)


def _points(args: Cache, hits: Any, ttls: Sequence[Any], cases: Sequence[Any]) -> list[_WorkloadPoint]:
    """Points for each TTL, capacity, tier and cache problem."""
    sheets = read(args.sheet, arguments.catalog(args)).sheets if args.sheet else ()
    note(*table_notes(sheets))
    rates = [sheet.rates for sheet in sheets] or [None]
    points = []
    for variant in cases:
        case = None if variant is None else variant.case
        rooms = _rooms(args, case)
        tiers = range(len(case.tiers)) if case is not None and case.system is not None else [None]
        for ttl, room, sheet in itertools.product(ttls, rooms, rates):
            counts = _trace_counts(args, hits, ttl, room, case)
            points += [_WorkloadPoint(counts=counts, variant=variant, tier=tier, rates=sheet, waiting=_waiting(args)) for tier in tiers]
            if len(points) > MOST_ROWS:
                raise BadValue("--ttl", "more points", f"at most {MOST_ROWS} rows")
    return points


def _with_lengths(args: Cache, variant: Any, hits: Any) -> Any:
    """Cache problem with the trace's mean prompt and output, if the user gave none, for the prefill estimate."""
    name = Path(args.workload).name
    means = {
        key: known(value, f"mean {key}", "token", "measured", f"counted in {name}", "undated")
        for key, value in (("prompt", hits.prompt), ("output", hits.output)) if getattr(args, key) is None
    }  # fmt: skip
    return dataclasses.replace(variant, case=dataclasses.replace(variant.case, **means))


def _rooms(args: Cache, case: Any) -> list[Any]:
    if not args.capacity:
        return [None]
    if case is None:
        raise BadValue("--capacity", args.capacity, "a model or --kv-bytes beside it, which says how many tokens it holds")
    rooms, _ = schema.axis(args.capacity, Field("byte", high=1e24, bare_least=1e3, usual=("GB",)), "--capacity")
    return list(schema.several(rooms))


def _trace_counts(args: Cache, hits: Any, ttl: Any, room: Any, case: Any) -> Any:
    """Counts of one pass over the trace, each a sourced number."""
    name = Path(args.workload).name

    def measured(value: float, what: str, unit: str) -> Any:
        return known(value, what, unit, "measured", f"counted in {name}", "undated")

    most = math.inf if ttl is None else float(ttl)
    blocks = math.inf if room is None else hits.blocks_in(room, case.token_bytes())
    return TraceCounts(
        trace=name, ttl=ttl, room=room, requests=measured(hits.requests, "requests", ""),
        prompt_tokens=measured(hits.prompt_tokens, "asked", "token"),
        hit_tokens=measured(hits.hit_tokens(most, blocks), "found", "token"), held_s=measured(hits.held_token_s(most), "held", "token*s"),
        peak=measured(hits.held_peak(most), "peak", "token"), span=measured(hits.span, "span", "s"),
    )  # fmt: skip


def _notes(args: Cache, hits: Any, ttls: Sequence[Any], points: Sequence[_WorkloadPoint]) -> list[str]:
    notes = [f"{hits.requests} requests in {show(hits.span, 's')}, blocks of {hits.block_tokens} tokens; the cache is empty at the start"]
    if not hits.answers:
        notes.append("the trace does not say what answers leave in the cache: a next turn finds at least this much")
    if any(ttl is None or ttl * LEAST_SPAN > hits.span for ttl in ttls):
        notes.append(f"the trace lasts {show(hits.span, 's')}: what longer times to live find and hold is cut off at its end")
    if any(point.tier is not None for point in points):
        case = next(point.case for point in points if point.case is not None)
        basis = "the room given" if args.capacity else "what is held, mean over the trace,"
        notes.append(f"holding is paid for {basis} or for more devices where bandwidth wants them")
        notes += [f"computing again: {case.recompute.how}", *cache.priced(case.places())]
    return notes


# -- words ------------------------------------------------------------------------------------------------------------------------


def _describe(table: Rows) -> output.Summary:
    """Summary: the best row, or the hit rates; then the table."""
    rows = list(table)
    best = next((row for row in rows if row.get("best")), None)
    view = VIEW if rows[0].get("held_bytes_mean") is not None else PLAIN
    view = [key for key in view if key not in ("model", "room") or len({row.get(key) for row in rows}) > 1]
    if best is None:
        shares = dict.fromkeys(f"{row['hit_share']:.1%} {_kept_for(row)}" for row in rows)
        first, *more = itertools.islice(shares, 6)
        headline = sentence(f"{rows[0]['trace']}: a cache holds {first} of the prompt tokens", *(f", {share}" for share in more))
        return output.Summary(headline, view, people=_people(rows))
    pays = best["saved_share"] > 0
    cost = f"{cell('usd_per_mtok_prompt', best)} per Mtok"
    saved = f", {best['saved_share']:.1%} less than without a cache" if pays else "; computing every prompt costs no more"
    hits = f"; {best['hit_share']:.1%} of prompt tokens hit"
    start = f"{best['trace']}: {'' if pays else 'no cache pays: '}prompts cost least, {cost}, cached {_kept_for(best)} in {best['tier']}"
    headline = sentence(start, saved, hits)
    return output.Summary(headline, view, people=_people(rows), helps=_helps(rows), remarks=_least_by_tier(rows))


MOST_HELPS = 3


def _helps(rows: Sequence[Mapping[str, Any]]) -> list[output.Help]:
    """The best cache of each tier that saves money, by what it saves."""
    helps = []
    for tier in dict.fromkeys(row["tier"] for row in rows if row["saved_share"] is not None):
        best = max((row for row in rows if row["tier"] == tier and row["saved_share"] is not None), key=lambda row: row["saved_share"])
        if best["saved_share"] > 0:
            effect = f"prompts {best['saved_share']:.1%} cheaper than without a cache"
            helps.append(output.Help(change=f"cache {_kept_for(best)} in {tier}", effect=effect, gain=best["saved_share"]))
    return output.ranked(helps)[:MOST_HELPS]


def _people(rows: Sequence[Mapping[str, Any]]) -> Listing:
    """Rows for people, with null values in words."""
    null_texts = {"ttl": "for ever", "room": "no limit"}
    return Listing([{**row, **{key: text for key, text in null_texts.items() if row[key] is None}} for row in rows])


def _kept_for(row: Mapping[str, Any]) -> str:
    room = "" if row["room"] is None else f" in {cell('room', row)}"
    return ("for ever" if row["ttl"] is None else f"for {cell('ttl', row)}") + room


def _least_by_tier(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    tier_costs = []
    for tier in dict.fromkeys(row["tier"] for row in rows if row["usd_prompts"] is not None):
        best = min((row for row in rows if row["tier"] == tier and row["usd_prompts"] is not None), key=lambda row: row["usd_prompts"])
        tier_costs.append(f"{tier} {_kept_for(best)} ({cell('usd_per_mtok_prompt', best)} per Mtok)")
    return [f"least cost by tier: {', '.join(tier_costs)}"] if tier_costs else []

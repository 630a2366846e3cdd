"""`headway cache MODEL --on MACHINE --hold 5min,1h,24h`, with --hit-tokens for sizes, --sheet for fees, --workload for a trace."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from headway.answers import cache_sizes, cache_subject, cache_workload
from headway.core import schema
from headway.core.errors import BadValue
from headway.core.listing import Listing, cell, clean, computed, format_value, place_of
from headway.core.trace import record
from headway.core.units import show
from headway.economics.cache.placement import CRITERIA, MONEY, RECOMPUTE, STORE, WEAR, hold_row, money_bands, wear_bands, with_choices
from headway.economics.cache.records import CacheHold, HoldRow
from headway.report import cache, output
from headway.report.words import sentence

VIEW = ("model", "system", "hold", "reuse", "uses", "tier", "balanced_hold_s", "device_usd_per_byte", "usd_per_mtok_held",
        "usd_per_mtok_gain", "break_even_hold_s", "hold_bound_s", "chosen_by", "contends")  # fmt: skip
CRITERIA_NOTE = (
    "drain time: hold nearest to capacity / bandwidth x uses; least cost: money in devices; cost with wear: holding, devices for bandwidth "
    "and wear, by which the answer goes; store-or-recompute: the fastest tier in which so long a hold still pays"
)


def run(args: Any) -> output.Answer:
    """Answer with criteria, sizes, fees or the bill of a trace, by the flags given."""
    if args.workload:
        return cache_workload.run(args)
    cache_workload.check_unused(args)
    if any(getattr(args, key) is not None for key in ("hit_tokens", "new_tokens", "rate", "hit_rate")):
        return cache_sizes.sizes(args)
    if args.sheet or args.fee or args.storage:
        return cache_sizes.fees(args)
    return _criteria(args)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _PlacementPoint:
    """Inputs of a row, enough to recompute it."""

    variant: Any
    hold: Any
    tier: int


def _criteria(args: Any) -> output.Answer:
    """Answer with a row per hold and tier."""
    axes, cases = cache_subject.holds(args), cache_subject.cases(args)
    rows, points = [], []
    for variant in cases:
        case = variant.case
        places, subject = case.places(), case.subject()
        for values in itertools.product(*axes.values()):
            hold = schema.defaults(CacheHold, dict(zip(axes, values, strict=True)))
            group = with_choices([hold_row(place, hold, subject) for place in places])
            rows += [clean(dataclasses.asdict(row)) | clean(variant.extra) for row in group]
            points += [_PlacementPoint(variant=variant, hold=hold, tier=number) for number in range(len(places))]
            if len(rows) > cache.MOST_ROWS:
                raise BadValue("cache", "more points", f"at most {cache.MOST_ROWS} rows")

    def tree(row: Mapping[str, Any], key: str) -> Any:
        point = points[place_of(row, rows)]
        with record():
            traced_row = hold_row(point.variant.case.places()[point.tier], point.hold, point.variant.case.subject(traced=True))
        return computed(getattr(traced_row, key, point.variant.extra.get(key)), key)

    listing = Listing(rows, notes=tuple(dict.fromkeys(_notes(cases))), tree=tree)
    describe = functools.partial(_describe, all_rows=rows, cases=cases)
    pictures = cache.pictures(lambda: (cases[0].case.places(), cases[0].case.subject(), points[0].hold))
    return output.Answer(listing, describe=describe, pictures=pictures, columns=cache.own_columns(HoldRow), most=200)


def _notes(cases: Sequence[Any]) -> list[str]:
    notes = []
    for case in (variant.case for variant in cases):
        price = case.price()
        notes += [f"computing again: {case.recompute.how}", f"chip price {show(price.value, 'USD/s')} ({price.metric})"]
        notes += cache.priced(case.places())
    return notes


# -- words ------------------------------------------------------------------------------------------------------------------------


def _describe(table: Any, all_rows: Sequence[Mapping[str, Any]], cases: Sequence[Any]) -> output.Summary:
    """Summary: the tier by each criterion, the tiers, the holds at which the choice changes, and what decides."""
    rows = list(table)
    extra = list(dict.fromkeys(key for variant in cases for key in variant.extra))
    apart = [*extra, *(key for key in ("model", "system", "reuse", "uses") if len({row[key] for row in all_rows}) > 1)]
    visible_groups, all_groups = _groups(rows, apart), _groups(all_rows, apart)  # choices are among all tiers, also those filtered out
    groups = [all_groups[key] for key in visible_groups]
    cheapest = [clause for group in groups if (clause := _cheapest(group, apart))]
    about = "" if {"model", "system"} & set(apart) else f" of {rows[0]['model']} on {rows[0]['system']}"
    again = [cell("hold", group[0]) for group in groups if _recomputed(group)]
    recompute = f"; computing again is cheaper for {' and '.join(dict.fromkeys(again))}" if again else ""
    more = f", and {len(cheapest) - cache.MOST_HOLDS} more" if len(cheapest) > cache.MOST_HOLDS else ""
    start = f"A KV cache{about} costs least, wear included, {cheapest[0]}" if cheapest else f"No tier chosen for a KV cache{about}"
    headline = sentence(start, *(f", {clause}" for clause in cheapest[1 : cache.MOST_HOLDS]), more, recompute)
    view = [*extra, *(key for key in VIEW if key in apart or key not in ("model", "system", "reuse", "uses"))]
    bands = dict.fromkeys(line for variant in cases for line in _bands(variant.case, rows[0]))
    answers = [_answers(group, apart) for group in groups[: cache.MOST_HOLDS]]
    remarks = [*answers, *itertools.islice(bands, 2 * cache.MOST_HOLDS), CRITERIA_NOTE]
    return output.Summary(headline, view, binds=_decides(rows[0]), remarks=remarks, first=("hold", "tier", "chosen_by"))


def _recomputed(group: Sequence[Mapping[str, Any]]) -> bool:
    """Whether no tier pays for a hold, so that computing again is cheaper."""
    return not any(STORE in (row["chosen_by"] or "").split(", ") for row in group)


def _cheapest(group: Sequence[Mapping[str, Any]], apart: Sequence[str]) -> str:
    """Clause on the tier that costs least for a hold; empty where none is chosen."""
    by_criterion = {name: row for row in group for name in (row["chosen_by"] or "").split(", ")}
    row = by_criterion.get(WEAR) or by_criterion.get(MONEY)
    if row is None:
        return ""
    of = "".join(f" {key} {cell(key, row)}" for key in apart)
    return f"in {row['tier']} for {cell('hold', row)}{of}"


def _groups(rows: Sequence[Mapping[str, Any]], apart: Sequence[str]) -> dict[Any, list[Mapping[str, Any]]]:
    """Rows grouped by hold."""
    groups: dict[Any, list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in ("hold", "waiting", *apart)), []).append(row)
    return groups


def _answers(group: Sequence[Mapping[str, Any]], apart: Sequence[str]) -> str:
    """Text such as `5 min: flash by drain time and least cost, ddr by cost with wear, ... (4 criteria, 3 answers)`."""
    by = {row["tier"]: row["chosen_by"].split(", ") for row in group if row["chosen_by"]}
    criterion_names = [name for names in by.values() for name in names]
    if STORE not in criterion_names:
        by[RECOMPUTE] = [STORE]
    order = sorted(by.items(), key=lambda item: CRITERIA.index(item[1][0]))
    parts = [f"{tier} by {' and '.join(criteria)}" for tier, criteria in order]
    count = f"{len(parts)} answers" if len(parts) > 1 else "one answer"
    of = ", ".join([*(f"{key} {cell(key, group[0])}" for key in apart), cell("hold", group[0])])
    return f"{of}: {', '.join(parts)} ({len(CRITERIA)} criteria, {count})"


def _bands(case: Any, first: Mapping[str, Any]) -> list[str]:
    places = case.places()
    lines = []
    by_criterion = [("least cost", money_bands), *([] if first["waiting"] else [("cost with wear", wear_bands)])]  # bands: nothing waits
    for name, bands_of in by_criterion:
        bands = bands_of(places, first["uses"])
        if bands:
            range_text = ", ".join(f"{band.tier} to {format_value(band.until, 's')}" for band in bands[:-1])
            uses = f"{format_value(first['uses'], '')} use{'s' if first['uses'] != 1 else ''} per hold"
            lines.append(f"{name}, {uses}: {range_text}{', then ' if range_text else ''}{bands[-1].tier}")
    return lines


def _decides(row: Mapping[str, Any]) -> str:
    """What decides between keeping and computing again."""
    low, high = cell("usd_per_mtok_recompute_lo", row), cell("usd_per_mtok_recompute_hi", row)
    spread = "" if low == high else f" ({low} .. {high})"
    again = f"computing again costs {cell('usd_per_mtok_recompute', row)} per Mtok{spread}"
    return f"{cell('kv_bytes', row)} of KV cache; {again}; loading is faster from {cell('break_even_bw', row)} per chip on"

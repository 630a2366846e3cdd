"""`headway cache MODEL --on MACHINE --hold 5min,1h,24h`, with --hit-tokens for sizes, --sheet for fees, --workload for a trace."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from headway import output, schema
from headway.assumptions import Assumptions
from headway.cache_ask import Hold, Service
from headway.cli import cache_figure, cache_sizes, cache_subject, cache_words, cache_workload
from headway.errors import BadValue
from headway.layout import Layout
from headway.listing import Listing, computed
from headway.precision import Precision

VIEW = ("model", "system", "hold", "reuse", "uses", "tier", "balanced_hold_s", "device_usd_per_byte", "usd_per_mtok_held",
        "usd_per_mtok_gain", "break_even_hold_s", "hold_bound_s", "chosen_by", "contends")  # fmt: skip


def add_flags(parser: Any) -> None:
    """Subject, hold, computing again, service, fees, workload, and the estimate's own flags."""

    cache_subject.add_flags(parser)
    schema.add_flags(parser, Hold, group="hold: every number may be a list or a range")
    schema.add_flags(parser, Service, group="sizes: how much of each tier a service's cache takes")
    fees = parser.add_argument_group("fees: what cache fees would pay for at cost")
    fees.add_argument("--sheet", metavar="NAME", help="price sheet: claude-opus, my_prices.toml, ...; with --workload, whose bill it is")
    fees.add_argument("--fee", metavar="USD/token", help="a fee for one hold beyond the input rate: $5/Mtok")
    fees.add_argument("--storage", metavar="USD/token/s", help="a fee by the hour: $4.50/Mtok/h")
    cache_workload.add_flags(parser)
    schema.add_flags(parser, Layout, group="layout of the estimate: searched unless pinned")
    schema.add_flags(parser, Precision, group="number formats (KV cache: bf16 unless told)")
    schema.add_flags(parser, Assumptions, skip=("hit_rate",), group="assumptions (named defaults)")


def run(args: Any) -> output.Answer:
    """Criteria, sizes, fees or the bill of a trace, by what was given."""
    if args.workload:
        return cache_workload.run(args)
    cache_workload.check_unused(args)
    if any(getattr(args, key) is not None for key in ("hit_tokens", "new_tokens", "rate", "hit_rate")):
        return cache_sizes.sizes(args)
    if args.sheet or args.fee or args.storage:
        return cache_sizes.fees(args)
    return _criteria(args)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Point:
    """Where a row comes from: enough to make it again."""

    asked: Any
    hold: Any
    tier: int


def _criteria(args: Any) -> output.Answer:
    """One row for each hold and tier."""
    from headway.cache import chosen, held
    from headway.cache_rows import Held

    axes, notes = cache_subject.holds(args)
    cases, more = cache_subject.cases(args)
    rows, points = [], []
    for one in cases:
        case = one.case
        places, subject = case.places(), case.subject()
        for values in itertools.product(*axes.values()):
            hold = schema.defaults(Hold, dict(zip(axes, values, strict=True)))
            group = chosen([held(place, hold, subject) for place in places])
            rows += [output.clean(dataclasses.asdict(row)) | output.clean(one.extra) for row in group]
            points += [_Point(asked=one, hold=hold, tier=number) for number in range(len(places))]
            if len(rows) > cache_words.MOST_ROWS:
                raise BadValue("cache", "more points", f"at most {cache_words.MOST_ROWS} rows")

    def tree(row: Mapping[str, Any], key: str) -> Any:
        from headway.formula import record

        point = points[_place(rows, row)]
        with record():
            made = held(point.asked.case.places()[point.tier], point.hold, point.asked.case.subject(traced=True))
        return computed(getattr(made, key, point.asked.extra.get(key)), key)

    listing = Listing(rows, notes=tuple(dict.fromkeys((*notes, *more, *_notes(cases)))), tree=tree)
    describe = functools.partial(_describe, every=rows, cases=cases)
    return output.Answer(listing, describe=describe, figure=cache_figure.holds, columns=cache_words.own_columns(Held), most=200)


def _place(rows: Sequence[Mapping[str, Any]], row: Mapping[str, Any]) -> int:
    return next(number for number, own in enumerate(rows) if all(row.get(name) == own[name] for name in own))


def _notes(cases: Sequence[Any]) -> list[str]:
    from headway.units import show

    notes = []
    for case in (one.case for one in cases):
        price = case.price()
        notes += [f"computing again: {case.recompute.how}", f"chip price {show(price.value, 'USD/s')} ({price.metric})"]
        notes += cache_words.priced(case.places())
    return notes


# -- words ------------------------------------------------------------------------------------------------------------------------


def _describe(kept: Any, every: Sequence[Mapping[str, Any]], cases: Sequence[Any]) -> output.Words:
    """The answers by criterion, the tiers, where one gives way to the next, and what decides."""
    rows = list(kept)
    if not rows:
        return output.Words("No row is left.")
    extra = list(dict.fromkeys(key for one in cases for key in one.extra))
    apart = [*extra, *(key for key in ("model", "system", "reuse", "uses") if len({row[key] for row in every}) > 1)]
    shown, whole = _groups(rows, apart), _groups(every, apart)  # an answer is of all tiers, whichever are left
    groups = [whole[key] for key in shown]
    named = [_answers(group, apart) for group in groups[: cache_words.TOLD]]
    named += [f"and {len(groups) - len(named)} more"] if len(groups) > len(named) else []
    told = "; ".join(named)
    about = "" if {"model", "system"} & set(apart) else f"{rows[0]['model']} on {rows[0]['system']}: "
    view = [*extra, *(key for key in VIEW if key in apart or key not in ("model", "system", "reuse", "uses"))]
    bands = dict.fromkeys(line for one in cases for line in _bands(one.case, rows[0]))
    return output.Words(f"{about}{told}.", view, [*itertools.islice(bands, 2 * cache_words.TOLD), *_decides(rows[0])])


def _groups(rows: Sequence[Mapping[str, Any]], apart: Sequence[str]) -> dict[Any, list[Mapping[str, Any]]]:
    """Rows of one hold together."""
    found: dict[Any, list[Mapping[str, Any]]] = {}
    for row in rows:
        found.setdefault(tuple(row[key] for key in ("hold", "waiting", *apart)), []).append(row)
    return found


def _answers(group: Sequence[Mapping[str, Any]], apart: Sequence[str]) -> str:
    """`5 min: flash by drain time and least cost, ddr by cost with wear, hbm by store-or-recompute (4 criteria, 3 answers)`."""
    from headway.cache import CRITERIA, RECOMPUTE, STORE

    by = {row["tier"]: row["chosen_by"].split(", ") for row in group if row["chosen_by"]}
    named = [one for each in by.values() for one in each]
    if STORE not in named:
        by[RECOMPUTE] = [STORE]
    order = sorted(by.items(), key=lambda item: CRITERIA.index(item[1][0]))
    parts = [f"{tier} by {' and '.join(criteria)}" for tier, criteria in order]
    count = f"{len(parts)} answers" if len(parts) > 1 else "one answer"
    of = ", ".join([*(f"{key} {output.cell(key, group[0])}" for key in apart), output.cell("hold", group[0])])
    return f"{of}: {', '.join(parts)} ({len(CRITERIA)} criteria, {count})"


def _bands(case: Any, first: Mapping[str, Any]) -> list[str]:
    from headway.cache import money_bands, wear_bands

    places = case.places()
    found = []
    for name, made in (("least cost", money_bands), ("cost with wear", wear_bands)):
        bands = made(places, first["uses"])
        if bands:
            told = ", ".join(f"{one.tier} to {output.shown(one.until, 's')}" for one in bands[:-1])
            uses = f"{output.shown(first['uses'], '')} use{'s' if first['uses'] != 1 else ''} per hold"
            found.append(f"{name}, {uses}: {told}{', then ' if told else ''}{bands[-1].tier}")
    return found


def _decides(row: Mapping[str, Any]) -> list[str]:
    low, high = output.cell("usd_per_mtok_recompute_lo", row), output.cell("usd_per_mtok_recompute_hi", row)
    spread = "" if low == high else f" ({low} .. {high})"
    again = f"computing again costs {output.cell('usd_per_mtok_recompute', row)} per Mtok{spread}"
    return [
        f"what decides: {output.cell('kv_bytes', row)} of KV cache; {again}; loading is faster from {output.cell('break_even_bw', row)} "
        "per chip on",
        "drain time: hold nearest to capacity / bandwidth x uses; least cost: money in devices; cost with wear: holding, devices for "
        "bandwidth and wear; store-or-recompute: the fastest tier in which so long a hold still pays",
    ]

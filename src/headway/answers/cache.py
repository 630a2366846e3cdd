"""`headway cache MODEL --on MACHINE --hold 5min,1h,24h`, with --hit-tokens for sizes, --sheet for fees, --workload for a trace."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headway.answers import arguments, cache_subject, cache_workload
from headway.answers.cache_subject import CacheQuestion
from headway.core import schema, spellings, units
from headway.core.errors import BadValue
from headway.core.listing import Listing, cell, clean, computed, format_value, place_of, remade
from headway.core.notes import note
from headway.core.quantity import user_input
from headway.core.question import refuse
from headway.core.trace import record
from headway.core.units import show
from headway.economics.cache.placement import (
    CRITERIA,
    MONEY,
    RECOMPUTE,
    STORE,
    WEAR,
    CacheFee,
    charges,
    fee,
    flow_of,
    hold_row,
    money_bands,
    read_fee,
    read_share,
    sized,
    wear_bands,
    with_choices,
)
from headway.economics.cache.records import CacheHold, CacheService, FeeRow, HoldRow, SizingRow
from headway.economics.questions import Cache
from headway.economics.sheets.catalogue import read
from headway.economics.sheets.sheet import Rates
from headway.economics.sheets.tables import table_notes
from headway.report import cache, output
from headway.report.pictures import grid
from headway.report.words import sentence

if TYPE_CHECKING:
    from headway.core.listing import Rows
    from headway.report.pictures.frame import Picture, View

VIEW = ("model", "system", "hold", "reuse", "uses", "tier", "balanced_hold_s", "device_usd_per_byte", "usd_per_mtok_held",
        "usd_per_mtok_gain", "break_even_hold_s", "hold_bound_s", "chosen_by", "contends")  # fmt: skip
CRITERIA_NOTE = (
    "drain time: hold nearest to capacity / bandwidth x uses; least cost: money in devices; cost with wear: holding, devices for bandwidth "
    "and wear, by which the answer goes; store-or-recompute: the fastest tier in which so long a hold still pays"
)


def run(args: Cache) -> output.Answer:
    """Answer with criteria, sizes, fees or the bill of a trace, by the flags given."""
    if args.workload:
        return cache_workload.run(args)
    cache_workload.check_unused(args)
    if any(getattr(args, key) is not None for key in ("hit_tokens", "new_tokens", "rate", "hit_rate")):
        return sizes(args)
    if args.sheet or args.fee or args.storage:
        return fees(args)
    return _criteria(args)


def _criteria(args: Cache) -> output.Answer:
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
            points += [(variant, hold, number) for number in range(len(places))]
            if len(rows) > cache.MOST_ROWS:
                raise BadValue("cache", "more points", f"at most {cache.MOST_ROWS} rows")

    def tree(row: Mapping[str, Any], key: str) -> Any:
        variant, hold, tier = points[place_of(row, rows)]
        with record():
            traced_row = hold_row(variant.case.places()[tier], hold, variant.case.subject(traced=True))
        return computed(getattr(traced_row, key, variant.extra.get(key)), key)

    notes = []
    for case in (variant.case for variant in cases):
        price = case.price()
        notes += [f"computing again: {case.recompute.how}", f"chip price {show(price.value, 'USD/s')} ({price.metric})"]
        notes += cache.priced(case.places())
    listing = Listing(rows, notes=tuple(dict.fromkeys(notes)), tree=tree)
    describe = functools.partial(_describe, all_rows=rows, cases=cases)
    pictures = cache.pictures(lambda: (cases[0].case.places(), cases[0].case.subject(), points[0][1]))
    return output.Answer(listing, describe=describe, pictures=pictures, columns=cache.own_columns(HoldRow), most=200)


# -- words ------------------------------------------------------------------------------------------------------------------------


def _describe(table: Rows, all_rows: Sequence[Mapping[str, Any]], cases: Sequence[Any]) -> output.Summary:
    """Summary: the tier by each criterion, the tiers, the holds at which the choice changes, and what decides."""
    rows = list(table)
    extra = list(dict.fromkeys(key for variant in cases for key in variant.extra))
    apart = [*extra, *(key for key in ("model", "system", "reuse", "uses") if len({row[key] for row in all_rows}) > 1)]
    visible_groups, all_groups = _groups(rows, apart), _groups(all_rows, apart)  # choices are among all tiers, also those filtered out
    groups = [all_groups[key] for key in visible_groups]
    cheapest = _cheapest(groups, apart)
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


def _cheapest(groups: Sequence[Sequence[Mapping[str, Any]]], apart: Sequence[str]) -> list[str]:
    """Clauses on the tiers that cost least, each for a hold or up to one."""

    def choice(group: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
        by_criterion = {name: row for row in group for name in (row["chosen_by"] or "").split(", ")}
        row = by_criterion.get(WEAR) or by_criterion.get(MONEY)
        return ("", "") if row is None else (row["tier"], "".join(f" {key} {cell(key, row)}" for key in apart))

    clauses = []
    for (tier, of), run in itertools.groupby(groups, choice):
        holds = [group[0] for group in run]
        longest = max(holds, key=lambda row: row["hold"])  # holds stand in the order in which they were asked
        clauses += [f"in {cache.tier_name(tier)} {'up to' if len(holds) > 1 else 'for'} {cell('hold', longest)}{of}"] if tier else []
    return clauses


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


SIZED = ("model", "hold", "cache_bytes", "tier", "devices_by_capacity", "devices_by_bandwidth", "devices_by_turns", "devices_by_rating",
         "bound_by", "devices_usd", "devices_usd_lo", "devices_usd_hi", "balanced_hold_s", "worn_out_s")  # fmt: skip
FEES = ("model", "fee_of", "hold", "usd_per_mtok_fee", "tier", "usd_per_mtok_room", "paid_bytes", "paid_bytes_lo", "paid_bytes_hi",
        "markup")  # fmt: skip


def _row(variant: CacheQuestion, row: Any) -> dict[str, Any]:
    """A row with what tells its problem from others."""
    identity = {"model": variant.case.name, "system": variant.case.machine}
    return clean(identity | dataclasses.asdict(row) | dict(variant.extra))


# -- sizes ------------------------------------------------------------------------------------------------------------------------


def sizes(args: Cache) -> output.Answer:
    """Answer with a row per TTL and tier."""
    axes = cache_subject.holds(args)
    if axes.keys() - {"hold"}:
        raise BadValue(schema.flag(min(axes.keys() - {"hold"})), "given", "sizes without it: what hits read is given")
    for key in ("sheet", "fee", "storage"):
        if getattr(args, key):
            raise BadValue(schema.flag(key), getattr(args, key), "sizes without it: fees are a question of their own")
    service_values = schema.read(args, CacheService)
    lists = schema.axes(service_values)
    args = args.replace(tier=args.tier or "ddr,flash,disk")
    cases = cache_subject.cases(args, lengths=args.rate is not None, recompute=False)
    rows, makes = list[dict[str, Any]](), list[Callable[[], Any]]()
    for variant, values, hold in itertools.product(cases, list(itertools.product(*lists.values())), axes["hold"]):
        service = CacheService(**dict(zip(lists, values, strict=True)))
        _check_service_flags(service)
        for number in range(len(variant.case.tiers)):

            def make(case: Any = variant.case, service: Any = service, hold: Any = hold, number: int = number) -> Any:
                return sized(case.places()[number], hold, flow_of(service, case.prompt, case.output), case.token_bytes())

            makes.append(make)
            rows.append(_row(variant, make()))
        if len(rows) > cache.MOST_ROWS:
            raise BadValue("cache", "more points", f"at most {cache.MOST_ROWS} rows")
    return output.Answer(
        remade(rows, lambda place: makes[place](), cache.priced(cases[0].case.places())), describe=_describe_sizes,
        pictures={"sizes": _drawing}, columns=cache.own_columns(SizingRow), most=200,
    )  # fmt: skip


def _check_service_flags(service: Any) -> None:
    rates = service.hit_tokens is not None, service.new_tokens is not None
    described = service.rate is not None, service.hit_rate is not None
    if (rates, described) not in (((True, True), (False, False)), ((False, False), (True, True))):
        flags = [schema.flag(key) for key in ("hit_tokens", "new_tokens", "rate", "hit_rate") if getattr(service, key) is not None]
        raise BadValue("sizes", " ".join(flags), "--hit-tokens and --new-tokens, or --rate and --hit-rate with --prompt and --output")


def _describe_sizes(table: Rows) -> output.Summary:
    """Summary: the cheapest tier of each TTL."""
    rows = list(table)
    holds = list(dict.fromkeys(row["hold"] for row in rows))
    parts, binding = [], []
    for hold in holds[: cache.MOST_HOLDS]:
        group = [row for row in rows if row["hold"] == hold and row["devices_usd"] is not None]
        if not group:
            continue
        best = min(group, key=lambda row: row["devices_usd"])
        parts.append(f"{cell('devices_usd', best)} of {best['tier']} for {cell('hold', best)}")
        size = f"{cell('devices', best)} devices for {cell('cache_bytes', best)}"
        binding.append(f"{best['bound_by']} of {best['tier']} for {cell('hold', best)} ({size})")
    more = f", and {len(holds) - cache.MOST_HOLDS} more" if len(holds) > cache.MOST_HOLDS else ""
    first = rows[0]
    flow = f"hits read {cell('cache_read', first)}, new tokens write {cell('cache_written', first)}"
    view = [key for key in SIZED if key != "model" or len({row["model"] for row in rows}) > 1]
    remarks = [
        f"{cell('kv_bytes', first)} of KV cache; {flow}",
        "by turns: with writes at the write bandwidth; by rating: at what the maker of a disk allows on average over years",
    ]
    start = f"The cheapest devices are {parts[0]}" if parts else "No price of a device is known"
    headline = sentence(start, *(f", {part}" for part in parts[1:]), more)
    return output.Summary(headline, view, binds="; ".join(binding), remarks=remarks, first=("hold", "tier", "devices_usd"))


def _drawing(table: Rows, view: View) -> Picture:
    title = "What a service's cache takes, by how long it is kept"
    return grid.picture(
        list(table), "hold", ("cache_bytes", "devices", "devices_usd"), ("tier",), view, title=title, about="by memory tier"
    )


# -- fees -------------------------------------------------------------------------------------------------------------------------


def fees(args: Cache) -> output.Answer:
    """Answer with a row per fee and tier."""
    sheets = read(args.sheet, arguments.catalog(args)).sheets if args.sheet else ()
    note(*table_notes(sheets))
    rates = [sheet.rates for sheet in sheets]
    is_timed = bool(args.fee or args.storage or any(rate.storage is not None for rate in rates))  # else the sheet says how long
    if not is_timed:
        refuse(args, dict.fromkeys(schema.fields(CacheHold), ""))
    axes: dict[str, Any] = cache_subject.holds(args) if is_timed else {"hold": ()}
    if axes.keys() - {"hold"}:
        raise BadValue(schema.flag(min(axes.keys() - {"hold"})), "given", "fees without it: a fee is for one hold, used or not")
    has_reads = any(rate.cache_read is not None for rate in rates)
    cases = cache_subject.cases(args, recompute=has_reads and (args.mfu is not None or args.fresh is not None))
    rows, makes, price_notes = list[dict[str, Any]](), list[Callable[[], Any]](), list[str]()
    for variant in cases:
        for at, place in itertools.product(range(len(_charges(args, rates, axes["hold"]))), range(len(variant.case.tiers))):

            def make(case: Any = variant.case, place: int = place, at: int = at) -> Any:
                return fee(case.places()[place], _charges(args, rates, axes["hold"])[at], case.token_bytes())

            makes.append(make)
            rows.append(_row(variant, make()))
        reads = _reads(variant.case, rates)
        makes += reads
        rows += [_row(variant, make()) for make in reads]
        price_notes += cache.priced(variant.case.places())
    if not rows:
        raise BadValue("--sheet", args.sheet, "a sheet with cache writes by time to live or a storage fee, or --fee $5/Mtok")
    return output.Answer(
        remade(rows, lambda place: makes[place](), price_notes), describe=_describe_fees, columns=cache.own_columns(FeeRow), most=200
    )


def _reads(case: Any, rates: Sequence[Any]) -> list[Callable[[], Any]]:
    """What makes the rows of KV bytes that cache-read rates pay for, if the recompute speed is given."""
    makes = list[Callable[[], Any]]()
    if case.mfu is None and case.fresh is None:
        return makes
    for sheet_rates, place in itertools.product(rates, range(len(case.tiers))):

        def make(rate: Any = sheet_rates, place: int = place) -> Any:
            return read_fee(case.places()[place], read_share(rate), case.recompute.chip_time().value, case.token_bytes())

        if sheet_rates.cache_read is not None and make() is not None:
            makes.append(make)
    return makes


def _charges(args: Cache, rates: Sequence[Any], holds: Sequence[Any]) -> list[Any]:
    """Cache fees of the sheets, and fees given as flags for each hold."""
    all_charges = [charge for sheet_rates in rates for charge in charges(sheet_rates, holds)]
    if args.fee:
        amount = user_input(_positive(args.fee, "USD/token", "--fee"), "fee", "USD/token")
        all_charges += [CacheFee(name="fee", fee=amount, hold=hold) for hold in holds]
    if args.storage:
        amount = user_input(_positive(args.storage, "USD/token/s", "--storage"), "storage", "USD/token/s")
        all_charges += charges(Rates(input=0.0, output=0.0, storage=amount), holds)
    return all_charges


def _positive(text: str, unit: str, flag: str) -> float:
    value = units.parse(text, unit, flag)
    if not value > 0:
        raise BadValue(flag, text, f"more than 0, such as {spellings.EXAMPLE[unit]}")
    return value


def _describe_fees(table: Rows) -> output.Summary:
    """Summary: KV bytes that the first fee pays for in each tier, with the reminder that the markup is unknown."""
    rows = list(table)
    first = rows[0]
    group = [row for row in rows if all(row[key] == first[key] for key in ("model", "fee_of", "hold", "usd_per_mtok_fee"))]
    capacities = [f"{cell('paid_bytes', row)} in {row['tier']}" for row in group]
    fee_text = "" if first["hold"] is None else f" for {cell('hold', first)}: {cell('usd_per_mtok_fee', first)} per Mtok"
    headline = sentence(f"{first['fee_of']}{fee_text} would pay for {capacities[0]}", *(f", {size}" for size in capacities[1:]))
    view = [key for key in FEES if key != "model" or len({row["model"] for row in rows}) > 1]
    kv_bytes = cell("kv_bytes", first)
    remarks = [f"not identified: the tier. A fee fixes bytes x cost of holding x markup; here {kv_bytes} are taken, and the markup follows"]
    if any(row["fee_of"] == "cache read" for row in rows):
        remarks.append("cache read: KV bytes at which loading takes that share of computing again, if both rates were at cost")
    return output.Summary(headline, view, remarks=remarks)

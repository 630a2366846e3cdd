"""`headway price MODEL --on MACHINE ...`: cost and price per million tokens, as intervals."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from headway.answers import arguments, combination
from headway.answers.no_effect import search_notes, shown_notes
from headway.core import interval, schema
from headway.core.columns import Column
from headway.core.errors import BadValue
from headway.core.listing import Listing, clean, place_of
from headway.core.notes import note
from headway.economics.price.price import PriceRequest, explained
from headway.economics.price.price import row as price_row_of
from headway.economics.price.terms import CommercialTerms
from headway.economics.questions import PriceList
from headway.economics.sheets import catalogue
from headway.economics.sheets.sheet import PriceSheet, Rates
from headway.hardware.chip_price import price_name
from headway.models.precision import Precision
from headway.performance.assumptions import Assumptions
from headway.performance.layout import Layout
from headway.performance.workload import SLO, Load
from headway.report import output, price, serving
from headway.report.pictures import curves
from headway.serving.curves import context_curves
from headway.serving.serve import prefix_hits

MOST_PLANS, MOST_ROWS = 50, 10_000
HIT_STEP = "+0.05"  # default step of a range of hit rates
OWN_COLUMNS = {  # columns with a meaning specific to this question
    "utilisation": Column("", "share of paid chip-hours that do useful work, middle"),
    "hit_rate": Column("", "share of prompt tokens found in a prefix cache"),
    "usd_per_request": Column("USD", "cost of a request, idle hours counted: its prompt and its output, every input in its middle"),
}


# -- the rows -------------------------------------------------------------------------------------------------------------------


def run(args: Any) -> output.Answer:
    """Answer with a row per plan, commercial terms and hit rate."""
    hits, hit_notes = _hits(args)
    plans = _plans(args, hits)
    note(*hit_notes)
    all_terms, sheet = list(_terms(args)), _rates(args)
    note(*shown_notes(args, [plan.best for _, plan in plans], skip=("hit_rate",)))
    if len(plans) * len(all_terms) * len(hits) > MOST_ROWS:
        raise BadValue("price", f"{len(plans) * len(all_terms) * len(hits)} rows", f"at most {MOST_ROWS}")
    rest: dict[str, Any] = {"metric": args.price_metric or "", "is_owned": args.own, "sheet": sheet, "catalog": arguments.catalog(args)}
    cells = [(plan, extra, PriceRequest(terms=terms, hit=hit, **rest)) for extra, plan in plans for terms in all_terms for hit in hits]
    rows = []
    for cell_plan, extra, ask in cells:
        price_row, more = price_row_of(cell_plan, ask)
        rows.append(price_row | dict(extra))
        note(*more)

    def tree(target: Mapping[str, Any], key: str) -> Any:
        row_plan, _, ask = cells[place_of(target, rows)]
        return explained(row_plan, ask, key)

    def changed(target: Mapping[str, Any], name: str, text: str) -> Mapping[str, Any] | None:
        if name == "chip_price" and (args.own or args.price_metric):
            return None
        row_plan, _, ask = cells[place_of(target, rows)]
        value = interval.read(text, schema.fields(CommercialTerms)[name][0], schema.flag(name))[0]
        return price_row_of(row_plan, dataclasses.replace(ask, terms=dataclasses.replace(ask.terms, **{name: value})))[0]

    listing = Listing(rows, tree=tree)

    def context(table: Any, view: Any) -> Any:
        first = next(iter(table), None)
        if first is None:
            raise BadValue("--plot", "no rows", "rows to draw")
        row_plan, _, _ = cells[next(at for at, entry in enumerate(rows) if entry["model"] == first["model"])]
        return context_picture(row_plan.best.query, first, view)

    drawings = {"grid": price.grid, "context": context} if price.varies(rows) else {"context": context, "grid": price.grid}
    return output.Answer(listing, describe=lambda table: price.describe(table, changed), pictures=drawings, columns=OWN_COLUMNS)


def context_picture(query: Any, row: Mapping[str, Any], view: Any) -> Any:
    """Picture of the cost of a token against context, at the layout and batch of a row."""
    case = context_curves(query.model, query.system, row, query.assumptions)
    return curves.context(case, row, serving.layout(row), view, float(row["prompt"]))


def _plans(args: Any, hits: Sequence[Any]) -> list[tuple[dict[str, Any], Any]]:
    """Plans (cheapest layout within the limits) for each model, machine, load, limit and assumption."""
    from headway.serving.plan.plan import plan

    load = schema.read(args, Load, combination.COUNTS, most=combination.MOST_VALUES)
    limits = schema.read(args, SLO, most=combination.MOST_VALUES)
    degrees = schema.read(args, Layout, most=combination.MOST_VALUES)
    formats = schema.read(args, Precision)
    assumption_sets = combination.combinations(args, Assumptions, ("hit_rate",))
    several = len(hits) > 1
    planned = {} if several or hits[0] is None else {"hit_rate": hits[0]}
    load = arguments.requested(load)
    models, systems = arguments.models(args), arguments.systems(args)
    arguments.note_beyond(models, load)
    note(*search_notes(args, load, skip=("hit_rate",)))
    axes = schema.axes(load | limits)
    names: dict[str, Any] = schema.axes(formats)
    cases = list(itertools.islice(itertools.product(models, systems, itertools.product(*axes.values()), assumption_sets), MOST_PLANS + 1))
    if len(cases) > MOST_PLANS:
        raise BadValue("price", "too many combinations of models, machines, loads, limits and assumptions", f"at most {MOST_PLANS}")
    plans = []
    for model, (system, edits), values, assumptions in cases:
        point = dict(zip(axes, values, strict=True))
        slo = SLO(**{name: value for name, value in point.items() if name in limits})
        case_plan = plan(
            model, system, Load(prompt=point["prompt"], output=point["output"]), slo, **names, ways=degrees, batch=point.get("batch"),
            assumptions=schema.defaults(Assumptions, assumptions | planned), disaggregate=args.disaggregate, elasticities=False,
        )  # fmt: skip
        varied = {key: value for key, value in point.items() if key in limits and len(axes[key]) > 1} | edits
        plans.append((clean(varied | (assumptions if len(assumption_sets) > 1 else {})), case_plan))
    plan_notes = [note for _, result in plans for note in _plan_notes(result)]
    free = [] if limits else ["no limit is given, so the cheapest layout may be slow for a user: --tpot 50ms sets one"]
    free += [] if args.utilisation else ["no idle hours are counted: --utilisation 0.3..0.7 does"]
    hit_notes = ["every hit rate is taken at the layout and batch planned without a prefix cache"] if several else []
    hit_notes += dict.fromkeys(prefix_hits(system) for system, _ in systems) if several else []
    note(*free, *hit_notes, *plan_notes)
    return plans


def _plan_notes(plan: Any) -> list[str]:
    """Notes of a plan, without those on its chip price."""
    query = plan.best.query
    price_notes = (
        "chip price $",
        "without a price the objective",
        f"{query.system.chip.name} has no {price_name(query.assumptions.price_metric)}",
    )
    return [note for note in plan.notes if not note.startswith(price_notes)]


def _terms(args: Any) -> Iterator[CommercialTerms]:
    """Commercial terms for each combination of chip price, utilisation and margin."""
    if args.chip_price and (args.own or args.price_metric):
        raise BadValue("--chip-price", args.chip_price, "no --own and no --price-metric beside it: each says what a chip costs")
    if args.own and args.price_metric:
        raise BadValue("--own", args.price_metric, "no --price-metric beside it: each says what a chip costs")
    term_values = {
        name: interval.read(getattr(args, name), q, schema.flag(name))
        for name, (q, _) in schema.fields(CommercialTerms).items()
        if getattr(args, name) is not None
    }
    for values in itertools.product(*term_values.values()):
        yield CommercialTerms(**dict(zip(term_values, values, strict=True)))


def _hits(args: Any) -> tuple[list[Any], Sequence[str]]:
    """Hit rates, and notes on values of a range that are left out."""
    q, text = schema.fields(PriceList)["hit_rate"][0], args.hit_rate
    if text is None:
        return [None], ()
    stepped = ".." not in text or interval.STEPPED.search(text.partition("..")[2])
    values, drop_notes = schema.axis(text if stepped else text + HIT_STEP, q, "--hit")
    return list(schema.several(values)), drop_notes


def _rates(args: Any) -> Any:
    """Rates of the user's sheet or list prices; None without either."""
    prices = {name: getattr(args, name) for name in ("input_price", "cached_price", "output_price")}
    if args.at_sheet:
        return _sheet(args, [schema.flag(name) for name, text in prices.items() if text])
    if not any(prices.values()):
        return None
    for name in ("input_price", "output_price"):
        if prices[name] is None:
            typed = next(key for key, text in prices.items() if text)
            raise BadValue(schema.flag(typed), prices[typed], f"{schema.flag(name)} beside it, such as $0.55/Mtok")
    marks = schema.fields(PriceList)
    rates: dict[str, Any] = {
        name: None if text is None else schema.scalar(text, marks[name][0], schema.flag(name)) for name, text in prices.items()
    }
    user_rates = Rates(input=rates["input_price"], output=rates["output_price"], cache_read=rates["cached_price"])
    return PriceSheet(provider="", model="", as_of="now", source="given by the user", rates=user_rates)


def _sheet(args: Any, beside: Sequence[str]) -> Any:
    if beside:
        raise BadValue("--at-sheet", args.at_sheet, f"no {' and no '.join(beside)} beside it")
    source = catalogue.read(args.at_sheet, arguments.catalog(args))
    if len(source.sheets) != 1:
        raise BadValue("--at-sheet", args.at_sheet, f"one sheet, not {len(source.sheets)}: FILE:MODEL names one")
    sheet = source.sheets[0]
    note(f"price sheet {sheet.provider}/{sheet.model} as of {sheet.as_of}, {sheet.source}", *sheet.flags)
    if sheet.rates.cache_read is None:
        note("it has no rate for cached input: a hit pays the input rate")
    return sheet

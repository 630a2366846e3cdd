"""`headway price ...`: cost and price at a layout; a published day; the share of memory; sheets (price_sheet.py)."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headway.answers import arguments, price_sheet
from headway.answers.no_effect import one_pool_notes, search_notes, shown_notes
from headway.core import interval, schema
from headway.core.columns import Column
from headway.core.errors import BadValue, HeadwayError, MissingFact
from headway.core.listing import Listing, clean, format_value, place_of, remade
from headway.core.notes import note
from headway.core.trace import record
from headway.economics.chip_cost import CAPEX, fact, parts
from headway.economics.price.price import PricedWay, PriceRequest, explained, priced_ways
from headway.economics.price.published_day import (
    PLANNED_COLUMNS,
    STATED_COLUMNS,
    PlannedDay,
    PublishedDay,
    account,
    case,
    plan_of,
    planned,
)
from headway.economics.questions import FORMS, CommercialTerms, MemoryShare, Price, PriceList
from headway.economics.sheets import catalogue
from headway.economics.sheets.sheet import PriceSheet, Rates
from headway.economics.sheets.tables import table_notes
from headway.hardware.chip_price import price_name
from headway.performance.assumptions import Assumptions
from headway.report import layout_pictures, output, price, serving
from headway.report.words import sentence
from headway.serving.curves import context_curves
from headway.serving.plan import plan as planning
from headway.serving.serve import prefix_hits

if TYPE_CHECKING:
    from headway.core.listing import Rows
    from headway.report.pictures.frame import Picture, View
    from headway.serving.plan.plan import LayoutPlan

ASKS = (
    "wants a model and --on MACHINE (what its tokens cost and sell for), --sheet NAME (what a sheet implies), --history WHOSE, "
    "--score PRICES.csv, --case NAME or --memory-share MACHINE"
)
MODEL = "model"
ASSUME_KEYS = {"chip_price": "price", "utilisation": "utilisation", "margin": "margin"}  # cost flag -> key of --assume for a sheet


def run(args: Price) -> output.Answer:
    """Answer to the question that the flags ask."""
    questions = [name for name in QUESTIONS if getattr(args, name)]
    if len(questions) > 1:
        beside = "; --at-sheet NAME sets a model's cost beside a sheet" if {MODEL, "sheet"} <= set(questions) else ""
        raise HeadwayError(f"{' and '.join(sorted(map(_question_name, questions)))} are questions of their own: give one{beside}")
    if not questions or (questions == [MODEL] and not args.on):
        raise HeadwayError(f"headway price {ASKS}; see headway price --help")
    _check(args, questions[0])
    return QUESTIONS[questions[0]](args)


def _question_name(question: str) -> str:
    return "a model" if question == MODEL else schema.flag(question)


def _check(args: Price, topic: str) -> None:
    """Raise an error for a flag of another question, which would be ignored."""
    typed = args.entries()
    for name, fields in FORMS.items():
        extra = [key for key in fields if key in typed] if name != topic else []
        if extra:
            hint = f"; --assume {ASSUME_KEYS[extra[0]]}=... takes it as known" if topic == "sheet" and extra[0] in ASSUME_KEYS else ""
            raise HeadwayError(
                f"{schema.flag(extra[0])} says nothing beside {_question_name(topic)}: it goes with {_question_name(name)}{hint}"
            )


MOST_PLANS, MOST_ROWS = 50, 10_000
HIT_STEP = "+0.05"  # default step of a range of hit rates
OWN_COLUMNS = {  # columns with a meaning specific to this question
    "utilisation": Column("", "share of paid chip-hours that do useful work, middle"),
    "hit_rate": Column("", "share of prompt tokens found in a prefix cache"),
    "usd_per_request": Column("USD", "cost of a request, idle hours counted: its prompt and its output, every input in its middle"),
}


# -- the rows -------------------------------------------------------------------------------------------------------------------


def of_cost(args: Price) -> output.Answer:
    """Answer with a row per plan, commercial terms and hit rate."""
    hits, hit_notes = _hits(args)
    plans = _plans(args, hits)
    note(*hit_notes)
    all_terms, sheet = list(_terms(args)), _rates(args)
    note(*shown_notes(args, [plan.best for _, plan in plans], skip=("hit_rate",)))
    if len(plans) * len(all_terms) * len(hits) > MOST_ROWS:
        raise BadValue("price", f"{len(plans) * len(all_terms) * len(hits)} rows", f"at most {MOST_ROWS}")
    rest: dict[str, Any] = {"metric": args.price_metric or "", "is_owned": args.own, "sheet": sheet, "catalog": arguments.catalog(args)}
    rows: list[dict[str, Any]] = []
    cells: list[tuple[LayoutPlan, PriceRequest, PricedWay]] = []
    for (extra, cell_plan), terms, hit in itertools.product(plans, all_terms, hits):
        ask = PriceRequest(terms=terms, hit=hit, **rest)
        all_ways, more = priced_ways(cell_plan, ask)
        rows += [way.row | dict(extra) for way in all_ways]
        cells += [(cell_plan, ask, way) for way in all_ways]
        note(*more)

    def tree(target: Mapping[str, Any], key: str) -> Any:
        return explained(*cells[place_of(target, rows)], key)

    def changed(target: Mapping[str, Any], name: str, text: str) -> Mapping[str, Any] | None:
        if name == "chip_price" and (args.own or args.price_metric):
            return None
        row_plan, ask, _ = cells[place_of(target, rows)]
        value = interval.read(text, schema.fields(CommercialTerms)[name][0], schema.flag(name))[0]
        return priced_ways(row_plan, dataclasses.replace(ask, terms=dataclasses.replace(ask.terms, **{name: value})))[0][0].row

    listing = Listing(rows, tree=tree)

    def context(table: Rows, view: View) -> Picture:
        first = next(iter(table), None)
        if first is None:
            raise BadValue("--plot", "no rows", "rows to draw")
        _, _, way = cells[next(at for at, entry in enumerate(rows) if entry["model"] == first["model"])]
        return context_picture(way.pick.case, first, view)

    drawings = {"grid": price.grid, "context": context} if price.varies(rows) else {"context": context, "grid": price.grid}
    return output.Answer(listing, describe=lambda table: price.describe(table, changed), pictures=drawings, columns=OWN_COLUMNS)


def context_picture(query: Any, row: Mapping[str, Any], view: View) -> Picture:
    """Picture of the cost of a token against context, at the layout and batch of a row."""
    case = context_curves(query.model, query.system, row, query.assumptions)
    return layout_pictures.context(case, row, serving.layout(row), view, float(row["prompt"]))


def _plans(args: Price, hits: Sequence[Any]) -> list[tuple[dict[str, Any], LayoutPlan]]:
    """Plans (cheapest layout within the limits) for each model, machine, load, limit and assumption."""
    grid = arguments.search_grid(args, ("hit_rate",))
    several = len(hits) > 1
    planned = {} if several or hits[0] is None else {"hit_rate": hits[0]}
    note(*search_notes(args, grid.load, skip=("hit_rate",)))
    plans = []
    for point in grid.cases("price", MOST_PLANS, {}):
        case_plan = planning.plan(
            point.model, point.system, point.load, point.slo, **grid.formats, ways=grid.degrees, batch=point.inputs.get("batch"),
            assumptions=schema.defaults(Assumptions, point.assumptions | planned), disaggregate=args.disaggregate, elasticities=False,
        )  # fmt: skip
        plans.append((clean(point.labels | point.edits | point.varied), case_plan))
    plan_notes = [note for _, result in plans for note in _plan_notes(result)]
    free = [] if grid.limits else ["no limit is given, so the cheapest layout may be slow for a user: --tpot 50ms sets one"]
    free += [] if args.utilisation else ["no idle hours are counted: --utilisation 0.3..0.7 does"]
    hit_notes = ["every hit rate is taken at the layout and batch planned without a prefix cache"] if several else []
    hit_notes += dict.fromkeys(prefix_hits(system) for system, _ in grid.systems) if several else []
    idle = one_pool_notes(args.disaggregate, (group for _, result in plans for group in result.groups))
    note(*free, *hit_notes, *plan_notes, *idle)
    return plans


def _plan_notes(plan: LayoutPlan) -> list[str]:
    """Notes of a plan, without those on its chip price."""
    query = plan.best.case
    price_notes = (
        "chip price $",
        "without a price the objective",
        f"{query.system.chip.name} has no {price_name(query.assumptions.price_metric)}",
    )
    return [note for note in plan.notes if not note.startswith(price_notes)]


def _terms(args: Price) -> Iterator[CommercialTerms]:
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


def _hits(args: Price) -> tuple[list[Any], Sequence[str]]:
    """Hit rates, and notes on values of a range that are left out."""
    q, text = schema.fields(PriceList)["hit_rate"][0], args.hit_rate
    if text is None:
        return [None], ()
    stepped = ".." not in text or interval.STEPPED.search(text.partition("..")[2])
    values, drop_notes = schema.axis(text if stepped else text + HIT_STEP, q, "--hit")
    return list(schema.several(values)), drop_notes


def _rates(args: Price) -> Any:
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


def _sheet(args: Price, beside: Sequence[str]) -> Any:
    if beside:
        raise BadValue("--at-sheet", args.at_sheet, f"no {' and no '.join(beside)} beside it")
    source = catalogue.read(args.at_sheet, arguments.catalog(args))
    if len(source.sheets) != 1:
        raise BadValue("--at-sheet", args.at_sheet, f"one sheet, not {len(source.sheets)}: FILE:MODEL names one")
    sheet = source.sheets[0]
    note(f"price sheet {sheet.provider}/{sheet.model} as of {sheet.as_of}, {sheet.source}", *table_notes([sheet]), *sheet.flags)
    if sheet.rates.cache_read is None:
        note("it has no rate for cached input: a hit pays the input rate")
    return sheet


DAY_COLUMNS = {
    "quantity": Column("", "what follows from the published figures"),
    "value": Column("", "its value in SI, in the row's unit"),
    "unit": Column("", "unit of value and stated"),
    "stated": Column("", "the same as its operator states it; of planned figures as its rates imply it"),
    "over_stated": Column("", "value over stated"),
    "about": Column("", "what it is"),
}
DAY_VIEW = ("quantity", "value", "stated", "over_stated", "about")


def of_day(args: Price) -> output.Answer:
    """Answer with a row per figure of the account, then of a plan of that day."""
    day = case(args.case, arguments.catalog(args))
    answer = plan_of(day)
    rows = list(_day_rows(day, answer))

    def tree(row: Mapping[str, Any], key: str) -> Any:
        if key != "value":
            raise BadValue("--explain", key, "value, of the row that --where leaves: --where 'quantity = cost_output' --explain value")
        with record():
            return getattr(planned(day, answer) if row["quantity"] in schema.fields(PlannedDay) else account(day), row["quantity"])

    notes = [f"{day.nodes.source}, {day.nodes.date}; chips at {format_value(float(day.chip_price), 'USD/s')}: {day.chip_price.source}"]
    notes.append(f"planned: {_plan_of_day(day, answer)}")
    return output.Answer(Listing(rows, tree=tree), columns=DAY_COLUMNS, notes=notes, describe=lambda table: _describe_day(table, day))


def _plan_of_day(day: PublishedDay, answer: LayoutPlan) -> str:
    """What the plan of a day is of, in words."""
    row, load = answer.table.row(0), answer.best.case.load
    cached = f"{day.hits / day.prompts:.0%} of them cached"
    request = f"a mean request of {load.prompt:.0f} prompt tokens, {cached}, and {load.output:.0f} of output"
    speed = f"{format_value(float(day.user_rate), 'token/s')} a user on {row['chips']} chips"
    hidden = f", communication {day.communication}" if day.communication else ""
    return f"{request}, at {speed}{hidden}; decode with {serving.layout(row)}, {serving.formats(row)}"


def _day_rows(day: PublishedDay, answer: LayoutPlan) -> Iterator[dict[str, Any]]:
    day_account, day_plan = account(day), planned(day, answer)
    published = {name: getattr(day, key) for name, key in STATED_COLUMNS.items()}
    published |= {name: getattr(day_account, key) for name, key in PLANNED_COLUMNS.items()}
    for figures in (day_account, day_plan):
        for name, (mark, _) in schema.fields(type(figures)).items():
            value, beside = getattr(figures, name), published.get(name)
            if value is None:
                continue
            row: dict[str, Any] = {"quantity": name, "value": float(value), "unit": mark.unit}
            row |= {"stated": None if beside is None else float(beside)}
            yield row | {"over_stated": None if beside is None else float(value / beside), "about": mark.help}


def _describe_day(table: Rows, day: PublishedDay) -> output.Summary:
    """Summary: the account in one sentence, then the figures."""
    rows = {row["quantity"]: row for row in table}
    people = [
        {**row, **{key: _day_cell(row, key) for key in ("value", "stated")},
         "over_stated": "-" if row["over_stated"] is None else f"{row['over_stated']:.5f}"}
        for row in rows.values()
    ]  # fmt: skip
    if not {"cost", "revenue", "gross_margin", "nodes", "planned_cost"} <= rows.keys():
        return output.Summary(sentence(f"{day.title}, {day.window}"), DAY_VIEW, people=Listing(people))
    cost, revenue, nodes = (_day_cell(rows[name], "value") for name in ("cost", "revenue", "nodes"))
    headline = f"{day.title}, {day.window}: cost {cost}, revenue {revenue}, margin {rows['gross_margin']['value']:.1%}"
    planned_cost = rows["planned_cost"]
    ours = f"; a plan of it costs {_day_cell(planned_cost, 'value')} ({planned_cost['over_stated'] - 1:+.0%})"
    identity = f"its own rates imply {nodes} nodes, {_day_cell(rows['nodes'], 'stated')} are stated: the rates are means over the window"
    return output.Summary(sentence(headline, ours), DAY_VIEW, people=Listing(people), remarks=[identity])


def _day_cell(row: Mapping[str, Any], key: str) -> str:
    """Text of a figure; large sums in whole dollars."""
    value = row[key]
    if value is not None and row["unit"] == "USD":
        return f"${value:,.0f}"
    return f"{value:.5g}" if value is not None and not row["unit"] and abs(value) < 1000 else format_value(value, row["unit"])


TEXTS = ("memory", "device", "date", "source")
UNITS = {"size": "byte", "usd_per_byte_lo": "USD/byte", "usd_per_byte_hi": "USD/byte", "usd_lo": "USD", "usd_hi": "USD"}
DOCS = {
    "memory": "HBM, DRAM, flash, or all of them",
    "device": "the tier whose price it has",
    "size": "bytes of the whole machine",
    "usd_per_byte_lo": "price of a byte, low end",
    "usd_per_byte_hi": "price of a byte, high end",
    "usd_lo": "cost of the memory, low end",
    "usd_hi": "cost of the memory, high end",
    "share_of_chips_lo": "share of what the chips cost to buy, low end",
    "share_of_chips_hi": "share of what the chips cost to buy, high end",
    "share_of_machine_lo": "share of what the chips cost with host, network and storage, low end",
    "share_of_machine_hi": "share of what the chips cost with host, network and storage, high end",
    "date": "date of the price",
    "source": "source of the price",
}
CLAIM = "the lecture's host says that about half of capital spending goes to memory; compare with all memory (headway lecture FS-09)"


def of_memory(args: Price) -> output.Answer:
    """Answer with a row per memory of each machine."""
    catalog = arguments.catalog(args)
    host_memory = schema.read(args, MemoryShare, skip=("memory_share",))
    if any(isinstance(value, tuple) for value in host_memory.values()):
        raise BadValue("--dram, --flash", "a list", "one size each")
    machines = [machine for machine, _ in arguments.systems(args, args.memory_share)]
    places = [(machine, number) for machine in machines for number in range(len(parts(machine, **host_memory, catalog=catalog)))]

    def part(place: int) -> Any:
        machine, number = places[place]
        return parts(machine, **host_memory, catalog=catalog)[number]

    rows = []
    for place, (machine, _) in enumerate(places):
        values = {field.name: getattr(part(place), field.name) for field in dataclasses.fields(part(place))}
        plain = {key: value if isinstance(value, str | None) else float(value) for key, value in values.items()}
        rows.append({"system": machine.name, "chips": int(machine.chips)} | plain)
    if not rows:
        raise MissingFact(
            args.memory_share, "kind of HBM and its price", "of h100-sxm, h200-sxm, gb200, gb300, rubin-vr200, tpu-v7 it is known"
        )

    columns = {key: Column(UNITS.get(key, ""), doc) for key, doc in DOCS.items()}
    return output.Answer(remade(rows, part, _notes(machines)), columns=columns, describe=_describe_memory)


def _notes(machines: list[Any]) -> list[str]:
    """Notes on the price assumed for each chip."""
    notes = []
    for machine in machines:
        capex = fact(machine.chip, CAPEX)
        note = next((row.note for row in machine.chip.costs if row.metric == CAPEX and row.note), "")
        price_text = (
            f"${float(capex):,.0f} to buy, {capex.date}, {capex.source}{f' ({note})' if note else ''}"
            if capex
            else "no price to buy it by is known"
        )
        notes.append(f"{machine.chip.name}: {price_text}")
    notes.append(CLAIM)
    return list(dict.fromkeys(notes))


def _describe_memory(table: Rows) -> output.Summary:
    """Summary: the shares in one sentence, then each memory."""
    rows = list(table)
    first = rows[0]
    chips, machine = (_share(first, f"share_of_{what}") for what in ("chips", "machine"))
    costs = f"{first['memory']} costs ${first['usd_lo']:,.0f} .. ${first['usd_hi']:,.0f}"
    share = f", {chips} of the chips' price and {machine} with host, network and storage" if chips != "-" else ""
    total = next((row for row in rows if row["memory"] == "all" and row["system"] == first["system"]), None)
    more = f"; all memory {_share(total, 'share_of_machine')} of the machine" if total and total["share_of_machine_lo"] is not None else ""
    people = [_memory_row(row) for row in rows]
    return output.Summary(sentence(f"{first['system']}: {costs}", share, more), people=Listing(people))


def _memory_row(row: Mapping[str, Any]) -> dict[str, str]:
    low, high = (f"${row[f'usd_{end}']:,.0f}" for end in ("lo", "hi"))
    shares = {"of the chips": _share(row, "share_of_chips"), "of the machine": _share(row, "share_of_machine")}
    start = {"system": row["system"], "memory": row["memory"], "size": format_value(row["size"], "byte"), "$/GB": _per_gb(row)}
    return start | {"USD": f"{low} .. {high}"} | shares | {"date": row["date"], "source": row["source"]}


def _share(row: Mapping[str, Any], name: str) -> str:
    low, high = row[f"{name}_lo"], row[f"{name}_hi"]
    return "-" if low is None else f"{low:.1%} .. {high:.1%}"


def _per_gb(row: Mapping[str, Any]) -> str:
    low, high = row["usd_per_byte_lo"], row["usd_per_byte_hi"]
    return "-" if low is None else f"{low * 1e9:.3g} .. {high * 1e9:.3g}"


QUESTIONS: dict[str, Any] = {  # argument -> the answer to its question, in the order of --help
    MODEL: of_cost, "sheet": price_sheet.of_sheet, "score": price_sheet.of_score, "history": price_sheet.of_history, "case": of_day,
    "memory_share": of_memory,
}  # fmt: skip

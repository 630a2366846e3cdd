"""`headway price MODEL --on MACHINE ...`: what a million tokens cost and sell for, as intervals."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from headway import interval, output, schema
from headway.assumptions import Assumptions
from headway.cli import loads, price_words, serve, subjects
from headway.columns import Column
from headway.errors import BadValue
from headway.layout import Layout
from headway.listing import Listing
from headway.precision import Precision
from headway.schema import Q
from headway.terms import Terms
from headway.workload import SLO, Load

MOST_PLANS, MOST_ROWS = 50, 10_000
HIT_STEP = "+0.05"  # of a range of hit rates without one
OWN_COLUMNS = {  # keys that mean something of their own here
    "utilisation": Column("", "share of paid chip-hours that do useful work, middle"),
    "hit_rate": Column("", "share of prompt tokens found in a prefix cache"),
    "usd_per_request": Column("USD", "cost of a request, idle hours counted: its prompt and its output, every input in its middle"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sold:
    """A price list to set the cost beside."""

    hit: Annotated[Any, Q(open_low=False, high=0.95, help="share of prompt tokens found in a prefix cache; a..b goes by 0.05")] = None
    input_price: Annotated[Any, Q("USD/token", bare="USD/Mtok", open_low=False, help="list price of fresh input")] = None
    cached_price: Annotated[Any, Q("USD/token", bare="USD/Mtok", open_low=False, help="of cached input (default: as fresh)")] = None
    output_price: Annotated[Any, Q("USD/token", bare="USD/Mtok", open_low=False, help="list price of output")] = None


def add_flags(parser: Any) -> None:
    """Terms, sheet, load, limits, layout, formats, assumptions."""
    schema.add_flags(parser, Terms, group="cost to price")
    own = parser.add_argument_group("cost to price, further")
    own.add_argument("--own", action="store_true", help="price of a chip that is owned: capital, upkeep, power, building")
    sold = parser.add_argument_group("margin against a price list")
    sold.add_argument("--at-sheet", metavar="NAME", help="price sheet by name or file, such as deepseek-v3 or my_prices.toml:model")
    schema.add_flags(sold, Sold)
    schema.add_flags(parser, Load, skip=("context", "rate"), group="load: every number may be a list or a range")
    parser.add_argument("--disaggregate", action="store_true", help="prefill and decode on separate pools of the machine")
    schema.add_flags(parser, SLO, group="limits (each may be left out)")
    schema.add_flags(parser, Layout, group="layout: the cheapest unless pinned to a value or a list")
    schema.add_flags(parser, Precision, group="number formats: a list is searched")
    schema.add_flags(parser, Assumptions, skip=("hit_rate",), group="assumptions (named defaults)")


# -- the rows -------------------------------------------------------------------------------------------------------------------


def run(args: Any) -> output.Answer:
    """One row for each plan, terms and hit rate."""
    from headway.price import Ask, explained, row

    hits, dropped = _hits(args)
    plans, notes = _plans(args, hits)
    every, (sheet, said) = list(_terms(args)), _rates(args)
    notes += [*dropped, *said]
    if len(plans) * len(every) * len(hits) > MOST_ROWS:
        raise BadValue("price", f"{len(plans) * len(every) * len(hits)} rows", f"at most {MOST_ROWS}")
    rest: dict[str, Any] = {"metric": args.price_metric or "", "own": args.own, "sheet": sheet, "catalog": subjects.catalog(args)}
    cells = [(one, extra, Ask(terms=agreed, hit=hit, **rest)) for extra, one in plans for agreed in every for hit in hits]
    rows = []
    for one, extra, ask in cells:
        found, more = row(one, ask)
        rows.append(found | dict(extra))
        notes += [note for note in more if note not in notes]

    def tree(kept: Mapping[str, Any], key: str) -> Any:
        one, _, ask = cells[next(at for at, own in enumerate(rows) if all(kept.get(name) == own[name] for name in own))]
        return explained(one, ask, key)

    listing = Listing(rows, notes=tuple(notes), tree=tree)
    return output.Answer(listing, describe=price_words.describe, figure=price_words.figure, columns=OWN_COLUMNS)


def _plans(args: Any, hits: Sequence[Any]) -> tuple[list[tuple[dict[str, Any], Any]], list[str]]:
    """One plan for each model, machine, load, limit and assumption: the cheapest layout that keeps the limits."""
    from headway.plan import plan

    load, notes = schema.read(args, Load, serve.COUNTS)
    limits, more = schema.read(args, SLO)
    ways, dropped = schema.read(args, Layout)
    formats, _ = schema.read(args, Precision)
    taken, assumed = serve.combinations(args, Assumptions)
    several = len(hits) > 1
    planned = {} if several or hits[0] is None else {"hit_rate": hits[0]}
    load, unsaid = loads.requested(load)
    models, systems = subjects.models(args), subjects.systems(args)
    unsaid += loads.beyond(models, load)
    axes = {key: value if isinstance(value, tuple) else (value,) for key, value in (load | limits).items()}
    names: dict[str, Any] = {key: value if isinstance(value, tuple) else (value,) for key, value in formats.items()}
    cases = list(itertools.islice(itertools.product(models, systems, itertools.product(*axes.values()), taken), MOST_PLANS + 1))
    if len(cases) > MOST_PLANS:
        raise BadValue("price", "too many combinations of models, machines, loads, limits and assumptions", f"at most {MOST_PLANS}")
    found = []
    for model, (system, edits), values, chosen in cases:
        asked = dict(zip(axes, values, strict=True))
        slo = SLO(**{name: value for name, value in asked.items() if name in limits})
        one = plan(
            model, system, Load(prompt=asked["prompt"], output=asked["output"]), slo, **names, ways=ways, batch=asked.get("batch"),
            assumptions=schema.defaults(Assumptions, chosen | planned), disaggregate=args.disaggregate, elasticities=False,
        )  # fmt: skip
        varied = {key: value for key, value in asked.items() if key in limits and len(axes[key]) > 1} | edits
        found.append((output.clean(varied | (chosen if len(taken) > 1 else {})), one))
    said = [note for _, one in found for note in _kept(one)]
    free = [] if limits else ["no limit is given, so the cheapest layout may be slow for a user: --tpot 50ms sets one"]
    free += [] if args.utilisation else ["no idle hours are counted: --utilisation 0.3..0.7 does"]
    kept = ["every hit rate is taken at the layout and batch planned without a prefix cache"] if several else []
    return found, [*notes, *unsaid, *free, *kept, *more, *dropped, *assumed, *dict.fromkeys(said)]


def _kept(one: Any) -> list[str]:
    """The notes of a plan without those on its own price of a chip."""
    query = one.best.query
    others = ("chip price $", "without a price the objective", f"{query.system.chip.name} has no {query.assumptions.price_metric} price")
    return [note for note in one.notes if not note.startswith(others)]


def _terms(args: Any) -> Iterator[Terms]:
    """Every combination of chip price, utilisation and margin."""
    if args.chip_price and (args.own or args.price_metric):
        raise BadValue("--chip-price", args.chip_price, "no --own and no --price-metric beside it: each says what a chip costs")
    if args.own and args.price_metric:
        raise BadValue("--own", args.price_metric, "no --price-metric beside it: each says what a chip costs")
    given = {
        name: interval.read(getattr(args, name), q, schema.flag(name))
        for name, (q, _) in schema.fields(Terms).items()
        if getattr(args, name) is not None
    }
    for values in itertools.product(*given.values()):
        yield Terms(**dict(zip(given, values, strict=True)))


def _hits(args: Any) -> tuple[list[Any], Sequence[str]]:
    """Hit rates, and which of a range are left out."""
    q, text = schema.fields(Sold)["hit"][0], args.hit
    if text is None:
        return [None], ()
    stepped = ".." not in text or interval.STEPPED.search(text.partition("..")[2])
    values, dropped = schema.axis(text if stepped else text + HIT_STEP, q, "--hit")
    return list(values) if isinstance(values, tuple) else [values], dropped


def _rates(args: Any) -> tuple[Any, list[str]]:
    """The sheet or the list prices that the user gave, None without any; and what to say of it."""
    from headway.price_sheet import PriceSheet, Rates

    given = {name: getattr(args, name) for name in ("input_price", "cached_price", "output_price")}
    if args.at_sheet:
        return _sheet(args, [schema.flag(name) for name, text in given.items() if text])
    if not any(given.values()):
        return None, []
    for name in ("input_price", "output_price"):
        if given[name] is None:
            raise BadValue(schema.flag(name), "nothing", "a list price, such as $0.55/Mtok, beside the others")
    marks = schema.fields(Sold)
    rates: dict[str, Any] = {
        name: None if text is None else schema.scalar(text, marks[name][0], schema.flag(name)) for name, text in given.items()
    }
    own = Rates(input=rates["input_price"], output=rates["output_price"], cache_read=rates["cached_price"])
    return PriceSheet(provider="", model="", as_of="now", source="given by the user", rates=own), []


def _sheet(args: Any, beside: Sequence[str]) -> tuple[Any, list[str]]:
    from headway.sheets import catalogue

    if beside:
        raise BadValue("--at-sheet", args.at_sheet, f"no {' and no '.join(beside)} beside it")
    found = catalogue.read(args.at_sheet, subjects.catalog(args))
    if len(found.sheets) != 1:
        raise BadValue("--at-sheet", args.at_sheet, f"one sheet, not {len(found.sheets)}: FILE:MODEL names one")
    sheet = found.sheets[0]
    said = [f"price sheet {sheet.provider}/{sheet.model} as of {sheet.as_of}, {sheet.source}", *sheet.flags]
    return sheet, said + ([] if sheet.rates.cache_read is not None else ["it has no rate for cached input: a hit pays the input rate"])

"""Cost and price of a million tokens on a machine, as intervals with the drivers of their width, against a price sheet.

The estimate's 90 % interval is combined with other uncertain inputs: chip price (log-uniform in its range), utilisation of paid hours
and margin (uniform in theirs). `_lo`, `_hi` are the 5 % and 95 % points, from log deviations in quadrature; `_least`, `_most` take every
input at its extreme end at once.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from headway.core import schema, units
from headway.core.catalog import Catalog
from headway.core.errors import BadValue
from headway.core.interval import Interval, point
from headway.core.quantity import Sourced, known, user_input
from headway.core.table import Table, from_rows
from headway.core.trace import record
from headway.core.units import Number, Token, UsdPerSecond
from headway.economics.chip_cost import POWER, ChipPrice, OwnershipCost, by_metric, fact, hbm_share, owned
from headway.economics.inversion.list_prices import list_prices
from headway.economics.questions import CommercialTerms, terms
from headway.economics.sheets.sheet import PriceSheet, Rates
from headway.hardware import chip_price
from headway.hardware.chip import Chip
from headway.laws.economics import cost as laws
from headway.laws.serving.request import missed_tokens
from headway.laws.tiers import per_mtok
from headway.performance.assumptions import Assumptions
from headway.performance.workload import Load
from headway.serving.plan.choice import OTHER_WAYS, POOLED, Choice, estimates_of
from headway.serving.plan.plan import LayoutPlan, plan
from headway.serving.serve import undefined_tpot

LOW = known(0.05, "5 % point", "", "constant", "lower end of a 90 % interval")
HIGH = known(0.95, "95 % point", "", "constant", "upper end of a 90 % interval")
KINDS = ("in", "cached", "out")  # uncached input, cached input, output
INPUTS = ("estimate", "chip_price", "utilisation", "margin")
SPEED_KEYS = ("tpot_s", "ttft_s", "tok_per_s_user", "tok_per_s_chip")


@dataclass(frozen=True, slots=True, kw_only=True)
class _PriceSpread:
    """One input of a product: its middle, and its factors on the product at its 5 % and 95 % points and at its ends."""

    low: Any
    high: Any
    least: Any
    most: Any


def priced(
    pick: Choice, terms: CommercialTerms, hit: Number = None, rates: Rates | None = None, electricity: Number = None
) -> dict[str, Any]:
    """Cost and price of a million tokens of each kind at one layout and load; with `rates`, also the margin of a price sheet.

    `hit` is the share of prompt tokens found in a prefix cache, `electricity` in USD/J gives the share of the cost that is power.
    """
    chip = _middle_price(terms.chip_price)
    at = chip_price.PriceQuote(value=chip, low=chip, high=chip, metric="input", note="")
    assumptions = pick.case.assumptions if hit is None else replace(pick.case.assumptions, hit_rate=hit)
    case = replace(pick.case, price=at, assumptions=assumptions)
    estimates = estimates_of(pick, case)
    utilisation, margin = _middle(terms.utilisation), _middle(terms.margin)
    speeds = estimates | undefined_tpot(estimates, pick.case.load.output)
    out: dict[str, Any] = {key: speeds[key] for key in SPEED_KEYS}
    out |= {"chip_price": chip, "utilisation": utilisation, "margin": margin, "hit_rate": assumptions.hit_rate}
    for kind in KINDS:
        out |= _kind(kind, estimates, terms, utilisation, margin)
    out["output_multiple"] = None if out["price_in"] is None else out["price_out"] / out["price_in"]
    out |= _request(out, pick, assumptions.hit_rate)
    if rates is not None:
        out |= _against(out, pick, assumptions.hit_rate, rates)
    return out | _power(pick, terms.chip_price, chip, electricity)


# -- intervals ------------------------------------------------------------------------------------------------------------------


def _middle_price(span: Interval) -> Any:
    if not span.wide:
        return span.low
    return laws.log_even_quantile(span.low, span.high, 0.5) if span.middle is None else span.middle


def _middle(span: Interval) -> Any:
    return span.low + (span.high - span.low) * 0.5 if span.wide else span.low


def _spreads(
    kind: str, estimates: Mapping[str, Any], terms: CommercialTerms, utilisation: Number, margin: Number
) -> dict[str, _PriceSpread]:
    """The spreads of the inputs with a width, by name."""
    stem = f"usd_per_mtok_{kind}"
    expected, low, high = estimates[stem], estimates[f"{stem}_lo"], estimates[f"{stem}_hi"]
    below, above = expected / low, high / expected
    spreads = {"estimate": _PriceSpread(low=below, high=above, least=below, most=above)} if high > low else {}
    if terms.chip_price.wide:
        spreads["chip_price"] = _of_price(terms.chip_price)
    if terms.utilisation.wide:
        spreads["utilisation"] = _of_share(terms.utilisation, utilisation)
    if terms.margin.wide:
        cost_share = Interval(low=laws.cost_share(terms.margin.high), high=laws.cost_share(terms.margin.low))
        spreads["margin"] = _of_share(cost_share, laws.cost_share(margin))
    return spreads


def _of_price(span: Interval) -> _PriceSpread:
    low, high = (laws.log_even_quantile(span.low, span.high, share) for share in (LOW, HIGH))
    middle = _middle_price(span)
    return _PriceSpread(low=middle / low, high=high / middle, least=middle / span.low, most=span.high / middle)


def _of_share(span: Interval, middle: Number) -> _PriceSpread:
    """The spread of a divisor, which lowers the product at its high end."""
    low, high = (span.low + (span.high - span.low) * share for share in (LOW, HIGH))
    return _PriceSpread(low=high / middle, high=middle / low, least=span.high / middle, most=middle / span.low)


def _ends(stem: str, middle: Number, spreads: Mapping[str, _PriceSpread]) -> dict[str, Any]:
    all_spreads = tuple(spreads.values())
    if not all_spreads:
        return {stem: middle} | {f"{stem}_{end}": middle for end in ("lo", "hi", "least", "most")}
    return {
        stem: middle,
        f"{stem}_lo": laws.lower_end(middle, tuple(spread.low for spread in all_spreads)),
        f"{stem}_hi": laws.upper_end(middle, tuple(spread.high for spread in all_spreads)),
        f"{stem}_least": laws.lowest(middle, tuple(spread.least for spread in all_spreads)),
        f"{stem}_most": laws.highest(middle, tuple(spread.most for spread in all_spreads)),
    }


def _kind(kind: str, estimates: Mapping[str, Any], terms: CommercialTerms, utilisation: Number, margin: Number) -> dict[str, Any]:
    """Cost with idle hours and price with margin; for output also the drivers of the price's width; None if loading is within `in`."""
    if estimates[f"usd_per_mtok_{kind}"] is None:
        return {f"{stem}_{kind}{end}": None for stem in ("cost", "price") for end in ("", "_lo", "_hi", "_least", "_most")}
    spreads = _spreads(kind, estimates, terms, utilisation, margin)
    cost_with_idle = estimates[f"usd_per_mtok_{kind}"] / utilisation
    price = cost_with_idle / laws.cost_share(margin)
    of_cost = {name: spread for name, spread in spreads.items() if name != "margin"}
    out = _ends(f"cost_{kind}", cost_with_idle, of_cost) | _ends(f"price_{kind}", price, spreads)
    return out | _drivers(spreads) if kind == "out" else out


def _drivers(spreads: Mapping[str, _PriceSpread]) -> dict[str, Any]:
    """Each input's share of the 90 % interval's width, and the input with the largest share."""
    widths = {name: spread.low * spread.high for name, spread in spreads.items()}
    shares: dict[str, Any] = {name: laws.width_share(width, tuple(widths.values())) for name, width in widths.items()}
    row: dict[str, Any] = {f"width_{name}": shares.get(name) for name in INPUTS}
    return row | {"driver": max(shares, key=lambda name: float(shares[name])) if shares else ""}


# -- requests -------------------------------------------------------------------------------------------------------------------


def _tokens(pick: Choice, hit: Number) -> dict[str, Any]:
    """Tokens of a request by kind."""
    load = pick.case.load
    if not hit:
        return {"in": load.prompt, "out": load.output}
    return {"in": missed_tokens(load.prompt, hit), "cached": load.prompt * hit, "out": load.output}


def _request(out: Mapping[str, Any], pick: Choice, hit: Number) -> dict[str, Any]:
    """Cost of a request, and the shares of prefill and decode."""
    tokens = {kind: count for kind, count in _tokens(pick, hit).items() if out[f"cost_{kind}"] is not None}
    bills = {kind: laws.charged_usd(count, out[f"cost_{kind}"]) for kind, count in tokens.items()}
    bill_usd = sum(bills.values())
    prompt = sum(bill for kind, bill in bills.items() if kind != "out")
    return {"usd_per_request": bill_usd, "prefill_share": prompt / bill_usd, "decode_share": bills["out"] / bill_usd}


def _against(out: Mapping[str, Any], pick: Choice, hit: Number, rates: Rates) -> dict[str, Any]:
    """Revenue of a request under a sheet, and its margin; the margin's ends take all costs at their ends."""
    read = rates.input if rates.cache_read is None else rates.cache_read
    sheet = {"in": per_mtok(rates.input), "cached": per_mtok(read), "out": per_mtok(rates.output)}
    tokens = _tokens(pick, hit)
    revenue = sum(laws.charged_usd(count, sheet[kind]) for kind, count in tokens.items())
    counts = {kind: count for kind, count in tokens.items() if out[f"cost_{kind}"] is not None}
    costs = {end: sum(laws.charged_usd(count, out[f"cost_{kind}{end}"]) for kind, count in counts.items()) for end in ("", "_lo", "_hi")}
    ends = {"": "", "_lo": "_hi", "_hi": "_lo"}  # of nothing that is charged there is no margin
    margins = {f"sheet_margin{end}": laws.gross_margin(costs[of], revenue) if float(revenue) else None for end, of in ends.items()}
    return {f"sheet_{kind}": rate for kind, rate in sheet.items()} | {"usd_charged": revenue} | margins


def _power(pick: Choice, chip: Interval, middle: UsdPerSecond, electricity: Number) -> dict[str, Any]:
    """Power's share of the cost, lower with expensive chips."""
    power = fact(pick.case.system.chip, POWER)
    if power is None or electricity is None:
        return {"power_share": None, "power_share_lo": None, "power_share_hi": None}
    usd = power * electricity
    ends = (("", middle), ("_lo", chip.high), ("_hi", chip.low))
    return {f"power_share{end}": usd / price for end, price in ends}


LAID = ("model", "system", "chips", "replicas", "tp", "ep", "dp", "pp", "cp", "weights", "kv", "compute", "batch", "prompt", "output")
PARTS = ("capital", "upkeep", "power", "building")  # parts of the cost of owning a chip


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceRequest:
    """Inputs of a price beyond the layout: terms, price metric of a chip, hit rate and price sheet."""

    terms: CommercialTerms
    metric: str = ""
    is_owned: bool = False
    hit: Any = None
    sheet: PriceSheet | None = None
    catalog: Catalog | None = None


def price(
    model: Any, system: Any, load: Load, *, chip_price: Any = None, utilisation: Any = None, margin: Any = None,
    metric: str = "", is_owned: bool = False, hit: Number = None, sheet: PriceSheet | None = None, **planned: Any,
) -> Table:  # fmt: skip
    """Cost and price of uncached input, cached input and output, each with its interval, and the drivers of its width.

    The best row first, with one pool or with prefill apart, then the other way where both were weighed. `chip_price`, `utilisation` and
    `margin` are a number, a pair of ends (SI), or text such as "2.2..4.5". The default chip price is the catalogue's by `metric`, or of an
    owned chip (`is_owned`). `planned` goes to `plan`: ttft, tpot, ways, batch, disaggregate, ...
    """
    assumptions = planned.pop("assumptions", None) or schema.defaults(Assumptions)
    if hit is not None:
        mark = schema.fields(Assumptions)["hit_rate"][0]
        if isinstance(hit, bool) or not isinstance(hit, int | float) or mark.illegal(hit):
            raise BadValue("hit", hit, f"a number {mark.range()}")
        hit = hit if isinstance(hit, Sourced) else user_input(float(hit), "hit_rate")
        assumptions = replace(assumptions, hit_rate=hit)
    answer = plan(model, system, load, elasticities=False, assumptions=assumptions, **planned)
    ask = PriceRequest(
        terms=terms(chip_price=chip_price, utilisation=utilisation, margin=margin), metric=metric, is_owned=is_owned, hit=hit, sheet=sheet
    )
    all_ways, notes = priced_ways(answer, ask)
    return from_rows([way.row for way in all_ways], (*answer.notes, *notes), lambda at, key: explained(answer, ask, all_ways[at], key))


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedWay:
    """A way to serve, with one pool or with prefill apart, and its row."""

    pick: Choice
    place: int  # row in the plan
    row: dict[str, Any]


def priced_ways(answer: LayoutPlan, ask: PriceRequest) -> tuple[list[PricedWay], tuple[str, ...]]:
    """Each way of a plan with its costs and prices as plain numbers, the cheapest per request first, and notes; no prices if none fits."""
    if answer.infeasible:
        row = _laid_row(answer, 0, {})
        return [PricedWay(pick=answer.best, place=0, row=row)], ()
    picks, rows, notes = ways_of(answer), list[tuple[dict[str, Any], int, Choice]](), tuple[str, ...]()
    for place, pick in picks:
        values, notes = quote(pick, ask)
        rows.append((_laid_row(answer, place, values), place, pick))
    rows.sort(key=lambda entry: entry[0]["usd_per_request"])  # a hit rate that was not planned for may turn them
    best = rows[0][0]
    for row, _, pick in rows[1:]:
        row["kind"] = OTHER_WAYS[pick.prefill is not None]
        row["gain"] = row["usd_per_request"] / best["usd_per_request"]
    return [PricedWay(pick=pick, place=place, row=row) for row, place, pick in rows], notes


def ways_of(answer: LayoutPlan) -> list[tuple[int, Choice]]:
    """The best choice, and that of the other way, each with its row in the plan."""
    place = next((at for at, kind in enumerate(answer.table.values("kind")) if kind in OTHER_WAYS), None)
    lead = answer.groups[0]
    second = next((group.best for group in answer.groups if group.place == lead.place and group.goal.apart != lead.goal.apart), None)
    return [(0, answer.best), *([(place, second)] if place is not None and second is not None else [])]


def _laid_row(answer: LayoutPlan, place: int, values: Mapping[str, Any]) -> dict[str, Any]:
    line = answer.table.row(place)
    plain = {key: value if isinstance(value, str | None) else float(value) for key, value in values.items()}
    laid = {key: line[key] for key in (*LAID, *POOLED) if key in line}
    return {"kind": "best"} | laid | plain | {"gain": None} | {key: line[key] for key in ("fits", "bound", "why")}


def explained(answer: LayoutPlan, ask: PriceRequest, way: PricedWay, key: str) -> Any:
    """One number of a priced row as a tree of laws."""
    with record():
        value = None if answer.infeasible else quote(way.pick, ask)[0].get(key)
        if key == "gain" and way.row["gain"] is not None:
            first = next(pick for _, pick in ways_of(answer) if pick is not way.pick)
            dear, cheap = (quote(pick, ask)[0]["usd_per_request"] for pick in (way.pick, first))
            value = dear / cheap
    if value is None and key in answer.table.columns:
        return answer.explain(key, way.place)
    if isinstance(value, str | None):
        raise BadValue("explain", key, "a number that this row has, such as price_out, cost_in or chip_price")
    return value


def quote(pick: Choice, ask: PriceRequest) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Costs and prices at one layout and load, with the interval of each input, and notes on the chip's price."""
    chip, assumptions = pick.case.system.chip, chip_price.assumptions(ask.catalog)
    tco = owned(chip, assumptions) if ask.is_owned else None
    about = _chip_price(chip, ask, tco)
    agreed = replace(ask.terms, chip_price=about.interval)
    rates = None if ask.sheet is None else rates_at(ask.sheet, pick.case.load.prompt)
    values = priced(pick, agreed, ask.hit, rates, assumptions.get("tco_default_electricity"))
    for name in (field.name for field in dataclasses.fields(agreed)):
        span = getattr(agreed, name)
        values |= {f"{name}_lo": span.low, f"{name}_hi": span.high}
    least, most = hbm_share(chip, ask.catalog)
    values |= {"memory_share_lo": least, "memory_share_hi": most}
    values |= list_prices(pick.case.model)
    values |= {f"own_{part}": getattr(tco, part) for part in PARTS} if tco is not None else {}
    return values, (about.note,) if about.note else ()


def _chip_price(chip: Chip, ask: PriceRequest, tco: OwnershipCost | None) -> ChipPrice:
    if tco is not None:
        parts = ", ".join(f"{part} {units.show(getattr(tco, part), 'USD/s')}" for part in PARTS)
        return ChipPrice(interval=point(tco.total), note=f"an owned {chip.name} costs {units.show(tco.total, 'USD/s')}: {parts}")
    if ask.terms.chip_price is not None:
        return ChipPrice(interval=ask.terms.chip_price, note="")
    return by_metric(chip, ask.metric or chip_price.MARKET)


def rates_at(sheet: PriceSheet, prompt: Token) -> Rates:
    """A sheet's rates for a prompt of this length: the rates of its context tier, for the whole request."""
    return next((step.rates for step in reversed(sheet.tiers) if prompt > step.above), sheet.rates)

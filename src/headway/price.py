"""`price`: what a million tokens cost and sell for on a machine, at the cheapest layout that keeps the limits, beside a price sheet."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, replace
from typing import Any

from headway import cost, schema, units
from headway.assumptions import Assumptions
from headway.catalog import Catalog
from headway.chip import Chip
from headway.chip_cost import ChipPrice, OwnershipCost, by_metric, over_all, owned
from headway.errors import BadValue
from headway.formula import record
from headway.grid import Table, from_rows
from headway.interval import point
from headway.memory_cost import hbm_share
from headway.pick import POOLED, Choice
from headway.plan import Plan, plan
from headway.price_sheet import PriceSheet, Rates
from headway.priced import priced
from headway.quantity import Sourced, user_input
from headway.terms import CommercialTerms, terms
from headway.workload import Load

LAID = ("model", "system", "chips", "replicas", "tp", "ep", "dp", "pp", "cp", "weights", "kv", "compute", "batch", "prompt", "output")
PARTS = ("capital", "upkeep", "power", "building")  # of owning a chip


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceRequest:
    """What a price is asked for beyond a layout: terms, by what a chip is priced where they do not say, hit rate, sheet."""

    terms: CommercialTerms
    metric: str = ""
    is_owned: bool = False
    hit: Any = None
    sheet: PriceSheet | None = None
    catalog: Catalog | None = None


def price(
    model: Any, system: Any, load: Load, *, chip_price: Any = None, utilisation: Any = None, margin: Any = None,
    metric: str = "", own: bool = False, hit: Any = None, sheet: PriceSheet | None = None, **planned: Any,
) -> Table:  # fmt: skip
    """One row: cost and price of fresh input, cached input and output, each with its interval, and what drives its width.

    `chip_price`, `utilisation` and `margin` are a number, a pair of ends (SI), or text such as "2.2..4.5"; without a chip price it is
    the catalogue's by `metric`, that of an owned chip, or all it has. The rest is `plan`'s: ttft, tpot, ways, batch, assumptions, ...
    """
    assumptions = planned.pop("assumptions", None) or schema.defaults(Assumptions)
    if hit is not None:
        hit = _share(hit)
        assumptions = replace(assumptions, hit_rate=hit)
    answer = plan(model, system, load, elasticities=False, assumptions=assumptions, **planned)
    ask = PriceRequest(
        terms=terms(chip_price=chip_price, utilisation=utilisation, margin=margin), metric=metric, is_owned=own, hit=hit, sheet=sheet
    )
    values, notes = row(answer, ask)
    return from_rows([values], (*answer.notes, *notes), lambda _, key: explained(answer, ask, key))


def _share(hit: Any) -> Any:
    q = schema.fields(Assumptions)["hit_rate"][0]
    if isinstance(hit, bool) or not isinstance(hit, int | float) or q.illegal(hit):
        raise BadValue("hit", hit, f"a number {q.range()}")
    return hit if isinstance(hit, Sourced) else user_input(float(hit), "hit_rate")


def row(answer: Plan, ask: PriceRequest) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The best layout of a plan with its costs and prices, as plain numbers, and what is to be said; no prices where nothing fits."""
    best = answer.table.row(0)
    values, notes = ({}, ()) if answer.infeasible else quote(answer.best, ask)
    plain = {key: value if isinstance(value, str | None) else float(value) for key, value in values.items()}
    laid = {key: best[key] for key in (*LAID, *POOLED) if key in best}
    return laid | plain | {key: best[key] for key in ("fits", "bound", "why")}, notes


def explained(answer: Plan, ask: PriceRequest, key: str) -> Any:
    """One number of that row as a tree of laws."""
    with record():
        value = None if answer.infeasible else quote(answer.best, ask)[0].get(key)
    if value is None and key in answer.table.columns:
        return answer.explain(key)
    if isinstance(value, str | None):
        raise BadValue("explain", key, "a number that this row has, such as price_out, cost_in or chip_price")
    return value


def quote(pick: Choice, ask: PriceRequest) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Costs and prices at one layout and load, with the interval of each input, and what is to be said about the chip's price."""
    chip, assumptions = pick.query.system.chip, cost.assumptions(ask.catalog)
    tco = owned(chip, assumptions) if ask.is_owned else None
    about = _chip_price(chip, ask, tco)
    agreed = replace(ask.terms, chip_price=about.interval)
    rates = None if ask.sheet is None else rates_at(ask.sheet, pick.load.prompt)
    values = priced(pick, agreed, ask.hit, rates, assumptions.get("tco_default_electricity"))
    for name in (field.name for field in dataclasses.fields(agreed)):
        span = getattr(agreed, name)
        values |= {f"{name}_lo": span.low, f"{name}_hi": span.high}
    least, most = hbm_share(chip, ask.catalog)
    values |= {"memory_share_lo": least, "memory_share_hi": most}
    values |= {f"own_{part}": getattr(tco, part) for part in PARTS} if tco is not None else {}
    return values, (about.note,) if about.note else ()


def _chip_price(chip: Chip, ask: PriceRequest, tco: OwnershipCost | None) -> ChipPrice:
    if tco is not None:
        parts = ", ".join(f"{part} {units.show(getattr(tco, part), 'USD/s')}" for part in PARTS)
        return ChipPrice(interval=point(tco.total), note=f"an owned {chip.name} costs {units.show(tco.total, 'USD/s')}: {parts}")
    if ask.terms.chip_price is not None:
        return ChipPrice(interval=ask.terms.chip_price, note="")
    return by_metric(chip, ask.metric) if ask.metric else over_all(chip)


def rates_at(sheet: PriceSheet, prompt: Any) -> Rates:
    """A sheet's rates for a prompt of this length: those of the last step below it hold for the whole request."""
    return next((step.rates for step in reversed(sheet.tiers) if prompt > step.above), sheet.rates)

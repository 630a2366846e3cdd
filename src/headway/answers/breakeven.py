"""`headway breakeven MODEL --on MACHINE --sheet NAME --prompt 8k --output 1k [--rate 100k/day]`: API bill against machines by volume.

The API's side is a bill as `headway bill` computes it, the machines' side a plan as `headway plan` finds it for the busiest hours.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headway.answers import arguments, bill, plan
from headway.core import schema
from headway.core.errors import BadValue, HeadwayError, MissingFact
from headway.core.listing import traced_listing
from headway.core.notes import note, noted
from headway.core.progress import expect, tick
from headway.core.quantity import default, known, user_input
from headway.core.trace import record
from headway.economics.bill import rates_of, requests_over_a_day
from headway.economics.breakeven import ApiPrice, MachineFleet, Terms, api_prices
from headway.economics.chip_cost import CAPEX, POWER, by_metric, fact, owned, ownership_notes
from headway.economics.compared_months import SAME, TIP, BothSides, VolumePoint, rows_of
from headway.economics.questions import Breakeven, MachineCosts, MonthlyVolume
from headway.economics.sheets.catalogue import model_of, of_model
from headway.economics.sheets.catalogue import sheets as catalogue_sheets
from headway.hardware import chip_price
from headway.laws.economics.breakeven import rate_of_tokens
from headway.models.config import catalogue_name, shipped_file
from headway.performance.assumptions import Assumptions
from headway.report import breakeven as words
from headway.report import output, plan_load
from headway.report.plan import layout
from headway.serving.plan.staircase import Staircase, staircase
from headway.simulation.check import plan_at_load
from headway.simulation.questions import Plan

if TYPE_CHECKING:
    from headway.economics.sheets.sheet import PriceSheet
    from headway.hardware.system import System
    from headway.serving.plan.plan import LayoutPlan
    from headway.simulation.traffic.distributions import Lengths

MOST_SHEETS, MOST_VOLUMES = 6, 40
EVEN, SAMPLED = 1440, 10_080  # requests of a day that are billed: one a minute of equal ones, seven times as many where lengths are drawn
DIGITS = 6  # of a rate and a hit rate that a plan is asked
SEARCHES = 6  # about as many as a question takes


def run(args: Breakeven) -> output.Answer:
    """Answer with a row for each volume asked about, where it tips, and a curve around them."""
    machine, prompts, outputs = _machine(args), *_lengths(args)
    sheets = bill.sheets_of(args) if args.sheet else [_cheapest_list(args, prompts, outputs)]
    if len(sheets) > MOST_SHEETS:
        raise BadValue("--sheet", f"{len(sheets)} sheets", f"at most {MOST_SHEETS}")
    terms = _terms(args, machine)
    rates = _rates(args, *(user_input(float(tokens.mean()), name, "token") for name, tokens in (("prompt", prompts), ("output", outputs))))
    need = max(float(terms.need(rate)) for rate in rates) if rates else 1.0
    search = Searches(args=args, terms=terms, machine=machine, need=need)
    comparison = BothSides(
        prompt=user_input(float(prompts.mean()), "prompt", "token"), output=user_input(float(outputs.mean()), "output", "token"),
        hit_rate=_hit_rate(args), terms=terms, prices=_prices(args, sheets, prompts, outputs), search=search.fleet, check=search.planned,
    )  # fmt: skip
    expect(SEARCHES)
    points = comparison.points(rates)
    with record():
        traced = list(rows_of(comparison, points))
    model = arguments.models(args)[0].name
    foreign = {f"{sheet.provider}/{sheet.model} ({sheet.as_of})" for sheet in sheets if _is_of_another(sheet, model)}
    listing = traced_listing([{"model": model, "another_model": row["sheet"] in foreign} | row for row in traced])
    note(*_notes(comparison, points, f"--chip-price {args.chip_price} is one figure" if args.chip_price else ""))
    return output.Answer(
        listing, notes=next((point.fleet.notes for point in points if point.fleet.notes), ()),
        describe=lambda rows: words.describe(list(rows), list(listing), len(rates)),
        pictures={"volume": lambda rows, view: words.picture(list(rows), list(listing), view)}, most=60,
    )  # fmt: skip


def _machine(args: Breakeven) -> System:
    """The one machine of the question, for one model."""
    machines, models = arguments.systems(args), arguments.models(args)
    if len(machines) != 1 or len(models) != 1:
        what = ("--on", f"{len(machines)} machines") if len(machines) != 1 else ("model", f"{len(models)} models")
        raise BadValue(*what, "one model on one machine, one value of each --set and --chip-price; several --sheet are compared")
    return machines[0][0]


def _lengths(args: Breakeven) -> tuple[Any, Any]:
    """Prompts and answers of the requests that are billed."""
    if args.prompt is None or args.output is None:
        raise BadValue("breakeven", "no --prompt" if args.prompt is None else "no --output", "--prompt 8k --output 500 beside it")
    kinds: tuple[Lengths, Lengths] = arguments.length_distributions({"prompt": args.prompt, "output": args.output})
    rng = np.random.default_rng(0)
    prompts, outputs = (kind.draw(rng, SAMPLED) for kind in kinds)
    if len({*prompts.tolist()}) == len({*outputs.tolist()}) == 1:
        prompts, outputs = prompts[:EVEN], outputs[:EVEN]
    return prompts, outputs


def _cheapest_list(args: Breakeven, prompts: Any, outputs: Any) -> PriceSheet:
    """The price list of the model's own that bills these requests least, where none is named."""
    model, faults, offers = arguments.models(args)[0].name, list[HeadwayError](), list[ApiPrice]()
    for sheet in of_model(model, catalogue_sheets(arguments.catalog(args))):
        try:
            with noted():
                options = bill.options_sold(args, [sheet], requests_over_a_day(prompts, outputs, 0.0, "the workload given"))
            offers += api_prices(options, prompts, outputs, float(_hit_rate(args)))
        except HeadwayError as fault:  # a mode that it does not sell, requests longer than its context
            faults.append(fault)
    if not offers:
        raise faults[0] if faults else MissingFact(model, "a price list", "--sheet NAME says what to compare it with (headway list sheets)")
    best, *rest = sorted(offers, key=lambda offer: float(offer.request_usd))
    dearer = "".join(f", {offer.sheet} {float(offer.request_usd) / float(best.request_usd) - 1:.0%} more" for offer in rest)
    of_which = f"of those that sell {model} or a later version of its shapes"
    note(f"price list, none being named: {best.sheet}, the cheapest for these requests {of_which}{dearer}")
    return best.way.sheet


def _is_of_another(sheet: PriceSheet, model: str) -> bool:
    """Whether a sheet sells another model than one of the catalogue; of a model of the user's own nobody knows."""
    return shipped_file(model) is not None and model_of(sheet) != catalogue_name(model)


def _hit_rate(args: Breakeven) -> Any:
    """The one hit rate."""
    values = schema.read(args, Assumptions).get("hit_rate", default(0.0, "hit_rate", "", "no prompt is in a cache unless told"))
    if len(schema.several(values)) > 1:
        raise BadValue("--hit-rate", args.hit_rate, "one value: the hit rate at which it tips is in the answer")
    return values


def _rates(args: Breakeven, prompt: Any, output: Any) -> tuple[Any, ...]:
    """Mean rates that are asked about."""
    if args.rate is not None and args.monthly_tokens is not None:
        raise BadValue("--monthly-tokens", args.monthly_tokens, "one volume: --rate or --monthly-tokens")
    volume = schema.read(args, MonthlyVolume, skip=("prompt", "output", "peak", "idle_hours"), most=MOST_VOLUMES)
    if "monthly_tokens" in volume:
        tokens = schema.several(volume["monthly_tokens"])
        return tuple(rate_of_tokens(total, prompt, output) for total in tokens)
    return schema.several(volume["rate"]) if "rate" in volume else ()


def _prices(args: Breakeven, sheets: Sequence[Any], prompts: Any, outputs: Any) -> Callable[[float], list[ApiPrice]]:
    """API prices of a request by hit rate."""
    options = bill.options_sold(args, sheets, requests_over_a_day(prompts, outputs, 0.0, "the workload given"))
    if any(way.sheet.hours for way in options):
        note("prices by the hour: requests are billed evenly over a day")
    if any(rates_of(way.sheet, way.mode)[0].storage for way in options if way.ttl_s is not None):
        note("fees for holding a cache are left out: a hit rate does not say how long prefixes lie; headway bill has them")
    return lambda hits: api_prices(options, prompts, outputs, hits)


def _terms(args: Breakeven, machine: System) -> Terms:
    """What machines cost beside their hours, by the flags and the catalogue."""
    costs = schema.defaults(MachineCosts, schema.read(args, MachineCosts))
    volume = schema.read(args, MonthlyVolume, skip=("rate", "monthly_tokens", "prompt", "output"))
    assumptions = chip_price.assumptions(arguments.catalog(args))
    pairs = [(arguments.models(args)[0], machine)]
    terms = Terms(
        staff=default(0.0, "staff", "USD", "nobody is paid for running the machines unless told") if costs.staff is None else costs.staff,
        peak=volume.get("peak", default(1.0, "peak", "", "requests come evenly unless told")),
        idle_hours=volume.get("idle_hours", default(0.0, "idle_hours", "", "requests come at all hours unless told")),
        width=plan_at_load.width_of(pairs, schema.defaults(Assumptions, _assumptions(args))),
    )  # fmt: skip
    if args.own:
        return _owned(args, terms, machine, costs, assumptions)
    metric = chip_price.MARKET if machine.chip.price is not None else args.price_metric or chip_price.MARKET
    span = by_metric(machine.chip, metric).interval
    return dataclasses.replace(terms, price_low=float(span.low / span.middle), price_high=float(span.high / span.middle))


def _assumptions(args: Breakeven) -> dict[str, Any]:
    values = arguments.combinations(args, Assumptions)
    if len(values) > 1:
        raise BadValue("breakeven", "a list of assumptions", "one value of each")
    return values[0]


def _owned(args: Breakeven, terms: Terms, machine: System, costs: Any, assumptions: Mapping[str, Any]) -> Terms:
    """Terms of chips that are bought."""
    if args.chip_price or args.price_metric:
        raise BadValue("--own", "beside a price by the hour", "one of them: --own, or --chip-price or --price-metric of rented machines")
    chip = machine.chip
    lacks = [name for name, value in ((CAPEX, costs.capex), (POWER, costs.power)) if value is None and fact(chip, name) is None]
    if lacks:
        wants = " and ".join({CAPEX: "--capex $25k", POWER: "--power 1.7kW"}[name] for name in lacks)
        raise MissingFact(chip.name, " and ".join(lacks), f"{wants} says it")
    typed = {"tco_default_life": costs.life, "tco_default_electricity": costs.electricity}
    terms_of_owning = {**assumptions, **{name: value for name, value in typed.items() if value is not None}}
    capex, power = (fact(chip, name) if value is None else value for name, value in ((CAPEX, costs.capex), (POWER, costs.power)))
    parts = owned(chip, terms_of_owning, capex=capex, power=power)
    note(*ownership_notes(parts, terms_of_owning, capex, power))
    return dataclasses.replace(terms, owned=parts, capex=capex, overhead=assumptions["tco_default_cluster_overhead"])


HIRED = "chip price "  # how a plan's note on its price begins; of chips that are bought the parts are told instead
ANEW = ("model", "on", "rate", "hit_rate", "chip_price")  # of a plan, which each volume says anew
SHARED = tuple(name for name, flag in Plan.flags().items() if name in Breakeven.flags() and name not in ANEW and not flag.into)


def _plan(args: Breakeven, need: float, hits: float, terms: Terms) -> Plan:
    """The plan of a rate: what `headway plan` is asked."""
    defaults = Plan.flags()
    values = {name: getattr(args, name) for name in SHARED if getattr(args, name) != defaults[name].default}
    values |= {"chip_price": args.chip_price} if args.chip_price else {}
    if terms.owned is not None:
        values["chip_price"] = f"${float(terms.owned.total) * 3600:.{DIGITS}g}/h"
    if hits:
        values["hit_rate"] = f"{hits:.{DIGITS}g}"
    return Plan.from_values({"model": args.model, "on": args.on, "rate": f"{need:.{DIGITS}g}/s", **values})


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Searches:
    """Fleets of a question: by one search, whose staircase is that of all rates, or by a plan for the very rate."""

    args: Breakeven
    terms: Terms
    machine: System
    need: float  # 1/s of the search
    answers: list[LayoutPlan] = dataclasses.field(default_factory=list)  # the one search, once it is done
    stairs: dict[tuple[float | None, float], Staircase] = dataclasses.field(default_factory=dict)

    def fleet(self, need: float, factor: float | None, hits: float) -> MachineFleet:
        """The fleet of a rate by the staircase, its steps so many times as long as expected, or as the confidence wants."""
        usual = float(_hit_rate(self.args))
        if not self.answers:
            tick(1)
            with noted():
                self.answers.append(plan.expected(_plan(self.args, self.need, usual, self.terms)))
        answer = self.answers[0]
        if (factor, hits) not in self.stairs:
            groups, share = answer.groups, None if hits == usual else user_input(hits, "hit_rate")
            self.stairs[factor, hits] = staircase(groups, groups[0].goal.step_factor if factor is None else factor, share)
        step = self.stairs[factor, hits].at(need)
        if step is None:
            return MachineFleet(system=self.machine.name, why=answer.infeasible or "more than it carries within the limits")
        return MachineFleet(system=step.system, chips=_carrying(step.chips), price=self._price(step.price))

    def planned(self, need: float) -> MachineFleet:
        """The fleet of a rate as headway plan has it, simulated unless told not to."""
        tick(1)
        with noted() as book:
            checked = plan.carried(_plan(self.args, need, float(_hit_rate(self.args)), self.terms))
        answer = checked.plan
        notes = tuple(text for text in (*book.texts, *answer.notes) if self.terms.owned is None or not text.startswith(HIRED))
        if answer.fails or not checked.holds:
            return MachineFleet(system=self.machine.name, why=answer.infeasible or str(plan_load.facts(checked).get("why")), notes=notes)
        case, row = answer.best.case, answer.table.row(0)
        sure = checked.checked and checked.checked.confidence
        return MachineFleet(
            system=case.system.name, chips=_carrying(int(case.system.chips)), price=self._price(case.price and case.price.value),
            layout=layout(row), capacity=row.get("capacity_req_per_s"), confidence=sure.probability if sure else None, notes=notes,
        )  # fmt: skip

    def _price(self, price: Any) -> Any:
        """Price of a chip and second: of one that is bought, with its parts."""
        return price if self.terms.owned is None else self.terms.owned.total


def _carrying(chips: int) -> Any:
    """A number of chips with its origin."""
    return known(chips, "chips", "", "derived", "as many as carry the rate of the busiest hours", "now")


def _notes(comparison: BothSides, points: Sequence[VolumePoint], typed: str) -> list[str]:
    """What either side takes for granted."""
    terms = comparison.terms
    notes = ["which model of yours is as good as which of theirs is your mapping: --sheet names it, nothing here compares quality"]
    idle = "" if not terms.idle_hours and terms.peak == 1 else ", sized for the busiest hours"
    notes.append(f"machines are paid for all hours, busy or idle{idle}; a month has 730 hours")
    return [*notes, *_cache_notes(comparison), *_interval_notes(terms, points, typed)]


def _cache_notes(comparison: BothSides) -> list[str]:
    """Which side the hit rate is of: an API without a cache, or whose cache costs more than it saves, bills hits as any other tokens."""
    hits = float(comparison.hit_rate)
    if not hits:
        return []
    cold = {price.sheet: float(price.request_usd) for price in comparison.prices(0.0)}
    alike = [price.sheet for price in comparison.prices(hits) if float(price.request_usd) >= cold[price.sheet] * (1 - SAME)]
    if not alike:
        return ["the hit rate is that of both sides: of the API's cache and of the machines' own"]
    rest = "" if len(alike) == len(cold) else "; of the other sheets it is that of both sides"
    return [f"the hit rate helps the machines alone beside {', '.join(alike)}: no cache is bought there, hits are billed in full{rest}"]


def _interval_notes(terms: Terms, points: Sequence[VolumePoint], typed: str) -> list[str]:
    """What an interval does not have in it."""
    notes = []
    if terms.price_low == terms.price_high:
        price = "what a bought chip costs has no range in its source" if terms.owned is not None else "the chip's price has one quote"
        notes.append(f"{typed or price}: intervals have the error of a step's time alone")
    tips = [point.rates for point in points if point.kind == TIP and point.rates.low and point.rates.low >= float(point.rate) * (1 - SAME)]
    if any(rates.low != rates.high for rates in tips):
        notes.append("the low end of the volume at which it tips is that volume: faster steps save nothing where the smallest fleet tips")
    return notes

"""A published day of a service: nodes, tokens, rates and prices, the account that follows from them, and what a plan of that day costs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from headway.core import catalog as facts
from headway.core.catalog import Catalog, default_catalog
from headway.core.errors import BadFile, UnknownName
from headway.core.quantity import known
from headway.core.schema import Field, defaults
from headway.economics.price.price import priced, ways_of
from headway.economics.questions import terms
from headway.hardware.edit import edit
from headway.hardware.system import system
from headway.laws.economics import cost as laws
from headway.laws.serving.request import mean_output
from headway.laws.tiers import per_mtok
from headway.models import totals
from headway.models.config import model
from headway.performance.assumptions import Assumptions
from headway.performance.workload import Load
from headway.serving.plan.choice import estimates_of
from headway.serving.plan.plan import LayoutPlan, plan

TEXTS = ("title", "model", "chip", "window", "communication")
OPTIONAL = ("nodes_peak", "stated_cost", "stated_revenue", "stated_margin_over_cost")


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedDay:
    """The published numbers of a day, each a Sourced in SI."""

    name: str
    title: str = ""
    model: str = ""  # catalogue name
    chip: str = ""
    window: str = ""
    communication: str = ""  # how it hides collectives, as --communication has it
    time: Annotated[Any, Field("s", "length of the window")] = None
    nodes: Annotated[Any, Field(help="nodes in use, mean over the window")] = None
    nodes_peak: Annotated[Any, Field(help="nodes in use, most")] = None
    node: Annotated[Any, Field(help="chips of a node", integer=True)] = None
    chip_price: Annotated[Any, Field("USD/s", "price of a chip")] = None
    prompts: Annotated[Any, Field("token", "prompt tokens of the window, found in the cache or not")] = None
    hits: Annotated[Any, Field("token", "prompt tokens found in the cache")] = None
    outputs: Annotated[Any, Field("token", "output tokens of the window")] = None
    rate_hit: Annotated[Any, Field("USD/token", "list price of cached input")] = None
    rate_miss: Annotated[Any, Field("USD/token", "list price of fresh input")] = None
    rate_output: Annotated[Any, Field("USD/token", "list price of output")] = None
    prefill_rate: Annotated[Any, Field("token/s", "prompt tokens of a prefill node, cached ones included")] = None
    decode_rate: Annotated[Any, Field("token/s", "output tokens of a decode node")] = None
    user_rate: Annotated[Any, Field("token/s", "output tokens that one user sees")] = None
    context: Annotated[Any, Field("token", "tokens attended to per output token, mean")] = None
    stated_cost: Annotated[Any, Field("USD", "cost of the window as stated")] = None
    stated_revenue: Annotated[Any, Field("USD", "revenue of the window at list prices as stated")] = None
    stated_margin_over_cost: Annotated[Any, Field(help="profit over cost as stated")] = None


def case(name: str, catalog: Catalog | None = None) -> PublishedDay:
    """A published day, by name.

    >>> case("deepseek-day6").nodes
    226.75
    """
    where = catalog or default_catalog()
    path = where.find("cases", name)
    if path is None:
        raise UnknownName("published day", name, where.names("cases"), f"one of {', '.join(where.names('cases'))}")
    return read(path)


def read(path: Path) -> PublishedDay:
    """A published day from its file; BadFile if a number that an account needs is missing."""
    document = facts.read(path)
    facts.only(document, ("name", *TEXTS, "facts", "sources"), path)
    numbers = facts.numbers(document, PublishedDay, path.stem, path)
    lacks = [name for name in facts.declared(PublishedDay) if name not in numbers and name not in OPTIONAL]
    if lacks:
        raise BadFile(path, f"facts: {', '.join(lacks)} missing")
    return PublishedDay(name=path.stem, **{key: facts.text(document, key, path) for key in TEXTS}, **numbers)


BF16 = known(2, "bytes of a bf16 element", "byte", "constant", "bf16")


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Quantities computed from a published day."""

    cost: Annotated[Any, Field("USD", "all nodes for the whole window, idle or not")]
    revenue: Annotated[Any, Field("USD", "all tokens at list prices")]
    margin_over_cost: Annotated[Any, Field(help="profit over cost")]
    gross_margin: Annotated[Any, Field(help="share of revenue that is not cost")]
    hit_rate: Annotated[Any, Field(help="prompt tokens found in the cache over all")]
    prefill_nodes: Annotated[Any, Field(help="prompt tokens a second over the rate of a prefill node")]
    decode_nodes: Annotated[Any, Field(help="output tokens a second over the rate of a decode node")]
    nodes: Annotated[Any, Field(help="both: the nodes that the published rates imply")]
    nodes_over_stated: Annotated[
        Any, Field(help="the same over the nodes stated: 1 where the rates are means over the window, every node counted")
    ]
    prefill_share: Annotated[Any, Field(help="share of the nodes that prefill")]
    cost_fresh_input: Annotated[Any, Field("USD/Mtok", "prefill nodes over prompt tokens that the cache did not have")]
    cost_all_input: Annotated[Any, Field("USD/Mtok", "prefill nodes over all prompt tokens")]
    cost_output: Annotated[Any, Field("USD/Mtok", "decode nodes over output tokens")]
    output_over_fresh_cost: Annotated[Any, Field(help="cost of output over that of fresh input")]
    output_over_fresh_price: Annotated[Any, Field(help="list price of output over that of fresh input")]
    fresh_markup: Annotated[Any, Field(help="list price of fresh input over its cost")]
    output_markup: Annotated[Any, Field(help="list price of output over its cost")]
    fresh_tok_per_s_chip: Annotated[Any, Field("token/s", "prompt tokens that a prefill chip computes")]
    output_tok_per_s_chip: Annotated[Any, Field("token/s", "output tokens of a decode chip")]
    sequences_per_chip: Annotated[Any, Field(help="sequences that decode at once, over decode chips")]
    kv_bytes_per_chip: Annotated[Any, Field("byte", "their KV cache in bf16, over decode chips")]


STATED_COLUMNS = {"cost": "stated_cost", "revenue": "stated_revenue", "margin_over_cost": "stated_margin_over_cost", "nodes": "nodes"}


def account(day: PublishedDay) -> Account:
    """The account of a published day."""
    cost = day.nodes * day.node * day.chip_price * day.time
    misses = day.prompts - day.hits
    bills = ((day.hits, day.rate_hit), (misses, day.rate_miss), (day.outputs, day.rate_output))
    revenue = sum(laws.charged_usd(tokens, per_mtok(rate)) for tokens, rate in bills)
    prefill = day.prompts / (day.time * day.prefill_rate)
    decode = day.outputs / (day.time * day.decode_rate)
    nodes = prefill + decode
    prefill_usd, decode_usd = (count * day.node * day.chip_price * day.time for count in (prefill, decode))
    fresh, output = laws.usd_per_mtok_of(prefill_usd, misses), laws.usd_per_mtok_of(decode_usd, day.outputs)
    output_rate = day.decode_rate / day.node
    sequences = output_rate / day.user_rate
    kv = totals.kv_bytes_per_token(model(day.model), BF16)
    return Account(
        cost=cost, revenue=revenue,
        margin_over_cost=laws.margin_over_cost(cost, revenue), gross_margin=laws.gross_margin(cost, revenue),
        hit_rate=day.hits / day.prompts, prefill_nodes=prefill, decode_nodes=decode, nodes=nodes,
        nodes_over_stated=nodes / day.nodes, prefill_share=prefill / nodes,
        cost_fresh_input=fresh, cost_all_input=laws.usd_per_mtok_of(prefill_usd, day.prompts), cost_output=output,
        output_over_fresh_cost=output / fresh, output_over_fresh_price=day.rate_output / day.rate_miss,
        fresh_markup=per_mtok(day.rate_miss) / fresh, output_markup=per_mtok(day.rate_output) / output,
        fresh_tok_per_s_chip=misses / day.time / prefill / day.node,
        output_tok_per_s_chip=output_rate, sequences_per_chip=sequences,
        kv_bytes_per_chip=(sequences * day.context) * kv,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedDay:
    """The same day by a plan on the day's chips, within the speed of a user; nothing of it was fitted to the day."""

    planned_cost: Annotated[Any, Field("USD", "all requests of the window by a plan whose chips are always busy")]
    planned_cost_other_way: Annotated[Any, Field("USD", "the same with one pool, where that has prefill apart, or the reverse")]
    planned_output_over_fresh: Annotated[Any, Field(help="cost of output over that of fresh input by that plan")]
    planned_prefill_share: Annotated[Any, Field(help="share of the chips that prefill in that plan")]


PLANNED_COLUMNS = {"planned_cost": "cost", "planned_output_over_fresh": "output_over_fresh_cost", "planned_prefill_share": "prefill_share"}


def plan_of(day: PublishedDay) -> LayoutPlan:
    """The cheapest way to serve a mean request of the day, on as many chips as were in use on average."""
    machine = edit(system(f"{round(day.nodes * day.node)}x{day.chip}"), "chip.price", float(day.chip_price))
    output = mean_output(day.context, day.prompts / day.outputs)
    load = Load(prompt=output * (day.prompts / day.outputs), output=output)
    hidden = {"communication": day.communication} if day.communication else {}
    assumptions = defaults(Assumptions, {"hit_rate": day.hits / day.prompts} | hidden)
    return plan(day.model, machine, load, tpot=float(1 / day.user_rate), assumptions=assumptions, elasticities=False, frontier=False)


def planned(day: PublishedDay, answer: LayoutPlan) -> PlannedDay:
    """Costs of the day's requests by a plan of it."""
    picks = [pick for _, pick in ways_of(answer)]
    requests = day.outputs / picks[0].case.load.output
    best, *rest = (priced(pick, terms(chip_price=day.chip_price), day.hits / day.prompts) for pick in picks)
    row = estimates_of(picks[0], picks[0].case)
    return PlannedDay(
        planned_cost=best["usd_per_request"] * requests,
        planned_cost_other_way=rest[0]["usd_per_request"] * requests if rest else None,
        planned_output_over_fresh=best["cost_out"] / best["cost_in"],
        planned_prefill_share=row["prefill_chips"] / row["chips_used"] if "prefill_chips" in row else None,
    )

"""A published day of a service: nodes, tokens, rates and prices, and the account that follows from them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from headway.core import catalog as facts
from headway.core.catalog import Catalog, default_catalog
from headway.core.errors import BadFile, UnknownName
from headway.core.quantity import known
from headway.core.schema import Field
from headway.laws.economics import cost as laws
from headway.laws.tiers import per_mtok
from headway.models import totals
from headway.models.config import model

TEXTS = ("title", "model", "chip", "window")
OPTIONAL = ("nodes_peak", "stated_cost", "stated_revenue", "stated_margin_over_cost")


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedDay:
    """The published numbers of a day, each a Sourced in SI."""

    name: str
    title: str = ""
    model: str = ""  # catalogue name
    chip: str = ""
    window: str = ""
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

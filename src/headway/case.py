"""A day of a service as its operator published it: nodes, tokens, rates, prices. Files are cases/*.toml of the catalogue's folders."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from headway import facts
from headway.catalog import Catalog, default_catalog
from headway.errors import BadFile, UnknownName
from headway.schema import Field

TEXTS = ("title", "model", "chip", "window")
OPTIONAL = ("nodes_peak", "stated_cost", "stated_revenue", "stated_margin_over_cost")


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedDay:
    """What was published; each number is a Known in SI."""

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
    """A published day by its name.

    >>> case("deepseek-day6").nodes
    226.75
    """
    where = catalog or default_catalog()
    path = where.find("cases", name)
    if path is None:
        raise UnknownName("published day", name, where.names("cases"), f"one of {', '.join(where.names('cases'))}")
    return read(path)


def read(path: Path) -> PublishedDay:
    """A published day from its file; what an account needs must be there."""
    document = facts.read(path)
    facts.only(document, ("name", *TEXTS, "facts", "sources"), path)
    numbers = facts.numbers(document, PublishedDay, path.stem, path)
    lacks = [name for name in facts.declared(PublishedDay) if name not in numbers and name not in OPTIONAL]
    if lacks:
        raise BadFile(path, f"facts: {', '.join(lacks)} missing")
    return PublishedDay(name=path.stem, **{key: facts.text(document, key, path) for key in TEXTS}, **numbers)

"""Prices of a chip by metric: owning it, renting it for three years, renting it by the hour. Metrics are never mixed.

A cost file is a list, `rows = [{ metric = "rental_3yr", value = 1.3, unit = "USD/h", source = ..., date = ..., kind = ... }]`, per chip;
`low` and `high` give a stated range, `offers` how many providers' offers the value is the middle of.

A question that names no metric asks for the `market` price: on demand, else the nearest metric by which every machine of the question
has a quote, so that one answer has one basis.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headway.core import catalog as facts
from headway.core.age import age, last_day
from headway.core.catalog import Catalog, default_catalog, fold
from headway.core.errors import BadFile, BadValue, UnknownName
from headway.core.quantity import known
from headway.core.question import FlagRecord, field

MARKET = "market"
# Prices of one chip per time, from which a cost per token follows; what a buyer without a contract pays comes first.
METRICS = ("rental_on_demand", "rental_cloud_list", "rental_flex_start", "rental_1yr", "rental_3yr", "rental_spot",
           "rental_annual_commit_china", "rental_assumed_by_deepseek", "rental_paper_assumption", "tco_owning_neocloud",
           "tco_owning_hyperscaler", "strategic_rate_anthropic_est")  # fmt: skip
WHICH = f"{MARKET} (on demand, else the nearest that all machines asked about have), rental_on_demand, rental_3yr, ..."
HALF_YEAR = 183  # days before the newest quote of which quotes count
YEAR_S = 365.25 * 86400
UNITS = {"USD/h": ("USD/s", 1 / 3600), "kW": ("W", 1e3), "W": ("W", 1.0), "USD": ("USD", 1.0), "USD/kWh": ("USD/J", 1 / 3.6e6),
         "USD/W": ("USD/W", 1.0), "year": ("s", YEAR_S), "%/year": ("1/s", 0.01 / YEAR_S), "%": ("", 0.01), "": ("", 1.0)}  # fmt: skip


class TypedPrice(FlagRecord):
    """A price typed in place of the catalogue's."""

    chip_price = field("USD/s", bare="USD/h", word="USD/h", help="price of a chip, such as $2.2/h, in place of a metric")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """One figure of one source for one metric, with its stated range."""

    metric: str
    value: Any
    low: Any
    high: Any
    note: str
    offers: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceQuote:
    """Price of one chip per second by one metric: the middle of the newest quotes, and their range."""

    value: Any  # USD/s
    low: Any
    high: Any
    metric: str
    note: str


def costs(name: str, catalog: Catalog | None = None) -> tuple[Cost, ...]:
    """All cost figures of a chip; may be empty (many chips have no public price)."""
    path = (catalog or default_catalog()).files("costs").get(fold(name))
    return read(path, name) if path else ()


def assumptions(catalog: Catalog | None = None) -> dict[str, Any]:
    """Costs of owning a chip beyond its price: electricity, building, life, overhead; by metric."""
    return {row.metric: row.value for row in costs("assumptions", catalog)}


def read(path: Path, subject: str) -> tuple[Cost, ...]:
    """Rows of a cost file, in SI."""
    document = facts.read(path)
    rows, sources = document.get("rows"), facts.table(document, "sources", path)
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise BadFile(path, "wants rows = [ { metric = ..., value = ..., unit = ..., source = ..., date = ..., kind = ... }, ... ]")
    return tuple(_cost(row, subject, sources, path) for row in rows)


def _cost(row: dict[str, Any], subject: str, sources: dict[str, Any], path: Path) -> Cost:
    metric, unit = facts.text(row, "metric", path), facts.text(row, "unit", path)
    name = f"{subject}.{metric}"
    if unit not in UNITS:
        raise BadFile(path, f"{name}: got unit {unit!r}; wants one of {', '.join(filter(None, UNITS))}")
    si, factor = UNITS[unit]
    origin = facts.origin(row, name, sources, path)

    def figure(key: str) -> Any:
        value = row.get(key, row.get("value"))
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e15:
            raise BadFile(path, f"{name}: got {key} {value!r}; wants a number above 0")
        return known(value * factor, name if key == "value" else f"{name}_{key}", si, *origin)

    offers = row.get("offers", 1)
    if isinstance(offers, bool) or not isinstance(offers, int) or offers < 1:
        raise BadFile(path, f"{name}: got offers {offers!r}; wants a whole number above 0")
    ends = {"value": figure("value"), "low": figure("low"), "high": figure("high")}
    return Cost(metric=metric, note=facts.text(row, "note", path), offers=offers, **ends)


def market_metric(costs_of_chips: Iterable[tuple[Cost, ...]]) -> str:
    """The first metric by which each of these chips has a quote, chips without any left out; "" where they share none.

    >>> from headway.hardware.chip import chip
    >>> market_metric([chip("h100-sxm").costs, chip("mi355x").costs]), market_metric([chip("h100-sxm").costs])
    ('rental_3yr', 'rental_on_demand')
    """
    by_chip = [{row.metric for row in rows} for rows in costs_of_chips]
    quoted = [metrics for metrics in by_chip if metrics & set(METRICS)]
    return next((metric for metric in METRICS if quoted and all(metric in metrics for metrics in quoted)), "")


def price_by_metric(rows: tuple[Cost, ...], metric: str) -> PriceQuote | None:
    """Price by one metric, or None when no source has one: the middle of the offers of the last half year, and their range."""
    if metric not in METRICS:
        raise UnknownName("price metric", metric, (MARKET, *METRICS), f"one of {MARKET}, {', '.join(METRICS)}")
    quotes = [row for row in rows if row.metric == metric]
    if not quotes:
        return None
    newest = max(last_day(row.value.date) for row in quotes)
    quotes = sorted((row for row in quotes if (newest - last_day(row.value.date)).days <= HALF_YEAR), key=lambda row: row.value)
    low, high = min((row.low for row in quotes), default=None), max((row.high for row in quotes), default=None)
    if len(quotes) == 1:
        return PriceQuote(value=quotes[0].value, low=low, high=high, metric=metric, note=quotes[0].note)
    note = f"the middle of {sum(row.offers for row in quotes)} offers by {len(quotes)} quotes"
    return PriceQuote(value=_middle(quotes), low=low, high=high, metric=metric, note=note)


def _middle(quotes: list[Cost]) -> Any:
    """Median of quotes in order of value, each counted once for each of its offers."""
    offers = [row for row in quotes for _ in range(row.offers)]
    below, above = offers[(len(offers) - 1) // 2].value, offers[len(offers) // 2].value
    if below is above:
        return below
    sources = "; ".join(dict.fromkeys(value.source for value in (below, above)))
    return known((below + above) / 2, below.name, below.unit, "derived", sources, max(below.date, above.date))


def price_name(metric: str) -> str:
    """A kind of price as a message names it.

    >>> price_name("rental_3yr"), price_name("market")
    ('rental_3yr price', 'price')
    """
    return "price" if metric == MARKET else f"{metric} price"


def price_origin(price: PriceQuote) -> str:
    """Price of a chip with its range, metric, source and date."""
    amount, value = f"${price.value * 3600:.3g}/h", price.value
    if price.metric == "input":
        return f"{amount} ({price.note})"
    amount += f", of ${price.low * 3600:.3g} .. ${price.high * 3600:.3g}" if price.low < price.high else ""
    old = age("chip prices", value.date)
    return f"{amount} ({value.name.replace('.', ' ')}: {value.source}, {value.date}{', ' + old if old else ''})"


def user_price(value: Any) -> PriceQuote:
    """Price given by the user."""
    if value <= 0:
        raise BadValue("price", value, "USD/s above 0")
    return PriceQuote(value=value, low=value, high=value, metric="input", note="given by the user")

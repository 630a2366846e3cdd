"""Prices of a chip by metric: owning it, renting it for three years, renting it by the hour. Metrics are never mixed.

A cost file is a list, `rows = [{ metric = "rental_3yr", value = 1.3, unit = "USD/h", source = ..., date = ..., kind = ... }]`, per chip;
`low` and `high` give a stated range.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headway.core import catalog as facts
from headway.core.catalog import Catalog, default_catalog, fold
from headway.core.errors import BadFile, BadValue, UnknownName
from headway.core.quantity import known

DEFAULT_METRIC = "rental_on_demand"
# Prices of one chip per time, from which a cost per token follows.
METRICS = ("rental_3yr", "rental_1yr", "rental_on_demand", "rental_flex_start", "rental_cloud_list", "tco_owning_hyperscaler",
           "tco_owning_neocloud", "rental_annual_commit_china", "rental_assumed_by_deepseek", "rental_paper_assumption",
           "strategic_rate_anthropic_est")  # fmt: skip
YEAR_S = 365.25 * 86400
UNITS = {"USD/h": ("USD/s", 1 / 3600), "kW": ("W", 1e3), "W": ("W", 1.0), "USD": ("USD", 1.0), "USD/kWh": ("USD/J", 1 / 3.6e6),
         "USD/W": ("USD/W", 1.0), "year": ("s", YEAR_S), "%/year": ("1/s", 0.01 / YEAR_S), "%": ("", 0.01), "": ("", 1.0)}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """One figure of one source for one metric, with its stated range."""

    metric: str
    value: Any
    low: Any
    high: Any
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceQuote:
    """Price of one chip per second by one metric: the newest figure, and the range of all figures."""

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

    return Cost(metric=metric, value=figure("value"), low=figure("low"), high=figure("high"), note=facts.text(row, "note", path))


def price_by_metric(rows: tuple[Cost, ...], metric: str = DEFAULT_METRIC) -> PriceQuote | None:
    """Price by one metric, or None when no source has one: the newest value, and the range over all rows and their stated ranges."""
    if metric not in METRICS:
        raise UnknownName("price metric", metric, METRICS, f"one of {', '.join(METRICS)}")
    quotes = [row for row in rows if row.metric == metric]
    if not quotes:
        return None
    newest = max(quotes, key=lambda row: row.value.date)  # ISO dates sort as text; the first row wins among equal dates
    low = min((bound for row in quotes for bound in (row.value, row.low)), default=None)
    high = max((bound for row in quotes for bound in (row.value, row.high)), default=None)
    note = f"newest of {len(quotes)} quotes" if len(quotes) > 1 else ""
    return PriceQuote(value=newest.value, low=low, high=high, metric=metric, note="; ".join(filter(None, (newest.note, note))))


def user_price(value: Any) -> PriceQuote:
    """Price given by the user."""
    if value <= 0:
        raise BadValue("price", value, "USD/s above 0")
    return PriceQuote(value=value, low=value, high=value, metric="input", note="given by the user")

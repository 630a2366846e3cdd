"""What a chip costs by the hour: over all metrics of the catalogue, by one of them, or owned, worked out from what it is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headway import cost
from headway.chip import Chip
from headway.errors import BadValue, MissingFact
from headway.interval import Interval, point
from headway.laws import owning
from headway.laws.sums import total

GIVE = "give one: --chip-price '$2/h' or --chip-price 2..4"
POWER, CAPEX = "power_all_in_utility", "capex_per_chip"


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnershipCost:
    """What owning a chip costs by the second, and its parts."""

    capital: Any  # USD/s
    upkeep: Any
    power: Any
    building: Any
    total: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ChipPrice:
    """An interval in USD per chip and second, and where it is from."""

    interval: Interval
    note: str


def over_all(chip: Chip) -> ChipPrice:
    """From the least to the most that any metric of the catalogue says, owning and every kind of renting."""
    if chip.price is not None:
        return ChipPrice(interval=point(chip.price), note=f"chip price {_usd(chip.price)}, given by the user")
    quotes = [row for row in chip.costs if row.metric in cost.METRICS]
    if not quotes:
        raise MissingFact(chip.name, "price by the hour", GIVE)
    least, most = min(quotes, key=lambda row: row.low), max(quotes, key=lambda row: row.high)
    metrics = ", ".join(dict.fromkeys(row.metric for row in quotes))
    ends = f"{_usd(least.low)} ({least.metric}, {least.value.date}) to {_usd(most.high)} ({most.metric}, {most.value.date})"
    return ChipPrice(interval=Interval(low=least.low, high=most.high), note=f"chip price {ends}, over {metrics}; --chip-price narrows it")


def by_metric(chip: Chip, metric: str) -> ChipPrice:
    """The range of one metric's quotes."""
    quote = cost.price(chip.costs, metric)
    if quote is None:
        has = ", ".join(sorted({row.metric for row in chip.costs if row.metric in cost.METRICS})) or "none"
        raise BadValue("--price-metric", metric, f"a metric that {chip.name} has a price by ({has}), or --chip-price")
    return ChipPrice(interval=Interval(low=quote.low, high=quote.high), note=f"chip price by {metric}, {quote.value.date}, {quote.note}")


def owned(chip: Chip, assumptions: dict[str, Any]) -> OwnershipCost:
    """Capital, upkeep, power and building of a chip that is bought; `assumptions` are cost.assumptions()."""
    capex, power = fact(chip, CAPEX), fact(chip, POWER)
    if capex is None or power is None:
        lacks = " and ".join(name for name, value in ((CAPEX, capex), (POWER, power)) if value is None)
        raise MissingFact(chip.name, lacks, "its cost file needs it for --own; --chip-price gives a price instead")
    tco_inputs = {key.removeprefix("tco_default_"): value for key, value in assumptions.items()}
    capital = owning.capital_usd(owning.with_cluster(capex, tco_inputs["cluster_overhead"]), tco_inputs["life"])
    upkeep = owning.upkeep_usd(capex, tco_inputs["opex"])
    electricity = owning.power_usd(power, tco_inputs["electricity"])
    building = owning.building_usd(power, tco_inputs["datacentre_capex"], tco_inputs["datacentre_life"])
    owned_total = total((capital, upkeep, electricity, building))
    return OwnershipCost(capital=capital, upkeep=upkeep, power=electricity, building=building, total=owned_total)


def fact(chip: Chip, metric: str) -> Any | None:
    """The newest figure of one metric, None where there is none."""
    figures = [row.value for row in chip.costs if row.metric == metric]
    return max(figures, key=lambda value: value.date) if figures else None


def _usd(price: Any) -> str:
    from headway.units import show

    return show(float(price), "USD/s")

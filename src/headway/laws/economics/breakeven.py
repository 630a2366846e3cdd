"""API or machines: what each costs in a month, the volume and utilisation at which both cost the same, and payback of what is bought.

A month is 730 hours (8,760 / 12), as in the cost of a machine per month.
"""

from __future__ import annotations

from headway.core.formula import formula
from headway.core.units import Number, PerSecond, Same, Second, Token, Usd
from headway.laws.economics.cost import HOUR, MONTH_HOURS

DAY: Second = 86400.0
DAY_HOURS: Number = 24.0
NO_HOURS: Number = 1.0  # a day's hours as a share of itself


@formula(source="definition: an API bills requests, not hours")
def api_month_usd(rate: PerSecond, request: Usd) -> Usd:
    """Bill of a month at a mean rate of requests, from the bill of one.

    >>> round(api_month_usd(1 / 2.628, 0.01), 6)  # a million requests a month at a cent each
    10000.0
    """
    return rate * HOUR * MONTH_HOURS * request


@formula(source="definition: machines and the people who run them are paid for every hour, busy or idle")
def machines_month_usd(machines: Usd, staff: Usd) -> Usd:
    """Cost of a month on machines.

    >>> machines_month_usd(20732.0, 5000.0)
    25732.0
    """
    return machines + staff


@formula(source="api_month_usd, solved for the rate")
def tipping_rate(month: Usd, request: Usd) -> PerSecond:
    """Mean rate at which the API's bill of a month is as high as a month on machines.

    >>> round(tipping_rate(10000.0, 0.01) * 2.628, 6)  # in millions of requests a month
    1.0
    """
    return month / (request * HOUR * MONTH_HOURS)


@formula(source="definition: machines are sized for the busiest hours, an API bills the mean")
def peak_rate(mean: PerSecond, peak: Number, idle_hours: Number) -> PerSecond:
    """Rate that machines must carry, from the mean over all hours, a peak over the mean of busy hours, and idle hours of a day.

    >>> peak_rate(2.0, 1.5, 12.0)
    6.0
    """
    return mean * peak / (NO_HOURS - idle_hours / DAY_HOURS)


@formula(source="definition: the mean over all hours, idle ones included, over what the machines finish")
def mean_utilisation(mean: PerSecond, capacity: PerSecond) -> Number:
    """Share of its capacity that a fleet uses, or must use for its cost to equal the API's.

    >>> mean_utilisation(3.0, 12.0)
    0.25
    """
    return mean / capacity


@formula(source="definition: one bill over the other")
def over_api(machines: Same, api: Same) -> Number:
    """How many times as much machines cost as the API; below 1 they are cheaper.

    >>> over_api(5000.0, 20000.0)
    0.25
    """
    return machines / api


@formula(source="definition")
def daily_requests(rate: PerSecond) -> Number:
    """Requests of a day at a mean rate.

    >>> daily_requests(10.0)
    864000.0
    """
    return rate * DAY


@formula(source="definition: prompt and answer")
def monthly_tokens(rate: PerSecond, prompt: Token, output: Token) -> Token:
    """Tokens of a month at a mean rate, prompt and answer together.

    >>> monthly_tokens(1.0, 800.0, 200.0)
    2628000000.0
    """
    return rate * HOUR * MONTH_HOURS * (prompt + output)


@formula(source="monthly_tokens, solved for the rate")
def rate_of_tokens(tokens: Token, prompt: Token, output: Token) -> PerSecond:
    """Mean rate of requests that make so many tokens a month.

    >>> rate_of_tokens(2.628e9, 800.0, 200.0)
    1.0
    """
    return tokens / (prompt + output) / (HOUR * MONTH_HOURS)


@formula(source="definition: what must be bought before the first request, host, network and storage included")
def purchase_usd(chip: Usd, overhead: Number, chips: Number) -> Usd:
    """Purchase of a fleet, from the price of a chip and the factor for what stands around it.

    >>> purchase_usd(25000.0, 1.3, 8)
    260000.0
    """
    return chip * overhead * chips


@formula(source="definition: a purchase over what it saves each month, without interest and resale")
def payback_s(purchase: Usd, api: Usd, running: Usd) -> Second:
    """Time until a purchase has paid for itself, from the API's bill of a month and what the machines still cost in it.

    >>> round(payback_s(260000.0, 30000.0, 4000.0) / (730 * 3600), 6)  # in months
    10.0
    """
    return purchase / (api - running) * MONTH_HOURS * HOUR

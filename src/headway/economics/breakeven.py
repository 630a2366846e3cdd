"""API or machines: what a workload costs in a month on either side, and the volume, hit rate and utilisation at which both cost the same.

An API bills requests; machines are paid for all hours and come whole, so that their cost is a staircase over volume. Where a line through
the origin meets a staircase there may be several crossings: the first is the least volume at which machines cost no more than the API,
the last the volume from which on no step makes them dearer again. Both are found by going from a volume to the one at which the API
costs what its machines do, from below and from above.

Ends of an interval are found the same way with faster and slower steps and with the range of the chip's price, each alone, and added in
quadrature.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from headway.core.errors import BadValue
from headway.economics.bill import BillCalculator, BillingOption, compare, requests_over_a_day
from headway.economics.chip_cost import OwnershipCost
from headway.laws.economics import breakeven as laws
from headway.laws.economics.cost import hour_usd, lower_end, month_usd, upper_end

MOST_STEPS = 200  # from one volume to the next until a crossing is met
MOST_DOWN = 5000  # the same from above: where machines are hardly cheaper than the API, the way down to the last crossing has small steps
SAME = 1e-6  # share by which two volumes may differ and be one
FULL = 1000.0  # times the first volume at which a fleet is as good as full, so that its cost per request is the least of all
ROUNDING = 0.998  # share of that cost that is certain: the last machine of such a fleet is not full
MOST_HITS = 1.0  # hit rate up to which a crossing is looked for, as --hit-rate takes it
HALVINGS = 30
NEAR = 0.05  # hit rates so near to each other take machines of one size
UNBOUGHT = math.inf  # cost of what no number of machines carries


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineFleet:
    """Machines that carry a rate within the limits, or why none do; what only a plan for the very rate knows may be lacking."""

    system: str
    chips: Any = None
    price: Any = None  # USD/s of a chip
    why: str = ""
    layout: str | None = None
    capacity: Any = None  # 1/s that it finishes, limits aside
    confidence: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def count(self) -> float:
        """Chips, of a rate that nothing carries without end."""
        return UNBOUGHT if self.why else float(self.chips)

    def month_usd(self) -> Any:
        """Cost of its chips for a month."""
        return month_usd(hour_usd(self.price, self.chips))


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiPrice:
    """The cheapest way to buy a mean request of the workload under one price sheet."""

    way: BillingOption
    request_usd: Any

    @property
    def sheet(self) -> str:
        """Provider, model and date."""
        sheet = self.way.sheet
        return f"{sheet.provider}/{sheet.model} ({sheet.as_of})"


def api_prices(options: Sequence[BillingOption], prompt: Any, output: Any, hit_rate: float) -> list[ApiPrice]:
    """The cheapest billing option of each sheet for requests of these lengths, a cache having this share of each prompt."""
    biller = BillCalculator(requests=requests_over_a_day(prompt, output, hit_rate, "the workload given"))
    prices = []
    for sheet in dict.fromkeys(way.sheet for way in options):
        best = compare([biller.bill(way) for way in options if way.sheet is sheet])[0].bill
        if best.too_long:
            wants = f"requests within {sheet.model}'s context of {sheet.context_limit:,.0f} tokens"
            raise BadValue("--prompt", f"requests of up to {int((prompt + output).max()):,} tokens", wants)
        if not best.usd_each:
            raise BadValue("--sheet", f"{sheet.provider}/{sheet.model}, which is free", "a sheet whose requests cost something")
        prices.append(ApiPrice(way=best.way, request_usd=best.usd_each))
    return prices


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What machines cost beside their hours, and how unevenly requests come."""

    staff: Any  # USD a month
    peak: Any  # rate of the busiest hours over the mean of the busy ones
    idle_hours: Any  # hours of a day without requests
    owned: OwnershipCost | None = None  # of a chip that is bought, by part
    capex: Any = None  # USD of such a chip
    overhead: Any = None  # factor for host, network and storage
    width: float = 1.0  # half of the 90 % interval of a step, as a factor
    price_low: float = 1.0  # least and most of the chip's quoted price, over the middle
    price_high: float = 1.0

    def need(self, rate: Any) -> Any:
        """The rate that machines must carry at a mean rate."""
        return laws.peak_rate(rate, self.peak, self.idle_hours)

    def month_usd(self, fleet: MachineFleet, price: float = 1.0) -> Any:
        """Cost of a month on a fleet, its price so many times the middle of the quotes."""
        if fleet.why:
            return UNBOUGHT
        return laws.machines_month_usd(fleet.month_usd() if price == 1 else fleet.month_usd() * price, self.staff)

    def purchase_usd(self, fleet: MachineFleet) -> Any:
        """What must be bought; None of rented machines."""
        return None if self.owned is None or fleet.why else laws.purchase_usd(self.capex, self.overhead, fleet.chips)

    def payback_s(self, fleet: MachineFleet, api_usd: Any) -> Any:
        """Time until the purchase is earned; None of rented machines and where the API costs no more than running them."""
        purchase = self.purchase_usd(fleet)
        if purchase is None or self.owned is None:
            return None
        hours = self.owned.upkeep + self.owned.power + self.owned.building
        running = laws.machines_month_usd(month_usd(hour_usd(hours, fleet.chips)), self.staff)
        return laws.payback_s(purchase, api_usd, running) if api_usd > running else None


Month = Callable[[float], float]  # mean rate -> cost of a month


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossing:
    """Where the API's bill meets the cost of machines, a line a staircase."""

    month: Month
    staff: float
    request_usd: float

    def after(self, rate: float) -> float:
        """The rate at which the API costs what machines cost at this one."""
        return float(laws.tipping_rate(self.month(rate), self.request_usd))

    def full_share(self) -> float:
        """Least cost of a request on machines, over the API's; 0 where no rate fills them."""
        rate = FULL * self.after(0.0)
        month = self.month(rate)
        return (month - self.staff) / float(laws.api_month_usd(rate, self.request_usd)) if math.isfinite(month) else 0.0

    def first(self, share: float, least: float | None = None) -> float | None:
        """The least mean rate at which machines cost no more than the API; None where they never do.

        `share` is the full_share; `least` a rate that is known to lie below it.

        >>> nodes = lambda rate: 1000.0 * max(math.ceil(rate / 2.0), 1) + 500.0  # each node carries 2/s for $1,000; staff costs $500
        >>> dollar = 1 / 2.628e6  # a request at this price makes one dollar a month at one request a second
        >>> dear, cheap = (Crossing(month=nodes, staff=500.0, request_usd=price * dollar) for price in (600, 400))
        >>> round(dear.first(dear.full_share()), 4)  # three nodes carry 6/s: $3,500 over $600
        5.8333
        >>> cheap.first(cheap.full_share())  # a full node costs $500 per request a second
        """
        share *= ROUNDING
        if share >= 1:
            return None
        rate = max(self.after(0.0) if least is None else least, float(laws.tipping_rate(self.staff, self.request_usd)) / (1 - share))
        for _ in range(MOST_STEPS):
            after = self.after(rate)
            if not math.isfinite(after):
                return None
            if after <= rate * (1 + SAME):
                return after
            rate = after
        return None

    def last(self, share: float) -> float | None:
        """The mean rate from which on machines stay cheaper; None where they do not.

        >>> nodes = lambda rate: 1000.0 * max(math.ceil(rate / 2.0), 1) + 500.0
        >>> crossing = Crossing(month=nodes, staff=500.0, request_usd=600 / 2.628e6)
        >>> round(crossing.last(crossing.full_share()), 4)  # the eighth node, beyond 14/s: $8,500
        14.1667
        """
        if not 0 < share < 1:
            return None
        rate = FULL * self.after(0.0)  # from where a step of a single machine is too small to make machines dearer again
        for _ in range(MOST_DOWN):
            after = self.after(rate)
            if after >= rate * (1 - SAME):
                return rate
            rate = after
        return None


@dataclass(slots=True)
class Plateaus:
    """A falling staircase that is slow to look up: between two equal values, and within NEAR, nothing is looked up again.

    >>> calls = []
    >>> stairs = Plateaus(lambda x: calls.append(x) or (5.0 if x < 0.5 else 3.0))
    >>> [stairs.at(x) for x in (0.0, 0.4, 0.2, 0.3)], len(calls)
    ([5.0, 5.0, 5.0, 5.0], 2)
    """

    value: Callable[[float], float]
    steps: list[tuple[float, float]] = field(default_factory=list)

    def at(self, x: float) -> float:
        """The value at x."""
        place = bisect_left(self.steps, (x, -math.inf))
        after = self.steps[place] if place < len(self.steps) else None
        if after is not None and after[0] == x:
            return after[1]
        before = self.steps[place - 1] if place else None
        if before is not None and after is not None and (before[1] == after[1] or after[0] - before[0] < NEAR):
            return before[1]
        self.steps.insert(place, (x, self.value(x)))
        return self.steps[place][1]


def tipping_hit_rate(api: Callable[[float], float], machines: Callable[[float], float], near: float) -> float | None:
    """The hit rate nearest to one at which both sides cost the same; None up to MOST_HITS.

    >>> round(tipping_hit_rate(lambda hits: 100 - 80 * hits, lambda hits: 60.0, 0.0), 4)
    0.5
    >>> tipping_hit_rate(lambda hits: 9.0, lambda hits: 3.0, 0.0)
    """

    def gap(hits: float) -> float:
        return api(hits) - machines(hits)

    start, crossings = gap(near), list[float]()
    for end in (MOST_HITS, 0.0):
        if end == near or (gap(end) > 0) == (start > 0):
            continue
        inside, outside = near, end
        for _ in range(HALVINGS):
            middle = (inside + outside) / 2
            inside, outside = (middle, outside) if (gap(middle) > 0) == (start > 0) else (inside, middle)
        crossings.append(outside)
    return min(crossings, key=lambda hits: abs(hits - near), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """The 90 % interval of a figure; None at an end without one."""

    low: Any = None
    high: Any = None


def ends(middle: Any, lows: Sequence[Any], highs: Sequence[Any]) -> Ends:
    """Ends of a figure from its values at the low and at the high end of each input alone.

    >>> ends(10.0, (5.0,), (12.0, math.inf))
    Ends(low=5.0, high=None)
    """
    low = lower_end(middle, tuple(max(middle / value, 1.0) for value in lows)) if all(lows) else None
    high = upper_end(middle, tuple(max(value / middle, 1.0) for value in highs)) if all(map(_finite, highs)) else None
    return Ends(low=None if low is None else float(low), high=None if high is None else float(high))


def _finite(value: Any) -> bool:
    return value is not None and math.isfinite(value)

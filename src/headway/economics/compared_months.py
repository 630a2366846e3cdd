"""A workload on both sides by volume: its volumes, where they tip, and each as a month of the API beside a month of machines."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from headway.economics.breakeven import SAME, ApiPrice, Crossing, Ends, MachineFleet, Plateaus, Terms, ends, tipping_hit_rate
from headway.laws.economics import breakeven as laws

LEAST_NEED = 1e-6  # 1/s: a load that the smallest fleet carries
CURVE = 25  # volumes of the curve
SPAN = 8.0  # factor by which it goes beyond the least and the greatest volume of interest
MOST_CHECKS = 3  # plans that are simulated until one carries the volume at which it tips
VOLUME, TIP, LAST, CURVED = "volume", "tip", "last tip", "curve"


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumePoint:
    """One volume under one price sheet, with the fleet that carries it."""

    kind: str
    api: ApiPrice
    rate: Any  # 1/s, the mean over all hours
    fleet: MachineFleet
    rates: Ends = field(default_factory=Ends)  # of the volume at which it tips
    months: Ends = field(default_factory=Ends)  # of the cost of machines, USD
    paybacks: Ends = field(default_factory=Ends)
    hit_rate: float | None = None  # at which it tips at this volume
    hit_rates: Ends = field(default_factory=Ends)


@dataclass(frozen=True, slots=True, kw_only=True)
class BothSides:
    """A workload with both sides: API prices by hit rate, fleets by the rate that they carry, factor on steps and hit rate."""

    prompt: Any  # mean tokens
    output: Any
    hit_rate: Any
    terms: Terms
    prices: Callable[[float], Sequence[ApiPrice]]
    search: Callable[[float, float | None, float], MachineFleet]  # quick; without a factor, steps are as long as the confidence wants
    check: Callable[[float], MachineFleet]  # a plan for the rate

    def fleet(self, rate: float, factor: float | None = None, hits: float | None = None) -> MachineFleet:
        """The fleet of a mean rate by the search."""
        need = max(float(self.terms.need(rate)), LEAST_NEED)
        return self.search(need, factor, float(self.hit_rate) if hits is None else hits)

    def month(self, rate: float, factor: float | None = None, price: float = 1.0, hits: float | None = None) -> float:
        """Cost of a month on that fleet."""
        return float(self.terms.month_usd(self.fleet(rate, factor, hits), price))

    def crossing(self, api: ApiPrice, factor: float | None = None, price: float = 1.0) -> Crossing:
        """Where the API's line meets the staircase of these fleets."""
        return Crossing(
            month=lambda rate: self.month(rate, factor, price), staff=float(self.terms.staff), request_usd=float(api.request_usd)
        )  # fmt: skip

    # -- points -----------------------------------------------------------------------------------------------------------------

    def points(self, rates: Sequence[Any]) -> list[VolumePoint]:
        """The volumes asked about, where each sheet tips, and a curve around them; several volumes are the curve themselves."""
        prices = self.prices(float(self.hit_rate))
        is_alone = len(rates) == 1
        volumes = [self.volume(api, rate, is_alone) for rate in rates for api in prices]
        turns = [self.turns(api, volume) for api, volume in zip(prices, volumes if is_alone else [None] * len(prices), strict=True)]
        tips, last = [turn[0] for turn in turns], [turn[1] for turn in turns]
        least = self.crossing(prices[0]).after(0.0)
        edges = [float(point.rate) for point in (*volumes, *filter(None, (*tips, *last)))] or [least if math.isfinite(least) else 1.0]
        curve = [] if len(rates) > 1 else np.geomspace(min(edges) / SPAN, max(edges) * SPAN, CURVE)
        curved = [VolumePoint(kind=CURVED, api=api, rate=float(rate), fleet=self.fleet(float(rate))) for rate in curve for api in prices]
        return [*volumes, *filter(None, tips), *filter(None, last), *curved]

    def turns(self, api: ApiPrice, volume: VolumePoint | None) -> tuple[VolumePoint | None, VolumePoint | None]:
        """The first and the last volume at which it tips; a plan for the volume asked about is right where the search says otherwise."""
        first = self.tip(api)
        rate, month = (0.0, math.inf) if volume is None else (float(volume.rate), float(self.terms.month_usd(volume.fleet)))
        even = float(laws.tipping_rate(month, api.request_usd))  # where the API costs as much as these machines
        if volume is not None and even <= rate and (first is None or rate < float(first.rate)):
            first = VolumePoint(kind=TIP, api=api, rate=even, fleet=volume.fleet, rates=self.tip_ends(api, even))
        last = self.last_tip(api, first)
        turned = last or first
        if turned is not None and math.isfinite(even) and float(turned.rate) <= rate < even / (1 + SAME):
            last = self.checked(LAST, api, even, self.last_ends(api, even))
        if first is not None and last is None:  # from one volume on
            first = replace(first, rates=Ends(low=first.rates.low, high=self.last_ends(api, float(first.rate)).high))
        return first, last

    def tip(self, api: ApiPrice) -> VolumePoint | None:
        """The least volume at which machines cost no more than the API, with a plan for it; None where they never do."""
        rate = self.crossing(api).first(self.share(api))
        return None if rate is None else self.checked(TIP, api, rate, self.tip_ends(api, rate))

    def checked(self, kind: str, api: ApiPrice, rate: float, rates: Ends) -> VolumePoint | None:
        """The volume near one of the search at which the API costs what a plan for that very volume does; None where none carries it."""
        fleet = self.fleet(rate)
        for _ in range(MOST_CHECKS):
            fleet = self.check(float(self.terms.need(rate)))
            after = float(laws.tipping_rate(self.terms.month_usd(fleet), api.request_usd))
            if not math.isfinite(after):
                return None
            is_settled, before, rate = after <= rate * (1 + SAME), rate, after
            rates = Ends(low=_scaled(rates.low, after / before), high=_scaled(rates.high, after / before))
            if is_settled:
                break
        return VolumePoint(kind=kind, api=api, rate=rate, fleet=fleet, rates=rates)

    def share(self, api: ApiPrice) -> float:
        """Least cost of a request on machines, over the API's."""
        return self.crossing(api).full_share()

    def tip_ends(self, api: ApiPrice, rate: float) -> Ends:
        """The interval of that volume: by the error of steps, and by the range of the chip's price.

        Slower steps and a dearer chip tip no sooner, faster steps no sooner than the smallest fleet earns its cost.
        """
        terms, share, usual = self.terms, self.share(api), self.crossing(api)
        slow = self.crossing(api, terms.width).first(share * terms.width, rate)
        dear = self.crossing(api, price=terms.price_high).first(share * terms.price_high, rate)
        cheap = self.crossing(api, price=terms.price_low).first(share * terms.price_low)
        is_smallest = self.fleet(rate).count == self.fleet(0.0).count
        fast = rate if is_smallest else self.crossing(api, 1 / terms.width).first(share / terms.width, usual.after(0.0))
        return ends(rate, (fast or rate, cheap or rate), (slow, dear))

    def last_ends(self, api: ApiPrice, rate: float) -> Ends:
        """The interval of the volume from which on machines stay cheaper, by the same inputs."""
        terms, share = self.terms, self.share(api)
        slow, fast = (self.crossing(api, factor).last(share * factor) for factor in (terms.width, 1 / terms.width))
        dear, cheap = (self.crossing(api, price=price).last(share * price) for price in (terms.price_high, terms.price_low))
        return ends(rate, (fast or rate, cheap or rate), (slow, dear))

    def last_tip(self, api: ApiPrice, tip: VolumePoint | None) -> VolumePoint | None:
        """The volume from which on machines stay cheaper, where that is not the first at which they are."""
        rate = None if tip is None else self.crossing(api).last(self.share(api))
        if tip is None or rate is None or rate <= float(tip.rate) * (1 + SAME):
            return None
        return VolumePoint(kind=LAST, api=api, rate=rate, fleet=self.fleet(rate), rates=self.last_ends(api, rate))

    def volume(self, api: ApiPrice, rate: Any, is_alone: bool) -> VolumePoint:
        """A volume that was asked about; where it is the only one, checked, with the hit rate at which it tips."""
        value = float(rate)
        if not is_alone:
            return VolumePoint(kind=VOLUME, api=api, rate=rate, fleet=self.fleet(value))
        fleet = self.check(float(self.terms.need(value)))
        months = self.month_ends(value, fleet)
        usual = float(self.terms.month_usd(fleet))
        factors = [1.0 if end is None or not math.isfinite(usual) else end / usual for end in (months.low, months.high)]
        warm = Plateaus(lambda hits: self.month(value, hits=hits))
        hits, low, high = (self.tipping_hits(api, value, warm, factor) for factor in (1.0, *factors))
        return VolumePoint(
            kind=VOLUME, api=api, rate=rate, fleet=fleet, months=months, hit_rate=hits, hit_rates=_ordered(hits, low, high),
            paybacks=self.payback_ends(api, value),
        )  # fmt: skip

    def month_ends(self, rate: float, fleet: MachineFleet) -> Ends:
        """The interval of a month on machines at a volume."""
        terms = self.terms
        usual = float(terms.month_usd(fleet))
        if not math.isfinite(usual):
            return Ends()
        searched = self.month(rate)
        fast, slow = (usual * self.month(rate, factor) / searched for factor in (1 / terms.width, terms.width))
        cheap, dear = (float(terms.month_usd(fleet, price)) for price in (terms.price_low, terms.price_high))
        return ends(usual, (fast, cheap), (slow, dear))

    def payback_ends(self, api: ApiPrice, rate: float) -> Ends:
        """The interval of the time until a purchase is earned."""
        bill = float(laws.api_month_usd(rate, api.request_usd))
        fast, slow = (self.terms.payback_s(self.fleet(rate, factor), bill) for factor in (1 / self.terms.width, self.terms.width))
        return Ends(low=fast, high=slow)

    def tipping_hits(self, api: ApiPrice, rate: float, warm: Plateaus, factor: float) -> float | None:
        """The hit rate at which both sides cost the same at a volume, machines costing so many times as much as expected."""

        def bill(hits: float) -> float:
            price = next(price for price in self.prices(hits) if price.way.sheet is api.way.sheet)
            return float(laws.api_month_usd(rate, price.request_usd))

        return tipping_hit_rate(bill, lambda hits: warm.at(hits) * factor, float(self.hit_rate))


def _scaled(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


def _ordered(middle: float | None, *edges: float | None) -> Ends:
    """The least and greatest of these, an end being None where there is no crossing."""
    if middle is None:
        return Ends()
    values = [edge for edge in edges if edge is not None]
    return Ends(low=min(middle, *values), high=max(middle, *values)) if len(values) == len(edges) else Ends()


# -- rows -----------------------------------------------------------------------------------------------------------------------


def rows_of(comparison: BothSides, points: Sequence[VolumePoint]) -> Iterator[dict[str, Any]]:
    """A row of each point; within `record()` its numbers record their laws."""
    prices = {price.sheet: price for price in comparison.prices(float(comparison.hit_rate))}
    for point in points:
        yield _row(comparison, point, prices[point.api.sheet])


def _row(comparison: BothSides, point: VolumePoint, api: ApiPrice) -> dict[str, Any]:
    terms, fleet, rate = comparison.terms, point.fleet, point.rate
    bill = laws.api_month_usd(rate, api.request_usd)
    day, month = laws.daily_requests(rate), None if fleet.why else terms.month_usd(fleet)
    if point.kind in (TIP, LAST) and month is not None:
        rate = laws.tipping_rate(month, api.request_usd)
        bill, day = laws.api_month_usd(rate, api.request_usd), laws.daily_requests(rate)
    row: dict[str, Any] = {
        "kind": point.kind, "sheet": api.sheet, "mode": api.way.mode, "rate": rate, "requests_per_day": day,
        "requests_per_day_lo": _daily(point.rates.low), "requests_per_day_hi": _daily(point.rates.high),
        "tokens_per_month": laws.monthly_tokens(rate, comparison.prompt, comparison.output), "hit_rate": comparison.hit_rate,
        "peak_rate": terms.need(rate), "system": fleet.system, "chips": fleet.chips, "layout": fleet.layout,
        "api_usd_each": api.request_usd, "api_usd_per_month": bill,
    }  # fmt: skip
    use = None if fleet.why or not fleet.capacity else laws.mean_utilisation(rate, fleet.capacity)
    tip = None if use is None else laws.mean_utilisation(laws.tipping_rate(month, api.request_usd), fleet.capacity)
    tips = Ends() if tip is None else _use_ends(terms, fleet, float(tip))
    return row | {
        "chips_usd_per_month": None if fleet.why else fleet.month_usd(), "staff_usd_per_month": None if fleet.why else terms.staff,
        "machines_usd_per_month": month, "machines_usd_per_month_lo": point.months.low, "machines_usd_per_month_hi": point.months.high,
        "over_api": None if month is None else laws.over_api(month, bill),
        "cheaper": "api" if month is None or month > bill * (1 + 1e-9) else "machines",
        "utilisation": use, "tip_utilisation": tip, "tip_utilisation_lo": tips.low, "tip_utilisation_hi": tips.high,
        "tip_hit_rate": point.hit_rate, "tip_hit_rate_lo": point.hit_rates.low, "tip_hit_rate_hi": point.hit_rates.high,
        "purchase_usd": terms.purchase_usd(fleet), "payback_s": terms.payback_s(fleet, bill), "payback_lo_s": point.paybacks.low,
        "payback_hi_s": point.paybacks.high, "confidence": fleet.confidence, "why": fleet.why or None,
    }  # fmt: skip


def _use_ends(terms: Terms, fleet: MachineFleet, use: float) -> Ends:
    """The interval of the share of a fleet that must be used: by what its chips cost, and by what they finish."""
    month = float(terms.month_usd(fleet))
    cheap, dear = (use * float(terms.month_usd(fleet, price)) / month for price in (terms.price_low, terms.price_high))
    return ends(use, (cheap, use / terms.width), (dear, use * terms.width))


def _daily(rate: float | None) -> float | None:
    return None if rate is None else float(laws.daily_requests(rate))

"""API or machines: figures recomputed by plain arithmetic from prices per token, prices of chips and the number of chips of a plan."""

from __future__ import annotations

import math
from bisect import bisect_left
from types import SimpleNamespace
from typing import Any

import pytest

import headway
from headway.answers import plan
from headway.core.errors import HeadwayError
from headway.economics.breakeven import ApiPrice, Crossing, MachineFleet, Plateaus, Terms, ends, tipping_hit_rate
from headway.economics.compared_months import BothSides
from headway.serving.plan.staircase import staircase
from headway.simulation.questions import Plan

MONTH_S = 730 * 3600.0
DAYS = 730 / 24  # of a month
ONE_LAYOUT = {"tp": "1", "kv": "bf16", "no_check": True}


def answer_of(**question: Any) -> Any:
    return headway.breakeven("llama-3.1-8b", **question, **ONE_LAYOUT)


def rows_of(**question: Any) -> list[dict[str, Any]]:
    return list(answer_of(**question).rows())


def of_kind(rows: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    return next(row for row in rows if row["kind"] == kind)


# -- worked examples of docs/breakeven.md -------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_rented_cards__cost_their_hours_and_tip_where_the_bill_equals_them() -> None:
    rows = rows_of(on="l40s", sheet="groq/llama-3.1-8b", rate="500k/day", prompt="2k", output="300", ttft="2s", tpot="40ms")
    request = (2000 * 0.05 + 300 * 0.08) / 1e6  # $0.000124 at $0.05 and $0.08 per Mtok
    volume, tip = of_kind(rows, "volume"), of_kind(rows, "tip")
    assert volume["api_usd_per_month"] == pytest.approx(500_000 * DAYS * request)
    assert volume["machines_usd_per_month"] == pytest.approx(volume["chips"] * 0.79 * 730)
    assert tip["chips"] == 1
    assert tip["requests_per_day"] == pytest.approx(0.79 * 730 / request / DAYS)
    last = of_kind(rows, "last tip")
    assert last["chips"] == 7  # six do not carry what seven cost, and each larger fleet carries what one card more costs
    assert last["requests_per_day"] == pytest.approx(7 * 0.79 * 730 / request / DAYS)
    assert volume["tip_utilisation"] / volume["utilisation"] == pytest.approx(volume["over_api"])


@pytest.mark.slow
def test_own_chips__pay_back_from_the_bill_they_save() -> None:
    answer = answer_of(
        on="h100-sxm", sheet="claude-haiku-5.5", rate="1.8M/day", prompt="2k", output="300", own=True, life="4years", electricity="0.12",
        staff="$1k",
    )  # fmt: skip
    rows = list(answer.rows())
    request = (2000 * 0.10 + 300 * 0.50) / 1e6
    year = 8766.0  # hours
    upkeep, power, building = 25_000 * 0.08 / year, 1.73 * 0.12, 1730 * 12 / (15 * year)  # USD an hour and chip
    hour = 25_000 * 1.3 / (4 * year) + upkeep + power + building
    volume = of_kind(rows, "volume")
    chips, bill = volume["chips"], 1.8e6 * DAYS * request
    assert volume["machines_usd_per_month"] == pytest.approx(chips * hour * 730 + 1000, rel=1e-5)
    assert volume["purchase_usd"] == pytest.approx(chips * 25_000 * 1.3)
    months = chips * 25_000 * 1.3 / (bill - chips * (upkeep + power + building) * 730 - 1000)
    assert volume["payback_s"] == pytest.approx(months * MONTH_S)
    assert volume["utilisation"] < 0.95
    tip = of_kind(rows, "tip")
    assert tip["requests_per_day"] == pytest.approx((hour * 730 + 1000) / request / DAYS, rel=1e-5)
    notes = "\n".join(answer.notes)
    assert f"${hour:.5f}/h to own" in notes and "chip price" not in notes
    assert all(figure in notes for figure in ("$25,000", "1.3", "8%", "1.73 kW", "$12/W", "15 years", "4 years"))


@pytest.mark.slow
def test_hits_batch_and_idle_hours__are_on_the_right_side() -> None:
    answer = answer_of(
        on="l40s", sheet="claude-haiku-5.5", mode="batch", cache="none", monthly_tokens="69B", prompt="2k", output="300", idle_hours="12",
        peak="1.1", staff="$100", hit_rate="0.5",
    )  # fmt: skip
    rows = list(answer.rows())
    assert any("machines alone" in text for text in answer.notes) and not any("both sides" in text for text in answer.notes)
    volume, tip = of_kind(rows, "volume"), of_kind(rows, "tip")
    rate = 69e9 / 2300 / MONTH_S
    request = (2000 * 0.10 + 300 * 0.50) / 1e6 / 2  # batch is half price; without a cache hits cost as much
    assert volume["rate"] == pytest.approx(rate) and volume["peak_rate"] == pytest.approx(2.2 * rate)
    assert volume["api_usd_per_month"] == pytest.approx(30e6 * request)
    assert volume["machines_usd_per_month"] == pytest.approx(volume["chips"] * 0.79 * 730 + 100)
    for tipping, chips in ((tip, 1), (of_kind(rows, "last tip"), 3)):
        assert tipping["chips"] == chips
        assert tipping["requests_per_day"] == pytest.approx((chips * 0.79 * 730 + 100) / request / DAYS)


# -- crossings ------------------------------------------------------------------------------------------------------------------


def scanned(cost: float, staff: float, capacity: float, price: float) -> tuple[float, float] | None:
    """First and last crossing of `price` a unit of volume with whole machines, by going through their number."""
    first = last = None
    for number in range(1, 9_000):
        crossing = (number * cost + staff) / price
        if (number - 1) * capacity < crossing <= number * capacity:
            first = crossing if first is None else first
            last = crossing
    return None if first is None or last is None else (first, last)


@pytest.mark.parametrize("staff", [0.0, 300.0, 5000.0, 40_000.0])
@pytest.mark.parametrize("price", [350.0, 520.0, 600.0, 1500.0])
def test_crossings__are_those_of_a_scan_over_whole_machines(staff: float, price: float) -> None:
    crossing = Crossing(
        month=lambda rate: 1000.0 * max(math.ceil(rate / 2.0 - 1e-12), 1) + staff, staff=staff, request_usd=price / MONTH_S
    )  # fmt: skip
    share = crossing.full_share()
    expected = scanned(1000.0, staff, 2.0, price)
    first, last = crossing.first(share), crossing.last(share)
    if expected is None:
        assert first is None
        return
    assert first == pytest.approx(expected[0])
    assert last == pytest.approx(expected[1])


def grown(number: int, gain: float) -> float:
    """What so many machines carry that carry more by the machine in larger fleets: up to `gain` times as much."""
    return 2.0 * number * (1 + (gain - 1) * (1 - 1 / number))


@pytest.mark.parametrize("staff", [0.0, 300.0, 5000.0])
@pytest.mark.parametrize(("gain", "price"), [(1.1, 480.0), (1.1, 560.0), (1.3, 520.0), (1.3, 900.0), (2.0, 300.0), (2.0, 600.0)])
def test_crossings_of_fleets_that_carry_more_by_the_machine__are_those_of_a_scan(gain: float, price: float, staff: float) -> None:
    sizes = [grown(number, gain) for number in range(1, 40_000)]
    crossing = Crossing(
        month=lambda rate: 1000.0 * (bisect_left(sizes, rate * (1 - 1e-12)) + 1) + staff, staff=staff, request_usd=price / MONTH_S
    )  # fmt: skip
    costs = [(1000.0 * number + staff) / price for number in range(1, 40_000)]
    expected = [cost for cost, before, size in zip(costs, [0.0, *sizes], sizes, strict=False) if before < cost <= size]
    share = crossing.full_share()
    assert crossing.first(share) == pytest.approx(expected[0])
    assert crossing.last(share) == pytest.approx(expected[-1])


@pytest.mark.parametrize("more", [0, 1, 3])
@pytest.mark.parametrize("rate", [0.5, 1.9, 2.5, 3.9, 5.9, 9.5, 14.5, 18.0, 40.0])
def test_turns__agree_with_the_plan_of_the_volume_where_it_takes_more_machines_than_the_search(rate: float, more: int) -> None:
    sheet = SimpleNamespace(provider="host", model="m", as_of="today")
    price = ApiPrice(way=SimpleNamespace(sheet=sheet), request_usd=600 / MONTH_S)  # type: ignore[arg-type]

    def fleet(need: float, number: int) -> MachineFleet:
        chips = max(math.ceil(need / 2.0 - 1e-9), 1) + (number if need > 2.1 else 0)
        return MachineFleet(system=f"{chips}x", chips=chips, price=1000 / MONTH_S)

    terms = Terms(staff=0.0, peak=1.0, idle_hours=0.0, width=1.1)
    sides = BothSides(
        prompt=1.0, output=1.0, hit_rate=0.0, terms=terms, prices=lambda _: [price], check=lambda need: fleet(need, more),
        search=lambda need, factor, _: fleet(need * (factor or 1.0), 0),
    )  # fmt: skip
    volume, *others = sides.points([rate])
    first = next((point for point in others if point.kind == "tip"), None)
    last = next((point for point in others if point.kind == "last tip"), first)
    assert first is not None and last is not None
    if float(terms.month_usd(volume.fleet)) <= rate * 600:
        assert float(first.rate) <= rate
    else:
        assert rate < float(last.rate)
    for point in (first, last):
        assert point.rates.low <= float(point.rate) * (1 + 1e-9) and (point.rates.high or math.inf) >= float(point.rate) * (1 - 1e-9)


def test_staircase__is_the_size_of_the_plan_at_each_rate() -> None:
    layout = {name: value for name, value in ONE_LAYOUT.items() if name != "no_check"}
    question = Plan.from_values(
        {"model": "llama-3.1-8b", "on": "l40s", "rate": "1/s", "prompt": "2k", "output": "300", "tpot": "40ms", **layout}
    )
    stairs = staircase(plan.expected(question, 1.2).groups, 1.2)
    for rate in ("0.5/s", "8/s", "60/s"):
        step, answer = stairs.at(float(rate.removesuffix("/s"))), plan.expected(question.replace(rate=rate), 1.2)
        assert step is not None
        assert step.chips == pytest.approx(int(answer.best.case.system.chips), abs=1, rel=0.03)


def test_hit_rates__are_looked_up_where_machines_differ() -> None:
    machines = Plateaus(lambda hits: 60.0 if hits < 0.3 else 40.0)
    assert tipping_hit_rate(lambda hits: 100.0 - 80.0 * hits, machines.at, 0.0) == pytest.approx(0.75, abs=1e-6)
    assert len(machines.steps) < 12


def test_intervals__add_in_quadrature() -> None:
    one, two = ends(10.0, (8.0,), (12.5,)), ends(10.0, (8.0, 8.0), (12.5, 12.5))
    assert (one.low, one.high) == (pytest.approx(8.0), pytest.approx(12.5))
    assert math.log(two.high / 10) == pytest.approx(math.log(1.25) * 2**0.5)


@pytest.mark.slow
def test_price_list__is_that_of_the_model_and_another_is_named_as_such() -> None:
    load = {"on": "8xh200-sxm", "rate": "100k/day", "prompt": "2k", "output": "300", "tp": "8", "kv": "bf16", "no_check": True}
    named, own = (headway.breakeven("llama-3.1-70b", **load, **sheet) for sheet in ({"sheet": "groq/llama-3.1-8b"}, {}))
    assert "groq/llama-3.1-8b (another model)" in named.answer and "(another model)" in named.plot().subtitle
    prices = {"groq": (0.59, 0.79), "cerebras": (0.85, 1.2), "deepinfra": (0.23, 0.4)}  # USD/Mtok of llama-3.3-70b, of the same shapes
    cheapest = min(prices, key=lambda name: 2000 * prices[name][0] + 300 * prices[name][1])
    assert own.answer.startswith(f"At 100,000 requests/day {cheapest}/llama-3.3-70b bills") and "another" not in own.answer
    with pytest.raises(HeadwayError, match="--sheet"):
        headway.breakeven("qwen3-8b", **load)


def test_interval_that_is_none__says_why() -> None:
    answer = headway.breakeven("llama-3.1-8b", **{**GOOD, **ONE_LAYOUT, "on": "h100-sxm", "rate": "1M/day", "chip_price": "$0.3/h"})
    assert "90 %" not in answer.answer and any("has no interval" in text for text in answer.notes)


# -- wrong input ----------------------------------------------------------------------------------------------------------------

GOOD = {"on": "l40s", "sheet": "groq/llama-3.1-8b", "rate": "1k/day", "prompt": "2k", "output": "300"}


@pytest.mark.parametrize(
    ("changes", "wants"),
    [
        ({"prompt": None}, "--prompt"),
        ({"monthly_tokens": "3B"}, "one volume"),
        ({"on": "l40s,h100-sxm"}, "one model on one machine"),
        ({"capex": "$9k"}, "--own"),
        ({"own": True}, "--capex"),
        ({"own": True, "chip_price": "$1/h", "capex": "$9k", "power": "500W"}, "one of them"),
        ({"mode": "fast"}, "standard"),
        ({"hit_rate": "0.1,0.2"}, "one value"),
        ({"idle_hours": "24"}, "at most"),
        ({"peak": "0.5"}, "at least"),
        ({"prompt": "300k"}, "context"),
        ({"rate": "-1/s"}, "above"),
    ],
)
def test_wrong_input__is_one_line_that_names_what_works(changes: dict[str, Any], wants: str) -> None:
    with pytest.raises(HeadwayError) as error:
        rows_of(**{name: value for name, value in (GOOD | changes).items() if value is not None})
    assert wants in str(error.value) and "\n" not in str(error.value)


def test_picture__names_a_chip_whose_name_has_an_x() -> None:
    answer = headway.breakeven("llama-3.1-8b", **{**GOOD, **ONE_LAYOUT, "on": "h100-sxm", "rate": "1M/day"})
    assert answer.plot().subtitle.startswith("llama-3.1-8b on h100-sxm beside groq/llama-3.1-8b")

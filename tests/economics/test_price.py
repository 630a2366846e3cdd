"""Cost to price: intervals against draws, costs against `serve`, owning against published totals, a published day to the dollar."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headway.cli.main import main
from headway.core import catalog
from headway.core.errors import BadValue, HeadwayError, MissingFact, UnknownName
from headway.core.formula import anonymous
from headway.core.interval import read
from headway.core.quantity import user_input
from headway.core.schema import Field
from headway.core.trace import record
from headway.economics.chip_cost import PATH, by_metric, chip_memory, hbm_share, over_all, owned, parts
from headway.economics.price.price import INPUTS, PriceRequest, price, priced, priced_ways, rates_at
from headway.economics.price.published_day import account, case, plan_of, planned
from headway.economics.questions import CommercialTerms
from headway.economics.questions import terms as agreed
from headway.economics.sheets import catalogue
from headway.economics.sheets.sheet import ContextTier, PriceSheet, Rates
from headway.hardware import chip_price as cost
from headway.hardware.chip import chip
from headway.hardware.edit import edit
from headway.hardware.memory_tier import tier
from headway.hardware.system import system
from headway.models.precision import Precision
from headway.performance.assumptions import Assumptions
from headway.performance.workload import Load
from headway.serving.plan.choice import estimates_of
from headway.serving.plan.plan import LayoutPlan, plan
from headway.serving.serve import serve
from support.command import Cli

ANCHOR = "deepseek-v3 --on gb200-nvl72 --tpot 50ms"
WIDE = agreed(chip_price="2.2..4.5", utilisation=(0.3, 0.7), margin=(0.0, 0.8))
R1 = Rates(input=0.55e-6, output=2.19e-6, cache_read=0.14e-6)


@pytest.fixture(scope="module")
def best() -> LayoutPlan:
    return plan("deepseek-v3", "gb200-nvl72", Load(prompt=8000, output=1000), tpot=0.05, elasticities=False, disaggregate="never")


@pytest.fixture(scope="module")
def both() -> LayoutPlan:
    return plan("deepseek-v3", "gb200-nvl72", Load(prompt=8000, output=1000), tpot=0.05, elasticities=False, frontier=False)


def terms(chip_price: float = 2.0, utilisation: float = 1.0, margin: float = 0.0) -> CommercialTerms:
    return agreed(chip_price=chip_price / 3600, utilisation=utilisation, margin=margin)


def plain(found: dict[str, Any]) -> dict[str, Any]:
    return {key: value if isinstance(value, str | None) else float(value) for key, value in found.items()}


# -- points ---------------------------------------------------------------------------------------------------------------------


def test_cost__busy_chips_equal_serve(best: LayoutPlan) -> None:
    one = best.best
    found = priced(one, terms(chip_price=2.0))
    machine = edit(one.case.system, "chip.price", 2.0 / 3600)
    kv = Precision(kv=best.table.row(0)["kv"])
    row = serve("deepseek-v3", machine, one.case.layout, batch=one.case.load.batch, prompt=8000, output=1000, precision=kv).row(0)
    for kind in ("in", "cached", "out"):
        for end in ("", "_lo", "_hi"):
            assert float(found[f"cost_{kind}{end}"]) == pytest.approx(row[f"usd_per_mtok_{kind}{end}"], rel=1e-12)


def test_cost__divided_by_utilisation_and_price_by_margin(best: LayoutPlan) -> None:
    busy, half, sold = (priced(best.best, terms(utilisation=u, margin=m)) for u, m in ((1.0, 0.0), (0.5, 0.0), (0.5, 0.75)))
    for kind in ("in", "cached", "out"):
        assert float(half[f"cost_{kind}"]) == pytest.approx(2 * float(busy[f"cost_{kind}"]), rel=1e-12)
        assert float(sold[f"price_{kind}"]) == pytest.approx(8 * float(busy[f"price_{kind}"]), rel=1e-12)
        assert 1 - float(sold[f"cost_{kind}"]) / float(sold[f"price_{kind}"]) == pytest.approx(0.75, rel=1e-12)


def test_usd_per_request__prompt_plus_output(best: LayoutPlan) -> None:
    found = plain(priced(best.best, terms()))
    whole = (found["cost_in"] * 8000 + found["cost_out"] * 1000) / 1e6
    assert found["usd_per_request"] == pytest.approx(whole, rel=1e-12)
    assert found["prefill_share"] + found["decode_share"] == pytest.approx(1, rel=1e-12)
    row = best.table.row(0)
    assert whole == pytest.approx(2 / 3600 * 72 * 1000 / row["tok_per_s"], rel=1e-6)  # the whole machine, by its sustained rate


# -- one pool and prefill apart -----------------------------------------------------------------------


def test_ways__the_best_is_the_better_of_only_and_never(both: LayoutPlan) -> None:
    """Each way asked for alone costs what its row of the answer says, and the rows are in order of what a request costs."""
    ways, _ = priced_ways(both, PriceRequest(terms=terms()))
    assert [way.row["kind"] for way in ways] == ["best", "together"]
    load, limits = Load(prompt=8000, output=1000), {"tpot": 0.05, "elasticities": False, "frontier": False}
    for way, asked in zip(ways, ("only", "never"), strict=True):
        alone = plan("deepseek-v3", "gb200-nvl72", load, disaggregate=asked, **limits).best
        assert float(priced(alone, terms())["usd_per_request"]) == pytest.approx(way.row["usd_per_request"], rel=1e-12)
    first, second = (way.row for way in ways)
    assert second["gain"] == pytest.approx(second["usd_per_request"] / first["usd_per_request"]) and second["gain"] > 1
    assert first["output_multiple"] == pytest.approx(first["price_out"] / first["price_in"])


@pytest.mark.parametrize("hit", [0.0, 0.5])
def test_ways__pools_pay_for_the_whole_machine(both: LayoutPlan, hit: float) -> None:
    """Fresh, cached and output tokens of a request of two pools cost what all chips cost between two requests."""
    found = plain(priced(both.best, terms(), user_input(hit, "hit_rate")))
    tokens = {"in": 8000 * (1 - hit), "cached": 8000 * hit, "out": 1000}
    paid = sum(count * found[f"cost_{kind}"] for kind, count in tokens.items()) / 1e6
    case = dataclasses.replace(both.best.case, assumptions=dataclasses.replace(both.best.case.assumptions, hit_rate=hit))
    between = float(estimates_of(both.best, case)["request_s"])
    assert paid == pytest.approx(72 * 2 / 3600 * between, rel=1e-9) == pytest.approx(found["usd_per_request"], rel=1e-9)


def test_ways__told_with_their_ratio(cli: Cli) -> None:
    answer = cli("price deepseek-v3 --on gb200-nvl72 --prompt 8k --output 1k --tpot 50ms --chip-price 2").out
    rows = cli.rows("price deepseek-v3 --on gb200-nvl72 --prompt 8k --output 1k --tpot 50ms --chip-price 2")
    first = answer.partition("\n")[0]
    assert f"prefill apart costs least per request, {rows[1]['gain']:.3g} times cheaper than one pool" in first
    assert f", {rows[0]['output_multiple']:.3g} times fresh input" in first and "price, one pool" in answer


# -- intervals ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["in", "cached", "out"])
def test_price_interval__equals_independent_draws(best: LayoutPlan, kind: str) -> None:
    found = plain(priced(best.best, WIDE))
    alone = priced(best.best, agreed(chip_price=WIDE.chip_price.low))
    middle, low, high = (float(alone[f"cost_{kind}{end}"]) for end in ("", "_lo", "_hi"))
    rng = np.random.default_rng(1)
    size = 400_000
    normal = rng.standard_normal(size)
    spread = np.where(normal < 0, math.log(middle / low) / 1.6449, math.log(high / middle) / 1.6449)
    price = np.exp(rng.uniform(math.log(2.2), math.log(4.5), size)) / 2.2
    drawn = middle * np.exp(normal * spread) * price / rng.uniform(0.3, 0.7, size) / (1 - rng.uniform(0, 0.8, size))
    at = np.quantile(drawn, (0.05, 0.95))
    assert found[f"price_{kind}_lo"] == pytest.approx(at[0], rel=0.08)
    assert found[f"price_{kind}_hi"] == pytest.approx(at[1], rel=0.08)
    within = np.mean((drawn >= found[f"price_{kind}_lo"]) & (drawn <= found[f"price_{kind}_hi"]))
    assert within == pytest.approx(0.9, abs=0.03)


def test_price_interval__ends_from_all_inputs_at_once(best: LayoutPlan) -> None:
    found = priced(best.best, WIDE)
    alone = priced(best.best, agreed(chip_price=WIDE.chip_price.low))
    assert float(found["price_out_most"]) == pytest.approx(float(alone["cost_out_hi"]) * 4.5 / 2.2 / 0.3 / 0.2, rel=1e-9)
    assert float(found["price_out_least"]) == pytest.approx(float(alone["cost_out_lo"]) / 0.7, rel=1e-9)
    ends = [float(found[f"price_out{end}"]) for end in ("_least", "_lo", "", "_hi", "_most")]
    assert ends == sorted(ends)


def test_price_interval__margin_alone(best: LayoutPlan) -> None:
    """A margin alone: its 5 % and 95 % points, beside an estimate whose spread is 1."""
    one = dataclasses.replace(best.best, case=dataclasses.replace(best.best.case, assumptions=dataclasses.replace(
        best.best.case.assumptions, spread=1)))  # fmt: skip
    found = priced(one, agreed(chip_price=2 / 3600, margin=(0.0, 0.8)))
    cost_out = float(found["cost_out"])
    assert float(found["cost_out_lo"]) == pytest.approx(cost_out) == pytest.approx(float(found["cost_out_most"]))
    assert float(found["price_out_lo"]) == pytest.approx(cost_out / (1 - 0.04), rel=1e-9)
    assert float(found["price_out_hi"]) == pytest.approx(cost_out / (1 - 0.76), rel=1e-9)
    assert found["driver"] == "margin" and float(found["width_margin"]) == pytest.approx(1)


def test_driver__widest_input_and_shares_sum_to_one(best: LayoutPlan) -> None:
    found = priced(best.best, WIDE)
    assert found["driver"] == "margin"
    assert sum(float(found[f"width_{name}"]) for name in INPUTS) == pytest.approx(1)
    dear = priced(best.best, agreed(chip_price=(0.2 / 3600, 20 / 3600), utilisation=(0.6, 0.7)))
    assert dear["driver"] == "chip_price"
    assert dear["width_margin"] is None


def test_interval_field__parsed() -> None:
    q = Field("USD/s", bare="USD/h")
    (one,) = read("2.2..4.5", q, "--chip-price")
    assert (float(one.low), float(one.high)) == pytest.approx((2.2 / 3600, 4.5 / 3600))
    assert [each.wide for each in read("2,3..4,$5/h", q, "--chip-price")] == [False, True, False]
    assert len(read("1e-1..1e+1*10", Field(), "--x")) == 3
    assert [float(each.low) for each in read("1e-1..1e+1", Field(), "--x")] == [0.1]
    for wrong in ("4..2", "2..", "..2", ",", "2,,3", "-1", "nan", "2EUR", "0..2", ""):
        with pytest.raises(HeadwayError):
            read(wrong, q, "--chip-price")


# -- a price list ---------------------------------------------------------------------------------------------------------------


def test_margin__at_list_price_by_hit_rate(best: LayoutPlan) -> None:
    """By hand from the costs: what a request brings and what it costs."""
    for hit in (0.0, 0.5, 0.95):
        found = priced(best.best, terms(utilisation=0.5), user_input(hit, "hit_rate"), R1)
        missed, hits = 8000 * (1 - hit), 8000 * hit
        revenue = missed * 0.55e-6 + hits * 0.14e-6 + 1000 * 2.19e-6
        paid = (missed * float(found["cost_in"]) + hits * float(found["cost_cached"]) + 1000 * float(found["cost_out"])) / 1e6
        assert float(found["usd_charged"]) == pytest.approx(revenue, rel=1e-12)
        assert float(found["sheet_margin"]) == pytest.approx(1 - paid / revenue, rel=1e-9)
        assert float(found["sheet_margin_lo"]) < float(found["sheet_margin"]) < float(found["sheet_margin_hi"])


def test_usd_charged__hits_pay_input_rate_if_no_cached_rate(best: LayoutPlan) -> None:
    found = priced(best.best, terms(), user_input(0.5, "hit_rate"), Rates(input=1e-6, output=2e-6))
    assert float(found["usd_charged"]) == pytest.approx(8000e-6 + 2000e-6)


def test_context_tier__reprices_the_whole_request() -> None:
    long = Rates(input=4e-6, output=18e-6)
    sheet = PriceSheet(provider="google", model="gemini", as_of="2026-04", source="list", rates=Rates(input=2e-6, output=12e-6),
                       tiers=(ContextTier(above=200e3, rates=long),))  # fmt: skip
    assert rates_at(sheet, 200_000) is sheet.rates
    assert rates_at(sheet, 200_001) is long


# -- chips ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "published"), [("h100-sxm", 1.30), ("h200-sxm", 1.41), ("gb200", 2.21), ("gb300", 2.652)])
def test_tco__published_cost_of_owning(name: str, published: float) -> None:
    """SemiAnalysis' total cost of owning for a hyperscaler, April 2026, from other figures than these."""
    found = owned(chip(name), cost.assumptions())
    assert float(found.total) * 3600 == pytest.approx(published, rel=0.15)
    assert float(found.power + found.building) / float(found.total) < 0.25  # power and colocation: typically less than 20 %


def test_chip_price__interval_from_the_catalogue() -> None:
    found = over_all(chip("gb200"))
    assert (float(found.interval.low) * 3600, float(found.interval.high) * 3600) == pytest.approx((2.21, 10.582))
    assert "tco_owning_hyperscaler, 2026-04-03" in found.note and "rental_cloud_list, 2026-07-15" in found.note
    with pytest.raises(MissingFact, match="--chip-price"):
        over_all(chip("a10"))
    with pytest.raises(BadValue, match="rental_3yr"):
        by_metric(chip("h100"), "rental_1yr")


def test_chip_price__of_one_basis_unless_told() -> None:
    """As in `plan`: the middle of the on-demand quotes and their range, never a mix with owning or a contract of years."""
    found = by_metric(chip("h100-sxm"))
    ends = (float(end) * 3600 for end in (found.interval.low, found.interval.middle, found.interval.high))
    assert tuple(ends) == pytest.approx((2.11, 3.55, 6.16)) and "rental_on_demand" in found.note
    assert "rental_3yr" in by_metric(chip("gb300")).note  # what it has, by its name
    with pytest.raises(MissingFact, match="--chip-price"):
        by_metric(chip("a10"))


def test_memory_share__of_a_chip_and_a_system() -> None:
    low, high = hbm_share(chip("h100-sxm"))
    assert (float(low), float(high)) == pytest.approx((80 * 8.3 / 25_000, 80 * 12 / 25_000))
    assert hbm_share(chip("a10")) == (None, None)
    hbm, dram, flash, every = parts(system("gb200-nvl72"), flash=user_input(100e12, "flash", "byte"))
    assert [one.memory for one in (hbm, dram, flash, every)] == ["HBM", "DRAM", "flash", "all"]
    assert float(hbm.usd_hi) == pytest.approx(72 * 186 * 12.3)
    assert float(dram.usd_lo) == pytest.approx(72 * 240 * 8)
    assert float(flash.usd_hi) == pytest.approx(100_000 * 10_950 / 30_720)
    assert float(every.share_of_machine_lo) == pytest.approx(float(every.usd_lo) / (72 * 45_000 * 1.3))
    assert chip("h100-sxm").host_dram is None and chip("gb200").host_dram == 240e9


def test_memory_share__every_chip_has_its_memory() -> None:
    for name in catalog.table(catalog.read(PATH), "chips", PATH):
        memory = chip_memory(chip(name).name)
        assert memory.hbm or (memory.dram_tier and chip(name).host_dram is not None), name
        for kind in filter(None, (memory.hbm, memory.dram_tier)):
            assert tier(kind).price_low <= tier(kind).price_high


# -- a published day ------------------------------------------------------------------------------------------------------------

DAY = {
    "cost": (87072, 1e-9), "revenue": (562100, 1e-9), "margin_over_cost": (5.45, 2e-3), "gross_margin": (0.845, 1e-3),
    "prefill_nodes": (95.48, 1e-4), "decode_nodes": (131.38, 1e-4), "nodes": (226.86, 1e-4), "nodes_over_stated": (1.0, 1e-3),
    "cost_fresh_input": (0.1378, 1e-3), "cost_all_input": (0.0603, 1e-3), "cost_output": (0.3003, 1e-4),
    "fresh_tok_per_s_chip": (4030, 1e-3), "output_tok_per_s_chip": (1850, 1e-9), "sequences_per_chip": (88.1, 1e-3),
    "kv_bytes_per_chip": (30.9e9, 1e-3), "output_over_fresh_cost": (2.2, 0.02), "output_over_fresh_price": (4.0, 0.01),
    "fresh_markup": (4.0, 0.01), "output_markup": (7.3, 0.01), "prefill_share": (0.42, 0.01),
}  # fmt: skip


def test_price_case__day_of_deepseek_to_the_dollar() -> None:
    found = account(case("DeepSeek day6"))
    for name, (value, within) in DAY.items():
        assert float(getattr(found, name)) == pytest.approx(value, rel=within), name
    day = case("deepseek-day6")
    assert round(float(found.cost)) == float(day.stated_cost)
    assert float(found.revenue) == pytest.approx(float(day.stated_revenue), rel=2e-4)
    with pytest.raises(UnknownName, match="deepseek-day6"):
        case("deepseek-day7")


def test_planned_day__of_deepseek_within_15_percent_by_default() -> None:
    """The plan of the day is not told to part prefill. What it costs is what its chips cost for as long as its requests take."""
    day = case("deepseek-day6")
    answer = plan_of(day)
    found = planned(day, answer)
    assert float(found.planned_cost) == pytest.approx(float(day.stated_cost), rel=0.15)
    assert float(found.planned_cost_other_way) > 4 * float(found.planned_cost)
    row = answer.table.row(0)
    output = 4989 / (608 / 168 + 0.5)
    assert float(found.planned_cost) == pytest.approx(168e9 / output / row["capacity_req_per_s"] * 1814 * 2 / 3600, rel=1e-6)
    assert 2.2 < float(found.planned_output_over_fresh) < 4.0  # between what its rates imply and what its list has


def test_cost__interval_covers_the_day_of_deepseek() -> None:
    """DeepSeek-V3 on the day's 227 nodes, prefill apart from decode as there, by the engine that exchanges tokens as they do (DeepEP).

    Its requests have the day's ratio of prompt to output tokens, 608 to 168 billion, and its mean context of 4,989 tokens.
    """
    prompts = 608 / 168
    output = round(4989 / (prompts + 0.5))
    load, engine = Load(prompt=round(prompts * output), output=output), Assumptions(engine="sglang")
    one = plan("deepseek-v3", "1816xh800-sxm", load, tpot=0.05, disaggregate=True, elasticities=False, assumptions=engine)
    found = priced(one.best, terms(chip_price=2.0), user_input(0.5625, "hit_rate"), R1)
    day = account(case("deepseek-day6"))
    assert float(found["cost_in_lo"]) < float(day.cost_fresh_input) < float(found["cost_in_hi"])
    assert float(found["cost_out_lo"]) < float(day.cost_output) < float(found["cost_out_hi"])
    assert float(found["sheet_margin_lo"]) < float(day.gross_margin) < float(found["sheet_margin_hi"])


# -- the verb -------------------------------------------------------------------------------------------------------------------


def test_explain__every_number_of_a_price(best: LayoutPlan) -> None:
    with record():
        rates = Rates(input=user_input(0.55e-6, "input", "USD/token"), output=user_input(2.19e-6, "output", "USD/token"))
        found = priced(best.best, WIDE, user_input(0.5, "hit_rate"), rates, cost.assumptions()["tco_default_electricity"])
        day, memory = account(case("deepseek-day6")), parts(system("gb200-nvl72"))
    for key, value in found.items():
        assert isinstance(value, str | None) or anonymous(value) == [], key
    for record_of in (day, *memory):
        for field in dataclasses.fields(record_of):
            value = getattr(record_of, field.name)
            assert isinstance(value, str | None) or anonymous(value) == [], field.name


def test_price__json_contract_and_explain(cli: Cli) -> None:
    answer = cli.json(f"price {ANCHOR} --chip-price 2.2..4.5 --utilisation 0.3..0.7 --margin 0..0.8 --explain price_out,cost_in_hi")
    assert {"headway", "command", "columns", "rows", "notes", "explain"} <= answer.keys()
    row, other = answer["rows"]
    assert (row["kind"], other["kind"]) == ("best", "together")
    assert row["chip_price_lo"] == pytest.approx(2.2 / 3600) and row["chip_price_hi"] == pytest.approx(4.5 / 3600)
    assert row["driver"] == "margin" and row["memory_share_lo"] < row["memory_share_hi"] < 0.06
    for key, about in answer["columns"].items():
        assert about["doc"], key
    assert "paid chip-hours" in answer["columns"]["utilisation"]["doc"]  # and not what a simulation means by it
    assert answer["explain"]["price_out"]["value"] == pytest.approx(row["price_out"], rel=1e-12)
    assert answer["explain"]["cost_in_hi"]["value"] == pytest.approx(row["cost_in_hi"], rel=1e-12)


def test_price__lists_are_axes_and_ranges_are_intervals(cli: Cli) -> None:
    table = cli.json(f"price {ANCHOR} --chip-price 2,3..4 --margin 0,0.5 --utilisation 0.4..0.8+0.2")["rows"]
    assert [row["kind"] for row in table] == ["best", "together"] * 12
    alone = f"price {ANCHOR} --disaggregate never --chip-price 2"
    assert len(cli.json(f"{alone} --hit 0..0.95 --input-price 0.55 --output-price 2.19")["rows"]) == 20
    beyond = cli.json(f"{alone} --hit 0.5..1.5+0.5 --input-price 0.55 --output-price 2.19")
    assert len(beyond["rows"]) == 2 and any("--hit: dropped 1 of 3" in note for note in beyond["notes"])
    (row,) = cli.json(f"price {ANCHOR} --disaggregate never --batch 128 --tp 4 --own")["rows"]
    assert row["batch"] == 128 and row["tp"] == 4
    assert sum(row[f"own_{part}"] for part in ("capital", "upkeep", "power", "building")) == pytest.approx(row["chip_price"])


def test_at_sheet__that_is_free_in_some_rows_or_alike_in_all(cli: Cli, tmp_path: Path) -> None:
    sheet = tmp_path / "free.csv"
    sheet.write_text("provider,model,as_of,input,output,cache_read,source,currency\nx,free,2026-01-01,0,0,0.1,me,USD\n", encoding="utf-8")
    asked = "price llama-3.1-8b --on h100-sxm --prompt 2k --output 300 --disaggregate never"
    for hits in ("0.5,0", "0,0.5"):
        assert "a margin of" in cli(f"{asked} --hit {hits} --at-sheet {sheet}").out.splitlines()[0]
    assert "()" not in cli(f"{asked} --engine vllm,sglang --at-sheet deepseek/deepseek-v3").out.splitlines()[0]


def test_at_sheet__by_name_and_date(cli: Cli) -> None:
    answer = cli.json(f"price {ANCHOR} --chip-price 2 --at-sheet deepseek-r1@2025-03 --hit 0.5")
    assert answer["rows"][0]["sheet_out"] == pytest.approx(2.19)
    assert any("as of 2025-02-28" in note for note in answer["notes"])


def test_price__call_equals_verb(cli: Cli) -> None:
    row, other = cli.json(f"price {ANCHOR} --chip-price 2.2..4.5 --utilisation 0.5 --hit 0.5 --at-sheet deepseek-v3")["rows"]
    sheet = catalogue.sheet("deepseek-v3")
    load = Load(prompt=8000, output=1000)
    table = price("deepseek-v3", "gb200-nvl72", load, chip_price="2.2..4.5", utilisation=0.5, hit=0.5, sheet=sheet, tpot="50ms")
    found = table.row(0)
    assert set(found) <= set(row) and table.row(1)["gain"] == pytest.approx(other["gain"], rel=1e-12)
    for key, value in found.items():
        assert value == (pytest.approx(row[key], rel=1e-12) if isinstance(value, float) else row[key]), key
    assert float(table.explain("price_in_hi")) == pytest.approx(row["price_in_hi"], rel=1e-12)
    for wrong in ("1,2", True, (3.0, 2.0), -1.0, math.nan, "abc"):
        with pytest.raises(HeadwayError):
            price("deepseek-v3", "gb200-nvl72", load, chip_price=wrong)
    with pytest.raises(BadValue, match="hit"):
        price("deepseek-v3", "gb200-nvl72", load, hit=2)


def test_price__infeasible_is_an_answer(cli: Cli, capsys: pytest.CaptureFixture[str]) -> None:
    (row,) = cli.json("price deepseek-v3 --on gb200-nvl72 --tpot 1us --chip-price 2")["rows"]
    assert row["fits"] is False and "TPOT" in row["why"] and row.get("price_out") is None
    assert main(["price", "deepseek-v3", "--on", "gb200-nvl72", "--tpot", "1us", "--chip-price", "2"]) == 0
    assert "no price" in capsys.readouterr().out


def test_price__case_and_memory_share_rows(cli: Cli) -> None:
    found = {row["quantity"]: row for row in cli.json("price --case deepseek-day6")["rows"]}
    assert found["revenue"]["value"] == pytest.approx(562_100) and found["revenue"]["stated"] == pytest.approx(562_027)
    assert [row["memory"] for row in cli.json("price --memory-share h100-sxm --dram 250GB --flash 4TB")["rows"]] == [
        "HBM", "DRAM", "flash", "all",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "wrong",
    [
        "", "deepseek-v3", f"{ANCHOR} --chip-price 4..2", f"{ANCHOR} --chip-price -2", f"{ANCHOR} --chip-price 2EUR",
        f"{ANCHOR} --chip-price ,", f"{ANCHOR} --margin 1", f"{ANCHOR} --margin nan", f"{ANCHOR} --utilisation 0",
        f"{ANCHOR} --utilisation 0.5..2", f"{ANCHOR} --hit 2", f"{ANCHOR} --input-price 3", f"{ANCHOR} --own --chip-price 2",
        f"{ANCHOR} --own --price-metric rental_3yr", f"{ANCHOR} --price-metric nope", f"{ANCHOR} --at-sheet nope",
        f"{ANCHOR} --at-sheet deepseek-r1 --input-price 3 --output-price 4", "deepseek-v3 --case deepseek-day6", "--case nope",
        "--memory-share nope", "--memory-share a10", "--memory-share h100 --dram -3",
        "--memory-share h100-sxm --explain chips", "llama-3.1-8b --on a10 --prompt 1k --output 1k",
        "llama-3.1-8b --on b200 --own", f"{ANCHOR} --prompt 1k", f"{ANCHOR} --explain nope", f"{ANCHOR} --explain driver",
    ],
)  # fmt: skip
def test_price__wrong_input_is_one_line(wrong: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["price", *wrong.split()]) == 2
    said = capsys.readouterr().err
    assert said.startswith("headway: ") and len(said.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("--sheet gemini-3.1-pro --margin 0.3", "--margin says nothing beside --sheet: it goes with a model; --assume margin=..."),
        ("--sheet gemini-3.1-pro --on gb200-nvl72", "--on says nothing beside --sheet"),
        (f"{ANCHOR} --sheet deepseek-v3", "give one; --at-sheet NAME sets a model's cost beside a sheet"),
        ("--case deepseek-day6 --chip-price 4", "--chip-price says nothing beside --case"),
        ("--history anthropic --assume active=1B", "--assume says nothing beside --history: it goes with --sheet"),
        (f"{ANCHOR} --assume margin=0.5", "--assume says nothing beside a model"),
        (f"{ANCHOR} --dram 2TB", "--dram says nothing beside a model: it goes with --memory-share"),
    ],
)
def test_price__flag_of_another_question_is_refused(command: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["price", *command.split()]) == 2
    assert told in capsys.readouterr().err


def test_price__a_free_list_has_no_margin() -> None:
    free = PriceSheet(provider="", model="", as_of="now", source="test", rates=Rates(input=0.0, output=0.0))
    row = price("llama-3.1-8b", "h100-sxm", Load(prompt=2000, output=300), sheet=free).row(0)
    assert row["sheet_margin"] is row["sheet_margin_lo"] is row["sheet_margin_hi"] is None and row["usd_charged"] == 0

"""Pictures hold the numbers of their answers' rows, no others: law, compare and what is drawn of money and chances."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import headway as hw
from headway.core.errors import BadValue
from headway.core.units import parse
from headway.report import output
from headway.report.pictures.frame import View
from support.paths import ROOT


def data_rows(picture: Any, name: str) -> list[dict[str, Any]]:
    """Rows of the data sets whose names end so."""
    return [row for key, rows in picture.data.items() if key.endswith(name) for row in rows]


def tips(result: Any, name: str = "") -> list[str]:
    """What a page says of the picture's points."""
    return [row["tip"] for row in data_rows(output.draw(result._answer, View(theme="css"), name), "_tips")]


# -- law ----------------------------------------------------------------------------------------------------------------------------


def test_law__draws_a_curve_for_each_value_of_the_shorter_list_and_its_numbers() -> None:
    result = hw.command("law hardware_ratio weight_byte=1,2 peak_flops=1e14..1e16*2 mem_bw=3.35TB/s")
    picture = result.plot()
    for place, weight in enumerate((1.0, 2.0)):
        expected = [
            (row["peak_flops"], weight * row["peak_flops"] / (2 * 3.35e12)) for row in result.rows() if row["weight_byte"] == weight
        ]
        assert [(row["x"], pytest.approx(row["y"])) for row in data_rows(picture, f"curve{place}")] == expected and len(expected) == 8
    assert "14.9 tokens to 1.49k tokens as peak FLOP/s goes from 100 TFLOP/s to 10 PFLOP/s" in picture.title
    assert len(tips(result)) == 8 and "weight 2 B" in tips(result)[0]


@pytest.mark.parametrize(("values", "kind"), [("1..8+1", "linear"), ("1..64*4", "log"), ("1,2,4,8", "log"), ("1,2,3", "linear")])
def test_law__axis_is_logarithmic_where_the_range_is_geometric(values: str, kind: str) -> None:
    picture = hw.command(f"law hardware_ratio weight_byte={values} peak_flops=1e15 mem_bw=3.35TB/s").plot()
    layers = [layer["encoding"]["x"] for layer in picture.spec["layer"] if layer["encoding"].get("x", {}).get("field") == "x"]
    assert kind in {layer["scale"]["type"] for layer in layers if layer["scale"]}


def test_law__a_single_value_is_a_point_of_the_curve_along_its_first_argument() -> None:
    result = hw.command("law hardware_ratio weight_byte=2 peak_flops=h100.peak_bf16 mem_bw=h100.hbm_bw")
    picture = result.plot()
    point, line = data_rows(picture, "curve0"), data_rows(picture, "around")
    assert [row["y"] for row in point] == [result.rows()[0]["result"]] and "295 tokens" in picture.title
    assert [row["y"] / row["x"] for row in line] == pytest.approx([point[0]["y"] / 2] * len(line))  # in proportion to the bytes
    assert (line[0]["x"], line[-1]["x"], len(line)) == (pytest.approx(0.5), pytest.approx(8), 41)


def test_law__counts_around_a_single_value_are_whole_and_no_law_is_drawn_where_it_does_not_hold() -> None:
    line = data_rows(hw.command("law servers_wait_s servers=10 load=9 service=5s").plot(), "around")
    assert all(row["x"] == round(row["x"]) > 9 for row in line) and (line[0]["x"], line[-1]["x"]) == (10, 40)  # 9 servers never catch up
    known = hw.command("law servers_wait_s servers=10,20,40 load=9 service=5s").rows()
    assert [row["y"] for row in line if row["x"] in (10, 20, 40)] == [row["result"] for row in known]


def test_law__without_values_draws_nothing() -> None:
    with pytest.raises(BadValue, match="a verb that draws"):
        hw.command("law hardware_ratio").plot()


# -- compare ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("names", "key", "basis"), [
    ("h100-sxm,b200-sxm,mi300x", "hbm_bw", ""), ("8xh200,gb200-nvl72", "hbm", "--per usd"),
    ("llama-3.1-70b,deepseek-v3", "total_params", ""),
])  # fmt: skip
def test_compare__bars_are_as_long_as_the_facts_and_say_them(names: str, key: str, basis: str) -> None:
    result = hw.command(f"compare {names} {basis}")
    picture, rows = result.plot(), list(result.rows())
    lengths = [row["x2"] - row["x"] for row in data_rows(picture, f"{key}_parts") if row]
    assert [length / lengths[0] for length in lengths] == pytest.approx([row[key] / rows[0][key] for row in rows], rel=1e-6)
    words = [row["text"] for row in picture.data[f"{key}_words"]]
    for text, row in zip(words, rows, strict=True):
        shown, _, ratio = text.partition(" (")
        assert parse(shown, result.columns[key].unit, key) == pytest.approx(row[key], rel=1e-3)
        assert not ratio or float(ratio.removesuffix("x)")) == pytest.approx(row[f"{key}_ratio"], rel=1e-2)
    assert [ratio for text in words if (ratio := re.search(r"\((.*)x\)", text))] and len(tips(result)) >= 4 * len(rows)


def test_compare__title_names_the_greatest_difference() -> None:
    result = hw.command("compare llama-3.1-70b,deepseek-v3")
    assert result.plot().title == "deepseek-v3 has 9.51 times the parameters of llama-3.1-70b"
    assert max(row["total_params_ratio"] for row in result.rows()) == pytest.approx(9.51, rel=1e-3)


# -- an API against machines ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def broken_even() -> Any:
    return hw.command(
        "breakeven llama-3.1-8b --on h100-sxm --sheet groq/llama-3.1-8b --rate 2M/day --prompt 2k --output 300 --tp 1 --kv bf16 --no-check"
    )


def test_volume__line_and_staircase_are_the_rows_and_the_span_is_the_interval(broken_even: Any) -> None:
    rows = sorted((row for row in broken_even.rows() if row["machines_usd_per_month"] is not None), key=lambda row: row["requests_per_day"])
    picture = broken_even.plot()
    for name, key in (("machines", "machines_usd_per_month"), ("api0", "api_usd_per_month")):
        assert [(row["x"], row["y"]) for row in data_rows(picture, name)] == [(row["requests_per_day"], row[key]) for row in rows]
    tip = next(row for row in rows if row["kind"] == "tip")
    low, high = (tip[f"requests_per_day_{end}"] for end in ("lo", "hi"))
    spans = [row for rows_of in picture.data.values() for row in rows_of if "from" in row]
    assert low < tip["requests_per_day"] and high is None  # open: a dearer chip never breaks even
    assert spans == [{"from": low, "to": rows[-1]["requests_per_day"]}]
    assert tip["api_usd_per_month"] == pytest.approx(tip["machines_usd_per_month"]) and "on h100-sxm beside" in picture.subtitle


def test_volume__every_point_of_the_staircase_is_read_with_both_bills(broken_even: Any) -> None:
    words = [text for text in tips(broken_even) if "requests/day: " in text]
    carried = [row for row in broken_even.rows() if row["machines_usd_per_month"] is not None]
    assert len(words) == len(carried)
    assert all(any(f"{row['system']} ${row['machines_usd_per_month']:,.0f}/month" in text for text in words) for row in carried)


# -- plans ----------------------------------------------------------------------------------------------------------------------------


def test_rates__steps_are_the_best_plans_and_fractions_never_cost_more() -> None:
    result = hw.command("plan llama-3.1-8b --on l40s --rate 2,8,32 --prompt 2k --output 300 --ttft 1s --tpot 50ms")
    best = [row for row in result.rows() if row["kind"] == "best"]
    picture = result.plot()
    stairs = data_rows(picture, "stairs0")
    assert [(row["x"], row["y"]) for row in stairs] == [(row["rate"], row["usd_per_month"]) for row in best] and len(best) == 3
    ratios = [row["y"] / step["y"] for row, step in zip(data_rows(picture, "divided"), stairs, strict=True)]
    assert max(ratios) == pytest.approx(1) and min(ratios) < 1
    assert picture.title.startswith(f"16 times the rate costs {best[-1]['usd_per_month'] / best[0]['usd_per_month']:.3g} times as much")
    assert all(row["system"] in text for row, text in zip(best, [text for text in tips(result) if "a month" in text], strict=True))


def test_rates__on_one_machine_more_requests_cost_no_more() -> None:
    picture = hw.command("plan llama-3.1-8b --on 1xl40s --rate 0.5,2 --prompt 2k --output 300").plot()
    assert picture.title.startswith("4 times the rate costs no more: the machine is paid for whole, $577 a month")


def test_rates__without_a_price_of_the_chip_times_are_drawn() -> None:
    result = hw.command("plan llama-3.1-8b --on ascend-910b --rate 0.5,2 --prompt 2k --output 300")
    assert {row["usd_per_month"] for row in result.rows()} == {None}
    assert "rate" in result.plot().title


def test_ladder__a_chance_below_the_one_asked_for_is_not_rounded_up_to_it() -> None:
    from headway.report.plan_load import ladder

    common = {"model": "m", "system": "s", "usd_per_month": 1000.0}
    rows = [common | {"kind": kind, "chips": chips, "confidence": chance}
            for kind, chips, chance in (("best", 9, 0.94), ("ladder", 8, 0.797), ("ladder", 7, 0.5), ("ladder", 11, 0.999))]  # fmt: skip
    picture = ladder(rows, 0.8, View(theme="css"))
    assert picture.title == "9 chips keep every limit with a chance of 94%, 8 with 79.7%"
    assert [(row["x"], row["y"]) for row in data_rows(picture, "rungs")] == [(7, 50), (8, pytest.approx(79.7)), (9, 94), (11, 99.9)]
    assert any(
        row["tip"] == "11 chips for $1,000/month: every limit holds with a chance of over 99%" for row in data_rows(picture, "_tips")
    )


# -- one's own runs -------------------------------------------------------------------------------------------------------------------


def test_own_runs__two_predictions_of_each_are_joined_and_their_middles_are_the_rows() -> None:
    result = hw.command(f"calibrate {ROOT / 'tests/contract/golden/inputs/my_runs.csv'}")
    row, picture = result.rows()[0], result.plot()
    for quantity, measured in (("tpot", (9.3, 16.9, 70.1)), ("ttft", (112, 310, 1650))):
        sides = [sorted(data_rows(picture, f"{quantity}_group{side}"), key=lambda point: point["x"]) for side in range(2)]
        assert [[1e3 * point["x"] for point in side] for side in sides] == [pytest.approx(measured)] * 2
        middles = [sorted(point["x"] / point["y"] for point in side)[1] for side in sides]
        assert middles == pytest.approx([row[f"{quantity}_ratio"], row[f"{quantity}_ratio_by_others"]])
        band = data_rows(picture, f"{quantity}_equal")
        assert [(end["low"] / end["x"], end["y"] / end["x"], end["high"] / end["x"]) for end in band] == [pytest.approx((0.9, 1, 1.1))] * 2
    words = tips(result)
    assert sum(text.startswith("alone: measured 9.3 ms; predicted ") for text in words) == 2


# -- drafts ---------------------------------------------------------------------------------------------------------------------------


def test_drafts__speed_up_is_what_the_rows_save_and_ends_where_they_say() -> None:
    words = "serve llama-3.1-70b --on 8xh100-sxm --tp 8 --prompt 2k --output 500 --draft eagle --draft-tokens 3 --batch"
    curve = data_rows(hw.command(f"{words} 16").plot(picture="drafts"), "panel0_rows0")
    rows = hw.command(f"{words} 4,16,64").rows()
    for row in rows:
        near = np.interp(np.log(row["batch"]), [np.log(point["users"]) for point in curve], [point["gain"] for point in curve])
        assert near == pytest.approx(1 / (1 - row["draft_saving"]), rel=5e-3)
    above = [point["users"] for point in curve if point["gain"] >= 1]
    assert max(above) <= rows[0]["draft_users"] < next((point["users"] for point in curve if point["gain"] < 1), float("inf"))


def test_rack__by_year_names_the_largest_domain_of_its_rows() -> None:
    result = hw.rack(by_year=True)
    rows = [row for row in result.rows() if row["year"] is not None and row["scale_up_domain"]]
    picture = result.plot()
    drawn = [point["y"] for place in range(2) for point in picture.data[f"years0_rows{place}"]]
    assert sorted(drawn) == sorted(row["scale_up_domain"] for row in rows)
    assert picture.title.endswith(f"{max(drawn):,} in {max(rows, key=lambda row: row['scale_up_domain'])['year']}")

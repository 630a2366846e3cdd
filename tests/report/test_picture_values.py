"""Pictures hold the numbers of their answers' rows, no others: law, compare and what is drawn of money and chances."""

from __future__ import annotations

import re
from typing import Any

import pytest

import headway as hw
from headway.core.errors import BadValue
from headway.core.units import parse
from headway.report import output
from headway.report.pictures.frame import View


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
    assert "14.93 token at peak flops 100 TFLOP/s to 1.493k token at 10 PFLOP/s" in picture.title
    assert len(tips(result)) == 8 and "weight byte 2 B" in tips(result)[0]


@pytest.mark.parametrize(("values", "kind"), [("1..8+1", "linear"), ("1..64*4", "log"), ("1,2,4,8", "log"), ("1,2,3", "linear")])
def test_law__axis_is_logarithmic_where_the_range_is_geometric(values: str, kind: str) -> None:
    picture = hw.command(f"law hardware_ratio weight_byte={values} peak_flops=1e15 mem_bw=3.35TB/s").plot()
    layers = [layer["encoding"]["x"] for layer in picture.spec["layer"] if layer["encoding"].get("x", {}).get("field") == "x"]
    assert kind in {layer["scale"]["type"] for layer in layers if layer["scale"]}


def test_law__a_single_value_is_a_point_with_its_words() -> None:
    result = hw.command("law hardware_ratio weight_byte=2 peak_flops=h100.peak_bf16 mem_bw=h100.hbm_bw")
    picture = result.plot()
    assert [row["y"] for row in data_rows(picture, "curve0")] == [result.rows()[0]["result"]]
    assert "295.3 token" in picture.title


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

"""The trend of chips against published facts and against the laws' own meaning."""

from __future__ import annotations

import pytest

from headway.core.formula import anonymous
from headway.core.trace import record
from headway.hardware.trend import TrendRow, trend_chips
from headway.models.config import model
from headway.models.totals import loaded_bytes

ROWS = {row.chip: row for row in trend_chips()}
# Total bytes that the published checkpoints take (safetensors index, main model), to 2 %.
CHECKPOINTS = {"llama-3.1-70b": 141.1e9, "deepseek-v3": 673e9}


def test_trend__h100_row_equals_its_datasheet() -> None:
    row = ROWS["h100_sxm"]
    assert row.flop_per_byte_bf16 == pytest.approx(989.4e12 / 3.35e12)
    assert row.hardware_ratio_bf16 == pytest.approx(295, abs=1)
    assert row.hardware_ratio_fp8 == pytest.approx(295, abs=1)
    assert row.flop_per_byte_fp4 is None and row.hardware_ratio_fp4 is None  # it has no fp4
    assert row.drain_s == pytest.approx(0.0239, abs=1e-4)
    assert row.hbm_per_flop == pytest.approx(80e9 / 989.4e12)
    assert row.scale_up_domain == 8


def test_latency_floor_s__null_where_the_model_does_not_fit() -> None:
    assert ROWS["h100_sxm"].fits is False  # 8 x 80 GB hold no 671 GB
    assert ROWS["h100_sxm"].latency_floor_s is None and ROWS["h100_sxm"].longest_context is None
    assert ROWS["h200_sxm"].fits is True


def test_latency_floor_s__about_a_millisecond_on_gb200() -> None:
    assert ROWS["gb200"].scale_up_domain == 72
    assert ROWS["gb200"].latency_floor_s == pytest.approx(1.165e-3, rel=0.01)
    kv = 61 * 576 * 2  # layers x latent and rotary elements x two bytes
    assert ROWS["gb200"].longest_context * kv + CHECKPOINTS["deepseek-v3"] == pytest.approx(72 * 186e9, rel=0.01)


def test_trend__chips_by_year_and_blank_facts_stay_none() -> None:
    years = [row.year for row in trend_chips()]
    assert years == sorted(years) and len(years) > 60
    blank = ROWS["matx_one"]
    assert blank.drain_s is None and blank.hardware_ratio_bf16 is None and blank.fits is None


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_loaded_bytes__published_sizes(name: str) -> None:
    assert float(loaded_bytes(model(name))) == pytest.approx(CHECKPOINTS[name], rel=0.02)


def test_fits__smaller_model_on_more_chips() -> None:
    small = {row.chip: row for row in trend_chips(model="llama-3.1-70b")}
    assert small["h100_sxm"].fits is True
    assert small["h100_sxm"].latency_floor_s == pytest.approx(141.1e9 / (8 * 3.35e12), rel=0.01)
    assert sum(bool(row.fits) for row in small.values()) > sum(bool(row.fits) for row in ROWS.values())


def test_trend__every_number_has_an_origin() -> None:
    with record():
        rows: list[TrendRow] = [row for row in trend_chips() if row.chip in ("gb200", "rubin_vr200", "tpu_v5p")]
    assert len(rows) == 3
    for row in rows:
        assert anonymous([row.hardware_ratio_bf16, row.drain_s, row.hbm_per_flop, row.latency_floor_s, row.longest_context]) == []

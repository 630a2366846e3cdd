"""Agreement with a second published model, Erdil 2025 (arXiv:2506.04645) section 2.2, in its simple form."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from reference.network_latency import drain_or_compute_s, fastest_chips, latency_bound_token_s, reductions_s
from support.paths import DATA

# Llama 3 in bf16 (published parameter counts and depths), four all-reduces a layer, H100 at 3.3 TB/s and 1e15 FLOP/s.
MODELS = {"Llama 3 70B": (70.55e9, 80), "Llama 3 8B": (8.03e9, 32)}
BW, PEAK, PER_LAYER, USD_PER_S = 3.3e12, 1e15, 4, 2.10 / 3600
ROWS = list(csv.DictReader((DATA / "epoch_reference_points.csv").read_text(encoding="utf-8").splitlines()))
MAX = [row for row in ROWS if row["point"] == "max_speed"]


def model(row: dict[str, str]) -> tuple[float, int]:
    return MODELS[row["setting"].partition(" (")[0]]


def speed(params: float, layers: int, chips: float | np.ndarray, batch: float) -> np.ndarray:
    work = drain_or_compute_s(2 * params, params, batch, chips, BW, PEAK)
    return 1 / np.asarray(latency_bound_token_s(reductions_s(layers, PER_LAYER, chips), work))


def test_erdil_table__has_every_row() -> None:
    assert len(ROWS) == 12 and len(MAX) == 4


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['setting']} {row['point']}")
def test_erdil_model__published_speed_and_cost_of_every_point(row: dict[str, str]) -> None:
    """At the published chips and batch: the published speed within 3 %, and $ per Mtok with it."""
    chips, batch = float(row["gpus"]), float(row["batch"])
    found = float(speed(*model(row), chips, batch))
    # Chips are printed to 0.01: at 0.2 chips that alone is 3 %, so the least of them is checked at the edge of its rounding.
    slack = 0.03 + 0.005 / chips
    assert found == pytest.approx(float(row["tok_s_per_request"]), rel=slack)
    assert chips * USD_PER_S / (found * batch) * 1e6 == pytest.approx(float(row["usd_per_mtok"]), rel=slack + 0.01)


@pytest.mark.parametrize("row", MAX, ids=lambda row: row["setting"])
def test_erdil_model__published_maximum_speed_and_its_chips(row: dict[str, str]) -> None:
    """Speed within 3 % of the published maximum; chips within 10 %: the fewest within 1 % of the top, which is flat."""
    params, layers = model(row)
    chips = np.geomspace(1, 100, 4000)
    speeds = speed(params, layers, chips, float(row["batch"]) if float(row["batch"]) < 300 else 300)
    assert speeds.max() == pytest.approx(float(row["tok_s_per_request"]), rel=0.03)
    fewest = chips[np.argmax(speeds >= 0.99 * speeds.max())]
    assert fewest == pytest.approx(float(row["gpus"]), rel=0.10)


@pytest.mark.parametrize("name", MODELS)
def test_fastest_chips__closed_form_is_the_maximum(name: str) -> None:
    params, layers = MODELS[name]
    chips = np.geomspace(1, 100, 20000)
    top = chips[np.argmax(speed(params, layers, chips, 1.0))]
    assert fastest_chips(2 * params, layers, PER_LAYER, BW) == pytest.approx(top, rel=1e-3)


def test_latency_bound_token_s__inverse_cube_root_of_bandwidth() -> None:
    """The paper's headline: with latency and drain balanced, time beyond the fixed part scales as BW^(-1/3)."""

    def beyond(bandwidth: float) -> float:
        chips = fastest_chips(141.1e9, 80, 4, bandwidth)
        fixed = reductions_s(80, 4, 1) - 320 * 2e-6
        work = drain_or_compute_s(141.1e9, 70.55e9, 1, chips, bandwidth, PEAK)
        return float(latency_bound_token_s(reductions_s(80, 4, chips), work) - fixed)

    assert beyond(8 * BW) == pytest.approx(beyond(BW) / 2, rel=1e-9)

"""List prices forwards: costs by the inversion's own laws, both rates of open models left out by family, none far from what is sold."""

from __future__ import annotations

import json

import numpy as np
import pytest

from headway.cli.main import main
from headway.core.formula import anonymous, replay
from headway.core.trace import record
from headway.economics.inversion.calibration import read_examples
from headway.economics.inversion.list_prices import FITTED_LISTS, fitted_lists, list_prices, list_score, lists_left_out
from headway.economics.inversion.priors import priors, reference, reference_log_cost
from headway.models.config import model
from headway.models.totals import active_params, total_params
from support.paths import DATA

SOLD, SIZES = DATA / "open_models_sold.csv", DATA / "open_models_sizes.csv"


def test_list_prices__both_rates_of_models_left_out() -> None:
    verdicts = lists_left_out(read_examples(SOLD, SIZES))
    score = list_score(verdicts)
    assert score.models == 42 and score.coverage >= 0.85 and score.width <= 11


def test_list_prices__shipped_equal_fitted() -> None:
    found, basis = fitted_lists(read_examples(SOLD, SIZES)), priors()
    assert {name: float(getattr(basis, name)) for name in FITTED_LISTS} == pytest.approx(found, rel=2e-3)


@pytest.mark.parametrize("name", ["llama-3.1-8b", "deepseek-v3", "glm-5", "minimax-m3"])
def test_list_prices__go_by_the_costs_of_the_inversion(name: str) -> None:
    basis, of_model = priors(), model(name)
    with record():
        told = list_prices(of_model)
    active, total = float(active_params(of_model)), float(total_params(of_model))
    log_costs = reference_log_cost(basis, reference(), active, total / active)
    years = 0.0 if name == "minimax-m3" else None  # the catalogue has no date of it
    for kind, key, cost in zip(("input", "output"), ("in", "out"), log_costs, strict=False):
        value = told[f"list_{key}"]
        assert anonymous(value) == [] and float(replay(value)) == pytest.approx(float(value), rel=1e-12)
        assert float(told[f"list_{key}_hi"]) / float(told[f"list_{key}_lo"]) <= 11
        if years is not None:
            cost_mtok = np.exp(cost) * 1e6
            scale, power = (float(getattr(basis, f"list_{part}_{kind}")) for part in ("scale", "power"))
            assert float(value) == pytest.approx(scale * 1e6 * cost_mtok**power, rel=1e-6)


def test_list_prices__rise_with_size_and_are_none_far_from_what_is_sold() -> None:
    prices = [float(list_prices(model(name))["list_in"]) for name in ("llama-3.2-3b", "llama-3.1-8b", "llama-3.1-70b", "llama-3.1-405b")]
    assert prices == sorted(prices)
    assert set(list_prices(model("gpt2")).values()) == {None}


def test_price__tells_what_hosts_would_list(capsys: pytest.CaptureFixture[str]) -> None:
    line = ["price", "llama-3.1-8b", "--on", "h100-sxm", "--prompt", "1k", "--output", "1k"]
    assert main([*line, "-o", "json", "--explain", "list_out"]) == 0
    answer = json.loads(capsys.readouterr().out)
    first = answer["rows"][0]
    assert first["list_out_lo"] < first["list_out"] < first["list_out_hi"] and "list_rate" in json.dumps(answer["explain"])
    assert main(line) == 0
    assert "hosts would list such a model at fresh input $" in capsys.readouterr().out

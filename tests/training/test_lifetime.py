"""Over-training against published optima, the lecture's worked example and a search that knows no calculus."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from headway.laws.scaling import lifetime as laws
from headway.laws.scaling import lifetime as life
from headway.laws.scaling import power_laws
from headway.training.scaling import compute as losses
from headway.training.scaling.compute import as_given, given_quality, given_size, point
from headway.training.scaling.fits import fit, fits

# parameters of the quality and tokens served -> parameters and tokens of the cheapest model, and what it saves (Sardana et al. 2023)
SARDANA = {(30e9, 5e12): (16.4e9, 3.27e12, 0.162), (70e9, 10e12): (41.6e9, 7.93e12, 0.119)}
# quality of 20 tokens per parameter, tokens served -> serving over training at the optimum, regret of equalising (Epoch, kappa 1)
SOLVED = {
    (70e9, 1e13): (0.89, 0.004), (70e9, 1e14): (2.5, 0.16), (70e9, 1e15): (5.8, 0.42), (400e9, 1e14): (1.2, 0.009),
    (400e9, 1e15): (3.2, 0.23), (7e9, 1e12): (0.86, 0.006), (7e9, 1e13): (2.5, 0.15),
}  # fmt: skip
# law, tokens served, kappa -> best tokens of 100B, times 20 per parameter
EXAMPLE = {
    ("epoch", 200e12, 1): (34e12, 17), ("epoch", 200e12, 3): (71e12, 35), ("hoffmann", 200e12, 1): (71e12, 36),
    ("hoffmann", 200e12, 3): (146e12, 73), ("hoffmann", 260e12, 3): (174e12, 87),
}  # fmt: skip
REGRETS = {("epoch", 200e12): 0.17, ("hoffmann", 200e12): 0.016, ("epoch", 260e12): 0.19, ("hoffmann", 260e12): 0.026}


def asked(mode: Any, law: str, **given: float) -> dict[str, float]:
    return {key: float(value) for key, value in mode(fit(law), point(given)).items()}


@pytest.mark.parametrize(("quality", "served"), SARDANA)
def test_lifetime__served_models_of_sardana(quality: float, served: float) -> None:
    found = asked(given_quality, "sardana", quality=quality, served=served, kappa=1.0)
    active, tokens, saved = SARDANA[quality, served]
    assert (found["active"], found["tokens"]) == pytest.approx((active, tokens), rel=2e-3)
    assert found["saved"] == pytest.approx(saved, abs=1e-3)


@pytest.mark.parametrize(("quality", "served"), SOLVED)
def test_lifetime__serving_over_training_and_regret_of_equal_parts(quality: float, served: float) -> None:
    found = asked(given_quality, "epoch", quality=quality, tokens=20 * quality, served=served, kappa=1.0)
    share, regret = SOLVED[quality, served]
    assert found["serve_over_train"] == pytest.approx(share, rel=0.03)
    assert found["rule_regret"] == pytest.approx(regret, rel=0.03, abs=6e-4)


@pytest.mark.parametrize(("law", "served", "kappa"), EXAMPLE)
def test_over_training__worked_example_by_law(law: str, served: float, kappa: float) -> None:
    found = asked(given_size, law, active=100e9, served=served, kappa=float(kappa))
    tokens, times = EXAMPLE[law, served, kappa]
    assert found["tokens"] == pytest.approx(tokens, rel=0.015)
    assert round(found["over_training"]) == times
    if served == 200e12 and kappa == 3:
        assert found["rule_over_training"] == 100  # the lecture's figure: training = serving


@pytest.mark.parametrize(("law", "served"), REGRETS)
def test_rule_regret__worked_example_by_law(law: str, served: float) -> None:
    found = asked(given_size, law, active=100e9, served=served, kappa=3.0)
    assert found["rule_regret"] == pytest.approx(REGRETS[law, served], rel=0.04)


def test_rule_over_training__kappa_one_is_33_times() -> None:
    found = asked(given_size, "epoch", active=100e9, served=200e12, kappa=1.0)
    assert (found["rule_tokens"], found["rule_over_training"]) == pytest.approx((200e12 / 3, 100 / 3), rel=1e-12)


def test_served_tokens__from_rate_months_and_utilisation() -> None:
    by_default = point({"serve": 50e6, "months": 2.0})
    assert by_default.served == pytest.approx(200e12, rel=1e-3)
    whole = point({"serve": 50e6, "months": 2.0, "utilisation": 1.0})
    assert whole.served == pytest.approx(2.63e14, rel=1e-3)
    assert point({"serve": 50e6, "months": 2.0, "utilisation": 1.0, "month_days": 30.0}).served == pytest.approx(2.592e14, rel=1e-12)
    assert point({"served": 200e12, "deployed": 0.25}).served == 50e12


def test_token_prices__by_hand() -> None:
    assert [round(float(life.rl_token_price(0.3, share)), 2) for share in (0, 0.25, 1)] == [1.11, 1.36, 2.11]
    assert [round(float(life.decode_token_price(each, 0.3)), 2) for each in (2, 3, 6)] == [1.11, 1.67, 3.33]
    assert point({"serve_mfu": 0.5, "serve_price": 2.0}).kappa == 4


@pytest.mark.parametrize("law", [name for name, one in fits().items() if not one.rounded])
@pytest.mark.parametrize("served", [1e11, 1e13, 1e15])
def test_lifetime__cheapest_model_of_a_quality_equals_a_scan(law: str, served: float) -> None:
    """A scan along the curve of equal loss, which uses no condition of an optimum."""
    by, quality = fit(law).by, 70e9
    found = asked(given_quality, law, quality=quality, served=served, kappa=1.0)
    data = np.exp(np.linspace(np.log(found["tokens"]) - 2, np.log(found["tokens"]) + 2, 40_001))
    left = found["loss"] - by.irreducible - by.b * data**-by.beta
    data, left = data[left > 0], left[left > 0]
    size = (by.a / left) ** (1 / by.alpha)
    bill = 6 * size * (data + served / 3)
    at = np.argmin(bill)
    assert (size[at], data[at]) == pytest.approx((found["active"], found["tokens"]), rel=1e-3)
    assert bill[at] == pytest.approx(found["bill_flop"], rel=1e-7)


@pytest.mark.parametrize("law", ["epoch", "hoffmann", "outliers"])
def test_lifetime__given_size_and_given_quality_meet_at_one_point(law: str) -> None:
    """Both ways to the same point; parts of the bill in the proportion beta y : alpha u - beta y."""
    one = fit(law)
    tokens = asked(given_size, law, active=100e9, served=200e12, kappa=3.0)["tokens"]
    again = asked(given_size, law, active=100e9, served=200e12, kappa=3.0, tokens=tokens)
    assert again["chosen_regret"] == pytest.approx(0, abs=1e-12)
    assert again["chosen_cheapest_active"] == pytest.approx(100e9, rel=1e-6)
    parts = losses.predicted_loss(one, 100e9, tokens)
    assert again["share_train"] == pytest.approx(laws.best_training_share(parts.size, parts.data, one.by.alpha, one.by.beta), rel=1e-9)
    assert again["over_law"] == pytest.approx(laws.over_training_of_bill(1 / again["share_train"], one.by.beta), rel=1e-9)


def test_training_tokens__chinchilla_if_unserved_and_rise_with_serving() -> None:
    one, last = fit("epoch"), 0.0
    assert asked(given_size, "epoch", active=7e9, served=1.0)["tokens"] == pytest.approx(losses.chinchilla_tokens(one, 7e9), rel=1e-9)
    for served in np.geomspace(1e9, 1e19, 21):
        found = asked(given_size, "epoch", active=7e9, served=float(served))
        assert found["tokens"] > last
        last = found["tokens"]
    assert found["share_serve"] > 0.9  # beyond one half without bound


def test_served_tokens__inverse_of_training_tokens() -> None:
    for rl in (0.0, 0.67):
        forward = asked(given_size, "epoch", active=100e9, served=200e12, rl=rl)
        back = asked(as_given, "epoch", active=100e9, tokens=forward["tokens"], rl=rl)
        assert back["served_exact"] == pytest.approx(200e12, rel=1e-9)
    rule = asked(as_given, "epoch", active=100e9, tokens=150e12, kappa=3.0, months=2.0, utilisation=1.0)
    assert rule["served_rule"] == 150e12
    assert rule["serve_rule"] == pytest.approx(150e12 / (2 * 30.4375 * 86400), rel=1e-12)


def test_over_training__equal_halves_and_thirds() -> None:
    """Equal halves and thirds by the closed form: 6.6 and 11.4 times, 20 and 47 times."""
    halves = [laws.over_training_of_bill(2, fit(name).by.beta) for name in ("epoch", "hoffmann")]
    thirds = [laws.over_training_of_bill(3, fit(name).by.beta) for name in ("epoch", "hoffmann")]
    assert (*halves, *thirds) == pytest.approx((6.65, 11.4, 20.1, 47.3), rel=5e-3)
    found = asked(given_size, "epoch", active=100e9, served=200e12, kappa=3.0, rl=0.67, eta=1 / 0.67)
    assert found["share_rl"] == pytest.approx(found["share_train"], rel=1e-12)


def test_training_tokens__rise_with_rl() -> None:
    without, with_rl = (asked(given_size, "epoch", active=100e9, served=200e12, rl=rl) for rl in (0.0, 1.0))
    assert with_rl["tokens"] > without["tokens"]
    assert with_rl["share_train"] + with_rl["share_rl"] + with_rl["share_serve"] == pytest.approx(1, rel=1e-12)


def test_rule_regret__under_a_tenth_in_the_stated_range() -> None:
    """Serving of 1.5 to 10 times the Chinchilla tokens of the quality, as training tokens: a tenth at most; less serving costs far more."""
    for quality in (7e9, 70e9, 400e9):
        usual = 20 * quality
        for times in (1.5, 3.0, 10.0):
            found = asked(given_quality, "epoch", quality=quality, tokens=usual, served=3 * times * usual, kappa=1.0)
            assert found["rule_regret"] < 0.1, (quality, times)
        little = asked(given_quality, "epoch", quality=quality, tokens=usual, served=3 * 0.6 * usual, kappa=1.0)
        assert little["rule_regret"] > 0.4


def test_minimum_of_powers__equals_a_scan() -> None:
    at = laws.least_at(3.0, 7.0, 0.7, 1.9)
    x = np.geomspace(at / 2, at * 2, 20_001)
    assert x[np.argmin(3 * x**0.7 + 7 * x**-1.9)] == pytest.approx(at, rel=1e-3)
    assert power_laws.training_flop(70e9, 1.4e12) == pytest.approx(5.88e23)

"""Scaling laws against published tables, test values and limits."""

from __future__ import annotations

import math

import numpy as np
import pytest

from headway.core.schema import defaults
from headway.laws.scaling import power_laws
from headway.laws.scaling import power_laws as laws
from headway.laws.scaling import power_laws as repeated
from headway.training.scaling import compute as losses
from headway.training.scaling import fits as outside
from headway.training.scaling.compute import best_split, point
from headway.training.scaling.fits import bits, clark, decay, exponents, fit, fits, leverage, routed
from headway.training.scaling.inputs import Uncertainty
from headway.training.scaling.scale import draw_coefficients, interval, law_columns

GOPHER = 5.76e23  # FLOPs of Gopher and Chinchilla
# tokens per parameter at GOPHER, and the tokens that are best for 100B
SPLITS = {"hoffmann": (58.9, 7.0e12), "hoffmann-printed": (92.7, 11.8e12), "epoch": (18.4, 1.81e12)}
# N_eff / N of published S-BASE by active parameters and experts; RL-R and HASH at 64 experts
COUNTS = (8, 16, 32, 64, 128, 256, 512)
TABLE = {
    1e8: ((2.01, 2.65, 3.51, 4.59, 5.84, 7.11, 8.22), 3.61, 3.78),
    3e8: ((1.85, 2.36, 3.03, 3.83, 4.73, 5.63, 6.40), 2.83, 3.13),
    1e9: ((1.69, 2.08, 2.57, 3.14, 3.76, 4.36, 4.86), 2.16, 2.54),
    1e10: ((1.42, 1.63, 1.87, 2.14, 2.42, 2.67, 2.87), 1.29, 1.70),
    1e11: ((1.19, 1.28, 1.37, 1.46, 1.55, 1.63, 1.69), 0.77, 1.14),
}


def gain(law: str, active: float, experts: float) -> float:
    return float(law_columns(law)(point({"active": active, "experts": experts}))["effective_over_active"])


@pytest.mark.parametrize("name", SPLITS)
def test_chinchilla__tokens_per_parameter_of_its_budget(name: str) -> None:
    ratio, tokens = SPLITS[name]
    active = losses.optimal_params(fit(name), GOPHER)
    assert laws.tokens_of_compute(GOPHER, active) / active == pytest.approx(ratio, abs=0.06)
    assert losses.chinchilla_tokens(fit(name), 100e9) == pytest.approx(tokens, rel=0.006)


@pytest.mark.parametrize("name", fits())
def test_compute_split__least_loss_of_a_budget(name: str) -> None:
    """Neither a per cent more parameters nor a per cent fewer, for the same compute, has less loss."""
    one = fit(name)
    active = losses.optimal_params(one, GOPHER)
    best = losses.predicted_loss(one, active, laws.tokens_of_compute(GOPHER, active)).total
    for factor in (0.99, 1.01):
        assert losses.predicted_loss(one, active * factor, laws.tokens_of_compute(GOPHER, active * factor)).total > best
    tokens = laws.tokens_of_compute(GOPHER, active)
    assert losses.chinchilla_tokens(one, active) == pytest.approx(tokens, rel=1e-9)
    assert losses.chinchilla_params(one, tokens) == pytest.approx(active, rel=1e-9)


@pytest.mark.parametrize("name", fits())
def test_compute_exponents__sum_to_one(name: str) -> None:
    one = fit(name)
    a, b = laws.size_exponent(one.by.alpha, one.by.beta), laws.data_exponent(one.by.alpha, one.by.beta)
    assert a + b == pytest.approx(1, rel=1e-12)
    assert losses.optimal_params(one, 100 * GOPHER) / losses.optimal_params(one, GOPHER) == pytest.approx(100**a, rel=1e-9)


def test_compute_exponents__published() -> None:
    known = {one.name: (float(one.size), float(one.data)) for one in exponents()}
    assert known == {"approach-1": (0.5, 0.5), "approach-2": (0.49, 0.51), "approach-3": (0.46, 0.54), "kaplan": (0.73, 0.27)}
    printed = fit("hoffmann").by
    assert laws.size_exponent(printed.alpha, printed.beta) == pytest.approx(0.46, abs=0.005)


def test_repeated_data__losses_of_the_published_repository() -> None:
    """Both test values of datablations, to every digit that is printed."""
    one = fit("muennighoff")
    for active, tokens, wanted in ((6.34e9, 242e9, 2.2256440890), (8.67e9, 178e9, 2.2269634075)):
        assert float(losses.predicted_loss(one, active, tokens, 25e9).total) == pytest.approx(wanted, abs=5e-10)


def test_repeated_data__four_epochs_are_worth_93_per_cent_of_fresh() -> None:
    assert float(repeated.effective_amount(100e9, 25e9, decay().data)) / 100e9 == pytest.approx(0.93, abs=0.005)


def test_repeated_data__limits_of_no_and_endless_repetition() -> None:
    """All that is new counts in full; without end it is worth R* + 1 times the unique tokens."""
    assert float(repeated.effective_amount(20e9, 25e9, decay().data)) == 20e9
    assert float(repeated.effective_amount(1e18, 25e9, decay().data)) == pytest.approx(25e9 * (1 + decay().data), rel=1e-9)


@pytest.mark.parametrize("unique", [1e9, 25e9, 1e12])
def test_compute_split__least_loss_with_repeated_data(unique: float) -> None:
    one, flop = fit("muennighoff"), 1e22
    best = float(losses.optimal_params(one, flop, unique))
    scan = np.exp(np.linspace(math.log(best) - 3, math.log(best) + 3, 6001))
    found = losses.predicted_loss(one, scan, laws.tokens_of_compute(flop, scan), unique).total
    assert scan[np.argmin(found)] == pytest.approx(best, rel=2e-3)


def test_compute_split__fewer_parameters_with_repeated_data() -> None:
    one, flop = fit("muennighoff"), 1e22
    fresh = losses.optimal_params(one, flop)
    assert losses.optimal_params(one, flop, 25e9) < fresh
    assert float(losses.optimal_params(one, flop, 1e15)) == pytest.approx(fresh, rel=1e-9)


# -- experts --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("active", TABLE)
def test_routed_gain__published_table_of_equal_dense_models(active: float) -> None:
    row, rl, hashed = TABLE[active]
    assert [round(gain("s-base", active, count), 2) for count in COUNTS] == list(row)
    assert (round(gain("rl-r", active, 64), 2), round(gain("hash", active, 64), 2)) == (rl, hashed)


def test_routing_cutoff__gain_is_one_there() -> None:
    ends = {name: float(laws.routing_cutoff(one.b, one.c)) for name, one in routed().items()}
    assert (ends["s-base"], ends["rl-r"], ends["hash"]) == pytest.approx((1e12, 3.16e10, 2.15e11), rel=0.01)
    for name in ("s-base", "rl-r", "hash"):
        assert gain(name, ends[name], 64) == pytest.approx(1, rel=1e-9)  # there they bring nothing
        assert gain(name, ends[name] / 100, 64) > 1 > gain(name, ends[name] * 100, 64)


def test_routed_gain__one_expert_is_dense_and_many_saturate() -> None:
    for name, one in routed().items():
        assert gain(name, 3e8, 1) == pytest.approx(1, rel=1e-12)
        assert laws.saturated(1, one.start, one.most) == pytest.approx(one.start, rel=1e-12)
        assert laws.saturated(1e12, one.start, one.most) == pytest.approx(one.most, rel=1e-6)


def test_routed_loss__equals_dense_model_of_the_effective_size() -> None:
    for one in routed().values():
        counted = laws.saturated(64, one.start, one.most)
        sparse = laws.routed_loss(3.7e8, counted, one.a, one.b, one.c, one.d)
        dense = laws.routed_loss(gain(one.name, 3.7e8, 64) * 3.7e8, one.start, one.a, one.b, one.c, one.d)
        assert float(dense) == pytest.approx(float(sparse), rel=1e-12)


def test_efficiency_leverage__near_the_published() -> None:
    """6.9 where 'above 7' is published; 5.4 with log10 of granularity too, which is further off."""
    by = leverage()
    rest = (by.a, by.d, by.gamma, by.beta, by.start, by.most)
    assert float(laws.efficiency_leverage(0.031, 12, 1e22, *rest)) == pytest.approx(6.9, abs=0.05)
    ten = math.exp(math.log10(12))  # its natural log is log10 of 12
    assert float(laws.efficiency_leverage(0.031, ten, 1e22, *rest)) == pytest.approx(5.4, abs=0.05)


def test_effective_over_active__total_64_times_active() -> None:
    """Released curves, read between runs: 5.4 times at 370M and 3.6 at 1.3B. The law says 1.5 at 100B."""
    gains = [
        float(law_columns("s-base-refit")(point({"active": n, "total": 64 * n}))["effective_over_active"]) for n in (370e6, 1.3e9, 100e9)
    ]
    assert gains == pytest.approx([5.4, 3.6, 1.5], rel=0.1)
    found = law_columns("s-base")(point({"active": 370e6, "total": 64 * 370e6}))
    assert float(found["experts"]) == pytest.approx(190) and float(found["total_over_active"]) == pytest.approx(64)


def test_precision_loss__few_bits() -> None:
    """Each part is worth 1 - 1/e of itself at its own number of bits, and all of it at many."""
    by = bits()
    for part in (by.weights, by.activations, by.kv):
        assert float(power_laws.precision_share(part, part)) == pytest.approx(1 - 1 / math.e, rel=1e-12)
        assert float(power_laws.precision_share(64, part)) == pytest.approx(1, abs=1e-9)
    assert float(losses.rounded(8e9, 15e12, 16)) < 1e-6 < 0.05 < float(losses.rounded(8e9, 15e12, 4)) < 0.5
    assert losses.rounded(8e9, 15e12, 4) > losses.rounded(8e9, 1e12, 4)  # longer training, more to lose
    narrow = losses.predicted_loss(fit("epoch"), 7e9, 1e12, None, {"weights": 8, "kv": 4})
    assert float(narrow.params_worth) == pytest.approx(7e9 * (1 - math.exp(-8 / 2.6745)) * (1 - math.exp(-4 / 0.9578)), rel=1e-12)


# -- ranges and errors ----------------------------------------------------------------------------------------------------------


def test_fit_range__flags_points_outside() -> None:
    inside = {"active": 1e9, "tokens": 20e9, "tokens_per_param": 20.0}
    assert outside.dense_range(inside, fit("epoch").range) == (True, "")
    far, said = outside.dense_range(inside | {"active": 160e9, "tokens_per_param": 3410.0}, fit("epoch").range)
    assert not far and said == "N 10x above 16B; D/N 10x above 341"
    assert outside.routed_range({"active": 3e8, "experts": 64}, 1) == (True, "")
    assert outside.routed_range({"active": 3e8, "experts": 1024}, 8)[1] == "experts 2x above 512; 8 experts per token, fitted with 1"
    assert clark()["params_high"] == 1.3e9


def doubt(**given: float) -> Uncertainty:
    return defaults(Uncertainty, given)


def test_scaling_interval__by_hand() -> None:
    """The power of compute is beta / (alpha + beta): its interval by the two errors alone, to first order."""
    one = fit("epoch")
    found = interval(lambda law: best_split(law, point({"flop": 1e25})), one, doubt(draws=40_000))
    alpha, beta, e_alpha, e_beta = 0.348, 0.366, 0.015, 0.021
    spread = math.hypot(beta * e_alpha, alpha * e_beta) / (alpha + beta) ** 2
    middle = beta / (alpha + beta)
    wanted = (middle - 1.645 * spread, middle + 1.645 * spread)
    assert (found["size_exponent_lo"], found["size_exponent_hi"]) == pytest.approx(wanted, rel=5e-3)


def test_coefficient_draws__published_errors_and_repeatable() -> None:
    one = fit("epoch")
    draws = draw_coefficients(one, doubt(draws=100_000))
    assert np.std(draws.by.alpha) == pytest.approx(0.015, rel=0.02)
    assert np.std(np.log(draws.by.a)) == pytest.approx(124.5 / 482.006, rel=0.02)
    assert abs(np.corrcoef(draws.by.alpha, draws.by.a)[0, 1]) < 0.02
    again = draw_coefficients(one, doubt(draws=100_000))
    assert np.array_equal(draws.by.b, again.by.b)
    shared = draw_coefficients(one, doubt(draws=100_000, correlation=0.99))
    assert np.corrcoef(shared.by.alpha, np.log(shared.by.a))[0, 1] == pytest.approx(0.99, abs=0.01)


def test_scaling_interval__narrower_with_correlated_errors() -> None:
    widths = []
    for correlation in (0.0, 0.9, 0.99):
        ends = interval(lambda law: best_split(law, point({"flop": 1e25})), fit("epoch"), doubt(correlation=correlation))
        widths.append(ends["active_hi"] / ends["active_lo"])
    assert widths[0] > 2 * widths[1] > 3 * widths[2]
    assert ends["active_lo"] < losses.optimal_params(fit("epoch"), 1e25) < ends["active_hi"]

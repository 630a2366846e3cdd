"""What runs say of factors: limits that are known exactly, and a numeric reference of the Gaussian update with a Student t."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from headway.laws.calibration import FREEDOM, run_half
from headway.performance.calibration import posterior as posteriors
from headway.performance.calibration.factors import PARAMETERS
from headway.performance.calibration.key import LEAST_SHARE, OFFLINE, RunKey, applies, correlation
from headway.performance.calibration.observation import Observation
from headway.performance.calibration.posterior import NO_RUNS, NOISE, PRIOR, posterior

KEY = RunKey(
    model="llama-3.1-70b", chip="h100_sxm", chips=8, layout="tp=8", weights="fp8", kv="fp8", engine="vllm", version="0.19.0"
)  # fmt: skip
MONTH = "2026-11"
STEP = (1.0, 0.0, 0.0, 0.0, 0.0)


def run(excess: float, slopes: tuple[float, ...] = STEP, key: RunKey = KEY, quantity: str = "tpot", month: str = MONTH) -> Observation:
    return Observation(run=f"mine:{excess}", key=key, month=month, quantity=quantity, slopes=slopes, excess=excess)


def test_no_runs__the_prior() -> None:
    nothing = posterior((), KEY, MONTH)
    assert nothing.mean.tolist() == [0] * len(PARAMETERS) and nothing.runs == ()
    assert nothing.errors == pytest.approx([PRIOR[name] for name in PARAMETERS])


def test_many_exact_runs__the_measured_factors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(posteriors.NOISE, "tpot", 1e-4)
    truth, random = np.array([0.1, -0.2, 0.3, 0.1, -0.1]), np.random.default_rng(0)
    runs = tuple(run(float(slopes @ truth), tuple(slopes.tolist())) for slopes in random.uniform(0, 1, (60, 5)))
    known = posterior(runs, KEY, MONTH)
    assert known.mean == pytest.approx(truth, abs=1e-3)
    assert (known.errors < 1e-3).all()
    assert run_half(1.5, known.scatter(np.array(STEP), 1e-4)) < 1.5**0.34  # what loads differ by stays


def test_two_equal_runs__count_as_one_of_half_the_variance(monkeypatch: pytest.MonkeyPatch) -> None:
    twice = posterior((run(0.01), run(0.01)), KEY, MONTH)
    once = posterior((run(0.01),), KEY, MONTH)
    assert once.errors[0] > twice.errors[0] and once.mean[0] < twice.mean[0] < 0.01
    monkeypatch.setitem(posteriors.NOISE, "tpot", NOISE["tpot"] / np.sqrt(2))
    posteriors._solved.cache_clear()
    single = posterior((run(0.01),), KEY, MONTH)
    posteriors._solved.cache_clear()
    assert single.mean[0] == pytest.approx(twice.mean[0], rel=2e-3)  # the weights of a Student t see another residual


def test_run_of_another_engine__changes_nothing_bit_for_bit() -> None:
    mine = (run(0.1), run(0.2, (0.8, 0.3, 0.0, 0.0, 0.0)))
    foreign = run(0.7, key=replace(KEY, engine="sglang"))
    alone, beside = posterior(mine, KEY, MONTH), posterior((*mine, foreign), KEY, MONTH)
    assert alone.mean.tobytes() == beside.mean.tobytes() and alone.covariance.tobytes() == beside.covariance.tobytes()
    assert beside.runs == alone.runs
    assert posterior((foreign,), KEY, MONTH).runs == ()


def test_one_wild_run_of_many__moves_nothing() -> None:
    tame = tuple(run(0.1 + 0.01 * place) for place in range(-2, 3))
    clean, wild = posterior(tame, KEY, MONTH), posterior((*tame, run(2.0)), KEY, MONTH)
    assert abs(wild.mean[0] - clean.mean[0]) < 0.005
    assert posterior((run(0.3),), KEY, MONTH).mean[0] > 0.2  # one that the prior allows counts where nothing contradicts it


def test_mean__the_most_likely_factors_by_search() -> None:
    """The prior times Student t likelihoods, climbed by a general optimiser."""
    random = np.random.default_rng(1)
    slopes = random.uniform(0, 1, (7, 5))
    excess = slopes @ np.array([0.1, -0.2, 0.3, 0.1, -0.1]) + NOISE["tpot"] * random.standard_t(FREEDOM, 7)
    runs = tuple(run(float(value), tuple(slope.tolist())) for slope, value in zip(slopes, excess, strict=True))
    prior = np.array([PRIOR[name] for name in PARAMETERS])

    def loss(logs: np.ndarray) -> float:
        residuals = (excess - slopes @ logs) / NOISE["tpot"]
        return float((logs**2 / prior**2).sum() / 2 + (FREEDOM + 1) / 2 * np.log(1 + residuals**2 / FREEDOM).sum())

    known = posterior(runs, KEY, MONTH)
    best = minimize(loss, known.mean, tol=1e-12)
    assert known.mean == pytest.approx(best.x, abs=0.01)
    assert loss(known.mean) < loss(best.x) + 0.01


@pytest.mark.parametrize(
    "changes", [{"layout": "tp=4"}, {"chips": 16}, {"weights": "bf16"}, {"version": ""}, {"version": "0.12"}, {"mode": OFFLINE}]
)
def test_less_alike__is_shrunk_and_wider(changes: dict[str, str]) -> None:
    here, away = (posterior((run(0.3),), key, MONTH) for key in (KEY, replace(KEY, **changes)))
    assert 0 < away.mean[0] < here.mean[0] and here.errors[0] < away.errors[0] < PRIOR["step"]


def test_unknown_version__between_the_same_and_another() -> None:
    same, blank, another = (correlation(KEY, replace(KEY, version=version), 0.0)[0] for version in ("0.19.0", "", "0.12"))
    assert same == 1 and another < blank < 1


def test_model_and_chip_both_others__say_nothing() -> None:
    far = replace(KEY, model="qwen3-32b", chip="b200_sxm")
    assert not applies(KEY, far, 0.0)
    assert posterior((run(0.3),), far, MONTH).runs == ()
    assert LEAST_SHARE > 0


def test_age__half_of_it_is_kept_for_months_and_ttft_for_none() -> None:
    ages = [posterior((run(0.3),), KEY, month).mean[0] for month in ("2026-11", "2027-02", "2027-11", "2032-11")]
    assert ages == sorted(ages, reverse=True) and ages[1] > ages[0] / 2 > ages[2] > ages[3]
    first = run(0.3, (0.0, 0.0, 0.0, 0.0, 1.0), quantity="ttft")
    assert posterior((first,), KEY, "2027-02").mean[-1] < 0.05 * posterior((first,), KEY, MONTH).mean[-1]


def test_newest_run__weighs_most() -> None:
    runs = (run(0.2, month="2026-01"), run(-0.2, month="2026-11"))
    assert posterior(runs, KEY, "2026-12").mean[0] < 0 < posterior(runs, KEY, "2026-02").mean[0]


def test_correlations__are_a_covariance() -> None:
    """Of deployments that differ in anything: no eigenvalue below zero, of any parameter."""
    keys = [replace(KEY, **changes) for changes in (
        {}, {"layout": "tp=4"}, {"chips": 4, "layout": "tp=4"}, {"model": "m"}, {"chip": "c"}, {"model": "m", "chip": "c"}, {"version": ""},
        {"version": "0.12"}, {"version": "0.14"}, {"weights": "bf16"}, {"kv": ""}, {"kv": "bf16"}, {"version": "", "kv": ""},
        {"mode": OFFLINE}, {"mode": OFFLINE, "model": "m"}, {"mode": OFFLINE, "model": "m", "version": ""}, {"mode": OFFLINE, "chip": "c"},
    )]  # fmt: skip
    places = [(key, month) for key in keys for month in (0.0, 3.0)]
    tables = np.array([[correlation(one, another, then - now) for another, then in places] for one, now in places])
    for parameter in range(len(PARAMETERS)):
        assert np.linalg.eigvalsh(tables[:, :, parameter]).min() > -1e-9


def test_scatter__arrays_as_scalars() -> None:
    known = posterior((run(0.1), run(0.3, (0.5, 0.5, 0.0, 0.0, 0.0))), KEY, MONTH)
    slopes = np.array([STEP, (0.4, 0.5, 0.1, 0.0, 0.0), (0.9, 0.0, 0.2, 0.1, 1.0)])
    assert known.scatter(slopes, 0.05).tolist() == pytest.approx([float(known.scatter(slope, 0.05)) for slope in slopes], rel=1e-12)


def test_interval__never_wider_than_without_runs() -> None:
    for half in (1.05, 1.3, 2.0, 4.0):
        assert run_half(half, NO_RUNS.scatter(np.array(STEP), 0.05)) <= half
        assert run_half(half, np.inf) == half

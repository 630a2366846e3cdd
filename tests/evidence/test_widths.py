"""Widths of intervals from errors of left-out rows: they hold nine tenths of fresh rows, each cluster once, wider for new kinds."""

from __future__ import annotations

import math

import numpy as np
import pytest

from headway.evidence.fit.widths import KEYS, HeldOutResiduals, pooled_widths, widths
from headway.laws.serving.request import interval_factor
from headway.performance.intervals import WIDER

NORMAL_90 = 1.6448536269514722
STEPS: tuple[str, ...] = ("decode", "prefill", "tpot", "offline")


def seen(rows: int, seed: int, base: dict[str, float], grown: dict[str, float]) -> HeldOutResiduals:
    """Residuals whose spread is known: of each key its own, times what each circumstance makes of it."""
    rng = np.random.default_rng(seed)
    key = rng.choice(list(base), rows)
    wider = {name: (rng.random(rows) < 0.3).astype(float) for name in WIDER}
    sigma = np.array([base[one] for one in key])
    for name, factor in grown.items():
        sigma = np.where(wider[name] > 0, sigma * factor, sigma)
    cluster = rng.choice([f"cluster {number}" for number in range(100)], rows)
    return HeldOutResiduals(
        key=key, error=sigma * rng.standard_normal(rows), cluster=cluster, wider=wider, kind=np.zeros(rows, dtype=bool)
    )


def covered(fresh: HeldOutResiduals, made: dict[str, float]) -> np.ndarray:
    """Whether each residual is within the interval, worked out as `predict` does: the factor to the power of what widens it."""
    wide = np.ones(len(fresh.error))
    for name in WIDER:
        wide = np.where(fresh.wider[name] > 0, wide * made[name], wide)
    return np.abs(fresh.error) <= np.log(interval_factor(np.array([made[one] for one in fresh.key]), wide))


BASE = {"decode": 0.08, "tpot": 0.15, "ttft": 0.4}


@pytest.mark.parametrize("seed", range(3))
def test_interval__covers_nine_tenths_of_fresh_rows(seed: int) -> None:
    made = {line.key: line.value for line in widths(seen(4000, seed, BASE, {"experts": 2.0, "unlike": 1.5}))}
    fresh = seen(4000, 100 + seed, BASE, {"experts": 2.0, "unlike": 1.5})
    inside = covered(fresh, made)
    assert 0.87 < inside.mean() < 0.93
    for part in (*(fresh.key == key for key in BASE), *(holds > 0 for holds in fresh.wider.values())):
        assert 0.85 <= inside[part].mean() <= 0.95


@pytest.mark.parametrize("seed", range(3))
def test_interval_width__ninetieth_percentile(seed: int) -> None:
    """Of many rows: what widens an interval never narrows it, so that among few rows chance takes a few per cent of the plain width."""
    made = {line.key: line.value for line in widths(seen(12_000, seed, BASE, {"experts": 2.0}))}
    for key, sigma in BASE.items():
        assert math.log(made[key]) == pytest.approx(1.645 * sigma, rel=0.07)  # 5 % of a normal distribution beyond on each side
    assert made["experts"] == pytest.approx(2.0, rel=0.07)
    assert made["unlike"] == pytest.approx(1.0, abs=0.12)
    assert made["limited"] == pytest.approx(1.0, abs=0.12)


def test_interval_width__no_circumstance_narrows() -> None:
    made = {line.key: line for line in widths(seen(4000, 1, BASE, {"experts": 0.4}))}
    assert made["experts"].value == 1.0
    assert all(made[name].value >= 1 for name in WIDER)
    assert all(made[key].value > 1 for key in BASE)
    assert [line for line in made if line in KEYS] == list(BASE)  # a quantity that no row measures has no width
    assert all(line.section == "interval.other" and line.rows > 0 and line.error >= 0 and line.meaning for line in made.values())


def test_interval_width__rows_that_err_together_count_once() -> None:
    """900 rows that scatter by 0.3 in 50 clusters, and 100 by 1 in 50: 0.5 (2 Phi(x / 0.3) - 1) + 0.5 (2 Phi(x) - 1) = 0.9 at x = 1.28."""
    rng = np.random.default_rng(7)
    error = np.concatenate([0.3 * rng.standard_normal(900), rng.standard_normal(100)])
    cluster = np.concatenate([rng.permutation(900) % 50, 50 + rng.permutation(100) % 50]).astype(str)
    none = {name: np.zeros(1000) for name in WIDER}
    samples = HeldOutResiduals(key=np.full(1000, "tpot"), error=error, cluster=cluster, wider=none, kind=np.zeros(1000, dtype=bool))
    assert math.log(widths(samples)[0].value) == pytest.approx(1.28, rel=0.15)


def test_interval_width__rows_of_left_out_kinds_say_how_it_grows_with_distance_alone() -> None:
    """Clusters left out scatter by 0.1 at no distance; whole kinds by 0.2 at the farthest."""
    rng = np.random.default_rng(2)
    kind = np.repeat([False, True], 2000)
    wider = {name: np.zeros(4000) for name in WIDER} | {"unlike": kind.astype(float)}
    error = np.where(kind, 0.2, 0.1) * rng.standard_normal(4000)
    samples = HeldOutResiduals(key=np.full(4000, "tpot"), error=error, cluster=(np.arange(4000) % 200).astype(str), wider=wider, kind=kind)
    made = {line.key: line.value for line in widths(samples)}
    assert math.log(made["tpot"]) == pytest.approx(0.1645, rel=0.06) and made["unlike"] == pytest.approx(2.0, rel=0.07)


# -- few clusters ----------------------------------------------------------------------------------------------------------------


def test_pooled_widths__many_kinds_keep_their_own() -> None:
    halves = dict(zip(STEPS, (0.3, 0.5, 0.4, 0.2), strict=True))
    assert pooled_widths(halves, dict.fromkeys(STEPS, 2000)) == pytest.approx(halves, rel=0.02)


def test_pooled_widths__two_kinds_lean_on_the_others() -> None:
    kinds: dict[str, int]
    halves, kinds = dict(zip(STEPS, (0.4, 0.4, 0.4, 1.5), strict=True)), dict(zip(STEPS, (40, 40, 40, 2), strict=True))
    assert 0.4 < pooled_widths(halves, kinds)["offline"] < 1.0
    waits = pooled_widths(halves | {"ttft": 1.2}, kinds | {"ttft": 40})
    assert waits["offline"] == pytest.approx(pooled_widths(halves, kinds)["offline"])  # waits say nothing of steps
    assert waits["ttft"] == pytest.approx(1.2, rel=0.05)


def test_pooled_widths__cover_nine_tenths_where_little_was_seen() -> None:
    """Kinds err normally with one spread for all quantities; each spread is known from a few kinds."""
    random, held = np.random.default_rng(3), []
    for _ in range(400):
        seen = {key: random.normal(0.0, 0.2, count) for key, count in zip(STEPS, (30, 30, 30, 3), strict=True)}
        halves = {key: NORMAL_90 * float(np.sqrt(np.mean(errors**2))) for key, errors in seen.items()}
        width = pooled_widths(halves, {key: len(errors) for key, errors in seen.items()})["offline"]
        held.append(np.mean(np.abs(random.normal(0.0, 0.2, 200)) <= width))
    assert 0.86 < float(np.mean(held)) < 0.96

"""The fit of kernels: it finds the parameters that made the times, shares what families share, and its file is well formed."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headway.core.errors import BadFile
from headway.evidence.fit.result import FittedNumbers, line, read_efficiency, write_efficiency
from headway.evidence.kernels.classes import CLASSES, KernelClass, LinkRows, fit, log_misses, predicted
from headway.evidence.kernels.efficiency import fit_families
from headway.evidence.kernels.rows import KernelRows, KernelTable, fastest, shape_codes, thinned
from headway.performance.collectives import Fabric, LinkCosts
from support.each import for_each
from support.paths import SOURCE

DATA = SOURCE / "data" / "efficiency.toml"
KERNELS = (*(kind.name for kind in CLASSES), "collective")
FITTED = [number for number in read_efficiency(DATA) if number.section.partition(".")[0] in KERNELS]
PEAK, BANDWIDTH = 1e15, 3e12


def kind_of(name: str) -> KernelClass:
    return next(kind for kind in CLASSES if kind.name == name)


def matmuls(chip: str, truth: tuple[float, ...], seed: int, noise: float = 0.08) -> KernelRows:
    """Times that the law itself gives to made-up shapes, with noise of each shape and of each row."""
    rng = np.random.default_rng(seed)
    sizes = rng.choice([1024, 2048, 4096, 8192, 14336, 28672], (60, 2))
    shape = np.repeat(np.arange(60), 20)
    m, (n, k) = np.tile(np.geomspace(1, 16384, 20), 60), sizes[shape].T.astype(float)
    work = (2 * m * n * k / PEAK, 2 * n * k / BANDWIDTH, 2 * (m * k + m * n) / BANDWIDTH)
    seconds = kind_of("gemm").predict(np.array(truth), work)
    seconds = seconds * np.exp(noise * rng.standard_normal(60)[shape] * 0.5 + noise * rng.standard_normal(len(shape)))
    return KernelRows(chip=np.full(len(shape), chip), shape=shape + 1000 * seed, seconds=seconds, work=work)


def together(*parts: KernelRows) -> KernelRows:
    return KernelRows(
        chip=np.concatenate([part.chip for part in parts]),
        shape=np.concatenate([part.shape for part in parts]),
        seconds=np.concatenate([part.seconds for part in parts]),
        work=tuple(np.concatenate(columns) for columns in zip(*(part.work for part in parts), strict=True)),
    )


pytest.importorskip("scipy")


@pytest.mark.parametrize("truth", [(4e-6, 0.82, 0.85, 0.7, 2.5), (6e-6, 0.6, 0.9, 0.3, 1.6)])
def test_kernel_fit__recovers_parameters(truth: tuple[float, ...]) -> None:
    kind, rows = kind_of("gemm"), matmuls("h100_sxm", truth, 1)
    found = fit(kind.predict, rows, kind.keys, (None,) * 5)
    for value, error, wanted in zip(found.values, found.errors, truth, strict=True):
        assert abs(value - wanted) < 3 * error
        assert 0 < error < 0.2 * value
    assert np.median(np.abs(log_misses(kind.predict, rows, found.values))) < 0.08


def test_kernel_fit__recovers_a_scan() -> None:
    kind, truth, rng = kind_of("scan"), (2e-5, 2.5e-6, 60.0), np.random.default_rng(7)
    chunks, heads = np.geomspace(1, 256, 40).repeat(30), np.tile(np.geomspace(2, 512, 30), 40)
    work = (chunks, chunks * heads)
    seconds = kind.predict(np.array(truth), work) * np.exp(0.05 * rng.standard_normal(len(chunks)))
    rows = KernelRows(chip=np.full(len(chunks), "h100_sxm"), shape=np.arange(len(chunks)), seconds=seconds, work=work)
    found = fit(kind.predict, rows, kind.keys, (None,) * 3)
    for value, error, wanted in zip(found.values, found.errors, truth, strict=True):
        assert abs(value - wanted) < 3 * error < 0.1 * value


def test_kernel_fit__robust_to_outliers() -> None:
    truth, kind = (4e-6, 0.82, 0.85, 0.7, 2.5), kind_of("gemm")
    rows = matmuls("h100_sxm", truth, 2)
    spoiled = replace(rows, seconds=np.where(np.arange(len(rows)) % 20 == 7, rows.seconds * 5, rows.seconds))
    found = fit(kind.predict, spoiled, kind.keys, (None,) * 5)
    assert found.values[1] == pytest.approx(truth[1], rel=0.06)
    assert found.values[2] == pytest.approx(truth[2], rel=0.06)


def test_kernel_fit__fixed_parameters_stay() -> None:
    kind, rows = kind_of("gemm"), matmuls("h100_sxm", (4e-6, 0.82, 0.85, 0.7, 2.5), 3)
    found = fit(kind.predict, rows, kind.keys, (None, None, None, None, 2.0))
    assert found.values[4] == 2.0
    assert found.errors[4] == 0.0
    assert found.free == (True, True, True, True, False)


def test_kernel_fit__families_share_equal_parameters() -> None:
    kind, same = kind_of("gemm"), (4e-6, 0.82, 0.85, 0.7, 2.5)
    other = (4e-6, 0.62, 0.85, 0.7, 2.5)
    kept = fit_families(kind, "bf16", together(matmuls("h100_sxm", same, 1), matmuls("b200_sxm", same, 2)), (None,) * 5, ())
    assert [one.family for one in kept] == ["other", "blackwell", "hopper"]
    assert not any(any(one.free) for one in kept[1:])
    kept = fit_families(kind, "bf16", together(matmuls("h100_sxm", same, 1), matmuls("b200_sxm", other, 2)), (None,) * 5, ())
    for one, truth in zip(kept[1:], (other, same), strict=True):
        assert one.free[1]
        assert one.values[1] == pytest.approx(truth[1], rel=0.05)
        assert not one.free[4]  # the norm is shared by all


def test_kernel_fit__all_reduce_lines() -> None:
    fabric = Fabric(kind="switch", domain=8, up=450e9, exchange=450e9, out=50e9, in_switch=True)
    sizes = np.geomspace(1e3, 1e9, 400)
    place = LinkRows(fabric=fabric, members=8, routed=None, message=1.0, rows=np.arange(400), tokens=sizes)

    def costs(p: Any) -> LinkCosts:
        return LinkCosts(up=p[0], out=1.0, exchange_up=1.0, exchange_out=1.0, efficiency=p[1], in_switch=p[2], exchange=1.0, beyond=1.0)

    def predict(p: Any, work: Any) -> Any:
        return predicted((place,), costs(p), 400)[work[0]]

    from headway.evidence.kernels.classes import REDUCTION_KEYS

    truth, rng = (3e-6, 0.6, 0.55), np.random.default_rng(5)
    seconds = predict(truth, (np.arange(400),))
    assert seconds[0] == pytest.approx(3e-6 + 7 * 1e3 / 450e9 / 0.6)  # one shot: to each of the seven others, the whole message
    assert seconds[-1] == pytest.approx(6e-6 + 1e9 / 450e9 / 0.55)  # the switch adds: in once, out once
    noisy = seconds * np.exp(0.05 * rng.standard_normal(400))
    rows = KernelRows(chip=np.full(400, "h100_sxm"), shape=np.arange(400), seconds=noisy, work=(np.arange(400),))
    found = fit(predict, rows, REDUCTION_KEYS, (None,) * 3)
    for value, error, wanted in zip(found.values, found.errors, truth, strict=True):
        assert abs(value - wanted) < 3 * error + 1e-3 * wanted


def test_fastest__best_backend_of_each_case() -> None:
    rows = KernelTable(
        {"m": np.array([1, 1, 2, 2]), "backend": np.array(["a", "b", "a", "b"]), "latency_s": np.array([3.0, 2.0, 1.0, 4.0])}
    )
    best = fastest(rows, ("m",))
    assert sorted(zip(best.m.tolist(), best.backend.tolist(), strict=True)) == [(1, "b"), (2, "a")]


def test_thinned__deterministic() -> None:
    rows = together(matmuls("h100_sxm", (4e-6, 0.82, 0.85, 0.7, 2.5), 1), matmuls("b200_sxm", (4e-6, 0.82, 0.85, 0.7, 2.5), 2))
    once, again = thinned(rows, 100), thinned(rows, 100)
    assert len(once) == 200
    assert np.array_equal(once.seconds, again.seconds)
    assert len(np.unique(shape_codes(np.array(["a", "b", "a"]), np.array([1, 1, 1])))) == 2


# -- the file ---------------------------------------------------------------------------------------------------------------------


ONE = FittedNumbers(
    section="gemm.other.bf16", key="compute", value=0.8123456, unit="", error=0.012345, rows=9, range='m 1.."8"', meaning="a share"
)


def test_efficiency_file__round_trip(tmp_path: Path) -> None:
    assert tomllib.loads(line(ONE))["compute"]["value"] == 0.8123
    path = tmp_path / "efficiency.toml"
    engine = replace(ONE, section="engine.vllm", key="step_overhead_s")
    write_efficiency(path, (ONE, engine), "# head\n")
    assert read_efficiency(path) == (replace(ONE, value=0.8123, error=0.012), replace(engine, value=0.8123, error=0.012))
    write_efficiency(path, (replace(ONE, value=0.5),), "# head\n")
    assert [(number.section, number.value) for number in read_efficiency(path)] == [("gemm.other.bf16", 0.5), ("engine.vllm", 0.8123)]
    write_efficiency(path, (ONE,), "", keep_other_sections=False)
    assert [number.section for number in read_efficiency(path)] == ["gemm.other.bf16"]


def test_efficiency_file__broken_is_one_error(tmp_path: Path) -> None:
    path = tmp_path / "efficiency.toml"
    path.write_text("[gemm\n", encoding="utf-8")
    with pytest.raises(BadFile):
        read_efficiency(path)
    assert read_efficiency(tmp_path / "none.toml") == ()


@for_each(FITTED, name=lambda number: f"{number.section}.{number.key}")
def test_fitted_numbers__range_meaning_and_source(number: FittedNumbers) -> None:
    assert number.range.strip()
    assert number.meaning.strip()
    assert number.source.strip()
    assert number.rows >= 0
    assert number.error >= 0
    assert number.unit in ("", "s", "byte", "byte/s", "token")
    if number.key in ("compute", "memory", "activation", "elementwise") or number.key.startswith("eff_"):
        assert 0 < number.value <= 1
    if number.key == "norm":
        assert number.value >= 1
    if number.unit == "s":
        assert 1e-7 < number.value < 1e-3


def test_fitted_numbers__about_a_hundred_for_kernels_and_as_many_for_backends() -> None:
    """And twenty of kernels that engines select: 8-bit experts with scales of tensors, Marlin on an A100, which no fall-back blurs now."""
    selected = ("moe.other.fp8_tensor", "moe.hopper.fp8_tensor", "moe.blackwell.fp8_tensor", "moe.ampere.weight_only")
    of_selected = [number for number in FITTED if number.error > 0 and number.section.startswith(selected)]
    of_backends = [number for number in FITTED if number.section.count(".") == 3]
    assert {number.section.split(".")[0] for number in of_backends} == {"moe", "scan"}
    assert len(of_selected) <= 20
    assert len([number for number in of_backends if number.error > 0 and number not in of_selected]) <= 130
    assert len([number for number in FITTED if number.error > 0 and number not in of_backends + of_selected]) <= 110
    assert len(FITTED) == len({(number.section, number.key) for number in FITTED})


@for_each(CLASSES, name=lambda kind: kind.name)
def test_fitted_numbers__every_kernel_class_has_a_fallback(kind: KernelClass) -> None:
    stated = {(number.section, number.key) for number in FITTED}
    assert {(f"{kind.name}.other.bf16", key.name) for key in kind.keys} <= stated
    for key in ("alpha", "alpha_host", "alpha_exchange", "alpha_exchange_out", "eff_network", "eff_in_switch"):
        assert ("collective.other.bf16", key) in stated

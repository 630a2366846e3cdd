"""Cross-validation: what is left out together, that no row is in its own fit, what one group decides, and how wide intervals become."""

from __future__ import annotations

import functools
import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from headway.evidence.fit.result import KEYS, WIDER, HeldOutResiduals, PriorNumber, widths
from headway.evidence.rows.tasks import Task
from headway.evidence.serving.crossval import ServingCrossValidation, cross_validate, folds, model_folds, single_source, with_intervals
from headway.evidence.serving.engine_fit import numbers
from headway.evidence.serving.predict import predict
from headway.evidence.serving.score import residuals, stats
from headway.evidence.serving.whole_fit import whole_fit
from headway.laws.serving.request import interval_factor
from support.synthetic import Rig, measured, prior, remeasured, tasks_of, true_table

pytestmark = pytest.mark.slow

DENSE, EXPERTS = ("llama-3.1-8b", "bf16"), ("qwen3-30b-a3b", "fp8")
MEASURED, OTHER = ("H100-SXM-80GB", "A100-SXM-80GB", "H200-SXM"), ("MI300X", "L40S")
TRUTH = {"engine.vllm.step_overhead_s": 3e-3, "engine.sglang.step_overhead_s": 5e-3, "engine.vllm.memory_factor": 0.8}
EVERY = tuple(
    number if f"{number.section}.{number.key}" in {*TRUTH, "engine.sglang.request_overhead_s"} else replace(number, spread=0.0)
    for number in numbers()
)


def rig(chip: str, model: tuple[str, str], engine: str) -> Rig:
    return Rig(model[0], chip, 1, engine, 1, model[1])


def lines(seed: int, sources: str, modes: tuple[str, ...], loads: int) -> list[dict[str, str]]:
    """Rows of every chip and model from each source, loads drawn at random; `sglang` from `d` alone; prefills from `a` alone."""
    rng, found = np.random.default_rng(seed), []
    for source in sources:
        engine = "sglang" if source == "d" else "vllm"
        for chip in (*MEASURED, *OTHER):
            for model in (DENSE, EXPERTS):
                for mode in (*modes, *(("prefill",) if source == "a" else ())):
                    for _ in range(loads):
                        prompt, users = int(rng.integers(100, 3000)), int(rng.integers(1, 33))
                        found.append(rig(chip, model, engine).line(f"{source}{len(found)}", mode, prompt, 200, users, source))
    return found


def scatter(task: Task) -> float:
    """Twice as much in models with experts."""
    return 0.16 if any(block.experts for block in task.setup.work.blocks) else 0.08


@functools.cache
def known(seed: int) -> tuple[Task, ...]:
    return tuple(tasks_of(measured(lines(seed, "abcd", ("decode_step",), 4), true_table(TRUTH), scatter, seed)))


@functools.cache
def validated() -> ServingCrossValidation:
    return cross_validate(known(1), whole_fit(known(1), prior(), EVERY))


@functools.cache
def served(seed: int) -> tuple[Task, ...]:
    """Three sources that agree, with rows under load."""
    asked = lines(seed, "abc", ("decode_step", "serving_concurrency"), 10)
    return tuple(tasks_of(measured(asked, true_table(TRUTH), scatter, seed)))


@functools.cache
def served_validated() -> ServingCrossValidation:
    every = [number for number in EVERY if number.section != "engine.sglang" or not number.spread]  # none of them runs it
    return cross_validate(served(1), whole_fit(served(1), prior(), every))


def number(found: ServingCrossValidation, place: str) -> float:
    values = {f"{n.section}.{n.key}": value for n, value in zip(EVERY, found.full.engines.values(EVERY), strict=True)}
    return values[place]


# -- folds ------------------------------------------------------------------------------------------------------------------------


def test_folds__each_row_scored_once_and_left_out_there() -> None:
    some = known(1)
    found = folds(some)
    times = Counter(index for fold in found for index in fold.scored)
    assert times == Counter(range(len(some)))
    assert all(fold.scored <= fold.out for fold in found)
    assert len({fold.name for fold in found}) == len(found)


def test_folds__by_source_or_by_chip_for_a_single_source() -> None:
    some = known(1)
    assert single_source(some) == {"prefill"}
    by_source = [fold for fold in folds(some) if fold.name.startswith("source ")]
    assert [fold.name for fold in by_source] == [f"source {name}" for name in "abcd"]
    for fold in by_source:
        assert fold.out == {index for index, task in enumerate(some) if task.row.source == fold.name[-1]}
        assert {some[index].row.mode for index in fold.out - fold.scored} == ({"prefill"} if fold.name == "source a" else set())
    by_chips = [fold for fold in folds(some) if fold.name.startswith("chips ")]
    assert len(by_chips) == 4
    left = [chip for fold in by_chips for chip in fold.name.removeprefix("chips ").split(", ")]
    assert sorted(left) == ["a100_sxm_80", "h100_sxm", "h200_sxm", "l40s", "mi300x"]
    for fold in by_chips:
        chips = fold.name.removeprefix("chips ").split(", ")
        assert fold.out == {index for index, task in enumerate(some) if task.setup.system.chip.name in chips}
        assert fold.scored == {index for index in fold.out if some[index].row.mode == "prefill"}


def test_model_folds__whole_models_are_left_out() -> None:
    some = known(1)
    found = model_folds(some)
    assert sorted(fold.name for fold in found) == ["model llama-3.1-8b", "model qwen3-30b-a3b"]
    assert {index for fold in found for index in fold.scored} == {i for i, task in enumerate(some) if task.row.mode == "prefill"}
    assert all({some[index].setup.model.name for index in fold.out} == {fold.name.removeprefix("model ")} for fold in found)


def test_cross_validate__no_fit_has_seen_the_source_it_predicts() -> None:
    """A source that says something else moves what is predicted of the others, not of itself."""
    changed = [remeasured(task, 1.5) if task.row.source == "b" else task for task in known(1)]
    before, after = validated(), cross_validate(changed, whole_fit(changed, prior(), EVERY))
    assert [one.id for one in before.residuals] == [one.id for one in after.residuals]
    by = {source: max(
        abs(math.log(one.predicted / other.predicted))
        for one, other in zip(before.residuals, after.residuals, strict=True) if one.fold == f"source {source}"
    ) for source in "abc"}  # fmt: skip
    assert by["b"] < 1e-3
    assert by["a"] > 0.02 and by["c"] > 0.02


def test_cross_validate__each_measurement_once_with_its_fold() -> None:
    found = served_validated().residuals
    rows = {task.row.id: task for task in served(1)}
    assert len(found) == sum(2 if task.row.mode == "serving_concurrency" else 1 for task in served(1))
    assert len({(one.id, one.quantity) for one in found}) == len(found)
    for one in found:
        wanted = "chips " if rows[one.id].row.mode == "prefill" else "source "
        assert one.fold.startswith(wanted)
        assert one.source in one.fold or wanted == "chips "
        assert wanted == "source " or one.chip in one.fold


def test_cross_validate__rows_with_equal_ids_stay_apart() -> None:
    """Nothing tells rows apart but the rows themselves."""
    same = [replace(task, row=replace(task.row, line=2, id="a")) for task in known(1)]
    one, other = validated(), cross_validate(same, whole_fit(same, prior(), EVERY))
    assert [line.value for line in other.intervals] == pytest.approx([line.value for line in one.intervals], rel=1e-6)


def test_cross_validate__single_source_and_chip_uses_priors() -> None:
    """Nothing is left to fit to: the priors predict, and the numbers are those of all rows."""
    some = [task for task in known(1) if task.row.source == "c" and task.setup.system.chip.name == "h100_sxm"]
    found = cross_validate(some, whole_fit(some, prior(), EVERY))
    assert {one.fold for one in found.residuals} == {"chips h100_sxm"}
    believed = {(one.id, one.quantity): one.predicted for one in residuals(some, predict(some, with_intervals(prior(), found.intervals)))}
    assert {(one.id, one.quantity): one.predicted for one in found.residuals} == pytest.approx(believed, rel=1e-12)
    assert number(found, "engine.vllm.step_overhead_s") != pytest.approx(1.5e-3, rel=0.05)


# -- what one group decides -------------------------------------------------------------------------------------------------------


def test_shifts__number_decided_by_one_source() -> None:
    """Only source d runs SGLang, whose step is 1.7 standard deviations off its prior; the others share vLLM's."""
    found = validated()
    assert number(found, "engine.sglang.step_overhead_s") == pytest.approx(5e-3, rel=0.2)
    named = {(one.fold, one.number) for one in found.shifts}
    assert ("source d", "engine.sglang.step_overhead_s") in named
    assert not any(place.startswith("engine.vllm") for _, place in named)
    assert all(abs(one.errors) > 3 for one in found.shifts)
    assert all(one.errors < 0 for one in found.shifts if one.number == "engine.sglang.step_overhead_s")  # back to what was believed


def test_shifts__fold_of_two_modes_is_listed_once() -> None:
    """One source has decodes and prefills, each left out by the same chips."""
    some = [task for task in known(1) if task.row.source == "a"]
    names = [fold.name for fold in folds(some)]
    assert len(names) == 8 and len(set(names)) == 4
    moved = [(one.fold, one.number) for one in cross_validate(some, whole_fit(some, prior(), EVERY)).shifts]
    assert len(moved) == len(set(moved))


# -- intervals --------------------------------------------------------------------------------------------------------------------


def seen(rows: int, seed: int, base: dict[str, float], grown: dict[str, float]) -> HeldOutResiduals:
    """Residuals whose spread is known: of each key its own, times what each circumstance makes of it."""
    rng = np.random.default_rng(seed)
    key = rng.choice(list(base), rows)
    wider = {name: rng.random(rows) < 0.3 for name in WIDER}
    sigma = np.array([base[one] for one in key])
    for name, factor in grown.items():
        sigma = np.where(wider[name], sigma * factor, sigma)
    source = rng.choice(["one", "two", "three", "four"], rows, p=[0.7, 0.1, 0.1, 0.1])
    error = sigma * rng.standard_normal(rows)
    return HeldOutResiduals(key=key, error=error, source=source, wider=wider, slower=error < 0)


def covered(fresh: HeldOutResiduals, made: dict[str, float]) -> np.ndarray:
    """Whether each residual is within the interval, worked out as `predict` does: the factor to the power of what widens it."""
    wide = np.ones(len(fresh.error))
    for name in WIDER:
        wide = np.where(fresh.wider[name], wide * made[name], wide)
    return np.abs(fresh.error) <= np.log(interval_factor(np.array([made[one] for one in fresh.key]), wide))


BASE = {"decode": 0.08, "tpot": 0.15, "ttft": 0.4}


@pytest.mark.parametrize("seed", range(3))
def test_interval__covers_nine_tenths_of_fresh_rows(seed: int) -> None:
    made = {line.key: line.value for line in widths(seen(4000, seed, BASE, {"experts": 2.0, "unmeasured": 1.5}))}
    fresh = seen(4000, 100 + seed, BASE, {"experts": 2.0, "unmeasured": 1.5})
    inside = covered(fresh, made)
    assert 0.87 < inside.mean() < 0.93
    for part in (*(fresh.key == key for key in BASE), *fresh.wider.values()):
        assert 0.85 <= inside[part].mean() <= 0.95


@pytest.mark.parametrize("seed", range(3))
def test_interval_width__ninetieth_percentile(seed: int) -> None:
    """Of many rows: what widens an interval never narrows it, so that among few rows chance takes a few per cent of the plain width."""
    made = {line.key: line.value for line in widths(seen(12_000, seed, BASE, {"experts": 2.0}))}
    for key, sigma in BASE.items():
        assert math.log(made[key]) == pytest.approx(1.645 * sigma, rel=0.07)  # 5 % of a normal distribution beyond on each side
    assert made["experts"] == pytest.approx(2.0, rel=0.07)
    assert made["unmeasured"] == pytest.approx(1.0, abs=0.12)
    assert made["limited"] == pytest.approx(1.0, abs=0.12)


def test_interval_width__no_circumstance_narrows() -> None:
    made = {line.key: line for line in widths(seen(4000, 1, BASE, {"experts": 0.4}))}
    assert made["experts"].value == 1.0
    assert all(made[name].value >= 1 for name in WIDER)
    assert all(made[key].value > 1 for key in BASE)
    assert [line for line in made if line in KEYS] == list(BASE)  # a quantity that no row measures has no width
    assert all(line.section == "interval.other" and line.rows > 0 and line.error >= 0 and line.meaning for line in made.values())


def test_interval_width__rows_that_err_together_count_once() -> None:
    """900 rows that scatter by 0.3 and 100 by 1: 0.5 (2 Phi(x / 0.3) - 1) + 0.5 (2 Phi(x) - 1) = 0.9 at x = 1.28; by rows, at 0.59."""
    rng = np.random.default_rng(7)
    error = np.concatenate([0.3 * rng.standard_normal(900), rng.standard_normal(100)])
    source, none = np.repeat(["one", "two"], [900, 100]), {name: np.zeros(1000, dtype=bool) for name in WIDER}
    made = widths(HeldOutResiduals(key=np.full(1000, "tpot"), error=error, source=source, wider=none, slower=error < 0))[0]
    assert math.log(made.value) == pytest.approx(1.28, rel=0.15)


def test_interval__covers_fresh_rows_from_fit_to_prediction() -> None:
    """Fitted, cross-validated and then asked about other rows of the same kind: served rows twice as wide where there are experts."""
    table, fresh = served_validated().table, served(2)
    found = residuals(fresh, predict(fresh, table))
    assert len(found) > 900
    assert 0.85 <= stats(found).coverage <= 0.95
    experts = float(table.interval("experts"))
    assert experts == pytest.approx(2.0, rel=0.25)
    assert all(float(table.interval(name)) >= 1 for name in WIDER)
    own = {one.key: one.value for one in served_validated().intervals}
    assert {key: float(table.interval(key)) for key in own} == pytest.approx(own)


def test_interval__covers_the_rows_behind_it() -> None:
    assert 0.87 <= stats(list(served_validated().residuals)).coverage <= 0.93


def test_cross_validate__numbers_from_all_rows() -> None:
    every: list[PriorNumber] = list(EVERY)
    for place, wanted in TRUTH.items():
        assert number(validated(), place) == pytest.approx(wanted, rel=0.2), place
    table = validated().table
    for one, value in zip(every, validated().full.engines.values(every), strict=True):
        assert float(table.find(one.key, one.section)) == pytest.approx(value)

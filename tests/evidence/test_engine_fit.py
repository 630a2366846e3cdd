"""The fit of engines' numbers: it finds what made the rows, keeps to the priors without rows, and no row or source outweighs the others."""

from __future__ import annotations

import functools
import random
from collections.abc import Sequence
from dataclasses import fields, replace

import numpy as np
import pytest

from headway.evidence.fit.result import PriorNumber
from headway.evidence.rows.tasks import Task
from headway.evidence.serving.engine_fit import (
    MEANINGS,
    SHARE,
    EngineFit,
    as_fitted,
    fit,
    numbers,
    predictions,
    problem,
    residuals,
    table_at,
)
from headway.evidence.serving.machines import Scheduling, engines_of
from headway.laws.step.coefficients import EngineCost
from headway.performance.achieved import ENGINE_KEYS
from support.synthetic import Rig, measured, prior, remeasured, tasks_of, true_table

pytestmark = pytest.mark.slow

H100 = Rig("llama-3.1-8b", "H100-SXM-80GB", 1, "vllm", 1)
BIG = Rig("llama-3.1-70b", "H100-SXM-80GB", 8, "vllm", 8, "fp8")
A100 = Rig("llama-3.1-8b", "A100-SXM-80GB", 1, "vllm", 1)
EXPERTS = Rig("qwen3-30b-a3b", "H200-SXM", 2, "vllm", 2)
CARD = Rig("llama-3.1-8b", "rtx4090", 1, "llama.cpp", 1, "q4_k_m")
# Two to three standard deviations of their priors away.
TRUTH = {
    "engine.vllm.step_overhead_s": 6e-3, "engine.vllm.memory_factor": 0.68, "engine.vllm.request_overhead_s": 0.06,
    "engine.llamacpp.layer_overhead_s": 120e-6, "engine.llamacpp.compute_factor": 0.22,
}  # fmt: skip
WITHOUT_ROWS = ("engine.trtllm.memory_factor",)
STEP = "engine.vllm.step_overhead_s"


def free(*places: str) -> tuple[PriorNumber, ...]:
    """All numbers, only these free: a fit takes as long as it has free numbers."""
    return tuple(number if f"{number.section}.{number.key}" in places else replace(number, spread=0.0) for number in numbers())


EVERY = free(*TRUTH, *WITHOUT_ROWS)


def lines() -> list[dict[str, str]]:
    found = []
    for source, rigs in (("one", (H100, BIG)), ("two", (A100, EXPERTS)), ("three", (CARD,))):
        for rig in rigs:
            for prompt in (200, 2000):
                for users in (1, 4, 16, 64):
                    name = f"{source}{len(found)}"
                    found.append(rig.line(name, "decode_step", prompt, 100, users, source))
                    found.append(rig.line(name, "prefill", prompt, 0, users, source))
                    if rig is not CARD:
                        found.append(rig.line(name, "serving_concurrency", prompt, 200, users, source))
    return found


@functools.cache
def known(seed: int, noise: float = 0.03) -> tuple[Task, ...]:
    return tuple(tasks_of(measured(lines(), true_table(TRUTH), noise, seed)))


@functools.cache
def found(seed: int) -> EngineFit:
    return fit(problem(known(seed), prior()), EVERY)


def at(one: EngineFit) -> dict[str, float]:
    return {f"{number.section}.{number.key}": number.at(z) for number, z in zip(one.free, one.z, strict=True)}


def moved(one: EngineFit, other: EngineFit) -> np.ndarray:
    """In standard errors of the first."""
    return np.abs((one.z - other.z) / one.error)


# -- what made the rows -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [1, 2])
def test_engine_fit__recovers_the_numbers_behind_the_rows(seed: int) -> None:
    one = found(seed)
    for number, z, error in zip(one.free, one.z, one.error, strict=True):
        place = f"{number.section}.{number.key}"
        if place in TRUTH:
            wanted = np.log(TRUTH[place] / number.prior) / number.spread
            assert abs(wanted) > 1.9, "far from the prior"
            assert abs(z - wanted) < 3 * error, place
            assert 0 < error * number.spread < 0.35, place  # known to a factor of 1.4
            assert abs(z - wanted) < 0.25 * abs(wanted), place


def test_engine_fit__noiseless_rows_have_no_residual() -> None:
    asked = problem(known(1, 0.0), prior())
    assert np.abs(residuals(asked, true_table(TRUTH))).max() < 1e-9
    assert np.abs(residuals(asked, prior())).max() > 1


def test_engine_fit__number_without_rows_stays_at_its_prior() -> None:
    one = found(1)
    for number, z, error in zip(one.free, one.z, one.error, strict=True):
        if f"{number.section}.{number.key}" in WITHOUT_ROWS:
            assert z == pytest.approx(0, abs=1e-9)
            assert error == pytest.approx(1)
            assert number.at(z) == pytest.approx(number.prior)


@pytest.mark.parametrize("rows", [(), ("C",)])
def test_engine_fit__no_rows_leave_every_prior(rows: tuple[str, ...]) -> None:
    some = [replace(task, row=replace(task.row, reliability=rows[0])) for task in known(1)] if rows else []
    one = fit(problem(some, prior()), numbers())
    assert one.values(numbers()) == pytest.approx([number.prior for number in numbers()])
    assert (one.error == 1).all()


def test_engine_fit__rows_without_measurements_change_nothing() -> None:
    silent = [replace(task, row=replace(task.row, tpot_s=None, ttft_s=None, tok_per_s_chip=None)) for task in known(1)]
    assert (fit(problem(silent, prior()), EVERY).z == 0).all()


def test_engine_fit__fixed_numbers_never_move() -> None:
    fixed = [number for number in EVERY if not number.spread]
    values = dict(zip([(n.section, n.key) for n in EVERY], found(1).values(EVERY), strict=True))
    assert all(values[number.section, number.key] == number.prior for number in fixed)
    stated = {(line.section, line.key): line for line in as_fitted(found(1), EVERY, 99, "rows")}
    assert len(stated) == len(EVERY)
    for number in fixed:
        line = stated[number.section, number.key]
        assert (line.value, line.error, line.rows, line.range) == (number.prior, 0.0, 0, "fixed")
    step = stated["engine.vllm", "step_overhead_s"]
    assert (step.rows, step.range, step.unit) == (99, "rows", "s")
    assert step.error == pytest.approx(step.value * 0.7 * found(1).error[[n.key for n in found(1).free].index("step_overhead_s")])


def test_engine_numbers__fields_of_cost_and_scheduling() -> None:
    of_chips = {"yearly_growth", "mma_share"}  # they change others, by an engine's age and a chip's instructions
    of_formats = {"unpacking_flop"}  # it limits the bandwidth that weights in K-blocks reach
    of_memory = {"graph_bytes", "buffer_bytes"}  # of an engine's start, fitted to its logs
    costs = {field.name for record in (EngineCost, Scheduling) for field in fields(record)} - {"uncaptured"}  # that one is a choice
    costs -= {"decode_remainder", "prompt_remainder", "unpacking"}  # of formats and chips too
    assert costs | of_chips | of_formats | of_memory == set(ENGINE_KEYS)
    assert set(ENGINE_KEYS) | {"power_exponent"} == set(MEANINGS)


def test_engine_numbers__shares_are_at_most_one() -> None:
    for number in numbers():
        if number.key in ("synchronised_share", "pipeline_overlap_share", "chunked_prefill", "reserved_output_share", "start_share"):
            assert number.at(50.0) <= 1
            assert table_at(prior(), [number], [number.at(50.0)]).find(number.key, number.section) <= 1


def test_memory_factor__at_most_one_for_engines() -> None:
    most = {number.section: number.at(50.0) for number in numbers() if number.key == "memory_factor" and number.spread}
    assert {"engine.vllm", "engine.llamacpp.card", "platform.card"} <= set(most)
    assert all((share == 1) == section.startswith("engine.") for section, share in most.items())


# -- who counts how much ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("index", [0, 50])  # a decode, a run under load
def test_engine_fit__one_outlier_moves_less_than_a_standard_error(index: int) -> None:
    some = list(known(1))
    wild = [remeasured(task, 30.0) if place == index % len(some) else task for place, task in enumerate(some)]
    assert moved(found(1), fit(problem(wild, prior()), EVERY)).max() < 1


def test_engine_fit__order_of_rows_does_not_matter() -> None:
    mixed = list(known(1))
    random.Random(4).shuffle(mixed)
    one = fit(problem(mixed, prior()), EVERY)
    assert one.z == pytest.approx(found(1).z, abs=1e-6)
    assert one.error == pytest.approx(found(1).error, rel=1e-6)


def test_engine_fit__rows_of_reliability_c_are_ignored() -> None:
    lies = [replace(task, row=replace(remeasured(task, 3.0).row, reliability="C", source="four")) for task in known(1)]
    one = fit(problem([*known(1), *lies], prior()), EVERY)
    assert one.z == pytest.approx(found(1).z, abs=1e-9)


def disagreeing(counts: Sequence[int], trust: Sequence[str] = ("A", "A")) -> float:
    """Where between two sources the fit lies, of which one says a step costs 1.2 ms and the other 1.9: 0 at the first, 1 at the other."""
    every = tuple(replace(number, spread=5 * number.spread) for number in free(STEP))  # the rows alone say where it lies
    halves = []
    for source, count, reliability, step in zip(("one", "two"), counts, trust, (1.2e-3, 1.9e-3), strict=True):
        asked = [
            H100.line(f"{source}{row}", "decode_step", 100 + 2000 * row // count, 100, 1 + row % 8, source, reliability)
            for row in range(count)
        ]
        halves.append(tasks_of(measured(asked, true_table({STEP: step}), 0.0, 1)))
    both = fit(problem([*halves[0], *halves[1]], prior()), every)
    return float(np.log(at(both)[STEP] / 1.2e-3) / np.log(1.9 / 1.2))


def test_engine_fit__large_clusters_do_not_outweigh_others() -> None:
    even, many = disagreeing((SHARE, SHARE)), disagreeing((SHARE, 10 * SHARE))
    assert even == pytest.approx(0.5, abs=0.06)  # TPOT is not linear in it
    assert many == pytest.approx(even, abs=0.05)  # by its rows alone it would be 0.9
    assert disagreeing((1, SHARE)) > 0.8  # few rows are few


def test_engine_fit__rows_of_reliability_b_count_half() -> None:
    """Weights of residuals are 1 and 0.7, squared 1 and 0.49: two sources that disagree are met nearer to the sure one."""
    lines = [H100.line(f"{mark}{row}", "decode_step", 100, 100, 8, "one", mark) for row in range(3) for mark in ("A", "B")]
    (kind,) = problem(tasks_of(measured(lines, true_table({STEP: 1.4e-3}), 0.0, 1)), prior()).kinds
    assert sorted(kind.groups[0].share ** 2) == pytest.approx([0.49] * 3 + [1.0] * 3)
    assert disagreeing((SHARE, SHARE), ("A", "B")) < 0.4 < 0.6 < disagreeing((SHARE, SHARE), ("B", "A"))


def test_engine_fit__engines_are_independent() -> None:
    slow = [remeasured(task, 1.3) if task.setup.engine == "llama.cpp" else task for task in known(1)]
    one, other = at(found(1)), at(fit(problem(slow, prior()), EVERY))
    for place in TRUTH:
        if place.startswith("engine.vllm"):
            assert other[place] == pytest.approx(one[place], rel=1e-3), place
        else:
            assert abs(other[place] / one[place] - 1) > 0.1, place


def test_engine_fit__predictions_by_kind_of_row() -> None:
    asked = problem(known(1), prior())
    assert [kind.name for kind in asked.kinds] == ["decode", "prefill", "serving"]
    for kind, made in zip(asked.kinds, predictions(asked, engines_of(asked.setups, prior())), strict=True):
        for group in kind.groups:
            assert np.isfinite(getattr(made, group.quantity)).all()
            assert len(group.measured) == len(group.weight) == len(group.sources) == len(group.rows)

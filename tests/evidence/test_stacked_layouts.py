"""Layouts of different shapes laid side by side: the step law on all of them equals the law on each alone."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from headway.evidence.rows.tasks import KINDS, Setup, Task
from headway.evidence.serving.machines import ENGINES, bare_machines, columns, compiled_setup, dense_form, fill, machines, rows, stack
from headway.evidence.serving.predict import RATES, TIMES, predict
from headway.laws.step.coefficients import StepCoefficients
from headway.laws.step.step import step_floor_s, step_s
from headway.performance.achieved import efficiencies, engine_cost, with_engine
from support.synthetic import Rig, csv_text, tasks_of, true_table

RIGS = (
    Rig("llama-3.1-8b", "rtx4090", 1, "llama.cpp", 1, "q4_k_m"),
    Rig("llama-3.1-70b", "H100-SXM-80GB", 8, "vllm", 8, "fp8"),
    Rig("llama-3.1-70b", "H100-SXM-80GB", 8, "vllm", 2, more=(("pp", "4"),)),  # pipeline stages
    Rig("llama-3.1-70b", "A100-SXM-80GB", 16, "trt-llm", 8),  # two copies
    Rig("qwen3-30b-a3b", "H200-SXM", 2, "sglang", 2),  # experts
    Rig("mixtral-8x7b-v0.1", "MI300X", 1, "vllm", 1),
    Rig("deepseek-v3", "H200-SXM", 8, "sglang", 8, "fp8"),  # latent attention and experts
    Rig("deepseek-v3", "B200", 8, "trt-llm", 1, "fp8", (("dp", "8"), ("ep", "8"))),  # attention data parallel
    Rig("gpt-oss-120b", "H100-SXM-80GB", 2, "vllm", 2, "mxfp4"),  # windows
    Rig("mistral-7b-v0.1", "L40S", 1, "other", 1),
    Rig("qwen3-next-80b-a3b", "H100-SXM-80GB", 4, "vllm", 4),  # recurrent layers
    Rig("llama-3.1-8b", "H100-SXM-80GB", 1, "vllm", 1, more=(("engine_version", "0.2.1"),)),
)  # fmt: skip
LOADS = {  # decoding, their KV tokens, prompt tokens, prompt pairs
    "decode": (48.0, 48 * 3000.0, 0.0, 0.0), "one sequence": (1.0, 100.0, 0.0, 0.0),
    "prefill": (0.0, 0.0, 4000.0, 4000.0**2 / 2), "mixed": (32.0, 32 * 20000.0, 2048.0, 2048.0 * 10000),
}  # fmt: skip


@functools.cache
def tasks() -> tuple[Task, ...]:
    """Every rig in every mode that rows have."""
    lines = []
    for at, rig in enumerate(RIGS):
        for mode in ("decode_step", "prefill", "serving_concurrency", "offline_throughput", "disagg"):
            if mode != "disagg" or rig.chips > 1:
                line = rig.line(f"{mode}{at}", mode, 900 + 137 * at, 300 + at, 5 + 9 * at, "one")
                lines.append(line | {"n_chips": str(2 * rig.chips)} if mode == "disagg" else line)
        lines.append(rig.line(f"static{at}", "offline_throughput", 700, 90, 8, "one") | {"roofline": "yes_static_batch"})
        lines.append(rig.line(f"e2e{at}", "decode_step", 700, 90, 8, "one") | {"roofline": "yes_e2e"})
        lines.append(
            rig.line(f"free{at}", "serving_concurrency", 700, 90, 1, "one") | {"roofline": "tpot_low_qps", "batch_or_concurrency": ""}
        )
    found = tasks_of(csv_text(lines))
    assert {task.kind for task in found} == set(KINDS)
    return tuple(found)


@functools.cache
def setups() -> tuple[Setup, ...]:
    return tuple(dict.fromkeys(task.setup for task in tasks() if task.kind == "decode"))


def alone(setup: Setup, table: Any) -> StepCoefficients:
    """One setup's numbers as scalars, in its engine."""
    step = compiled_setup(setup, table).step
    name, weights = ENGINES[setup.engine], setup.formats.labels[0]
    cost = engine_cost(name, setup.system.chip, table, dense_form(setup), setup.older, setup.years, weights)
    return replace(step, achieved=with_engine(step.achieved, cost, step.layers, float(setup.layout.tp), step.pp))


def test_stacked_layouts__setups_of_different_shapes() -> None:
    steps = [setup.compiled.step for setup in setups()]
    assert len(steps) == len(RIGS)
    assert {0, 1} < {len(step.experts) for step in steps}
    assert len({len(step.spans) for step in steps}) > 1
    assert len({len(step.collectives) for step in steps}) > 2
    assert len({len(term.lines) for step in steps for term in step.collectives}) > 1
    assert {float(step.pp) for step in steps} == {1, 4} and {float(step.dp) for step in steps} == {1, 8}


@pytest.mark.parametrize("law", [step_s, step_floor_s], ids=["expected", "floor"])
@pytest.mark.parametrize("load", LOADS.values(), ids=list(LOADS))
@pytest.mark.parametrize("changed", [False, True], ids=["shipped", "changed"])
def test_stacked_layouts__step_equals_each_alone(law: Callable[..., Any], load: tuple[float, ...], changed: bool) -> None:
    table = true_table({"engine.vllm.step_overhead_s": 5e-3, "engine.early.prompt_launch_s": 1e-5}) if changed else efficiencies()
    together = law(machines(setups(), table).step, *load)
    each = [float(law(alone(setup, table), *load)) for setup in setups()]
    assert np.shape(together) == (len(each),)
    assert together == pytest.approx(each, rel=1e-12)
    assert all(value > 0 for value in each)


@pytest.mark.parametrize("law", [step_s, step_floor_s], ids=["expected", "floor"])
def test_stacked_layouts__one_load_per_layout(law: Callable[..., Any]) -> None:
    """Each setup at another load, as the rows of a file are."""
    rng, found = np.random.default_rng(3), machines(setups())
    loads = [
        rng.uniform(0, 100, len(RIGS)),
        rng.uniform(0, 1e5, len(RIGS)),
        rng.uniform(0, 9000, len(RIGS)),
        rng.uniform(0, 1e7, len(RIGS)),
    ]
    each = [float(law(alone(setup, efficiencies()), *(float(load[at]) for load in loads))) for at, setup in enumerate(setups())]
    assert law(found.step, *loads) == pytest.approx(each, rel=1e-12)


def test_stacked_layouts__rows_commute_with_stacking() -> None:
    index = np.array([3, 3, 0, len(RIGS) - 1])
    found, some = bare_machines(setups(), efficiencies()), [setups()[at] for at in index]
    picked, made = rows(found, index), bare_machines(some, efficiencies())
    load = LOADS["mixed"]
    assert step_s(picked.step, *load) == pytest.approx(step_s(made.step, *load), rel=1e-12)
    assert list(picked.chips) == list(made.chips) and list(picked.link) == list(made.link)
    assert list(picked.cache_bytes(5000.0)) == pytest.approx(list(made.cache_bytes(5000.0)), rel=1e-12)


def test_stacked_layouts__fill_and_columns_by_hand() -> None:
    assert fill((1, 2), 0, 4) == (1, 2, 0, 0)
    assert [list(one) for one in columns([(1, 2), (3, 4)])] == [[1, 3], [2, 4]]
    assert [list(one) for one in rows(columns([(1, 2), (3, 4), (5, 6)]), np.array([2, 0]))] == [[5, 1], [6, 2]]
    one = stack([setups()[0].compiled.step])
    assert float(step_s(one, *LOADS["decode"])[0]) == pytest.approx(float(step_s(setups()[0].compiled.step, *LOADS["decode"])), rel=1e-12)


def numbers(some: Sequence[Task], at: int) -> list[float]:
    """Every number of one row's prediction, made beside the others."""
    made = predict(some)[at]
    found = [getattr(made, name) for name in TIMES + RATES]
    return [value for one in found if one is not None for value in (one.expected, one.floor, one.low, one.high)]


def test_predict__independent_of_other_rows() -> None:
    some = list(tasks())
    together = predict(some)
    picked = [(task, made) for at, (task, made) in enumerate(zip(some, together, strict=True)) if at % 3 == 0 or task.kind == "disagg"]
    assert {task.kind for task, _ in picked} == set(KINDS)
    for task, made in picked:
        (lonely,) = predict([task])
        assert lonely.kind == made.kind
        for name in TIMES + RATES:
            one, other = getattr(lonely, name), getattr(made, name)
            assert (one is None) == (other is None), (task.row.id, name)
            if one is not None:
                assert (one.expected, one.floor, one.low, one.high) == pytest.approx(
                    (other.expected, other.floor, other.low, other.high), rel=1e-12
                ), (task.row.id, name)  # fmt: skip


def test_predict__independent_of_row_order() -> None:
    some = list(tasks())
    assert numbers(some[::-1], len(some) - 1) == pytest.approx(numbers(some, 0), rel=1e-12)
    assert numbers([*some[20:], *some[:20]], 0) == pytest.approx(numbers(some, 20), rel=1e-12)

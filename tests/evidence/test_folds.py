"""Folds: whole clusters are left out together, by a seed; no fit has seen what it predicts; intervals hold what they promise."""

from __future__ import annotations

import functools
import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from headway.evidence.rows.tasks import Task
from headway.evidence.serving.engine_fit import cluster, fit, numbers, problem, table_at
from headway.evidence.serving.folds import FoldResult, cluster_folds, cross_validate, kind_folds
from headway.performance.achieved import Efficiencies
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
    return tuple(tasks_of(measured(lines(seed, "abcd", ("decode_step",), 2), true_table(TRUTH), scatter, seed)))


def shipped(some: tuple[Task, ...] | list[Task]) -> Efficiencies:
    """Numbers fitted to all rows: where folds start."""
    table = table_at(prior(), EVERY, [number.prior for number in EVERY])
    return table_at(prior(), EVERY, fit(problem(some, table), EVERY).values(EVERY))


@functools.cache
def validated() -> FoldResult:
    return cross_validate(known(1), shipped(known(1)), EVERY)


def test_cluster_folds__each_cluster_once_and_whole() -> None:
    some = known(1)
    found = cluster_folds(some)
    assert Counter(int(index) for fold in found for index in fold.out) == Counter(range(len(some)))
    for fold in found:
        assert not {cluster(some[index]) for index in fold.out} & {cluster(some[index]) for index in fold.rest}
        assert len(fold.out) + len(fold.rest) == len(some)


def test_cluster_folds__drawn_by_the_seed() -> None:
    some = known(1)
    first, again, other = ([fold.out.tolist() for fold in cluster_folds(some, seed)] for seed in (1, 1, 2))
    assert first == again != other


def test_kind_folds__leave_out_whole_kinds() -> None:
    some = known(1)
    names = {fold.name: fold for fold in kind_folds(some)}
    assert {"chip hopper", "chip ampere", "chip amd", "chip card", "engine vLLM", "engine SGLang"} <= set(names)
    for fold in names.values():
        if fold.name == "engine SGLang":
            assert {some[index].setup.engine for index in fold.out} == {"SGLang"} and len(fold.out) + len(fold.rest) == len(some)


def test_cross_validate__no_fit_has_seen_the_cluster_it_predicts() -> None:
    """Rows of a fold that say something else move what is predicted of other folds, not of their own."""
    out = set(cluster_folds(known(1))[0].out.tolist())
    changed = [remeasured(task, 1.5) if index in out else task for index, task in enumerate(known(1))]
    before, after = validated(), cross_validate(changed, shipped(known(1)), EVERY)
    assert [one.id for one in before.clusters] == [one.id for one in after.clusters]
    moved = [abs(math.log(one.predicted / other.predicted)) for one, other in zip(before.clusters, after.clusters, strict=True)]
    own = np.array([one.fold == cluster_folds(known(1))[0].name for one in before.clusters])
    assert max(np.array(moved)[own]) < 1e-3 < 0.01 < max(np.array(moved)[~own])


def test_cross_validate__each_measurement_once_with_its_fold() -> None:
    found = validated().clusters
    assert len({one.line for one in found}) == len(found) == len(known(1))
    assert all(one.fold.startswith("clusters ") for one in found)
    assert validated().count == len({cluster(task) for task in known(1)})


def test_cross_validate__intervals_hold_nine_tenths_of_left_out_clusters() -> None:
    found = validated().clusters
    names = np.array([one.cluster for one in found])
    held = np.array([one.covered for one in found])
    assert 0.82 <= np.mean([held[names == name].mean() for name in np.unique(names)]) <= 0.97
    values = {line.key: line.value for line in validated().intervals}
    assert all(value >= 1 for value in values.values()) and {"decode", "prefill"} <= set(values)

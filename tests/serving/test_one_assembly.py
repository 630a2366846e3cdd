"""One assembly of a request: `serve`, `plan`, `predict` and `score` give the same numbers; the times of a request keep their relations."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from typing import Any

import pytest

from headway.core.schema import defaults
from headway.evidence.rows.tasks import Task
from headway.evidence.serving.machines import ENGINES
from headway.evidence.serving.predict import Prediction, predict
from headway.evidence.serving.score import residuals, score
from headway.performance.assumptions import Assumptions
from headway.performance.layout import Layout
from headway.performance.workload import Load
from headway.serving.plan.plan import plan
from headway.serving.serve import serve
from support.synthetic import Rig, csv_text, tasks_of

RIGS = (
    Rig("llama-3.1-70b", "H100-SXM-80GB", 8, "vllm", 8, "fp8"),
    Rig("llama-3.1-70b", "H100-SXM-80GB", 8, "vllm", 2, more=(("pp", "4"),)),  # pipeline stages
    Rig("llama-3.1-70b", "A100-SXM-80GB", 8, "trt-llm", 4),  # two replicas
    Rig("qwen3-30b-a3b", "H200-SXM", 2, "sglang", 2),  # experts
    Rig("mixtral-8x7b-v0.1", "MI300X", 1, "vllm", 1),  # an engine's numbers from other chips
    Rig("deepseek-v3", "H200-SXM", 8, "sglang", 8, "fp8"),  # latent attention and experts
    Rig("deepseek-v3", "B200", 8, "trt-llm", 1, "fp8", (("dp", "8"), ("ep", "8"))),  # attention data parallel
    Rig("gpt-oss-120b", "H100-SXM-80GB", 2, "vllm", 2, "mxfp4"),  # windows
    Rig("mistral-7b-v0.1", "L40S", 1, "other", 1),
    Rig("qwen3-next-80b-a3b", "H100-SXM-80GB", 4, "vllm", 4),  # recurrent layers
)  # fmt: skip
LOADS = ((900, 300, 2), (4000, 250, 48), (12_000, 1000, 700))  # prompt, output, users: few, many, more than have a seat
ENDS = {"expected": "_s", "floor": "_floor_s", "low": "_lo_s", "high": "_hi_s"}
EXACTLY = 1e-12


@dataclass(frozen=True)
class SharedPoint:
    """A measured row's task and prediction, and the answers of `serve` to the same question."""

    task: Task
    prediction: Prediction
    served: dict[str, Any]

    @property
    def name(self) -> str:
        return f"{self.task.row.model} {self.task.row.hardware} {self.task.setup.layout} {self.task.concurrency:g} users"


def asked(task: Task) -> dict[str, Any]:
    """The load and engine of a task as `serve` takes them."""
    assumptions = defaults(Assumptions, {"engine": ENGINES[task.setup.engine], "length_cv": task.spread})
    return {"prompt": task.prompt, "output": task.output, "assumptions": assumptions}


@functools.cache
def points() -> tuple[SharedPoint, ...]:
    lines = [
        rig.line(f"{at}-{users}", "serving_concurrency", prompt, output, users * (2 if rig.engine == "trt-llm" else 1), "one")
        for at, rig in enumerate(RIGS)
        for prompt, output, users in LOADS
    ]
    known = tasks_of(csv_text(lines))
    return tuple(SharedPoint(task, made, served(task)) for task, made in zip(known, predict(known), strict=True))


def served(task: Task) -> dict[str, Any]:
    setup = task.setup
    layout, users = replace(setup.layout, replicas=setup.replicas), (task.concurrency or 0) / setup.replicas
    return serve(setup.model, setup.system, layout, batch=users, precision=setup.precision, **asked(task)).row(0)


def equal(name: str, one: Any, other: Any) -> list[str]:
    same = one == other if one is None or other is None else math.isclose(one, other, rel_tol=EXACTLY)
    return [] if same else [f"{name}: {one!r} and {other!r}"]


def test_shared_points__cover_replicas_pipelines_ranks_and_queues() -> None:
    setups = [point.task.setup for point in points()]
    assert len(setups) == 30
    assert {True, False} == {setup.replicas > 1 for setup in setups} == {setup.layout.pp > 1 for setup in setups}
    assert {setup.layout.dp for setup in setups} == {1, 8} == {setup.layout.ep for setup in setups}
    assert 8 <= sum(point.served["ttft_s"] > 10 * point.served["ttft_unloaded_s"] for point in points()) <= 22


def test_predict__equals_serve() -> None:
    """Value, interval and floor of TTFT and TPOT; rates and their interval, in all and per chip."""
    differ: list[str] = []
    for point in points():
        for quantity in ("ttft", "tpot"):
            seen = getattr(point.prediction, quantity)
            for end, key in ENDS.items():
                differ += equal(f"{point.name} {quantity} {end}", getattr(seen, end), point.served[f"{quantity}{key}"])
        for quantity, key in (("rate", "tok_per_s"), ("per_chip", "tok_per_s_chip")):
            seen = getattr(point.prediction, quantity)
            for end, suffix in (("expected", ""), ("low", "_lo"), ("high", "_hi")):
                differ += equal(f"{point.name} {quantity} {end}", getattr(seen, end), point.served[f"{key}{suffix}"])
    assert not differ


def test_score__rests_on_the_same_numbers() -> None:
    """Of rows that measured what `serve` expects: the prediction, its interval and floor, and no error in any group."""
    tasks, predictions, differ = [], [], []
    for point in points():
        seen = {key: point.served[key] for key in ("ttft_s", "tpot_s", "tok_per_s_chip")}
        row = replace(point.task.row, **seen)
        tasks.append(replace(point.task, row=row))
        predictions.append(replace(point.prediction, row=row))
        for residual in residuals(tasks[-1:], predictions[-1:]):
            key = f"{residual.quantity}_s" if residual.quantity in ("ttft", "tpot") else "tok_per_s_chip"
            differ += equal(f"{point.name} {residual.quantity}", residual.predicted, point.served[key])
            if residual.quantity in ("ttft", "tpot"):
                for end, suffix in (("floor", "_floor_s"), ("lo", "_lo_s"), ("hi", "_hi_s")):
                    differ += equal(
                        f"{point.name} {residual.quantity} {end}", getattr(residual, end), point.served[residual.quantity + suffix]
                    )
    found = score(tasks, predictions)
    assert {residual.quantity for residual in found.residuals} >= {"ttft", "tpot"} and found.rows == 30
    assert not differ
    assert all(group.stats.median_error < EXACTLY and group.stats.coverage == 1 for group in found.groups)


@pytest.mark.parametrize("at", range(30))
def test_plan__pinned_layout_and_batch_equals_serve(at: int) -> None:
    point = points()[at]
    setup, layout = point.task.setup, point.task.setup.layout
    ways = {name: int(getattr(layout, name)) for name in ("tp", "ep", "dp", "pp", "cp")} | {"replicas": setup.replicas}
    formats = {"weights": setup.precision.weights, "kv": setup.precision.kv, "compute": setup.precision.compute}
    load = Load(prompt=int(point.task.prompt or 0), output=int(point.task.output or 0))
    users = int(point.task.concurrency or 0) // setup.replicas
    answer = plan(setup.model, setup.system, load, ways=ways, batch=users, assumptions=asked(point.task)["assumptions"],
                  elasticities=False, **formats)  # fmt: skip
    best = answer.table.row(0)
    assert best["fits"] == point.served["fits"]
    if not best["fits"]:  # the memory of the plan's nearest miss, in the same words
        assert answer.fails == "memory"
        return
    differ = [
        line for key, value in point.served.items() if key != "kind" and not isinstance(value, str) for line in equal(key, best[key], value)
    ]
    assert not differ, point.name


# -- relations of the times of one request ------------------------------------------------------------------------------------------


def test_ttft_unloaded__what_a_single_user_meets_and_no_load_beats() -> None:
    differ: list[str] = []
    for point in points():
        setup = point.task.setup
        layout = replace(setup.layout, replicas=setup.replicas)
        alone = serve(setup.model, setup.system, layout, batch=1, precision=setup.precision, **asked(point.task)).row(0)
        differ += equal(f"{point.name} alone", alone["ttft_s"], alone["ttft_unloaded_s"])
        differ += equal(f"{point.name} at any load", point.served["ttft_unloaded_s"], alone["ttft_unloaded_s"])
        differ += equal(f"{point.name} decode alone", alone["tpot_s"], alone["tpot_decode_s"])
        assert point.served["ttft_s"] >= point.served["ttft_unloaded_s"] >= point.served["ttft_floor_s"], point.name
        assert point.served["tpot_s"] >= point.served["tpot_decode_s"] >= alone["tpot_decode_s"] * (1 - EXACTLY), point.name
    assert not differ


def test_ttft_unloaded__equals_the_answer_for_a_context_of_the_prompt() -> None:
    for point in points():
        setup = point.task.setup
        taken = asked(point.task)["assumptions"]
        row = serve(setup.model, setup.system, setup.layout, context=point.task.prompt, precision=setup.precision, assumptions=taken).row(0)
        assert row["ttft_s"] == pytest.approx(point.served["ttft_unloaded_s"], rel=EXACTLY), point.name


def test_closed_loop__littles_law() -> None:
    """Users = rate x (TTFT + the further tokens at TPOT), waits for a seat included; the rate times the output is the tokens' rate."""
    for point in points():
        row = point.served
        assert row["concurrency"] == pytest.approx(row["capacity_req_per_s"] * row["e2e_s"], rel=1e-9), point.name
        assert row["e2e_s"] == pytest.approx(row["ttft_s"] + (row["output"] - 1) * row["tpot_s"], rel=EXACTLY), point.name
        assert row["tok_per_s"] == pytest.approx(row["capacity_req_per_s"] * row["output"], rel=EXACTLY), point.name


def test_tpot__decode_steps_and_the_prefill_of_others_share_a_replica() -> None:
    """With almost no prompt the two meanings of TPOT meet; prompts add to the mean and not to the decode steps alone."""
    load: dict[str, Any] = {"batch": 32, "output": 500, "assumptions": defaults(Assumptions, {"engine": "none"})}
    short, long = (serve("llama-3.1-70b", "8xh100-sxm", Layout(tp=8), prompt=prompt, **load).row(0) for prompt in (1, 4000))
    assert short["tpot_s"] == pytest.approx(short["tpot_decode_s"], rel=0.03)
    assert long["tpot_s"] > 1.2 * long["tpot_decode_s"]
    assert long["tpot_decode_s"] < 1.2 * short["tpot_decode_s"]  # 32 caches of 4000 tokens more: 42 of the 141 GB of weights over 8 chips

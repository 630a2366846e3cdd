"""Steps without CUDA graphs: never faster, as slow as the host launches, in every verb alike; refused where no graph is replayed."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from headway.core.schema import defaults
from headway.hardware.system import system
from headway.laws.step.coefficients import StepCoefficients
from headway.laws.step.step import step_s
from headway.performance.achieved import efficiencies, platform
from headway.performance.assumptions import Assumptions
from headway.serving.serve import PARTS, checked_load, deployment
from headway.simulation.step_time import pace_of
from support.cases import Point, drawn
from support.each import for_each

LLAMA = Point("llama-3.1-8b", "h100-sxm").but(batch=1, context=1024)
POINTS = [drawn(seed) for seed in range(3000, 3040)]
LAUNCH = {
    "vllm": "--enforce-eager", "sglang": "--disable-decode-cuda-graph --disable-prefill-cuda-graph", "trtllm": "cuda_graph_config: null",
}  # fmt: skip


def compiled(point: Point) -> StepCoefficients:
    load: dict[str, Any] = dict(point.load)
    case = deployment(point.model, point.system, point.layout, checked_load(**load), assumptions=defaults(Assumptions, dict(point.assumed)))
    return case.at(point.layout, case.load).compiled().step


def pair(point: Point, **assumptions: Any) -> list[dict[str, Any]]:
    return [point.assuming(eager=eager, **assumptions).row() for eager in (False, True)]


@for_each(POINTS)
def test_step__meets_the_host_that_launches_its_kernels(point: Point) -> None:
    engine = random.Random(str(point)).choice(("vllm", "sglang", "trtllm", "other"))
    graphs, eager = pair(point, engine=engine)
    host = (eager["step_s"] ** 2 - graphs["step_s"] ** 2) ** 0.5
    kind = platform(system(point.system).chip)
    each, routed = (float(efficiencies().engine(engine, kind, key)) for key in ("prompt_launch_s", "prompt_routed_s"))
    step = compiled(point)
    latent = float(step.latent_layers) * float(step.achieved.host_latent)
    assert host == pytest.approx(float(step.launches) * each + float(step.routed_layers) * routed + latent, rel=1e-6)
    assert eager["step_floor_s"] == graphs["step_floor_s"] and eager["ttft_unloaded_s"] >= graphs["ttft_unloaded_s"]
    assert eager["overhead_s"] - graphs["overhead_s"] == pytest.approx(eager["step_s"] - graphs["step_s"], rel=1e-9)
    same = [part for part in PARTS if part != "overhead_s"]
    assert [eager[part] for part in same] == [graphs[part] for part in same]


def test_step__large_batches_hide_the_host() -> None:
    shares = [eager["step_s"] / graphs["step_s"] for graphs, eager in (pair(LLAMA.but(batch=batch)) for batch in (1, 64, 1024, 16384))]
    assert shares == sorted(shares, reverse=True) and shares[0] > 1.5 and shares[-1] < 1.01


@pytest.mark.parametrize("model", ["llama-3.1-8b", "qwen3-30b-a3b"])
def test_simulator__takes_the_same_step(model: str) -> None:
    step = compiled(Point(model, "h100-sxm").assuming(eager=True, engine="vllm"))
    pace = pace_of(step, 8, 4096.0)
    for at in ((1.0, 900.0, 0.0, 0.0, 1.0), (7.0, 9000.0, 0.0, 0.0, 1.0), (3.0, 900.0, 200.0, 20_000.0, 1.0)):
        assert pace.step(*at) == pytest.approx(float(step_s(step, *at[:4])), rel=1e-12)


@pytest.mark.parametrize("engine", LAUNCH)
def test_plan__launch_line_turns_graphs_off(cli: Any, engine: str) -> None:
    plan = ("plan", "llama-3.1-8b", "--on", "h100-sxm", "--launch", engine)
    assert LAUNCH[engine] in " ".join(cli.json(*plan, "--eager")["launch"])
    assert LAUNCH[engine] not in " ".join(cli.json(*plan)["launch"])


@pytest.mark.parametrize("verb", ["serve", "sim"])
@pytest.mark.parametrize("flags", [("--engine", "none"), ("--engine", "llamacpp"), ("--overlap", "full")])
def test_eager__refused_where_nothing_is_replayed(cli: Any, verb: str, flags: tuple[str, ...]) -> None:
    load = ("--users", "2") if verb == "sim" else ()
    answer = cli(verb, "llama-3.1-8b", "--on", "h100-sxm", "--eager", *load, *flags)
    assert answer.status == 2 and answer.err.startswith("headway: --eager: got 'on'; wants no --eager") and answer.err.count("\n") == 1


def test_score__run_without_graphs_is_told_what_graphs_would_give(cli: Any, tmp_path: Any) -> None:
    run = {
        "backend": "vllm", "model_id": "Qwen/Qwen3-14B", "num_prompts": 20, "completed": 20, "max_concurrency": 1, "request_rate": "inf",
        "total_input_tokens": 320_000, "total_output_tokens": 4000, "duration": 150.0, "mean_ttft_ms": 3300.0, "mean_tpot_ms": 20.63,
    }  # fmt: skip
    path = tmp_path / "bench.json"
    path.write_text(json.dumps(run))
    asked = ("score", "--vllm", str(path), "--on", "a100-sxm-80", "--tp", "1", "--weights", "int4_g128")
    plain, eager = cli.json(*asked), cli.json(*asked, "--eager")
    assert "memory" in plain["answer"] and "engine overhead" in eager["answer"]
    best = eager["helps"][0]
    assert best["change"] == "CUDA graphs (without --enforce-eager)" and "--eager" not in best["effect"]
    assert all("--eager" in other["effect"] for other in eager["helps"][1:])


def test_capacity__memory_of_graphs_holds_a_cache_instead(cli: Any) -> None:
    asked = ("capacity", "llama-3.1-8b", "--on", "h100-sxm")
    for engine in ("vllm", "trtllm"):
        graphs, eager = (cli.rows(*asked, "--engine", engine, *flags)[0] for flags in ((), ("--eager",)))
        assert eager["kv_room_tokens"] > graphs["kv_room_tokens"] and eager["workspace_bytes_chip"] < graphs["workspace_bytes_chip"]
    answer = cli(*asked, "--engine", "none", "--eager")
    assert answer.status == 2 and "wants an engine that sets memory aside for graphs, which none does not" in answer.err

"""Two pools under own runs, whose factors differ by layout: every column follows the layouts that are paired."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from headway.performance.assumptions import Assumptions
from headway.performance.calibration.in_force import using
from headway.performance.calibration.key import RunKey
from headway.performance.calibration.observation import Observation
from headway.performance.calibration.profile import CalibrationRun, Profile
from headway.performance.layout import Layout
from headway.performance.workload import Load
from headway.serving.plan.candidates import Candidates, compile_candidates
from headway.serving.plan.disaggregate import best_pair, sides
from headway.serving.plan.problem import Goal
from headway.serving.serve import deployment
from support.command import Cli

TWICE = 2.0  # as many requests come at once at a run's start as predicted, with tp 8
LAYOUTS = [Layout(tp=tp, pp=pp) for tp, pp in ((8, 1), (1, 1), (4, 1), (2, 1), (2, 2), (1, 2))]


def profile() -> Profile:
    """Runs of tp=8 that found a fuller start and nothing else, so often that nothing is left open."""
    key = RunKey(model="llama-3.1-8b", chip="h100_sxm", chips=8, layout="tp=8", weights="bf16", kv="bf16", engine="vllm")
    seen = Observation(run="full:it", key=key, month="", quantity="ttft", slopes=(0.0, 0.0, 0.0, 1.0, 0.0), excess=math.log(TWICE))
    run = CalibrationRun(id="it", file="", hash="", date="", cells=(), observations=(seen,) * 400)
    return Profile(name="full", runs=(run,), headway="", facts="")


def compiled(*layouts: Layout) -> Candidates:
    """These layouts of one deployment, by the runs."""
    columns = {key: np.array([[getattr(layout, key)] for layout in layouts]) for key in ("tp", "ep", "dp", "pp", "cp", "replicas")}
    with using((profile(),)):
        case = deployment("llama-3.1-8b", "8xh100-sxm", Layout(), Load(prompt=2000, output=300), assumptions=Assumptions(engine="vllm"))
        return compile_candidates(case, Layout(**columns), len(layouts))


@pytest.mark.parametrize("goal", [Goal(users=64), Goal(rate=5.0), Goal(), Goal(objective="latency")])
def test_best_pair__of_layouts_with_unlike_starts_is_the_best_of_each_pair_alone(goal: Goal) -> None:
    w = compiled(*LAYOUTS)
    starts = [float(np.squeeze(compiled(layout).server.scheduling.first_round_share)) for layout in LAYOUTS]
    assert starts[0] > 1.2 * starts[1], "the runs tell the measured layout from the others"
    looks = list(sides([w], goal, 0.05))
    for first, second in looks:
        assert first.beginning.tolist() == pytest.approx([starts[row] for row in first.row])
        assert len(first.row) > 1 and len(second.row) > 1
        places = itertools.product(range(len(first.row)), range(len(second.row)))
        alone = [best_pair(first.take(np.array([a])), second.take(np.array([b])), goal) for a, b in places]
        together = best_pair(first, second, goal)
        assert together is not None and together.key == pytest.approx(min(pair.key for pair in alone if pair is not None))
    assert looks


@pytest.mark.slow
@pytest.mark.parametrize("load", [("--users", 64), ("--users", 64, "--kv", "bf16"), (), ("--objective", "latency")])
def test_plan__by_runs_of_one_layout_searches_all_layouts(cli: Cli, load: tuple[object, ...]) -> None:
    question = ("plan", "llama-3.1-8b", "--on", "8xh100-sxm", "--engine", "vllm", *load, "--disaggregate", "only", "-o", "json")
    with using((profile(),)):
        row = cli(*question).rows[0]
    assert row["tpot_s"] > 0

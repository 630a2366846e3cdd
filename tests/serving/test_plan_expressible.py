"""A plan for an engine: its best layout is one that the engine can express, unless the user pins another."""

from __future__ import annotations

from typing import Any

import pytest

from headway.core.quantity import user_input
from headway.models.config import model
from headway.performance.assumptions import Assumptions
from headway.performance.layout import Layout
from headway.performance.workload import Load
from headway.serving.launch.launch import launch
from headway.serving.plan.plan import LayoutPlan
from support.one_pool import plan

pytestmark = pytest.mark.slow

MODEL = "gpt-oss-20b"  # 64 heads, 8 KV heads, 32 experts of width 2880
ONE_STAGE = {"pp": 1, "cp": 1}


def planned(engine: str, machine: str = "4xh100-sxm", name: str = MODEL, **more: Any) -> LayoutPlan:
    """A plan without what 1 % of each input changes."""
    more = {"ways": ONE_STAGE, "frontier": False} | more
    load = Load(prompt=4000, output=1000)
    return plan(name, machine, load, assumptions=Assumptions(engine=engine), kv="fp8", elasticities=False, **more)


def left_out(answer: LayoutPlan) -> list[str]:
    return [note for note in answer.notes if "cannot express" in note]


def test_plan__layouts_that_vllm_cannot_express_are_counted() -> None:
    """By hand: (tp, dp) on 4 chips gives 16 layouts; ep must be 1 or all chips, so ep=2 of 4 chips goes for (1,4), (2,2) and (4,1)."""
    (note,) = left_out(planned("vllm"))
    assert note.startswith("left out 3 of 16 layouts that vLLM cannot express, such as ep=2 dp=4")
    assert left_out(planned("other")) == [] == left_out(planned("none"))


@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm"])
def test_plan__rows_are_expressible(engine: str) -> None:
    answer = planned(engine, ways=None, frontier=True)
    for row in answer.rows():
        layout = Layout(**{key: user_input(int(row[key]), key) for key in ("tp", "ep", "dp", "pp", "cp", "replicas")})
        assert launch(engine, model(MODEL), layout).unsupported == "", row["kind"]


def test_plan__best_of_no_engine_may_be_beyond_one() -> None:
    """TensorRT-LLM's attention is all tensor parallel or all data parallel; Qwen3-235B on 8 H200 does best with tp=4 dp=2."""
    free, bound = planned("other", "8xh200-sxm", "qwen3-235b-a22b"), planned("other", "8xh200-sxm", "qwen3-235b-a22b", launch="trtllm")
    assert free.best.case.layout.tp > 1 and free.best.case.layout.dp > 1
    assert bound.best.case.layout.tp == 1 or bound.best.case.layout.dp == 1
    assert bound.best.value >= free.best.value, "fewer layouts cannot be cheaper"
    assert len(left_out(bound)) == 1


def test_plan__pinned_layout_stays_best_and_is_noted() -> None:
    answer = planned("vllm", ways=ONE_STAGE | {"tp": 4, "ep": 2})
    assert (answer.best.case.layout.tp, answer.best.case.layout.ep) == (4, 2)
    assert left_out(answer) == [
        "vLLM cannot express the layout asked for: expert parallelism is off (ep=1) or over all tp*cp*dp = 4 chips, not 2"
    ]

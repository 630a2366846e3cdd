"""The plainest layout of those nearly as good as the best: the rules of plain layouts by hand, and what `--plainest off` changes."""

from __future__ import annotations

import numpy as np

from headway.performance.layout import Layout
from headway.performance.workload import Load
from headway.serving.plan.candidates import PLAIN_WITHIN, compile_candidates, oddness
from headway.serving.serve import checked_load, deployment
from support.one_pool import plan


def broken_rules(name: str, machine: str, *layouts: Layout) -> list[int]:
    """How many rules of plain layouts each of these breaks."""
    columns = {key: np.array([[getattr(layout, key)] for layout in layouts]) for key in ("tp", "ep", "dp", "pp", "cp", "replicas")}
    asked = deployment(name, machine, Layout(), checked_load(prompt=1000, output=100))
    return oddness(compile_candidates(asked, Layout(**columns), len(layouts)))[:, 0].tolist()


def test_oddness__rules_by_hand() -> None:
    """256 experts and nodes of 72 chips: 9 is no power of two and divides no experts; 70 chips leave two of a node idle."""
    layouts = (
        Layout(tp=8, ep=8), Layout(dp=72, ep=72), Layout(dp=2, ep=2, pp=4), Layout(dp=9, ep=9), Layout(tp=2, dp=35, ep=70)
    )  # fmt: skip
    assert broken_rules("deepseek-v3", "gb200-nvl72", *layouts) == [0, 1, 1, 3, 4]
    assert broken_rules("llama-3.1-8b", "8xh100-sxm", Layout(), Layout(pp=2), Layout(tp=8), Layout(pp=3)) == [0, 1, 0, 3]


def test_plan__pipeline_gives_way_to_plain_replicas_nearly_as_cheap() -> None:
    load = Load(prompt=100, output=4000)
    plain, cheapest = (
        plan("qwen3-32b", "8xh100-sxm", load, elasticities=False, frontier=False, plainest=plainest) for plainest in (True, False)
    )
    assert (plain.best.case.layout.pp, plain.best.case.layout.tp) == (1, 4)
    assert cheapest.best.case.layout.pp > 1
    assert 1 < plain.answer["value"] / cheapest.answer["value"] < 1 + PLAIN_WITHIN


def test_plan__small_model_is_neither_split_nor_staged() -> None:
    """A model of 16 GB on chips of 80 GB."""
    best = plan("llama-3.1-8b", "8xh100-sxm", Load(prompt=1000, output=300), elasticities=False, frontier=False).best.case.layout
    assert str(best) == "tp=1" and best.replicas == 8

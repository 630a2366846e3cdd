"""One pool against prefill apart: the better by the objective, both in rows, and where a machine cannot part them."""

from __future__ import annotations

import dataclasses
import random
from typing import Any

import pytest

from headway.core.errors import BadValue, UnknownName
from headway.core.schema import defaults
from headway.hardware.system import System, system
from headway.performance.assumptions import Assumptions
from headway.performance.workload import Load
from headway.serving.plan.plan import LayoutPlan, plan
from headway.serving.plan.sensitivity import request_parts

CHAT = Load(prompt=2000, output=300)
MACHINES = ("8xh200-sxm", "4xl40s", "8xb200")
SEED = 20261126


def value(answer: LayoutPlan) -> float:
    """The objective, less is better; infinite where no layout keeps the limits."""
    if answer.fails:
        return float("inf")
    return float(answer.answer["value"]) * (-1 if answer.objective in ("throughput", "latency") else 1)


@pytest.mark.parametrize("seed", range(4))
def test_auto__is_the_better_of_only_and_never(seed: int) -> None:
    dice = random.Random(SEED + seed)
    load = Load(prompt=round(10 ** dice.uniform(2, 4.3)), output=round(10 ** dice.uniform(1, 3.3)))
    limits: dict[str, Any] = {"tpot": dice.choice((None, 0.02, 0.05)), "ttft": dice.choice((None, 1.0))}
    asked = dice.choice(("llama-3.1-8b", "qwen3-32b", "gpt-oss-120b")), dice.choice(MACHINES), load
    objective = dice.choice(("cost", "throughput", "latency"))
    ways = {way: plan(*asked, **limits, objective=objective, disaggregate=way, elasticities=False) for way in ("auto", "only", "never")}
    assert value(ways["auto"]) == min(value(ways["only"]), value(ways["never"])), (seed, asked, limits, objective)
    best, other = ways["auto"].rows()[:2]
    if value(ways["only"]) < float("inf") and value(ways["never"]) < float("inf"):
        assert {best["kind"], other["kind"]} == {"best", "apart" if best.get("prefill_replicas") is None else "together"}
        ratio = value(ways["never"]) / value(ways["only"]) if objective == "cost" else value(ways["only"]) / value(ways["never"])
        assert other["gain"] == pytest.approx(ratio if best.get("prefill_replicas") is not None else 1 / ratio, rel=1e-9)
        assert other["gain"] >= 1 - 1e-9


def test_rows__none_that_keeps_every_limit_is_cheaper_than_the_best() -> None:
    answer = plan("deepseek-v3", "gb200-nvl72", Load(prompt=8000, output=1000), ttft="2s", tpot="50ms", elasticities=False)
    rows = [row for row in answer.rows() if row["fits"] and not row["why"]]
    assert rows[0]["prefill_replicas"] is not None and rows[1]["kind"] == "together"
    assert all(row["ttft_s"] <= 2 and row["tpot_s"] <= 0.05 for row in rows)
    cost = {row["kind"]: row["chips"] / row["capacity_req_per_s"] for row in rows[1::-1]}
    assert rows[1]["gain"] == pytest.approx(cost["together"] / cost["best"], rel=1e-9)
    assert float(answer.explain("gain", 1)) == pytest.approx(rows[1]["gain"], rel=1e-12)
    assert min(row["chips"] / row["capacity_req_per_s"] for row in rows) >= cost["best"] * (1 - 1e-9)


def alone(name: str) -> System:
    """A machine whose chips have no link."""
    machine = system(name)
    chip = dataclasses.replace(machine.chip, scale_up_bw=None)
    return dataclasses.replace(machine, chip=chip, scale_up_bw=None)


CANNOT: dict[str, tuple[Any, Load, dict[str, Any]]] = {
    "one chip": ("1xh200-sxm", CHAT, {}),
    "no link": (alone("8xh200-sxm"), CHAT, {"ways": {"tp": 1, "pp": 1, "dp": 1, "ep": 1}}),
    "one token": ("8xh200-sxm", Load(prompt=2000, output=1), {}),
    "replicas": ("8xh200-sxm", CHAT, {"ways": {"replicas": 2}}),
    "engine": ("8xh200-sxm", CHAT, {"assumptions": defaults(Assumptions, {"engine": "llamacpp"})}),
}


@pytest.mark.parametrize("case", CANNOT)
def test_auto__is_never_where_pools_cannot_part(case: str) -> None:
    machine, load, rest = CANNOT[case]
    auto, never = (
        plan("llama-3.1-8b", machine, load, **rest, elasticities=False, frontier=False, disaggregate=way) for way in ("auto", "never")
    )
    assert auto.rows() == never.rows() and auto.notes == never.notes


def test_only__with_replicas_of_one_pool_is_refused() -> None:
    with pytest.raises(BadValue, match="--replicas"):
        plan("llama-3.1-8b", "8xh200-sxm", CHAT, disaggregate=True, ways={"replicas": 2})
    with pytest.raises(UnknownName, match="auto, only, never"):
        plan("llama-3.1-8b", "8xh200-sxm", CHAT, disaggregate="both")


def test_parts__of_two_pools_are_all_chip_time_of_a_request() -> None:
    answer = plan("llama-3.1-70b", "8xh200-sxm", CHAT, tpot="50ms", disaggregate="only", elasticities=False, frontier=False)
    row = answer.rows()[0]
    assert sum(request_parts(answer.best).values()) == pytest.approx(row["chips"] / row["capacity_req_per_s"], rel=1e-9)
    first_token = row["chips"] / row["capacity_req_per_s"] / 300  # which the prefill pool makes
    assert min(request_parts(answer.best).values()) >= -first_token


def test_slopes__of_two_pools_are_told_and_no_lever_that_a_command_would_not_give() -> None:
    answer = plan("llama-3.1-70b", "8xh200-sxm", CHAT, tpot="50ms", frontier=False)
    slopes = {row["input"]: row["elasticity"] for row in answer.rows() if row["kind"] == "elasticity"}
    assert answer.best.prefill is not None and answer.levers == ()
    assert slopes["chip.peak"] > 0.1 and slopes["chip.hbm_bw"] > 0.1 and slopes["fixed"] < 0

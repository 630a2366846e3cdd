"""Prefix-cache hits and speculation: nothing at their defaults, limits, and the same numbers worked out apart."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace
from typing import Any

import pytest

from headway.core.errors import HeadwayError
from headway.core.formula import anonymous, replay
from headway.core.quantity import user_input
from headway.core.schema import defaults
from headway.hardware.edit import edit
from headway.hardware.system import system
from headway.laws.serving.request import expected_accept_length
from headway.laws.step.coefficients import OVERLAPS
from headway.models import config
from headway.models.variants import override
from headway.models.work import works
from headway.performance.assumptions import Assumptions
from headway.performance.layout import Layout
from headway.performance.workload import Load
from headway.serving.plan.plan import plan
from headway.serving.serve import serve

CHAT = Load(prompt=8000, output=1000)


def point(layout: Layout, name: str = "llama-3.1-70b", machine: str = "8xh100-sxm", **taken: Any) -> dict[str, Any]:
    load: dict[str, Any] = {"batch": 64, "prompt": 8000, "output": 1000}
    return serve(name, machine, layout, **load, assumptions=defaults(Assumptions, taken)).row(0)


def test_prefix_hits_and_speculation__defaults_change_nothing() -> None:
    tp8 = Layout(tp=8)
    assert point(tp8) == point(tp8, hit_rate=0, accept_length=1)


def test_ttft__the_rest_of_a_prompt_is_prefilled() -> None:
    """TTFT at a hit rate: the last tokens of a prompt as a chunk, which the prefill of the whole and of its start bracket."""
    bare: dict[str, Any] = {"engine": "none"}  # an engine's own work on a request does not shrink
    none, half = point(Layout(tp=8), **bare), point(Layout(tp=8), hit_rate=0.5, **bare)
    start = serve(
        "llama-3.1-70b", "8xh100-sxm", Layout(tp=8), batch=64, prompt=4000, output=1000, assumptions=defaults(Assumptions, bare)
    ).row(0)
    alone = "ttft_unloaded_s"
    assert start[alone] < half[alone] < none[alone] - 0.9 * start[alone]
    assert half["kv_bytes_chip"] == none["kv_bytes_chip"] and half["ttft_s"] < none["ttft_s"]
    assert half["tpot_s"] < none["tpot_s"] and half["tok_per_s"] > none["tok_per_s"]  # others' prompts are shorter
    assert half["tpot_decode_s"] >= none["tpot_decode_s"]  # more of the users decode at once


@pytest.mark.parametrize(("tp", "pp", "dp"), [(2, 1, 1), (2, 4, 1), (1, 2, 4)])
def test_prefix_hit__in_hbm_costs_no_load(tp: int, pp: int, dp: int) -> None:
    """A host link twice as fast changes what a prefix outside HBM costs, and with it the division of a request's cost, no time."""
    machine, taken = system("8xh100-sxm"), defaults(Assumptions, {"hit_rate": user_input(0.9, "hit_rate")})
    rows = []
    for link in (50e9, 100e9):
        edited = edit(machine, "chip.host_link_bw", link)
        rows.append(serve("llama-3.1-70b", edited, Layout(tp=tp, pp=pp, dp=dp), batch=64, prompt=8000, output=1000, assumptions=taken))
    slow, fast = (table.row(0) for table in rows)
    assert {key for key in slow if slow[key] != fast[key]} == {key for key in slow if key.startswith("usd_per_mtok_")}
    for other in ("in", "out"):  # what the cached tokens are charged, the others are not
        shares = [row["usd_per_mtok_cached"] / row[f"usd_per_mtok_{other}"] for row in (slow, fast)]
        assert shares[0] == pytest.approx(2 * shares[1], rel=1e-12)
    assert any("prefix hits are in HBM" in note for note in rows[0].notes)


MODELS = ("llama-3.1-8b", "llama-3.1-70b", "deepseek-v3.2", "qwen3-next-80b-a3b", "gpt-oss-120b", "mistral-7b-v0.1", "minimax-m1-80k")
MACHINES = ("8xh100-sxm", "8xmi300x", "16xh200", "8xb200", "8xa100-sxm-80", "tpu-v5p-4x4x4")


@pytest.mark.parametrize("seed", range(10))
def test_ttft__never_rises_with_the_hit_rate(seed: int) -> None:
    """Expected value and floor, over random models, machines, layouts, prompts, step models and shared KV caches."""
    rng = random.Random(seed)
    for _ in range(12):
        model = config.model(rng.choice(MODELS))
        shared = rng.choice(("", "", "4", "8"))
        layout = Layout(tp=rng.choice((1, 2, 4, 8)), dp=rng.choice((1, 2)), pp=rng.choice((1, 2)), cp=rng.choice((1, 2)))
        if any(block.experts for block in works(model)):
            layout = replace(layout, ep=layout.tp * layout.dp * layout.cp)
        prompt, taken = int(10 ** rng.uniform(0, 5.5)), {"overlap": rng.choice(tuple(OVERLAPS)), "engine": rng.choice(("other", "vllm"))}
        rates = sorted(rng.uniform(0, 0.95) for _ in range(3))
        machine, subject = rng.choice(MACHINES), override(model, "", shared) if shared else model
        rows = [
            serve(subject, machine, layout, prompt=prompt, output=100, assumptions=defaults(Assumptions, taken | {"hit_rate": rate})).row(0)
            for rate in (0, *rates)
        ]
        for key in ("ttft_floor_s", "ttft_s"):
            times = [row[key] for row in rows]
            for before, after in itertools.pairwise(times):
                assert after <= before * (1 + 1e-12), (key, model.name, machine, layout, prompt, taken, shared, rates)


@pytest.mark.parametrize("name", ["llama-3.1-70b", "mistral-7b-v0.1", "qwen3-next-80b-a3b", "deepseek-v3.2"])
def test_ttft__falls_with_the_hit_rate(name: str) -> None:
    machine = "8xh200-sxm"
    layout = Layout(tp=2, dp=4, ep=8) if name.startswith(("deepseek", "qwen")) else Layout(tp=2)
    ttft = [point(layout, name, machine, hit_rate=rate)["ttft_s"] for rate in (0, 0.3, 0.6, 0.95)]
    assert ttft == sorted(ttft, reverse=True)


def test_draft_cost__share_of_the_step_that_verifies() -> None:
    """Of one user, exactly: 1.2 steps of three tokens' work each give 2.5 tokens; prompts and the first token wait no longer."""
    load: dict[str, Any] = {"batch": 1, "prompt": 8000, "output": 1000}
    none, free, two = (serve("llama-3.1-70b", "8xh100-sxm", Layout(tp=8), **load, assumptions=defaults(Assumptions, taken)).row(0)
                       for taken in ({}, {"accept_length": 2.5, "draft_cost": 0}, {"accept_length": 2.5, "draft_cost": 0.2}))  # fmt: skip
    for key in ("tpot_s", "tpot_decode_s"):
        assert two[key] == pytest.approx(free[key] * 1.2, rel=1e-12)
        assert none[key] / 2.5 < free[key] < none[key] / 2.5 * 1.2  # it verifies three tokens, and reads the weights once
    assert two["ttft_s"] == none["ttft_s"] and two["tpot_floor_s"] >= none["tpot_floor_s"] / 2.5 * (1 - 1e-12)


def test_expected_accept_length__geometric_sum() -> None:
    for rate, drafted in ((0.3, 1), (0.8, 4), (0.95, 7)):
        assert expected_accept_length(rate, drafted) == pytest.approx(sum(rate**i for i in range(drafted + 1)), rel=1e-12)


@pytest.mark.parametrize("taken", [{"hit_rate": 0.7}, {"accept_length": 1.8}])
def test_plan__evaluates_prefix_hits_and_speculation_as_its_row(taken: dict[str, Any]) -> None:
    assumed = defaults(Assumptions, {name: user_input(value, name) for name, value in taken.items()})
    answer = plan("deepseek-v3", "8xh200-sxm", CHAT, tpot="30ms", ttft="2s", assumptions=assumed, elasticities=False)
    best = answer.table.row(0)
    cost = best["chips"] / best["capacity_req_per_s"]
    assert not answer.infeasible and best["tpot_s"] <= 0.03 * (1 + 1e-12)
    price = answer.best.case.price
    assert price and answer.answer["value"] == pytest.approx(price.value * cost, rel=1e-9)
    for key in ("ttft_s", "tpot_s", "tpot_decode_s", "e2e_s", "capacity_req_per_s"):
        tree = answer.explain(key)
        assert anonymous(tree) == [] and float(replay(tree)) == pytest.approx(best[key], rel=1e-12)


@pytest.mark.parametrize("taken", [{"hit_rate": 1.01}, {"hit_rate": -0.1}, {"accept_length": 0.5}, {"draft_cost": -1}])
def test_assumptions__illegal_hit_rate_accept_length_and_draft_cost(taken: dict[str, float]) -> None:
    from headway.core.schema import fields

    name, value = next(iter(taken.items()))
    assert fields(Assumptions)[name][0].illegal(value)


def test_serve__rate_is_not_an_argument() -> None:
    with pytest.raises(HeadwayError):
        serve("llama-3.1-70b", "8xh100-sxm", batch=1, context=1000, rate=3.0)


def test_speculation__saves_no_arithmetic() -> None:
    """Where compute binds, four accepted tokens cost four tokens' arithmetic: no faster than one token's compute, floor included."""
    taken = defaults(Assumptions, {"accept_length": 4})
    row = serve("llama-3.1-70b", "8xh100-sxm", Layout(tp=8), batch=1024, context=1500, assumptions=taken).row(0)
    flop = 1024 * 2 * (70_553_706_496 - 128_256 * 8192) / 8  # every matrix but the embedding, attention left out
    assert 1024 / row["decode_tok_per_s_hi"] >= flop / 989.4e12
    assert row["decode_tok_per_s_lo"] <= row["decode_tok_per_s"] <= row["decode_tok_per_s_hi"]
    assert 4 * 1024 / row["decode_tok_per_s"] > row["compute_s"]

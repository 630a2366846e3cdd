"""Fresh input, cached input and output together cost what the machine costs while it serves a request; and one interval in every verb."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from headway.core.schema import defaults
from headway.economics.price.price import price
from headway.models import config
from headway.models.work import works
from headway.performance.assumptions import Assumptions
from headway.performance.layout import Layout, illegal, shape
from headway.performance.workload import Load
from headway.serving.plan.plan import plan
from headway.serving.serve import serve

SEED = 20261127
MODELS = ("llama-2-7b", "llama-3.1-8b", "llama-3.1-70b", "qwen3-30b-a3b", "deepseek-v3", "gpt-oss-120b", "minimax-m1-80k")
MACHINES = ("8xh100-sxm", "16xh200", "8xmi300x", "8xb200")
HITS = (0.0, 0.3, 0.9, 0.97)
POINTS = 12  # of a drawn layout


def machine_usd(row: dict[str, Any]) -> float:
    """Price of the machine over its requests in the same time."""
    return float(row["usd_per_hour"] / 3600 / (row["tok_per_s"] / row["output"]))


def tokens_usd(row: dict[str, Any], hit: float) -> float:
    """A request's tokens at the prices of their kinds."""
    fresh = row["prompt"] * (1 - hit)
    counts = {"in": fresh, "cached": row["prompt"] - fresh, "out": row["output"]}
    return sum(float(row[f"usd_per_mtok_{kind}"] or 0) * float(count) for kind, count in counts.items()) / 1e6


def test_serve__three_prices_pay_for_the_machine() -> None:
    """Closed loops and arrivals, 500 rows: to 1e-12."""
    dice, rows = random.Random(SEED), 0
    while rows < 500:
        model, hit = config.model(dice.choice(MODELS)), dice.choice(HITS)
        layout = Layout(tp=dice.choice((1, 2, 4, 8)), dp=dice.choice((1, 2)), pp=dice.choice((1, 2)))
        if any(block.experts for block in works(model)):
            layout = Layout(tp=layout.tp, dp=layout.dp, pp=layout.pp, ep=layout.tp * layout.dp)
        if illegal(layout, shape(works(model))) or layout.tp * layout.dp * layout.pp > 8:
            continue
        prompts = np.array([int(10 ** dice.uniform(1, 4.5)) for _ in range(POINTS)])
        load = {"rate": dice.uniform(0.01, 0.2)} if dice.random() < 0.4 else {"batch": int(10 ** dice.uniform(0, 2.5))}
        table = serve(model, dice.choice(MACHINES), layout, prompt=prompts, output=int(10 ** dice.uniform(0, 3)), **load,
                      assumptions=defaults(Assumptions, {"hit_rate": hit}))  # fmt: skip
        for row in table.rows():
            if row["fits"] and row["tok_per_s"] and np.isfinite(row["tok_per_s"]):
                assert tokens_usd(row, hit) == pytest.approx(machine_usd(row), rel=1e-12), (SEED, model.name, layout, load, hit)
                rows += 1


@pytest.mark.parametrize("split", [False, True])
def test_plan__three_prices_pay_for_the_machine(split: bool) -> None:
    """Every row of a plan that runs: what a thousand requests cost."""
    assumptions = defaults(Assumptions, {"hit_rate": 0.5})
    answer = plan("llama-3.1-8b", "8xh100-sxm", Load(prompt=3000, output=300), tpot="40ms", assumptions=assumptions, disaggregate=split)
    rows = [row for row in answer.table.rows() if row["fits"] and row["usd_per_1k_requests"] and row["kind"] in ("best", "frontier")]
    assert len(rows) > 3
    for row in rows:
        if row.get("prefill_replicas") is None:
            assert tokens_usd(row, 0.5) == pytest.approx(row["usd_per_1k_requests"] / 1000, rel=1e-12)


def test_price__is_what_serve_says_with_the_same_interval() -> None:
    """V3 on 8 H200 by one price of a chip: three costs, their ends, and a request's whole cost."""
    load, layout = {"prompt": 4096, "output": 500}, {"tp": 8, "ep": 8}
    for hit in (0.0, 0.8):
        assumptions = defaults(Assumptions, {"hit_rate": hit})
        served = serve("deepseek-v3", "8xh200", Layout(**layout), batch=64, **load, assumptions=assumptions).row(0)
        ways = {**layout, "pp": 1, "dp": 1}
        sold = price("deepseek-v3", "8xh200", Load(**load), metric="market", hit=hit, batch=64, kv="bf16", ways=ways).row(0)
        for kind in ("in", "cached", "out"):
            for end in ("", "_lo", "_hi"):
                assert sold[f"cost_{kind}{end}"] == pytest.approx(served[f"usd_per_mtok_{kind}{end}"], rel=1e-12), (hit, kind, end)
        assert sold["usd_per_request"] == pytest.approx(machine_usd(served), rel=1e-12)

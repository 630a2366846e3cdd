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
    fresh = max(row["prompt"] * (1 - hit), 1)  # the last prompt token is computed always
    counts = {"in": fresh, "cached": row["prompt"] - fresh, "out": row["output"]}
    return sum(float(row[f"usd_per_mtok_{kind}"] or 0) * float(count) for kind, count in counts.items()) / 1e6


def test_serve__three_prices_pay_for_the_machine() -> None:
    """Closed loops and arrivals, 240 rows: to 1e-12."""
    dice, rows = random.Random(SEED), 0
    while rows < 240:
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


def test_plan__three_prices_pay_for_the_machine() -> None:
    """Every row of drawn plans that runs, prefill apart or not, 80 of them: what a thousand requests cost."""
    dice, count, apart = random.Random(f"{SEED} plans"), 0, 0
    while count < 80:
        hit, lengths = dice.choice(HITS[:3]), Load(prompt=int(10 ** dice.uniform(2, 4.2)), output=int(10 ** dice.uniform(1.5, 3)))
        assumptions, limit = defaults(Assumptions, {"hit_rate": hit}), f"{dice.choice((20, 40, 100))}ms"
        names = dice.choice(("llama-3.1-8b", "qwen3-30b-a3b", "gpt-oss-120b")), dice.choice(MACHINES)
        answer = plan(*names, lengths, tpot=limit, assumptions=assumptions, disaggregate=dice.random() < 0.5)
        for row in answer.table.rows():
            if row["fits"] and row["usd_per_1k_requests"] and row["kind"] in ("best", "frontier"):
                assert tokens_usd(row, hit) == pytest.approx(row["usd_per_1k_requests"] / 1000, rel=1e-12), (SEED, names, lengths, hit)
                count, apart = count + 1, apart + (row.get("prefill_replicas") is not None)
    assert 8 < apart < 72


def test_price__is_what_serve_says_with_the_same_interval() -> None:
    """By one price of a chip, 100 draws: three costs, their ends, and a request's whole cost; every chip of the machine is at work."""
    dice, count = random.Random(f"{SEED} prices"), 0
    while count < 100:
        load, hit = {"prompt": int(10 ** dice.uniform(1, 4.2)), "output": int(10 ** dice.uniform(0.5, 3))}, dice.choice(HITS[:3])
        name, layout = dice.choice((("deepseek-v3", {"tp": 8, "ep": 8}), ("llama-3.1-8b", {"tp": 2}), ("qwen3-32b", {"tp": 4})))
        machine, batch = dice.choice(("8xh200", "8xb200")), int(10 ** dice.uniform(0, 2.3))
        served = serve(name, machine, Layout(**layout, replicas=8 // layout["tp"]), batch=batch, **load,
                       assumptions=defaults(Assumptions, {"hit_rate": hit})).row(0)  # fmt: skip
        if not served["fits"]:
            continue
        degrees = {"ep": 1, **layout, "pp": 1, "dp": 1}
        sold = price(name, machine, Load(**load), metric="market", hit=hit, batch=batch, kv="bf16", ways=degrees,
                     disaggregate="never").row(0)  # fmt: skip
        for kind in ("in", "cached", "out"):
            for end in ("", "_lo", "_hi"):
                asked = SEED, name, machine, layout, batch, load, hit, kind, end
                assert sold[f"cost_{kind}{end}"] == pytest.approx(served[f"usd_per_mtok_{kind}{end}"], rel=1e-12), asked
        assert sold["usd_per_request"] == pytest.approx(machine_usd(served), rel=1e-12)
        count += 1

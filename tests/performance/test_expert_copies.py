"""Copies of busy experts even out what each chip does: bounds that hold for any balancer, and the step that follows."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from headway.laws.collectives.expert_parallel import load_imbalance
from headway.laws.step.layer_terms import expert_load
from support.command import Cli

SEED = 20261125


def busiest_share(load: tuple[float, ...], ep: int, copies: int) -> float:
    """Share of all tokens that the busiest chip works on, as a step counts it."""
    per_chip = -(-(len(load) + copies) // ep)
    return float(load_imbalance(load, ep, copies)) * expert_load(len(load), copies, per_chip, 1)


def test_copies__500_drawn_loads_within_the_bounds_of_any_balancer() -> None:
    rng = random.Random(SEED)
    for _ in range(500):
        experts, ep = rng.choice((8, 60, 64, 128, 256)), rng.choice((2, 4, 8, 16, 32))
        ep = min(ep, experts)
        load = tuple(rng.paretovariate(rng.uniform(0.8, 3)) for _ in range(experts))
        copies = rng.choice((1, ep, 2 * ep, experts))
        share, plain = busiest_share(load, ep, copies), busiest_share(load, ep, 0)
        assert share >= 1 / ep - 1e-12  # the mean
        assert share >= max(load) / (1 + copies) / sum(load) - 1e-12  # a part of the busiest expert
        in_order = max(sum(load[start : start + -(-experts // ep)]) for start in range(0, experts, -(-experts // ep)))
        assert plain == pytest.approx(in_order / sum(load), rel=1e-12)
        if copies >= experts:
            assert share <= plain * (1 + 1e-9)


def test_copies__as_many_as_the_busiest_expert_needs_make_an_even_step() -> None:
    assert busiest_share((8.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 2.0), 8, 8) == pytest.approx(1 / 8, rel=1e-12)


def test_serve__redundant_experts_make_a_measured_load_faster(cli: Cli, tmp_path: Path) -> None:
    rng = random.Random(SEED)
    path = tmp_path / "load.json"
    path.write_text(json.dumps([round(1000 * rng.paretovariate(1.1)) for _ in range(128)]))
    command = f"serve qwen3-30b-a3b --on 8xh100-sxm --dp 8 --ep 8 --prompt 4k --output 200 --batch 2048 --expert-load {path}"
    steps = [cli.rows(f"{command} --redundant {copies}")[0]["ttft_s"] for copies in (0, 8, 64)]
    assert steps[1] < 0.97 * steps[0] and steps[2] <= steps[1] * 1.01

"""Arrivals at a rate: the laws of `serve --rate` against the simulator, on one replica and on several that are dealt to in turn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headway as hw

MODELS = [("llama-3.1-8b", "h100-sxm", 1), ("llama-3.1-70b", "h100-sxm", 8), ("qwen3-32b", "h200", 2), ("llama-3.1-70b", "h200", 4)]
POINTS = 16


@pytest.mark.parametrize("replicas", [1, 4])
def test_open_loop__mean_times_of_the_simulator(replicas: int) -> None:
    """Lengths and loads are drawn. The laws know nothing of the simulation: 5 % in the median point, and no point is off by half."""
    rng = np.random.default_rng(11 + replicas)
    off = []
    for number in range(POINTS):
        model, chip, tp = MODELS[number % len(MODELS)]
        prompt, output = int(rng.choice([500, 1000, 2000, 4000, 8000])), int(rng.choice([200, 400, 800]))
        load, on = float(rng.uniform(0.2, 0.75)), f"{tp * replicas}x{chip}"
        lengths: dict[str, Any] = {"prompt": prompt, "output": output, "tp": tp, "replicas": replicas}
        capacity = hw.serve(model, on=on, rate=0.01, **lengths)["capacity_req_per_s"][0]
        law = hw.serve(model, on=on, rate=load * capacity, **lengths)[0]
        run = hw.sim(model, on=on, rate=load * capacity, requests=2000 * replicas, sensitivity=0, **lengths)[0]
        off.append([law["ttft_s"] / run["mean_ttft_s"] - 1, law["tpot_s"] / run["mean_tpot_s"] - 1])
    errors = np.abs(off)
    assert (np.median(errors, axis=0) < 0.05).all(), np.median(errors, axis=0)
    assert errors.max() < 0.5, errors.max()

"""A rate that was carried, against draws of steps; and that slower steps are a higher rate in another unit of time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from headway.laws.queueing.carried import END, carried_step
from headway.laws.queueing.closed_loop import PROMPTS_2K, capacity, open_loop, step_times
from headway.laws.step.coefficients import LLAMA_70B_TP8
from headway.laws.step.step import step_s


@pytest.mark.parametrize("slack", [3.0, 1.2, 1.0, 0.8])
@pytest.mark.parametrize("share", [0.05, 0.5, 0.95])
def test_carried_step__quantiles_of_draws(slack: float, share: float) -> None:
    draws = np.exp(np.random.default_rng(40).normal(0.0, np.log(1.3) / END, 4_000_000))
    assert float(carried_step(share, 10.0, 10.0 * slack, 1.3, 1.3)) == pytest.approx(
        float(np.quantile(draws[draws < slack], share)), rel=2e-3
    )


def test_carried_step__always_below_the_capacity() -> None:
    rate = np.geomspace(0.01, 1e6, 200)
    steps = carried_step(0.95, rate, 10.0, 1.2, 1.6)
    assert (steps * rate < 10.0).all() and (np.diff(steps) <= 0).all()


@pytest.mark.parametrize("factor", [0.7, 1.0, 1.5])
def test_slower_steps__are_a_higher_rate(factor: float) -> None:
    """All times f times as long at a rate: f times those of the server at f times the rate. And its capacity is less by f."""
    step, loop, rate = step_times(LLAMA_70B_TP8, step_s), replace(PROMPTS_2K, request_overhead_s=0.01), 2.0

    def slower(*load: Any) -> Any:
        return factor * step(*load)

    slow = replace(loop, request_overhead_s=0.01 * factor)
    found, moved = open_loop(slower, slow, rate), open_loop(step, loop, rate * factor)
    assert float(found.tpot) == pytest.approx(factor * float(moved.tpot), rel=1e-6)
    assert float(found.ttft) == pytest.approx(factor * float(moved.ttft), rel=1e-6)
    assert float(capacity(slower, slow)) == pytest.approx(float(capacity(step, loop)) / factor, rel=1e-5)

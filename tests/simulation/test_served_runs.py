"""Real runs replayed: with step times scaled to the measured TPOT, queues and first tokens follow from the scheduler alone."""

from __future__ import annotations

import numpy as np
import pytest

from headway.simulation.results import measured
from support.served_runs import RUNS, curves, replayed


@pytest.mark.parametrize("name", RUNS)
def test_simulate__ttft_of_real_runs(name: str) -> None:
    seen, run = replayed(name)
    ttft = np.mean(seen["first_token_s"] - seen["arrival_s"])
    assert np.mean(measured(run, 0.0).ttft_s) == pytest.approx(ttft, rel=0.15)


@pytest.mark.parametrize("name", RUNS)
def test_simulate__queues_of_real_runs(name: str) -> None:
    seen, run = replayed(name)
    assert run.completed.all()
    for was, now in curves(seen, run):
        if was.max() > 20:  # there was a queue
            assert np.mean(np.abs(now - was)) <= 0.1 * was.max()

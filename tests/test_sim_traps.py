"""What simulators of serving get wrong: one test each."""

from __future__ import annotations

import numpy as np
import pytest

from headway.sim.traffic.record import Traffic
from simulated import play


def test_who_comes_on_the_beat_leaves_with_it() -> None:
    """Multiples of a beat that are rounded to either side of the time that was written."""
    times = np.arange(1, 1000) * 330 / 1000
    run = play(Traffic.of(times, 1, 1), "0.004", departures=0.03)
    assert np.abs(run.scheduled - times).max() < 1e-9
    assert run.finish - run.scheduled == pytest.approx(0.03)

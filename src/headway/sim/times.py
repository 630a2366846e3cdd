"""The four times of each request, as the loop is given them and as it leaves them.

Until it is asked, a request that waits for an answer has its pause in place of its arrival. Until its first token, a request has there
minus the time at which its user gives up, or nothing; whose user gave up keeps that in place of its end.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from headway.sim import state as of

SOON = 1e-9  # seconds: nobody gives up before anything has happened


def initial_times(arrival: Any, later: Any, pause: Any, patience: Any, overhead_s: float) -> Any:
    """Times by request, of which those `later` are asked `pause` after an answer; the engine's own work comes before the first token."""
    times = np.full((len(arrival), 4), np.nan)
    times[:, of.ARRIVAL] = arrival
    if later is not None:
        times[later, of.ARRIVAL] = (0.0 if pause is None else np.asarray(pause, float)[later]) + overhead_s
    if patience is not None:
        known = arrival if later is None else np.where(later, 0.0, arrival)
        times[:, of.FIRST] = -np.maximum(known + patience - overhead_s, SOON)
    return times


def abandonments(times: Any, overhead_s: float) -> Any:
    """When the user gave up, nan where nobody did; `times` then has nothing but what happened to the request, as its user saw it."""
    gave_up = times[:, of.FINISH] < 0.0
    when = np.where(gave_up, overhead_s - times[:, of.FINISH], np.nan)
    times[gave_up, of.FINISH] = np.nan
    times[times[:, of.FIRST] < 0.0, of.FIRST] = np.nan
    return when

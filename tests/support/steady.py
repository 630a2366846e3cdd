"""Long runs of the simulator's own loop, and what it takes for a mean to agree with theory.

A mean agrees within 1 % (2 % from 95 % load on), or within 3.5 standard errors of the means of successive groups of requests where the
run is too short to tell 1 %. Compiled where numba is there; plain Python plays fewer requests.
"""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np

from headway.simulation.simulate import SimulatedRun, simulate
from headway.simulation.step_time import StepPace, pace_from
from headway.simulation.traffic.requests import Traffic
from support.simulated import RULES, STEP

FAST = importlib.util.find_spec("numba") is not None
HOW = "compiled" if FAST else "plain"
COUNT = 600_000 if FAST else 12_000
BEAT = 0.020
GROUPS = 40
SURE = 3.5  # standard errors
TELLING = 0.03 if FAST else 0.2  # a standard error above this share of the mean says nothing
FEWER = 1 if FAST else 6  # how much wider a tolerance is that stands for no interval


def agrees(values: Any, expected: Any, within: float = 0.01, telling: float = TELLING) -> tuple[float, float]:
    """The mean is as expected, the first twentieth left out; gives the mean and its standard error."""
    wanted, kept = float(expected), values[len(values) // 20 :]
    means = kept[: len(kept) // GROUPS * GROUPS].reshape(GROUPS, -1).mean(axis=1)
    error = float(means.std(ddof=1) / np.sqrt(GROUPS))
    assert error < telling * wanted, f"standard error {error} of {wanted}: too short to tell"
    assert abs(means.mean() - wanted) < max(within * wanted, SURE * error), (means.mean(), wanted, error)
    return float(means.mean()), error


def near(load: float) -> float:
    """The tolerance at a load."""
    return 0.02 if load >= 0.95 else 0.01


def random(rate: float, seed: int, count: int = COUNT) -> Any:
    """Poisson arrivals."""
    return np.cumsum(np.random.default_rng(seed).exponential(1 / rate, count))


def play(traffic: Traffic, formula: str | StepPace, seats: int = 2000, replicas: int = 1, **changes: Any) -> SimulatedRun:
    """A run with room for everyone's cache, `seats` at a time."""
    made = pace_from(STEP.format(formula), seats, 4096.0) if isinstance(formula, str) else formula
    rest = {key: changes.pop(key) for key in ("ranks", "think", "users", "routing") if key in changes}
    rules = RULES._replace(**{"seats": seats, "capacity": 10**9, "budget": 10**6, "chunk": 10**6, **changes})
    run = simulate(traffic, made, rules, replicas=replicas, how=HOW, **rest)
    assert run.completed.all()
    return run


def wait(run: SimulatedRun) -> Any:
    return run.scheduled - run.arrival


def response(run: SimulatedRun) -> Any:
    return run.finish - run.arrival

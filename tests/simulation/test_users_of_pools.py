"""Closed loops on prefill and decode pools against the same loop by relaxation, which plays the pools one after the other, and limits."""

from typing import Any

import numpy as np
import pytest

from headway.performance.layout import Layout
from headway.simulation.fleet import PrefillDecodePools, PrefillReplica, split
from headway.simulation.simulate import SimulatedRun
from headway.simulation.traffic.requests import Traffic
from headway.simulation.users_of_pools import play_users
from support.simulated import RULES, pace

STEP = pace("0.01 + 2e-5 * tokens + 1e-4 * batch + 1e-8 * context")
OVERHEAD = 0.004


def drawn(count: int, seed: int) -> tuple[Traffic, np.ndarray]:
    rng = np.random.default_rng(seed)
    traffic = Traffic.of(np.zeros(count), rng.integers(50, 900, count), rng.integers(2, 60, count))
    return traffic, rng.exponential(0.05, count)


def transferred(prompt: Any) -> Any:
    """A transfer of two milliseconds and 20 ns for each pair of tokens: not linear, as with windows."""
    return 0.002 + 2e-8 * prompt**2


def relaxed(traffic: Traffic, users: int, think: np.ndarray, pools: PrefillDecodePools) -> SimulatedRun:
    """The closed loop by relaxation: arrivals follow from the answers of the play before, until none moves."""
    arrival = np.concatenate((np.zeros(users), 0.3 * np.arange(1, len(traffic) - users + 1)))
    for _ in range(2 * len(traffic)):
        order = np.argsort(arrival, kind="stable")
        mine = Traffic.of(arrival[order], traffic.prompt[order], traffic.output[order])
        run, _ = split(mine, STEP, RULES, pools, overhead_s=OVERHEAD, how="plain")
        answers = np.sort(run.finish)[: len(traffic) - users]
        comes = np.concatenate((np.zeros(users), answers + think[users:]))
        if np.allclose(comes, arrival, rtol=0, atol=1e-12):
            return run
        arrival = comes
    raise AssertionError("it does not settle")


@pytest.mark.parametrize(("users", "seed"), [(1, 0), (3, 1), (12, 2)])
def test_users__as_by_relaxation(users: int, seed: int) -> None:
    traffic, think = drawn(90, seed)
    pools = PrefillDecodePools(prefill=1, decode=1, transfer_s=transferred)
    run, before = play_users(traffic, users, think, STEP, RULES, pools, overhead_s=OVERHEAD, how="plain")
    again = relaxed(traffic, users, think, pools)
    assert np.sort(run.finish) == pytest.approx(np.sort(again.finish), abs=1e-9)
    assert np.sort(run.first - run.arrival) == pytest.approx(np.sort(again.first - again.arrival), abs=1e-9)
    assert (run.first >= before.finish + transferred(traffic.prompt) + OVERHEAD - 1e-9).all()


def test_users__several_replicas_agree_with_relaxation_in_the_mean() -> None:
    """Both send to the replica with the fewest, and tell equals apart differently."""
    traffic, think = drawn(400, 3)
    slow: Any = PrefillReplica(layout=Layout(), compiled=None, rules=RULES, pace=pace("0.02 + 4e-5 * tokens"))  # type: ignore[arg-type]
    pools = PrefillDecodePools(prefill=2, decode=3, transfer_s=transferred, first=slow)
    run, _ = play_users(traffic, 24, think, STEP, RULES, pools, overhead_s=OVERHEAD, how="plain")
    again = relaxed(traffic, 24, think, pools)
    assert (run.first - run.arrival).mean() == pytest.approx((again.first - again.arrival).mean(), rel=0.05)
    assert run.finish.max() == pytest.approx(again.finish.max(), rel=0.05)


def test_users__never_more_at_once_than_there_are() -> None:
    traffic, _ = drawn(200, 4)
    run, _ = play_users(traffic, 7, None, STEP, RULES, PrefillDecodePools(prefill=2, decode=2, transfer_s=transferred), how="plain")
    times = np.concatenate((run.arrival, run.finish))
    change = np.concatenate((np.ones(200), -np.ones(200)))[np.lexsort((np.concatenate((np.ones(200), np.zeros(200))), times))]
    assert run.completed.all()
    assert np.cumsum(change).max() == 7


def test_users__one_alone_takes_its_steps_and_the_transfer() -> None:
    """A user alone waits for nobody: prefill in steps of the budget, the transfer, then a step for each further token."""
    traffic = Traffic.of(np.zeros(3), 600, 11)
    pools = PrefillDecodePools(prefill=2, decode=2, transfer_s=lambda prompt: 0.125 + 0.0 * prompt)
    rules = RULES._replace(budget=512, chunk=512)
    run, _ = play_users(traffic, 1, None, pace("0.01 if batch > 0.0 else 0.05"), rules, pools, overhead_s=0.5, how="plain")
    assert run.first - run.arrival == pytest.approx(0.5 + 2 * 0.05 + 0.125)
    assert run.finish - run.first == pytest.approx(10 * 0.01)
    assert np.diff(run.arrival) == pytest.approx(0.725 + 0.1)

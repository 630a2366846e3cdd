"""Conversations whose turns wait for the answers before them: by hand, and against queues with feedback."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from headway.simulation import state as of
from headway.simulation.simulate import SimulatedRun, simulate
from headway.simulation.step_time import pace_from
from headway.simulation.traffic.distributions import parse_arrivals, parse_lengths
from headway.simulation.traffic.generate import generate_conversations, parse_turns
from headway.simulation.traffic.requests import Traffic
from reference.queueing import mmc_wait_s
from support.simulated import RULES, STEP, pace
from support.steady import HOW, agrees

COUNT = 100_000 if HOW == "compiled" else 8_000


def talk(turns: str = "5,3s", count: int = 400, rate: float = 20.0, seed: int = 1, kind: str = "poisson") -> Traffic:
    lengths = (parse_lengths("lognormal:60,0.7", "prompt"), parse_lengths("lognormal:30,0.7", "output", answers=True))
    return generate_conversations(parse_arrivals(kind, rate), rate, *lengths, parse_turns(turns), count, seed)


def play(traffic: Traffic, formula: str, how: str = "plain", **changes: Any) -> SimulatedRun:
    rest = {key: changes.pop(key) for key in ("replicas", "routing", "ranks", "patience", "overhead_s") if key in changes}
    rules = RULES._replace(**changes)
    return simulate(traffic, pace_from(STEP.format(formula), rules.seats, 8192.0), rules, how=how, **rest)


def before(traffic: Traffic) -> Any:
    """The turn before each, -1 before a first."""
    last: dict[int, int] = {}
    return np.array([(last.get(name, -1), last.update({name: i}))[0] for i, name in enumerate(traffic.conversation.tolist())])


def test_turns__arrive_a_pause_after_the_previous_answer_by_hand() -> None:
    traffic = Traffic.of([0.0, 1.0, 2.0], 1, [3, 2, 2], conversation=[7, 8, 7], pause=[0.0, 0.0, 2.5])
    run = play(traffic, "1.0")
    assert run.arrival.tolist() == [0.0, 1.0, 5.5]
    assert run.finish.tolist() == [3.0, 3.0, 7.5]


def test_turns__without_pauses_arrive_as_recorded() -> None:
    traffic = Traffic.of([0.0, 1.0, 2.0], 1, [30, 2, 2], conversation=[7, 8, 7])
    assert play(traffic, "1.0").arrival.tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize("replicas", [1, 3])
def test_turns__arrive_after_the_answer_on_the_same_replica(replicas: int) -> None:
    traffic = talk()
    run = play(traffic, "0.01 + 1e-4 * tokens", replicas=replicas, overhead_s=0.1)
    prior = before(traffic)
    later = prior >= 0
    assert traffic.pause is not None and run.completed.all() and later.sum() > 200
    assert run.arrival[~later].tolist() == traffic.arrival[~later].tolist()
    assert run.arrival[later] == pytest.approx(run.finish[prior[later]] + traffic.pause[later])
    assert (run.replica[later] == run.replica[prior[later]]).all()
    assert len(set(run.replica)) == replicas


def test_turns__routed_by_load_arrive_as_drawn() -> None:
    traffic = talk()
    run = play(traffic, "0.01 + 1e-4 * tokens", replicas=3, routing="least-loaded")
    assert np.array_equal(run.arrival, traffic.arrival)


def test_turns__arrive_as_drawn_when_steps_take_no_time() -> None:
    traffic = talk()
    run = play(traffic, "1e-9", seats=1000, capacity=10**9)
    assert run.arrival == pytest.approx(traffic.arrival, abs=1e-4)


@pytest.mark.parametrize("load", [0.5, 0.8])
def test_turns__queue_with_feedback_waits_as_mm1(load: float) -> None:
    """Jackson 1957: conversations begin at random, turns are exponential, who comes back after thinking: a server like any M/M/1."""
    service, length, turns, think = 0.2, 2000, 4.0, 5.0
    rate = load / service
    rng = np.random.default_rng(11)
    sizes = rng.geometric(1 / turns, int(COUNT / turns))
    names = np.repeat(np.arange(len(sizes)), sizes)
    begins = np.repeat(np.cumsum(rng.exponential(turns / rate, len(sizes))), sizes)
    first = np.concatenate(([True], names[1:] != names[:-1]))
    pause = np.where(first, 0.0, rng.exponential(think, len(names)))
    sums = np.cumsum(pause)
    shown = begins + sums - np.repeat(sums[first], sizes)
    order = np.argsort(shown, kind="stable")
    traffic = Traffic.of(shown[order], 1, rng.geometric(1 / length, len(names)), conversation=names[order], pause=pause[order])
    run = play(traffic, f"{service / length!r}", HOW, seats=1, capacity=10**9)
    agrees((run.scheduled - run.arrival)[np.argsort(run.arrival)], mmc_wait_s(rate, service, 1), 0.01, 0.1)


def test_conversation__ends_at_a_refused_or_abandoned_turn() -> None:
    traffic = Traffic.of(np.arange(6.0), [1, 900, 1, 1, 1, 1], 5, conversation=[1, 1, 1, 2, 2, 2], pause=np.ones(6))
    run = play(traffic, "1.0", capacity=20)
    assert run.refused.tolist() == [False, True, True, False, False, False]
    assert run.completed.tolist() == [True, False, False, True, True, True]
    given_up = play(traffic, "1.0", patience=[9, 9, 9, 9, 0.5, 9])
    assert given_up.completed.tolist() == [True, True, True, True, False, False]
    assert np.isfinite(given_up.abandonment).tolist() == [False] * 4 + [True, False]
    assert np.isnan(given_up.arrival[5])


def test_conversation__all_turns_have_one_priority_class() -> None:
    traffic = talk()
    first = np.flatnonzero(before(traffic) < 0)
    ranks = np.isin(traffic.conversation, traffic.conversation[first[::2]]).astype(int)
    run = play(traffic, "0.005 + 1e-4 * tokens", lanes=2 * of.LANE, ranks=ranks, seats=4)
    assert run.completed.all()
    wait = run.scheduled - run.arrival
    assert wait[ranks == 0].mean() < 0.5 * wait[ranks == 1].mean()


@pytest.mark.skipif(HOW == "plain", reason="needs numba (extra fast)")
def test_compiled_loop__same_run_with_turns_patience_and_swap() -> None:
    """Turns, users who give up and swapped caches, on one replica and on two."""
    traffic = talk("4,0.5s", 3000, 60.0)
    made, patience = pace("0.004 + 1e-5 * batch + 5e-5 * tokens + 1e-8 * context", 24), np.random.default_rng(2).exponential(20.0, 3000)
    for replicas in (1, 2):
        rules = RULES._replace(capacity=300, seats=24, budget=256, chunk=256, swap=500, copy_s=2e-4)
        plain, fast = (simulate(traffic, made, rules, replicas=replicas, patience=patience, how=how) for how in ("plain", "compiled"))
        assert plain.total_count(of.SWAPPED) > 0 and plain.total_count(of.ABANDONED) > 0
        for one, other in zip(plain.states, fast.states, strict=True):
            assert list(one.count) == list(other.count)
        for key in ("arrival", "scheduled", "first", "finish", "abandonment"):
            assert getattr(fast, key) == pytest.approx(getattr(plain, key), rel=1e-9, nan_ok=True)

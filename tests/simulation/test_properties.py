"""What holds of any traffic under any policy: nobody is lost, tokens are conserved, the cache never overflows, time never runs back."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from headway.performance.layout import Layout
from headway.simulation import simulate as running
from headway.simulation import state as of
from headway.simulation.loop import advance
from headway.simulation.simulate import SimulatedRun, simulate
from headway.simulation.traffic.requests import Traffic
from support.simulated import RULES, pace, play, real

KINKED = "0.002 + 1e-5 * batch + (1e-8 if context < 900.0 * batch else 3e-8) * context + 2e-6 * tokens + 1e-11 * pairs"
POLICIES = some.fixed_dictionaries(
    {
        "budget": some.integers(1, 300), "seats": some.integers(1, 20), "capacity": some.integers(5, 60), "block": some.integers(1, 20),
        "mixed": some.integers(0, 1), "reserve": some.sampled_from((0.0, 0.5, 1.0)), "departures": some.sampled_from((0.0, 0.0, 0.02)),
        "accept": some.sampled_from((1.0, 1.0, 1.0, 2.5)), "lanes": some.sampled_from((of.LANE, 2 * of.LANE)),
        "swap": some.sampled_from((0, 0, 12, 1000)), "copy_s": some.sampled_from((0.0, 0.003, 0.5)),
    }
)  # fmt: skip


@some.composite
def traffics(draw: Any) -> Traffic:
    count, seed = draw(some.integers(1, 60)), draw(some.integers(0, 10**6))
    rng = np.random.default_rng(seed)
    gaps = rng.exponential(draw(some.sampled_from((0.0, 0.001, 0.05))), count) * rng.integers(0, 2, count)
    prompt, output = (rng.integers(1, draw(some.integers(2, most)), count) for most in (400, 90))
    return Traffic.of(np.cumsum(gaps), prompt, output)


def sound(run: SimulatedRun) -> None:
    """The properties of a finished run."""
    traffic, done = run.traffic, run.completed
    assert (done ^ run.refused).all()  # every request ends, in one way
    assert run.total(of.EMITTED) == traffic.output[done].sum()
    assert run.total_count(of.COMPLETED) == done.sum()
    assert max(state.count[of.PEAK_BLOCKS] for state in run.states) <= run.rules.capacity or run.rules.accept != 1
    assert (run.scheduled[done] >= run.arrival[done] - 1e-12).all()
    assert (run.first[done] >= run.scheduled[done]).all()
    assert (run.finish[done] >= run.first[done]).all()
    for state in run.states:
        left = (of.RUNNING, of.PARTIAL, of.QUEUED, of.HEAPED, of.PROMPT_BLOCKS, of.RESERVED)
        assert [state.count[element] for element in left] == [0] * len(left)
        assert state.at[of.CONTEXT] == 0.0
        assert sum(state.phase) == 0
    tokens = sum(sum(state.log[: of.GAPS]) for state in run.states)
    if run.rules.accept == 1:
        assert tokens == pytest.approx((traffic.output[done] - 1).sum())  # a gap for each token but the first of a request
    in_service = sum(np.asarray(state.log[of.GAPS :]).reshape(-1, of.SERIES)[:, 0].sum() for state in run.states)
    if not run.total_count(of.PREEMPTED) and not run.rules.departures:
        assert in_service == pytest.approx((run.finish - run.scheduled)[done].sum(), rel=1e-6)  # Little's law, exactly


@settings(max_examples=120)
@given(traffics(), POLICIES, some.integers(1, 3))
def test_simulate__conserves_requests_and_never_overflows(traffic: Traffic, policy: dict[str, Any], replicas: int) -> None:
    ranks = np.arange(len(traffic)) % (policy["lanes"] // of.LANE)
    sound(play(traffic, KINKED, replicas=replicas, ranks=ranks, chunk=policy["budget"], **policy))


@settings(max_examples=30)
@given(traffics(), POLICIES, some.integers(1, 60))
def test_simulate__in_slices_equals_one_run(traffic: Traffic, policy: dict[str, Any], slices: int) -> None:
    whole = play(traffic, KINKED, chunk=policy["budget"], **policy)
    before = running.PLAIN_SLICE
    running.PLAIN_SLICE = slices
    try:
        parts = play(traffic, KINKED, chunk=policy["budget"], **policy)
    finally:
        running.PLAIN_SLICE = before
    assert np.array_equal(whole.finish, parts.finish, equal_nan=True)


@settings(max_examples=40)
@given(traffics())
def test_simulate__jumps_equal_single_steps(traffic: Traffic) -> None:
    """Against a step law whose every value differs: each step of the batch looked at, by a beat that allows no jump."""
    rules = RULES._replace(capacity=10**6, seats=8)
    made = pace(KINKED, 8, float((traffic.prompt + traffic.output).max()))
    jumped = simulate(traffic, made, rules, how="plain")
    stepped = _step_by_step(traffic, made.step, rules)
    assert jumped.finish == pytest.approx(stepped, rel=1e-6)


def _step_by_step(traffic: Traffic, step: Any, rules: Any) -> Any:
    """The same scheduler, written plainly: one iteration after the other."""
    clock, finish = 0.0, np.full(len(traffic), np.nan)
    waiting, work, decoding = list(range(len(traffic))), [], {}
    while waiting or work or decoding:
        if not work and not decoding:
            clock = max(clock, traffic.arrival[waiting[0]])
        room, chunks = rules.budget - len(decoding), []
        for one in work:
            chunks.append(min(one[1] - one[2], room - sum(chunks)))
        while sum(chunks) < room and waiting and traffic.arrival[waiting[0]] <= clock and len(work) + len(decoding) < rules.seats:
            one = [waiting.pop(0), 0, 0]
            one[1] = int(traffic.prompt[one[0]])
            work.append(one)
            chunks.append(min(one[1], room - sum(chunks)))
        pairs = sum(chunk * (one[2] + chunk / 2) for one, chunk in zip(work, chunks, strict=True))
        clock += step(float(len(decoding)), float(sum(tokens for tokens, _ in decoding.values())), float(sum(chunks)), pairs, 1.0)
        decoding = {i: (tokens + 1, left - 1) for i, (tokens, left) in decoding.items()}
        for one, chunk in zip(work, chunks, strict=True):
            one[2] += chunk
        for one in [one for one in work if one[2] >= one[1]]:
            decoding[one[0]] = (one[1] + 1, int(traffic.output[one[0]]) - 1)
        work = [one for one in work if one[2] < one[1]]
        for i in [i for i, (_, left) in decoding.items() if left <= 0]:
            finish[i] = clock
            del decoding[i]
    return finish


@pytest.mark.skipif(not importlib.util.find_spec("numba"), reason="needs numba (extra fast)")
def test_compiled_loop__same_run_as_plain() -> None:
    rng = np.random.default_rng(3)
    traffic = Traffic.of(np.cumsum(rng.exponential(0.05, 2000)), rng.integers(1, 3000, 2000), rng.integers(1, 400, 2000))
    for layout, model in ((Layout(tp=8), "llama-3.1-70b"), (Layout(tp=8), "gpt-oss-120b")):
        made = real(model, "8xh100-sxm", layout, traffic)
        assert made.pace
        tight = made.scheduler.rules._replace(capacity=2000)
        plain, fast = (simulate(traffic, made.pace, tight, how=how) for how in ("plain", "compiled"))
        assert plain.total_count(of.PREEMPTED) > 0
        assert list(plain.states[0].count) == list(fast.states[0].count)
        for key in ("scheduled", "first", "finish"):
            assert getattr(fast, key) == pytest.approx(getattr(plain, key), rel=1e-9)


def test_step_time__never_below_the_floor_in_a_run() -> None:
    rng = np.random.default_rng(4)
    traffic = Traffic.of(np.cumsum(rng.exponential(0.1, 200)), rng.integers(1, 3000, 200), rng.integers(1, 300, 200))
    made = real("llama-3.1-70b", "8xh100-sxm", Layout(tp=8), traffic)
    assert made.pace
    assert made.pace.floor
    seen = []

    def watched(*point: float) -> float:
        seen.append((*point, made.pace.step(*point)))  # type: ignore[union-attr]
        return seen[-1][-1]

    _run_with(made, traffic, watched)
    for *point, time in seen:
        assert time >= float(made.pace.floor(*point))
    assert len(seen) > 200


def _run_with(made: Any, traffic: Traffic, step: Any) -> None:
    from dataclasses import replace

    line = made.pace.line * 0.0  # nothing is straight: every step is asked for
    simulate(traffic, replace(made.pace, line=line, step=step), made.scheduler.rules, how="plain")


def test_simulate__interrupt_returns_the_completed_part(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def interrupted(*given_: Any) -> int:
        calls.append(1)
        if len(calls) > 2:
            raise KeyboardInterrupt
        return advance(*given_)

    monkeypatch.setattr("headway.simulation.routing.advance", interrupted)
    monkeypatch.setattr(running, "PLAIN_SLICE", 20)
    run = play(Traffic.of(np.arange(100.0), 10, 10), "0.01")
    assert run.interrupted
    assert 0 < run.completed.sum() < 100
    assert (run.completed ^ run.cancelled).all()

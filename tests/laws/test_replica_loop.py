"""The fixed points that are recorded as one number each: what they solve, Little's law and the capacity, on a real model's step."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from headway.laws.queueing.closed_loop import (
    PROMPTS_2K,
    decoding_in_loop,
    loop_times,
    open_loop_capacity,
    open_loop_decoding,
    open_loop_in_service,
    open_times,
    poisson,
    step_times,
)
from headway.laws.step.coefficients import LLAMA_70B_TP8
from headway.laws.step.step import step_floor_s, step_s

LAWS = [(0, step_s), (1, step_floor_s)]
LOADS = [
    PROMPTS_2K,
    replace(PROMPTS_2K, synchronised_share=0.3, concurrent_prompts=0.5, spread=0.2),
    replace(PROMPTS_2K, prompt=30_000.0, prefill=30_000.0, pairs=4.5e8, output=100.0),
    replace(PROMPTS_2K, chunked_prefill=0.0, request_overhead_s=0.02),
]
IDS = ["even", "together", "long prompts", "prompts first"]


def in_service_at(rate: float, loop: Any, floor: int) -> float:
    """Requests in service at a rate."""
    decoding = open_loop_decoding(LLAMA_70B_TP8, loop, rate, floor)
    return float(open_loop_in_service(LLAMA_70B_TP8, loop, rate, decoding, floor))


@pytest.mark.parametrize(("floor", "law"), LAWS, ids=["expected", "floor"])
@pytest.mark.parametrize("loop", LOADS, ids=IDS)
@pytest.mark.parametrize("users", [1.0, 7.0, 64.0, 400.0])
def test_decoding_in_loop__decoding_and_prefilling_fill_the_service(users: float, loop: Any, floor: int, law: Any) -> None:
    """Little's law twice: as many decode as finish per second times their answer's time, and all others are before their first token."""
    busy = replace(loop, users=users, seats=1e9)
    decoding = float(decoding_in_loop(LLAMA_70B_TP8, busy, floor))
    times = loop_times(step_times(LLAMA_70B_TP8, law), busy, users, decoding)
    assert 0 < decoding < users
    assert float(times.rate * (loop.output - 1) * times.tpot) == pytest.approx(decoding, rel=2e-3)  # steps at one context, times over three
    assert float(times.rate * times.ttft) == pytest.approx(users - decoding, rel=2e-2, abs=2e-3 * users)


@pytest.mark.parametrize(("floor", "law"), LAWS, ids=["expected", "floor"])
@pytest.mark.parametrize("loop", LOADS, ids=IDS)
@pytest.mark.parametrize("share", [0.05, 0.5, 0.9])
def test_open_loop_in_service__carries_the_rate(share: float, loop: Any, floor: int, law: Any) -> None:
    """Little's law of an open loop: so many in service finish as many per second as arrive."""
    rate = share * float(open_loop_capacity(LLAMA_70B_TP8, loop, floor))
    served = in_service_at(rate, loop, floor)
    random = replace(poisson(loop, rate), users=served)
    decoding = float(decoding_in_loop(LLAMA_70B_TP8, random, floor))
    times = open_times(step_times(LLAMA_70B_TP8, law), random, rate, served, decoding)
    in_system = float(times.ttft - times.seat_wait + (loop.output - 1) * times.tpot)
    assert rate * in_system == pytest.approx(served, rel=1e-6)
    assert float(open_loop_decoding(LLAMA_70B_TP8, loop, rate, floor)) == pytest.approx(decoding, rel=1e-6)


@pytest.mark.parametrize("floor", [0, 1], ids=["expected", "floor"])
@pytest.mark.parametrize("loop", LOADS, ids=IDS)
def test_open_loop_capacity__is_the_rate_of_full_seats(loop: Any, floor: int) -> None:
    """With every seat taken the replica finishes so many, below it fewer are in service, above it the seats are all taken."""
    most = float(open_loop_capacity(LLAMA_70B_TP8, loop, floor))
    full = replace(poisson(loop, most), users=loop.seats)
    decoding = float(decoding_in_loop(LLAMA_70B_TP8, full, floor))
    times = loop_times(step_times(LLAMA_70B_TP8, (step_s, step_floor_s)[floor]), full, loop.seats, decoding)
    assert most == pytest.approx(float(times.rate), rel=1e-6)
    served = [in_service_at(share * most, loop, floor) for share in (0.2, 0.6, 0.95, 0.999, 1.001)]
    assert (np.diff(served) > 0).all() and served[-1] == loop.seats and served[-2] < loop.seats

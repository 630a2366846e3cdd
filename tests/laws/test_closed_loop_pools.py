"""The closed loop over two pools against its limits, Little's law and a simulation of its queue."""

from __future__ import annotations

import heapq
import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from headway.laws.queueing.closed_loop import HandedLoop, best_split, handed_loop
from headway.laws.queueing.users import looped_tpot_s

LOOP = HandedLoop(
    users=64.0, seats=1e9, prompt=8192.0, output=512.0, prefill_workers=2.0, decode_workers=3.0, prompt_alone=0.2, prompt_packed=0.2,
    transfer=0.01, synchronised_share=0.1, concurrent_prompts=0.0, spread=0.064, request_overhead_s=0.02,
)  # fmt: skip


def step(decoding: Any, kv_tokens: Any, prompt_tokens: Any, prompt_pairs: Any, prompts: Any = 1.0) -> Any:
    return 0.006 + 5e-5 * decoding + 1e-8 * kv_tokens


def simulated_ttft(users: int, workers: int, service: float, cycle: float, rounds: int) -> float:
    """Mean wait and service of prompts at workers first come first served; a user asks again after an answer 0.8 to 1 of the longest."""
    rng = random.Random(2)
    free, asks, waits = [0.0] * workers, [(0.0, user) for user in range(users)], []
    while len(waits) < rounds * users:
        time, user = heapq.heappop(asks)
        done = max(time, heapq.heappop(free)) + service
        heapq.heappush(free, done)
        waits.append(done - time)
        heapq.heappush(asks, (done + cycle * rng.uniform(0.8, 1) / 0.9, user))
    return float(np.mean(waits))


@pytest.mark.parametrize(("users", "workers"), [(1, 1), (4, 2), (16, 1), (30, 1), (64, 2), (60, 1), (150, 2), (400, 2)])
def test_ttft__prefill_queue_matches_simulation(users: int, workers: int) -> None:
    loop = replace(LOOP, users=users, prefill_workers=workers, transfer=0.0, request_overhead_s=0.0)
    found = handed_loop(step, loop)
    assert found.ttft == pytest.approx(simulated_ttft(users, workers, 0.2, 511 * float(found.tpot), 10), rel=0.15)


def test_disaggregate__ample_prefill_leaves_no_prefill_queue() -> None:
    found = handed_loop(step, replace(LOOP, prefill_workers=1e9, synchronised_share=0.0))
    seen = (1 + found.decoding / 64 * 63) / 3  # whose step it is decodes, and of the 63 others as many as do on average
    assert found.tpot == pytest.approx(step(seen, seen * (8192 + 256), 0, 0), rel=1e-6)
    assert found.ttft == pytest.approx(0.02 + 0.2 + 0.01, rel=1e-9)


def test_tpot__one_user_decodes_one_sequence() -> None:
    """However little of the time it decodes."""
    found = handed_loop(step, replace(LOOP, users=1.0, prompt=100_000.0, output=20.0, prompt_alone=10.0, prompt_packed=10.0))
    assert found.decoding < 0.05
    assert found.tpot == pytest.approx(step(1, 100_010, 0, 0), rel=1e-9)


def test_disaggregate__littles_law_over_both_pools() -> None:
    users = np.array([1.0, 10.0, 100.0, 10_000.0])
    found = handed_loop(step, replace(LOOP, users=users))
    assert found.rate * (found.ttft + 511 * found.tpot) == pytest.approx(users, rel=1e-12)


def test_disaggregate__prefill_pool_limits_rate_at_many_users() -> None:
    found = handed_loop(step, replace(LOOP, users=1e5, synchronised_share=0.0))
    assert found.rate == pytest.approx(2 / 0.2, rel=0.01)


def test_best_split__long_prompts_take_prefill_and_long_answers_decode() -> None:
    """Long prompts take prefill workers, long answers decode workers; 10 workers of 8 chips leave no chip idle."""
    split = best_split(step, replace(LOOP, users=np.array([200.0, 200.0]), output=np.array([64.0, 8192.0])), 80, 8, 8)
    assert list(split.prefill_workers + split.decode_workers) == [10, 10]
    assert split.prefill_workers[0] > 6
    assert split.prefill_workers[1] <= 2


def test_best_split__uses_every_chip() -> None:
    split = best_split(step, replace(LOOP, users=1.0), 44, 4, 8)
    assert split.prefill_workers * 4 + split.decode_workers * 8 == 44


def test_looped_tpot_s__one_token_answer_takes_the_decode_step() -> None:
    assert looped_tpot_s(0.01, 0.0, 0.0, 0.0, 1.0) == 0.01


def test_handed_loop__one_request_through_both_pools_by_hand() -> None:
    """20 ms before its step, 200 ms of prefill, 300 ms of transfer, then 511 decode steps of 10 ms; nobody else is there."""

    def ten_ms(decoding: Any, kv_tokens: Any, prompt_tokens: Any, prompt_pairs: Any, prompts: Any) -> Any:
        return 0.010 + 0.0 * decoding

    found = handed_loop(ten_ms, replace(LOOP, users=1.0, transfer=0.300))
    assert found.ttft == pytest.approx(0.520, rel=1e-9)
    assert found.tpot == pytest.approx(0.010, rel=1e-12)
    assert found.rate == pytest.approx(1 / 5.630, rel=1e-9)
    assert found.decoding == pytest.approx(5.110 / 5.630, rel=1e-6)


# users, prefill workers, ms: prefill, transfer, decode of an answer
OVERLOADED = [(200, 1, 100, 0, 3000), (200, 1, 100, 5000, 3000), (200, 4, 100, 1000, 500), (300, 2, 100, 1000, 9000)]


@pytest.mark.parametrize(("users", "workers", "prefill", "transfer", "decode"), OVERLOADED)
def test_handed_loop__overloaded_prefill_equals_replay(users: int, workers: int, prefill: int, transfer: int, decode: int) -> None:
    """The KV transfer is part of a user's cycle: it shortens the prefill queue by as much as it delays the first token."""
    free, asks, ttft = [0] * workers, [(0, user) for user in range(users)], []
    while len(ttft) < 5 * users:
        arrival, user = heapq.heappop(asks)
        prefilled = max(arrival, heapq.heappop(free)) + prefill
        heapq.heappush(free, prefilled)
        ttft.append(prefilled + transfer - arrival)
        heapq.heappush(asks, (prefilled + transfer + decode, user))
    loop = replace(LOOP, users=float(users), output=101.0, prefill_workers=workers, prompt_alone=float(prefill), transfer=float(transfer),
                   prompt_packed=float(prefill), synchronised_share=0.0, spread=0.0, request_overhead_s=0.0)  # fmt: skip
    found = handed_loop(lambda decoding, *load: decode / 100 + 0.0 * decoding, loop)
    # The law's queue is one prompt's service short of the replay's: a user's own prompt is no work before it.
    assert found.ttft + prefill / workers == pytest.approx(np.mean(ttft[users * 2 :]), rel=1e-9)
    assert found.ttft - transfer >= prefill


@pytest.mark.parametrize(("users", "workers"), [(12, 3), (12, 1), (4, 4), (60, 5)])
def test_handed_loop__synchronised_prompts_equal_replay(users: int, workers: int) -> None:
    """All prompts at once, shared out evenly: each worker does one after the other."""
    free, ttft = [0] * workers, []
    for _ in range(users):
        prefilled = heapq.heappop(free) + 200
        heapq.heappush(free, prefilled)
        ttft.append(prefilled + 10)
    loop = replace(LOOP, users=float(users), prefill_workers=workers, prompt_alone=200.0, prompt_packed=200.0, transfer=10.0,
                   synchronised_share=1.0, request_overhead_s=0.0)  # fmt: skip
    assert handed_loop(step, loop).ttft == pytest.approx(np.mean(ttft), rel=1e-9)


@pytest.mark.parametrize("users", [1.0, 2.0, 3.0])
def test_handed_loop__fewer_prompts_than_lanes_take_no_less_than_one_alone(users: float) -> None:
    """A worker of four lanes prefills one to four prompts in the same 200 ms."""
    loop = replace(LOOP, users=users, prefill_workers=1.0, prompt_packed=0.05, synchronised_share=1.0)
    assert handed_loop(step, loop).ttft == pytest.approx(0.02 + 0.2 + 0.01, rel=1e-9)


def test_best_split__takes_no_faster_split_that_leaves_chips_idle() -> None:
    """13 chips are 4 and 3 times 3, none idle; 2 times 4 and 3 leave two idle, though they prefill twice as fast."""
    slow = replace(LOOP, users=50.0, prompt_alone=10.0, prompt_packed=10.0)
    one, two = (handed_loop(step, replace(slow, prefill_workers=p, decode_workers=d)).rate for p, d in ((1.0, 3.0), (2.0, 1.0)))
    assert two > 1.5 * one
    split = best_split(step, slow, 13, 4, 3)
    assert (split.prefill_workers, split.decode_workers) == (1, 3)

"""The closed loop against its limits, Little's law, a replay in whole steps and a simulation of an engine's scheduler."""

from __future__ import annotations

import bisect
import heapq
import random
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from headway.laws.queueing.closed_loop import Loop, StepTime, capacity, closed_loop, open_loop, replica_seats
from headway.laws.queueing.users import cycle_steps, prompt_chunks, prompts_beside, prompts_per_step, queued_before, steady_s, step_room
from reference.step_replay import ReplayedLoop, decode_ticks, replay_steps, ttft_ticks

CLIENT = 0.005  # a user's own delay between an answer and the next prompt, and as much again at random


def load(prompt: float, **rest: Any) -> dict[str, Any]:
    """Fields of a loop whose prompts have one length and no cached part."""
    return {"prompt": prompt, "prefill": prompt, "pairs": prompt * prompt / 2, **rest}


LOOP = Loop(
    users=32.0,
    seats=1e9,
    **load(1024.0),
    output=256.0,
    step_budget_tokens=8192.0,
    chunked_prefill=1.0,
    synchronised_share=0.1,
    concurrent_prompts=0.0,
    spread=0.064,
    request_overhead_s=0.0,
)


def linear(fixed: float, per_prompt_token: float, per_kv_token: float) -> StepTime:
    def step(decoding: Any, kv_tokens: Any, prompt_tokens: Any, prompt_pairs: Any, prompts: Any = 1.0) -> Any:
        return fixed + per_kv_token * kv_tokens + per_prompt_token * prompt_tokens + 1e-10 * prompt_pairs + 2e-5 * decoding

    return step


STEP = linear(0.0145, 6e-5, 6e-8)


@dataclass(slots=True)
class Request:
    arrived: float
    prompt: int
    output: int
    prefilled: int = 0
    emitted: int = 0
    first: float = 0.0


@dataclass(slots=True)
class Engine:
    """Chunked prefill under a token budget, first come first served; each user asks again a moment after the answer."""

    step: StepTime
    loop: Loop
    rounds: int
    spread: float  # lengths are uniform between (1 - spread) and 1 of the longest
    rng: random.Random = field(default_factory=lambda: random.Random(1))
    ahead: list[tuple[float, Request]] = field(default_factory=list)
    running: list[Request] = field(default_factory=list)
    done: list[tuple[float, Request]] = field(default_factory=list)
    issued: int = 0

    def ask(self, time: float) -> None:
        if self.issued >= self.rounds * int(self.loop.users):
            return
        self.issued += 1
        prompt, output = (
            max(1, round(mean * (1 - self.spread * self.rng.random()) / (1 - self.spread / 2)))
            for mean in (self.loop.prompt, self.loop.output)
        )
        bisect.insort(self.ahead, (time, Request(time, prompt, output)), key=lambda item: item[0])

    def admit(self, time: float) -> None:
        """Into the batch while there is a seat and room for prompt tokens in the step."""
        pending = sum(r.prompt - r.prefilled for r in self.running)
        while self.ahead and self.ahead[0][0] <= time and len(self.running) < self.loop.seats and pending < self.loop.step_budget_tokens:
            request = self.ahead.pop(0)[1]
            self.running.append(request)
            pending += request.prompt

    def advance(self, time: float) -> float:
        prompts = [r for r in self.running if not r.emitted]
        decodes = [r for r in self.running if r.emitted] if self.loop.chunked_prefill or not prompts else []
        left, tokens, pairs = int(self.loop.step_budget_tokens) - len(decodes) * bool(self.loop.chunked_prefill), 0, 0.0
        for r in prompts:
            chunk = min(left, r.prompt - r.prefilled)
            pairs += chunk * (r.prefilled + chunk / 2)
            r.prefilled, left, tokens = r.prefilled + chunk, left - chunk, tokens + chunk
        time += float(self.step(len(decodes), sum(r.prompt + r.emitted for r in decodes), tokens, pairs))
        for r in decodes:
            r.emitted += 1
        for r in prompts:
            if r.prefilled == r.prompt:
                r.emitted, r.first = 1, time
        for r in [r for r in self.running if r.emitted >= r.output]:
            self.running.remove(r)
            self.done.append((time, r))
            self.ask(time + CLIENT * (1 + self.rng.random()))
        return time

    def run(self) -> tuple[float, float]:
        """Mean TTFT and TPOT over all requests."""
        for _ in range(int(self.loop.users)):
            self.ask(self.rng.random() * CLIENT)
        time = 0.0
        while self.ahead or self.running:
            if not self.running:
                time = max(time, self.ahead[0][0])
            self.admit(time)
            time = self.advance(time)
        ttft = np.mean([r.first - r.arrived for _, r in self.done])
        return float(ttft), float(np.mean([(end - r.first) / (r.output - 1) for end, r in self.done]))


# users, prompt, output, budget, seats: from a step full of prompts to one prompt in four steps, from idle to four fifths loaded
MIXED = [
    (1, 1024, 128, 8192, 1e9), (8, 1024, 128, 8192, 1e9), (32, 1024, 512, 8192, 1e9), (64, 1024, 128, 8192, 1e9),
    (64, 256, 512, 2048, 1e9),
    (16, 7373, 256, 8192, 1e9), (64, 7373, 922, 8192, 1e9), (8, 8192, 512, 2048, 1e9), (32, 4096, 512, 2048, 1e9),
    (64, 1024, 256, 8192, 32),
]  # fmt: skip


@pytest.mark.parametrize(("users", "prompt", "output", "budget", "seats"), MIXED)
def test_closed_loop__chunked_prefill_matches_simulation(users: int, prompt: int, output: int, budget: int, seats: float) -> None:
    rounds = 10
    loop = Loop(
        users=users,
        seats=seats,
        **load(float(prompt)),
        output=output,
        step_budget_tokens=budget,
        chunked_prefill=1,
        synchronised_share=1 / rounds,
        concurrent_prompts=0.0,
        spread=0.064,
        request_overhead_s=0.0,
    )
    ttft, tpot = Engine(STEP, loop, rounds, 0.2).run()
    found = closed_loop(STEP, loop)
    assert found.tpot == pytest.approx(tpot, rel=0.05)
    assert found.ttft == pytest.approx(ttft, rel=0.15)


@pytest.mark.parametrize(
    ("users", "prompt", "output"), [(1, 1024, 128), (16, 1024, 128), (64, 1024, 512), (16, 4096, 256), (48, 4096, 256)]
)
def test_closed_loop__prefill_first_in_lockstep_matches_simulation(users: int, prompt: int, output: int) -> None:
    """Answers of one length: the engine that holds decodes back while prompts wait keeps all users together."""
    loop = replace(LOOP, **load(prompt), users=users, output=output, chunked_prefill=0, synchronised_share=1)
    ttft, tpot = Engine(STEP, loop, 10, 0.0).run()
    found = closed_loop(STEP, loop)
    assert found.tpot == pytest.approx(tpot, rel=0.05)
    assert found.ttft == pytest.approx(ttft, rel=0.15)


def test_closed_loop__one_user_equals_unloaded() -> None:
    found = closed_loop(STEP, replace(LOOP, users=1.0, request_overhead_s=0.003))
    assert found.ttft == pytest.approx(0.003 + STEP(0, 0, 1024, 1024**2 / 2), rel=1e-3)
    assert found.tpot == pytest.approx(STEP(1, 1024 + 128, 0, 0), rel=1e-3)


@pytest.mark.parametrize("mixed", [0, 1])
def test_tpot__one_user_decodes_one_sequence(mixed: int) -> None:
    """However little of the time it decodes: the step of its long context is not spread over the time of its prompt."""
    found = closed_loop(STEP, replace(LOOP, **load(100_000.0), users=1.0, output=50.0, chunked_prefill=mixed))
    assert found.decoding < 0.2
    assert found.tpot == pytest.approx(STEP(1, 100_025, 0, 0), rel=1e-9)


@pytest.mark.parametrize("seats", [1e9, 50.0])
def test_closed_loop__littles_law(seats: float) -> None:
    users = np.array([1.0, 2.0, 10.0, 100.0, 1000.0])
    found = closed_loop(STEP, replace(LOOP, users=users, seats=seats))
    assert found.rate * (found.ttft + (256 - 1) * found.tpot) == pytest.approx(users, rel=1e-12)
    in_service = np.minimum(users, seats)
    assert found.rate * (found.ttft - found.seat_wait) + found.decoding == pytest.approx(in_service, rel=1e-6)


def test_closed_loop__more_users_than_seats_leave_rate_and_tpot_constant() -> None:
    full = closed_loop(STEP, replace(LOOP, users=64.0, seats=64.0))
    more = closed_loop(STEP, replace(LOOP, users=1e6, seats=64.0))
    assert (more.rate, more.tpot) == (pytest.approx(full.rate), pytest.approx(full.tpot))
    assert more.ttft == pytest.approx(1e6 / full.rate, rel=1e-3)


def test_closed_loop__step_token_budget_limits_rate_at_unlimited_seats() -> None:
    """Where KV costs nothing, only the budget of a step holds the rate: each finished answer needs a prompt and 255 decodes of it."""
    step = linear(0.0145, 6e-5, 0.0)
    found = closed_loop(step, replace(LOOP, users=1e5, seats=1e5, output=8.0, synchronised_share=0.0))
    most = 1 / (STEP(0, 0, 8192, 8192 * 512) * 1024 / 8192)
    assert 0.8 * most < found.rate < 1.02 * most


def test_closed_loop__rows_are_independent() -> None:
    users = np.array([1.0, 30.0, 400.0])
    together = closed_loop(STEP, replace(LOOP, users=users))
    for row, count in enumerate(users):
        assert together.ttft[row] == pytest.approx(float(closed_loop(STEP, replace(LOOP, users=count)).ttft), rel=1e-12)


# -- against a replay in whole steps ----------------------------------------------------------------------------------------------


def ticks(step_ticks: int, prompt_ticks: int) -> StepTime:
    """Step time in ticks: alike for any decodes, longer with prompt tokens."""
    return lambda decoding, kv_tokens, prompt_tokens, prompt_pairs, prompts: step_ticks + prompt_ticks * prompt_tokens + 0.0 * kv_tokens


@pytest.mark.parametrize(("prompt", "output", "chunk"), [(16, 1, 16), (16, 7, 16), (16, 7, 5), (33, 40, 16), (1, 2, 16), (100, 3, 10)])
def test_cycle_steps__equals_replay_of_one_user(prompt: int, output: int, chunk: int) -> None:
    done = replay_steps(ReplayedLoop(users=1, prompt=prompt, output=output, chunk=chunk, step_ticks=1, prompt_ticks=0), 4)
    between = {after.steps_at_finish - before.steps_at_finish for before, after in pairwise(done)}
    chunks = prompt_chunks(prompt, chunk)
    assert between == {cycle_steps(output, chunks, 1)}
    assert {request.prefill_steps for request in done} == {chunks}


@pytest.mark.parametrize(("prompt", "chunk"), [(16, 128), (16, 16), (16, 40), (30, 20), (100, 60), (61, 20), (128, 32)])
def test_step_room__counts_tokens_left_beside_a_prompt(prompt: int, chunk: int) -> None:
    """Steps are filled with the prompt token by token; what stays free in them is room for other prompts."""
    free = [chunk]
    for _ in range(prompt):
        if not free[-1]:
            free.append(chunk)
        free[-1] -= 1
    assert step_room(chunk, prompt, prompt_chunks(prompt, chunk)) == pytest.approx(sum(free) / len(free) / prompt, abs=1e-12)


@pytest.mark.parametrize(("steps", "idle"), [(9, 1), (1, 0), (1, 3), (63, 1)])
def test_steady_s__arrivals_at_any_instant_wait_half_a_step(steps: int, idle: int) -> None:
    """A timeline of steps of 20 ms and idle times as long, met at a thousand evenly spaced instants of each."""
    step, instants = 0.020, (np.arange(1000) + 0.5) / 1000 * 0.020
    waits = np.concatenate([step - instants] * steps + [0 * instants] * idle)
    found = steady_s(0.25, 0.0, 0.0, 0.0, step, steps / (steps + idle))
    assert found == pytest.approx(0.25 + waits.mean(), rel=1e-12)


def test_steady_s__concurrent_prompts_and_queue_come_on_top() -> None:
    """An own prompt of 300 ms behind a queue of 1000 ms, with two prompts of 70 ms each, in an engine that is idle on arrival."""
    assert steady_s(0.300, 2.0, 0.070, 1.000, 0.020, 0.0) == pytest.approx(1.440, rel=1e-12)


# users, output, ticks of a step, more ticks per prompt token
OVERLOADED = [(256, 160, 8, 0), (256, 160, 8, 1), (256, 160, 8, 4), (400, 160, 8, 1), (300, 290, 8, 2)]


@pytest.mark.parametrize(("users", "output", "step_ticks", "prompt_ticks"), OVERLOADED)
def test_closed_loop__overload_equals_step_replay(users: int, output: int, step_ticks: int, prompt_ticks: int) -> None:
    """One prompt fills the prompt tokens of a step; the next prompt comes within a decode step's time, at any instant of it."""
    prompt = 16
    delays = tuple(range(1, step_ticks, 2))  # midpoints of four parts of a decode step
    loop = ReplayedLoop(
        users=users, prompt=prompt, output=output, chunk=prompt, step_ticks=step_ticks, prompt_ticks=prompt_ticks, delays=delays
    )
    later = replay_steps(loop, 4 * users)[2 * users :]
    found = closed_loop(
        ticks(step_ticks, prompt_ticks),
        replace(LOOP, **load(float(prompt)), users=float(users), output=float(output), step_budget_tokens=8.0 * prompt, spread=0.0,
                synchronised_share=0.0),
    )  # fmt: skip
    # The law takes the engine as idle for one share in `users`: half of a decode step's time that often.
    assert found.ttft == pytest.approx(ttft_ticks(later), abs=step_ticks / users)
    assert found.tpot == pytest.approx(decode_ticks(later) / (output - 1), rel=1e-12)


@pytest.mark.parametrize(("users", "per_step", "prompt_ticks"), [(12, 4, 1), (12, 1, 3), (8, 8, 1), (1, 1, 2), (64, 16, 0)])
def test_closed_loop__lockstep_equals_step_replay(users: int, per_step: int, prompt_ticks: int) -> None:
    """Prompts before decodes, answers of one length: all prompts come at once, some in each step."""
    loop = ReplayedLoop(users=users, prompt=16, output=30, chunk=16 * per_step, step_ticks=8, prompt_ticks=prompt_ticks, prefill_first=True)
    done = replay_steps(loop, 3 * users)
    found = closed_loop(
        ticks(8, prompt_ticks),
        replace(LOOP, **load(16.0), users=float(users), output=30.0, step_budget_tokens=16.0 * per_step, spread=0.0, chunked_prefill=0.0,
                synchronised_share=1.0),
    )  # fmt: skip
    assert found.ttft == pytest.approx(ttft_ticks(done), rel=1e-9)
    assert found.tpot == pytest.approx(decode_ticks(done) / 29, rel=1e-9)
    assert found.rate == pytest.approx(users / (done[-1].finish - done[-1 - users].finish), rel=1e-9)


def test_prompts_beside__equals_replay_of_two_users_over_all_offsets() -> None:
    """Another user's prompt costs this user's where it shares a step with it, or is in the step in progress when it comes."""
    output, step_ticks, added = 11, 8, 32
    cycle = output + 1  # the step in progress, the prompt's step, ten decodes
    first = [0, 4] + [step_ticks + added + 4 + step_ticks * step for step in range(cycle - 2)]  # an instant of each step of a cycle
    means = []
    for instant in first:
        loop = ReplayedLoop(
            users=2, prompt=16, output=output, chunk=160, step_ticks=step_ticks, prompt_ticks=2, delays=(4,), arrivals=(0, instant)
        )
        means.append(ttft_ticks([request for request in replay_steps(loop, 12) if request.user == 0][2:6]))
    arriving = prompts_per_step(1, cycle_steps(output, 1, 1), 1)
    beside = prompts_beside(1, arriving, step_room(160, 16, 1), 1, 0, 1)
    busy = 1 - 1 / cycle  # no step is in progress where both users come at once
    assert np.mean(means) == pytest.approx(steady_s(step_ticks + added, beside, added, 0, step_ticks, busy), rel=1e-12)


def test_prompts_beside__counts_each_step_of_a_prompt() -> None:
    """A prompt of three steps: a quarter of a prompt begins in the step in progress and in each of the three, never more than come."""
    assert prompts_beside(1, 0.25, 1.0, 3, 0.0, 63) == pytest.approx(4 * 0.25)
    assert prompts_beside(1, 0.25, 0.1, 3, 2.0, 63) == pytest.approx(0.25 + 3 * 0.1 + 2.0)
    assert prompts_beside(1, 5.0, 9.0, 3, 0.0, 3) == 3


@pytest.mark.parametrize(("users", "spread"), [(100, 0.02), (100, 0.06), (200, 0.03)])
def test_queued_before__balanced_queue_matches_simulation(users: int, spread: float) -> None:
    """One server, one unit of time per prompt, as many users as a cycle is long: only the spread of the cycles makes them queue."""
    rng, half, free = random.Random(1), spread * 3**0.5, 0.0
    asks, waits = [(rng.random() * users, user) for user in range(users)], []
    heapq.heapify(asks)
    while len(waits) < 150 * users:
        arrival, user = heapq.heappop(asks)
        begin = max(arrival, free)
        free = begin + 1.0
        waits.append(begin - arrival)
        heapq.heappush(asks, (free + (users - 1) * rng.uniform(1 - half, 1 + half), user))
    found = queued_before(users - 1, 1.0, users, np.inf, spread)
    assert found == pytest.approx(np.mean(waits[50 * users :]), rel=0.2)


def test_closed_loop__synchronised_prompts_among_decodes_take_a_replayed_time() -> None:
    """Twelve prompts at once, one per step, each a decoding sequence in the steps after its own: 40 ms, and 10 more per sequence."""
    users, output, clock = 12, 1000, 0
    for decoding in range(users):
        clock += 40 + 10 * decoding
    found = closed_loop(
        lambda decoding, kv_tokens, prompt_tokens, prompt_pairs, prompts: 8 + 2 * prompt_tokens + 10 * decoding + 0.0 * kv_tokens,
        replace(LOOP, **load(16.0), users=float(users), output=float(output), step_budget_tokens=16.0 + users, synchronised_share=1.0),
    )
    between = (output - 1) * (found.tpot - (8 + 10 * users))  # of a user's decodes, while prompts after its own are prefilled
    assert found.ttft + between == pytest.approx(clock, rel=1e-9)


def test_replica_seats__at_least_one_and_at_most_the_limit() -> None:
    assert replica_seats(1.5, 256, 1) == 1.5
    assert replica_seats(0.2, 256, 1) == 1
    assert replica_seats(3e6, 256, 8) == 8 * 256


# -- open loop --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("load_share", [0.02, 0.3, 0.6, 0.9])
def test_open_loop__littles_law_and_the_rate_that_was_given(load_share: float) -> None:
    loop = replace(LOOP, seats=256.0)
    rate = load_share * float(capacity(STEP, loop))
    times = open_loop(STEP, loop, rate)
    in_service = rate * (times.ttft - times.seat_wait + (256 - 1) * times.tpot)
    assert in_service == pytest.approx(float(times.in_service), rel=1e-6)


def test_open_loop__almost_no_load_equals_a_request_alone() -> None:
    alone = closed_loop(STEP, replace(LOOP, users=1.0, synchronised_share=0.0))
    times = open_loop(STEP, replace(LOOP, seats=256.0), 1e-6)
    assert times.ttft == pytest.approx(float(alone.ttft), rel=1e-4)
    assert times.tpot == pytest.approx(float(alone.tpot), rel=1e-4)


def test_open_loop__queue_before_a_server_of_prompts_is_that_of_m_d_1() -> None:
    """A prompt fills a step of one second, decodes take next to no time: a server with a fixed time per prompt."""

    def step(decoding: Any, kv_tokens: Any, tokens: Any, pairs: Any, prompts: Any = 1.0) -> Any:
        return 1e-9 + tokens / 8192.0 + 0.0 * kv_tokens

    loop = replace(LOOP, **load(8192.0), output=200.0, seats=1e6, step_budget_tokens=8400.0, synchronised_share=0.0)
    for utilisation in (0.3, 0.6, 0.8):
        ttft = float(open_loop(step, loop, utilisation).ttft)
        assert ttft == pytest.approx(1 + utilisation / (2 * (1 - utilisation)), rel=0.05)

"""The closed loop against its limits, Little's law and a discrete-event simulation of an engine's scheduler."""

from __future__ import annotations

import bisect
import random
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from headway.laws.queueing.closed_loop import Loop, StepTime, closed_loop

CLIENT = 0.005  # a user's own delay between an answer and the next prompt, and as much again at random
LOOP = Loop(
    users=32.0,
    seats=1e9,
    prompt=1024.0,
    output=256.0,
    step_budget_tokens=8192.0,
    chunked_prefill=1.0,
    synchronised_share=0.1,
    concurrent_prompts=0.0,
    spread=0.064,
    request_overhead_s=0.0,
)


def linear(fixed: float, per_prompt_token: float, per_kv_token: float) -> StepTime:
    def step(decoding: Any, kv_tokens: Any, prompt_tokens: Any, prompt_pairs: Any) -> Any:
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
        prompt=prompt,
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
    loop = replace(LOOP, users=users, prompt=prompt, output=output, chunked_prefill=0, synchronised_share=1)
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
    found = closed_loop(STEP, replace(LOOP, users=1.0, prompt=100_000.0, output=50.0, chunked_prefill=mixed))
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

"""A closed loop replayed step by step, in whole ticks: prompts first come first served, one token per decoding user and step.

Written without the laws: it advances a clock and counts. A step takes `step_ticks`, and `prompt_ticks` more for each prompt token in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedLoop:
    """Users of one engine, all with the same prompt and output; each sends the next prompt `delays` ticks after its answer, in turn."""

    users: int
    prompt: int
    output: int
    chunk: int  # most prompt tokens per step
    step_ticks: int
    prompt_ticks: int
    delays: tuple[int, ...] = (0,)
    arrivals: tuple[int, ...] = ()  # of the first prompts; all at 0 if empty
    prefill_first: bool = False  # no user decodes while a prompt waits


class ReplayedRequest(NamedTuple):
    """One request's user and times, in ticks and in the steps that the engine has done by then."""

    user: int
    arrival: int
    first_token: int
    finish: int
    prefill_steps: int
    steps_at_finish: int


def replay_steps(loop: ReplayedLoop, requests: int) -> list[ReplayedRequest]:
    """The first requests of a loop to finish, in that order."""
    waiting = [(arrival, user) for user, arrival in enumerate(loop.arrivals or (0,) * loop.users)]
    left, prefill_steps = [loop.prompt] * loop.users, [0] * loop.users
    emitted, arrival, first = [0] * loop.users, [0] * loop.users, [0] * loop.users
    done: list[ReplayedRequest] = []
    clock, steps = 0, 0
    while len(done) < requests:
        waiting.sort()
        decoding = [user for user in range(loop.users) if emitted[user]]
        if not decoding:
            clock = max(clock, waiting[0][0])
        queue = [(at, user) for at, user in waiting if at <= clock]
        if loop.prefill_first and queue:
            decoding = []
        room, begun = loop.chunk, []
        for at, user in queue:
            tokens = min(room, left[user])
            if tokens:
                left[user], room, arrival[user] = left[user] - tokens, room - tokens, at
                prefill_steps[user] += 1
                begun.append((at, user))
        clock, steps = clock + loop.step_ticks + loop.prompt_ticks * (loop.chunk - room), steps + 1
        for at, user in begun:
            if not left[user]:
                waiting.remove((at, user))
                emitted[user], first[user] = 1, clock
        for user in decoding:
            emitted[user] += 1
        for user in range(loop.users):
            if emitted[user] >= loop.output:
                done.append(ReplayedRequest(user, arrival[user], first[user], clock, prefill_steps[user], steps))
                left[user], emitted[user], prefill_steps[user] = loop.prompt, 0, 0
                waiting.append((clock + loop.delays[len(done) % len(loop.delays)], user))
    return done


def ttft_ticks(done: list[ReplayedRequest]) -> float:
    """Mean time to first token."""
    return sum(request.first_token - request.arrival for request in done) / len(done)


def decode_ticks(done: list[ReplayedRequest]) -> float:
    """Mean time from first token to answer."""
    return sum(request.finish - request.first_token for request in done) / len(done)

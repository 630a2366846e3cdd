"""Drawn traffic, requests or conversations: reproducible from a seed, with a beginning that does not depend on its length.

A full block of a conversation, of a question or an answer, keeps its id in every later turn; a prompt's last, partly filled block has an
id of its own. The last token of an answer has no KV, so a block that it completes is not left in the cache.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headway.core import units
from headway.core.errors import BadValue
from headway.simulation.traffic.distributions import Arrivals, Even, Lengths, Recorded
from headway.simulation.traffic.requests import LONGEST, Floats, Ints, Traffic

MOST_REQUESTS = 100_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Streams:
    """The random generators of one seed, in their initial state."""

    arrivals: np.random.Generator
    prompt: np.random.Generator
    output: np.random.Generator
    turns: np.random.Generator
    gaps: np.random.Generator
    begins: np.random.Generator


def streams(seed: int) -> Streams:
    """Random generators, reproducible from a seed."""
    if seed < 0:
        raise BadValue("--seed", seed, "a whole number of 0 or more")
    arrivals, prompt, output, turns, gaps, begins = (np.random.default_rng([seed, purpose]) for purpose in range(6))
    return Streams(arrivals=arrivals, prompt=prompt, output=output, turns=turns, gaps=gaps, begins=begins)


def check_count(count: int) -> None:
    """Refuse a number of requests below 1 or too large for memory."""
    if not 1 <= count <= MOST_REQUESTS:
        raise BadValue("--requests", count, f"1 to {MOST_REQUESTS} requests")


MOST_USERS = 10_000_000
MOST_THINK = 1e9  # seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedLoop:
    """Closed-loop users, who send a request, wait for its answer, think and repeat; the loop sets arrivals from the answers.

    Requests are sent in order. The first `users` requests arrive at their `traffic.arrival`; each later request i is sent by the user who
    gets the next answer, think[i] seconds after that answer ends. Its arrival in the record has no meaning.
    """

    users: int
    traffic: Traffic
    think: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Think:
    """Seconds between an answer and the next question, constant or exponential."""

    mean: float
    exponential: bool = False

    def draw(self, rng: np.random.Generator, count: int) -> Floats:
        """`count` pauses in seconds."""
        return rng.standard_exponential(count) * self.mean if self.exponential else np.full(count, self.mean)


def generate(arrivals: Arrivals, prompt: Lengths, output: Lengths, count: int, seed: int) -> Traffic:
    """`count` independent requests."""
    check_count(count)
    draw = streams(seed)
    prompts, outputs = drawn_lengths(prompt, output, count, draw)
    return Traffic.of(arrivals.draw(draw.arrivals, count), prompts, outputs)


def generate_loop(users: int, think: Think, prompt: Lengths, output: Lengths, count: int, seed: int, ramp: float = 0.0) -> ClosedLoop:
    """`count` requests of closed-loop users who start evenly over `ramp` seconds."""
    if not 1 <= users <= MOST_USERS:
        raise BadValue("--users", users, f"1 to {MOST_USERS} users")
    if not 0 <= ramp <= MOST_THINK:
        raise BadValue("ramp", ramp, f"seconds from 0 to {MOST_THINK:g}")
    check_count(count)
    draw = streams(seed)
    prompts, outputs = drawn_lengths(prompt, output, count, draw)
    arrival = np.minimum(np.arange(count) / users, 1.0) * ramp
    return ClosedLoop(users=users, traffic=Traffic.of(arrival, prompts, outputs), think=think.draw(draw.gaps, count))


def parse_think(text: str, field: str = "--think") -> Think:
    """Think time from text: a constant pause, or the mean of exponential pauses.

    >>> parse_think("exponential:2s")
    Think(mean=2.0, exponential=True)
    """
    name, colon, rest = text.partition(":")
    name = name.strip().lower() if colon else "constant"
    if name not in ("constant", "exponential"):
        raise BadValue(field, text, "seconds such as 2s, or exponential:2s")
    mean = units.parse(rest if colon else text, "s", field)
    if not 0 <= mean <= MOST_THINK:
        raise BadValue(field, text, f"seconds from 0 to {MOST_THINK:g}")
    return Think(mean=mean, exponential=name == "exponential")


def drawn_lengths(prompt: Lengths, output: Lengths, count: int, draw: Streams) -> tuple[Ints, Ints]:
    """Prompt and output lengths, in recorded pairs if both come from one trace."""
    if isinstance(prompt, Recorded) and isinstance(output, Recorded) and prompt.source == output.source:
        rows = draw.prompt.integers(0, len(prompt.tokens), count)
        return prompt.tokens[rows], output.tokens[rows]
    return prompt.draw(draw.prompt, count), output.draw(draw.output, count)


BLOCK = 64  # tokens; engines share whole blocks of 16 to 128
MOST_TURNS = 10_000.0
FEWEST_TALKS = 20  # conversations, however long, that stand for all


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationTurns:
    """Parameters of conversations: geometric number of turns, exponential pauses, and a shared system prompt."""

    mean: float  # mean number of turns
    gap: float  # mean seconds from an answer to the next turn, for reading and writing
    shared: int = 0  # tokens of a system prompt shared by all conversations
    block: int = BLOCK  # tokens per block


def parse_turns(text: str, field: str = "--turns") -> ConversationTurns:
    """Mean turns, gap and optionally shared tokens, from a text.

    >>> parse_turns("5,60s,1k")
    ConversationTurns(mean=5.0, gap=60.0, shared=1000, block=64)
    """
    parts = text.split(",")
    if not 2 <= len(parts) <= 3:
        raise BadValue(field, text, "TURNS,GAP or TURNS,GAP,SHARED such as 5,60s,1k")
    mean, gap = units.parse(parts[0], "", field), units.parse(parts[1], "s", field)
    shared = units.parse(parts[2], "token", field) if len(parts) == 3 else 0.0
    if not 1 <= mean <= MOST_TURNS:
        raise BadValue(field, parts[0], f"a mean of 1 to {MOST_TURNS:g} turns")
    if not 0 <= gap <= 1e9:
        raise BadValue(field, parts[1], "a mean gap of 0 s to 1e9 s")
    if not (0 <= shared <= LONGEST and shared == int(shared)):
        raise BadValue(field, parts[2], "whole shared tokens")
    return ConversationTurns(mean=mean, gap=gap, shared=int(shared))


def generate_conversations(
    arrivals: Arrivals, rate: float, prompt: Lengths, output: Lengths, turns: ConversationTurns, count: int, seed: int
) -> Traffic:
    """The first `count` requests of conversations that start by `arrivals`, so often that `rate` requests/s arrive in steady state.

    `prompt` is the length of the new question alone. A turn's recorded arrival assumes instant answers; the simulation sends it later by
    the answers' time. In the first few gaps, fewer conversations are active than in steady state.
    """
    check_count(count)
    begin = arrivals.of_rate(rate / turns.mean)
    talks = min(int(1.5 * count / turns.mean) + 10, count + 1)
    while True:
        time, pause, of, context, answered = _turns(talks, begin, prompt, output, turns, streams(seed))
        order = np.argsort(time, kind="stable")[:count]
        # Conversations not drawn begin later, so they have no turn among the first.
        if talks > count or (len(order) == count and of[order[-1]] < talks - 1 and time[order[-1]] <= time[of == talks - 1][0]):
            break
        talks = min(2 * talks, count + 1)
    names, prompts, answers = first_seen(of[order]), context[order], answered[order]
    common = turns.shared // turns.block
    return Traffic.of(
        time[order], prompts, answers, conversation=names, pause=pause[order], block_tokens=turns.block,
        first_own=own_blocks(prompts, answers, names, turns.block, common), common=common,
    )  # fmt: skip


def generate_talking_users(
    users: int, think: Think | None, prompt: Lengths, output: Lengths, turns: ConversationTurns, count: int, seed: int
) -> Traffic:
    """Conversations of `count` requests and some more for users, each going on with one and then beginning the next.

    A first turn's pause is the time before a user begins a conversation: `think`, or else drawn like the gaps between turns. The first
    conversation of each user begins such a pause after 0 s, so that users do not march in step.
    """
    if not 1 <= users <= MOST_USERS:
        raise BadValue("--users", users, f"1 to {MOST_USERS} users")
    check_count(count)
    draw = streams(seed)
    talks = 2 * users + int(1.2 * count / turns.mean) + FEWEST_TALKS
    while True:
        _, pause, of, context, answered = _turns(talks, Even(rate=1.0), prompt, output, turns, streams(seed))
        if int((of < talks - 2 * users).sum()) >= count:
            break
        talks *= 2
    begins = np.flatnonzero(np.diff(of, prepend=-1))
    pause[begins] = (think or Think(mean=turns.gap, exponential=True)).draw(draw.begins, talks)
    first = np.sort(pause[begins[:users]])
    names, common = of.astype(np.int64), turns.shared // turns.block
    return Traffic.of(
        first[np.minimum(names, users - 1)], context, answered, conversation=names, pause=pause, block_tokens=turns.block,
        first_own=own_blocks(context, answered, names, turns.block, common), common=common,
    )  # fmt: skip


def conversation_turns(prompt: Lengths, output: Lengths, turns: ConversationTurns, count: int, seed: int) -> Traffic:
    """All turns of whole conversations, about `count`: the mix of early and late turns that a lasting load has, all at 0 s."""
    talks = max(int(count / turns.mean), FEWEST_TALKS)
    _, _, _, context, answered = _turns(talks, Even(rate=1.0), prompt, output, turns, streams(seed))
    return Traffic.of(np.zeros(len(context)), context, answered)


def _turns(talks: int, begin: Arrivals, prompt: Lengths, output: Lengths, turns: ConversationTurns, draw: Streams) -> tuple[Any, ...]:
    """Every turn of `talks` conversations in sequence: time, pause before it, conversation, prompt and output."""
    sizes = draw.turns.geometric(1 / turns.mean, talks)
    first, total = np.cumsum(sizes) - sizes, int(sizes.sum())
    gaps = turns.gap * draw.gaps.standard_exponential(total)
    gaps[first] = 0.0
    new_tokens, answered = prompt.draw(draw.prompt, total), output.draw(draw.output, total)
    context = turns.shared + _within(new_tokens + answered, first, sizes) - answered
    time = np.repeat(begin.draw(draw.arrivals, talks), sizes) + _within(gaps, first, sizes)
    return time, gaps, np.repeat(np.arange(talks), sizes), context, answered


def _within(values: NDArray[Any], first: Ints, sizes: Ints) -> Any:
    """Running sums that restart at each conversation."""
    sums = np.cumsum(values)
    return sums - np.repeat(sums[first] - values[first], sizes)


def first_seen(of: Ints) -> Ints:
    """Conversations renumbered by first appearance."""
    _, first, inverse = np.unique(of, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse].astype(np.int64)


def own_blocks(prompt: Ints, answered: Ints, names: Ints, block: int, common: int = 0) -> Ints:
    """By turn the id of the first block of its conversation's own, after `common` shared ones: ids of a conversation follow one another."""
    longest = np.zeros(int(names.max(initial=-1)) + 1, np.int64)
    np.maximum.at(longest, names, (prompt + answered - 1) // block - common)
    return (common + np.cumsum(longest) - longest)[names]

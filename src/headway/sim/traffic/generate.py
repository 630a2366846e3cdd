"""Traffic that is drawn, requests or conversations: the same from the same seed, its beginning the same however much follows.

A full block of a conversation has the same id in every later turn, be it of a question or of an answer; a prompt's last one, part full,
has an id of its own. The last token of an answer was never computed with: a block that it fills is not one that the answer leaves behind.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.core import units
from headway.core.errors import BadValue
from headway.sim.traffic.arrivals import Arrivals
from headway.sim.traffic.lengths import Lengths, Recorded
from headway.sim.traffic.requests import LONGEST, Floats, Ints, Traffic

MOST_REQUESTS = 100_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Streams:
    """The generators of one seed, each at its beginning."""

    arrivals: np.random.Generator
    prompt: np.random.Generator
    output: np.random.Generator
    turns: np.random.Generator
    gaps: np.random.Generator


def streams(seed: int) -> Streams:
    """Generators that draw the same numbers each time they are made from one seed."""
    if seed < 0:
        raise BadValue("--seed", seed, "a whole number of 0 or more")
    arrivals, prompt, output, turns, gaps = (np.random.default_rng([seed, purpose]) for purpose in range(5))
    return Streams(arrivals=arrivals, prompt=prompt, output=output, turns=turns, gaps=gaps)


def check_count(count: int) -> None:
    """Refuse a number of requests that is none or more than memory holds."""
    if not 1 <= count <= MOST_REQUESTS:
        raise BadValue("--requests", count, f"1 to {MOST_REQUESTS} requests")


MOST_USERS = 10_000_000
MOST_THINK = 1e9  # seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedLoop:
    """N users, each of whom asks, waits for the answer, thinks and asks again: for the loop to play, as arrivals depend on answers.

    Requests are asked in order. The first `users` of them arrive at their `traffic.arrival`; request i after those is asked by whoever is
    next to have been answered, think[i] seconds after that answer ended. Its arrival in the record is none.
    """

    users: int
    traffic: Traffic
    think: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Think:
    """Seconds between an answer and the next question: of one length, or exponential."""

    mean: float
    exponential: bool = False

    def draw(self, rng: np.random.Generator, count: int) -> Floats:
        """So many pauses."""
        return rng.standard_exponential(count) * self.mean if self.exponential else np.full(count, self.mean)


def generate(arrivals: Arrivals, prompt: Lengths, output: Lengths, count: int, seed: int) -> Traffic:
    """So many independent requests."""
    check_count(count)
    draw = streams(seed)
    prompts, outputs = _lengths(prompt, output, count, draw)
    return Traffic.of(arrivals.draw(draw.arrivals, count), prompts, outputs)


def generate_loop(users: int, think: Think, prompt: Lengths, output: Lengths, count: int, seed: int, ramp: float = 0.0) -> ClosedLoop:
    """So many requests of users who begin evenly over `ramp` seconds, all at once when it is 0."""
    if not 1 <= users <= MOST_USERS:
        raise BadValue("--users", users, f"1 to {MOST_USERS} users")
    if not 0 <= ramp <= MOST_THINK:
        raise BadValue("ramp", ramp, f"seconds from 0 to {MOST_THINK:g}")
    check_count(count)
    draw = streams(seed)
    prompts, outputs = _lengths(prompt, output, count, draw)
    arrival = np.minimum(np.arange(count) / users, 1.0) * ramp
    return ClosedLoop(users=users, traffic=Traffic.of(arrival, prompts, outputs), think=think.draw(draw.gaps, count))


def parse_think(text: str, field: str = "--think") -> Think:
    """A pause, or the mean of exponential ones.

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


def _lengths(prompt: Lengths, output: Lengths, count: int, draw: Streams) -> tuple[Ints, Ints]:
    """Prompts and answers, in pairs as they were recorded where both are of one trace."""
    if isinstance(prompt, Recorded) and isinstance(output, Recorded) and prompt.source == output.source:
        rows = draw.prompt.integers(0, len(prompt.tokens), count)
        return prompt.tokens[rows], output.tokens[rows]
    return prompt.draw(draw.prompt, count), output.draw(draw.output, count)


BLOCK = 64  # tokens: engines share whole blocks of 16 to 128
MOST_TURNS = 10_000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationTurns:
    """How conversations go: a geometric number of turns, exponential pauses between them, and what all of them begin with."""

    mean: float  # turns
    gap: float  # mean seconds from the answer to a turn until the next is sent: reading and writing
    shared: int = 0  # tokens of a system prompt that all conversations begin with
    block: int = BLOCK  # tokens


def parse_turns(text: str, field: str = "--turns") -> ConversationTurns:
    """Turns and gap, and perhaps shared tokens, from a text.

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
    """The first `count` requests of conversations that begin by `arrivals`, so often that in the end `rate` requests come per second.

    `prompt` is of the new question alone. A turn's arrival in the record is that after an answer in no time: it is sent later by what
    answers take. Until some gaps have passed fewer conversations are under way than later.
    """
    check_count(count)
    begin = arrivals.of_rate(rate / turns.mean)
    talks = min(int(1.5 * count / turns.mean) + 10, count + 1)
    while True:
        time, pause, of, context, answered = _turns(talks, begin, prompt, output, turns, streams(seed))
        order = np.argsort(time, kind="stable")[:count]
        # Conversations that were not drawn begin later than these: they have no turn among the first.
        if talks > count or (len(order) == count and of[order[-1]] < talks - 1 and time[order[-1]] <= time[of == talks - 1][0]):
            break
        talks = min(2 * talks, count + 1)
    names = first_seen(of[order])
    start, blocks, answer_start, answers = turn_blocks(context[order], answered[order], names, turns)
    return Traffic.of(
        time[order], context[order], answered[order], conversation=names, blocks=blocks, block_start=start, block_tokens=turns.block,
        answers=answers, answer_start=answer_start, pause=pause[order],
    )  # fmt: skip


def _turns(talks: int, begin: Arrivals, prompt: Lengths, output: Lengths, turns: ConversationTurns, draw: Streams) -> tuple[Any, ...]:
    """Every turn of so many conversations, one after the other: its time, the pause before it, its conversation, prompt and answer."""
    sizes = draw.turns.geometric(1 / turns.mean, talks)
    first, total = np.cumsum(sizes) - sizes, int(sizes.sum())
    gaps = turns.gap * draw.gaps.standard_exponential(total)
    gaps[first] = 0.0
    new_tokens, answered = prompt.draw(draw.prompt, total), output.draw(draw.output, total)
    context = turns.shared + _within(new_tokens + answered, first, sizes) - answered
    time = np.repeat(begin.draw(draw.arrivals, talks), sizes) + _within(gaps, first, sizes)
    return time, gaps, np.repeat(np.arange(talks), sizes), context, answered


def _within(values: Any, first: Ints, sizes: Ints) -> Any:
    """Running sums that begin anew with each conversation."""
    sums = np.cumsum(values)
    return sums - np.repeat(sums[first] - values[first], sizes)


def first_seen(of: Ints) -> Ints:
    """Conversations numbered by their first request."""
    _, first, inverse = np.unique(of, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse].astype(np.int64)


def turn_blocks(prompt: Ints, answered: Ints, names: Ints, turns: ConversationTurns) -> tuple[Ints, Ints, Ints, Ints]:
    """Offsets and ids of all prompts' blocks: of the shared start, of each conversation, the part-full ones; then those of answers."""
    full, common, after = prompt // turns.block, turns.shared // turns.block, (prompt + answered - 1) // turns.block
    counts = -(-prompt // turns.block)
    start = np.concatenate([[0], np.cumsum(counts)])
    longest = np.zeros(int(names.max(initial=-1)) + 1, np.int64)
    np.maximum.at(longest, names, after - common)
    base = common + np.cumsum(longest) - longest
    ids = np.arange(start[-1])
    ids -= np.repeat(start[:-1] - base[names] + common, counts)
    ids[start[:-1, None] + np.arange(common)] = np.arange(common)  # no prompt is shorter than what all begin with
    has_partial = full < counts
    ids[start[1:][has_partial] - 1] = common + longest.sum() + np.flatnonzero(has_partial)
    answer_start = np.concatenate([[0], np.cumsum(after - full)])
    answers = np.arange(answer_start[-1]) + np.repeat(base[names] - common + full - answer_start[:-1], after - full)
    return start, ids, answer_start, answers

"""Conversations: each turn's prompt is all that was said before and a new question, so that its prefix may still be in a cache.

A full block of a conversation has the same id in every later turn, be it of a question or of an answer; a prompt's last one, part full,
has an id of its own. The last token of an answer was never computed with: a block that it fills is not one that the answer leaves behind.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from headway import units
from headway.errors import BadValue
from headway.sim.traffic.arrivals import Arrivals
from headway.sim.traffic.lengths import Lengths
from headway.sim.traffic.record import LONGEST, Ints, Traffic
from headway.sim.traffic.streams import Streams, check_count, streams

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

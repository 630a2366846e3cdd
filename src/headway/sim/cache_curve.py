"""What a prefix cache would do on a trace: hits by time to live and by room from one pass, and what it holds over time.

A time to live begins anew with each use, so that without a limit on room a block is found if and only if it was used within that time:
the gaps between uses answer for all times to live at once, and with room for C blocks so do the reuse distances.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headway.errors import BadValue
from headway.sim.kvcache_arrays import dense_ids
from headway.sim.reuse_distance import NEVER, Reuse, reuse
from headway.sim.traffic.conversations import BLOCK, ConversationTurns, first_seen, turn_blocks
from headway.sim.traffic.record import NO_CONVERSATION, Traffic

WANTS = "a trace that says what prompts share: Mooncake's JSON lines with hash_ids, or a CSV with a conversation column"


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixUses:
    """Every use of a block, block by block in order of time."""

    tokens: Any  # of the block
    time: Any  # s
    next: Any  # seconds to the next use of the same block; inf for the last
    last: Any  # seconds since the one before; inf for the first
    end: float  # time of the last use of any


@dataclass(frozen=True, slots=True, kw_only=True)
class HitCurve:
    """A trace's prompts as a cache sees them."""

    requests: int
    prompt_tokens: int
    prompt: float  # tokens, mean
    output: float  # tokens, mean
    span: float  # s from the first arrival to the last
    block_tokens: int
    answers: bool  # whether it is known what answers leave for the next turn
    tokens: Any  # of each block of each prompt, its last perhaps part full
    reuse: Reuse
    uses: PrefixUses

    def hit_tokens(self, ttl: float = math.inf, room: float = math.inf) -> int:
        """Prompt tokens found by a cache that keeps blocks for `ttl` seconds after their last use, and at most `room` blocks (LRU)."""
        is_hit = (self.reuse.distance < NEVER) & (self.reuse.age <= ttl) & (self.reuse.distance <= room)
        return int(self.tokens[is_hit].sum())

    def hit_share(self, ttl: float = math.inf, room: float = math.inf) -> float:
        """The same over all prompt tokens."""
        return self.hit_tokens(ttl, room) / self.prompt_tokens

    def blocks_in(self, room: float | None, token_bytes: float) -> float:
        """Whole blocks that so many bytes hold; None: no limit."""
        return math.inf if room is None else room // (token_bytes * self.block_tokens)

    def held_token_s(self, ttl: float = math.inf) -> float:
        """Tokens held, over the time from the first arrival to the last, without a limit on room."""
        remaining_s = self.uses.end - self.uses.time
        return float(np.sum(self.uses.tokens * np.minimum(np.minimum(self.uses.next, remaining_s), ttl)))

    def held_peak(self, ttl: float = math.inf) -> int:
        """The most tokens held at any time, without a limit on room."""
        begins, ends = ((gap > ttl) | np.isinf(gap) for gap in (self.uses.last, self.uses.next))
        order = np.argsort(self.uses.time[begins], kind="stable")
        start, come = self.uses.time[begins][order], np.cumsum(self.uses.tokens[begins][order])
        stop = self.uses.time[ends] + ttl
        order = np.argsort(stop, kind="stable")
        stop, gone = stop[order], np.concatenate([[0], np.cumsum(self.uses.tokens[ends][order])])
        at = np.searchsorted(start, start, side="right") - 1
        return int(np.max(come[at] - gone[np.searchsorted(stop, start, side="left")], initial=0))

    def gaps(self, most: int = 60) -> Any:
        """Times to live worth a look: from the shortest gap to the longest, evenly by ratio."""
        known = self.reuse.age[np.isfinite(self.reuse.age) & (self.reuse.age > 0)]
        if not len(known):
            raise BadValue("trace", "no block is used twice", "a trace in which prompts share something")
        return np.geomspace(max(float(known.min()), 1e-3), max(float(known.max()), 2e-3), most)

    def rooms(self, most: int = 60) -> Any:
        """Rooms worth a look, in blocks, likewise."""
        known = self.reuse.distance[self.reuse.distance < NEVER]
        return np.unique(np.geomspace(1, max(2, int(known.max(initial=2))), most).astype(np.int64))


def curve(traffic: Traffic) -> HitCurve:
    """One pass over a trace; an answer whose blocks are known is stored when its prompt has been, and asked for by the next turn."""
    shared = with_blocks(traffic)
    counts = np.stack([np.diff(shared.block_start), np.diff(shared.answer_start)], axis=1).ravel()  # a prompt, its answer, a prompt, ...
    start = np.concatenate([[0], np.cumsum(counts)])
    is_prompt = np.repeat(np.arange(len(counts)) % 2 == 0, counts)
    blocks = np.empty(len(is_prompt), np.int64)
    blocks[is_prompt], blocks[~is_prompt] = shared.blocks, shared.answers
    within = np.arange(len(blocks)) - np.repeat(start[:-1], counts)
    rest = np.repeat(np.repeat(shared.prompt, 2), counts) - within * shared.block_tokens
    tokens = np.where(is_prompt, np.minimum(shared.block_tokens, rest), shared.block_tokens)
    times = np.repeat(shared.arrival, 2)
    block_reuse = reuse(blocks, start, times, leaf_first=True)
    return HitCurve(
        requests=len(shared),
        prompt_tokens=int(shared.prompt.sum()),
        prompt=float(shared.prompt.mean()),
        output=float(shared.output.mean()),
        span=float(shared.arrival[-1] - shared.arrival[0]),
        block_tokens=shared.block_tokens,
        answers=len(shared.answers) > 0,
        tokens=tokens[is_prompt],
        reuse=Reuse(distance=block_reuse.distance[is_prompt], age=block_reuse.age[is_prompt]),
        uses=_uses(blocks, tokens, np.repeat(times, counts)),
    )


def with_blocks(traffic: Traffic) -> Traffic:
    """The traffic with the blocks of its prompts: its own, or those that the turns of a conversation share."""
    if len(traffic.blocks):
        return traffic
    talking = traffic.conversation != NO_CONVERSATION
    if not talking.any():
        raise BadValue("--workload", "a trace without prefix information", WANTS)
    alone = np.arange(len(traffic)) + int(traffic.conversation.max()) + 1
    names = first_seen(np.where(talking, traffic.conversation, alone))
    start, blocks, answer_start, answers = turn_blocks(traffic.prompt, traffic.output, names, ConversationTurns(mean=1.0, gap=0.0))
    return replace(traffic, blocks=blocks, block_start=start, block_tokens=BLOCK, answers=answers, answer_start=answer_start)


def _uses(blocks: Any, tokens: Any, when: Any) -> PrefixUses:
    dense, _ = dense_ids(blocks)
    order = np.argsort(np.asarray(dense), kind="stable")
    ids, time = np.asarray(dense)[order], when[order]
    same = ids[1:] == ids[:-1]
    gap = np.where(same, time[1:] - time[:-1], np.inf)
    return PrefixUses(tokens=tokens[order], time=time, next=np.append(gap, np.inf), last=np.insert(gap, 0, np.inf), end=float(time.max()))

"""Hit rates of a prefix cache on a trace, by time to live and by room: reuse distances and idle times from one pass, or a replay.

The same as `reuse(...).age`, block by block and without the pool's order, so that a million requests take a second.

An LRU pool of C blocks that forgets what was idle for longer than T holds exactly the blocks that were used within T and are among the
C used last (Mattson et al. 1970: what a small pool holds, a larger one holds too). So a block is found if its distance is at most C and
its age at most T, and is a hit if that holds for all blocks before it in the prompt as well.

A time to live begins anew with each use, so that without a limit on room a block is found if and only if it was used within that time:
the gaps between uses answer for all times to live at once, and with room for C blocks so do the reuse distances.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headway.core.errors import BadValue
from headway.sim import compiled
from headway.sim.kv_pools import CachePools, as_lists, dense_ids, into_arrays, make_pools
from headway.sim.prefix_cache import use
from headway.sim.traffic.generate import BLOCK, ConversationTurns, first_seen, turn_blocks
from headway.sim.traffic.requests import NO_CONVERSATION, Traffic


def idle_before(blocks: Any, request: Any, times: Any) -> Any:
    """Seconds since the use of each block before this one; inf at its first."""
    order, same = _by_block(blocks)
    when = np.asarray(times, np.float64)[np.asarray(request)[order]]
    idle = np.full(len(order), np.inf)
    idle[order[1:][same]] = np.diff(when)[same]
    return idle


def idle_after(blocks: Any, request: Any, times: Any) -> Any:
    """Seconds from this use of each block to the next; inf after its last."""
    order, same = _by_block(blocks)
    when = np.asarray(times, np.float64)[np.asarray(request)[order]]
    idle = np.full(len(order), np.inf)
    idle[order[:-1][same]] = np.diff(when)[same]
    return idle


def leading(is_cached: Any, starts: Any) -> Any:
    """Of each request's blocks, those before the first that is not held."""
    first, end = np.asarray(starts)[:-1], np.asarray(starts)[1:]
    missing = np.append(np.flatnonzero(~np.asarray(is_cached)), len(is_cached))
    return np.minimum(missing[np.searchsorted(missing, first)], end) - first


def _by_block(blocks: Any) -> tuple[Any, Any]:
    """Uses in the order of blocks and, of one block, of time; and whether each is of the same block as the one before it."""
    order = np.argsort(blocks, kind="stable")
    ids = np.asarray(blocks)[order]
    return order, ids[1:] == ids[:-1]


COMPILE_ABOVE = 1_000_000  # blocks: plain Python takes longer over them than the compiler does


def replay_hits(
    blocks: Any,
    offsets: Any,
    times: Any = None,
    *,
    capacity_blocks: int | Sequence[int] | None = None,
    ttl_s: float | Sequence[float] = np.inf,
    leaf_first: bool = False,
    compile: bool | None = None,
) -> Any:
    """Blocks that each request finds in the cache, in the order given: those of its leading blocks that are still held.

    Blocks of request i are `blocks[offsets[i]:offsets[i + 1]]`; any integers do. `capacity_blocks` is one LRU pool's room (None: no
    limit), or those of several tiers, the fastest first: then the answer has a column for each. A block unused for longer than `ttl_s`
    is gone; each use begins the time anew. Without `times` nothing expires.
    """
    tiers = isinstance(capacity_blocks, Sequence)
    dense, count = dense_ids(blocks)
    room = list(capacity_blocks) if isinstance(capacity_blocks, Sequence) else [count if capacity_blocks is None else capacity_blocks]
    keeps = list(ttl_s) if isinstance(ttl_s, Sequence) else [ttl_s] * len(room)
    starts, clock = requests(offsets, times, len(dense))
    pools = make_pools(count, room, ttl_s=keeps)
    hits = replayed(pools, dense, starts, clock, leaf_first=leaf_first, compile=compile)
    return hits if tiers else hits[:, 0]


def replayed(pools: CachePools, dense: Any, starts: Any, clock: Any, *, leaf_first: bool = True, compile: bool | None = None) -> Any:
    """Hits of each request at each depth below pool 0; the pools are left as the last request leaves them."""
    hits, least = np.zeros((len(starts) - 1, pools.tiers), np.int64), np.zeros(pools.tiers, np.int64)
    fast = compiled.available() and len(dense) > COMPILE_ABOVE if compile is None else compile
    if fast:
        compiled.compiled(replay)(pools, dense, starts, clock, least, leaf_first, hits)
        return hits
    lists, hit_rows = as_lists(pools), hits.tolist()
    replay(lists, dense.tolist(), starts.tolist(), clock.tolist(), least.tolist(), leaf_first, hit_rows)
    into_arrays(pools, lists)
    return np.array(hit_rows, np.int64).reshape(hits.shape)


def replay(pools: CachePools, blocks: Any, starts: Any, clock: Any, least: Any, leaf_first: bool, hits: Any) -> None:
    """Every request in turn; numba-safe."""
    for request in range(len(starts) - 1):
        use(pools, 0, blocks, starts[request], starts[request + 1], clock[request], least, hits[request], leaf_first)


def hit_share(hits: Any, offsets: Any) -> float:
    """Hits over all blocks asked for; of no blocks, 0."""
    lookups = int(offsets[-1]) - int(offsets[0])
    return float(np.sum(hits)) / lookups if lookups else 0.0


def hit_token_share(hits: Any, prompts: Any, block_tokens: int) -> float:
    """Cached tokens over all prompt tokens: a request's last block may be part full, so that its hits are not more than its prompt."""
    prompt_tokens = float(np.sum(prompts))
    return float(np.sum(np.minimum(np.asarray(hits) * block_tokens, prompts))) / prompt_tokens if prompt_tokens else 0.0


def requests(offsets: Any, times: Any, blocks: int) -> tuple[Any, Any]:
    """Offsets and times as arrays, refused where they do not fit."""
    starts = np.ascontiguousarray(offsets, np.int64)
    if not len(starts) or starts[0] != 0 or starts[-1] != blocks or np.any(np.diff(starts) < 0):
        raise BadValue("offsets", starts.tolist()[:5], f"never falling, from 0 to the {blocks} blocks")
    clock = np.zeros(len(starts) - 1) if times is None else np.ascontiguousarray(times, np.float64)
    if len(clock) != len(starts) - 1 or not np.all(np.isfinite(clock)) or np.any(np.diff(clock) < 0):
        raise BadValue("times", clock.tolist()[:5], f"never falling, one for each of the {len(starts) - 1} requests")
    return starts, clock


NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True, kw_only=True)
class Reuse:
    """For each block of each prompt, the least that a cache must have for it to be a hit."""

    distance: Any  # blocks of an LRU pool; NEVER where the block or one before it is new
    age: Any  # seconds that an unused block is kept; inf likewise

    def share(self, capacity_blocks: Any, ttl_s: Any) -> Any:
        """Hits over all blocks: one number for each pair of capacity and TTL, which are broadcast."""
        capacity, ttl = np.broadcast_arrays(capacity_blocks, ttl_s)
        is_reused = self.distance < NEVER
        distance, age = self.distance[is_reused], self.age[is_reused]
        hits = [np.count_nonzero((distance <= room) & (age <= limit_s)) for room, limit_s in zip(capacity.flat, ttl.flat, strict=True)]
        return np.reshape(hits, capacity.shape) / max(1, len(self.distance))


def reuse(blocks: Any, offsets: Any, times: Any = None, *, leaf_first: bool = False, compile: bool | None = None) -> Reuse:
    """Distances and ages of a trace; arguments as `replay_hits` takes them."""
    dense, count = dense_ids(blocks)
    starts, clock = requests(offsets, times, len(dense))
    fast = compiled.available() and len(dense) > COMPILE_ABOVE if compile is None else compile
    arrays = (np.full(count, -1), np.zeros(count), np.zeros(len(dense) + 1, np.int64), np.zeros(len(dense), np.int64), np.zeros(len(dense)))
    if fast:
        compiled.compiled(distances)(dense, starts, clock, leaf_first, *arrays)
        return Reuse(distance=arrays[3], age=arrays[4])
    lists = [array.tolist() for array in arrays]  # plain Python is faster with lists
    distances(dense.tolist(), starts.tolist(), clock.tolist(), leaf_first, *lists)
    return Reuse(distance=np.array(lists[3], np.int64), age=np.array(lists[4], float))


def distances(blocks: Any, starts: Any, clock: Any, leaf_first: bool, last_use: Any, when: Any, tree: Any, distance: Any, age: Any) -> None:
    """Distance and age of each block as its request finds it, the largest of the prompt so far; numba-safe.

    `tree` sums over uses in order (Fenwick 1994), each block counted at its last use `last_use`, `when` in time.
    """
    uses = 0
    for request in range(len(starts) - 1):
        start, end = starts[request], starts[request + 1]
        most, longest, stored = 0, 0.0, total(tree, uses)
        for index in range(start, end):
            block = blocks[index]
            if last_use[block] < 0:
                most, longest = NEVER, np.inf
            elif most < NEVER:
                most = max(most, stored - total(tree, last_use[block]))
                longest = max(longest, clock[request] - when[block])
            distance[index], age[index] = most, longest
        for step in range(end - start):
            block = blocks[end - 1 - step if leaf_first else start + step]
            if last_use[block] >= 0:
                add(tree, last_use[block], -1)
            add(tree, uses, 1)
            last_use[block], when[block] = uses, clock[request]
            uses += 1


def add(tree: Any, place: int, change: int) -> None:
    """Change one member of the summed row."""
    place += 1
    while place < len(tree):
        tree[place] += change
        place += place & -place


def total(tree: Any, count: int) -> int:
    """Sum of the first `count` members."""
    subtotal = 0
    while count > 0:
        subtotal += tree[count]
        count -= count & -count
    return subtotal


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

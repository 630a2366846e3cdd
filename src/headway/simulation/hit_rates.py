"""Hit rates of a prefix cache on a trace, by time to live and by capacity: reuse distances and idle times from one pass, or a replay.

`idle_before` and `leading` count the hits of `reuse(...).age` block by block, without the pool's order: a million requests take a second.

An LRU pool of C blocks that drops blocks idle for longer than T holds exactly the blocks used within T that are among the C most recent
(Mattson et al. 1970: a larger pool holds all blocks of a smaller pool). So a block is found if its distance is at most C and its age at
most T, and is a hit if all blocks before it in the prompt are found too.

Each use restarts the time to live, so in an unlimited pool a block is found if and only if it was used within that time: the gaps between
uses give the hits for all times to live at once, and the reuse distances for all capacities.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from headway.core.errors import BadValue
from headway.simulation import compiled
from headway.simulation.kv_pools import CachePools, Cells, as_lists, dense_ids, into_arrays, make_pools, use
from headway.simulation.traffic.generate import BLOCK, first_seen, own_blocks
from headway.simulation.traffic.requests import NO_CONVERSATION, Floats, Ints, Mask, Traffic


def idle_before(blocks: ArrayLike, request: ArrayLike, times: ArrayLike) -> Any:
    """Seconds since the previous use of each block; inf at its first use."""
    order, same = _by_block(blocks)
    when = np.asarray(times, np.float64)[np.asarray(request)[order]]
    idle = np.full(len(order), np.inf)
    idle[order[1:][same]] = np.diff(when)[same]
    return idle


def idle_after(blocks: ArrayLike, request: ArrayLike, times: ArrayLike) -> Any:
    """Seconds until the next use of each block; inf at its last use."""
    order, same = _by_block(blocks)
    when = np.asarray(times, np.float64)[np.asarray(request)[order]]
    idle = np.full(len(order), np.inf)
    idle[order[:-1][same]] = np.diff(when)[same]
    return idle


def leading(is_cached: Mask, starts: ArrayLike) -> Any:
    """Number of each request's leading blocks that are cached."""
    first, end = np.asarray(starts)[:-1], np.asarray(starts)[1:]
    missing = np.append(np.flatnonzero(~is_cached), len(is_cached))
    return np.minimum(missing[np.searchsorted(missing, first)], end) - first


def _by_block(blocks: ArrayLike) -> tuple[Any, Any]:
    """Uses sorted by block and time; and whether each use has the previous use's block."""
    order = np.argsort(blocks, kind="stable")
    ids = np.asarray(blocks)[order]
    return order, ids[1:] == ids[:-1]


COMPILE_ABOVE = 1_000_000  # blocks from which plain Python takes longer than compiling


def replay_hits(
    blocks: ArrayLike,
    offsets: ArrayLike,
    times: ArrayLike | None = None,
    *,
    capacity_blocks: int | Sequence[int] | None = None,
    ttl_s: float | Sequence[float] = np.inf,
    leaf_first: bool = False,
    compile: bool | None = None,
) -> Any:
    """Leading blocks that each request finds in the cache, in the given order of requests.

    Blocks of request i are `blocks[offsets[i]:offsets[i + 1]]`, any integers. `capacity_blocks` is the size of one LRU pool (None:
    unlimited) or of several tiers, fastest first: then the answer has a column per tier. A block unused for longer than `ttl_s` is
    dropped; each use restarts the time. Without `times` nothing expires.
    """
    tiers = isinstance(capacity_blocks, Sequence)
    dense, count = dense_ids(blocks)
    room = list(capacity_blocks) if isinstance(capacity_blocks, Sequence) else [count if capacity_blocks is None else capacity_blocks]
    keeps = list(ttl_s) if isinstance(ttl_s, Sequence) else [ttl_s] * len(room)
    starts, clock = requests(offsets, times, len(dense))
    pools = make_pools(count, room, ttl_s=keeps)
    hits = replayed(pools, dense, starts, clock, leaf_first=leaf_first, compile=compile)
    return hits if tiers else hits[:, 0]


def replayed(pools: CachePools, dense: Ints, starts: Ints, clock: Floats, *, leaf_first: bool = True, compile: bool | None = None) -> Any:
    """Hits of each request at each depth from pool 0 down; the pools keep their state after the last request."""
    hits, least = np.zeros((len(starts) - 1, pools.tiers), np.int64), np.zeros(pools.tiers, np.int64)
    fast = compiled.available() and len(dense) > COMPILE_ABOVE if compile is None else compile
    if fast:
        compiled.compiled(replay)(pools, dense, starts, clock, least, leaf_first, hits)
        return hits
    lists, hit_rows = as_lists(pools), hits.tolist()
    replay(lists, dense.tolist(), starts.tolist(), clock.tolist(), least.tolist(), leaf_first, hit_rows)
    into_arrays(pools, lists)
    return np.array(hit_rows, np.int64).reshape(hits.shape)


def replay(pools: CachePools, blocks: Cells, starts: Cells, clock: Cells, least: Cells, leaf_first: bool, hits: Cells) -> None:
    """Replay every request in turn and fill `hits`; numba-safe."""
    for request in range(len(starts) - 1):
        use(pools, 0, blocks, starts[request], starts[request + 1], clock[request], least, hits[request], leaf_first)


def hit_share(hits: ArrayLike, offsets: Ints) -> float:
    """Hits over all blocks requested; 0 without blocks."""
    lookups = int(offsets[-1]) - int(offsets[0])
    return float(np.sum(hits)) / lookups if lookups else 0.0


def hit_token_share(hits: ArrayLike, prompts: ArrayLike, block_tokens: int) -> float:
    """Cached tokens over all prompt tokens; a request's last block may be partly filled, so its prompt caps its hits."""
    prompt_tokens = float(np.sum(prompts))
    return float(np.sum(np.minimum(np.asarray(hits) * block_tokens, prompts))) / prompt_tokens if prompt_tokens else 0.0


def requests(offsets: ArrayLike, times: ArrayLike | None, blocks: int) -> tuple[Any, Any]:
    """Offsets and times as checked arrays; BadValue if they do not fit the blocks."""
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
    """For each block of each prompt, the least capacity and time to live with which it is a hit."""

    distance: Any  # blocks of an LRU pool; NEVER if the block or an earlier block of the prompt is new
    age: Any  # time to live in seconds; inf if new

    def share(self, capacity_blocks: ArrayLike, ttl_s: ArrayLike) -> Any:
        """Hits over all blocks, for each pair of capacity and TTL; both broadcast."""
        capacity, ttl = np.broadcast_arrays(capacity_blocks, ttl_s)
        is_reused = self.distance < NEVER
        distance, age = self.distance[is_reused], self.age[is_reused]
        hits = [np.count_nonzero((distance <= room) & (age <= limit_s)) for room, limit_s in zip(capacity.flat, ttl.flat, strict=True)]
        return np.reshape(hits, capacity.shape) / max(1, len(self.distance))


def reuse(
    blocks: ArrayLike, offsets: ArrayLike, times: ArrayLike | None = None, *, leaf_first: bool = False, compile: bool | None = None
) -> Reuse:
    """Reuse distances and ages of a trace; arguments as for `replay_hits`."""
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


def distances(
    blocks: Cells, starts: Cells, clock: Cells, leaf_first: bool, last_use: Cells, when: Cells, tree: Cells, distance: Cells, age: Cells
) -> None:
    """Fill in the distance and age of each block on arrival, each the maximum over the prompt so far; numba-safe.

    `tree` sums over uses in order (Fenwick 1994), with each block counted at its last use `last_use`, at time `when`.
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


def add(tree: Cells, place: int, change: int) -> None:
    """Add `change` to one element of a Fenwick tree."""
    place += 1
    while place < len(tree):
        tree[place] += change
        place += place & -place


def total(tree: Cells, count: int) -> int:
    """Sum of the first `count` elements of a Fenwick tree."""
    subtotal = 0
    while count > 0:
        subtotal += tree[count]
        count -= count & -count
    return subtotal


WANTS = "a trace that says what prompts share: Mooncake's JSON lines with hash_ids, or a CSV with a conversation column"


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixUses:
    """Every use of every block, sorted by block, then time."""

    tokens: Any  # tokens of the block
    time: Any  # s
    next: Any  # seconds to the block's next use; inf for its last use
    last: Any  # seconds since the block's previous use; inf for its first use
    end: float  # time of the last use of any block


@dataclass(frozen=True, slots=True, kw_only=True)
class HitCurve:
    """Uses of a trace's blocks, from which hits and held tokens follow for any time to live and capacity."""

    requests: int
    prompt_tokens: int
    prompt: float  # tokens, mean
    output: float  # tokens, mean
    span: float  # s from the first arrival to the last
    block_tokens: int
    answers: bool  # whether the blocks of answers are known
    tokens: Any  # tokens of each block of each prompt; a prompt's last block may be partly filled
    reuse: Reuse
    uses: PrefixUses

    def hit_tokens(self, ttl: float = math.inf, room: float = math.inf) -> int:
        """Prompt tokens found in an LRU cache of at most `room` blocks that keeps a block for `ttl` seconds after its last use."""
        is_hit = (self.reuse.distance < NEVER) & (self.reuse.age <= ttl) & (self.reuse.distance <= room)
        return int(self.tokens[is_hit].sum())

    def hit_share(self, ttl: float = math.inf, room: float = math.inf) -> float:
        """Prompt tokens found over all prompt tokens."""
        return self.hit_tokens(ttl, room) / self.prompt_tokens

    def blocks_in(self, room: float | None, token_bytes: float) -> float:
        """Whole blocks that fit in `room` bytes; None: unlimited."""
        return math.inf if room is None else room // (token_bytes * self.block_tokens)

    def held_token_s(self, ttl: float = math.inf) -> float:
        """Token-seconds held from the first arrival to the last, by an unlimited cache."""
        remaining_s = self.uses.end - self.uses.time
        return float(np.sum(self.uses.tokens * np.minimum(np.minimum(self.uses.next, remaining_s), ttl)))

    def held_peak(self, ttl: float = math.inf) -> int:
        """The most tokens held at any time, by an unlimited cache."""
        begins, ends = ((gap > ttl) | np.isinf(gap) for gap in (self.uses.last, self.uses.next))
        order = np.argsort(self.uses.time[begins], kind="stable")
        start, come = self.uses.time[begins][order], np.cumsum(self.uses.tokens[begins][order])
        stop = self.uses.time[ends] + ttl
        order = np.argsort(stop, kind="stable")
        stop, gone = stop[order], np.concatenate([[0], np.cumsum(self.uses.tokens[ends][order])])
        at = np.searchsorted(start, start, side="right") - 1
        return int(np.max(come[at] - gone[np.searchsorted(stop, start, side="left")], initial=0))

    def gaps(self, most: int = 60) -> Any:
        """Times to live to plot, in seconds: geometric from the shortest gap to the longest."""
        known = self.reuse.age[np.isfinite(self.reuse.age) & (self.reuse.age > 0)]
        if not len(known):
            raise BadValue("trace", "no block is used twice", "a trace in which prompts share something")
        return np.geomspace(max(float(known.min()), 1e-3), max(float(known.max()), 2e-3), most)

    def rooms(self, most: int = 60) -> Any:
        """Capacities to plot, in blocks, spaced geometrically."""
        known = self.reuse.distance[self.reuse.distance < NEVER]
        return np.unique(np.geomspace(1, max(2, int(known.max(initial=2))), most).astype(np.int64))


def curve(traffic: Traffic) -> HitCurve:
    """The hit curve of a trace, from one pass; known blocks of an answer are stored after its prompt and reused by the next turn."""
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
    """The traffic with blocks of its prompts: its own, or blocks shared by the turns of a conversation."""
    if traffic.has_blocks:
        return traffic.with_listed_blocks()
    talking = traffic.conversation != NO_CONVERSATION
    if not talking.any():
        raise BadValue("--workload", "a trace without prefix information", WANTS)
    alone = np.arange(len(traffic)) + int(traffic.conversation.max()) + 1
    names = first_seen(np.where(talking, traffic.conversation, alone))
    return replace(traffic, block_tokens=BLOCK, first_own=own_blocks(traffic.prompt, traffic.output, names, BLOCK)).with_listed_blocks()


def _uses(blocks: Ints, tokens: Ints, when: Floats) -> PrefixUses:
    dense, _ = dense_ids(blocks)
    order = np.argsort(np.asarray(dense), kind="stable")
    ids, time = np.asarray(dense)[order], when[order]
    same = ids[1:] == ids[:-1]
    gap = np.where(same, time[1:] - time[:-1], np.inf)
    return PrefixUses(tokens=tokens[order], time=time, next=np.append(gap, np.inf), last=np.insert(gap, 0, np.inf), end=float(time.max()))

"""What the loop knows while it runs: a few flat arrays and a few rules, all numbers, so that the loop runs as plain Python and compiled.

The plain loop gets lists (whose elements are quick to read), the compiled one numpy arrays; both do the same operations in the same order.
Only requests in service have a place in `seat`; one that waits for the first time is a position in `order`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from headway.sim import kv_pools
from headway.sim.kv_pools import CachePools, make_pools

# Elements of `at` (floats).
NOW = 0  # the clock
CONTEXT = 1  # tokens that all decoding sequences attend to in the next step
BUSY = 2  # time spent in steps
FULL_S = 3  # of it with requests waiting
EMITTED = 4  # output tokens
PREFILLED = 5  # prompt tokens computed, those computed again after a preemption included
BIN_S = 6  # width of a bin of the series
DECODED = 7  # sequences in each decode step, summed over steps
TOKEN_AT = 8  # time of the last decode step's tokens
DUE = 9  # prompt tokens to be computed for those who queue for the first time, as expected when they were sent by prefix
OUT_S = 10  # copies to the host's memory that the next step waits for
LINK_AT = 11  # end of the last copy back from it
FLOATS = 12

# Elements of `count` (whole numbers).
RUNNING = 0  # sequences that decode
STEP = 1  # steps in which the decoding sequences advanced
PARTIAL = 2  # requests whose prompts are in work
QUEUED = 3
HEAPED = 4
PROMPT_BLOCKS = 5  # blocks that prompts in work hold
RESERVED = 6  # blocks set aside for admitted requests
PREEMPTED = 7
COMPLETED = 8
STEPS = 9  # all iterations
PEAK_BLOCKS = 10
PACKED = 11  # prompts in the step that is being made up
FREE = 12  # first seat that nobody has
TOTAL = 13  # requests in `order`
SPREAD = 14  # last element of `spread`
SHARED = 15  # blocks that requests hold together with the prefix cache, counted for each request
HIT_BLOCKS = 16  # blocks of a prompt that the prefix cache has
COMPLETED_BEFORE = 17  # COMPLETED before the last iteration
FIRST_POOL = 18  # first pool of the replica's prefix cache
COMING = 19  # length of `coming`
ABANDONED = 20  # requests whose users gave up
SWAPPED = 21  # preemptions that kept what was computed
HOSTED = 22  # blocks in the host's memory
RETURNED = 23  # sequences that are back from there and have not decoded since
COUNTS = 24

# A request's two lengths and four times: lengths[2 * request + PROMPT], times[4 * request + FIRST].
PROMPT, OUTPUT = 0, 1
ARRIVAL, SCHEDULED, FIRST, FINISH = 0, 1, 2, 3  # FIRST: until it comes, minus the time at which the user gives up; then in FINISH for ever

# A seat's numbers, state.seat[seat + REQUEST]; seats are named by where they begin.
REQUEST = 0  # the request
CLASS = 1  # its lane
OWED = 2  # tokens to compute before its next token
COMPUTED = 3
CHUNK = 4  # of them in the step that is being made up
OUTPUT_SO_FAR = 5  # output tokens before JOINED
JOINED = 6  # STEP at which it began to decode
PREFILL_BLOCKS = 7  # blocks of its prompt in work
FOLLOWING = 8  # neighbours in the list it is in
BEFORE = 9
AGAIN = 10  # preemptions
PUBLISHED = 11  # blocks of its prompt that others can find
AWAY = 12  # blocks of it in the host's memory; -1: they are back, and it has not decoded since
WIDE = 13

# A class of priority has a lane: ends[lane + ARRIVED].
ARRIVED = 0  # position in `order` of the next to arrive
SERVED = 1  # and of the next to be served for the first time
KNOWN = 2  # and the end of what is known
BACK = 3  # first of those sent back by a preemption, then the last
DECODING = 5  # first of the decoding sequences, then the last
NEXT_REQUEST = 7  # position in `order` of the next that a user of a closed loop will ask
LANE = 8

BINS = 1024  # of the series over time; neighbours are joined when time runs over the last
SERIES = 4  # running, waiting, blocks held, busy: each times seconds
GAPS = 2400  # bins of inter-token times, GAP_RATIO apart, from GAP_LEAST on
GAP_LEAST, GAP_RATIO = 1e-6, 1.01


class Rules(NamedTuple):
    """How a replica schedules; numbers only."""

    budget: int  # tokens that one step takes at most, over all ranks
    chunk: int  # and of one prompt
    seats: int  # requests in service at most
    capacity: int  # blocks of KV cache
    block: int  # tokens in a block
    mixed: int  # 1: prompt chunks ride along with decodes; 0: prompts go first, in steps of their own
    handed: int  # 1: prompts were computed elsewhere, a request begins with its first token
    reserve: float  # part of an answer that is set aside when a request is admitted
    departures: float  # steps begin at multiples of this; 0: as soon as the last ends
    accept: float  # tokens that a step yields for a sequence
    closed: int  # who waits for an answer before the next request: 0 nobody, 1 each user, 2 each conversation
    lanes: int  # LANE times the classes of priority
    caching: int = 0  # 1: prompts find what others computed
    block_tokens: int = 1  # of a block of traffic, which blocks of KV cache make up
    block_bytes: float = 0.0  # of such a block, on all chips of a rank
    leaving: int = 0  # 1: users give up when their first token has not come in time
    swap: int = 0  # blocks of KV cache that the host's memory has room for, of those who are sent back
    copy_s: float = 0.0  # to copy one of them there, or back
    answer: float = 0.0  # tokens of a mean answer, where requests are routed by prefix; 0: they are not


class CacheState(NamedTuple):
    """The prefix cache of a replica."""

    pools: CachePools
    blocks: Any  # ids of all prompts' blocks, one request's after the other's
    start: Any  # by request: its first; one more at the end
    answers: Any  # ids of the blocks that answers fill
    answer_start: Any  # by request, likewise
    depth_hits: Any  # by depth: blocks of the prompt in question
    least: Any  # by depth: fewest blocks worth loading
    saved_shares: Any  # by depth: share of computing a block that finding it there saves
    paths: Any  # what loads, see prefix_tiers.py
    tally: Any  # see prefix_cache.py
    expected: Any  # by request: prompt tokens to be computed, as known when it was sent
    ready: Any  # by seat: when what it found is loaded


class State(NamedTuple):
    """Everything that changes, and the requests."""

    at: Any
    count: Any
    lengths: Any
    times: Any
    order: Any  # requests by arrival, one class after the other
    ends: Any
    seat: Any
    since: Any  # by seat: time of its first token, or of the last before a preemption
    heap: Any  # decoding seats by the step at which they end: step, seat, step, seat ...
    coming: Any  # requests that an answer has called for, by arrival: time, lanes * request + lane, ...
    after: Any  # by request: the next turn of its conversation, -1 where there is none
    partial: Any  # seats whose prompts are in work, in order
    phase: Any  # decoding sequences by (context - STEP) modulo the block
    spread: Any  # prompts in a step -> ranks that they keep busy
    line: Any  # by batch: a decode step's time without context, per token of context, 1 where the two say all
    log: Any  # tokens by the time since the one before; then the series
    cache: CacheState


def make_state(
    rules: Rules, lengths: Any, times: Any, lanes: list[Any], line: Any, spread: Any, lists: bool, cache: CacheState | None = None,
    first: int = 0, after: Any = None, coming: int = 0,
) -> State:  # fmt: skip
    """A replica before anything has happened, its requests by class in `lanes`; `lists` for the plain loop, which shares lists.

    `first` is the first pool of its prefix cache; `after`, and room for so many in `coming`, are where requests depend on answers.
    """
    places = rules.seats * len(lanes) + 2
    ends = np.zeros(rules.lanes, np.int64)
    for number, start in enumerate(np.concatenate(([0], np.cumsum([len(lane) for lane in lanes])[:-1])).astype(int)):
        known = start if rules.closed else start + len(lanes[number])
        ends[number * LANE : number * LANE + LANE] = [start, start, known, -1, -1, -1, -1, start]
    shared = len(lanes) == 1 and not rules.closed and not lists  # nobody moves in it: millions of requests are not copied
    order = np.ascontiguousarray(lanes[0], np.int32) if shared else np.concatenate(lanes).astype(np.int32, copy=False)
    seat = np.zeros(places * WIDE, np.int64)
    seat[FOLLOWING::WIDE] = np.arange(WIDE, places * WIDE + 1, WIDE)
    arrays = {
        "at": np.zeros(FLOATS), "count": np.zeros(COUNTS, np.int64), "order": order, "ends": ends,
        "seat": seat, "since": np.zeros(places), "heap": np.zeros(2 * places), "coming": np.zeros(2 * coming + 2),
        "partial": np.zeros(places, np.int64),
        "phase": np.zeros(rules.block, np.int64), "spread": np.asarray(spread, float), "line": np.asarray(line, float),
        "log": np.zeros(GAPS + BINS * SERIES),
    }  # fmt: skip
    prefix_cache = (as_lists(no_cache()) if lists else no_cache()) if cache is None else cache
    prefix_cache = prefix_cache._replace(ready=[0.0] * places if lists else np.zeros(places))
    fields = {key: value.tolist() if lists else value for key, value in arrays.items()}
    no_turns = [-1] if lists else np.full(1, -1)
    state = State(lengths=lengths, times=times, cache=prefix_cache, after=no_turns if after is None else after, **fields)
    state.at[BIN_S] = 0.01
    state.count[TOTAL], state.count[SPREAD], state.count[FIRST_POOL] = len(state.order), len(state.spread) - 1, first
    return state


def no_cache() -> CacheState:
    """Arrays of the right kinds for a replica without a prefix cache."""
    none, nothing = np.zeros(2, np.int64), np.zeros(3)
    pools = make_pools(1, [1])
    return CacheState(
        pools=pools, blocks=none, start=none, answers=none, answer_start=none, depth_hits=none, least=none, saved_shares=nothing,
        paths=nothing, tally=none, expected=nothing, ready=nothing,
    )  # fmt: skip


def as_lists(cache: CacheState) -> CacheState:
    """The same in lists, for plain Python."""
    return CacheState(kv_pools.as_lists(cache.pools), *(values.tolist() for values in cache[1:]))

"""State of the loop: flat arrays and rules, all numbers, so that the loop runs both as plain Python and compiled.

The plain loop takes lists (with fast element access), the compiled loop numpy arrays; both do the same operations in the same order.
Only requests in service have an entry in `seat`. Requests in their first wait are a list by class: `order` names the request after each,
one array for all replicas, so that memory does not grow with their number.

Queues of seats are binary heaps by time of the next event, where among equal keys the lower name is first and the caller keeps the count
of pairs, and linked lists with removal from anywhere in constant time: an index into `ends`, first seat, then last seat; -1 if empty.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from headway.simulation import kv_pools
from headway.simulation.kv_pools import CachePools, Cells, make_pools

# Elements of `at` (floats).
NOW = 0  # clock, s
CONTEXT = 1  # tokens that all decoding sequences attend to in the next step
BUSY = 2  # seconds spent in steps
FULL_S = 3  # seconds with requests waiting
EMITTED = 4  # output tokens emitted
PREFILLED = 5  # prompt tokens computed, recomputation after preemption included
BIN_S = 6  # width of a bin of the series
DECODED = 7  # sequences in each decode step, summed over steps
TOKEN_AT = 8  # time of the last decode step's tokens
DUE = 9  # prompt tokens to compute for requests in their first wait, as expected at routing by prefix
OUT_S = 10  # seconds of copies to host memory that the next step waits for
LINK_AT = 11  # end time of the last copy back from host memory
STEP_FROM = 12  # start of the last step, or of the wait for copies
FLOATS = 13

# Elements of `count` (whole numbers).
RUNNING = 0  # sequences that decode
STEP = 1  # steps in which the decoding sequences advanced
PARTIAL = 2  # requests in prefill
QUEUED = 3
HEAPED = 4
PROMPT_BLOCKS = 5  # blocks held by requests in prefill
RESERVED = 6  # blocks set aside for admitted requests
PREEMPTED = 7
COMPLETED = 8
STEPS = 9  # all iterations
PEAK_BLOCKS = 10
PACKED = 11  # prompts in the step being scheduled
FREE = 12  # first free seat
RETURNED = 13  # sequences swapped back that have not decoded since
SHARED = 14  # blocks that requests share with the prefix cache, counted per request
HIT_BLOCKS = 15  # cached blocks of the prompt being admitted
COMPLETED_BEFORE = 16  # COMPLETED before the last iteration
FIRST_POOL = 17  # first pool of the replica's prefix cache
COMING = 18  # length of `coming`
ABANDONED = 19  # abandoned requests
SWAPPED = 20  # preemptions with KV swapped to host memory
HOSTED = 21  # blocks in host memory
PASSED = 22  # requests that a step found in the queue and did not take
TURNS_AHEAD = 23  # requests that users who talk may still send
COUNTS = 24

# What sends a request, Rules.closed.
ARRIVALS = 0  # each comes at a time of its own
USERS = 1  # a user who waits for an answer, then asks again
TALKS = 2  # a turn of a conversation waits for the answer before it
TALKING_USERS = 3  # a user who goes on with the conversation, then begins the next

# A request's two lengths and four times: lengths[2 * request + PROMPT], times[4 * request + FIRST].
PROMPT, OUTPUT = 0, 1
ARRIVAL, SCHEDULED, FIRST, FINISH = 0, 1, 2, 3  # FIRST: until the first token, minus the abandonment time; FINISH keeps it if abandoned

# A seat's numbers, state.seat[seat + REQUEST]; seats are named by where they begin.
REQUEST = 0  # the request
CLASS = 1  # its lane
OWED = 2  # tokens to prefill before its next token
COMPUTED = 3
CHUNK = 4  # tokens to prefill in the step being scheduled
OUTPUT_SO_FAR = 5  # output tokens before JOINED
JOINED = 6  # STEP at which it began to decode
PREFILL_BLOCKS = 7  # blocks held during prefill
FOLLOWING = 8  # next seat in its list, then the previous seat
BEFORE = 9
AGAIN = 10  # preemptions
PUBLISHED = 11  # blocks of its prompt that other requests can find
AWAY = 12  # its blocks in host memory; -1: swapped back, not decoded since
WIDE = 13

# A class of priority has a lane: ends[lane + ARRIVED].
ARRIVED = 0  # the next request to arrive, NONE if no other is known
SERVED = 1  # the next request to be admitted first; those before ARRIVED wait
KNOWN = 2  # the last known request
BACK = 3  # first preempted seat, then the last
DECODING = 5  # first decoding seat, then the last
NEXT_REQUEST = 7  # the next request of a closed loop
LANE = 8
NONE = -1  # no request

BINS = 1024  # bins of the series over time; neighbours merge when time passes the last bin
SERIES = 4  # running, waiting, blocks held, busy, each integrated over seconds
GAPS = 2400  # bins of inter-token times, GAP_RATIO apart, from GAP_LEAST on
GAP_LEAST, GAP_RATIO = 1e-6, 1.01


class Rules(NamedTuple):
    """Scheduling rules of a replica, as numbers only."""

    budget: int  # most tokens of a step, over all ranks
    chunk: int  # most tokens of one prompt in a step
    seats: int  # most requests in service
    capacity: int  # blocks of KV cache
    block: int  # tokens in a block
    mixed: int  # 1: chunked prefill in decode steps; 0: prefill first, in separate steps
    handed: int  # 1: decode pool, whose requests arrive prefilled
    reserve: float  # share of the output whose blocks are reserved at admission
    departures: float  # step period in s: steps begin at its multiples; 0: back to back
    accept: float  # tokens per sequence and decode step
    closed: int  # what sends a request: ARRIVALS, USERS, TALKS or TALKING_USERS
    lanes: int  # LANE times the number of priority classes
    caching: int = 0  # 1: with a prefix cache
    block_tokens: int = 1  # tokens of a block of traffic, a multiple of `block`
    block_bytes: float = 0.0  # KV bytes of a block of traffic, on all chips of a rank
    leaving: int = 0  # 1: requests without a first token in time are abandoned
    falling: int = 0  # 1: steps that hold more may take less time
    swap: int = 0  # blocks of preempted requests that fit in host memory
    copy_s: float = 0.0  # seconds to copy a block to host memory or back
    answer: float = 0.0  # mean output tokens, to route by prefix; 0: other routing
    hit: float = 0.0  # share of every prompt that is cached in HBM from the start, where no prefix cache is simulated


class CacheState(NamedTuple):
    """The prefix cache of a replica."""

    pools: CachePools
    blocks: Any  # block ids of all prompts, request by request; room to spell those of one request where ids are in order
    start: Any  # by request: offset of its first block; plus the end
    answers: Any  # block ids of all answers, request by request; the same room
    answer_start: Any  # by request: offset of its first answer block; plus the end
    first_own: Any  # where ids are in order, by request: the first id of its conversation
    common: int  # shared ids before it; NONE where ids are listed
    depth_hits: Any  # by depth: hits of the prompt looked up last
    least: Any  # by depth: fewest blocks worth loading
    saved_shares: Any  # by depth: share of a block's prefill that a hit saves
    paths: Any  # loading paths of the tiers, see prefix_tiers.py
    tally: Any  # counts of lookups and hits, see kv_pools.py
    expected: Any  # by request: prompt tokens to compute, as expected at routing; from its admission on as they were
    ready: Any  # by seat: time at which its hits are loaded


class State(NamedTuple):
    """State of a replica that changes during a run, and its requests."""

    at: Any
    count: Any
    lengths: Any
    times: Any
    order: Any  # by request: the next of its class at its replica, NONE after the last; until a closed loop sends it, the next sent
    ends: Any
    seat: Any
    since: Any  # by seat: time of its first token, or of its last token before preemption
    heap: Any  # heap of decoding seats by last step: step, seat, step, seat ...
    coming: Any  # heap of requests triggered by an answer, by arrival: time, lanes * request + lane, ...
    after: Any  # by request: the next turn of its conversation, -1 if none
    partial: Any  # seats in prefill, in order
    phase: Any  # decoding sequences by (context - STEP) modulo the block
    line: Any  # by batch: decode step time at zero context, time per context token, 1 if this line is exact
    batches: Any  # by number of requests in a step, decoding or computing a prompt: steps
    log: Any  # histogram of inter-token times; then the series over time
    cache: CacheState


def make_state(
    rules: Rules, lengths: Cells, times: Cells, order: Cells, lanes: list[Any], line: ArrayLike, lists: bool,
    cache: CacheState | None = None, first: int = 0, after: Cells | None = None, coming: int = 0,
) -> State:  # fmt: skip
    """The initial state of a replica with its requests by class in `lanes`; `lists` for the plain loop, which shares lists.

    `first` is the first pool of its prefix cache; `after`, and `coming` entries, are for requests that depend on answers.
    """
    places = rules.seats * len(lanes) + 2
    seat = np.zeros(places * WIDE, np.int64)
    seat[FOLLOWING::WIDE] = np.arange(WIDE, places * WIDE + 1, WIDE)
    arrays = {
        "at": np.zeros(FLOATS), "count": np.zeros(COUNTS, np.int64), "ends": np.full(rules.lanes, NONE, np.int64),
        "seat": seat, "since": np.zeros(places), "heap": np.zeros(2 * places), "coming": np.zeros(2 * coming + 2),
        "partial": np.zeros(places, np.int64),
        "phase": np.zeros(rules.block, np.int64), "line": np.asarray(line, float),
        "batches": np.zeros(rules.seats + 1), "log": np.zeros(GAPS + BINS * SERIES),
    }  # fmt: skip
    prefix_cache = (as_lists(no_cache()) if lists else no_cache()) if cache is None else cache
    prefix_cache = prefix_cache._replace(ready=[0.0] * places if lists else np.zeros(places))
    fields = {key: value.tolist() if lists else value for key, value in arrays.items()}
    no_turns = [-1] if lists else np.full(1, -1)
    state = State(lengths=lengths, times=times, order=order, cache=prefix_cache, after=no_turns if after is None else after, **fields)
    for number, mine in enumerate(lanes):
        if rules.closed:
            state.ends[LANE * number + NEXT_REQUEST] = chain(order, mine)
        else:
            know(state, LANE * number, mine)
    state.at[BIN_S], state.at[STEP_FROM] = 0.01, -1.0
    state.count[FIRST_POOL] = first
    return state


# Arrays of one replica, of 8 bytes a number.
REPLICA_ARRAYS = ("at", "count", "ends", "partial", "phase", "heap", "since", "coming", "seat", "log")


def side_by_side(states: list[State]) -> list[State]:
    """The states with the arrays of all replicas in one piece of memory, which is quicker to find one's way in than thousands of pieces."""
    memory = np.zeros(sum(len(getattr(state, name)) for state in states for name in REPLICA_ARRAYS))
    neighbours, start = [], 0
    for state in states:
        fields = {}
        for name in REPLICA_ARRAYS:
            values = getattr(state, name)
            place = memory[start : start + len(values)].view(values.dtype)
            place[:] = values
            fields[name], start = place, start + len(values)
        neighbours.append(state._replace(**fields))
    return neighbours


def chain(order: Any, requests: Any) -> int:
    """Make a list of requests; returns the first, NONE without any."""
    if not len(requests):
        return NONE
    if isinstance(order, list):
        numbers = requests.tolist()
        for request, following in pairwise([*numbers, NONE]):
            order[request] = following
    else:
        order[requests[:-1]], order[requests[-1]] = requests[1:], NONE
    return int(requests[0])


def know(state: State, lane: int, requests: Any) -> None:
    """Append requests, in order of arrival, to those that a class of a replica will get."""
    first = chain(state.order, requests)
    if first == NONE:
        return
    if state.ends[lane + SERVED] == NONE:
        state.ends[lane + SERVED] = first
    else:
        state.order[state.ends[lane + KNOWN]] = first
    if state.ends[lane + ARRIVED] == NONE:
        state.ends[lane + ARRIVED] = first
    state.ends[lane + KNOWN] = int(requests[-1])


def hear_of(state: State, lane: int, request: int) -> None:
    """Append a request to those that a class of a replica will get; as `know`, in the subset that numba compiles."""
    state.order[request] = NONE
    if state.ends[lane + SERVED] == NONE:
        state.ends[lane + SERVED] = request
    else:
        state.order[state.ends[lane + KNOWN]] = request
    if state.ends[lane + ARRIVED] == NONE:
        state.ends[lane + ARRIVED] = request
    state.ends[lane + KNOWN] = request


def no_cache() -> CacheState:
    """Empty arrays of the right types, for a replica without a prefix cache."""
    none, nothing = np.zeros(2, np.int64), np.zeros(3)
    pools = make_pools(1, [1])
    return CacheState(
        pools=pools, blocks=none, start=none, answers=none, answer_start=none, first_own=none, common=NONE, depth_hits=none, least=none,
        saved_shares=nothing, paths=nothing, tally=none, expected=nothing, ready=nothing,
    )  # fmt: skip


def as_lists(cache: CacheState) -> CacheState:
    """The cache state as lists, for plain Python."""
    return CacheState(kv_pools.as_lists(cache.pools), *(values if isinstance(values, int) else values.tolist() for values in cache[1:]))


def push(heap: Cells, count: int, key: float, name: int) -> None:
    """Push a (key, name) pair on a heap of `count` pairs."""
    _rise(heap, count, float(key), float(name))


def remove_at(heap: Cells, count: int, at: int) -> None:
    """Remove the pair at index `at` of a heap of `count` pairs."""
    last = count - 1
    if at == last:
        return
    key, name = heap[2 * last], heap[2 * last + 1]
    up = (at - 1) >> 1
    if at > 0 and (key < heap[2 * up] or (key == heap[2 * up] and name < heap[2 * up + 1])):
        _rise(heap, at, key, name)
    else:
        _sink(heap, last, at, key, name)


def place_of(heap: Cells, count: int, name: int) -> int:
    """Index of a name in a heap of `count` pairs; from the end, where sequences that were admitted last usually stand."""
    at = count - 1
    while heap[2 * at + 1] != name:
        at -= 1
    return at


def _rise(heap: Cells, at: int, key: float, name: float) -> None:
    while at > 0:
        up = (at - 1) >> 1
        above, above_name = heap[2 * up], heap[2 * up + 1]
        if above < key or (above == key and above_name < name):
            break
        heap[2 * at], heap[2 * at + 1] = above, above_name
        at = up
    heap[2 * at], heap[2 * at + 1] = key, name


def _sink(heap: Cells, count: int, at: int, key: float, name: float) -> None:
    while True:
        down = 2 * at + 1
        if down >= count:
            break
        right = down + 1
        if right < count and (
            heap[2 * right] < heap[2 * down] or (heap[2 * right] == heap[2 * down] and heap[2 * right + 1] < heap[2 * down + 1])
        ):
            down = right
        below, below_name = heap[2 * down], heap[2 * down + 1]
        if key < below or (key == below and name < below_name):
            break
        heap[2 * at], heap[2 * at + 1] = below, below_name
        at = down
    heap[2 * at], heap[2 * at + 1] = key, name


def push_back(state: State, list_at: int, seat: int) -> None:
    """Append a seat to a list."""
    last = state.ends[list_at + 1]
    state.seat[seat + BEFORE], state.seat[seat + FOLLOWING] = last, -1
    if last < 0:
        state.ends[list_at] = seat
    else:
        state.seat[last + FOLLOWING] = seat
    state.ends[list_at + 1] = seat


def push_front(state: State, list_at: int, seat: int) -> None:
    """Insert a seat at the front of a list."""
    first = state.ends[list_at]
    state.seat[seat + BEFORE], state.seat[seat + FOLLOWING] = -1, first
    if first < 0:
        state.ends[list_at + 1] = seat
    else:
        state.seat[first + BEFORE] = seat
    state.ends[list_at] = seat


def remove(state: State, list_at: int, seat: int) -> None:
    """Remove a seat from its list."""
    previous_seat, next_seat = state.seat[seat + BEFORE], state.seat[seat + FOLLOWING]
    if previous_seat < 0:
        state.ends[list_at] = next_seat
    else:
        state.seat[previous_seat + FOLLOWING] = next_seat
    if next_seat < 0:
        state.ends[list_at + 1] = previous_seat
    else:
        state.seat[next_seat + BEFORE] = previous_seat


def take_seat(state: State, request: int, lane: int) -> int:
    """Take a free seat for a request and return it."""
    seat = state.count[FREE]
    state.count[FREE] = state.seat[seat + FOLLOWING]
    state.seat[seat + REQUEST], state.seat[seat + CLASS], state.seat[seat + OUTPUT_SO_FAR], state.seat[seat + AGAIN] = request, lane, 0, 0
    state.seat[seat + CHUNK], state.seat[seat + COMPUTED], state.seat[seat + PUBLISHED], state.seat[seat + AWAY] = 0, 0, 0, 0
    return seat


def give_seat(state: State, seat: int) -> None:
    """Return a seat to the free list."""
    state.seat[seat + FOLLOWING] = state.count[FREE]
    state.count[FREE] = seat

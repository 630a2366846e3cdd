"""Queues of seats: binary heaps by time of the next event, and linked lists with removal from anywhere in constant time.

Among equal keys the lower name is first. The caller keeps the count of pairs.

A list is an index into `ends`: its first seat, then its last seat; -1 if empty.
"""

from __future__ import annotations

from typing import Any

from headway.simulation.state import AGAIN, AWAY, BEFORE, CHUNK, CLASS, COMPUTED, FOLLOWING, FREE, OUTPUT_SO_FAR, PUBLISHED, REQUEST, State


def push(heap: Any, count: int, key: float, name: int) -> None:
    """Push a (key, name) pair on a heap of `count` pairs."""
    _rise(heap, count, float(key), float(name))


def remove_at(heap: Any, count: int, at: int) -> None:
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


def place_of(heap: Any, count: int, name: int) -> int:
    """Index of a name in a heap of `count` pairs; from the end, where sequences that were admitted last usually stand."""
    at = count - 1
    while heap[2 * at + 1] != name:
        at -= 1
    return at


def _rise(heap: Any, at: int, key: float, name: float) -> None:
    while at > 0:
        up = (at - 1) >> 1
        above, above_name = heap[2 * up], heap[2 * up + 1]
        if above < key or (above == key and above_name < name):
            break
        heap[2 * at], heap[2 * at + 1] = above, above_name
        at = up
    heap[2 * at], heap[2 * at + 1] = key, name


def _sink(heap: Any, count: int, at: int, key: float, name: float) -> None:
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

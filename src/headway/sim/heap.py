"""Decoding seats by the step at which they end: a binary heap, of equals the lower seat first."""

from __future__ import annotations

from headway.sim.state import HEAPED, State


def push(s: State, key: int, j: int) -> None:
    """One more sequence."""
    at = s.count[HEAPED]
    s.count[HEAPED] = at + 1
    _rise(s, at, key, j)


def pop(s: State) -> int:
    """The seat whose sequence ends next, taken out."""
    j = s.heap[1]
    remove_at(s, 0)
    return j


def remove_at(s: State, at: int) -> None:
    """Take out what is at a place of the heap."""
    last = s.count[HEAPED] - 1
    s.count[HEAPED] = last
    if at == last:
        return
    key, j = s.heap[2 * last], s.heap[2 * last + 1]
    up = (at - 1) >> 1
    if at > 0 and (key < s.heap[2 * up] or (key == s.heap[2 * up] and j < s.heap[2 * up + 1])):
        _rise(s, at, key, j)
    else:
        _sink(s, at, key, j)


def place_of(s: State, j: int) -> int:
    """Where a seat is in the heap."""
    at = 0
    while s.heap[2 * at + 1] != j:
        at += 1
    return at


def _rise(s: State, at: int, key: int, j: int) -> None:
    while at > 0:
        up = (at - 1) >> 1
        above, other = s.heap[2 * up], s.heap[2 * up + 1]
        if above < key or (above == key and other < j):
            break
        s.heap[2 * at], s.heap[2 * at + 1] = above, other
        at = up
    s.heap[2 * at], s.heap[2 * at + 1] = key, j


def _sink(s: State, at: int, key: int, j: int) -> None:
    count, heap = s.count[HEAPED], s.heap
    while True:
        down = 2 * at + 1
        if down >= count:
            break
        right = down + 1
        if right < count and (
            heap[2 * right] < heap[2 * down] or (heap[2 * right] == heap[2 * down] and heap[2 * right + 1] < heap[2 * down + 1])
        ):
            down = right
        below, other = heap[2 * down], heap[2 * down + 1]
        if key < below or (key == below and j < other):
            break
        heap[2 * at], heap[2 * at + 1] = below, other
        at = down
    heap[2 * at], heap[2 * at + 1] = key, j

"""Two binary heaps of pairs of numbers, key, name, key, name ...: decoding seats by the step at which they end, requests by arrival.

Of equal keys the lower name is first. Who calls keeps count of the pairs.
"""

from __future__ import annotations

from typing import Any


def push(heap: Any, count: int, key: float, name: int) -> None:
    """One more beside so many."""
    _rise(heap, count, float(key), float(name))


def remove_at(heap: Any, count: int, at: int) -> None:
    """Take out what is at a place of the heap of so many."""
    last = count - 1
    if at == last:
        return
    key, name = heap[2 * last], heap[2 * last + 1]
    up = (at - 1) >> 1
    if at > 0 and (key < heap[2 * up] or (key == heap[2 * up] and name < heap[2 * up + 1])):
        _rise(heap, at, key, name)
    else:
        _sink(heap, last, at, key, name)


def place_of(heap: Any, name: int) -> int:
    """Where a name is in the heap."""
    at = 0
    while heap[2 * at + 1] != name:
        at += 1
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

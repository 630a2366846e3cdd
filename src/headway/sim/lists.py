"""Seats in linked lists: a seat is in one of them at most, and leaves from anywhere in constant time.

A list is a place in `ends`: its first seat, then its last; -1 where it is empty.
"""

from __future__ import annotations

from headway.sim.state import AGAIN, AWAY, BEFORE, CHUNK, CLASS, COMPUTED, FOLLOWING, FREE, MADE, PUBLISHED, WHO, State


def push_back(s: State, which: int, j: int) -> None:
    """To the end of a list."""
    last = s.ends[which + 1]
    s.seat[j + BEFORE], s.seat[j + FOLLOWING] = last, -1
    if last < 0:
        s.ends[which] = j
    else:
        s.seat[last + FOLLOWING] = j
    s.ends[which + 1] = j


def push_front(s: State, which: int, j: int) -> None:
    """To the front of a list."""
    first = s.ends[which]
    s.seat[j + BEFORE], s.seat[j + FOLLOWING] = -1, first
    if first < 0:
        s.ends[which + 1] = j
    else:
        s.seat[first + BEFORE] = j
    s.ends[which] = j


def remove(s: State, which: int, j: int) -> None:
    """Out of the list that it is in."""
    left, right = s.seat[j + BEFORE], s.seat[j + FOLLOWING]
    if left < 0:
        s.ends[which] = right
    else:
        s.seat[left + FOLLOWING] = right
    if right < 0:
        s.ends[which + 1] = left
    else:
        s.seat[right + BEFORE] = left


def take_seat(s: State, i: int, lane: int) -> int:
    """A free seat for a request."""
    j = s.count[FREE]
    s.count[FREE] = s.seat[j + FOLLOWING]
    s.seat[j + WHO], s.seat[j + CLASS], s.seat[j + MADE], s.seat[j + AGAIN] = i, lane, 0, 0
    s.seat[j + CHUNK], s.seat[j + COMPUTED], s.seat[j + PUBLISHED], s.seat[j + AWAY] = 0, 0, 0, 0
    return j


def give_seat(s: State, j: int) -> None:
    """A seat that nobody has any more."""
    s.seat[j + FOLLOWING] = s.count[FREE]
    s.count[FREE] = j

"""Seats in linked lists: a seat is in one of them at most, and leaves from anywhere in constant time.

A list is a place in `ends`: its first seat, then its last; -1 where it is empty.
"""

from __future__ import annotations

from headway.sim.state import AGAIN, AWAY, BEFORE, CHUNK, CLASS, COMPUTED, FOLLOWING, FREE, OUTPUT_SO_FAR, PUBLISHED, REQUEST, State


def push_back(state: State, list_at: int, seat: int) -> None:
    """To the end of a list."""
    last = state.ends[list_at + 1]
    state.seat[seat + BEFORE], state.seat[seat + FOLLOWING] = last, -1
    if last < 0:
        state.ends[list_at] = seat
    else:
        state.seat[last + FOLLOWING] = seat
    state.ends[list_at + 1] = seat


def push_front(state: State, list_at: int, seat: int) -> None:
    """To the front of a list."""
    first = state.ends[list_at]
    state.seat[seat + BEFORE], state.seat[seat + FOLLOWING] = -1, first
    if first < 0:
        state.ends[list_at + 1] = seat
    else:
        state.seat[first + BEFORE] = seat
    state.ends[list_at] = seat


def remove(state: State, list_at: int, seat: int) -> None:
    """Out of the list that it is in."""
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
    """A free seat for a request."""
    seat = state.count[FREE]
    state.count[FREE] = state.seat[seat + FOLLOWING]
    state.seat[seat + REQUEST], state.seat[seat + CLASS], state.seat[seat + OUTPUT_SO_FAR], state.seat[seat + AGAIN] = request, lane, 0, 0
    state.seat[seat + CHUNK], state.seat[seat + COMPUTED], state.seat[seat + PUBLISHED], state.seat[seat + AWAY] = 0, 0, 0, 0
    return seat


def give_seat(state: State, seat: int) -> None:
    """A seat that nobody has any more."""
    state.seat[seat + FOLLOWING] = state.count[FREE]
    state.count[FREE] = seat

"""Turns of conversations: which request waits for the answer to which, and what becomes of those behind one that is never answered."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headway.sim.traffic.record import NO_CONVERSATION, Traffic


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnOrder:
    """Requests of conversations, in the order of the traffic."""

    after: Any  # the next turn of the conversation, -1 after the last
    first: Any  # the first turn of its conversation: of a request in none, itself

    @property
    def later(self) -> Any:
        """Which requests wait for an answer before they are sent."""
        return self.first != np.arange(len(self.first))

    def unasked(self, completed: Any) -> Any:
        """Later turns before which one was not completed, given which were."""
        before = np.full(len(self.after), -1, np.int64)
        has = np.flatnonzero(self.after >= 0)
        before[self.after[has]] = has
        return (before >= 0) & ~completed[before]


def turns_of(traffic: Traffic) -> TurnOrder:
    """How requests of the same conversation follow one another.

    >>> turns = turns_of(Traffic.of([0, 1, 2, 3], 1, 1, conversation=[0, -1, 0, 0]))
    >>> turns.after.tolist(), turns.first.tolist()
    ([2, -1, 3, -1], [0, 1, 0, 0])
    """
    count = len(traffic)
    order = np.argsort(traffic.conversation, kind="stable")
    names = traffic.conversation[order]
    same = (names[1:] == names[:-1]) & (names[1:] != NO_CONVERSATION)
    after, first = np.full(count, -1, np.int64), np.empty(count, np.int64)
    after[order[:-1][same]] = order[1:][same]
    begins = np.flatnonzero(np.concatenate(([True], ~same))) if count else np.zeros(0, np.int64)
    first[order] = np.repeat(order[begins], np.diff(np.append(begins, count)))
    return TurnOrder(after=after, first=first)


def cut_short(turns: TurnOrder, refused: Any) -> tuple[TurnOrder, Any]:
    """The turns that are sent, and who is refused: a conversation ends before a turn that nobody can answer."""
    ends, at = refused.copy(), np.flatnonzero(refused)
    while len(at):
        at = turns.after[at]
        at = at[at >= 0]
        at = at[~ends[at]]
        ends[at] = True
    after = np.where((turns.after >= 0) & ends[turns.after], -1, turns.after)
    return replace(turns, after=after), ends

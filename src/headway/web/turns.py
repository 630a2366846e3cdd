"""Turns of questions that answer at once: quick ones pass slow ones, and whoever has taken least is next.

How long a question will take is what it took before, else what questions of its shape or of its asker take. One that takes longer than
QUICK_S goes on beside the quick ones. Those who ask are told apart by address and, behind one address, by connection, by the shape of
what they ask (one who comes back as somebody new asks the same), and a crowd of
strangers (whose connections and shapes are new each time) shares one account.
"""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

QUICK_S = 0.3
SLOW_PLACES = 2  # slow questions at a time
UNKNOWN_S = 0.25  # of a new asker's new question
MOST_WAITING = 64
HALF_LIFE_S = 10.0  # after which half of what somebody took is forgotten
CROWD = 2  # strangers who wait; more are one asker
STEP_S = 0.5  # differences below are none
MOST_KNOWN = 512  # askers, and questions, that are remembered

Peer = tuple[Hashable, Hashable]  # address, connection


@dataclass(slots=True, eq=False)
class Turn:
    """A question that waits, is answered, or was sent away."""

    peer: Peer
    question: str
    number: int  # in order of arrival
    accounts: tuple[Hashable, ...] = ()  # what it takes is held against these: address, connection, shape of the question
    is_stranger: bool = False  # the last two were new
    is_slow: bool = False
    is_left: bool = False  # whoever asked is gone
    granted: asyncio.Future[bool] = field(default_factory=lambda: asyncio.get_running_loop().create_future())  # False: sent away


def shape_of(question: str) -> str:
    """A question whose digits are all alike: what changes between questions of one kind.

    >>> shape_of('batch 1..60') == shape_of('batch 4..57')
    True
    """
    return re.sub(r"\d", "0", question)


class Turns:
    """Who waits, who is answered, and what each asker took lately."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, has_reserve: Callable[[], bool] = lambda: True) -> None:
        self.clock, self.has_reserve = clock, has_reserve  # whether the end of a worker would leave another to go on
        self.waiting: list[Turn] = []
        self.quick: Turn | None = None
        self.slow: set[Turn] = set()
        self.count = 0  # turns that came
        self.begun = 0  # quick ones among them that began
        self.took: dict[str, float] = {}  # seconds of a question, and of the last of its shape
        self.usage: dict[Hashable, tuple[float, float, float]] = {}  # of an account: seconds, questions, when

    def enter(self, peer: Peer, question: str) -> Turn:
        """A turn, granted at once or later; whoever would be last is sent away where too many wait."""
        self.count += 1
        accounts = (peer, (peer[0], "asks", shape_of(question)))
        is_stranger = not any(key in self.usage for key in accounts)
        turn = Turn(peer, question, self.count, (peer[0], *accounts), is_stranger)
        self.waiting.append(turn)
        self.grant()
        if len(self.waiting) > MOST_WAITING:
            last = max(self.waiting, key=lambda waiting: (self._is_slow(waiting), self._rank(waiting)))
            self.waiting.remove(last)
            last.granted.set_result(False)
        return turn

    def leave(self, turn: Turn) -> None:
        """The end of a turn, or of waiting for it."""
        if turn in self.waiting:
            self.waiting.remove(turn)
        self.slow.discard(turn)
        self.quick = None if self.quick is turn else self.quick
        self.grant()

    def goes_on_slowly(self, turn: Turn) -> bool:
        """A quick question took too long: whether it may go on as a slow one; else it must end, and waits for such a place."""
        self._remember(turn, 2 * QUICK_S)  # or more
        turn.is_slow, self.quick = True, None
        has_place = len(self.slow) < SLOW_PLACES
        if has_place:
            self.slow.add(turn)
        else:
            turn.granted = asyncio.get_running_loop().create_future()
            self.waiting.append(turn)
        self.grant()
        return has_place

    def charge(self, turn: Turn, seconds: float, is_answered: bool = True) -> None:
        """Seconds of a worker are held against who asked, and tell what the question takes if it was answered."""
        if is_answered:
            self._remember(turn, seconds)
        for key in (*turn.accounts, *[(turn.peer[0], "strangers")][: turn.is_stranger]):
            used_s, count = self._usage(key)
            self.usage[key] = used_s + seconds, count + 1.0, self.clock()
        while len(self.usage) > MOST_KNOWN:
            del self.usage[min(self.usage, key=self._usage)]

    def _remember(self, turn: Turn, seconds: float) -> None:
        for key in (shape_of(turn.question), turn.question):
            self.took.pop(key, None)
            self.took[key] = seconds  # as the latest
        while len(self.took) > MOST_KNOWN:
            del self.took[next(iter(self.took))]

    def _usage(self, key: Hashable) -> tuple[float, float]:
        """Seconds and questions lately."""
        seconds, count, at = self.usage.get(key, (0.0, 0.0, 0.0))
        share = 0.5 ** ((self.clock() - at) / HALF_LIFE_S)
        return seconds * share, count * share

    def _expected_s(self, turn: Turn) -> float:
        seconds, count = self._usage(turn.peer)
        known_s = self.took.get(turn.question) or self.took.get(shape_of(turn.question))
        return known_s or (seconds / count if count > 0.0 else UNKNOWN_S)

    def _is_slow(self, turn: Turn) -> bool:
        return turn.is_slow or self._expected_s(turn) > QUICK_S

    def _rank(self, turn: Turn) -> tuple[float, ...]:
        """Least is next: an address that took less, an asker who took less by any account, a question that will take less.

        Of equals the newest and the oldest are next in turn: a crowd is older than whoever comes after it, and may be renewed for ever.
        """
        of_address, *of_asker = (self._usage(key)[0] // STEP_S for key in turn.accounts)
        if turn.is_stranger and sum(waiting.is_stranger for waiting in self.waiting) > CROWD:
            of_asker.append(self._usage((turn.peer[0], "strangers"))[0] // STEP_S)
        order = turn.number if turn.is_slow or self.begun % 2 else -turn.number
        return of_address, max(of_asker), of_asker[0], round(math.log2(self._expected_s(turn))), order

    def _may_begin(self, turn: Turn) -> bool:
        """Whether a quick question may have the last worker: where slow ones fill their places, one that may be slow too might end it."""
        is_known = turn.question in self.took or self._usage(turn.peer)[1] > 0.0
        return is_known or len(self.slow) < SLOW_PLACES or self.has_reserve()

    def grant(self) -> None:
        """Begin what can begin now."""
        while self.quick is None and self._begin(False):
            pass
        while len(self.slow) < SLOW_PLACES and self._begin(True):
            pass

    def _begin(self, is_slow: bool) -> bool:
        ready = [turn for turn in self.waiting if self._is_slow(turn) == is_slow and (is_slow or self._may_begin(turn))]
        if not ready:
            return False
        turn = min(ready, key=self._rank)
        self.waiting.remove(turn)
        turn.is_slow = is_slow
        self.begun += not is_slow
        if is_slow:
            self.slow.add(turn)
        else:
            self.quick = turn
        turn.granted.set_result(True)
        return True

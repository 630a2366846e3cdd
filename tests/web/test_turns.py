"""Whose question is next: quick before slow, new askers before greedy ones, and every slow one in its turn."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from headway.web.turns import MOST_WAITING, QUICK_S, SLOW_PLACES, Turn, Turns


class Clock:
    """Time that stands still until it is moved."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


class Played:
    """Askers in virtual time: each asks again as soon as it is answered; a question takes as long as its name says."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.turns = Turns(self.clock)
        self.asked: dict[Turn, float] = {}
        self.begun: dict[Turn, float] = {}
        self.waits: dict[Any, list[float]] = {}

    def ask(self, peer: Any, takes_s: float, name: str = "") -> Turn:
        turn = self.turns.enter(peer, (name, takes_s))
        self.asked[turn] = self.clock.now
        return turn

    def tick(self, again: Any) -> None:
        """A twentieth of a second."""
        self.clock.now += 0.05
        for turn in [*self.turns.slow, *([self.turns.quick] if self.turns.quick else [])]:
            begun = self.begun.setdefault(turn, self.clock.now)
            took = self.clock.now - begun
            if took >= turn.question[1]:  # type: ignore[index]
                del self.begun[turn]
                self.turns.charge(turn, took)
                self.turns.leave(turn)
                self.waits.setdefault(turn.peer, []).append(self.clock.now - self.asked.pop(turn))
                again(turn)
            elif not turn.is_slow and took > QUICK_S and not self.turns.goes_on_slowly(turn):
                del self.begun[turn]
                self.turns.charge(turn, took, is_answered=False)


def greedy(different: bool, reconnects: bool) -> dict[Any, list[float]]:
    """What fourteen askers of slow questions and one of quick ones wait, for two minutes."""

    async def play() -> dict[Any, list[float]]:
        played, count = Played(), 0

        def slow(number: Any) -> None:
            nonlocal count
            count += 1
            connection = ("greedy", number, count if reconnects else 0)
            played.ask(("127.0.0.1", connection), 4.0, str(count) if different else "")

        def again(turn: Turn) -> None:
            if turn.peer[1] == "quiet":
                played.ask(turn.peer, 0.1)
            else:
                slow(turn.peer[1][1])  # type: ignore[index]

        for number in range(14):
            slow(number)
        for _ in range(40):
            played.tick(again)
        played.ask(("127.0.0.1", "quiet"), 0.1)
        for _ in range(2400):
            played.tick(again)
        return played.waits

    return asyncio.run(play())


def test_fourteen_greedy_askers__do_not_delay_a_quiet_one() -> None:
    for different in (False, True):
        for reconnects in (False, True):
            waits = greedy(different, reconnects)
            quiet = waits[("127.0.0.1", "quiet")]
            assert max(quiet) < QUICK_S + 0.3, (different, reconnects, max(quiet))
            assert len(quiet) > 90  # and it was asked again and again


def test_greedy_askers__have_equal_turns_among_themselves() -> None:
    answers = Counter({peer[1]: len(times) for peer, times in greedy(different=False, reconnects=False).items() if peer[1] != "quiet"})
    assert len(answers) == 14 and max(answers.values()) - min(answers.values()) <= 1
    assert sum(answers.values()) >= 0.9 * SLOW_PLACES * 120 / 4.0


def test_addresses__have_equal_turns_however_many_connections_each_opens() -> None:
    async def play() -> dict[Any, list[float]]:
        played = Played()
        again = lambda turn: played.ask(turn.peer, 4.0)  # noqa: E731
        for number in range(14):
            played.ask(("10.0.0.1", number), 4.0)
        played.ask(("10.0.0.2", 0), 4.0)
        for _ in range(4800):
            played.tick(again)
        return played.waits

    waits = asyncio.run(play())
    assert max(waits[("10.0.0.2", 0)]) < 4 * 4.0
    assert max(len(times) for peer, times in waits.items() if peer[0] == "10.0.0.1") < len(waits[("10.0.0.2", 0)])


def test_too_many__whoever_took_most_is_sent_away_not_the_newest() -> None:
    async def play() -> None:
        turns = Turns(Clock())
        first = turns.enter(("a", 0), "x")
        for _ in range(2):
            turns.charge(first, 0.4)
        waiting = [turns.enter(("a", 0), number) for number in range(MOST_WAITING)]
        newest = turns.enter(("b", 1), "y")
        assert [turn.granted.result() for turn in waiting if turn.granted.done()] == [False]
        assert not newest.granted.done() and newest in turns.waiting
        turns.leave(first)
        assert newest.granted.result() is True

    asyncio.run(play())


def test_a_question_that_became_quick_again__passes_slow_ones() -> None:
    async def play() -> None:
        turns = Turns(Clock())
        slow = turns.enter(("a", 0), "x")
        assert turns.goes_on_slowly(slow) and turns.quick is None
        turns.leave(slow)
        assert turns.enter(("a", 0), "x").is_slow
        for turn in set(turns.slow):
            turns.charge(turn, 0.1)
            turns.leave(turn)
        assert not turns.enter(("a", 0), "x").is_slow

    asyncio.run(play())

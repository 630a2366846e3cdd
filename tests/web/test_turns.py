"""Whose question is next: quick before slow, new askers before greedy ones, and every slow one in its turn."""

from __future__ import annotations

import asyncio
from collections import Counter
from itertools import product
from typing import Any

import pytest

from headway.web.desk import WAIT_S
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
        turn = self.turns.enter(peer, f"{name} {takes_s}")
        self.asked[turn] = self.clock.now
        return turn

    def tick(self, again: Any) -> None:
        """A twentieth of a second."""
        self.clock.now += 0.05
        for turn in [*self.turns.slow, *([self.turns.quick] if self.turns.quick else [])]:
            begun = self.begun.setdefault(turn, self.clock.now)
            took = self.clock.now - begun
            if took >= float(turn.question.rpartition(" ")[2]):
                del self.begun[turn]
                self.turns.charge(turn, took)
                self.turns.leave(turn)
                self.waits.setdefault(turn.peer, []).append(self.clock.now - self.asked.pop(turn))
                again(turn)
            elif not turn.is_slow and took > QUICK_S and not self.turns.goes_on_slowly(turn):
                del self.begun[turn]
                self.turns.charge(turn, took, is_answered=False)


Waits = dict[Any, list[float]]


def letters(number: int) -> str:
    """A number without digits."""
    return str(number).translate(str.maketrans("0123456789", "abcdefghij"))


def greedy(
    vary: str = "nothing", reconnects: bool = False, slow_s: float = 4.0, quiet_s: float = 0.1, quiet_comes_back: bool = False
) -> Waits:
    """What fourteen askers of slow questions and one who takes a twentieth of a worker wait for two minutes."""

    async def play() -> Waits:
        played, count, next_at = Played(), 0, [2.0]

        def slow(number: Any) -> None:
            nonlocal count
            count += 1
            connection = ("greedy", number, count if reconnects else 0)
            played.ask(("127.0.0.1", connection), slow_s, {"nothing": "", "numbers": str(1000 + count), "words": letters(count)}[vary])

        def again(turn: Turn) -> None:
            if turn.peer[1][0] == "quiet":  # type: ignore[index]
                next_at.append(played.clock.now + 20 * quiet_s)
            else:
                slow(turn.peer[1][1])  # type: ignore[index]

        for number in range(14):
            slow(number)
        quiet = 0
        for _ in range(2400):
            if next_at and played.clock.now >= next_at[0]:
                quiet += 1
                next_at.clear()
                played.ask(("127.0.0.1", ("quiet", quiet if quiet_comes_back else 0)), quiet_s, f"quiet {quiet}")
            played.tick(again)
        return played.waits

    return asyncio.run(play())


@pytest.mark.parametrize("slow_s", [0.05, 0.15, 0.25, 0.4, 4.0])
@pytest.mark.parametrize("reconnects", [False, True])
@pytest.mark.parametrize("vary", ["nothing", "numbers", "words"])
def test_fourteen_greedy_askers__do_not_delay_a_quiet_one(vary: str, reconnects: bool, slow_s: float) -> None:
    for quiet_s, quiet_comes_back in product((0.1, 0.25), (False, True)):
        waits = greedy(vary, reconnects, slow_s, quiet_s, quiet_comes_back)
        quiet = [wait for peer, times in waits.items() if peer[1][0] == "quiet" for wait in times]
        assert len(quiet) > 10  # and each was answered
        # Askers of quick questions that differ in each word cannot be told from others: a new one waits, and is not refused.
        assert max(quiet) < (WAIT_S if vary == "words" else quiet_s + 0.5)


def test_greedy_askers__have_equal_turns_among_themselves() -> None:
    answers = Counter({peer[1]: len(times) for peer, times in greedy().items() if peer[1][0] != "quiet"})
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
        for _ in range(3):
            turns.charge(first, 0.25)
        waiting = [turns.enter(("a", 0), str(number)) for number in range(MOST_WAITING)]
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

"""Traffic that is drawn: the same from the same seed, and its beginning the same however many requests follow."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headway import units
from headway.errors import BadValue
from headway.sim.traffic.arrivals import Arrivals
from headway.sim.traffic.lengths import Lengths, Recorded
from headway.sim.traffic.record import Floats, Ints, Traffic
from headway.sim.traffic.streams import Streams, check_count, streams

MOST_USERS = 10_000_000
MOST_THINK = 1e9  # seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedLoop:
    """N users, each of whom asks, waits for the answer, thinks and asks again: for the loop to play, as arrivals depend on answers.

    Requests are asked in order. The first `users` of them arrive at their `traffic.arrival`; request i after those is asked by whoever is
    next to have been answered, think[i] seconds after that answer ended. Its arrival in the record is none.
    """

    users: int
    traffic: Traffic
    think: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Think:
    """Seconds between an answer and the next question: of one length, or exponential."""

    mean: float
    exponential: bool = False

    def draw(self, rng: np.random.Generator, count: int) -> Floats:
        """So many pauses."""
        return rng.standard_exponential(count) * self.mean if self.exponential else np.full(count, self.mean)


def generate(arrivals: Arrivals, prompt: Lengths, output: Lengths, count: int, seed: int) -> Traffic:
    """So many independent requests."""
    check_count(count)
    draw = streams(seed)
    prompts, outputs = _lengths(prompt, output, count, draw)
    return Traffic.of(arrivals.draw(draw.arrivals, count), prompts, outputs)


def generate_loop(users: int, think: Think, prompt: Lengths, output: Lengths, count: int, seed: int, ramp: float = 0.0) -> ClosedLoop:
    """So many requests of users who begin evenly over `ramp` seconds, all at once when it is 0."""
    if not 1 <= users <= MOST_USERS:
        raise BadValue("--users", users, f"1 to {MOST_USERS} users")
    if not 0 <= ramp <= MOST_THINK:
        raise BadValue("ramp", ramp, f"seconds from 0 to {MOST_THINK:g}")
    check_count(count)
    draw = streams(seed)
    prompts, outputs = _lengths(prompt, output, count, draw)
    arrival = np.minimum(np.arange(count) / users, 1.0) * ramp
    return ClosedLoop(users=users, traffic=Traffic.of(arrival, prompts, outputs), think=think.draw(draw.gaps, count))


def parse_think(text: str, field: str = "--think") -> Think:
    """A pause, or the mean of exponential ones.

    >>> parse_think("exponential:2s")
    Think(mean=2.0, exponential=True)
    """
    name, colon, rest = text.partition(":")
    name = name.strip().lower() if colon else "constant"
    if name not in ("constant", "exponential"):
        raise BadValue(field, text, "seconds such as 2s, or exponential:2s")
    mean = units.parse(rest if colon else text, "s", field)
    if not 0 <= mean <= MOST_THINK:
        raise BadValue(field, text, f"seconds from 0 to {MOST_THINK:g}")
    return Think(mean=mean, exponential=name == "exponential")


def _lengths(prompt: Lengths, output: Lengths, count: int, draw: Streams) -> tuple[Ints, Ints]:
    """Prompts and answers, in pairs as they were recorded where both are of one trace."""
    if isinstance(prompt, Recorded) and isinstance(output, Recorded) and prompt.source == output.source:
        rows = draw.prompt.integers(0, len(prompt.tokens), count)
        return prompt.tokens[rows], output.tokens[rows]
    return prompt.draw(draw.prompt, count), output.draw(draw.output, count)

"""What a train does on its way: a step of the real decoder, or a sleep as long as the user states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from headway.core.units import Second
from headway.reality.lab.clock import Clock
from headway.reality.lab.decoder import Decoder

CHUNK = 256  # tokens of a prompt at once: scores of a long one with itself would take its square in memory


class TrainWork(Protocol):
    """Work of the riders of a train, each in a seat of its own, numbered without gaps."""

    def board(self, seat: int, prompt: Sequence[int]) -> None: ...
    def move(self, origin: int, target: int) -> None: ...
    def step(self, riders: int) -> Sequence[int]: ...


class StatedStep:
    """A step that sleeps: a base, and a time for each rider; prompts cost nothing."""

    def __init__(self, base: Second, slope: Second, clock: Clock, vocab: int) -> None:
        self.base, self.slope, self.clock, self.vocab = base, slope, clock, vocab
        self.begun = 0

    def board(self, seat: int, prompt: Sequence[int]) -> None:
        """No work."""

    def move(self, origin: int, target: int) -> None:
        """No state."""

    def step(self, riders: int) -> Sequence[int]:
        """Sleep, then a token for each rider."""
        self.clock.sleep_until(self.clock.now() + self.base + self.slope * riders)
        self.begun += 1
        return [(self.begun + seat) % self.vocab for seat in range(riders)]


class DecoderStep:
    """A step of the decoder: prompts of new riders one by one, then one token of all together."""

    def __init__(self, decoder: Decoder, seats: int, context: int) -> None:
        self.decoder, self.cache = decoder, decoder.cache(seats, context)
        self.last = np.zeros(seats, int)  # token of each seat that the next step reads

    def board(self, seat: int, prompt: Sequence[int]) -> None:
        """All of a prompt but its last token into the cache; that goes with the step."""
        self.cache.lengths[seat], self.last[seat] = 0, prompt[-1]
        for start in range(0, len(prompt) - 1, CHUNK):
            self.decoder.step(np.array([prompt[start : min(start + CHUNK, len(prompt) - 1)]]), self.cache.of(seat, seat + 1))

    def move(self, origin: int, target: int) -> None:
        """A rider takes the seat of one who left."""
        end = self.cache.lengths[origin]
        for store in (self.cache.keys, self.cache.values):
            store[:, target, :, :end] = store[:, origin, :, :end]
        self.cache.lengths[target], self.last[target] = end, self.last[origin]

    def step(self, riders: int) -> Sequence[int]:
        """The likeliest next token of each rider."""
        output = self.decoder.step(self.last[:riders, None], self.cache.of(0, riders))
        self.last[:riders] = output.logits.argmax(axis=1)
        return self.last[:riders].tolist()

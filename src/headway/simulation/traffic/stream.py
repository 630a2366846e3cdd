"""Independent requests that are drawn piece by piece as they are played, the same as `generate` draws at once, so that none is kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from headway.simulation.traffic.distributions import Arrivals, Lengths
from headway.simulation.traffic.generate import check_count, drawn_lengths, generate, streams
from headway.simulation.traffic.requests import Floats, Ints, Traffic

PIECE = 1 << 18  # requests drawn at a time
SAMPLE = 200_000  # requests that stand for all where a sample does


@dataclass(frozen=True, kw_only=True)
class DrawnTraffic:
    """`count` independent requests of one seed."""

    arrivals: Arrivals
    prompt: Lengths
    output: Lengths
    count: int
    seed: int

    def __len__(self) -> int:
        return self.count

    @property
    def sizes(self) -> Iterator[int]:
        """Requests of each piece."""
        return (min(PIECE, self.count - start) for start in range(0, self.count, PIECE))

    def lengths(self) -> Iterator[tuple[Ints, Ints]]:
        """Prompts and outputs, piece by piece."""
        check_count(self.count)
        draw = streams(self.seed)
        return (drawn_lengths(self.prompt, self.output, size, draw) for size in self.sizes)

    def times(self) -> Iterator[Floats]:
        """Arrivals, piece by piece."""
        return self.arrivals.pieces(streams(self.seed).arrivals, self.sizes)

    def pieces(self) -> Iterator[Traffic]:
        """The requests, piece by piece, in order of arrival."""
        return (Traffic.of(times, *lengths) for times, lengths in zip(self.times(), self.lengths(), strict=True))

    @cached_property
    def sample(self) -> Traffic:
        """The first requests and the longest of all, which stand for the lengths of all."""
        first = generate(self.arrivals, self.prompt, self.output, min(SAMPLE, self.count), self.seed)
        longest = max(((int(p[at]), int(o[at])) for p, o in self.lengths() for at in [int(np.argmax(p + o))]), key=sum)
        prompt, output = first.prompt.copy(), first.output.copy()
        prompt[-1], output[-1] = longest
        return replace(first, prompt=prompt, output=output)

    @cached_property
    def span(self) -> tuple[float, float]:
        """Arrival of the first request and of the last."""
        ends = [(float(times[0]), float(times[-1])) for times in self.times()]
        return ends[0][0], ends[-1][1]

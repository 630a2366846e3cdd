"""Random numbers, one generator for each purpose, so that a change of one leaves what the others draw as it was."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headway.errors import BadValue

MOST_REQUESTS = 100_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Streams:
    """The generators of one seed, each at its beginning."""

    arrivals: np.random.Generator
    prompt: np.random.Generator
    output: np.random.Generator
    turns: np.random.Generator
    gaps: np.random.Generator


def streams(seed: int) -> Streams:
    """Generators that draw the same numbers each time they are made from one seed."""
    if seed < 0:
        raise BadValue("--seed", seed, "a whole number of 0 or more")
    arrivals, prompt, output, turns, gaps = (np.random.default_rng([seed, purpose]) for purpose in range(5))
    return Streams(arrivals=arrivals, prompt=prompt, output=output, turns=turns, gaps=gaps)


def check_count(count: int) -> None:
    """Refuse a number of requests that is none or more than memory holds."""
    if not 1 <= count <= MOST_REQUESTS:
        raise BadValue("--requests", count, f"1 to {MOST_REQUESTS} requests")

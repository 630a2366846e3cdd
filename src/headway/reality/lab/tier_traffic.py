"""Conversations that come back after random pauses, and what a store with times to live finds and holds of them, by drawing alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headway.core.units import PerSecond, Second
from headway.reality.lab.decoder import Array

TURNS, TURN = 4, 96  # of a conversation, and tokens that each adds to it
ARRIVALS: PerSecond = 1 / 60  # of conversations


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """One turn of a conversation, by the traffic's clock."""

    moment: Second
    conversation: int
    turn: int  # from 1

    @property
    def tokens(self) -> int:
        """Tokens of the conversation with this turn."""
        return self.turn * TURN


def pauses(draw: np.random.Generator, count: int, means: Sequence[Second]) -> Array:
    """Pauses of so many conversations, before each of their turns but the first."""
    sizes = (count, TURNS - 1)
    return draw.exponential(1.0, sizes) * np.asarray(means)[draw.integers(len(means), size=sizes)]


def visits(count: int, means: Sequence[Second], seed: int) -> list[Visit]:
    """All turns of so many conversations, in the order of their time."""
    draw = np.random.default_rng(seed)
    starts = np.cumsum(draw.exponential(1 / ARRIVALS, count))
    times = np.column_stack((starts, starts[:, None] + np.cumsum(pauses(draw, count, means), axis=1)))
    turns = [Visit(moment=float(times[at]), conversation=at[0], turn=at[1] + 1) for at in np.ndindex(*times.shape)]
    return sorted(turns, key=lambda visit: visit.moment)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReuseDraw:
    """What one drawing gives, by tier."""

    hit_shares: Array  # share of returns that come within the time to live
    token_s: Array  # tokens times seconds that a conversation's cache lies in the tier


def reuse_draw(count: int, means: Sequence[Second], lives: Sequence[Second], seed: int) -> ReuseDraw:
    """Found and held from pauses alone, without a store; the last turn's cache is kept to the end of every life."""
    waits = pauses(np.random.default_rng((seed, 1)), count, means)
    holds = np.concatenate((waits, np.full((count, 1), np.inf)), axis=1)[..., None]
    ends = np.asarray(lives)
    starts = np.concatenate(((0.0,), ends[:-1]))
    seconds = np.clip(holds, starts, ends) - starts
    tokens = np.arange(1, TURNS + 1) * TURN
    return ReuseDraw(hit_shares=(waits[..., None] <= ends).mean(axis=(0, 1)), token_s=(seconds * tokens[:, None]).sum(axis=1).mean(axis=0))

"""Profiles that contradict each other about a deployment: how far apart they put the time of its tokens, and whether that is too far."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from headway.laws.calibration import contradiction
from headway.performance.calibration.observation import Observation, profile_of

LEAST = 3.0  # standard deviations
STEPS = ("tpot", "step")  # quantities made of steps, of which profiles are compared


class FactorBelief(Protocol):
    """Logarithms of factors as some runs say them."""

    @property
    def mean(self) -> Any:
        """As expected."""

    @property
    def covariance(self) -> Any:
        """Of one with another."""

    @property
    def runs(self) -> tuple[str, ...]:
        """That say so, PROFILE:ID."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Clash:
    """Two profiles that exclude each other."""

    profiles: tuple[str, str]
    apart: float  # the logarithm of one's time of a token over the other's
    deviations: float  # standard deviations
    variance: float  # mean square of their distances from what all runs together say

    @property
    def text(self) -> str:
        """The clash in words."""
        first, second = self.profiles
        ratio = f"{math.exp(abs(self.apart)):.3g} times apart, {self.deviations:.2g} standard deviations"
        return f"{first} and {second} contradict each other ({ratio}): both count, and intervals are wider"


def clash(observations: Sequence[Observation], by_runs: Callable[[Sequence[Observation]], FactorBelief]) -> Clash | None:
    """The two profiles that are furthest apart about a deployment, if too far; `by_runs`: what some runs say of it."""
    names = tuple(dict.fromkeys(profile_of(observation.run) for observation in observations))
    if len(names) < 2:
        return None
    beliefs = {name: by_runs([member for member in observations if profile_of(member.run) == name]) for name in names}
    known = {name: belief for name, belief in beliefs.items() if belief.runs}
    slopes = [member.slopes for member in observations if member.quantity in STEPS and profile_of(member.run) in known]
    if len(known) < 2 or not slopes:
        return None
    along = np.mean(slopes, axis=0)
    middle = float(along @ by_runs(observations).mean)
    clashes = [_clash(pair, (known[pair[0]], known[pair[1]]), along, middle) for pair in itertools.combinations(known, 2)]
    furthest = max(clashes, key=lambda case: case.deviations)
    return furthest if furthest.deviations >= LEAST else None


def _clash(names: tuple[str, str], pair: tuple[FactorBelief, FactorBelief], along: np.ndarray, middle: float) -> Clash:
    first, second = (float(along @ belief.mean) for belief in pair)
    deviations = float(contradiction(first, second, *(float(along @ belief.covariance @ along) for belief in pair)))
    variance = ((first - middle) ** 2 + (second - middle) ** 2) / 2
    return Clash(profiles=names, apart=first - second, deviations=deviations, variance=variance)

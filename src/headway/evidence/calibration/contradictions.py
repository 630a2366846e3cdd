"""Runs of one deployment that contradict each other: what each measured, beside what the others say of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headway.laws.calibration import contradiction
from headway.performance.calibration.clashes import LEAST
from headway.performance.calibration.posterior import NOISE, posterior
from headway.performance.calibration.profile import CalibrationRun

MOST_RUNS = 40  # of a deployment, beyond which a wild run moves nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradiction:
    """A quantity of a run that the others of its deployment exclude."""

    run: str
    rest: tuple[str, ...]  # of the runs of its deployment
    quantity: str
    ratio: float  # measured, over what they say
    deviations: float  # standard deviations


def contradictions(runs: Sequence[CalibrationRun]) -> list[Contradiction]:
    """The runs of a deployment that the others exclude, the furthest off first; each is then left out of the others."""
    rest, worst = [run for run in runs if any(observation.quantity in NOISE for observation in run.observations)], []
    while 1 < len(rest) <= MOST_RUNS:
        furthest = max((_furthest(run, [peer for peer in rest if peer is not run]) for run in rest), key=lambda case: case.deviations)
        if furthest.deviations < LEAST:
            break
        worst.append(furthest)
        rest = [run for run in rest if run.id != furthest.run]
    return worst


def _furthest(run: CalibrationRun, rest: Sequence[CalibrationRun]) -> Contradiction:
    """The quantity of a run that is furthest from what others say."""
    by_rest = posterior([observation for peer in rest for observation in peer.observations], run.key, run.date)
    names = tuple(peer.id for peer in rest)
    cases = []
    for observation in run.observations:
        slopes, noise = np.asarray(observation.slopes), NOISE[observation.quantity]
        middle, variance = float(slopes @ by_rest.mean), float(slopes @ by_rest.covariance @ slopes)
        deviations = float(contradiction(observation.excess, middle, noise**2, variance))
        ratio = math.exp(observation.excess - middle)
        cases.append(Contradiction(run=run.id, rest=names, quantity=observation.quantity, ratio=ratio, deviations=deviations))
    return max(cases, key=lambda case: case.deviations)

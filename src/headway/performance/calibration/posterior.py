"""What runs of one's own say of the factors of a deployment: those of runs of it, of runs like it the less the less they are alike.

A Gaussian process over deployments and months: the factors of each have the same priors, and the correlation of two deployments is the
one rule by which runs of another layout, chip or version, and older ones, count less. Scatter is a Student t, by reweighting.
"""

from __future__ import annotations

import datetime
import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.core.units import Number
from headway.laws.calibration import conditioned, run_width_share, student_weight
from headway.performance.calibration.factors import PARAMETERS, RunFactors
from headway.performance.calibration.key import RunKey, applies, correlation
from headway.performance.calibration.observation import Observation

PRIOR: Mapping[str, float] = {"step": 0.2, "fixed": 0.3, "host": 0.6, "start": 0.5, "first": 0.3}  # standard deviations of logarithms
NOISE: Mapping[str, float] = {"tpot": 0.05, "rate": 0.06, "ttft": 0.20}  # of a run's quantities
VARIANCES = np.array([PRIOR[name] ** 2 for name in PARAMETERS])
REWEIGHTINGS = 12
DATED = re.compile(r"(20\d\d)-(\d\d)(?:-(\d\d))?")
MIDDLE, DAYS = 15, 30.4  # of a month


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Posterior:
    """Logarithms of a deployment's factors, in the order of PARAMETERS: mean and covariance, and the runs that say so."""

    mean: Any
    covariance: Any
    runs: tuple[str, ...] = ()

    def factors(self) -> RunFactors:
        """The factors, as expected."""
        return RunFactors(**dict(zip(PARAMETERS, np.exp(self.mean).tolist(), strict=True)))

    @property
    def errors(self) -> Any:
        """Standard deviations of the logarithms."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def profiles(self) -> tuple[str, ...]:
        """Names of the profiles whose runs were used."""
        return tuple(dict.fromkeys(run.partition(":")[0] for run in self.runs))

    def width_share(self, slopes: Any, noise: Number) -> Any:
        """Width of the interval of a quantity with these slopes over that without runs; `noise` is that of the quantity.

        The last axis of `slopes` is that of PARAMETERS.
        """
        variances = (((slopes @ covariance) * slopes).sum(axis=-1) + noise**2 for covariance in (self.covariance, np.diag(VARIANCES)))
        return run_width_share(*variances)


NO_RUNS = Posterior(mean=np.zeros(len(PARAMETERS)), covariance=np.diag(VARIANCES))


def months(text: str) -> float:
    """A month or a day as a number of months; today where nothing is said.

    >>> months("2026-11") - months("2025-11"), round(months("2026-11-20") - months("2026-11"), 2)
    (12.0, 0.16)
    """
    match = DATED.search(text) or DATED.search(datetime.date.today().isoformat())
    if match is None:
        raise ValueError(text)
    return 12.0 * int(match[1]) + int(match[2]) + (int(match[3] or MIDDLE) - MIDDLE) / DAYS


def posterior(observations: Sequence[Observation], key: RunKey, month: str = "") -> Posterior:
    """The factors of a deployment in a month ("" for today) by runs of it and of others like it; NO_RUNS where none says anything."""
    now = months(month)
    near = tuple(run for run in observations if applies(run.key, key, now - months(run.month)))
    if not near:
        return NO_RUNS
    solved = _solved(near)
    cross = VARIANCES[:, None] * np.array([correlation(run.key, key, now - months(run.month)) for run in near]).T * solved.slopes.T
    mean, covariance = conditioned(np.diag(VARIANCES), cross, solved.spread, solved.excess)
    return Posterior(mean=mean, covariance=covariance, runs=tuple(dict.fromkeys(run.run for run in near)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Solved:
    """Observations as arrays, with the covariance of what they measured, each with the noise that its weight gives it."""

    slopes: Any
    excess: Any
    spread: Any


@functools.lru_cache(maxsize=1000)
def _solved(observations: tuple[Observation, ...]) -> _Solved:
    slopes, excess = (np.array([getattr(observation, name) for observation in observations], dtype=float) for name in ("slopes", "excess"))
    noise = np.array([NOISE[observation.quantity] for observation in observations])
    deployments = [(observation.key, observation.month) for observation in observations]
    places = {place: index for index, place in enumerate(dict.fromkeys(deployments))}
    pairs = np.array([[correlation(*_apart(first, second)) for second in places] for first in places])
    at = np.array([places[place] for place in deployments])
    common = np.einsum("ip,jp,ijp->ij", slopes * VARIANCES, slopes, pairs[np.ix_(at, at)])
    weights = np.ones(len(excess))
    for _ in range(REWEIGHTINGS):
        fitted = common @ np.linalg.solve(common + np.diag(noise**2 / weights), excess)
        weights = student_weight((excess - fitted) / noise)
    return _Solved(slopes=slopes, excess=excess, spread=common + np.diag(noise**2 / weights))


def _apart(first: tuple[RunKey, str], second: tuple[RunKey, str]) -> tuple[RunKey, RunKey, float]:
    return first[0], second[0], months(first[1]) - months(second[1])

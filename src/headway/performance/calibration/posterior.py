"""What runs of one's own say of the factors of a deployment: those of runs of it, of runs like it the less the less they are alike.

A Gaussian process over deployments and months: the factors of each have the same priors, and the correlation of two deployments is the
one rule by which runs of another layout, chip or version, and older ones, count less. Scatter is a Student t, by reweighting.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headway.core.age import today
from headway.core.units import Number
from headway.laws.calibration import STUDENT_VARIANCE, conditioned, run_half, run_scatter, student_weight
from headway.performance.calibration.clashes import Clash, clash
from headway.performance.calibration.factors import PARAMETERS, RunFactors, factors_of
from headway.performance.calibration.key import TRAINING, RunKey, applies, correlation, parameters_of
from headway.performance.calibration.observation import Observation, profile_of

# Standard deviations of logarithms, and those of a run's quantities: of training as wide as its intervals without runs, and as runs of one
# model on one chip scatter.
PRIOR: Mapping[str, float] = {"step": 0.2, "fixed": 0.3, "host": 0.6, "start": 0.5, "first": 0.3, "memory": 0.08}
NOISE: Mapping[str, float] = {"tpot": 0.05, "rate": 0.06, "ttft": 0.20, "step": 0.10, "memory": 0.03}
REWEIGHTINGS = 12
DATED = re.compile(r"(20\d\d)-(\d\d)(?:-(\d\d))?")
MIDDLE, DAYS = 15, 30.4  # of a month


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Posterior:
    """Logarithms of a deployment's factors, in the order of its parameters: mean and covariance, and the runs that say so."""

    mean: Any
    covariance: Any
    prior: Any  # covariance without runs
    runs: tuple[str, ...] = ()
    clash: Clash | None = None  # of two profiles that contradict each other about it

    def factors(self) -> RunFactors:
        """The factors, as expected."""
        return RunFactors(**{name: float(factor) for name, factor in factors_of(self.mean).items()})

    @property
    def errors(self) -> Any:
        """Standard deviations of the logarithms."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def profiles(self) -> tuple[str, ...]:
        """Names of the profiles whose runs were used."""
        return tuple(dict.fromkeys(map(profile_of, self.runs)))

    def scatter(self, slopes: Any, noise: Number) -> Any:
        """Half of the interval of the logarithm of a quantity with these slopes, as runs leave it; `noise` is that of the quantity.

        The last axis of `slopes` is that of the parameters.
        """
        return run_scatter(((slopes @ self.covariance) * slopes).sum(axis=-1), noise)


def without_runs(parameters: tuple[str, ...]) -> Posterior:
    """What is known of these parameters before any run."""
    prior = np.diag([PRIOR[name] ** 2 for name in parameters])
    return Posterior(mean=np.zeros(len(parameters)), covariance=prior, prior=prior)


NO_RUNS = without_runs(PARAMETERS)


def half_after_a_run(half: Number) -> Number:
    """Half of the interval of a step, as a factor, once one run of the same deployment agreed with what was predicted.

    >>> round(float(half_after_a_run(1.5)), 2)
    1.22
    """
    variance = 1 / (1 / PRIOR["step"] ** 2 + 1 / NOISE["tpot"] ** 2)
    return run_half(half, run_scatter(variance, NOISE["tpot"]))


def months(text: str) -> float:
    """A month or a day as a number of months; today where nothing is said.

    >>> months("2026-11") - months("2025-11"), round(months("2026-11-20") - months("2026-11"), 2)
    (12.0, 0.16)
    """
    match = DATED.search(text) or DATED.search(today().isoformat())
    if match is None:
        raise ValueError(text)
    return 12.0 * int(match[1]) + int(match[2]) + (int(match[3] or MIDDLE) - MIDDLE) / DAYS


def posterior(observations: Sequence[Observation], key: RunKey, month: str = "") -> Posterior:
    """The factors of a deployment in a month ("" for today) by runs of it and of others like it, where any says something.

    Of two profiles that contradict each other either may hold, so that their distances from both together are added to what is not known.
    """
    alike = [observation for observation in observations if observation.quantity in NOISE and _is_alike(observation.key, key)]
    joint, clashing = _by_runs(alike, key, month), clash(alike, lambda runs: _by_runs(runs, key, month))
    if clashing is None:
        return joint
    step = np.array([float(name == "step") for name in parameters_of(key)])
    return replace(joint, covariance=joint.covariance + clashing.variance * np.outer(step, step), clash=clashing)


def _by_runs(alike: Sequence[Observation], key: RunKey, month: str) -> Posterior:
    runs = _solved(tuple(alike))
    now = months(month)
    places = [place for place, (run, when) in enumerate(runs.deployments) if applies(run, key, now - when)]
    near = np.flatnonzero(np.isin(runs.places, places))
    unknown = without_runs(parameters_of(key))
    if not len(near):
        return unknown
    common = np.array([correlation(run, key, now - when) for run, when in runs.deployments])[runs.places[near]]
    cross = unknown.prior @ (common * runs.slopes[near]).T
    shared, noise, excess = runs.common[np.ix_(near, near)], np.diag(runs.noise[near]), runs.excess[near]
    mean, _ = conditioned(unknown.prior, cross, shared + noise, excess)
    _, covariance = conditioned(unknown.prior, cross, shared + STUDENT_VARIANCE * noise, excess)
    return replace(unknown, mean=mean, covariance=covariance, runs=tuple(dict.fromkeys(runs.names[index] for index in near)))


def _is_alike(first: RunKey, second: RunKey) -> bool:
    """Whether two deployments may have anything in common."""
    return first.engine == second.engine and (first.mode == TRAINING) == (second.mode == TRAINING)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Solved:
    """Observations of an engine as arrays, with the covariance of what they measured, and the noise that its weight gives each."""

    names: tuple[str, ...]
    deployments: tuple[tuple[RunKey, float], ...]  # and months, which observations share
    places: Any  # of each observation's among them
    slopes: Any
    excess: Any
    common: Any
    noise: Any  # variances


@functools.lru_cache(maxsize=100)
def _solved(observations: tuple[Observation, ...]) -> _Solved:
    """The observations of one engine, with their weights: of a Student t, found by reweighting."""
    slopes, excess = (np.array([getattr(observation, name) for observation in observations], dtype=float) for name in ("slopes", "excess"))
    noise = np.array([NOISE[observation.quantity] for observation in observations])
    filed = [(observation.key, months(observation.month)) for observation in observations]
    deployments = tuple(dict.fromkeys(filed))
    order = {place: index for index, place in enumerate(deployments)}
    pairs = np.array([[correlation(run, second, when - then) for second, then in deployments] for run, when in deployments])
    places = np.array([order[place] for place in filed], dtype=int)
    common = np.zeros((0, 0))
    if observations:
        variances = np.diag(without_runs(parameters_of(observations[0].key)).prior)
        common = np.einsum("ip,jp,ijp->ij", slopes * variances, slopes, pairs[np.ix_(places, places)])
    weights = np.ones(len(excess))
    for _ in range(REWEIGHTINGS):
        fitted = common @ np.linalg.solve(common + np.diag(noise**2 / weights), excess)
        weights = student_weight((excess - fitted) / noise)
    return _Solved(
        names=tuple(observation.run for observation in observations), deployments=deployments, places=places, slopes=slopes, excess=excess,
        common=common, noise=noise**2 / weights,
    )  # fmt: skip

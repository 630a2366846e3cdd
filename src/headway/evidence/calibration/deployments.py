"""What runs say of each of their deployments: its factors, and how far off and how wide predictions are without and with them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from headway.evidence.calibration.runs import UsedRun
from headway.evidence.fit.statistics import NORMAL_QUANTILE
from headway.evidence.serving.score import Residual
from headway.performance.calibration.key import RunKey, parameters_of
from headway.performance.calibration.posterior import PRIOR, posterior
from headway.performance.calibration.start import LoggedStart, logged_start

RATE = "rate"
QUANTITIES = ("tpot", "ttft", RATE, "step", "memory")
SIDES = (attrgetter("without"), attrgetter("by_runs"), attrgetter("by_others"))
LEARNT = 0.95  # of the prior's standard deviation, above which runs say nothing of a factor


@dataclass(frozen=True, slots=True, kw_only=True)
class FactorOfRuns:
    """A factor of a deployment with its 90 % interval; `is_learnt`: whether the runs say anything of it."""

    name: str  # one of PARAMETERS
    value: float
    low: float
    high: float
    usual: float  # half of the interval without runs, as a factor
    is_learnt: bool


@dataclass(frozen=True, slots=True)
class QuantityOfRuns:
    """A quantity of a deployment's runs, without and with them: measured over predicted, and half of the 90 % interval as a share."""

    name: str  # one of QUANTITIES
    ratio: float
    half: float
    ratio_by_runs: float
    half_by_runs: float
    ratio_by_others: float | None = None  # each run by the others alone
    half_by_others: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentOfRuns:
    """A deployment, its runs, and what they say."""

    key: RunKey
    runs: tuple[UsedRun, ...]
    factors: tuple[FactorOfRuns, ...]
    quantities: tuple[QuantityOfRuns, ...]
    start: LoggedStart | None = None  # as a log tells it


def deployments(all_runs: Sequence[UsedRun]) -> list[DeploymentOfRuns]:
    """The deployments of runs, those with the most runs first; runs of one say something of others like it."""
    by_key: dict[RunKey, list[UsedRun]] = {}
    for used_run in all_runs:
        by_key.setdefault(used_run.run.key, []).append(used_run)
    observations = tuple(observation for used_run in all_runs for observation in used_run.run.observations)
    records = []
    for key, runs in sorted(by_key.items(), key=lambda item: -len(item[1])):
        known = posterior(observations, key, max(used_run.run.date for used_run in runs))
        factors = tuple(
            FactorOfRuns(
                name=name, value=math.exp(mean), low=math.exp(mean - NORMAL_QUANTILE * error),
                high=math.exp(mean + NORMAL_QUANTILE * error), usual=math.exp(NORMAL_QUANTILE * PRIOR[name]),
                is_learnt=error < LEARNT * PRIOR[name],
            )
            for name, mean, error in zip(parameters_of(key), known.mean.tolist(), known.errors.tolist(), strict=True)
        )  # fmt: skip
        quantities = tuple(filter(None, (_quantity(name, runs) for name in QUANTITIES)))
        start = logged_start(observations, key)
        records.append(DeploymentOfRuns(key=key, runs=tuple(runs), factors=factors, quantities=quantities, start=start))
    return records


def _quantity(name: str, runs: Sequence[UsedRun]) -> QuantityOfRuns | None:
    """A quantity in the middle of the runs that measured it; None where none did."""
    sides = [[residual for used_run in runs for residual in side(used_run) if _name(residual) == name] for side in SIDES]
    if not sides[0] or not sides[1]:
        return None
    figures = [value for side in sides for value in ((_middle(list(map(_ratio, side))), _middle(list(map(_half, side)))) if side else ())]
    return QuantityOfRuns(name, *figures)


def _name(residual: Residual) -> str:
    return residual.quantity if residual.quantity in QUANTITIES else RATE


def _ratio(residual: Residual) -> float:
    return residual.measured / residual.predicted


def _half(residual: Residual) -> float:
    """Half of an interval as a share, were it as wide to both sides."""
    return math.sqrt(residual.hi / residual.lo) - 1


def _middle(values: Sequence[float]) -> float:
    return float(np.median(values))

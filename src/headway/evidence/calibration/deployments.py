"""What runs say of each of their deployments: its factors, and how far off and how wide predictions are without and with them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headway.evidence.calibration.runs import UsedRun
from headway.evidence.fit.statistics import NORMAL_QUANTILE
from headway.evidence.serving.score import Residual
from headway.performance.calibration.key import RunKey, parameters_of
from headway.performance.calibration.posterior import PRIOR, posterior
from headway.performance.calibration.start import LoggedStart, logged_start

RATE = "rate"
QUANTITIES = ("tpot", "ttft", RATE, "step", "memory")
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


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantityOfRuns:
    """A quantity of a deployment's runs, without and with them: measured over predicted, and half of the 90 % interval as a share."""

    name: str  # one of QUANTITIES
    ratio: float
    half: float
    ratio_by_runs: float
    half_by_runs: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentOfRuns:
    """A deployment, its runs, and what they say."""

    key: RunKey
    runs: tuple[UsedRun, ...]
    factors: tuple[FactorOfRuns, ...]
    quantities: tuple[QuantityOfRuns, ...]
    start: LoggedStart | None = None  # as a log tells it


def deployments(used: Sequence[UsedRun]) -> list[DeploymentOfRuns]:
    """The deployments of runs, those with the most runs first; runs of one say something of others like it."""
    by_key: dict[RunKey, list[UsedRun]] = {}
    for one in used:
        by_key.setdefault(one.run.key, []).append(one)
    observations = tuple(each for one in used for each in one.run.observations)
    found = []
    for key, runs in sorted(by_key.items(), key=lambda item: -len(item[1])):
        known = posterior(observations, key, max(one.run.date for one in runs))
        factors = tuple(
            FactorOfRuns(
                name=name, value=math.exp(mean), low=math.exp(mean - NORMAL_QUANTILE * error),
                high=math.exp(mean + NORMAL_QUANTILE * error), usual=math.exp(NORMAL_QUANTILE * PRIOR[name]),
                is_learnt=error < LEARNT * PRIOR[name],
            )
            for name, mean, error in zip(parameters_of(key), known.mean.tolist(), known.errors.tolist(), strict=True)
        )  # fmt: skip
        quantities = tuple(filter(None, (_quantity(name, runs) for name in QUANTITIES)))
        found.append(DeploymentOfRuns(key=key, runs=tuple(runs), factors=factors, quantities=quantities,
                                      start=logged_start(observations, key)))  # fmt: skip
    return found


def _quantity(name: str, runs: Sequence[UsedRun]) -> QuantityOfRuns | None:
    """A quantity in the middle of the runs that measured it; None where none did."""
    without, by_runs = ([each for residuals in sides for each in residuals if _name(each) == name]
                        for sides in ([one.without for one in runs], [one.by_runs for one in runs]))  # fmt: skip
    if not without or not by_runs:
        return None
    return QuantityOfRuns(
        name=name, ratio=_middle([each.measured / each.predicted for each in without]), half=_middle(list(map(_half, without))),
        ratio_by_runs=_middle([each.measured / each.predicted for each in by_runs]), half_by_runs=_middle(list(map(_half, by_runs))),
    )  # fmt: skip


def _name(residual: Residual) -> str:
    return residual.quantity if residual.quantity in QUANTITIES else RATE


def _half(residual: Residual) -> float:
    """Half of an interval as a share, were it as wide to both sides."""
    return math.sqrt(residual.hi / residual.lo) - 1


def _middle(values: Sequence[float]) -> float:
    return float(np.median(values))

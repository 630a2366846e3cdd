"""Predictions of rows under runs of one's own: each row's server by its factors, and its intervals narrower by what the runs tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from headway.evidence.calibration.linear import factors_of, linear
from headway.evidence.rows.run_keys import task_key, task_month
from headway.evidence.rows.tasks import Task
from headway.evidence.serving.machines import MeasuredLoad, Quantities, rows
from headway.laws.calibration import run_half
from headway.performance.calibration.factors import calibrated
from headway.performance.calibration.observation import Observation
from headway.performance.calibration.posterior import NOISE, Posterior, posterior
from headway.performance.request import Server

Observations = Sequence[Observation]
NOISE_OF = {"per_chip": "rate"}
EXACT = "prefill"  # kind of task whose TTFT is that of a batch by itself, as exact as a rate


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Calibrated:
    """Rows of a kind under runs: their posteriors, their servers, and what the runs leave of their intervals."""

    posteriors: tuple[Posterior, ...]
    server: Server
    pool: Server | None
    scatters: Mapping[str, Any]  # by quantity, infinite where no run says anything

    def narrowed(self, halves: Quantities) -> Quantities:
        """Halves of intervals as factors, as wide as the runs leave them; as they are, to the last digit, where no run says anything."""
        return Quantities(**{name: run_half(getattr(halves, name), scatter) for name, scatter in self.scatters.items()})


def under_runs(
    kind: str, tasks: Sequence[Task], m: Server, load: MeasuredLoad, pool: Server | None, observations: Observations
) -> Calibrated | None:
    """Rows of a kind under runs; None where these say nothing about any."""
    places = [(task_key(task), task_month(task)) for task in tasks]
    by_place = {place: posterior(observations, *place) for place in dict.fromkeys(places)}
    posteriors = tuple(by_place[place] for place in places)
    at = np.flatnonzero([bool(known.runs) for known in posteriors])
    if not len(at):
        return None
    logs = np.array([known.mean for known in posteriors])
    _, slopes = linear(kind, rows(m, at), rows(load, at), pool and rows(pool, at), logs[at])
    scatters = {field.name: np.full(len(tasks), np.inf) for field in fields(Quantities)}
    for name, slope in slopes.items():
        noise = NOISE["rate" if kind == EXACT else NOISE_OF.get(name, name)]
        leaves = [posteriors[index].scatter(row, noise) for index, row in zip(at, slope, strict=True)]
        scatters[name][at] = np.nan_to_num(leaves, nan=np.inf)  # of a quantity that the kind does not have
    factors = factors_of(logs)
    return Calibrated(posteriors=posteriors, server=calibrated(m, factors), pool=pool and calibrated(pool, factors), scatters=scatters)

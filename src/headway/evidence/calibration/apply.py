"""Predictions of rows under runs of one's own: each row's server by its factors, and its intervals narrower by what the runs tell."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from headway.core.units import Number
from headway.evidence.calibration.linear import linear
from headway.evidence.rows.run_keys import task_key, task_month
from headway.evidence.rows.tasks import Setup, Task
from headway.evidence.serving.machines import MeasuredLoad, Quantities, compiled_setup, rows, setup_room
from headway.laws.calibration import run_half
from headway.performance.achieved import Efficiencies
from headway.performance.assumptions import UTILIZATION
from headway.performance.calibration.factors import RunFactors, calibrated, factors_of
from headway.performance.calibration.observation import Observation
from headway.performance.calibration.posterior import NOISE, Posterior, posterior
from headway.performance.calibration.start import NAMES as STARTS
from headway.performance.calibration.start import logged_start, started_room
from headway.performance.request import Server
from headway.performance.room import Room

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


def as_started(tasks: Sequence[Task], m: Server, observations: Observations, table: Efficiencies) -> Server:
    """The servers with the room for KV cache and the most sequences that logs of their engines' starts say, where there are any."""
    keys = [task_key(task) for task in tasks] if any(run.quantity in STARTS for run in observations) else []
    starts = {key: start for key in dict.fromkeys(keys) if (start := logged_start(observations, key)) is not None}
    if not starts:
        return m
    usable, most = (np.array(numbers, dtype=float) for numbers in (m.room.usable, m.scheduling.max_sequences))
    for index, (task, key) in enumerate(zip(tasks, keys, strict=True)):
        if key in starts:
            usable[index] = started_room(_room_at(task.setup, table), starts[key], UTILIZATION).usable
            most[index] *= starts[key].seats
    return replace(m, room=replace(m.room, usable=usable), scheduling=replace(m.scheduling, max_sequences=most))


def _room_at(setup: Setup, table: Efficiencies) -> Callable[[Number], Room]:
    """The room of a setup as a function of the share of the card."""
    compiled = compiled_setup(setup, table)
    return lambda share: setup_room(setup, compiled, table, share)


def under_runs(
    kind: str, tasks: Sequence[Task], m: Server, load: MeasuredLoad, pool: Server | None, observations: Observations
) -> Calibrated | None:
    """Rows of a kind under runs; None where these say nothing about any."""
    if not observations:
        return None
    places = [(task_key(task), task_month(task)) for task in tasks]
    by_place = {place: posterior(observations, *place) for place in dict.fromkeys(places)}
    posteriors = tuple(by_place[place] for place in places)
    at = np.flatnonzero([bool(known.runs) for known in posteriors])
    if not len(at):
        return None
    logs = np.array([known.mean for known in posteriors])
    steady = replace(rows(load, at), rate=np.full(len(at), np.nan))  # of steps: what arrivals make of them follows (arrivals.py)
    _, slopes = linear(kind, rows(m, at), steady, pool and rows(pool, at), logs[at])
    scatters = {field.name: np.full(len(tasks), np.inf) for field in fields(Quantities)}
    for name, slope in slopes.items():
        noise = NOISE["rate" if kind == EXACT else NOISE_OF.get(name, name)]
        leaves = [posteriors[index].scatter(row, noise) for index, row in zip(at, slope, strict=True)]
        scatters[name][at] = np.nan_to_num(leaves, nan=np.inf)  # of a quantity that the kind does not have
    factors = RunFactors(**factors_of(logs))
    return Calibrated(posteriors=posteriors, server=calibrated(m, factors), pool=pool and calibrated(pool, factors), scatters=scatters)

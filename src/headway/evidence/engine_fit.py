"""Fit the engines' numbers to serving rows: regularised by what was believed before, robust, no source counting more than its share.

A row's residual is ln(predicted / measured) over the scatter expected of its quantity. Nothing is keyed by source, model or row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.efficiency import Efficiencies
from headway.evidence.engine_numbers import EngineNumber, table_at
from headway.evidence.fitted import FittedNumbers
from headway.evidence.machines import Machines, bare_machines, engines_of
from headway.evidence.predict import load_of, placed
from headway.evidence.quantities import MeasuredLoad, Quantities, quantities
from headway.evidence.setup import Setup
from headway.evidence.stacked import rows
from headway.evidence.tasks import Task

SCATTER = {"decode": 0.1, "prefill": 0.2, "rate": 0.2, "tpot": 0.12, "ttft": 0.4}  # of ln(predicted / measured) that no fit removes
SHARE = 40  # rows after which a source's quantity counts no more
TRUST = {"B": 0.7}  # one condition missing: half the weight
STEP = 1e-3  # of a parameter, in standard deviations of its prior, for derivatives
ROUNDS = 12
MEASURED = {"ttft": "ttft_s", "tpot": "tpot_s", "per_chip": "tok_per_s_chip"}
FITTED_QUANTITIES = {  # of each kind: the quantity, and its scatter
    "decode": (("tpot", "decode"),), "decode_e2e": (("per_chip", "decode"),), "prefill": (("per_chip", "prefill"),),
    "static": (("per_chip", "rate"),), "offline": (("per_chip", "rate"),),
    "serving": (("tpot", "tpot"), ("ttft", "ttft")), "serving_unloaded": (("tpot", "tpot"), ("ttft", "ttft")),
    "disagg": (("tpot", "tpot"), ("ttft", "ttft")),
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineGroup:
    """Rows of one kind, and one of their quantities as measured."""

    kind: str
    quantity: str
    rows: Any  # among the kind's rows, those with a measurement
    measured: Any
    weight: Any
    sources: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRows:
    """Rows of one kind, their machines and loads."""

    name: str
    place: Any
    machines: Machines
    load: MeasuredLoad
    groups: tuple[EngineGroup, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineProblem:
    """Rows to fit, compiled once: kernels alone, to which engines are added."""

    base: Efficiencies
    setups: tuple[Setup, ...]
    kinds: tuple[TaskRows, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFit:
    """The numbers found, in standard deviations of their priors, and how well they are known."""

    free: tuple[EngineNumber, ...]
    z: Any
    error: Any  # of z

    def values(self, engine_numbers: Sequence[EngineNumber]) -> list[float]:
        """Each number, free or not."""
        at = {(number.section, number.key): z for number, z in zip(self.free, self.z, strict=True)}
        return [number.at(at.get((number.section, number.key), 0.0)) for number in engine_numbers]


def problem(tasks: Sequence[Task], base: Efficiencies) -> EngineProblem:
    """Rows of reliability A and B, by kind."""
    scored = [task for task in tasks if task.row.reliability != "C"]
    if not scored:
        return EngineProblem(base=base, setups=(), kinds=())
    place, setups = placed(scored)
    bare, kinds = bare_machines(setups, base), []
    for name in FITTED_QUANTITIES:
        at = np.array([index for index, task in enumerate(scored) if task.kind == name], dtype=int)
        if len(at):
            kind_tasks = [scored[index] for index in at]
            groups = tuple(group for quantity, scatter in FITTED_QUANTITIES[name] for group in _group(name, quantity, scatter, kind_tasks))
            kinds.append(TaskRows(name=name, place=place[at], machines=bare.rows(place[at]), load=load_of(kind_tasks), groups=groups))
    return EngineProblem(base=base, setups=tuple(setups), kinds=tuple(kinds))


def measured(task: Task, quantity: str) -> float:
    """A row's measurement of a quantity, NaN where it has none."""
    value = getattr(task.row, MEASURED[quantity])
    return np.nan if value is None or value <= 0 else float(value)


def _group(kind: str, quantity: str, scatter: str, tasks: Sequence[Task]) -> list[EngineGroup]:
    values = np.array([measured(task, quantity) for task in tasks])
    rows = np.flatnonzero(np.isfinite(values))
    if not len(rows):
        return []
    measured_rows = [tasks[int(index)].row for index in rows]
    sources = [row.source for row in measured_rows]
    count = np.array([sources.count(source) for source in sources])
    trust = np.array([TRUST.get(row.reliability, 1.0) for row in measured_rows])
    weight = np.minimum(1.0, np.sqrt(SHARE / count)) * trust / SCATTER[scatter]
    return [EngineGroup(kind=kind, quantity=quantity, rows=rows, measured=values[rows], weight=weight, sources=np.array(sources))]


def predictions(fit_problem: EngineProblem, table: Efficiencies) -> list[Quantities]:
    """Every kind's quantities under a table of engines."""
    engines = engines_of(fit_problem.setups, table)
    return [quantities(kind.name, kind.machines.under(rows(engines, kind.place)), kind.load, False) for kind in fit_problem.kinds]


def residuals(fit_problem: EngineProblem, table: Efficiencies) -> Any:
    """ln(predicted / measured) of every measurement, over its scatter."""
    blocks = []
    for kind, estimates in zip(fit_problem.kinds, predictions(fit_problem, table), strict=True):
        for group in kind.groups:
            blocks.append(np.log(getattr(estimates, group.quantity)[group.rows] / group.measured) * group.weight)
    return np.concatenate(blocks)


def softened(scaled: Any) -> Any:
    """Residuals whose squares grow like their size once they are large: one wild row is not a hundred plain ones."""
    return np.sign(scaled) * np.sqrt(2 * (np.sqrt(1 + scaled * scaled) - 1))


def fit(fit_problem: EngineProblem, engine_numbers: Sequence[EngineNumber], start: EngineFit | None = None) -> EngineFit:
    """Levenberg-Marquardt on the softened residuals and the priors, from the priors or from another fit; without a row, the priors."""
    free = tuple(number for number in engine_numbers if number.spread)
    if not any(kind.groups for kind in fit_problem.kinds):
        return EngineFit(free=free, z=np.zeros(len(free)), error=np.ones(len(free)))
    z = np.zeros(len(free)) if start is None else start.z

    def at(z: Any) -> Any:
        values = EngineFit(free=free, z=z, error=z).values(engine_numbers)
        return np.concatenate([softened(residuals(fit_problem, table_at(fit_problem.base, engine_numbers, values))), z])

    now, damping = at(z), 1e-2
    slopes = _slopes(at, z, now)
    for _ in range(ROUNDS):
        normal, force = slopes.T @ slopes, slopes.T @ now
        move = np.linalg.solve(normal + damping * np.diag(np.diag(normal)), -force)
        trial = at(z + np.clip(move, -1.5, 1.5))
        if trial @ trial < now @ now:
            gain = (now @ now - trial @ trial) / (now @ now)
            z, now, damping = z + np.clip(move, -1.5, 1.5), trial, damping / 5
            slopes = _slopes(at, z, now)
            if gain < 1e-5:
                break
        else:
            damping *= 8
    return EngineFit(free=free, z=z, error=_errors(fit_problem, slopes, now))


def _errors(fit_problem: EngineProblem, slopes: Any, now: Any) -> Any:
    sources = np.concatenate([group.sources for kind in fit_problem.kinds for group in kind.groups])
    return np.sqrt(np.diag(covariance_by_source(slopes, now, sources)))


def covariance_by_source(slopes: Any, now: Any, sources: Any) -> Any:
    """Covariance of what was fitted that holds although the rows of a source err together: each source's pull on the optimum is one draw.

    `slopes` and `now` are of the measurements, whose sources are given, and then of the priors.
    """
    inverse, count = np.linalg.inv(slopes.T @ slopes), len(sources)
    pulls = [inverse @ (slopes[:count][sources == source].T @ now[:count][sources == source]) for source in np.unique(sources)]
    return inverse + sum(np.outer(pull, pull) for pull in pulls)


def _slopes(at: Any, z: Any, now: Any) -> Any:
    perturbations = np.eye(len(z)) * STEP
    return np.stack([(at(z + step) - now) / STEP for step in perturbations], axis=1)


def as_fitted(engine_fit: EngineFit, engine_numbers: Sequence[EngineNumber], rows: int, what: str) -> tuple[FittedNumbers, ...]:
    """The numbers as lines of data/efficiency.toml; those that were fixed have no error."""
    error = {(number.section, number.key): e for number, e in zip(engine_fit.free, engine_fit.error, strict=True)}
    lines = []
    for number, value in zip(engine_numbers, engine_fit.values(engine_numbers), strict=True):
        wide = error.get((number.section, number.key))
        lines.append(
            FittedNumbers(
                section=number.section, key=number.key, value=value, unit=number.unit,
                error=0.0 if wide is None else value * number.spread * wide, rows=0 if wide is None else rows,
                range=what if wide is not None else "fixed", meaning=number.meaning,
                source="published serving runs, docs/accuracy.md" if wide is not None else "stated, docs/decisions.md", date="2026-11",
            )
        )  # fmt: skip
    return tuple(lines)

"""Fit the engines' numbers to serving rows: regularised by what was believed before, robust, no source counting more than its share.

A row's residual is ln(predicted / measured) over the scatter expected of its quantity. Nothing is keyed by source, model or row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.efficiency import Efficiencies
from headway.evidence.engine_numbers import Number, table_at
from headway.evidence.fitted import Fitted
from headway.evidence.machines import Machines, bare_machines, engines_of
from headway.evidence.predict import load_of, placed
from headway.evidence.quantities import Load, Quantities, quantities
from headway.evidence.setup import Setup
from headway.evidence.stacked import rows
from headway.evidence.tasks import Task

SCATTER = {"decode": 0.1, "prefill": 0.2, "rate": 0.2, "tpot": 0.12, "ttft": 0.4}  # of ln(predicted / measured) that no fit removes
SHARE = 40  # rows after which a source's quantity counts no more
TRUST = {"B": 0.7}  # one condition missing: half the weight
STEP = 1e-3  # of a parameter, in standard deviations of its prior, for derivatives
ROUNDS = 12
MEASURED = {"ttft": "ttft_s", "tpot": "tpot_s", "per_chip": "tok_per_s_chip"}
SEEN = {  # of each kind: the quantity, and its scatter
    "decode": (("tpot", "decode"),), "decode_e2e": (("per_chip", "decode"),), "prefill": (("per_chip", "prefill"),),
    "static": (("per_chip", "rate"),), "offline": (("per_chip", "rate"),),
    "serving": (("tpot", "tpot"), ("ttft", "ttft")), "serving_unloaded": (("tpot", "tpot"), ("ttft", "ttft")),
    "disagg": (("tpot", "tpot"), ("ttft", "ttft")),
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Rows of one kind, and one of their quantities as measured."""

    kind: str
    quantity: str
    rows: Any  # among the kind's rows, those with a measurement
    measured: Any
    weight: Any
    sources: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """Rows of one kind, their machines and loads."""

    name: str
    place: Any
    machines: Machines
    load: Load
    groups: tuple[Group, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Rows to fit, compiled once: kernels alone, to which engines are added."""

    base: Efficiencies
    setups: tuple[Setup, ...]
    kinds: tuple[Kind, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFit:
    """The numbers found, in standard deviations of their priors, and how well they are known."""

    free: tuple[Number, ...]
    z: Any
    error: Any  # of z

    def values(self, every: Sequence[Number]) -> list[float]:
        """Each number, free or not."""
        at = {(number.section, number.key): z for number, z in zip(self.free, self.z, strict=True)}
        return [number.at(at.get((number.section, number.key), 0.0)) for number in every]


def problem(tasks: Sequence[Task], base: Efficiencies) -> Problem:
    """Rows of reliability A and B, by kind."""
    scored = [task for task in tasks if task.row.reliability != "C"]
    if not scored:
        return Problem(base=base, setups=(), kinds=())
    place, setups = placed(scored)
    bare, kinds = bare_machines(setups, base), []
    for name in SEEN:
        at = np.array([index for index, task in enumerate(scored) if task.kind == name], dtype=int)
        if len(at):
            some = [scored[index] for index in at]
            groups = tuple(group for quantity, scatter in SEEN[name] for group in _group(name, quantity, scatter, some))
            kinds.append(Kind(name=name, place=place[at], machines=bare.rows(place[at]), load=load_of(some), groups=groups))
    return Problem(base=base, setups=tuple(setups), kinds=tuple(kinds))


def measured(task: Task, quantity: str) -> float:
    """A row's measurement of a quantity, NaN where it has none."""
    found = getattr(task.row, MEASURED[quantity])
    return np.nan if found is None or found <= 0 else float(found)


def _group(kind: str, quantity: str, scatter: str, tasks: Sequence[Task]) -> list[Group]:
    values = np.array([measured(task, quantity) for task in tasks])
    rows = np.flatnonzero(np.isfinite(values))
    if not len(rows):
        return []
    seen = [tasks[int(index)].row for index in rows]
    sources = [row.source for row in seen]
    count = np.array([sources.count(source) for source in sources])
    trust = np.array([TRUST.get(row.reliability, 1.0) for row in seen])
    weight = np.minimum(1.0, np.sqrt(SHARE / count)) * trust / SCATTER[scatter]
    return [Group(kind=kind, quantity=quantity, rows=rows, measured=values[rows], weight=weight, sources=np.array(sources))]


def predictions(asked: Problem, table: Efficiencies) -> list[Quantities]:
    """Every kind's quantities under a table of engines."""
    engines = engines_of(asked.setups, table)
    return [quantities(kind.name, kind.machines.under(rows(engines, kind.place)), kind.load, False) for kind in asked.kinds]


def residuals(asked: Problem, table: Efficiencies) -> Any:
    """ln(predicted / measured) of every measurement, over its scatter."""
    found = []
    for kind, made in zip(asked.kinds, predictions(asked, table), strict=True):
        for group in kind.groups:
            found.append(np.log(getattr(made, group.quantity)[group.rows] / group.measured) * group.weight)
    return np.concatenate(found)


def softened(scaled: Any) -> Any:
    """Residuals whose squares grow like their size once they are large: one wild row is not a hundred plain ones."""
    return np.sign(scaled) * np.sqrt(2 * (np.sqrt(1 + scaled * scaled) - 1))


def fit(asked: Problem, every: Sequence[Number], start: EngineFit | None = None) -> EngineFit:
    """Levenberg-Marquardt on the softened residuals and the priors, from the priors or from another fit; without a row, the priors."""
    free = tuple(number for number in every if number.spread)
    if not any(kind.groups for kind in asked.kinds):
        return EngineFit(free=free, z=np.zeros(len(free)), error=np.ones(len(free)))
    z = np.zeros(len(free)) if start is None else start.z

    def at(z: Any) -> Any:
        values = EngineFit(free=free, z=z, error=z).values(every)
        return np.concatenate([softened(residuals(asked, table_at(asked.base, every, values))), z])

    now, damping = at(z), 1e-2
    slopes = _slopes(at, z, now)
    for _ in range(ROUNDS):
        normal, force = slopes.T @ slopes, slopes.T @ now
        move = np.linalg.solve(normal + damping * np.diag(np.diag(normal)), -force)
        tried = at(z + np.clip(move, -1.5, 1.5))
        if tried @ tried < now @ now:
            gained = (now @ now - tried @ tried) / (now @ now)
            z, now, damping = z + np.clip(move, -1.5, 1.5), tried, damping / 5
            slopes = _slopes(at, z, now)
            if gained < 1e-5:
                break
        else:
            damping *= 8
    return EngineFit(free=free, z=z, error=_errors(asked, slopes, now))


def _errors(asked: Problem, slopes: Any, now: Any) -> Any:
    sources = np.concatenate([group.sources for kind in asked.kinds for group in kind.groups])
    return np.sqrt(np.diag(covariance_by_source(slopes, now, sources)))


def covariance_by_source(slopes: Any, now: Any, sources: Any) -> Any:
    """Covariance of what was fitted that holds although the rows of a source err together: each source's pull on the optimum is one draw.

    `slopes` and `now` are of the measurements, whose sources are given, and then of the priors.
    """
    inverse, count = np.linalg.inv(slopes.T @ slopes), len(sources)
    pulls = [inverse @ (slopes[:count][sources == one].T @ now[:count][sources == one]) for one in np.unique(sources)]
    return inverse + sum(np.outer(pull, pull) for pull in pulls)


def _slopes(at: Any, z: Any, now: Any) -> Any:
    moved = np.eye(len(z)) * STEP
    return np.stack([(at(z + step) - now) / STEP for step in moved], axis=1)


def as_fitted(found: EngineFit, every: Sequence[Number], rows: int, what: str) -> tuple[Fitted, ...]:
    """The numbers as lines of data/efficiency.toml; those that were fixed have no error."""
    error = {(number.section, number.key): e for number, e in zip(found.free, found.error, strict=True)}
    lines = []
    for number, value in zip(every, found.values(every), strict=True):
        wide = error.get((number.section, number.key))
        lines.append(
            Fitted(
                section=number.section, key=number.key, value=value, unit=number.unit,
                error=0.0 if wide is None else value * number.spread * wide, rows=0 if wide is None else rows,
                range=what if wide is not None else "fixed", meaning=number.meaning,
                source="published serving runs, docs/accuracy.md" if wide is not None else "stated, docs/decisions.md", date="2026-11",
            )
        )  # fmt: skip
    return tuple(lines)

"""The numbers of engines that serving rows decide, and their fit: regularised by what was believed before, robust, by source.

A row's residual is ln(predicted / measured) over the scatter expected of its quantity. Nothing is keyed by source, model or row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.core.quantity import known
from headway.evidence.fit.result import FittedNumbers
from headway.evidence.rows.setup import Setup
from headway.evidence.rows.tasks import Task
from headway.evidence.serving.machines import Machines, bare_machines, engines_of, rows
from headway.evidence.serving.predict import load_of, placed
from headway.evidence.serving.quantities import MeasuredLoad, Quantities, quantities
from headway.performance.efficiency import Efficiencies

MS, US = 1e-3, 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineNumber:
    """One number: fixed when `spread` is 0, else believed within a factor exp(spread) of `prior` (one standard deviation)."""

    section: str
    key: str
    prior: float
    spread: float
    unit: str
    meaning: str
    most: float

    def at(self, z: float) -> float:
        """The number so many standard deviations of the prior away from it."""
        return min(self.prior * math.exp(self.spread * z), self.most)


MEANINGS = {
    "launch": ("", "factor on kernels' fixed costs: below 1 where it fuses what was measured apart, or launches ahead"),
    "step": ("s", "the engine's own work in each step, exposed"),
    "layer": ("s", "and in each layer: launches that no graph hides, kernels that are not fused"),
    "split": ("s", "and in each layer for each chip that it is split over, where the host joins the parts"),
    "sequence": ("s", "and for each sequence of a rank: sampling, bookkeeping"),
    "stream": ("s", "and where answers are streamed: de-tokenising, sending"),
    "compute": ("", "share of peak FLOP/s that its kernels reach, over the best measured"),
    "memory": ("", "share of HBM bandwidth that its kernels reach, over the best measured"),
    "weight_only": ("", "both shares again, in dense matmuls of weights that are widened first"),
    "attention": ("", "both shares again, in attention"),
    "expert": ("", "both shares again, in routed experts"),
    "request": ("s", "work on a request before and after the model's: HTTP, tokenising, scheduling"),
    "together": ("", "share of requests whose prompts come all at once: those of a run's start, or all where prompts go before decodes"),
    "company": ("", "other prompts that come with one even so"),
    "budget": ("token", "prompt tokens that a step of one rank takes at most"),
    "mixed": ("", "1 where prompt chunks ride along with decodes, 0 where prompts go in steps of their own"),
    "reserve": ("", "part of an answer whose cache is set aside when it is admitted"),
    "limit": ("", "sequences of one rank at most"),
    "pipeline": ("", "share of a prompt's chunks that overlap in pipeline stages"),
    "hbm": ("", "memory for weights and cache over the datasheet's capacity in GB"),
}


SHARES = ("together", "pipeline", "mixed", "reserve")


def number(section: str, key: str, prior: float, spread: float = 0.0) -> EngineNumber:
    """A number with what its key means."""
    unit, meaning = MEANINGS[key]
    streams = key == "memory" and section.startswith("engine.")  # no faster than the kernels measured: the rest is the platform's
    most = 1.0 if key in SHARES or streams else math.inf
    return EngineNumber(section=section, key=key, prior=prior, spread=spread, unit=unit, meaning=meaning, most=most)


def numbers() -> tuple[EngineNumber, ...]:
    """Every number of engines and platforms, free or fixed."""
    none = [number("engine.none", key, 0.0) for key in ("step", "layer", "split", "sequence", "stream")]
    none += [number("engine.none", key, 1.0) for key in ("launch", "compute", "memory", "attention", "expert")]
    fallback = [
        number("engine.other", "launch", 0.8, 0.4), number("engine.other", "step", 0.5 * MS, 0.7), number("engine.other", "layer", 0.0),
        number("engine.other", "split", 0.0), number("engine.eager", "layer", 200 * US, 0.7),
        number("engine.waiting", "step", 1.0 * MS, 0.7), number("engine.other", "weight_only", 0.95, 0.15),
        number("engine.other", "sequence", 5 * US, 1.0), number("engine.other", "stream", 5 * US, 1.0),
        number("engine.other", "compute", 0.9), number("engine.other", "memory", 0.95, 0.15),
        number("engine.other", "attention", 1.0), number("engine.other", "expert", 0.9, 0.2),
        number("engine.other", "request", 15 * MS), number("engine.other", "together", 0.1), number("engine.other", "company", 0.5, 0.8),
        number("engine.other", "budget", 8192.0), number("engine.other", "mixed", 1.0), number("engine.other", "reserve", 0.5),
        number("engine.other", "limit", 1024.0), number("engine.other", "pipeline", 0.8), number("engine.other", "hbm", 0.95, 0.02),
    ]  # fmt: skip
    served = [
        number("engine.vllm", "step", 0.5 * MS, 0.7), number("engine.vllm", "compute", 0.9, 0.15),
        number("engine.vllm", "memory", 0.95, 0.15), number("engine.vllm", "request", 15 * MS, 0.7),
        number("engine.vllm", "together", 0.1, 0.5),
        number("engine.sglang", "step", 1.5 * MS, 0.7), number("engine.sglang", "request", 15 * MS, 0.7),
        number("engine.sglang", "together", 0.6, 0.5), number("engine.sglang", "mixed", 0.0),
        number("engine.trtllm", "step", 1.0 * MS, 0.7), number("engine.trtllm", "compute", 0.9, 0.15),
        number("engine.trtllm", "memory", 0.95, 0.15),
        number("engine.trtllm", "request", 15 * MS, 0.7), number("engine.trtllm", "together", 0.1, 0.5),
        number("engine.trtllm", "reserve", 1.0),
    ]  # fmt: skip
    local = [
        number("engine.llamacpp", "launch", 1.0), number("engine.llamacpp", "step", 0.3 * MS),
        number("engine.llamacpp", "layer", 30 * US, 0.7), number("engine.llamacpp", "budget", 512.0),
        number("engine.llamacpp", "compute", 0.6, 0.5), number("engine.llamacpp", "attention", 0.5, 0.7),
        number("engine.llamacpp", "memory", 0.9), number("engine.llamacpp", "request", 0.0),
        number("engine.llamacpp", "pipeline", 0.6, 0.5), number("engine.llamacpp", "split", 100 * US, 0.7),
        number("engine.llamacpp", "weight_only", 1.0, 0.15), number("engine.llamacpp.card", "memory", 0.95, 0.2),
        number("engine.llamacpp.datacenter", "memory", 0.9, 0.2),
    ]  # fmt: skip
    platforms = [number("platform.other", "compute", 1.0), number("platform.other", "memory", 1.0)]
    platforms += [number("platform.card", "memory", 1.0, 0.2)]
    platforms += [number("platform.amd", "compute", 0.8, 0.1), number("platform.amd", "memory", 0.85, 0.1)]
    return (*none, *fallback, *served, *local, *platforms)


def table_at(base: Efficiencies, engine_numbers: Sequence[EngineNumber], values: Sequence[float]) -> Efficiencies:
    """The efficiencies with these numbers in place of what they had."""
    sections = {name: dict(section) for name, section in base.sections.items() if not name.startswith(("engine.", "platform."))}
    for entry, value in zip(engine_numbers, values, strict=True):
        fact = known(value, f"{entry.section}.{entry.key}", entry.unit, "fitted", entry.meaning)
        sections.setdefault(entry.section, {})[entry.key] = fact
    return Efficiencies(sections)


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

"""Engine numbers fitted to serving rows: priors as regularisation, a robust loss, standard errors clustered by source.

A row's residual is ln(predicted / measured) over the expected scatter of its quantity. No number is keyed by source, model or row.
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
from headway.evidence.serving.machines import bare_machines, engines_of, rows, under
from headway.evidence.serving.predict import load_of, placed
from headway.evidence.serving.quantities import MeasuredLoad, Quantities, quantities
from headway.performance.efficiency import Efficiencies
from headway.performance.server import Server

MS, US = 1e-3, 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineNumber:
    """An engine number with a log-normal prior: one standard deviation is a factor exp(spread); fixed if `spread` is 0."""

    section: str
    key: str
    prior: float
    spread: float
    unit: str
    meaning: str
    most: float

    def at(self, z: float) -> float:
        """Value at `z` standard deviations from the prior."""
        return min(self.prior * math.exp(self.spread * z), self.most)


MEANINGS = {
    "launch_factor": ("", "factor on kernels' fixed costs: below 1 where it fuses what was measured apart, or launches ahead"),
    "step_overhead_s": ("s", "the engine's own work in each step, exposed"),
    "layer_overhead_s": ("s", "and in each layer: launches that no graph hides, kernels that are not fused"),
    "split_overhead_s": ("s", "and in each layer for each chip that it is split over, where the host joins the parts"),
    "sequence_overhead_s": ("s", "and for each sequence of a rank: sampling, bookkeeping"),
    "streaming_overhead_s": ("s", "and where answers are streamed: de-tokenising, sending"),
    "compute_factor": ("", "share of peak FLOP/s that its kernels reach, over the best measured"),
    "memory_factor": ("", "share of HBM bandwidth that its kernels reach, over the best measured"),
    "weight_only_factor": ("", "both shares again, in dense matmuls of weights that are widened first"),
    "attention_factor": ("", "both shares again, in attention"),
    "expert_factor": ("", "both shares again, in routed experts"),
    "request_overhead_s": ("s", "work on a request before and after the model's: HTTP, tokenising, scheduling"),
    "synchronised_share": (
        "",
        "share of requests whose prompts come all at once: those of a run's start, or all where prompts go before decodes",
    ),
    "concurrent_prompts": ("", "other prompts that come with one even so"),
    "step_budget_tokens": ("token", "prompt tokens that a step of one rank takes at most"),
    "chunked_prefill": ("", "1 where prompt chunks ride along with decodes, 0 where prompts go in steps of their own"),
    "reserved_output_share": ("", "part of an answer whose cache is set aside when it is admitted"),
    "max_sequences": ("", "sequences of one rank at most"),
    "pipeline_overlap_share": ("", "share of a prompt's chunks that overlap in pipeline stages"),
    "usable_hbm_factor": ("", "memory for weights and cache over the datasheet's capacity in GB"),
}


OVERHEADS = ("step_overhead_s", "layer_overhead_s", "split_overhead_s", "sequence_overhead_s", "streaming_overhead_s")
FACTORS = ("launch_factor", "compute_factor", "memory_factor", "attention_factor", "expert_factor")
SHARES = ("synchronised_share", "pipeline_overlap_share", "chunked_prefill", "reserved_output_share")


def number(section: str, key: str, prior: float, spread: float = 0.0) -> EngineNumber:
    """Engine number with unit, meaning and limit of its key."""
    unit, meaning = MEANINGS[key]
    streams = key == "memory_factor" and section.startswith("engine.")  # at most that of the measured kernels
    most = 1.0 if key in SHARES or streams else math.inf
    return EngineNumber(section=section, key=key, prior=prior, spread=spread, unit=unit, meaning=meaning, most=most)


def numbers() -> tuple[EngineNumber, ...]:
    """All numbers of engines and platforms, free or fixed."""
    none = [number("engine.none", key, 0.0) for key in OVERHEADS] + [number("engine.none", key, 1.0) for key in FACTORS]
    fallback = [
        number("engine.other", "launch_factor", 0.8, 0.4), number("engine.other", "step_overhead_s", 0.5 * MS, 0.7),
        number("engine.other", "layer_overhead_s", 0.0), number("engine.other", "split_overhead_s", 0.0),
        number("engine.eager", "layer_overhead_s", 200 * US, 0.7), number("engine.waiting", "step_overhead_s", 1.0 * MS, 0.7),
        number("engine.other", "weight_only_factor", 0.95, 0.15),
        number("engine.other", "sequence_overhead_s", 5 * US, 1.0), number("engine.other", "streaming_overhead_s", 5 * US, 1.0),
        number("engine.other", "compute_factor", 0.9), number("engine.other", "memory_factor", 0.95, 0.15),
        number("engine.other", "attention_factor", 1.0), number("engine.other", "expert_factor", 0.9, 0.2),
        number("engine.other", "request_overhead_s", 15 * MS), number("engine.other", "synchronised_share", 0.1),
        number("engine.other", "concurrent_prompts", 0.5, 0.8),
        number("engine.other", "step_budget_tokens", 8192.0), number("engine.other", "chunked_prefill", 1.0),
        number("engine.other", "reserved_output_share", 0.5), number("engine.other", "max_sequences", 1024.0),
        number("engine.other", "pipeline_overlap_share", 0.8), number("engine.other", "usable_hbm_factor", 0.95, 0.02),
    ]  # fmt: skip
    served = [
        number("engine.vllm", "step_overhead_s", 0.5 * MS, 0.7), number("engine.vllm", "compute_factor", 0.9, 0.15),
        number("engine.vllm", "memory_factor", 0.95, 0.15), number("engine.vllm", "request_overhead_s", 15 * MS, 0.7),
        number("engine.vllm", "synchronised_share", 0.1, 0.5),
        number("engine.sglang", "step_overhead_s", 1.5 * MS, 0.7), number("engine.sglang", "request_overhead_s", 15 * MS, 0.7),
        number("engine.sglang", "synchronised_share", 0.6, 0.5), number("engine.sglang", "chunked_prefill", 0.0),
        number("engine.trtllm", "step_overhead_s", 1.0 * MS, 0.7), number("engine.trtllm", "compute_factor", 0.9, 0.15),
        number("engine.trtllm", "memory_factor", 0.95, 0.15), number("engine.trtllm", "request_overhead_s", 15 * MS, 0.7),
        number("engine.trtllm", "synchronised_share", 0.1, 0.5), number("engine.trtllm", "reserved_output_share", 1.0),
    ]  # fmt: skip
    local = [
        number("engine.llamacpp", "launch_factor", 1.0), number("engine.llamacpp", "step_overhead_s", 0.3 * MS),
        number("engine.llamacpp", "layer_overhead_s", 30 * US, 0.7), number("engine.llamacpp", "step_budget_tokens", 512.0),
        number("engine.llamacpp", "compute_factor", 0.6, 0.5), number("engine.llamacpp", "attention_factor", 0.5, 0.7),
        number("engine.llamacpp", "memory_factor", 0.9), number("engine.llamacpp", "request_overhead_s", 0.0),
        number("engine.llamacpp", "pipeline_overlap_share", 0.6, 0.5), number("engine.llamacpp", "split_overhead_s", 100 * US, 0.7),
        number("engine.llamacpp", "weight_only_factor", 1.0, 0.15), number("engine.llamacpp.card", "memory_factor", 0.95, 0.2),
        number("engine.llamacpp.datacenter", "memory_factor", 0.9, 0.2),
    ]  # fmt: skip
    platforms = [number("platform.other", "compute_factor", 1.0), number("platform.other", "memory_factor", 1.0)]
    platforms += [number("platform.card", "memory_factor", 1.0, 0.2)]
    platforms += [number("platform.amd", "compute_factor", 0.8, 0.1), number("platform.amd", "memory_factor", 0.85, 0.1)]
    return (*none, *fallback, *served, *local, *platforms)


def table_at(base: Efficiencies, engine_numbers: Sequence[EngineNumber], values: Sequence[float]) -> Efficiencies:
    """Efficiencies whose engine and platform numbers are replaced by these values."""
    sections = {name: dict(section) for name, section in base.sections.items() if not name.startswith(("engine.", "platform."))}
    for entry, value in zip(engine_numbers, values, strict=True):
        fact = known(value, f"{entry.section}.{entry.key}", entry.unit, "fitted", entry.meaning)
        sections.setdefault(entry.section, {})[entry.key] = fact
    return Efficiencies(sections)


SCATTER = {"decode": 0.1, "prefill": 0.2, "rate": 0.2, "tpot": 0.12, "ttft": 0.4}  # residual scatter of ln(predicted / measured)
SHARE = 40  # rows at which the total weight of a source's quantity is capped
TRUST = {"B": 0.7}  # a row with one condition unknown has half the weight (0.7 squared)
STEP = 1e-3  # step of the numerical derivatives, in standard deviations of the prior
ROUNDS = 12
MEASURED = {"ttft": "ttft_s", "tpot": "tpot_s", "per_chip": "tok_per_s_chip"}
FITTED_QUANTITIES = {  # kind of row -> (quantity, key of its scatter)
    "decode": (("tpot", "decode"),), "decode_e2e": (("per_chip", "decode"),), "prefill": (("per_chip", "prefill"),),
    "static": (("per_chip", "rate"),), "offline": (("per_chip", "rate"),),
    "serving": (("tpot", "tpot"), ("ttft", "ttft")), "serving_unloaded": (("tpot", "tpot"), ("ttft", "ttft")),
    "disagg": (("tpot", "tpot"), ("ttft", "ttft")),
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineGroup:
    """Measurements of one quantity in the rows of one kind."""

    kind: str
    quantity: str
    rows: Any  # indices of rows with a measurement, within the kind
    measured: Any
    weight: Any
    sources: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRows:
    """Rows of one kind, with their machines and loads."""

    name: str
    place: Any
    machines: Server
    load: MeasuredLoad
    groups: tuple[EngineGroup, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineProblem:
    """Rows to fit, compiled once with kernels alone; engine numbers are applied later."""

    base: Efficiencies
    setups: tuple[Setup, ...]
    kinds: tuple[TaskRows, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFit:
    """Fitted numbers in standard deviations `z` of their priors, with standard errors."""

    free: tuple[EngineNumber, ...]
    z: Any
    error: Any  # standard error of z

    def values(self, engine_numbers: Sequence[EngineNumber]) -> list[float]:
        """Values of all numbers, free and fixed."""
        at = {(number.section, number.key): z for number, z in zip(self.free, self.z, strict=True)}
        return [number.at(at.get((number.section, number.key), 0.0)) for number in engine_numbers]


def problem(tasks: Sequence[Task], base: Efficiencies) -> EngineProblem:
    """Problem of the rows of reliability A and B, grouped by kind."""
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
            kinds.append(TaskRows(name=name, place=place[at], machines=rows(bare, place[at]), load=load_of(kind_tasks), groups=groups))
    return EngineProblem(base=base, setups=tuple(setups), kinds=tuple(kinds))


def measured(task: Task, quantity: str) -> float:
    """Measured value of a quantity in a row; NaN if it has none."""
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
    """Predicted quantities of each kind, with the engine numbers of `table`."""
    engines = engines_of(fit_problem.setups, table)
    return [quantities(kind.name, under(kind.machines, rows(engines, kind.place)), kind.load, False) for kind in fit_problem.kinds]


def residuals(fit_problem: EngineProblem, table: Efficiencies) -> Any:
    """Residual ln(predicted / measured) of each measurement, over its scatter."""
    blocks = []
    for kind, estimates in zip(fit_problem.kinds, predictions(fit_problem, table), strict=True):
        for group in kind.groups:
            blocks.append(np.log(getattr(estimates, group.quantity)[group.rows] / group.measured) * group.weight)
    return np.concatenate(blocks)


def softened(scaled: Any) -> Any:
    """Residuals under a robust loss: the square of a large residual grows linearly, so an outlier cannot dominate."""
    return np.sign(scaled) * np.sqrt(2 * (np.sqrt(1 + scaled * scaled) - 1))


def fit(fit_problem: EngineProblem, engine_numbers: Sequence[EngineNumber], start: EngineFit | None = None) -> EngineFit:
    """Levenberg-Marquardt fit of softened residuals and priors, started at the priors or at `start`; without rows, the priors."""
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
    """Covariance of the fitted parameters, robust to correlated errors within a source (sandwich estimator clustered by source).

    `slopes` and `now` hold the measurements, in the order of `sources`, followed by the priors.
    """
    inverse, count = np.linalg.inv(slopes.T @ slopes), len(sources)
    pulls = [inverse @ (slopes[:count][sources == source].T @ now[:count][sources == source]) for source in np.unique(sources)]
    return inverse + sum(np.outer(pull, pull) for pull in pulls)


def _slopes(at: Any, z: Any, now: Any) -> Any:
    perturbations = np.eye(len(z)) * STEP
    return np.stack([(at(z + step) - now) / STEP for step in perturbations], axis=1)


def as_fitted(engine_fit: EngineFit, engine_numbers: Sequence[EngineNumber], rows: int, what: str) -> tuple[FittedNumbers, ...]:
    """Numbers as lines of data/efficiency.toml; fixed numbers have no error."""
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

"""Engine numbers fitted to serving rows: priors as regularisation, a robust loss, standard errors clustered by source.

A row's residual is ln(predicted / measured) over the expected scatter of its quantity. No number is keyed by source, model or row.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np

from headway.evidence.fit.result import FittedNumbers, PriorNumber, fitted_lines, overlaid, values_at
from headway.evidence.fit.statistics import cluster_sizes, covariance_by_source, subdued
from headway.evidence.rows.tasks import ALONE, Setup, Task
from headway.evidence.serving.machines import Engines, MeasuredLoad, Quantities, bare_machines, engines_of, quantities, rows, under
from headway.evidence.serving.predict import load_of, placed, prefill_places
from headway.performance.achieved import Efficiencies
from headway.performance.request import Server

MS, US = 1e-3, 1e-6

MEANINGS = {
    "launch_factor": ("", "factor on kernels' fixed costs: below 1 where it fuses what was measured apart, or launches ahead"),
    "prompt_launch_s": ("s", "the host's time for each kernel of a step with prompts, which no captured graph replays"),
    "prompt_routed_s": ("s", "and for each layer of routed experts in such a step: their choice, sorting, grouped kernels"),
    "prompt_latent_s": ("s", "and for each layer of latent attention: latents expanded to keys and values of heads, prefixes in parts"),
    "captured_tokens": ("token", "tokens of a step with prompts up to which captured graphs replay its kernels"),
    "step_overhead_s": ("s", "the engine's own work in each step, exposed"),
    "layer_overhead_s": ("s", "and in each layer: launches that no graph hides, kernels that are not fused"),
    "split_overhead_s": ("s", "and in each layer for each chip that it is split over, where the host joins the parts"),
    "sequence_overhead_s": ("s", "and for each sequence of a rank: sampling, bookkeeping"),
    "streaming_overhead_s": ("s", "and where answers are streamed: de-tokenising, sending"),
    "compute_factor": ("", "share of peak FLOP/s that its kernels reach, over the best measured"),
    "memory_factor": ("", "share of HBM bandwidth that its kernels reach, over the best measured"),
    "weight_only_factor": ("", "both shares again, in dense matmuls of weights that are widened first"),
    "unpacking_flop": ("flop", "arithmetic to unpack a weight of K-blocks, where no matrix units leave it to that"),
    "attention_factor": ("", "both shares again, in attention"),
    "expert_factor": ("", "both shares again, in routed experts"),
    "request_overhead_s": ("s", "work on a request before and after the model's: HTTP, tokenising, scheduling"),
    "concurrent_prompts": ("", "other prompts that come with one where answers have one length: those that ended in its step"),
    "step_budget_tokens": ("token", "prompt tokens that a step of one rank takes at most"),
    "chunked_prefill": ("", "1 where prompt chunks ride along with decodes, 0 where prompts go in steps of their own"),
    "reserved_output_share": ("", "part of an answer whose cache is set aside when it is admitted"),
    "max_sequences": ("", "sequences of one rank at most"),
    "pipeline_overlap_share": ("", "share of a prompt's chunks that overlap in pipeline stages"),
    "yearly_growth": ("", "growth a year back in time of launches and of an engine's own work, in the logarithm"),
    "first_round_share": ("", "share of a run's requests whose prompts come all at once at its start: benchmarks send some ten a user"),
    "start_share": ("", "share of requests that come at once where prompts have workers of their own: those of a run's start"),
    "mma_share": ("", "share of the peak of chips with matrix instructions of several warps that it reaches without them"),
    "power_exponent": ("", "of power per FLOP over A100's: how the clocks of cards follow it, and those under llama.cpp"),
    "buffer_bytes": ("byte", "memory that collectives over scale-up links hold on a chip"),
    "graph_bytes": ("byte", "memory of a CUDA graph for each layer"),
}


OVERHEADS = ("step_overhead_s", "layer_overhead_s", "split_overhead_s", "sequence_overhead_s", "streaming_overhead_s", "prompt_launch_s",
             "prompt_routed_s", "prompt_latent_s")  # fmt: skip
FACTORS = ("launch_factor", "compute_factor", "memory_factor", "attention_factor", "expert_factor")
SHARES = ("first_round_share", "start_share", "pipeline_overlap_share", "chunked_prefill", "reserved_output_share")


# Section -> key -> prior of a number, and its spread in ln where it is fitted; in the order of the lines of data/efficiency.toml.
PRIORS: tuple[tuple[str, dict[str, tuple[float, ...]]], ...] = (
    ("engine.other", {
        "launch_factor": (0.8, 0.4), "step_overhead_s": (0.5 * MS, 0.7), "layer_overhead_s": (0.0,), "split_overhead_s": (0.0,),
    }),
    ("engine.early", {"prompt_launch_s": (20 * US, 0.7)}),
    ("engine.waiting", {"step_overhead_s": (1.0 * MS, 0.7)}),
    ("engine.other", {
        "weight_only_factor": (0.95, 0.15), "yearly_growth": (0.2, 0.7), "sequence_overhead_s": (5 * US, 1.0),
        "streaming_overhead_s": (5 * US, 1.0), "compute_factor": (0.9,), "memory_factor": (0.95, 0.15), "attention_factor": (1.0,),
        "expert_factor": (0.9, 0.2), "request_overhead_s": (15 * MS,), "prompt_launch_s": (20 * US, 0.7),
        "concurrent_prompts": (2.0, 0.8), "prompt_routed_s": (0.3 * MS, 0.7), "prompt_latent_s": (0.3 * MS, 0.7),
        "captured_tokens": (0.0,), "start_share": (0.1, 0.7),
        "first_round_share": (0.1, 0.2), "step_budget_tokens": (8192.0,), "chunked_prefill": (1.0,), "reserved_output_share": (0.5,),
        "max_sequences": (1024.0,), "pipeline_overlap_share": (0.8,), "buffer_bytes": (2.252e9,), "graph_bytes": (0.3e6,),
    }),
    ("engine.vllm", {
        "step_overhead_s": (0.5 * MS, 0.7), "compute_factor": (0.9, 0.15), "memory_factor": (0.95, 0.15),
        "request_overhead_s": (15 * MS, 0.4), "concurrent_prompts": (2.0, 0.8),
        "captured_tokens": (512.0,),  # the largest of its default capture sizes
    }),
    ("engine.sglang", {
        "step_overhead_s": (1.5 * MS, 0.7), "request_overhead_s": (15 * MS, 0.4),
        "chunked_prefill": (0.0,), "buffer_bytes": (2.421e9,),
    }),
    ("engine.trtllm", {
        "step_overhead_s": (1.0 * MS, 0.7), "compute_factor": (0.9, 0.15), "memory_factor": (0.95, 0.15),
        "request_overhead_s": (15 * MS, 0.4), "concurrent_prompts": (2.0, 0.8), "reserved_output_share": (1.0,),
    }),
    ("engine.llamacpp", {
        "launch_factor": (1.0,), "prompt_launch_s": (0.0,), "prompt_routed_s": (0.0,), "prompt_latent_s": (0.0,),
        "step_overhead_s": (0.3 * MS,),
        "layer_overhead_s": (30 * US, 0.7), "step_budget_tokens": (512.0,), "compute_factor": (0.6, 0.5), "attention_factor": (0.5, 0.7),
        "memory_factor": (0.9,), "request_overhead_s": (0.0,), "pipeline_overlap_share": (0.6, 0.5), "split_overhead_s": (100 * US, 0.7),
    }),
    ("engine.other", {"mma_share": (1.0,)}),
    ("engine.llamacpp", {"mma_share": (0.62, 0.2), "weight_only_factor": (1.0, 0.15), "unpacking_flop": (25.0, 0.5)}),
    ("engine.llamacpp.card", {"memory_factor": (0.95, 0.2)}),
    ("engine.native", {"launch_factor": (1.0,), "yearly_growth": (0.0,)}),
    ("engine.llamacpp.datacenter", {"memory_factor": (0.9, 0.2)}),
    ("platform.other", {"compute_factor": (1.0,), "memory_factor": (1.0,), "power_exponent": (0.4, 0.5)}),
    ("platform.card", {"memory_factor": (1.0, 0.2)}),
    ("platform.host", {"compute_factor": (1.0, 0.3), "memory_factor": (1.0, 0.2)}),
    ("platform.amd", {"compute_factor": (0.8, 0.1), "memory_factor": (0.85, 0.1)}),
)  # fmt: skip


def number(section: str, key: str, prior: float, spread: float = 0.0) -> PriorNumber:
    """Engine number with unit, meaning and limit of its key."""
    unit, meaning = MEANINGS[key]
    streams = key == "memory_factor" and section.startswith("engine.")  # at most that of the measured kernels
    most = 1.0 if key in SHARES or streams else math.inf
    return PriorNumber(section=section, key=key, prior=prior, spread=spread, unit=unit, meaning=meaning, most=most)


def numbers() -> tuple[PriorNumber, ...]:
    """All numbers of engines and platforms, free or fixed."""
    none = [number("engine.none", key, 0.0) for key in OVERHEADS] + [number("engine.none", key, 1.0) for key in FACTORS]
    return (*none, *(number(section, key, *prior) for section, priors in PRIORS for key, prior in priors.items()))


def table_at(base: Efficiencies, engine_numbers: Sequence[PriorNumber], values: Sequence[float]) -> Efficiencies:
    """Efficiencies whose engine and platform numbers are replaced by these values, without what those before them left."""
    replaced = ("engine.", "platform.", "remainder.")
    other_sections = {name: section for name, section in base.sections.items() if not name.startswith(replaced)}
    return overlaid(other_sections, engine_numbers, values)


SCATTER = {"decode": 0.1, "prefill": 0.2, "rate": 0.2, "tpot": 0.12, "ttft": 0.4}  # residual scatter of ln(predicted / measured)
SHARE = 10  # rows at which the total weight of a cluster's quantity is capped
TRUST = {"B": 0.7}  # a row with one condition unknown has half the weight (0.7 squared)
STEP = 1e-3  # step of the numerical derivatives, in standard deviations of the prior
ROUNDS = 12
ENOUGH = 1e-5  # gain of a round, as a share of the loss, at which a fit ends
FARTHEST = 1.5  # most that a number moves in one round, in standard deviations of its prior
SETTLED = 20
PARTS = (1.0, 0.5, 0.25)  # of a step of a fold
TINY = 1e-4
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
    share: Any  # what a row counts: of its cluster's share, and for what it leaves unknown
    sources: Any
    tasks: Any  # index of each measurement's task among those given


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRows:
    """Rows of one kind, with their machines and loads."""

    name: str
    place: Any
    machines: Server
    pool_place: Any  # of prefill workers
    pools: Server | None  # prefill workers of disaggregated rows
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

    free: tuple[PriorNumber, ...]
    z: Any
    error: Any  # standard error of z
    raw: Any = None  # residuals at z, before softening
    slopes: Any = None  # of those, by number

    def values(self, engine_numbers: Sequence[PriorNumber]) -> list[float]:
        """Values of all numbers, free and fixed."""
        return list(values_at(engine_numbers, dict(zip((number.place for number in self.free), self.z, strict=True))).values())


def problem(tasks: Sequence[Task], base: Efficiencies) -> EngineProblem:
    """Problem of the rows of reliability A and B, grouped by kind."""
    tasks = [at_rest(task) for task in tasks]
    order = [index for index, task in enumerate(tasks) if task.row.reliability != "C" and is_fitted(task)]
    scored = [tasks[index] for index in order]
    if not scored:
        return EngineProblem(base=base, setups=(), kinds=())
    (place, setups), pool_place = placed(scored), prefill_places(scored)
    bare, kinds = bare_machines(setups, base), []
    for name in FITTED_QUANTITIES:
        at = np.array([index for index, task in enumerate(scored) if task.kind == name], dtype=int)
        if len(at):
            kind_tasks = [scored[index] for index in at]
            places = np.array(order)[at]
            groups = tuple(
                group for quantity, scatter in FITTED_QUANTITIES[name] for group in _group(name, quantity, scatter, kind_tasks, places)
            )
            pools = rows(bare, pool_place[at]) if name == "disagg" else None
            kinds.append(
                TaskRows(
                    name=name, place=place[at], machines=rows(bare, place[at]), pool_place=pool_place[at], pools=pools,
                    load=load_of(kind_tasks), groups=groups,
                )
            )  # fmt: skip
    return EngineProblem(base=base, setups=tuple(setups), kinds=tuple(kinds))


def at_rest(task: Task) -> Task:
    """A row that its source calls near unloaded is fitted to as a request alone, though it is predicted at its rate.

    They are the only times of a request alone on some engines, and the capacity that a rate needs is a root inside a root.
    """
    if task.rate is None or task.concurrency is not None or task.row.roofline != ALONE:
        return task
    return replace(task, kind="serving_unloaded", batch=1.0, concurrency=float(task.setup.replicas), rate=None)


def is_fitted(task: Task) -> bool:
    """Whether a row is fitted to: one of users, without drafts. Others are predicted alone."""
    return (task.kind != "serving" or task.concurrency is not None) and task.setup.drafts is None


def cluster(task: Task) -> str:
    """Model, chip, engine and source of a row: rows alike in all four err together."""
    return f"{task.setup.model.name}|{task.setup.system.chip.name}|{task.setup.engine}|{task.row.source}"


def measured(task: Task, quantity: str) -> float:
    """Measured value of a quantity in a row; NaN if it has none."""
    value = getattr(task.row, MEASURED[quantity])
    return np.nan if value is None or value <= 0 else float(value)


def _group(kind: str, quantity: str, scatter: str, tasks: Sequence[Task], places: np.ndarray) -> list[EngineGroup]:
    values = np.array([measured(task, quantity) for task in tasks])
    rows = np.flatnonzero(np.isfinite(values))
    if not len(rows):
        return []
    measured_rows = [tasks[int(index)].row for index in rows]
    count = cluster_sizes(np.array([cluster(tasks[int(index)]) for index in rows]))
    trust = np.array([TRUST.get(row.reliability, 1.0) for row in measured_rows])
    share = np.minimum(1.0, np.sqrt(SHARE / count)) * trust
    return [
        EngineGroup(
            kind=kind,
            quantity=quantity,
            rows=rows,
            measured=values[rows],
            weight=share / SCATTER[scatter],
            share=share,
            sources=np.array([row.source for row in measured_rows]),
            tasks=places[rows],
        )
    ]


def predictions(fit_problem: EngineProblem, engines: Engines) -> list[Quantities]:
    """Predicted quantities of each kind, with these engine numbers of all setups."""
    return [_predicted(kind, engines, slice(None)) for kind in fit_problem.kinds]


def _predicted(kind: TaskRows, engines: Engines, at: np.ndarray | slice) -> Quantities:
    """Predicted quantities of the rows `at` of a kind, with these engine numbers of all setups."""
    machines = kind.machines if isinstance(at, slice) else rows(kind.machines, at)
    load = kind.load if isinstance(at, slice) else rows(kind.load, at)
    pools = None
    if kind.pools is not None:
        pools = under(kind.pools if isinstance(at, slice) else rows(kind.pools, at), rows(engines, kind.pool_place[at]))
    return quantities(kind.name, under(machines, rows(engines, kind.place[at])), load, False, pools)


def residuals(fit_problem: EngineProblem, table: Efficiencies) -> Any:
    """Residual ln(predicted / measured) of each measurement, over its scatter."""
    weights = np.concatenate([group.weight for kind in fit_problem.kinds for group in kind.groups])
    return predicted_with(fit_problem, engines_of(fit_problem.setups, table)) * weights


def predicted_with(fit_problem: EngineProblem, engines: Engines) -> Any:
    """The logarithm ln(predicted / measured) of each measurement, with these engine numbers of all setups."""
    blocks = []
    for kind, estimates in zip(fit_problem.kinds, predictions(fit_problem, engines), strict=True):
        blocks += [np.log(getattr(estimates, group.quantity)[group.rows] / group.measured) for group in kind.groups]
    return np.concatenate(blocks or [np.zeros(0)])


def _changed(fit_problem: EngineProblem, before: np.ndarray, engines: Engines, setups: np.ndarray) -> Any:
    """Residuals `before` with those of the rows of `setups` (a mask) computed again."""
    after, start = before.copy(), 0
    for kind in fit_problem.kinds:
        at = np.flatnonzero(setups[kind.place] | setups[kind.pool_place])
        estimates = _predicted(kind, engines, at) if len(at) else None
        for group in kind.groups:
            if estimates is not None:
                among = np.isin(group.rows, at)
                value = getattr(estimates, group.quantity)[np.searchsorted(at, group.rows[among])]
                after[start : start + len(group.rows)][among] = np.log(value / group.measured[among]) * group.weight[among]
            start += len(group.rows)
    return after


def _leaves(record: Any) -> Iterator[Any]:
    """Arrays of a record of arrays."""
    if is_dataclass(record):
        for field in fields(record):
            yield from _leaves(getattr(record, field.name))
    else:
        yield record


def measured_tasks(fit_problem: EngineProblem) -> Any:
    """Index of each residual's task among those given."""
    groups = [group.tasks for kind in fit_problem.kinds for group in kind.groups]
    return np.concatenate(groups) if groups else np.zeros(0, dtype=int)


def fit(fit_problem: EngineProblem, engine_numbers: Sequence[PriorNumber], start: EngineFit | None = None) -> EngineFit:
    """Levenberg-Marquardt fit of subdued residuals and priors, started at the priors or at `start`; without rows, the priors."""
    free = tuple(number for number in engine_numbers if number.spread)
    if not any(kind.groups for kind in fit_problem.kinds):
        return EngineFit(free=free, z=np.zeros(len(free)), error=np.ones(len(free)))
    at = _Point(fit_problem, tuple(engine_numbers), free)
    z = np.zeros(len(free)) if start is None else start.z
    raw, share, damping = at.residuals(z), shares(fit_problem), 1e-2
    slopes = at.slopes(z, raw)
    for _ in range(ROUNDS):
        now, gain = _loss(raw, z, share), 0.0
        move = _step(raw, slopes, z, share, damping)
        trial = at.residuals(z + move)
        if _loss(trial, z + move, share) < now:
            gain = 1 - _loss(trial, z + move, share) / now
            z, raw, damping = z + move, trial, damping / 5
            slopes = at.slopes(z, raw)
            if gain < ENOUGH:
                break
        else:
            damping *= 8
    now, soft = _softened_slopes(raw, slopes, z, share)
    sources = np.concatenate([group.sources for kind in fit_problem.kinds for group in kind.groups])
    return EngineFit(free=free, z=z, error=np.sqrt(np.diag(covariance_by_source(soft, now, sources))), raw=raw, slopes=slopes)


def fit_without(
    fit_problem: EngineProblem, engine_numbers: Sequence[PriorNumber], full: EngineFit, keep: np.ndarray, fresh: bool = True
) -> EngineFit:
    """Fit to the measurements `keep` alone (a mask), from the fit to all with its slopes, then (`fresh`) with slopes of its own place.

    Undamped steps can circle a kink of the laws for ever, so of each the part is taken that lowers the loss most.
    """
    if not keep.any():
        return EngineFit(free=full.free, z=np.zeros(len(full.free)), error=np.ones(len(full.free)))
    at, z, raw, slopes = _Point(fit_problem, tuple(engine_numbers), full.free), full.z, full.raw, full.slopes
    share = shares(fit_problem)[keep]
    for again in (False, False, True)[: 2 + fresh]:
        slopes = at.slopes(z, raw) if again else slopes
        move = _settled(raw[keep], slopes[keep], z, share) - z
        trials = [(z, raw), *((place, at.residuals(place)) for place in (z + part * move for part in PARTS))]
        z, raw = min(trials, key=lambda trial: _loss(trial[1][keep], trial[0], share))
    return EngineFit(free=full.free, z=z, error=full.error, raw=raw, slopes=slopes)


def at_numbers(fit_problem: EngineProblem, engine_numbers: Sequence[PriorNumber], table: Efficiencies) -> EngineFit:
    """The numbers of a table as a fit to all rows, with its residuals and slopes: where folds start."""
    free = tuple(number for number in engine_numbers if number.spread)
    z = np.array([math.log(float(table.find(number.key, number.section)) / number.prior) / number.spread for number in free])
    at = _Point(fit_problem, tuple(engine_numbers), free)
    raw = at.residuals(z)
    return EngineFit(free=free, z=z, error=np.ones(len(z)), raw=raw, slopes=at.slopes(z, raw))


def shares(fit_problem: EngineProblem) -> Any:
    """What each measurement counts."""
    return np.concatenate([group.share for kind in fit_problem.kinds for group in kind.groups])


def _settled(raw: np.ndarray, slopes: np.ndarray, z: np.ndarray, share: np.ndarray) -> Any:
    """Place of the least loss where residuals are linear in the numbers."""
    at = z
    for _ in range(SETTLED):
        move = _step(raw + slopes @ (at - z), slopes, at, share, 0.0)
        at = at + move
        if np.abs(move).max() < STEP:
            break
    return at


def _loss(raw: np.ndarray, z: np.ndarray, share: np.ndarray) -> float:
    soft = subdued(raw / share) * share
    return float(soft @ soft + z @ z)


def _softened_slopes(raw: np.ndarray, slopes: np.ndarray, z: np.ndarray, share: np.ndarray) -> tuple[Any, Any]:
    """Subdued residuals and priors, and their slopes; a row counts by its share after it is subdued."""
    scaled = raw / share
    soft, far = subdued(scaled), np.abs(scaled) > TINY
    gain = np.where(far, scaled / (1 + scaled * scaled) / np.where(far, soft, 1.0), 1.0)
    return np.concatenate([soft * share, z]), np.concatenate([slopes * gain[:, None], np.eye(len(z))])


def _step(raw: np.ndarray, slopes: np.ndarray, z: np.ndarray, share: np.ndarray, damping: float) -> Any:
    now, soft = _softened_slopes(raw, slopes, z, share)
    normal = soft.T @ soft
    return np.clip(np.linalg.solve(normal + damping * np.diag(np.diag(normal)), -soft.T @ now), -FARTHEST, FARTHEST)


@dataclass(frozen=True, slots=True)
class _Point:
    """Residuals of a problem, and their slopes, as functions of the free numbers."""

    problem: EngineProblem
    numbers: tuple[PriorNumber, ...]
    free: tuple[PriorNumber, ...]

    def table(self, z: np.ndarray) -> Efficiencies:
        values = EngineFit(free=self.free, z=z, error=z).values(self.numbers)
        return table_at(self.problem.base, self.numbers, values)

    def residuals(self, z: np.ndarray) -> Any:
        return residuals(self.problem, self.table(z))

    def slopes(self, z: np.ndarray, raw: np.ndarray) -> Any:
        """Finite differences; of each number only the rows whose setups it enters are computed again."""
        before = list(_leaves(engines_of(self.problem.setups, self.table(z))))
        columns = []
        for step in np.eye(len(z)) * STEP:
            engines = engines_of(self.problem.setups, self.table(z + step))
            affected = np.any([old != new for old, new in zip(before, _leaves(engines), strict=True)], axis=0)
            columns.append((_changed(self.problem, raw, engines, affected) - raw) / STEP)
        return np.stack(columns, axis=1)


def as_fitted(engine_fit: EngineFit, engine_numbers: Sequence[PriorNumber], rows: int, what: str) -> tuple[FittedNumbers, ...]:
    """Numbers as lines of data/efficiency.toml; fixed numbers have no error."""
    values = dict(zip((number.place for number in engine_numbers), engine_fit.values(engine_numbers), strict=True))
    errors = {number.place: number.spread * float(error) for number, error in zip(engine_fit.free, engine_fit.error, strict=True)}
    return fitted_lines(engine_numbers, values, errors, rows, what, "serving")

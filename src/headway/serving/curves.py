"""The lecture's figures of one layout, from a row of a serve or plan table: against batch, against context, by stage, and by operator.

At peak rates (the floor) a step takes the largest of its compute, memory and network times. The knee is the batch from which compute is
largest. If the KV cache outgrows compute there is no knee; the marked batch is then where another line first equals the weights.
Against context, at one batch, the KV cache grows, all else stays, and the memory ends it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from headway.core.errors import BadValue
from headway.core.quantity import default
from headway.core.schema import defaults
from headway.core.units import Token
from headway.hardware.chip import price_quote
from headway.hardware.system import System
from headway.laws.economics.cost import usd_per_mtok_out
from headway.laws.queueing.drafts import loop_tpot, paying_users
from headway.laws.step import parts
from headway.laws.step.sparse import index_compute_s
from headway.laws.step.step import step_floor_s
from headway.models.model import Model
from headway.models.precision import Precision
from headway.models.work import work_of
from headway.performance.assumptions import EFFICIENCIES, LATENCIES, Assumptions
from headway.performance.compile import StepModel, compile_layout
from headway.performance.estimate import NO_WORK, Deployment, step_parts
from headway.performance.formats import resolve
from headway.performance.layout import Layout
from headway.performance.request import Server, loop_of
from headway.serving.serve import checked_load, deployment, serve

POINTS = 240
MOST_BATCH = 1e7
FINE = 1000  # batches evaluated at once where one is sought
NEAR = 1e-7  # of a batch: no finer search
BEYOND = 2.5  # largest batch drawn, in multiples of the knee
FAR = 8.0  # a knee beyond this multiple of the turn is not drawn, so that the turn stays visible
PEAK = "the floor: peak rates, no fixed costs"
LINES = {"compute": "compute_s", "weights": "weights_s", "KV cache": "kv_s", "network": "network_s", "moved experts": "transfer_s"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Curves:
    """Times by batch (s), costs by batch (USD/Mtok, None without a price), and the marked batches, None if absent."""

    batch: Any
    times: dict[str, Any]  # compute, weights, KV cache, network, floor (the largest), expected
    costs: dict[str, Any] | None
    latency_floor: float
    cost_floor: float | None
    knee: float | None  # batch from which compute is the largest part
    turn: tuple[float, str] | None  # batch at which another line first equals the weights, and that line
    capacity: float | None  # largest drawn batch that fits in memory; None if all fit


@dataclass(frozen=True, slots=True)
class PeakStep:
    """A layout's decode step at peak rates, compiled once: any batches are then one evaluation of the laws."""

    case: Deployment
    compiled: StepModel

    def times(self, batches: Any) -> dict[str, Any]:
        """Seconds of each line and of the floor, as `serve` has them at these batches."""
        batch, context = np.asarray(batches, dtype=float).reshape(1, -1, 1), self.case.load.context
        parts = step_parts(self.compiled, batch, context)
        times = {name: parts[key] for name, key in LINES.items() if parts[key] is not None}
        times["floor"] = step_floor_s(self.compiled.step, batch, batch * context, NO_WORK, NO_WORK)
        return {name: np.broadcast_to(seconds, batch.shape).ravel() for name, seconds in times.items()}


def curves(model: Model, system: System, layout: Layout, context: Token, precision: Precision, assumptions: Assumptions) -> Curves:
    """The curves of one layout at one context, over batches from 1 to beyond the knee."""
    at_peak = deployment(model, system, layout, checked_load(context=context), precision, defaults(Assumptions, perfect(assumptions), PEAK))
    at_peak = at_peak.at(at_peak.layout, at_peak.load)
    peak = PeakStep(at_peak, at_peak.compiled())
    lines = [name for name in peak.times([1.0]) if name not in ("weights", "floor")]
    wide = np.geomspace(1.0, MOST_BATCH, FINE)
    at_wide = peak.times(wide)
    turn = _first(peak, lambda times: np.max([times[name] for name in lines], axis=0) >= times["weights"] * (1 - 1e-9), wide, at_wide)
    knee = _first(peak, lambda times: times["compute"] >= times["floor"] * (1 - 1e-9), wide, at_wide)
    end_batch = knee if knee and (turn is None or knee <= FAR * turn) else turn
    batches = np.linspace(1.0, max(BEYOND * end_batch if end_batch else 4096.0, 16.0), POINTS)
    expected = serve(model, system, layout, batch=batches, context=context, precision=precision, assumptions=assumptions)
    batch = np.asarray(expected["batch"], dtype=float).ravel()  # without those that two half-batches cannot share
    times = peak.times(batch) | {"expected": expected["step_s"].ravel()}
    fits, most = expected["fits"].ravel(), np.array([MOST_BATCH])
    floor_costs = _costs(system, layout, most, {"floor": peak.times(most)["floor"]}, assumptions)
    at_turn = peak.times([turn]) if turn else {}
    return Curves(
        batch=batch,
        times=times,
        costs=_costs(system, layout, batch, times, assumptions),
        latency_floor=float(times["floor"].min()),
        cost_floor=float(floor_costs["floor"][0]) if floor_costs else None,
        knee=knee,
        turn=(turn, max(lines, key=lambda name: at_turn[name].item())) if turn else None,
        capacity=None if fits.all() else float(batch[fits].max()) if fits.any() else 0.0,
    )


def perfect(assumptions: Assumptions) -> dict[str, Any]:
    """The user's assumptions at peak rates and without fixed costs."""
    user_values = {field.name: getattr(assumptions, field.name) for field in fields(assumptions)}
    ones = {name: default(1.0, name, "", PEAK) for name in EFFICIENCIES}
    return user_values | ones | {name: default(0.0, name, "s", PEAK) for name in LATENCIES} | {"overlap": "full"}


def _first(peak: PeakStep, holds: Callable[[Mapping[str, Any]], Any], batches: Any, times: Mapping[str, Any]) -> float | None:
    """The smallest batch at which a condition on the times holds, among these and between them; or None."""
    indices = np.flatnonzero(holds(times))
    if not len(indices):
        return None
    low, high = float(batches[max(indices[0] - 1, 0)]), float(batches[indices[0]])
    if high - low <= NEAR * high:
        return high
    finer = np.geomspace(low, high, FINE)
    return _first(peak, holds, finer, peak.times(finer))


def _costs(system: System, layout: Layout, batch: np.ndarray, times: dict[str, Any], assumptions: Assumptions) -> dict[str, Any] | None:
    price = price_quote(system.chip, assumptions.price_metric)
    if price is None:
        return None
    return {name: usd_per_mtok_out(price.value, system.chips, step, batch, layout.replicas) for name, step in times.items()}


def of_row(model: Model, system: System, row: Mapping[str, Any], assumptions: Assumptions) -> Curves:
    """The curves of the layout, formats and context of one row of a serve or plan table."""
    if row.get("context") is None:
        raise BadValue("--plot", row.get("kind"), "a row with a context")
    layout = _layout(row)
    return curves(model, system, layout, row["context"], row_precision(model, system, row), assumptions)


def _layout(row: Mapping[str, Any]) -> Layout:
    """The layout of a row."""
    return Layout(**{name: row[name] for name in ("tp", "ep", "dp", "pp", "cp", "replicas")})


def row_precision(model: Model, system: System, row: Mapping[str, Any]) -> Precision:
    """The precision that gives a row its format labels, as stored if that gives them."""
    work = work_of(model)

    def labels(precision: Precision) -> tuple[str, str, str]:
        return resolve(work, system.chip, precision).labels

    weights = "" if labels(Precision())[0] == row["weights"] else row["weights"]
    compute = "" if labels(Precision(weights=weights))[2] == row["compute"] else row["compute"]
    return Precision(weights=weights, kv=row["kv"], compute=compute)


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftCurves:
    """TPOT by users of a replica (s), with drafts and without, and the users from which on drafts save nothing; infinite if never."""

    users: Any
    drafting: Any
    plain: Any
    end: float


DRAWN_USERS = 65


def draft_curves(model: Model, system: System, row: Mapping[str, Any], assumptions: Assumptions) -> DraftCurves:
    """The curves of the layout, formats and requests of one row, up to the users whose KV cache fits."""
    if row.get("prompt") is None or not row.get("draft_tokens"):
        raise BadValue("--picture", "drafts", "requests (--prompt, --output) and --draft beside it")
    settings = replace(assumptions, draft_tokens=row["draft_tokens"]) if assumptions.draft else assumptions
    load = checked_load(prompt=row["prompt"], output=row["output"])
    case = deployment(model, system, _layout(row), load, row_precision(model, system, row), settings)
    bare = replace(case, drafts=None)
    (step, loop), (plain, plain_loop) = ((server.step, loop_of(server, case.requests(), 1)) for server in _servers(case, bare))
    seats = max(1.0, math.floor(float(loop.seats)))
    users = np.geomspace(1.0, seats, DRAWN_USERS)
    end = float(paying_users(step, plain, loop))
    return DraftCurves(users=users, drafting=loop_tpot(step, loop, users), plain=loop_tpot(plain, plain_loop, users), end=end)


def _servers(*cases: Deployment) -> list[Server]:
    return [case.server(case.compiled()) for case in cases]


STAGES = (1, 2, 4, 8, 16, 32)
POINT = "a point of the picture"


def by_stages(model: Model, system: System, row: Mapping[str, Any], assumptions: Assumptions) -> list[dict[str, Any]]:
    """Rows by `pp`, up to the model's layers, with `kv_busy_bytes_chip` (a batch for every stage) beside the columns of `serve`."""
    precision, layers = row_precision(model, system, row), sum(int(block.count) for block in model.blocks)
    context = default(float(row["context"]), "context", "token", POINT)
    rows = []
    for count in (count for count in STAGES if count <= layers):
        layout = Layout(**{name: row[name] for name in ("tp", "ep", "dp", "cp")}, pp=count, replicas=1)
        chips = default(int(layout.tp * layout.cp * layout.dp * count), "chips", "", POINT)
        machine = replace(system, chips=chips, fixed_count=False)
        single, busy = (
            serve(model, machine, layout, batch=default(float(batch), "batch", "", POINT), context=context, precision=precision,
                  assumptions=assumptions).row(0)
            for batch in (row["batch"], row["batch"] * count)
        )  # fmt: skip
        rows.append({"pp": count, **{key: float(single[key]) for key in ("weights_bytes_chip", "kv_bytes_chip", "hbm_bytes_chip")},
                     "kv_busy_bytes_chip": float(busy["kv_bytes_chip"])})  # fmt: skip
    return rows


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOperator:
    """One class of operators: FLOP per byte of memory traffic, and the FLOP/s that the roofline allows."""

    name: str
    intensity: float
    flops: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRoofline:
    """Operators of a step under the roofline of its chip; peaks (flop/s) by the parts that run at them."""

    operators: tuple[StepOperator, ...]
    peaks: dict[str, float]
    bandwidth: float


def roofline_of_row(model: Model, system: System, row: Mapping[str, Any], assumptions: Assumptions) -> StepRoofline:
    """The operators of one row of a serve table."""
    load = checked_load(batch=float(row["batch"]), context=float(row["context"]))
    case = deployment(model, system, _layout(row), load, row_precision(model, system, row), assumptions)
    formats = case.formats
    step = compile_layout(case.work, case.system, case.layout, case.assumptions, formats).step
    work = parts.place(step, float(row["batch"]), float(row["batch"]) * float(row["context"]), 0.0, 0.0)
    bandwidth = float(system.chip.need("hbm_bw"))
    keys = sum(float(term.read) for term in step.indexes) * float(work.sequences * work.context)
    dense_peak, expert_peak = float(formats.peaks[-1][1]), float(formats.peaks[-1][2])
    classes = [
        ("dense matmuls", parts.dense_compute_s(step.dense_compute, work.tokens, step.head_compute, work.sampled), step.dense_weights,
         dense_peak),
        ("routed experts", parts.expert_compute_s(step.experts, work.group_tokens),
         parts.expert_weights_s(step.experts, work.group_tokens), expert_peak),
        ("attention over the KV cache", parts.decode_score_s(step.spans, work),
         parts.kv_traffic_s(step.spans, step.state, step.kv_write, work) - keys, float(formats.wide_peak)),
        ("index scans", index_compute_s(step.indexes, work), keys, float(formats.index_peak)),
    ]  # fmt: skip
    operators = []
    for name, compute_s, memory_s, peak in classes:
        compute, memory = float(compute_s), float(memory_s)
        if compute > 0:  # what it computes over what it moves, and over the longer of both times
            intensity = compute * peak / (memory * bandwidth)
            operators.append(StepOperator(name=name, intensity=float(intensity), flops=float(compute * peak / max(compute, memory))))
    run = formats.runs[-1]
    peaks = {run[1]: dense_peak} | ({run[2]: expert_peak} if step.experts else {}) | {"bf16": float(formats.wide_peak)}
    return StepRoofline(operators=tuple(operators), peaks=dict(sorted(peaks.items(), key=lambda item: -item[1])), bandwidth=bandwidth)


CONTEXT_POINTS = 160
SHORTEST = 128.0  # tokens at which a curve begins
PAST_WINDOW = 1.15  # longest context drawn, over the longest of the model
PAST_MEMORY = 1.6  # and over where the memory ends, if it does before
UNKNOWN_END = 131072.0  # for a model that does not say its longest context
FARTHEST = 8.0  # where the search for the memory's end stops, over the longest context of the model


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextCurves:
    """Times by context (s), costs by context (USD/Mtok, None without a price), and the marked contexts, None if absent."""

    context: Any
    times: dict[str, Any]  # compute, weights, KV cache, network, floor (the largest), expected
    costs: dict[str, Any] | None
    batch: float
    turn: float | None  # context from which reading the KV cache takes longer than the weights
    window: float | None  # longest context of the model
    capacity: float | None  # longest drawn context that fits in memory; None if all fit


def context_curves(model: Model, system: System, row: Mapping[str, Any], assumptions: Assumptions) -> ContextCurves:
    """The curves of the layout, formats and batch of one row of a serve or plan table."""
    layout, precision = _layout(row), row_precision(model, system, row)
    peak = defaults(Assumptions, perfect(assumptions), PEAK)
    batch = default(float(row["batch"]), "batch", "", "the row's batch")
    window = None if model.max_context is None else float(model.max_context)
    ends = np.geomspace(SHORTEST, FARTHEST * (window or UNKNOWN_END), CONTEXT_POINTS)
    fits = serve(model, system, layout, batch=batch, context=ends, precision=precision, assumptions=assumptions)["fits"].ravel()
    last_that_fits = float(ends[fits].max()) if fits.any() else SHORTEST
    last = min(PAST_WINDOW * (window or UNKNOWN_END), PAST_MEMORY * last_that_fits)
    context = np.linspace(SHORTEST, last, CONTEXT_POINTS)
    floor, expected = (
        serve(model, system, layout, batch=batch, context=context, precision=precision, assumptions=rates) for rates in (peak, assumptions)
    )
    times = {name: floor[key].ravel() for name, key in LINES.items() if floor.columns[key] is not None}
    times |= {"floor": floor["step_floor_s"].ravel(), "expected": expected["step_s"].ravel()}
    fits = expected["fits"].ravel()
    longer = np.flatnonzero(times["KV cache"] >= times["weights"])
    return ContextCurves(
        context=context, times=times, costs=_costs(system, layout, np.full(CONTEXT_POINTS, float(row["batch"])), times, assumptions),
        batch=float(row["batch"]), turn=float(context[longer[0]]) if len(longer) else None, window=window,
        capacity=None if fits.all() else float(context[fits].max()) if fits.any() else 0.0,
    )  # fmt: skip

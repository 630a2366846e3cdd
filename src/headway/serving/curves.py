"""The lecture's two curves for one layout: latency and cost against batch, at peak rates and at expected rates.

At peak rates (the floor) a step takes the largest of its compute, memory and network times. The knee is the batch from which compute is
largest. If the KV cache outgrows compute there is no knee; the marked batch is then where another line first equals the weights.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from headway.core.errors import BadValue
from headway.core.quantity import default
from headway.core.schema import defaults
from headway.hardware.chip import price_quote
from headway.laws.economics.cost import usd_per_mtok_out
from headway.models.precision import Precision
from headway.models.work import work_of
from headway.performance.assumptions import EFFICIENCIES, LATENCIES, Assumptions
from headway.performance.compile import StepModel, compile_layout
from headway.performance.estimate import Deployment, step_at, step_parts
from headway.performance.formats import resolve
from headway.performance.layout import Layout, stacked
from headway.serving.serve import serve
from headway.serving.serve_request import case_of, checked_load, query

POINTS = 240
MOST_BATCH = 1e7
BEYOND = 2.5  # largest batch drawn, in multiples of the knee
FAR = 8.0  # a knee beyond this multiple of the turn is not drawn, so that the turn stays visible
LINES = {"compute": "compute_s", "weights": "weights_s", "KV cache": "kv_s", "network": "network_s"}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclasses.dataclass(frozen=True, slots=True)
class PeakStep:
    """A layout's decode step at peak rates, compiled once: any batches are then one evaluation of the laws."""

    case: Deployment
    compiled: StepModel

    def times(self, batches: Any) -> dict[str, Any]:
        """Seconds of each line and of the floor, as `serve` has them at these batches."""
        batch = np.asarray(batches, dtype=float).reshape(1, -1, 1)
        parts = step_parts(self.compiled, batch, self.case.load.context)
        parts["floor"] = step_at(self.case, self.compiled, batch, self.case.load.context).floor
        return {name: np.broadcast_to(parts[key], batch.shape).ravel() for name, key in (LINES | {"floor": "floor"}).items()}


def peak_step(model: Any, system: Any, layout: Layout, context: Any, precision: Precision, assumptions: Assumptions) -> PeakStep:
    """The step of one layout and context at peak rates."""
    peak = defaults(Assumptions, perfect(assumptions), "the floor: peak rates, no fixed costs")
    resolved = query(model, system, layout, checked_load(context=context), precision, peak)
    case = case_of(resolved, stacked(list(resolved.layouts), 3), resolved.load)
    return PeakStep(case, compile_layout(case.work, case.system, case.layout, case.assumptions, case.formats))


def curves(model: Any, system: Any, layout: Layout, context: Any, precision: Precision, assumptions: Assumptions) -> Curves:
    """The curves of one layout at one context, over batches from 1 to beyond the knee."""
    peak = peak_step(model, system, layout, context, precision, assumptions)
    turn, knee = _first(peak, _outlasts_weights), _first(peak, _compute_bound)
    end_batch = knee if knee and (turn is None or knee <= FAR * turn) else turn
    batches = np.linspace(1.0, max(BEYOND * end_batch if end_batch else 4096.0, 16.0), POINTS)
    expected = serve(model, system, layout, batch=batches, context=context, precision=precision, assumptions=assumptions)
    batch = np.asarray(expected["batch"], dtype=float).ravel()  # without those that two half-batches cannot share
    times = peak.times(batch) | {"expected": expected["step_s"].ravel()}
    fits = expected["fits"].ravel()
    return Curves(
        batch=batch,
        times=times,
        costs=costs_of(system, layout, batch, times, assumptions),
        latency_floor=float(times["floor"].min()),
        cost_floor=_cost_floor(peak, system, layout, assumptions),
        knee=knee,
        turn=(turn, _longest(peak.times([turn]))) if turn else None,
        capacity=None if fits.all() else float(batch[fits].max()) if fits.any() else 0.0,
    )


def perfect(assumptions: Assumptions) -> dict[str, Any]:
    """The user's assumptions at peak rates and without fixed costs."""
    user_values = {field.name: getattr(assumptions, field.name) for field in dataclasses.fields(assumptions)}
    why = "the floor: peak rates, no fixed costs"
    ones = {name: default(1.0, name, "", why) for name in EFFICIENCIES}
    return user_values | ones | {name: default(0.0, name, "s", why) for name in LATENCIES} | {"overlap": "full"}


def _compute_bound(times: Mapping[str, Any]) -> Any:
    return times["compute"] >= times["floor"] * (1 - 1e-9)


def _outlasts_weights(times: Mapping[str, Any]) -> Any:
    return np.max([times[name] for name in LINES if name != "weights"], axis=0) >= times["weights"] * (1 - 1e-9)


def _longest(times: Mapping[str, Any]) -> str:
    """The longest line other than weights, at one batch."""
    return max((name for name in LINES if name != "weights"), key=lambda name: times[name].item())


def _first(peak: PeakStep, holds: Callable[[Mapping[str, Any]], Any]) -> float | None:
    """The smallest batch at which a condition on the times holds, or None."""
    low, high = 1.0, MOST_BATCH
    for _ in range(4):
        batches = np.geomspace(low, high, 200)
        indices = np.flatnonzero(holds(peak.times(batches)))
        if not len(indices):
            return None
        if indices[0] == 0:
            return float(low)
        low, high = float(batches[indices[0] - 1]), float(batches[indices[0]])
    return high


def costs_of(system: Any, layout: Layout, batch: Any, times: dict[str, Any], assumptions: Assumptions) -> dict[str, Any] | None:
    price = price_quote(system.chip, assumptions.price_metric)
    if price is None:
        return None
    return {name: usd_per_mtok_out(price.value, system.chips, step, batch, layout.replicas) for name, step in times.items()}


def _cost_floor(peak: PeakStep, system: Any, layout: Layout, assumptions: Assumptions) -> float | None:
    """The cost floor in USD/Mtok: the cost at the largest batch considered."""
    batch = np.array([MOST_BATCH])
    costs = costs_of(system, layout, batch, {"floor": peak.times(batch)["floor"]}, assumptions)
    return float(costs["floor"][0]) if costs else None


def of_row(model: Any, system: Any, row: Mapping[str, Any], assumptions: Assumptions) -> Curves:
    """The curves of the layout, formats and context of one row of a serve or plan table."""
    if row.get("context") is None:
        raise BadValue("--plot", row.get("kind"), "a row with a context")
    layout = Layout(**{name: row[name] for name in ("tp", "ep", "dp", "pp", "cp", "replicas")})
    return curves(model, system, layout, row["context"], row_precision(model, system, row), assumptions)


def row_precision(model: Any, system: Any, row: Mapping[str, Any]) -> Precision:
    """The precision that gives a row its format labels, as stored if that gives them."""
    work = work_of(model)

    def labels(precision: Precision) -> tuple[str, str, str]:
        return resolve(work, system.chip, precision).labels

    weights = "" if labels(Precision())[0] == row["weights"] else row["weights"]
    compute = "" if labels(Precision(weights=weights))[2] == row["compute"] else row["compute"]
    return Precision(weights=weights, kv=row["kv"], compute=compute)

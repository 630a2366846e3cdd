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
from headway.core.table import Table
from headway.hardware.chip import price_quote
from headway.laws.economics.cost import usd_per_mtok_out
from headway.models.precision import Precision
from headway.performance.assumptions import EFFICIENCIES, LATENCIES, Assumptions
from headway.performance.compile import work_of
from headway.performance.formats import resolve
from headway.performance.layout import Layout
from headway.serving.serve import serve

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


def curves(model: Any, system: Any, layout: Layout, context: Any, precision: Precision, assumptions: Assumptions) -> Curves:
    """The curves of one layout at one context, over batches from 1 to beyond the knee."""
    peak = defaults(Assumptions, perfect(assumptions), "the floor: peak rates, no fixed costs")

    def at(batches: Any, case_assumptions: Assumptions) -> Table:
        return serve(model, system, layout, batch=batches, context=context, precision=precision, assumptions=case_assumptions)

    turn = _first(lambda batches: _outlasts_weights(at(batches, peak)))
    knee = _first(lambda batches: _compute_bound(at(batches, peak)))
    end_batch = knee if knee and (turn is None or knee <= FAR * turn) else turn
    batch = np.linspace(1.0, max(BEYOND * end_batch if end_batch else 4096.0, 16.0), POINTS)
    floor, expected = at(batch, peak), at(batch, assumptions)
    times = {name: floor[key].ravel() for name, key in LINES.items()}
    times |= {"floor": floor["step_floor_s"].ravel(), "expected": expected["step_s"].ravel()}
    costs = costs_of(system, layout, batch, times, assumptions)
    fits = expected["fits"].ravel()
    return Curves(
        batch=batch,
        times=times,
        costs=costs,
        latency_floor=float(times["floor"].min()),
        cost_floor=_cost_floor(at([MOST_BATCH], peak), system, layout, assumptions),
        knee=knee,
        turn=(turn, _longest(at([turn], peak))) if turn else None,
        capacity=None if fits.all() else float(batch[fits].max()) if fits.any() else 0.0,
    )


def perfect(assumptions: Assumptions) -> dict[str, Any]:
    """The user's assumptions at peak rates and without fixed costs."""
    user_values = {field.name: getattr(assumptions, field.name) for field in dataclasses.fields(assumptions)}
    why = "the floor: peak rates, no fixed costs"
    ones = {name: default(1.0, name, "", why) for name in EFFICIENCIES}
    return user_values | ones | {name: default(0.0, name, "s", why) for name in LATENCIES} | {"overlap": "full"}


def _compute_bound(floor: Table) -> Any:
    return floor["compute_s"].ravel() >= floor["step_floor_s"].ravel() * (1 - 1e-9)


def _outlasts_weights(floor: Table) -> Any:
    other_parts = [floor[key].ravel() for name, key in LINES.items() if name != "weights"]
    return np.max(other_parts, axis=0) >= floor["weights_s"].ravel() * (1 - 1e-9)


def _longest(floor: Table) -> str:
    """The longest line other than weights, at one batch."""
    return max((name for name in LINES if name != "weights"), key=lambda name: floor[LINES[name]].item())


def _first(holds: Callable[[Any], Any]) -> float | None:
    """The smallest batch at which a condition holds, or None."""
    low, high = 1.0, MOST_BATCH
    for _ in range(4):
        batches = np.geomspace(low, high, 200)
        indices = np.flatnonzero(holds(batches))
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


def _cost_floor(most: Table, system: Any, layout: Layout, assumptions: Assumptions) -> float | None:
    """The cost floor in USD/Mtok: the cost at the largest batch considered."""
    costs = costs_of(system, layout, most["batch"].ravel(), {"floor": most["step_floor_s"].ravel()}, assumptions)
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
        return resolve(work.blocks, work.embedding_dtype, system.chip, precision).labels

    weights = "" if labels(Precision())[0] == row["weights"] else row["weights"]
    compute = "" if labels(Precision(weights=weights))[2] == row["compute"] else row["compute"]
    return Precision(weights=weights, kv=row["kv"], compute=compute)

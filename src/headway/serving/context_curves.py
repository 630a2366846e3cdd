"""Time and cost of one decode step against context, at one batch: the KV cache grows with it, all else stays, the memory ends it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from headway.core.quantity import default
from headway.core.schema import defaults
from headway.performance.assumptions import Assumptions
from headway.performance.layout import Layout
from headway.serving import curves
from headway.serving.serve import serve

POINTS = 160
SHORTEST = 128.0  # tokens at which a curve begins
BEYOND = 1.15  # longest context drawn, over the longest of the model
PAST_MEMORY = 1.6  # and over where the memory ends, if it does before
UNKNOWN_END = 131072.0  # for a model that does not say its longest context
FARTHEST = 8.0  # where the search for the memory's end stops, over the longest context of the model


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ContextCurves:
    """Times by context (s), costs by context (USD/Mtok, None without a price), and the marked contexts, None if absent."""

    context: Any
    times: dict[str, Any]  # compute, weights, KV cache, network, floor (the largest), expected
    costs: dict[str, Any] | None
    batch: float
    turn: float | None  # context from which reading the KV cache takes longer than the weights
    window: float | None  # longest context of the model
    capacity: float | None  # longest drawn context that fits in memory; None if all fit


def of_row(model: Any, system: Any, row: Mapping[str, Any], assumptions: Assumptions) -> ContextCurves:
    """The curves of the layout, formats and batch of one row of a serve or plan table."""
    layout = Layout(**{name: row[name] for name in ("tp", "ep", "dp", "pp", "cp", "replicas")})
    precision = curves.row_precision(model, system, row)
    why = "the floor: peak rates, no fixed costs"
    peak = defaults(Assumptions, curves.perfect(assumptions), why)
    batch = default(float(row["batch"]), "batch", "", "the row's batch")

    def at(contexts: Any, case_assumptions: Assumptions) -> Any:
        return serve(model, system, layout, batch=batch, context=contexts, precision=precision, assumptions=case_assumptions)

    window = None if model.max_context is None else float(model.max_context)
    ends = np.geomspace(SHORTEST, FARTHEST * (window or UNKNOWN_END), POINTS)
    fits = at(ends, assumptions)["fits"].ravel()
    last_that_fits = float(ends[fits].max()) if fits.any() else SHORTEST
    last = min(BEYOND * (window or UNKNOWN_END), PAST_MEMORY * last_that_fits)
    context = np.linspace(SHORTEST, last, POINTS)
    floor, expected = at(context, peak), at(context, assumptions)
    times = {name: floor[key].ravel() for name, key in curves.LINES.items()}
    times |= {"floor": floor["step_floor_s"].ravel(), "expected": expected["step_s"].ravel()}
    fits = expected["fits"].ravel()
    longer = np.flatnonzero(times["KV cache"] >= times["weights"])
    return ContextCurves(
        context=context, times=times, costs=curves.costs_of(system, layout, np.full(POINTS, float(row["batch"])), times, assumptions),
        batch=float(row["batch"]), turn=float(context[longer[0]]) if len(longer) else None, window=window,
        capacity=None if fits.all() else float(context[fits].max()) if fits.any() else 0.0,
    )  # fmt: skip

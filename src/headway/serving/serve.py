"""`serve`: latency, throughput, memory and cost of layouts at any batch and context, as one table.

Numbers broadcast, so a grid and a point are one call. Layouts lie along the first axis, the load's numbers along the others.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from headway.core.errors import BadValue, IllegalCombination, UnknownName
from headway.core.quantity import Sourced, user_input
from headway.core.schema import fields
from headway.core.table import Axis, Labels, Table
from headway.core.trace import record
from headway.hardware.system import System
from headway.models.model import Model
from headway.models.precision import Precision
from headway.performance.assumptions import Assumptions
from headway.performance.estimate import Deployment, estimate
from headway.performance.formats import has_peak
from headway.performance.layout import NAMES, UNHALVED, Layout, halves
from headway.performance.workload import Load
from headway.serving.columns import SERVE
from headway.serving.serve_request import ServeRequest, checked_load, grid_deployment, query, replayed

ONE_CHIP, AS_STORED = Layout(), Precision()
BOUNDS = ("compute", "weights", "kv", "network", "overhead", "capacity")
PARTS = ("compute_s", "weights_s", "kv_s", "network_s", "overhead_s")
REASONS = (
    "",
    "needs more chips than the system has",
    "weights alone exceed the usable HBM of the fullest chip",
    "weights and KV cache exceed the usable HBM of the fullest chip",
)
MOST_POINTS = 10_000_000  # limit of one grid, about 4 GB of columns
EXACT_REASONS = 2000  # rows up to which a table says by how much each row does not fit


def serve(
    model: Model | str,
    system: System | str,
    layouts: Layout | Sequence[Layout] = ONE_CHIP,
    *,
    batch: Any = None,
    context: Any = None,
    prompt: Any = None,
    output: Any = None,
    rate: Any = None,
    precision: Precision = AS_STORED,
    assumptions: Assumptions | None = None,
) -> Table:
    """Every contract quantity of a model on a machine, over a grid of layouts, batches and either contexts or prompts and outputs.

    Requests come from `batch` users per replica, each of whom waits for the answer before the next request (a closed loop, 1 user unless
    told), or at random at `rate` requests per second over all replicas (an open loop).
    Arguments are scalars or sequences, in SI and tokens. Returns a Table with axes layout, batch, context (or prompt, output).
    Raises BadValue, IllegalLayout, UnknownName, MissingFact for invalid input; a point that does not fit is a row with fits False.
    """
    return table_of(query(model, system, layouts, checked_load(batch, context, prompt, output, rate), precision, assumptions))


def _axes(query: ServeRequest) -> tuple[Axis, ...]:
    load = query.load
    names = ("batch", "context") if load.prompt is None else ("batch" if load.rate is None else "rate", "prompt", "output")
    numbers = [(name, np.atleast_1d(np.asarray(getattr(load, name), dtype=float))) for name in names]
    return (Axis("layout", tuple(str(layout) for layout in query.layouts)), *(Axis(name, values) for name, values in numbers))


def table_of(query: ServeRequest) -> Table:
    """The table of a resolved request."""
    axes = _axes(query)
    points = math.prod(len(axis.values) for axis in axes)
    if points > MOST_POINTS:
        raise BadValue("grid", f"{points} points", f"at most {MOST_POINTS}: fewer values, or longer steps")
    case = grid_deployment(query, axes)
    picked = filled(query, case, axes)
    recorded_row = functools.lru_cache(maxsize=1)(lambda row: recorded(lambda: _row_deployment(query, axes, row)))  # its columns share it
    table = Table(axes=axes, columns=picked, notes=query.notes, tree=lambda row, key: explain(recorded_row, row, key))
    return _halved(table, case) if query.assumptions.communication == "two-batch" else table


def _halved(table: Table, case: Deployment) -> Table:
    """The rows whose batch can be halved, with a note on those that were dropped; IllegalCombination if none can."""
    rows = np.flatnonzero(np.broadcast_to(halves(case.layout, case.load.batch), table.shape))
    if not len(rows):
        raise IllegalCombination("communication", "two-batch", UNHALVED)
    if len(rows) == len(table):
        return table
    note = f"two-batch: dropped {len(table) - len(rows)} of {len(table)} points, which lack {UNHALVED}"
    return dataclasses.replace(table.take(rows), notes=(*table.notes, note))


def filled(query: ServeRequest, case: Deployment, axes: tuple[Axis, ...], values: dict[str, Any] | None = None) -> dict[str, Any]:
    """Every contract column of a deployment whose numbers lie along `axes`; `values` replaces its estimate."""
    values = dict(values or estimate(case))
    labels = {"kind": "point", "model": query.model.name, "system": query.system.name}
    labels |= dict(zip(("weights", "kv", "compute"), query.formats.labels, strict=True))
    labels |= {name: getattr(case.layout, name) for name in NAMES}
    labels |= {name: _counts(getattr(case.load, name)) for name in ("prompt", "output")}
    labels["batch"] = _counts(case.load.batch) if case.load.rate is None else values["decoding"]
    values |= {name: _counts(values[name]) for name in ("concurrency", "context")}
    labels |= {"bound": _bound(values), "why": _why(values, case, axes)}
    values |= undefined_tpot(values, case.load.output) | unknown_prompts(values, case.system)
    values |= saturated(values)
    return {key: labels.get(key, values.get(key)) for key in SERVE}


def undefined_tpot(values: Mapping[str, Any], output: Any) -> dict[str, Any]:
    """TPOT and its rate as null where an answer has one token: vLLM divides by the tokens after the first."""
    if output is None or not np.any(np.asarray(output, dtype=float) <= 1):
        return {}
    single = np.asarray(output, dtype=float) <= 1
    keys = [key for key in values if (key.startswith("tpot_") or key == "tok_per_s_user") and values[key] is not None]
    return {key: None if single.all() else np.where(single, np.nan, values[key]) for key in keys}


def unknown_prompts(values: Mapping[str, Any], system: System) -> dict[str, Any]:
    """Times of prompts as null on a chip whose peak is not known: arithmetic decides them."""
    if has_peak(system.chip):
        return {}
    return {key: None for key in values if key.startswith(("ttft_", "e2e_", "usd_per_mtok_in"))}


def saturated(values: Mapping[str, Any]) -> dict[str, Any]:
    """Times at the load as null where requests arrive faster than they are served: the queue grows without end."""
    load = values.get("utilisation")
    if load is None or not np.any(np.asarray(load) >= 1):
        return {}
    over = np.asarray(load) >= 1
    keys = [f"{stem}{end}_s" for stem in ("ttft", "tpot") for end in ("", "_lo", "_hi")] + ["e2e_s", "tok_per_s_user"]
    return {key: None if over.all() else np.where(over, np.nan, values[key]) for key in keys if values.get(key) is not None}


def _counts(value: Any) -> Any:
    """Counts as integers if all are whole: 64 sequences, not 64.0."""
    numbers = np.asarray(value, dtype=float) if value is not None else None
    return value if numbers is None or (numbers != np.floor(numbers)).any() else numbers.astype(np.int64)


def _bound(values: dict[str, Any]) -> Labels:
    """The longest part of a step per row; "capacity" if the row does not fit."""
    most, code = np.asarray(values[PARTS[0]], dtype=float), np.int8(0)
    for index, key in enumerate(PARTS[1:], start=1):
        part = np.asarray(values[key], dtype=float)
        code = np.where(part > most, np.int8(index), code)
        most = np.maximum(most, part)
    return Labels(np.where(values["fits"], code, np.int8(len(PARTS))), BOUNDS)


def _why(values: dict[str, Any], case: Deployment, axes: tuple[Axis, ...]) -> Labels:
    """Reason why a row does not fit: the first limit that fails, with amounts in small tables; "" if it fits."""
    weights, usable = values["weights_bytes_chip"], values["hbm_bytes_chip"]
    reason = np.where(
        values["chips_used"] > case.system.chips, 1, np.where(np.asarray(weights) > usable, 2, np.where(values["fits"], 0, 3))
    )
    if int(np.prod([len(axis.values) for axis in axes])) > EXACT_REASONS or not reason.any():
        return Labels(reason.astype(np.int8), REASONS)
    return _exact(reason, values, case)


def _exact(reason: Any, values: dict[str, Any], case: Deployment) -> Labels:
    keys = ("chips_used", "weights_bytes_chip", "kv_bytes_chip", "hbm_bytes_chip", "sequence_limit")
    chips_used, weights, kv, usable, limit, code = np.broadcast_arrays(*(values[key] for key in keys), reason)
    texts: dict[str, int] = {"": 0}
    codes = np.zeros(code.shape, dtype=np.int32)
    for at in np.ndindex(code.shape):
        over = (weights[at] + kv[at]) / 1e9
        text = (
            "",
            f"needs {int(chips_used[at])} chips, the system has {int(case.system.chips)}",
            f"weights need {weights[at] / 1e9:.4g} GB on the fullest chip, {usable[at] / 1e9:.4g} GB are usable",
            f"weights and KV cache need {over:.4g} GB on the fullest chip, {usable[at] / 1e9:.4g} GB are usable; "
            f"at most {int(min(limit[at], 1e12))} sequences per rank fit",
        )[int(code[at])]
        codes[at] = texts.setdefault(text, len(texts))
    return Labels(codes, tuple(texts))


def explain(recorded_row: Callable[[int], dict[str, Any]], row: int, key: str) -> Any:
    """One cell of a table as a tree of laws, computed again for its point with the recorder on."""
    if key not in SERVE:
        raise UnknownName("column", key, SERVE)
    return explained_value(recorded_row(row), key)


def explained_value(values: dict[str, Any], key: str) -> Any:
    """One number of a recorded row."""
    if values.get(key) is None:
        raise BadValue("explain", key, "a numeric column that applies to this row, such as step_s, ttft_s or weights_bytes_chip")
    return values[key]


def recorded(deployed: Callable[[], Deployment]) -> dict[str, Any]:
    """Every number of a deployment, which is made with the recorder on, as trees of laws."""
    with record():
        case = deployed()
        outputs = estimate(case)
    load = case.load
    outputs |= undefined_tpot(outputs, load.output) | unknown_prompts(outputs, case.system)
    degrees = {name: getattr(case.layout, name) for name in NAMES}
    return outputs | degrees | {"batch": load.batch, "prompt": load.prompt, "output": load.output}


def _row_deployment(query: ServeRequest, axes: tuple[Axis, ...], row: int) -> Deployment:
    """One row of a grid as a deployment whose every number has an origin, the work of its model counted again."""
    place = np.unravel_index(row, tuple(len(axis.values) for axis in axes))
    load = {axis.name: _entry(query.load, axis, int(index)) for axis, index in zip(axes[1:], place[1:], strict=True)}
    return replayed(query, query.layouts[int(place[0])], Load(**load))


def _entry(load: Load, axis: Axis, index: int) -> Any:
    value = getattr(load, axis.name)
    return value if isinstance(value, Sourced) else user_input(axis.values[index].item(), axis.name, fields(Load)[axis.name][0].unit)

"""Operators of one decode step on the fullest chip, at peak rates: their arithmetic intensity and what the roofline lets them reach."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headway.laws.step import parts
from headway.performance.assumptions import Assumptions
from headway.performance.compile import compile_layout
from headway.performance.layout import Layout
from headway.serving.curves import row_precision
from headway.serving.serve_request import checked_load, query

NONE = 0.0


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


def roofline_of_row(model: Any, system: Any, row: Mapping[str, Any], assumptions: Assumptions) -> StepRoofline:
    """The operators of one row of a serve table."""
    layout = Layout(**{name: row[name] for name in ("tp", "ep", "dp", "pp", "cp", "replicas")})
    precision = row_precision(model, system, row)
    request = query(model, system, layout, checked_load(batch=float(row["batch"]), context=float(row["context"])), precision, assumptions)
    formats = request.formats
    step = compile_layout(request.work, request.system, request.layouts[0], request.assumptions, formats).step
    work = parts.place(step, float(row["batch"]), float(row["batch"]) * float(row["context"]), NONE, NONE)
    bandwidth = float(system.chip.need("hbm_bw"))
    dense_peak, expert_peak = float(formats.peaks[-1][1]), float(formats.peaks[-1][2])
    classes = [
        ("dense matmuls", parts.dense_compute_s(step.dense_compute, work.tokens, step.head_compute, work.sampled), step.dense_weights,
         dense_peak),
        ("routed experts", parts.expert_compute_s(step.experts, work.group_tokens),
         parts.expert_weights_s(step.experts, work.group_tokens), expert_peak),
        ("attention over the KV cache", parts.decode_score_s(step.spans, work),
         parts.kv_traffic_s(step.spans, step.state, step.kv_write, work), float(formats.wide_peak)),
    ]  # fmt: skip
    operators = [
        _operator(name, float(compute), float(memory), peak, bandwidth) for name, compute, memory, peak in classes if float(compute) > 0
    ]
    run = formats.runs[-1]
    peaks = {run[1]: dense_peak} | ({run[2]: expert_peak} if step.experts else {}) | {"bf16": float(formats.wide_peak)}
    return StepRoofline(operators=tuple(operators), peaks=dict(sorted(peaks.items(), key=lambda item: -item[1])), bandwidth=bandwidth)


def _operator(name: str, compute: float, memory: float, peak: float, bandwidth: float) -> StepOperator:
    """An operator from its times at peak: what it computes over what it moves, and over the longer of both times."""
    intensity = compute * peak / (memory * bandwidth)
    return StepOperator(name=name, intensity=float(intensity), flops=float(compute * peak / max(compute, memory)))

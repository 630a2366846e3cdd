"""The efficiencies that price inversion takes: this project's fitted step model, over the catalogue, in the few numbers of its cost laws.

Each model in fp8 on as few chips as keep its weights in half of their memory; prompts of 4,096 tokens, answers of 1,024. A provider
packs prompts into full steps, so prefill is that of 8,192 tokens at once.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from headway.core.errors import HeadwayError
from headway.hardware.chip import chip
from headway.models.config import model as named
from headway.models.describe import about_model, list_models
from headway.models.precision import Precision
from headway.performance.achieved import efficiencies
from headway.performance.layout import Layout
from headway.performance.request import scheduling
from headway.serving.serve import serve

CHIP, LEAST, MOST = "h200_sxm", 2e9, 1.3e12  # parameters, active and total
PROMPT, OUTPUT, PER_CHIP = 4096, 1024, 16
FULL_STEP = 8192  # prompt tokens that a step takes at most
NODE = 8  # chips that tensor parallelism joins; beyond them pipeline stages
MIDDLE = PROMPT + OUTPUT / 2
STEPS = 40  # of Gauss-Newton
START = (1e-3, 0.6, 0.4)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedCost:
    """One model as the step model serves it."""

    active: float
    total: float
    kv: float  # bytes read per token of context
    chips: int
    prefill_s: float  # of a full step
    step_s: float  # of PER_CHIP sequences per chip


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedCostFit:
    """What the models' times come down to."""

    models: int
    dense_mfu: float
    sparse_exponent: float
    mfu_spread: float
    step_fixed: float
    eff_memory: float
    eff_compute: float
    decode_spread: float


@functools.cache
def served() -> tuple[ServedCost, ...]:
    """Every model of the catalogue that is large enough and that the layout suits."""
    capacity, rows = float(chip(CHIP).need("hbm")), []
    for model in list_models():
        if model.active_params >= LEAST and model.total_params <= MOST:
            chips = 1
            while model.total_params > capacity / 2 * chips:
                chips *= 2
            try:
                rows.append(_served(model.name, float(model.active_params), float(model.total_params), chips))
            except HeadwayError:  # heads that this many chips do not divide
                continue
    return tuple(row for row in rows if row.kv > 0)


def _served(name: str, active: float, total: float, chips: int) -> ServedCost:
    config = named(name)
    about = about_model(config, PROMPT)
    layout = Layout(tp=min(chips, NODE), pp=max(chips // NODE, 1))
    batch, formats = PER_CHIP * chips, Precision(weights="fp8", kv="fp8")
    row = next(iter(serve(config, f"{chips}x{CHIP}", layout, batch=batch, prompt=PROMPT, output=OUTPUT, precision=formats)))
    kv = float(about.kv_read_bytes_per_token) / 2
    full = next(iter(serve(config, f"{chips}x{CHIP}", layout, batch=1, prompt=FULL_STEP, output=OUTPUT, precision=formats)))
    prefill = float(full["ttft_unloaded_s"]) - float(scheduling("other", chip(CHIP), efficiencies()).request_overhead_s)
    return ServedCost(active=active, total=total, kv=kv, chips=chips, prefill_s=prefill, step_s=float(row["step_s"]))


def fitted() -> ServedCostFit:
    """The six numbers, by least squares of logarithms."""
    peak, bandwidth = float(chip(CHIP).need("peak_fp8")), float(chip(CHIP).need("hbm_bw"))
    rows = served()
    active, total, kv, chips, prefill, step = (
        np.array([getattr(row, key) for row in rows], float) for key in ("active", "total", "kv", "chips", "prefill_s", "step_s")
    )
    mfu = np.log(2 * active * FULL_STEP / (prefill * np.minimum(chips, NODE) * peak))
    known = np.column_stack([np.ones(len(rows)), np.log(total / active)])
    level, slope = np.linalg.lstsq(known, mfu, rcond=None)[0]
    batch = PER_CHIP * chips
    read = (total / batch + kv * MIDDLE) / bandwidth
    terms = np.column_stack([chips / batch, read, 2 * active / peak])
    target = np.log(step * chips / batch)
    logs = np.log(np.array([START[0], 1 / START[1], 1 / START[2]]))
    for _ in range(STEPS):
        parts = terms * np.exp(logs)
        sums = parts.sum(1)
        logs = logs + np.linalg.lstsq(parts / sums[:, None], target - np.log(sums), rcond=None)[0]
    fixed, memory, compute = np.exp(logs) ** np.array([1, -1, -1])
    off, decode_residual = (mfu - known @ [level, slope]).std(), target - np.log((terms * np.exp(logs)).sum(1))
    return ServedCostFit(
        models=len(rows), dense_mfu=float(np.exp(level)), sparse_exponent=float(-slope), mfu_spread=float(off),
        step_fixed=float(fixed), eff_memory=float(memory), eff_compute=float(compute), decode_spread=float(decode_residual.std()),
    )  # fmt: skip

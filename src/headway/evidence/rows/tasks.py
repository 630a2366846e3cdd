"""Prediction tasks of measured rows: the quantity each row measures and its load (table in docs/measured_rows.md)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from headway.core.catalog import Catalog, default_catalog
from headway.evidence.rows.defaults import benchmark
from headway.evidence.rows.row import MeasuredRow
from headway.evidence.rows.setup import InferredSetup, Setup, SetupKey, find

RANK_TOKENS = 16384  # prompt tokens with which a rank of a prefill run by itself is full
KINDS = ("decode", "decode_e2e", "prefill", "serving", "serving_unloaded", "offline", "static", "disagg")


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedSplit:
    """Workers of a disaggregated run, with the setup of a prefill worker."""

    prefill: Setup
    prefill_workers: int
    decode_workers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Prediction task of a row: lengths in tokens, `batch` sequences per instance, `concurrency` users over all instances."""

    row: MeasuredRow
    setup: Setup
    kind: str  # one of KINDS
    prompt: float | None
    output: float | None
    context: float | None  # mean KV length during decode
    batch: float | None
    concurrency: float | None
    flags: tuple[str, ...] = ()
    spread: float = 0.0  # standard deviation over mean of the output lengths
    split: StatedSplit | None = None  # workers of a disaggregated row that states them; `setup` is a decode worker's
    rate: float | None = None  # requests that arrive per second; None in a closed loop


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpredictable:
    """A row without a prediction, and the reason."""

    row: MeasuredRow
    why: str


def tasks(rows: Iterable[MeasuredRow], catalog: Catalog | None = None) -> list[Task | Unpredictable]:
    """Prediction task of each row, in the order of the rows."""
    where = catalog or default_catalog()
    return [_task(row, where) for row in rows]


def kind_of(row: MeasuredRow) -> str:
    """Kind of a row: the quantity it measures."""
    if row.mode == "decode_step":
        return "decode_e2e" if row.roofline == "yes_e2e" else "decode"
    if row.mode == "offline_throughput":
        return "static" if row.roofline == "yes_static_batch" and row.concurrency is not None else "offline"
    if row.mode == "serving_concurrency":
        return "serving_unloaded" if row.roofline == "tpot_low_qps" and row.concurrency is None else "serving"
    return row.mode


def _task(row: MeasuredRow, catalog: Catalog) -> Task | Unpredictable:
    kind = kind_of(row)
    why = _unstated(row, kind)
    if why:
        return Unpredictable(row=row, why=why)
    if kind == "disagg" and row.prefill_workers and row.decode_workers:
        return _split_task(row, catalog)
    resolution = find(_key(row, kind), catalog)
    if isinstance(resolution, str):
        return Unpredictable(row=row, why=resolution)
    return _task_under_load(row, kind, resolution)


def _key(row: MeasuredRow, kind: str) -> SetupKey:
    run = benchmark(row.source)
    return SetupKey(
        model=row.model, hardware=row.hardware, chips=row.chips, tp=row.tp, ep=row.ep, pp=row.pp, dp=row.dp, engine=row.engine,
        engine_version=row.engine_version, date=row.month or row.date, weights=row.weights, kv=row.kv,
        load="saturated" if kind == "offline" else "given", split=kind == "disagg", benchmark=run.key if run else "", config=row.config,
    )  # fmt: skip


def _split_task(row: MeasuredRow, catalog: Catalog) -> Task | Unpredictable:
    """Task of a disaggregated row that states both kinds of workers; one worker is one instance of tp x dp chips."""
    pools = [
        replace(_key(row, "disagg"), chips=(tp or 1) * (dp or 1), tp=tp, ep=ep, dp=dp, pp=None, split=False, attention_dp=True)
        for tp, ep, dp in ((row.prefill_tp, row.prefill_ep, row.prefill_dp), (row.decode_tp, row.decode_ep, row.decode_dp))
    ]
    prefill, decode = (find(key, catalog) for key in pools)
    if isinstance(prefill, str):
        return Unpredictable(row=row, why=prefill)
    if isinstance(decode, str):
        return Unpredictable(row=row, why=decode)
    split = StatedSplit(prefill=prefill.setup, prefill_workers=row.prefill_workers or 1, decode_workers=row.decode_workers or 1)
    return replace(_task_under_load(row, "disagg", decode), split=split)


def _unstated(row: MeasuredRow, kind: str) -> str:
    """Missing field without which a row has no prediction, or ""."""
    if kind == "decode" and row.context is not None:
        return ""
    if row.prompt is None:
        return "input length not stated"
    if kind != "decode" and not row.prompt:
        return "a prefill of no tokens"
    if kind == "prefill":
        return ""
    if kind != "decode" and not row.output:
        return "output length not stated"
    if kind in ("serving", "disagg") and row.concurrency is None and (kind == "disagg" or row.request_rate is None):
        return "no load stated: neither users nor a rate nor that it is unloaded"
    return ""


def _task_under_load(row: MeasuredRow, kind: str, resolution: InferredSetup) -> Task:
    flags = list(resolution.flags)
    prompt, output = _mean_lengths(row, kind, flags)
    context = _context(row, kind, prompt, output, flags)
    batch, concurrency = _batch(row, kind, resolution.setup, flags)
    run = benchmark(row.source)
    return Task(
        row=row, setup=resolution.setup, kind=kind, prompt=prompt, output=output, context=context, batch=batch, concurrency=concurrency,
        flags=tuple(flags), spread=run.spread if run else 0.0, rate=row.request_rate,
    )  # fmt: skip


def _mean_lengths(row: MeasuredRow, kind: str, flags: list[str]) -> tuple[float | None, float | None]:
    """Mean lengths of prompts and outputs, in tokens."""
    run = benchmark(row.source)
    if run is not None and kind in ("serving", "disagg") and row.prompt and row.output:
        flags.append(f"{run.how}: {run.mean_length_ratio:g} of them in the mean")
        return run.mean_length_ratio * row.prompt, run.mean_length_ratio * row.output
    return row.prompt, row.output


def _context(row: MeasuredRow, kind: str, prompt: float | None, output: float | None, flags: list[str]) -> float | None:
    """Mean KV length during decode: as stated, else the prompt and half of the output."""
    if kind == "prefill":
        return None
    if row.context is not None and kind in ("decode", "decode_e2e"):
        return max(row.context, 1.0)
    middle = max((prompt or 0.0) + (output or 0.0) / 2, 1.0)
    if kind == "decode":
        flags.append(f"context not stated: {middle:g} tokens, the prompt" + (" and half the output" if output else ""))
    return middle


def _batch(row: MeasuredRow, kind: str, setup: Setup, flags: list[str]) -> tuple[float | None, float | None]:
    """Sequences per instance, where a row fixes them, and users over all instances, where it fixes those."""
    if kind in ("serving", "disagg", "offline"):
        return None, row.concurrency
    if kind == "serving_unloaded":
        return 1.0, float(setup.replicas)
    ranks = int(setup.layout.dp)
    if kind == "prefill" and row.concurrency is None and ranks > 1:
        batch = float(ranks * max(1, int(RANK_TOKENS // (row.prompt or 1))))
        flags.append(f"batch not stated: {batch:g} prompts, which fill the {ranks} ranks")
        return batch, batch * setup.replicas
    if row.concurrency is None:
        flags.append("batch not stated: one sequence")
    total = row.concurrency or 1.0
    return max(1.0, total / setup.replicas), total

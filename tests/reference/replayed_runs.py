"""Reads a run of vLLM that was recorded request by request: a folder of requests.jsonl, timeseries.csv and meta.json.

Requests: `arrival_time` in seconds of the world's clock; `queued_ts`, `scheduled_ts`, `first_token_ts`, `last_token_ts` in seconds of the
engine's. The two clocks are laid one on the other where a request that arrives is queued soonest.

From first principles the step time is the one step law's, in the engine's fitted numbers. Scaled, every step lasts longer by one factor,
such that the mean TPOT is the measured one: what is left then is the scheduler's.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from headway.core.catalog import Catalog, default_catalog
from headway.core.errors import BadFile, BadValue
from headway.core.schema import defaults
from headway.evidence.readers.files import json_records, text_of
from headway.evidence.rows.names import hardware, model_name
from headway.performance.assumptions import Assumptions
from headway.performance.layout import Layout
from headway.serving.serve import checked_load, deployment
from headway.simulation import state as of
from headway.simulation.fleet import Fleet, fleet
from headway.simulation.prefix_tiers import parse_tiers
from headway.simulation.questions import Policy
from headway.simulation.simulate import SimulatedRun, simulate
from headway.simulation.step_time import scaled
from headway.simulation.traffic.requests import Traffic

TIMES = ("arrival_time", "queued_ts", "scheduled_ts", "first_token_ts", "last_token_ts")
LENGTHS = ("input_toks", "output_toks")
CURVES = ("t", "running", "waiting")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the engine was told, and the card it ran on."""

    model: str
    hardware: str
    tp: int
    dp: int
    ep: bool
    max_seqs: int  # of one rank
    token_budget: int
    kv_tokens: int | None  # of one rank; None where it was not recorded
    block: int
    prefix_caching: bool
    hbm_utilization: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRun:
    """A run, its requests by arrival; times in seconds from the first arrival."""

    name: str
    settings: Settings
    arrival: Any
    prompt: Any
    output: Any
    scheduled: Any
    first: Any
    last: Any
    at: Any  # of each sample of the curves
    running: Any
    waiting: Any
    blocks: Any = ()  # ids of the prompts' blocks, one request's after the other's; none where they are not known
    block_start: Any = None
    block_tokens: int = 0


def with_prefixes(run: MeasuredRun, path: str | Path, block_tokens: int) -> MeasuredRun:
    """The run with what its prompts share: lines of `input_length` and `hash_ids`, in the order of arrival, of blocks of so many tokens."""
    rows = [entry.record or {} for entry in json_records(_unpacked(path), path)]
    ids = [row.get("hash_ids") for row in rows]
    if [row.get("input_length") for row in rows] != run.prompt.tolist() or not all(isinstance(blocks, list) for blocks in ids):
        raise BadFile(path, f"wants the {len(run.prompt)} prompts of {run.name}, each with its input_length and hash_ids")
    start = np.concatenate(([0], np.cumsum([len(blocks) for blocks in ids])))  # type: ignore[arg-type]
    all_blocks = np.array([block for blocks in ids for block in blocks], np.int64)  # type: ignore[union-attr]
    return replace(run, blocks=all_blocks, block_start=start, block_tokens=block_tokens)


def _unpacked(path: str | Path) -> str:
    """The text of a file, gzipped or not."""
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            return file.read()
    except gzip.BadGzipFile:
        return text_of(path)
    except (OSError, ValueError, EOFError) as error:
        raise BadFile(path, f"cannot be read ({error})") from None


def read_run(folder: str | Path) -> MeasuredRun:
    """The run in a folder; BadFile for what is missing or no such thing."""
    root = Path(folder)
    meta = _meta(root / "meta.json")
    rows = _requests(root / "requests.jsonl")
    clock = np.min(rows["queued_ts"] - rows["arrival_time"])
    start = rows["arrival_time"].min()
    order = np.argsort(rows["arrival_time"], kind="stable")
    engine = {key: (rows[f"{key}_ts"] - clock - start)[order] for key in ("scheduled", "first_token", "last_token")}
    sampled = _curves(root / "timeseries.csv")
    return MeasuredRun(
        name=root.name, settings=_settings(meta, root), arrival=(rows["arrival_time"] - start)[order],
        prompt=rows["input_toks"][order].astype(np.int64), output=rows["output_toks"][order].astype(np.int64),
        scheduled=engine["scheduled"], first=engine["first_token"], last=engine["last_token"],
        at=sampled["t"] + _started(meta, root) - start, running=sampled["running"], waiting=sampled["waiting"],
    )  # fmt: skip


def _meta(path: Path) -> dict[str, Any]:
    entry = next(iter(json_records(text_of(path), path)))
    if entry.record is None:
        raise BadFile(path, entry.why)
    return dict(entry.record)


def _requests(path: Path) -> dict[str, Any]:
    """Columns of the requests."""
    rows = []
    for entry in json_records(text_of(path), path):
        if entry.record is None:
            raise BadFile(path, f"line {entry.line}: {entry.why}")
        values = [entry.record.get(key) for key in TIMES + LENGTHS]
        if not all(type(value) in (int, float) for value in values):
            raise BadFile(path, f"line {entry.line}: wants numbers for {', '.join(TIMES + LENGTHS)}")
        rows.append(values)
    if not rows:
        raise BadFile(path, "holds no request")
    return dict(zip(TIMES + LENGTHS, np.array(rows, float).T, strict=True))


def _curves(path: Path) -> dict[str, Any]:
    """Requests running and waiting, sampled over time."""
    try:
        rows = [[float(row[key]) for key in CURVES] for row in csv.DictReader(io.StringIO(text_of(path)))]
    except (KeyError, TypeError, ValueError):
        raise BadFile(path, f"wants a table of numbers with columns {', '.join(CURVES)}") from None
    if not rows:
        raise BadFile(path, "holds no sample")
    return dict(zip(CURVES, np.array(rows).T, strict=True))


def _started(meta: dict[str, Any], root: Path) -> float:
    try:
        return datetime.fromisoformat(str(meta["started_at"])).timestamp()
    except (KeyError, ValueError):
        raise BadFile(root / "meta.json", "wants started_at, a date and time") from None


def _settings(meta: dict[str, Any], root: Path) -> Settings:
    """What the engine was told; vLLM's defaults where it was told nothing."""
    engine_args, cache = meta.get("engine_kwargs") or {}, meta.get("kv_cache") or {}
    try:
        return Settings(
            model=str(meta["model"]), hardware=_hardware(meta, root), tp=int(engine_args.get("tensor_parallel_size", 1)),
            dp=int(engine_args.get("data_parallel_size", 1)), ep=bool(engine_args.get("enable_expert_parallel", False)),
            max_seqs=int(engine_args["max_num_seqs"]), token_budget=int(engine_args["max_num_batched_tokens"]),
            kv_tokens=int(cache["num_kv_tokens"]) if cache.get("num_kv_tokens") else None, block=int(cache.get("block_size", 16)),
            prefix_caching=bool(cache.get("enable_prefix_caching", True)), hbm_utilization=cache.get("gpu_memory_utilization"),
        )  # fmt: skip
    except (KeyError, TypeError, ValueError) as error:
        raise BadFile(root / "meta.json", f"wants model, max_num_seqs and max_num_batched_tokens ({error})") from None


def _hardware(meta: dict[str, Any], root: Path) -> str:
    """The card: as the engine saw it, as its own description has it, or as the folder is called."""
    device = (meta.get("hardware") or {}).get("device_name")
    if device:
        return str(device)
    try:
        described = json.loads((root / "config.json").read_text(encoding="utf-8"))
        return str(described["nodes"][0]["instances"][0]["hardware"])
    except (OSError, ValueError, LookupError, TypeError):
        return root.name.partition("_")[0]


UNLIMITED_CACHE = "hbm:1PB"  # a prefix cache in all of the KV cache that there is
ROUNDS, CLOSE = 30, 1e-4  # of the search for a factor: how often, and how near to the measured TPOT


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTimes:
    """What a run shows, measured or simulated."""

    ttft_s: float  # mean, from the arrival
    tpot_s: float
    running: Any  # at the times of the measured samples
    waiting: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """A simulated run beside the measured one."""

    factor: float  # on every step
    simulated: RunTimes
    ttft_error: float  # simulated over measured, less 1
    tpot_error: float
    running_error: float  # mean absolute difference of the curves over the mean of the measured one
    waiting_error: float
    preemptions: int


def fleet_of(run: MeasuredRun, catalog: Catalog | None = None) -> Fleet:
    """The engine of a run, from its settings and the catalogue."""
    settings = run.settings
    machine = hardware(settings.hardware, catalog or default_catalog())
    chips = settings.tp * settings.dp
    layout = Layout(tp=settings.tp, dp=settings.dp, ep=chips if settings.ep else 1)
    assumption_values = {"engine": "vllm"} | ({"hbm_utilization": settings.hbm_utilization} if settings.hbm_utilization else {})
    system = f"{chips}x{machine.chip}" if chips > 1 else machine.chip
    load = checked_load(prompt=run.prompt.mean(), output=run.output.mean())
    request = deployment(model_name(settings.model), system, layout, load, assumptions=defaults(Assumptions, assumption_values))
    tiers = parse_tiers(UNLIMITED_CACHE) if settings.prefix_caching and len(run.blocks) else ()
    return fleet(request, request.layout, policy_of(settings), traffic_of(run), tiers=tiers)


def policy_of(settings: Settings) -> Policy:
    """The run's scheduler; its clocks are the engine's own, so that no work before or after it is added."""
    return Policy(
        policy="chunked", token_budget=settings.token_budget, max_seqs=settings.max_seqs, block=settings.block, request_overhead=0.0,
        kv_tokens=None if settings.kv_tokens is None else settings.kv_tokens * settings.dp,
    )  # fmt: skip


def traffic_of(run: MeasuredRun) -> Traffic:
    """Arrivals and lengths, and what prompts share where that is known."""
    return Traffic.of(run.arrival, run.prompt, run.output, blocks=run.blocks, block_start=run.block_start, block_tokens=run.block_tokens)


def replay(run: MeasuredRun, engine: Fleet, factor: float = 1.0) -> Replay:
    """The run with every step so much longer."""
    if engine.pace is None:
        raise BadValue("run", run.name, f"an engine that its machine holds: {engine.why}")
    pace = engine.pace if factor == 1.0 else scaled(engine.pace, factor)
    simulated_run = simulate(traffic_of(run), pace, engine.scheduler.rules, how="plain", prefix=engine.prefix)
    measured, simulated = measured_stats(run), _simulated_stats(simulated_run, run)
    return Replay(
        factor=factor, simulated=simulated,
        ttft_error=simulated.ttft_s / measured.ttft_s - 1, tpot_error=simulated.tpot_s / measured.tpot_s - 1,
        running_error=apart(simulated.running, measured.running), waiting_error=apart(simulated.waiting, measured.waiting),
        preemptions=simulated_run.total_count(of.PREEMPTED),
    )  # fmt: skip


def fitted_replay(run: MeasuredRun, engine: Fleet) -> Replay:
    """The run with steps scaled to its mean TPOT: the factor is sought by the TPOT alone."""
    result = replay(run, engine)
    for _ in range(ROUNDS):
        if abs(result.tpot_error) < CLOSE:
            break
        result = replay(run, engine, result.factor / (1 + result.tpot_error))
    return result


def apart(simulated: Any, measured: Any) -> float:
    """Mean absolute difference of two curves over the mean of the measured one."""
    return float(np.abs(simulated - measured).mean() / measured.mean()) if measured.mean() > 0 else float(np.abs(simulated).mean())


def measured_stats(run: MeasuredRun) -> RunTimes:
    """What was measured."""
    ttft, tpot = _latencies(run.arrival, run.first, run.last, run.output)
    return RunTimes(ttft_s=ttft, tpot_s=tpot, running=run.running, waiting=run.waiting)


def _simulated_stats(simulated_run: SimulatedRun, run: MeasuredRun) -> RunTimes:
    is_completed = simulated_run.completed
    ttft, tpot = _latencies(
        simulated_run.arrival[is_completed], simulated_run.first[is_completed], simulated_run.finish[is_completed], run.output[is_completed]
    )
    curves = sampled(simulated_run, run.at)
    return RunTimes(ttft_s=ttft, tpot_s=tpot, running=curves[:, 0], waiting=curves[:, 1])


def _latencies(arrival: Any, first: Any, last: Any, output: Any) -> tuple[float, float]:
    """Mean TTFT, and mean TPOT of answers with more than one token."""
    several = output > 1
    return float((first - arrival).mean()), float(((last - first)[several] / (output[several] - 1)).mean())


def sampled(simulated_run: SimulatedRun, at: Any) -> Any:
    """Requests running and waiting at some times, over all replicas; of each the mean of the narrow bin that the time lies in."""
    total = np.zeros((len(at), 2))
    for state in simulated_run.states:
        bins, width = np.asarray(state.log[of.GAPS :]).reshape(of.BINS, of.SERIES), float(state.at[of.BIN_S])
        index = (np.asarray(at) / width).astype(int)
        inside = (np.asarray(at) >= 0) & (index < of.BINS)
        total[inside] += bins[index[inside], :2] / width
    return total

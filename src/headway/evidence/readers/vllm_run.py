"""Reads a run of vLLM that was recorded request by request: a folder of requests.jsonl, timeseries.csv and meta.json.

Requests: `arrival_time` in seconds of the world's clock; `queued_ts`, `scheduled_ts`, `first_token_ts`, `last_token_ts` in seconds of the
engine's. The two clocks are laid one on the other where a request that arrives is queued soonest.
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

from headway.errors import BadFile
from headway.evidence.readers.files import json_records, text_of

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

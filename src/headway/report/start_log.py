"""What an engine would say of its memory at its start, and the flags that this takes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from headway.hardware.chip import Chip
from headway.performance.room import StartUp, default_share, start_up
from headway.serving.launch import sglang, trtllm, vllm

LEAST = 5e-4  # difference of two shares that is worth a word
ENGINES = {"vllm": ("vLLM", vllm.NAMES), "sglang": ("SGLang", sglang.NAMES), "trtllm": ("TensorRT-LLM", trtllm.NAMES)}


def start_log(row: Mapping[str, Any], engine: str, chip: Chip, utilization: float) -> list[str]:
    """The line of a start and its flags, for an engine that has one; a log is of one rank of attention."""
    if engine not in ENGINES or row.get("kv_room_tokens") is None or not math.isfinite(row["kv_room_tokens"]):
        return []
    name, ranks, tp = ENGINES[engine][0], int(row["dp"]), int(row["tp"])
    apart = f", on each of {ranks} ranks" if ranks > 1 else ""
    room = f"KV cache {int(row['kv_room_tokens'] / ranks):,} tokens, maximum concurrency {row['max_concurrency'] / ranks:.2f}x"
    line = f"{name} would log: {room} at context {int(_longest(row)):,}{apart}"
    return [line, f"its flags: {_flags(engine, start_up(engine, chip, tp), utilization)}{_own_share(engine, chip, row, utilization)}"]


def _longest(row: Mapping[str, Any]) -> float:
    """Tokens of a sequence at its end."""
    return row["context"] if row.get("prompt") is None else row["prompt"] + row["output"]


def _flags(engine: str, start: StartUp, utilization: float) -> str:
    names = ENGINES[engine][1]
    return f"{names.memory} {utilization:g} {names.sequences} {int(start.sequences)} {names.tokens} {int(start.tokens)}"


def _own_share(engine: str, chip: Chip, row: Mapping[str, Any], utilization: float) -> str:
    """The share that the engine would take of itself, where it is another."""
    share = float(default_share(engine, chip, int(row["tp"]), int(row["pp"])))
    return "" if abs(share - utilization) < LEAST else f" (of itself it takes {share:.3g})"

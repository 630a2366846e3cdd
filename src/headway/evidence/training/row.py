"""One published training measurement, as its table states it, and the CSV reader; fields without a value are blank."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headway.core.errors import BadFile, clip
from headway.evidence.rows.row import BadRow
from headway.evidence.rows.slips import refuse_slips

NEEDED = ("id", "model", "hardware")
RENAMED = {"n_params_total": "params", "n_params_active": "active", "n_chips": "chips", "zero_or_fsdp": "sharding"}
TEXTS = (
    "id", "source", "model", "hardware", "precision", "zero_or_fsdp", "recompute", "notes", "date", "task", "flop_convention", "kernels",
    "moe_dispatch",
)  # fmt: skip
MEASURED = ("tflops_per_chip", "mfu_pct", "tokens_per_s_per_chip", "step_time_s", "memory_gb_per_chip")
INTEGERS = ("layers", "hidden", "heads", "seq_len", "n_chips", "tp", "cp", "pp", "vpp", "ep", "dp", "micro_batch", "global_batch")
AMOUNTS = ("n_params_total", "n_params_active", "offload_layers", *MEASURED)
FROM_ZERO = ("offload_layers",)  # amounts that may be 0
MOST = 1e18


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRow:
    """One measured training row; None or "" for what it does not state. `global_batch` is in sequences."""

    line: int
    id: str
    model: str
    hardware: str
    source: str = ""
    params: float | None = None
    active: float | None = None
    layers: int | None = None
    hidden: int | None = None
    heads: int | None = None
    seq_len: int | None = None
    chips: int | None = None
    precision: str = ""
    tp: int | None = None
    cp: int | None = None
    pp: int | None = None
    vpp: int | None = None
    ep: int | None = None
    dp: int | None = None
    sharding: str = ""
    micro_batch: int | None = None
    global_batch: int | None = None
    recompute: str = ""
    notes: str = ""
    date: str = ""  # YYYY-MM of the software
    task: str = ""  # pretrain, sft or lora
    flop_convention: str = ""  # how the source counts FLOPs: full, causal_half, 6nd or unknown
    kernels: str = ""  # software between the matmuls: megatron_te, pytorch_fsdp, maxtext, ...
    moe_dispatch: str = ""  # dropless, forced_balance or capacity_drop
    offload_layers: float | None = None  # layers whose activations go to host memory
    tflops_per_chip: float | None = None
    mfu_pct: float | None = None
    tokens_per_s_per_chip: float | None = None
    step_time_s: float | None = None
    memory_gb_per_chip: float | None = None


def read_training_rows(path: str | Path, measured: bool = True) -> tuple[list[TrainingRow], list[BadRow]]:
    """Rows of a CSV file (`measured`: with measured values), and its malformed lines; BadFile if the file cannot be read."""
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            return _read(csv.DictReader(file, restkey="", restval=""), path, measured)
    except OSError as error:
        raise BadFile(path, f"cannot be read ({error.strerror or error})") from None
    except UnicodeDecodeError:
        raise BadFile(path, "is not UTF-8 text, so not a CSV of training runs") from None
    except csv.Error as error:
        raise BadFile(path, f"is not a CSV file ({error})") from None


def _read(lines: csv.DictReader, path: str | Path, measured: bool) -> tuple[list[TrainingRow], list[BadRow]]:
    header = [name.strip() for name in lines.fieldnames or []]
    lines.fieldnames = header
    missing = [name for name in NEEDED if name not in header]
    if missing:
        raise BadFile(path, f"has no column {', '.join(missing)}: the first line of training runs names at least {', '.join(NEEDED)}")
    refuse_slips(path, header, (*TEXTS, *INTEGERS, *AMOUNTS))
    rows, bad = [], []
    for cells in lines:
        try:
            rows.append(_row(cells, lines.line_num, measured))
        except ValueError as error:
            bad.append(BadRow(line=lines.line_num, id=str(cells.get("id") or ""), why=str(error)))
    return rows, bad


def _row(cells: dict[str, str], line: int, measured: bool) -> TrainingRow:
    if cells.get(""):
        raise ValueError("more cells than column names")
    values: dict[str, Any] = {}
    for name in (*TEXTS, *INTEGERS, *AMOUNTS):
        text = (cells.get(name) or "").strip()
        if not text or (name in MEASURED and not measured):
            continue
        values[RENAMED.get(name, name)] = text if name in TEXTS else _number(name, text)
    for name in NEEDED[1:]:
        if name not in values:
            raise ValueError(f"{name}: missing")
    make: Any = TrainingRow
    return make(line=line, **({"id": ""} | values))


def _number(name: str, text: str) -> float | int:
    is_integer = name in INTEGERS
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    least_is_met = value >= 0 if name in FROM_ZERO else value > 0
    if not (least_is_met and value < MOST) or (is_integer and value != int(value)):
        least = "of at least 0" if name in FROM_ZERO else "above 0"
        raise ValueError(f"{name}: got {clip(text)!r}; wants a {'whole ' if is_integer else ''}number {least}")
    return int(value) if is_integer else value

"""One published training measurement, as its table states it, and the CSV reader; fields without a value are blank."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from headway.core.measured import CHIP_TOKEN_RATE, DEGREE, LAYERS, MEMORY_GB, MFU, PARAMS, SEQUENCE, SEQUENCES, SHAPE, STEP_TIME, TFLOPS
from headway.evidence.rows.row import BadRow, NumberColumn, RowFormat, read_csv

NEEDED = ("id", "model", "hardware")
RENAMED = {"n_params_total": "params", "n_params_active": "active", "n_chips": "chips", "zero_or_fsdp": "sharding"}
TEXTS = (
    "id", "source", "model", "hardware", "precision", "zero_or_fsdp", "recompute", "notes", "date", "task", "flop_convention", "kernels",
    "moe_dispatch",
)  # fmt: skip
MEASURED = ("tflops_per_chip", "mfu_pct", "tokens_per_s_per_chip", "step_time_s", "memory_gb_per_chip")
RANGES = {
    "layers": SHAPE, "hidden": SHAPE, "heads": SHAPE, "seq_len": SEQUENCE, "n_chips": DEGREE, "tp": DEGREE, "cp": DEGREE, "pp": DEGREE,
    "vpp": DEGREE, "ep": DEGREE, "dp": DEGREE, "micro_batch": SEQUENCES, "global_batch": SEQUENCES, "n_params_total": PARAMS,
    "n_params_active": PARAMS, "tflops_per_chip": TFLOPS, "mfu_pct": MFU, "tokens_per_s_per_chip": CHIP_TOKEN_RATE,
    "step_time_s": STEP_TIME, "memory_gb_per_chip": MEMORY_GB, "offload_layers": LAYERS,
}  # fmt: skip


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
    return read_csv(path, TrainingRow, training_format(measured))


def training_format(measured: bool = True) -> RowFormat:
    """Columns of training runs; without measured values those columns are known and not read."""
    numbers = tuple(NumberColumn(header=name, field=RENAMED.get(name, name), q=q) for name, q in RANGES.items())
    texts = {name: RENAMED.get(name, name) for name in TEXTS}
    return RowFormat(what="training runs", needed=NEEDED, texts=texts, numbers=numbers, skipped=() if measured else MEASURED)

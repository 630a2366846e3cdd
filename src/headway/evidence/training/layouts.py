"""Layouts that a training row may have run: the stated layout, or all legal layouts consistent with the stated parts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.evidence.training.row import TrainingRow
from headway.hardware.system import System
from headway.models.model import Model, MoE
from headway.training.layouts import LONG, MOST_TP, NAMES, bounds, candidates
from headway.training.recipe import TrainingLayout

MICRO_BATCHES = (1, 2, 4, 8)  # micro-batches, in sequences, tried for a row that states none
ACCUMULATED = 8  # default micro-batches per step and pipeline stage
FEW = 2  # micro-batches per stage up to which the schedule is taken as interleaved (1F1B would idle a third of the time)
SCHEDULE_NAMES = ("1f1b", "zb-", "gpipe", "dualpipe", "interleaved")  # names of schedules in notes
TOKENS = 8192  # default tokens per step and chip, for a row without batch and layout
SHARDED = (("zero-3", 3), ("fsdp", 3), ("zero-2", 2), ("zero-1", 1), ("dist", 1), ("ddp", 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutArrays:
    """Layouts as a record of arrays, with the sequences per step of each."""

    layouts: TrainingLayout
    sequences: Any


def is_open(row: TrainingRow) -> bool:
    """Whether a row states no split of its model: no sharded data parallelism, and no tp with pp."""
    return not (row.sharding or (row.tp and row.pp))


def layout_options(row: TrainingRow, model: Model, where: System, sequence: int) -> LayoutArrays | str:
    """Candidate layouts of a row, or the reason why there is none."""
    chips = int(where.chips)
    options = _legal(row, model, chips, sequence) if is_open(row) else None
    if options is not None and len(options.sequences):
        return options
    replica_chips = (row.tp or 1) * (row.cp or 1) * (row.pp or 1)
    if chips % replica_chips:
        return f"tp {row.tp or 1} x cp {row.cp or 1} x pp {row.pp or 1} does not divide {chips} chips"
    return _stated_layouts(row, model, chips, chips // replica_chips, 3 if is_open(row) else sharding(row))


def sharding(row: TrainingRow) -> int:
    """ZeRO stage of a row; default 1, as in Megatron's distributed optimiser."""
    sharding_text = row.sharding.lower()
    return next((stage for text, stage in SHARDED if text in sharding_text), 1)


def expert_degree(model: Model, chips: int) -> int:
    """Largest expert-parallel degree that divides experts and chips."""
    return max((math.gcd(int(block.ffn.experts), chips) for block in model.blocks if isinstance(block.ffn, MoE)), default=1)


def chunks(row: TrainingRow, model: Model, dp: int) -> int:
    """Chunks of layers per pipeline stage: as stated, else 1; with FEW micro-batches, the most that leave no stage fuller."""
    pp, notes = row.pp or 1, row.notes.lower()
    if row.vpp or pp == 1 or not row.global_batch or any(name in notes for name in SCHEDULE_NAMES):
        return row.vpp or 1
    count = row.global_batch // (dp * (row.micro_batch or 1))
    if not 0 < count <= FEW * pp or count % pp:
        return 1
    layers = sum(int(block.count) for block in model.blocks)
    return max((n for n in range(1, layers // pp + 1) if n * -(-layers // (pp * n)) == -(-layers // pp)), default=1)


def _stated_layouts(row: TrainingRow, model: Model, chips: int, dp: int, zero: int) -> LayoutArrays:
    """Stated layout, with each possible micro-batch."""
    most = max(1, row.global_batch // dp) if row.global_batch else max(MICRO_BATCHES)
    micro = np.array([row.micro_batch] if row.micro_batch else sorted({min(n, most) for n in MICRO_BATCHES}))
    pp, ep = row.pp or 1, row.ep or expert_degree(model, chips // (row.pp or 1))
    columns = {"tp": row.tp or 1, "cp": row.cp or 1, "pp": pp, "vpp": chunks(row, model, dp), "ep": ep, "dp": dp, "micro_batch": micro}
    columns["zero"] = zero
    sequences = row.global_batch or dp * micro * (ACCUMULATED * pp if pp > 1 else 1)
    return LayoutArrays(
        layouts=TrainingLayout(**{name: np.broadcast_to(value, micro.shape) for name, value in columns.items()}),
        sequences=np.broadcast_to(sequences, micro.shape),
    )  # fmt: skip


def _legal(row: TrainingRow, model: Model, chips: int, sequence: int) -> LayoutArrays:
    """All legal layouts that use every chip and agree with the row."""
    sequences = row.global_batch or chips * max(1, TOKENS // sequence)
    row_values = {"tp": row.tp, "cp": row.cp, "pp": row.pp, "dp": row.dp, "micro_batch": row.micro_batch}
    if row.micro_batch and sequences % row.micro_batch:
        return _nothing()
    pinned: dict[str, Sequence[int]] = {name: (value,) for name, value in row_values.items() if value}
    pinned = {"micro_batch": [n for n in MICRO_BATCHES if sequences % n == 0], "vpp": (row.vpp or 1,), "zero": (1, 3)} | pinned
    if not row.cp and sequence < LONG:
        pinned["cp"] = (1,)
    if row.ep and expert_degree(model, chips) > 1:
        pinned["ep"] = (row.ep,)
    all_layouts = candidates(bounds(model, chips, sequence, sequences), MOST_TP, pinned)
    fills_system = all_layouts.tp * all_layouts.cp * all_layouts.pp * all_layouts.dp == chips
    layouts = TrainingLayout(**{name: getattr(all_layouts, name)[fills_system] for name in NAMES})
    return LayoutArrays(layouts=layouts, sequences=np.full(len(layouts.tp), sequences))


def _nothing() -> LayoutArrays:
    none = np.zeros(0, dtype=int)
    return LayoutArrays(layouts=TrainingLayout(**dict.fromkeys(NAMES, none)), sequences=none)

"""The layouts that a training row may have run: the one it states, or every legal one that keeps to what it states."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.evidence.training.row import TrainingRow
from headway.hardware.system import System
from headway.models.model import Model, MoE
from headway.training.layouts import MOST_TP, NAMES, bounds, candidates
from headway.training.recipe import TrainingLayout

MICRO_BATCHES = (1, 2, 4, 8)  # sequences tried where a row does not say
ACCUMULATED = 8  # micro-batches of a step, for each pipeline stage, where a row does not say
FEW = 2  # micro-batches of a step for each stage, up to which a pipeline idles a third of the time: it is interleaved
SCHEDULE_NAMES = ("1f1b", "zb-", "gpipe", "dualpipe", "interleaved")  # schedules as notes name them
LONG = 16_384  # tokens of a sequence from which context parallelism is thought of
TOKENS = 8192  # of a step for each chip, where a row says neither its batch nor its layout
SHARDED = (("zero-3", 3), ("fsdp", 3), ("zero-2", 2), ("zero-1", 1), ("dist", 1), ("ddp", 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutArrays:
    """Layouts as one record of arrays, and the sequences of a step of each."""

    layouts: TrainingLayout
    sequences: Any


def is_open(row: TrainingRow) -> bool:
    """Whether a row leaves open how its model is split: neither sharded data parallel alone, nor tensor and pipeline ways."""
    return not (row.sharding or (row.tp and row.pp))


def layout_options(row: TrainingRow, model: Model, where: System, sequence: int) -> LayoutArrays | str:
    """The layouts to choose from, or why there is none."""
    chips = int(where.chips)
    options = _legal(row, model, chips, sequence) if is_open(row) else None
    if options is not None and len(options.sequences):
        return options
    replica_chips = (row.tp or 1) * (row.cp or 1) * (row.pp or 1)
    if chips % replica_chips:
        return f"tp {row.tp or 1} x cp {row.cp or 1} x pp {row.pp or 1} does not divide {chips} chips"
    return _stated_layouts(row, model, chips, chips // replica_chips, 3 if is_open(row) else sharding(row))


def sharding(row: TrainingRow) -> int:
    """The ZeRO stage that a row states; 1 where it is silent, as Megatron's distributed optimiser."""
    sharding_text = row.sharding.lower()
    return next((stage for text, stage in SHARDED if text in sharding_text), 1)


def expert_degree(model: Model, chips: int) -> int:
    """As many expert-parallel ways as experts and chips allow."""
    return max((math.gcd(int(block.ffn.experts), chips) for block in model.blocks if isinstance(block.ffn, MoE)), default=1)


def chunks(row: TrainingRow, model: Model, dp: int) -> int:
    """Chunks of layers of a stage: 1 where the row is silent, but with FEW micro-batches as many as leave no stage fuller."""
    pp, notes = row.pp or 1, row.notes.lower()
    if row.vpp or pp == 1 or not row.global_batch or any(name in notes for name in SCHEDULE_NAMES):
        return row.vpp or 1
    count = row.global_batch // (dp * (row.micro_batch or 1))
    if not 0 < count <= FEW * pp or count % pp:
        return 1
    layers = sum(int(block.count) for block in model.blocks)
    return max((n for n in range(1, layers // pp + 1) if n * -(-layers // (pp * n)) == -(-layers // pp)), default=1)


def _stated_layouts(row: TrainingRow, model: Model, chips: int, dp: int, zero: int) -> LayoutArrays:
    """The layout stated, at each micro-batch that it may have had."""
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
    """Every legal layout of all chips that keeps to what the row states."""
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

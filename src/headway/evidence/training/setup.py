"""What a training row says, and what is taken where it is silent: system, layout, recipe, batch. Every rule is a flag on the prediction."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from headway.catalog import Catalog, default_catalog
from headway.errors import HeadwayError
from headway.evidence.names import hardware
from headway.evidence.training.row import TrainingRow
from headway.evidence.training.shape import shaped
from headway.model import Model, MoE
from headway.quantity import given
from headway.schema import defaults
from headway.system import System, system
from headway.training.estimate import TrainingCase, estimate, machine
from headway.training.reach import reached
from headway.training.recipe import Recipe, TrainingLayout, optimizer
from headway.training.work import training_work

SEQUENCE = 2048
MICRO_BATCHES = (1, 2, 4, 8)  # sequences tried where a row does not say
ACCUMULATED = 8  # micro-batches of a step, for each pipeline stage, where a row does not say
OPTIMIZER = "adam"
ONE_LAYER = "one layer"
SCHEDULES = {"zb-2p": "zb-h2", "zb-1p": "zb-h1", "interleaved": "interleaved", "dualpipe": "dualpipe", "gpipe": "gpipe"}  # of notes
_HFU = re.compile(r"hfu=([\d.]+)%", re.IGNORECASE)
MOST_MODEL = 1.2  # HFU over MFU beyond which the layers are computed again (4/3 for all of them)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSetup:
    """A row as a case of the laws."""

    row: TrainingRow
    model: Model
    case: TrainingCase
    layout: TrainingLayout
    sequences: int  # of one step
    flags: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ways:
    """A layout that a row states, or that is tried."""

    tp: int
    cp: int
    pp: int
    ep: int
    zero: int


def setup(row: TrainingRow, catalog: Catalog | None = None) -> TrainingSetup | str:
    """The case of a row, or why there is none."""
    if ONE_LAYER in row.model.lower():
        return "the time of one layer alone is no optimiser step"
    found = shaped(row)
    if isinstance(found, str):
        return found
    try:
        where = _system(row, catalog or default_catalog())
        return _case(row, found.model, where, list(found.flags))
    except HeadwayError as error:
        return str(error)


def _system(row: TrainingRow, catalog: Catalog) -> System:
    chip = hardware(row.hardware, catalog)
    ways = [way for way in (row.tp, row.cp, row.pp, row.dp) if way]
    product = 1
    for way in ways:
        product *= way
    count = row.chips or (product if ways else chip.count or 1)
    return system(f"{count}x{chip.chip}" if count > 1 else chip.chip, catalog)


def _case(row: TrainingRow, model: Model, where: System, flags: list[str]) -> TrainingSetup | str:
    """What the row states; of what it leaves open, the fastest that fits, as a planner would choose."""
    sequence = row.seq_len or SEQUENCE
    flags += [] if row.seq_len else [f"sequence not stated: {SEQUENCE} tokens"]
    fastest: tuple[float, TrainingSetup] | None = None
    least: tuple[float, TrainingSetup] | None = None
    why = ""
    for ways, recompute, micro in itertools.product(_ways(row, model, where), _recompute(row), _micro_batches(row)):
        tried = _tried(row, model, where, sequence, ways, recompute, micro)
        if isinstance(tried, str):
            why = tried
            continue
        found = estimate(tried.case, tried.layout)
        used, speed = float(found.memory.total), float(found.tokens_per_s_chip)
        least = (used, tried) if least is None or used < least[0] else least
        if bool(found.fits) and (fastest is None or speed > fastest[0]):
            fastest = (speed, tried)
    if fastest is not None:
        return replace(fastest[1], flags=(*flags, *fastest[1].flags))
    if least is None:
        return why or "no layout of these chips is legal"
    return replace(least[1], flags=(*flags, *least[1].flags, "needs more memory than the chip has, by these laws"))


def _ways(row: TrainingRow, model: Model, where: System) -> Iterator[_Ways]:
    """The layout stated; where none is: fully sharded data parallel, alone or with tensor parallelism, experts over as many as divide."""
    chips, domain = int(where.chips), int(where.scale_up_domain)
    ep = row.ep or _expert_ways(model, chips)
    if row.tp or row.pp or row.cp or row.dp or row.sharding:
        yield _Ways(tp=row.tp or 1, cp=row.cp or 1, pp=row.pp or 1, ep=row.ep or 1, zero=_zero(row))
        return
    for tp in (1, 2, 4, 8, 16):
        if tp <= domain and chips % tp == 0:
            yield _Ways(tp=tp, cp=1, pp=1, ep=ep, zero=3)


def _expert_ways(model: Model, chips: int) -> int:
    """As many expert-parallel ways as experts and chips allow."""
    return max((math.gcd(int(block.ffn.experts), chips) for block in model.blocks if isinstance(block.ffn, MoE)), default=1)


def _micro_batches(row: TrainingRow) -> tuple[int, ...]:
    return (row.micro_batch,) if row.micro_batch else MICRO_BATCHES


def _zero(row: TrainingRow) -> int:
    said = row.sharding.lower()
    for text, stage in (("zero-3", 3), ("fsdp", 3), ("zero-2", 2), ("zero-1", 1), ("dist", 1), ("ddp", 0)):
        if text in said:
            return stage
    return 1


def _recompute(row: TrainingRow) -> tuple[str, ...]:
    """What is computed again, stated; where it is not, nothing, or where that does not fit what costs little: a planner avoids the rest."""
    said = row.recompute.lower()
    for mode in ("full", "selective", "none"):
        if mode in said:
            return (mode,)
    hardware_use = _HFU.search(row.notes)
    if hardware_use and row.mfu_pct:
        return ("full",) if float(hardware_use[1]) > MOST_MODEL * row.mfu_pct else ("none",)
    return ("none", "selective")


def _scores_kept(row: TrainingRow) -> bool:
    """Whether attention writes its scores to memory: said, or mixed precision in fp16 with loss scaling, as before 2022."""
    said, precision = row.notes.lower(), row.precision.lower()
    old = ("fp16" in precision or "mixed" in precision) and not ("bf16" in precision or "fp8" in precision)
    return "no flashattention" in said or (old and "flashattention" not in said)


def _kernels(where: System, ways: _Ways) -> str:
    """Fully sharded training on GPUs is PyTorch's, which runs what is between matmuls one by one; XLA and Megatron fuse it."""
    return "eager" if ways.zero == 3 and not where.chip.name.startswith("tpu") else "fused"


def _schedule(row: TrainingRow) -> str:
    said = row.notes.lower()
    for text, schedule in SCHEDULES.items():
        if text in said:
            return schedule
    return "interleaved" if (row.vpp or 1) > 1 else "1f1b"


def _tried(row: TrainingRow, model: Model, where: System, sequence: int, ways: _Ways, recompute: str, asked: int) -> TrainingSetup | str:
    chips, flags = int(where.chips), []
    each = ways.tp * ways.cp * ways.pp
    if chips % each:
        return f"tp {ways.tp} x cp {ways.cp} x pp {ways.pp} does not divide {chips} chips"
    dp = chips // each
    micro, sequences = _batch(row, asked, dp, ways, flags)
    dtype = "fp8" if "fp8" in row.precision.lower() else "bf16"
    if not row.recompute:
        flags.append(f"recomputation not stated: {recompute}")
    said = row.notes.lower()
    recipe = defaults(Recipe, {
        "dtype": dtype, "recompute": recompute, "schedule": _schedule(row), "kernels": _kernels(where, ways),
        "fused_attention": given(0 if _scores_kept(row) else 1, "fused_attention"),
        "dropout": given(1 if _scores_kept(row) else 0, "dropout"),
        "sequence_parallel": given(0 if "no sp" in said or "no sequence parallel" in said else 1, "sequence_parallel"),
        "trainable": given(0 if "finetune lora" in said else 1, "trainable"),
    })  # fmt: skip
    work = training_work(model, recipe, given(sequence, "seq", "token"))
    case = TrainingCase(
        work=work, system=where, machine=machine(where, dtype), recipe=recipe, optimizer=optimizer(OPTIMIZER),
        reach=reached(where.chip, dtype, recipe.kernels), batch=given(sequences * sequence, "global_batch", "token"),
    )  # fmt: skip
    layout: Any = defaults(TrainingLayout, {
        "tp": ways.tp, "cp": ways.cp, "pp": ways.pp, "vpp": row.vpp or 1, "ep": ways.ep, "dp": dp, "micro_batch": micro,
        "zero": ways.zero,
    })  # fmt: skip
    return TrainingSetup(row=row, model=model, case=case, layout=layout, sequences=sequences, flags=tuple(flags))


def _batch(row: TrainingRow, asked: int, dp: int, ways: _Ways, flags: list[str]) -> tuple[int, int]:
    """Sequences of a micro-batch, and of a step."""
    micro = min(asked, max(1, row.global_batch // dp)) if row.global_batch else asked
    if row.micro_batch is None:
        flags.append(f"micro-batch not stated: {micro}")
    if row.global_batch:
        return micro, row.global_batch
    count = ACCUMULATED * ways.pp if ways.pp > 1 else 1
    flags.append(f"global batch not stated: {dp * micro * count} sequences")
    return micro, dp * micro * count

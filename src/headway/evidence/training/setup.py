"""What a training row says, and what is taken where it is silent: system, layout, recipe, batch. Every rule is a flag on the prediction."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from headway.catalog import Catalog, default_catalog
from headway.errors import HeadwayError
from headway.evidence.names import hardware
from headway.evidence.training.row import TrainingRow
from headway.evidence.training.shape import shaped
from headway.model import Model
from headway.quantity import given
from headway.schema import defaults
from headway.system import System, system
from headway.training.estimate import TrainingCase, estimate, machine
from headway.training.reach import reached
from headway.training.recipe import Recipe, TrainingLayout, optimizer
from headway.training.work import training_work

SEQUENCE = 2048
CHIP_TOKENS = 8192  # of a micro-batch, where a row does not say: enough for large matmuls, little enough to keep
MICRO_BATCHES = 8  # of a step, for each pipeline stage, where a row does not say
OPTIMIZER = "adam"
ONE_LAYER = "one layer"


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
    sequence = row.seq_len or SEQUENCE
    flags += [] if row.seq_len else [f"sequence not stated: {SEQUENCE} tokens"]
    best = None
    for ways in _ways(row, int(where.chips), int(where.scale_up_domain)):
        for recompute in _recompute(row):
            tried = _tried(row, model, where, sequence, ways, recompute)
            if isinstance(tried, str):
                return tried
            if best is None:
                best = tried
            if bool(estimate(tried.case, tried.layout).fits):
                return replace(tried, flags=(*flags, *tried.flags))
            best = tried
    return replace(best, flags=(*flags, *best.flags, "needs more memory than the chip has, by these laws")) if best else "no layout"


def _ways(row: TrainingRow, chips: int, domain: int) -> Iterator[_Ways]:
    """The layout stated; where none is, sharded data parallel first, then tensor parallel, then stages, until the memory is enough."""
    if row.tp or row.pp or row.cp or row.dp or row.sharding:
        yield _Ways(tp=row.tp or 1, cp=row.cp or 1, pp=row.pp or 1, zero=_zero(row))
        return
    yield _Ways(tp=1, cp=1, pp=1, zero=3)
    for tp in (2, 4, 8):
        if tp <= domain and chips % tp == 0:
            yield _Ways(tp=tp, cp=1, pp=1, zero=3)


def _zero(row: TrainingRow) -> int:
    said = row.sharding.lower()
    for text, stage in (("zero-3", 3), ("fsdp", 3), ("zero-2", 2), ("zero-1", 1), ("dist", 1), ("ddp", 0)):
        if text in said:
            return stage
    return 1


def _recompute(row: TrainingRow) -> tuple[str, ...]:
    """What is computed again, stated; where it is not, nothing, or everything where that does not fit."""
    said = row.recompute.lower()
    for mode in ("full", "selective", "none"):
        if mode in said:
            return (mode,)
    return ("none", "full")


def _schedule(row: TrainingRow) -> str:
    said = row.notes.lower()
    for text, schedule in (("zb-2p", "zb-h2"), ("zb-1p", "zb-h1"), ("interleaved", "interleaved"), ("dualpipe", "dualpipe"), ("gpipe", "gpipe")):
        if text in said:
            return schedule
    return "interleaved" if (row.vpp or 1) > 1 else "1f1b"


def _tried(row: TrainingRow, model: Model, where: System, sequence: int, ways: _Ways, recompute: str) -> TrainingSetup | str:
    chips, flags = int(where.chips), []
    each = ways.tp * ways.cp * ways.pp
    if chips % each:
        return f"tp {ways.tp} x cp {ways.cp} x pp {ways.pp} does not divide {chips} chips"
    dp = chips // each
    micro, sequences = _batch(row, sequence, dp, ways, flags)
    dtype = "fp8" if "fp8" in row.precision.lower() else "bf16"
    if not row.recompute:
        flags.append(f"recomputation not stated: {recompute}")
    said = row.notes.lower()
    recipe = defaults(Recipe, {
        "dtype": dtype, "recompute": recompute, "schedule": _schedule(row),
        "fused_attention": given(0 if "no flashattention" in said else 1, "fused_attention"),
        "trainable": given(0 if "finetune lora" in said else 1, "trainable"),
    })  # fmt: skip
    work = training_work(model, recipe, given(sequence, "seq", "token"))
    case = TrainingCase(
        work=work, system=where, machine=machine(where, dtype), recipe=recipe, optimizer=optimizer(OPTIMIZER),
        reach=reached(where.chip, dtype), batch=given(sequences * sequence, "global_batch", "token"),
    )  # fmt: skip
    layout: Any = defaults(TrainingLayout, {
        "tp": ways.tp, "cp": ways.cp, "pp": ways.pp, "vpp": row.vpp or 1, "ep": row.ep or 1, "dp": dp, "micro_batch": micro,
        "zero": ways.zero,
    })  # fmt: skip
    return TrainingSetup(row=row, model=model, case=case, layout=layout, sequences=sequences, flags=tuple(flags))


def _batch(row: TrainingRow, sequence: int, dp: int, ways: _Ways, flags: list[str]) -> tuple[int, int]:
    """Sequences of a micro-batch, and of a step."""
    most = max(1, row.global_batch // dp) if row.global_batch else None
    micro = row.micro_batch or (1 if ways.tp * ways.pp > 1 else max(1, CHIP_TOKENS // sequence))
    micro = min(micro, most) if most else micro
    if row.micro_batch is None:
        flags.append(f"micro-batch not stated: {micro}")
    if row.global_batch:
        return micro, row.global_batch
    count = MICRO_BATCHES * ways.pp if ways.pp > 1 else 1
    flags.append(f"global batch not stated: {dp * micro * count} sequences")
    return micro, dp * micro * count

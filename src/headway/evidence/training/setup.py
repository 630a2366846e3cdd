"""Setup of a training row: stated values, defaults for the rest, and measured speed in tokens per second and chip."""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headway.core.catalog import Catalog, default_catalog
from headway.core.errors import HeadwayError
from headway.core.quantity import user_input
from headway.core.schema import defaults
from headway.evidence.rows.names import hardware
from headway.evidence.training.layouts import LayoutArrays, is_open, layout_options
from headway.evidence.training.row import TrainingRow
from headway.evidence.training.shape import shaped
from headway.hardware.system import System, system
from headway.models.model import UNITY, Model
from headway.training.achieved import chip_efficiency
from headway.training.estimate import TrainingCase, estimate, machine
from headway.training.layouts import layout_at, rows
from headway.training.recipe import KERNELS, RECOMPUTE, Recipe, TrainingLayout, optimizer
from headway.training.work import hardware_flop, model_flop, training_work

SEQUENCE = 2048
OPTIMIZER, XLA_OPTIMIZER = "adam", "adam-no-master"  # XLA trainers keep no 16-bit copy of the weights
FIRST_FUSED = 2020  # year of the first chips with fused attention: A100 and TPU v4 (TPU v3: jax-ml/jax issue 18595)
ONE_LAYER = "one layer"
OPEN = "layout not stated"  # flag of a row whose layout was chosen
SCHEDULES = {"zb-2p": "zb-h2", "zb-1p": "zb-h1", "interleaved": "interleaved", "dualpipe": "dualpipe", "gpipe": "gpipe"}  # by note


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSetup:
    """A training row as input of the training laws."""

    row: TrainingRow
    model: Model
    case: TrainingCase
    layout: TrainingLayout
    sequences: int  # sequences per step
    open: bool  # whether the row states no layout, so that the fastest was chosen
    flags: tuple[str, ...]


def setup(row: TrainingRow, catalog: Catalog | None = None) -> TrainingSetup | str:
    """Setup of a row, or the reason why there is none."""
    if ONE_LAYER in row.model.lower():
        return "the time of one layer alone is no optimiser step"
    shape = shaped(row)
    if isinstance(shape, str):
        return shape
    try:
        where = _system(row, catalog or default_catalog())
        return _case(row, shape.model, where, list(shape.flags))
    except HeadwayError as error:
        return str(error)


def _system(row: TrainingRow, catalog: Catalog) -> System:
    chip = hardware(row.hardware, catalog)
    degrees = [degree for degree in (row.tp, row.cp, row.pp, row.dp) if degree]
    product = 1
    for degree in degrees:
        product *= degree
    count = row.chips or (product if degrees else chip.count or 1)
    return _built(f"{count}x{chip.chip}" if count > 1 else chip.chip, catalog)


@functools.cache
def _built(name: str, catalog: Catalog) -> System:
    return system(name, catalog)


def _case(row: TrainingRow, model: Model, where: System, flags: list[str]) -> TrainingSetup | str:
    """Setup with the stated values; open values take the fastest choice that fits in memory."""
    sequence = row.seq_len or SEQUENCE
    among = layout_options(row, model, where, sequence)
    if isinstance(among, str):
        return among
    best = _best_choice(row, model, where, sequence, among)
    for is_stated, what in (
        (row.seq_len, f"sequence not stated: {SEQUENCE} tokens"),
        (not is_open(row), f"{OPEN}: tp {best.layout.tp} cp {best.layout.cp} pp {best.layout.pp} zero {best.layout.zero}"),
        (row.vpp or int(best.layout.vpp) == 1, f"interleaving not stated: {best.layout.vpp} chunks of layers a stage"),
        (row.micro_batch, f"micro-batch not stated: {best.layout.micro_batch}"),
        (row.global_batch, f"global batch not stated: {best.sequences} sequences"),
        (row.recompute, f"recomputation not stated: {best.case.recipe.recompute}"),
        (not (format_note := dtype_of(row, where)[1]), format_note),
        (best.fits, "needs more memory than the chip has, by these laws"),
    ):
        flags += [] if is_stated else [what]
    return TrainingSetup(
        row=row, model=model, case=best.case, layout=best.layout, sequences=best.sequences, open=is_open(row), flags=tuple(flags)
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    """A candidate layout, with its step time and memory."""

    case: TrainingCase
    layout: TrainingLayout
    sequences: int
    fits: bool
    step: float  # s per sequence
    memory: float

    def better(self, rival: _Choice | None) -> bool:
        """Whether it beats `rival`: fits where the rival does not, else is faster; smaller if neither fits."""
        if rival is None or self.fits != rival.fits:
            return rival is None or self.fits
        return self.step < rival.step if self.fits else self.memory < rival.memory


def _best_choice(row: TrainingRow, model: Model, where: System, sequence: int, among: LayoutArrays) -> _Choice:
    best: _Choice | None = None
    eager = _eager(where, among)
    for recompute, kernels in itertools.product(_recompute(row), KERNELS):
        index = np.flatnonzero(eager == (kernels == "eager"))
        if len(index):
            choice = _best_layout(row, model, where, sequence, rows(among.layouts, index), among.sequences[index], recompute, kernels)
            best = choice if choice.better(best) else best
    assert best is not None  # every layout has fused or eager kernels
    return best


def _best_layout(
    row: TrainingRow, model: Model, where: System, sequence: int, layouts: TrainingLayout, sequences: Any, recompute: str, kernels: str
) -> _Choice:
    """Best of the layouts under one recipe."""
    case = _run(row, model, where, sequence, recompute, kernels, _schedule(row, layouts))
    run_estimate = estimate(replace(case, batch=sequences * sequence), layouts)
    shape = sequences.shape
    step, memory_bytes, fits = (
        np.broadcast_to(value, shape) for value in (run_estimate.time.step / sequences, run_estimate.memory.total, run_estimate.fits)
    )
    index = int(np.lexsort((step, ~fits))[0] if fits.any() else np.argmin(memory_bytes))
    return _Choice(
        case=replace(case, batch=user_input(int(sequences[index]) * sequence, "global_batch", "token")),
        layout=layout_at(layouts, index, {}),
        sequences=int(sequences[index]),
        fits=bool(fits[index]),
        step=float(step[index]),
        memory=float(memory_bytes[index]),
    )


def _run(row: TrainingRow, model: Model, where: System, sequence: int, recompute: str, kernels: str, schedule: str) -> TrainingCase:
    """Training case of a row under one recomputation mode, without a batch."""
    dtype, notes = dtype_of(row, where)[0], row.notes.lower()
    keeps_scores = _keeps_scores(row, where)
    recipe = defaults(Recipe, {
        "dtype": dtype, "recompute": recompute, "schedule": schedule, "kernels": kernels,
        "fused_attention": user_input(0 if keeps_scores else 1, "fused_attention"),
        "dropout": user_input(1 if _of_old(row) else 0, "dropout"),
        "sequence_parallel": user_input(0 if "no sp" in notes or "no sequence parallel" in notes else 1, "sequence_parallel"),
        "trainable": user_input(0 if "finetune lora" in notes else 1, "trainable"),
    })  # fmt: skip
    return TrainingCase(
        work=training_work(model, recipe, user_input(sequence, "seq", "token")), system=where, machine=machine(where, dtype), recipe=recipe,
        optimizer=optimizer(XLA_OPTIMIZER if _xla(where) else OPTIMIZER), batch=UNITY,
        efficiency=chip_efficiency(where.chip, dtype, kernels, fused=not keeps_scores),
    )  # fmt: skip


def _recompute(row: TrainingRow) -> tuple[str, ...]:
    """Recomputation modes to consider: the stated mode, else all."""
    text = row.recompute.lower()
    for mode in ("full", "selective", "none"):
        if mode in text:
            return (mode,)
    return RECOMPUTE


def _keeps_scores(row: TrainingRow, where: System) -> bool:
    """Whether attention writes its scores to memory: stated in notes, usual before 2022, or a chip without fused kernels."""
    notes, year = row.notes.lower(), where.chip.year
    return "no flashattention" in notes or _of_old(row) or (year is not None and float(year) < FIRST_FUSED)


def _of_old(row: TrainingRow) -> bool:
    """Whether a run is in the style of before 2022: fp16 mixed precision with loss scaling, and dropout."""
    notes, precision = row.notes.lower(), row.precision.lower()
    old = ("fp16" in precision or "mixed" in precision) and not ("bf16" in precision or "fp8" in precision)
    return old and "flashattention" not in notes


def dtype_of(row: TrainingRow, where: System) -> tuple[str, str]:
    """Number format of the matmuls, and a flag if it differs from the stated format."""
    precision = row.precision.lower()
    if "fp4" in precision or "fp8" in precision:
        dtype = "bf16" if where.chip.peak("fp8") is None else "fp8"
        return dtype, "" if dtype in precision else f"format {row.precision}: predicted as {dtype}"
    return "bf16", "" if not precision or "16" in precision or "mixed" in precision else f"format {row.precision}: predicted as bf16"


def _xla(where: System) -> bool:
    """Whether XLA compiles the chip's programs (TPU)."""
    return where.chip.name.startswith("tpu")


def _eager(where: System, among: LayoutArrays) -> Any:
    """Whether elementwise kernels run eagerly: fully sharded training on GPUs is PyTorch's; XLA and Megatron fuse them."""
    return (among.layouts.zero == 3) & (not _xla(where))


def _schedule(row: TrainingRow, layouts: TrainingLayout) -> str:
    notes = row.notes.lower()
    for text, schedule in SCHEDULES.items():
        if text in notes:
            return schedule
    return "interleaved" if (layouts.vpp > 1).any() else "1f1b"


# Sources that count FLOPs differently (docs/measured_rows.md); all others count full attention and no recomputation.
COUNTS_RECOMPUTATION = ("narayanan-2021", "bloom")
COUNTS_HALF = ("llama-3", "palm")
TERA = 1e12


def flop_per_token(setup: TrainingSetup) -> float:
    """FLOPs per token, as the row's source counts them."""
    work, recipe = setup.case.work, setup.case.recipe
    if setup.row.source in COUNTS_RECOMPUTATION:
        return float(hardware_flop(work, recipe))
    return float(model_flop(work, recipe, causal=setup.row.source in COUNTS_HALF))


def measured_speed(setup: TrainingSetup) -> float | None:
    """Measured tokens per second and chip; None if the row states no speed."""
    row = setup.row
    if row.tokens_per_s_per_chip:
        return row.tokens_per_s_per_chip
    if row.step_time_s and row.global_batch:
        return float(setup.case.batch) / row.step_time_s / float(setup.case.system.chips)
    if row.tflops_per_chip:
        return row.tflops_per_chip * TERA / flop_per_token(setup)
    if row.mfu_pct:
        return row.mfu_pct / 100 * float(setup.case.machine.peak) / flop_per_token(setup)
    return None

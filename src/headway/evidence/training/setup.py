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
from headway.models.model import Model
from headway.training.achieved import chip_efficiency
from headway.training.estimate import estimate
from headway.training.layouts import layout_at, rows
from headway.training.pipeline import TrainingCase, machine
from headway.training.recipe import KERNELS, Recipe, TrainingLayout, optimizer
from headway.training.work import hardware_flop, matmul_flop, model_flop, training_work

SEQUENCE = 2048
OPTIMIZER, NARROW_OPTIMIZER, XLA_OPTIMIZER = "adam", "adam-bf16-grad", "adam-no-master"  # XLA trainers keep no 16-bit copy of the weights
FIRST_FUSED = 2020  # year of the first chips with fused attention: A100 and TPU v4 (TPU v3: jax-ml/jax issue 18595)
ONE_LAYER = "one layer"
ADAPTERS = "task not stated: adapters alone (LoRA), as nothing else fits"
UNASKED = ("none", "selective")  # where a row states none: runs recompute modules, offload or split further first
FUSED, EAGER = ("megatron_te", "megatron_fsdp", "nemo", "maxtext", "jax"), ("pytorch_fsdp", "deepspeed")  # software, by its kernels
NARROW_GRADIENTS = "2025-06"  # Megatron's published recipes since then keep and send gradients in 16 bits
CAPTURED = "2026-06"  # since then those of routed models in MXFP8 capture a whole step as one CUDA graph
COMPILED_LOSS = "2025-04"  # since then torchtitan compiles the loss with the model (its pull request 1033)
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
        return _case(row, shape.model, where, list(shape.flags), catalog)
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


def _case(row: TrainingRow, model: Model, where: System, flags: list[str], catalog: Catalog | None) -> TrainingSetup | str:
    """Setup with the stated values; open values take the fastest choice that fits in memory."""
    sequence = row.seq_len or SEQUENCE
    among = layout_options(row, model, where, sequence)
    if isinstance(among, str):
        return among
    best = _best_choice(row, model, where, sequence, among, catalog)
    if not row.task and not best.fits and _states_exceed(best):  # adapters alone need no gradients and states
        adapters = _best_choice(replace(row, task="lora"), model, where, sequence, among, catalog)
        best, flags = (adapters, [*flags, ADAPTERS]) if adapters.fits else (best, flags)
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


def _states_exceed(choice: _Choice) -> bool:
    """Whether weights, gradients and optimiser states alone, which are certain, exceed a chip's memory."""
    memory = estimate(choice.case, choice.layout).memory
    return float(memory.weights + memory.gradients + memory.optimizer) > float(choice.case.system.chip.need("hbm"))


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


def _best_choice(row: TrainingRow, model: Model, where: System, sequence: int, among: LayoutArrays, catalog: Catalog | None) -> _Choice:
    best: _Choice | None = None
    eager = _eager(row, where, among)
    for recompute, kernels in itertools.product(_recompute(row), KERNELS):
        index = np.flatnonzero(eager == (kernels == "eager"))
        if len(index):
            part = rows(among.layouts, index)
            choice = _best_layout(row, model, where, sequence, part, among.sequences[index], recompute, kernels, catalog)
            best = choice if choice.better(best) else best
    assert best is not None  # every layout has fused or eager kernels
    return best


def _best_layout(
    row: TrainingRow, model: Model, where: System, sequence: int, layouts: TrainingLayout, sequences: Any, recompute: str, kernels: str,
    catalog: Catalog | None,
) -> _Choice:  # fmt: skip
    """Best of the layouts under one recipe."""
    case = _run(row, model, where, sequence, recompute, kernels, _schedule(row, layouts), catalog)
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


def _run(
    row: TrainingRow, model: Model, where: System, sequence: int, recompute: str, kernels: str, schedule: str, catalog: Catalog | None
) -> TrainingCase:
    """Training case of a row under one recomputation mode, without a batch."""
    dtype, notes = dtype_of(row, where)[0], row.notes.lower()
    keeps_scores = _keeps_scores(row, where)
    recipe = defaults(Recipe, {
        "dtype": dtype, "recompute": recompute, "schedule": schedule, "kernels": kernels,
        "fused_attention": user_input(0 if keeps_scores else 1, "fused_attention"),
        "dropout": user_input(1 if _of_old(row) else 0, "dropout"),
        "sequence_parallel": user_input(0 if "no sp" in notes or "no sequence parallel" in notes else 1, "sequence_parallel"),
        "trainable": user_input(0 if is_lora(row) else 1, "trainable"),
        "fused_loss": user_input(1, "fused_loss") if row.date >= COMPILED_LOSS and "compile" in notes else None,
        "captured": user_input(1 if captured(row, where, dtype) else 0, "captured"),
        "bytes_gradient_wire": user_input(2 if _narrow_gradients(row) else 4, "bytes_gradient_wire"),
    })  # fmt: skip
    work = training_work(model, recipe, user_input(sequence, "seq", "token"))
    return TrainingCase(
        work=work, system=where, machine=machine(where, dtype), recipe=recipe,
        optimizer=optimizer(XLA_OPTIMIZER if _xla(where) else NARROW_OPTIMIZER if _narrow_gradients(row) else OPTIMIZER), batch=1,
        efficiency=chip_efficiency(where.chip, dtype, kernels, fused=not keeps_scores, work=work, catalog=catalog),
    )  # fmt: skip


def is_lora(row: TrainingRow) -> bool:
    """Whether only adapters are trained."""
    return row.task.lower() == "lora" or "finetune lora" in row.notes.lower()


def _narrow_gradients(row: TrainingRow) -> bool:
    """Whether gradients are kept and sent in 16 bits."""
    return row.kernels.lower().startswith("megatron") and row.date >= NARROW_GRADIENTS


def captured(row: TrainingRow, where: System, dtype: str) -> bool:
    """Whether a step runs as one graph: XLA always, GPUs where notes say so or, without notes on graphs, recent runs in block formats."""
    notes = row.notes.lower()
    if _xla(where) or "full_iteration" in notes:
        return True
    return "cuda graphs" not in notes and row.date >= CAPTURED and dtype in ("mxfp8", "nvfp4")


def _recompute(row: TrainingRow) -> tuple[str, ...]:
    """Recomputation modes to consider: the stated mode, else all."""
    text = row.recompute.lower()
    for mode in ("full", "selective", "none"):
        if mode in text:
            return (mode,)
    return UNASKED


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
    name = next((dtype_name for dtype_name, text in (("nvfp4", "fp4"), ("mxfp8", "mxfp8"), ("fp8", "fp8")) if text in precision), "")
    if name:
        block_scaled = where.chip.peak("fp4") is not None  # chips whose matmuls take a scale for each block have 4-bit arithmetic too
        eight = "bf16" if where.chip.peak("fp8") is None else "fp8"
        dtype = name if (name == "fp8" and eight == "fp8") or (name != "fp8" and block_scaled) else eight
        return dtype, "" if dtype == name else f"format {row.precision}: predicted as {dtype}"
    return "bf16", "" if not precision or "16" in precision or "mixed" in precision else f"format {row.precision}: predicted as bf16"


def _xla(where: System) -> bool:
    """Whether XLA compiles the chip's programs (TPU)."""
    return where.chip.name.startswith("tpu")


def _eager(row: TrainingRow, where: System, among: LayoutArrays) -> Any:
    """Whether elementwise kernels run eagerly: stated by the software, else fully sharded training on GPUs is PyTorch's."""
    software = row.kernels.lower()
    if software in FUSED or _xla(where):
        return np.zeros(len(among.sequences), bool)
    return np.full(len(among.sequences), True) if software in EAGER else among.layouts.zero == 3


def _schedule(row: TrainingRow, layouts: TrainingLayout) -> str:
    notes = row.notes.lower()
    for text, schedule in SCHEDULES.items():
        if text in notes:
            return schedule
    return "interleaved" if (layouts.vpp > 1).any() else "1f1b"


# Sources that count FLOPs differently (docs/measured_rows.md); all others count full attention and no recomputation.
COUNTS_RECOMPUTATION = ("narayanan-2021", "bloom")
COUNTS_HALF = ("llama-3", "palm")  # where a row has no flop_convention
TERA = 1e12


def flop_per_token(setup: TrainingSetup) -> float:
    """FLOPs per token, as the row's source counts them."""
    work, recipe = setup.case.work, setup.case.recipe
    if setup.row.source in COUNTS_RECOMPUTATION:
        return float(hardware_flop(work, recipe))
    convention = setup.row.flop_convention.lower()
    if convention == "6nd":
        return float(matmul_flop(work, recipe))
    half = convention == "causal_half" if convention in ("full", "causal_half") else setup.row.source in COUNTS_HALF
    return float(model_flop(work, recipe, causal=half))


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
